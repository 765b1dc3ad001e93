"""A template as a person reads it: its words, its slots, and what stands in them on some pages."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from .families import Families, template_of
from .laid import Words, cover, words_of

OPEN, CLOSE = "⟦", "⟧"
FILLS = 12  # of a page that are shown
LONGEST = 4000  # characters of a template that are shown
OWN = "[… own text …]"  # for lines that the template does not explain
OWN_WORDS = "[…]"  # and for words of a line that it does


def show(texts: pa.Array, ngram: int) -> dict[str, Any]:
    """The first of some pages of a family as its template, slots marked; the fills of each page.

    `texts` are at most `Families.sample` of them, so that the template is the one that was used.
    """
    known = template_of(texts, ngram, Fraction(Families.sample_share))
    words = words_of(texts)
    state = cover(words, ngram, known)
    marked = [_marked(words, state, row) for row in range(len(texts))]
    template = marked[0][0]
    if len(template) > LONGEST:
        template = template[:LONGEST] + "…"
    return {"template": template, "slots": len(marked[0][1]), "fills": [m[1] for m in marked]}


def _marked(words: Words, state: np.ndarray, row: int) -> tuple[str, list[str]]:
    """One text with its slots marked, text of its own left out; and what fills the slots."""
    view = words.view
    start, end = int(view.offsets[row]), int(view.offsets[row + 1])
    text = view.data[start:end].tobytes()
    first, last = int(words.ends[row - 1]) if row else 0, int(words.ends[row])
    places = words.places[first:last]
    told = {int(line) for line in np.unique(places[state[first:last] != 0, 2])}
    own = {int(line) for line in np.unique(places[:, 2])} - told
    pieces: list[str] = []
    fills: list[str] = []
    read, i = 0, 0
    while i < last - first:
        kind = state[first + i]
        if kind == 1:
            i += 1
            continue
        j = i
        while j < last - first and state[first + j] == kind and places[j, 2] == places[i, 2]:
            j += 1
        begin, stop = int(places[i, 0]) - start, int(places[j - 1, 1]) - start
        shown = OWN_WORDS
        if kind == 2:
            fills.append(text[begin:stop].decode("utf-8", "replace"))
            shown = f"{OPEN}{fills[-1]}{CLOSE}"
        pieces += [text[read:begin].decode("utf-8", "replace"), shown]
        read = stop
        i = j
    pieces.append(text[read:].decode("utf-8", "replace"))
    lines: list[str] = []
    for i, line in enumerate("".join(pieces).split("\n")):
        if i not in own:
            lines.append(line)
        elif lines[-1:] != [OWN]:
            lines.append(OWN)
    return "\n".join(lines), fills
