"""How often each token is read, exactly, over slices, lengths and stages that overlap.

Every lane cuts its documents somewhere. The cuts of all lanes together make *segments*: runs of
tokens that no lane divides, so each is read a whole number of times. Counting documents, or
averaging epochs per slice, misses the document that `base` read four times and `long_context`
reads once more. Memory: 16 bytes per segment and 16 per segment of each lane.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .plan import Lane


class Usage:
    """Counts per segment. `tokens` int64[d]: length of each document; the rest by lane as in plans.

    `segments[lane]`: the segments of a lane, ascending, int64[k]; what `spread` gives is aligned
    with them. `times`: how often each segment has been read, for the caller to add to.
    """

    def __init__(
        self,
        tokens: np.ndarray,
        offsets: Sequence[np.ndarray],
        pieces: Sequence[np.ndarray],
        by_document: Sequence[np.ndarray],
    ) -> None:
        base = np.cumsum(tokens) - tokens  # of each document, in one long row of tokens
        sorted_pieces = [np.asarray(p)[by] for p, by in zip(pieces, by_document, strict=True)]
        begins = [base[p[:, 0]] + p[:, 1] for p in sorted_pieces]
        # most pieces begin with their document: only the others are sorted and looked up
        inner = [b[p[:, 1] > 0] for b, p in zip(begins, sorted_pieces, strict=True)]
        cuts = np.sort(np.concatenate(inner), kind="stable")
        cuts = cuts[np.diff(cuts, prepend=-1) > 0]
        cuts = cuts[base[np.searchsorted(base, cuts, side="right") - 1] != cuts]
        starts = np.sort(np.concatenate([base, cuts]), kind="stable")
        base_at = np.arange(len(base) + 1) + np.searchsorted(cuts, np.append(base, tokens.sum()))
        self.base, self._starts, self._tokens = base, starts, tokens
        self.lengths = np.diff(starts, append=int(tokens.sum()))
        self.document = np.repeat(np.arange(len(base)), np.diff(base_at))
        self.opens = starts == base[self.document]  # holds its document's first token
        self.closes = starts + self.lengths == (base + tokens)[self.document]  # or its last one
        self.times = np.zeros(len(starts), dtype=np.int64)
        self.segments: list[np.ndarray] = []
        self._windows: list[np.ndarray] = []
        self._heads: list[np.ndarray] = []
        for k, begin in enumerate(begins):
            places = self._places(begin, sorted_pieces[k], base_at)
            low, each = places[:, 0], places[:, 1] - places[:, 0]
            first = np.cumsum(each) - each
            self._heads.append(first)
            self.segments.append(np.repeat(low - first, each) + np.arange(int(each.sum())))
            edges = np.asarray(offsets[k]).astype(np.int64)
            window = np.repeat(np.arange(len(edges) - 1), edges[1:] - edges[:-1])
            self._windows.append(np.repeat(window[by_document[k]], each))

    def _places(self, begin: np.ndarray, pieces: np.ndarray, base_at: np.ndarray) -> np.ndarray:
        """First segment of each piece, and the first after it: int64[p, 2].

        `begin`: first tokens in the long row, ascending; `base_at`: of documents, and the end.
        """
        rows = pieces[:, 0].astype(np.int64)
        end = begin + pieces[:, 2]
        out = np.stack([base_at[rows], base_at[rows + 1]], axis=1)
        cut = np.flatnonzero(pieces[:, 1] > 0)
        out[cut, 0] = np.searchsorted(self._starts, begin[cut])
        cut = np.flatnonzero(end != self.base[rows] + self._tokens[rows])
        out[cut, 1] = np.searchsorted(self._starts, end[cut])
        return out

    def spread(self, lane: int, counts: np.ndarray) -> np.ndarray:
        """Reads of each of the lane's segments when its window w is read counts[w] times."""
        return counts[self._windows[lane]]

    def heads(self, lane: int) -> np.ndarray:
        """Which of the lane's segments begin a piece: int64[k], 1 or 0."""
        out = np.zeros(len(self.segments[lane]), dtype=np.int64)
        out[self._heads[lane]] = 1
        return out

    def inside(self, lane: int, spans: np.ndarray, shift: int, short: np.ndarray) -> np.ndarray:
        """Tokens of `spans` (int64[n, 2] in the long row) in each segment moved on by `shift`.

        Those that are `short` (bool[k]) end one token earlier. int64[k].
        """
        mine = self.segments[lane]
        if not len(spans):
            return np.zeros(len(mine), dtype=np.int64)
        before = np.concatenate([[0], np.cumsum(spans[:, 1] - spans[:, 0])])

        def up_to(places: np.ndarray) -> np.ndarray:
            at = np.searchsorted(spans[:, 0], places, side="right") - 1
            part = np.minimum(places, spans[at, 1]) - spans[at, 0]
            return np.where(at < 0, 0, before[at] + part)

        begin = self._starts[mine] + shift
        return up_to(begin + self.lengths[mine] - short) - up_to(begin)

    def tails(self, lane: int, pieces: np.ndarray) -> np.ndarray:
        """Which of the lane's segments end one of its `pieces` (int64[p, 3]): bool[k]."""
        ends = self.base[pieces[:, 0]] + pieces[:, 1] + pieces[:, 2] - 1
        found = np.zeros(len(self._starts), dtype=bool)
        found[np.searchsorted(self._starts, ends, side="right") - 1] = True
        return found[self.segments[lane]]


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
