"""Pieces of documents laid into the arrays of a batch; numpy alone.

Ids are written once, in place. Labels are the ids moved by one, all at a time; what differs from
that (the last token of a piece, padding, documents without targets) is noted on the way and set
afterwards. Speed: benchmarks/feed_peers.py.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from threading import Lock
from typing import Final

import numpy as np

IGNORE: Final = -100  # a label without a target, as PyTorch's cross entropy has it
_PAGE: Final = 4096  # bytes
_COUNT: Final = np.arange(1 << 13)  # copying is faster than counting


class Pool:
    """Arrays that nobody holds any more, to be written again.

    The system gives memory page by page and clears it: for a fresh batch that takes longer than
    writing it. An array is free when the pool's is the only reference to its memory; views of it,
    and tensors made of it, hold it.

    Each begins at a place of its own within a page of 4,096 bytes. Processors compare no more than
    that when a load might need an earlier store: copying ids to labels one further on waits for
    each store where labels begin a few bytes after ids, and for none where they begin 64 before.
    """

    KEPT: Final = 32  # arrays at most

    def __init__(self) -> None:
        self._known: list[np.ndarray] = []
        self._lock = Lock()

    def take(self, samples: int, length: int, place: int) -> np.ndarray:
        """int64[samples, length], not cleared, `place` bytes from the begin of a page."""
        size = samples * length
        with self._lock:
            for memory in self._known:
                # held by the list, by `memory` and by the call
                if len(memory) == size + _PAGE // 8 and sys.getrefcount(memory) == 3:
                    break
            else:
                memory = np.empty(size + _PAGE // 8, dtype=np.int64)
                self._known = [*self._known[1 - self.KEPT :], memory]
            first = (place - memory.__array_interface__["data"][0]) % _PAGE // 8
            return memory[first : first + size].reshape(samples, length)


class Arrays:
    """A batch being written: `ids`, `labels`, `places`, int64[samples, S] each.

    Sequences come one after the other: `open`, then a piece after the other by `text` or `blank`,
    then `close`. `finish` sets the labels.
    """

    def __init__(self, samples: int, length: int, pad_id: int, pool: Pool) -> None:
        self.length, self.pad_id = length, pad_id
        self.ids, self.labels, self.places = (
            pool.take(samples, length, place) for place in (128, 64, 0)
        )
        self.edges = [0]  # of segments, over the samples laid end to end
        self._flat, self._flat_places = self.ids.reshape(-1), self.places.reshape(-1)
        self._at = self._begin = 0
        self._inside = True
        self._last: list[int] = []  # last tokens of pieces
        self._next: list[int] = []  # and their labels
        self._blank: list[tuple[int, int]] = []  # spans without targets
        self._runs_on = False  # the last token noted takes its label from the text that follows

    def open(self, *, inside: bool) -> None:
        """Begin a sequence; `inside`: attention and targets stay inside documents."""
        self._begin, self._inside, self._runs_on = self._at, inside, False

    def text(
        self,
        tokens: np.ndarray,
        following: int,
        *,
        target: bool,
        unlearnt: Sequence[Sequence[int]] = (),
    ) -> None:
        """A piece; `following`: the token after it in its document, IGNORE where it ends there.

        `unlearnt`: stretches [a, b) of the tokens (the one after them too) that are no targets.
        """
        at = self._at
        end = at + len(tokens)
        self._flat[at:end] = tokens
        if target:  # the label of a token stands one place before it
            for a, b in unlearnt:
                first = at + a - 1 if a or self._runs_on else at
                self._blank.append((first, at + b - 1))
        if target and self._inside:
            self._last.append(end - 1)
            self._next.append(following)
            self._piece(at, end)
        elif target:
            if self._runs_on:  # plain text runs on over the end of the document before
                self._last.pop()
                self._next.pop()
            self._last.append(end - 1)
            self._next.append(following)
            self._runs_on = following == IGNORE
            self._piece(at, end)
        else:
            self._without(at, end)

    def blank(self, length: int) -> None:
        """A piece that was taken out: padding."""
        self._flat[self._at : self._at + length] = self.pad_id
        self._without(self._at, self._at + length)

    def close(self, size: int) -> None:
        """End a sequence of `size` tokens; what is left of it is padding, a segment of its own."""
        stop = self._begin + size
        if self._at < stop:
            self.blank(stop - self._at)
        if not self._inside:
            self._flat_places[self._begin : stop] = _count(size)
            self.edges.append(stop)

    def finish(self) -> None:
        """Set the labels, when all sequences are closed."""
        labels = self.labels.reshape(-1)
        labels[:-1] = self._flat[1:]
        labels[self._last] = self._next
        for low, high in self._blank:
            labels[low:high] = IGNORE

    def _without(self, at: int, end: int) -> None:
        self._blank.append((at, end))
        self._runs_on = False
        self._piece(at, end)

    def _piece(self, at: int, end: int) -> None:
        self._at = end
        if self._inside:
            self._flat_places[at:end] = _count(end - at)
            self.edges.append(end)


def _count(length: int) -> np.ndarray:
    """0, 1, 2, ..."""
    return _COUNT[:length] if length <= len(_COUNT) else np.arange(length)
