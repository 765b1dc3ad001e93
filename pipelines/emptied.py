"""Turns of which later stages cut all that was said.

Their headings stand in the text still, which no cut of what was said takes; so the turn is closed
behind its heading, and a template passes over it. What answers a question that went is no target:
a model would learn to say it out of nothing.
"""

from __future__ import annotations

import numpy as np

from ..mixing.turns import LEVELS


def close_emptied(
    roles: list[str], places: dict[str, np.ndarray], trained: np.ndarray, emptied: np.ndarray
) -> None:
    """Close the emptied turns of one conversation, in place.

    `places`: int64[turns] each of `start`, `body`, `stop`; `trained`, `emptied`: bool[turns]. A
    conversation of which nothing is left keeps its turns, none of them a target: without turns it
    would be a text of headings.
    """
    start, body, stop = (places[name] for name in ("start", "body", "stop"))
    left = stop > body
    if not left.any():
        trained[:] = False
        return
    firsts = [i for i, role in enumerate(roles) if i == 0 or role not in LEVELS]
    asked = True  # does the last question stand
    for i, end in zip(firsts, [*firsts[1:], len(roles)], strict=True):
        turn = slice(i, end)
        gone = bool(emptied[turn].any() and not left[turn].any())
        which = np.arange(i, end)[np.ones(end - i, np.bool_) if gone else emptied[turn]]
        start[which] = body[which] = stop[which]
        if roles[i] == "user":
            asked = not gone
        elif roles[i] == "assistant" and not asked:
            trained[turn] = False
