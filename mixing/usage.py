"""How often each token is read, exactly, over slices, lengths and stages that overlap.

Every lane cuts its documents somewhere. The cuts of all lanes together make *segments*: runs of
tokens that no lane divides, so each is read a whole number of times. Counting documents, or
averaging epochs per slice, misses the document that `base` read four times and `long_context`
reads once more. Memory: 16 bytes per segment, a little above the number of pieces.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .plan import Lane


class Usage:
    """Counts per segment. `tokens` int64[d]: length of each document; pieces by lane."""

    def __init__(
        self, tokens: np.ndarray, offsets: Sequence[np.ndarray], pieces: Sequence[np.ndarray]
    ) -> None:
        self._offsets = offsets
        self.base = np.cumsum(tokens) - tokens  # of each document, in one long row of tokens
        begins = [self.base[p[:, 0]] + p[:, 1] for p in pieces]
        self._pieces = [(b, b + p[:, 2]) for b, p in zip(begins, pieces, strict=True)]
        self.starts = np.unique(np.concatenate([self.base, *begins]))
        self.lengths = np.diff(self.starts, append=int(tokens.sum()))
        self.document = np.searchsorted(self.base, self.starts, side="right") - 1
        ends = self.base + tokens
        self.opens = self.starts == self.base[self.document]  # holds the first token
        self.closes = self.starts + self.lengths == ends[self.document]  # holds the last token
        self.times = np.zeros(len(self.starts), dtype=np.int64)

    def spread(self, lane: int, counts: np.ndarray) -> np.ndarray:
        """Times that each segment is read when window w of `lane` is read counts[w] times."""
        begin, end = self._pieces[lane]
        offsets = self._offsets[lane].astype(np.int64)
        per_piece = np.repeat(counts, offsets[1:] - offsets[:-1])
        change = np.zeros(len(self.starts) + 1, dtype=np.int64)
        change[np.searchsorted(self.starts, begin)] += per_piece  # begins are distinct in a lane
        change[np.searchsorted(self.starts, end)] -= per_piece  # ends too
        return np.cumsum(change[:-1])


def window_counts(seed: int, lane: Lane, first: int, end: int) -> np.ndarray:
    """int64[windows]: how often ordinals first..end-1 of a lane read each of its windows."""
    n = lane.windows
    counts = np.zeros(n, dtype=np.int64)
    low, high = -(-first // n), end // n  # whole epochs
    if low <= high:
        counts += high - low
        parts = [(low - 1, first - (low - 1) * n, n), (high, 0, end - high * n)]
    else:
        parts = [(high, first - high * n, end - high * n)]
    for epoch, begin, stop in parts:
        if begin < stop:
            read = lane.order(seed, epoch).forward(np.arange(begin, stop))
            counts[read] += 1
    return counts
