"""Pieces of documents laid into the arrays of a sequence; numpy alone.

Every element is written once: a batch is filled in place, and no array is made to be copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

IGNORE: Final = -100  # a label without a target, as PyTorch's cross entropy has it
_COUNT: Final = np.arange(1 << 13)  # copying is faster than counting


class Part(NamedTuple):
    """A piece of a document: `tokens` has one more than `length` where the document goes on."""

    length: int
    tokens: np.ndarray | None  # None: it was masked, and is padding
    target: bool  # are its tokens to be learnt
    unlearnt: Sequence[Sequence[int]] = ()  # stretches [a, b) of `tokens` that are not


class Arrays:
    """int64[samples, S] each; not yet written."""

    def __init__(self, samples: int, length: int) -> None:
        self.ids = np.empty((samples, length), dtype=np.int64)
        self.labels = np.empty((samples, length), dtype=np.int64)
        self.places = np.empty((samples, length), dtype=np.int64)

    def of(self, row: int, begin: int, end: int) -> Arrays:
        """Views of a part of a sample, int64[end - begin] each."""
        out = Arrays.__new__(Arrays)
        out.ids = self.ids[row, begin:end]
        out.labels = self.labels[row, begin:end]
        out.places = self.places[row, begin:end]
        return out


def lay(parts: Iterable[Part], into: Arrays, pad_id: int, *, inside: bool) -> list[int]:
    """Write a sequence; the ends of its segments. The rest is padding, a segment of its own.

    `inside`: attention and targets stay inside documents; else the sequence is one segment, and
    text runs on over the end of a document.
    """
    ids, labels, places = into.ids, into.labels, into.places
    edges: list[int] = []
    at = 0
    runs_on = False  # the token before `at` may have its label here
    for length, tokens, target, unlearnt in parts:
        end = at + length
        if tokens is None:
            ids[at:end] = pad_id
            labels[at:end] = IGNORE
        else:
            ids[at:end] = tokens[:length]
            if target:
                known = at + len(tokens) - 1
                labels[at:known] = tokens[1:]
                labels[known:end] = IGNORE  # of a document's last token
                if runs_on and not inside:
                    labels[at - 1] = tokens[0]
                for a, b in unlearnt:  # of tokens: their labels stand one place before
                    if a or (runs_on and not inside):
                        labels[at + a - 1] = IGNORE
                    labels[at + a : at + b - 1] = IGNORE
            else:
                labels[at:end] = IGNORE
        if inside:
            _count(places[at:end])
        edges.append(end)
        at, runs_on = end, target
    ids[at:] = pad_id
    labels[at:] = IGNORE
    _count(places[at:] if inside else places)
    if not inside:
        return [len(ids)]
    return edges if at == len(ids) else [*edges, len(ids)]


def _count(out: np.ndarray) -> None:
    """0, 1, 2, ..."""
    out[:] = _COUNT[: len(out)] if len(out) <= len(_COUNT) else np.arange(len(out))
