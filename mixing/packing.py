"""Documents to windows of S tokens: concat-and-cut, or best fit in fixed groups; none are lost.

Documents come in the catalogue's order and are shuffled within groups of 16,384 neighbours, so a
window mixes far more than one crawl file's neighbours, and yet touches at most one group's tokens
(some 30 MB at 1,000 tokens each: a handful of checksummed extents). The windows themselves are
then ordered by `mixing.order` across all groups.

concat    one stream of documents cut every S tokens; only the last window has padding
best_fit  documents longer than S are split into full windows and a rest; the rests and the short
          ones are packed best-fit-decreasing per group (Ding et al. 2024): nothing is cut that
          fits. Groups are fixed, so documents appended later leave earlier windows as they are.
          Padding of log-normal lengths at 8,192 tokens: tests/mixing/test_packing.py bounds it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ._kernels import best_fit
from .order import Permutation

GROUP: Final = 16_384  # documents


def pack(
    tokens: np.ndarray, sequence_length: int, packing: str, *purpose: str | int
) -> tuple[np.ndarray, np.ndarray]:
    """Pack documents of `tokens` (int64[d], each >= 1) into windows.

    Returns window offsets uint64[w + 1] into pieces, and pieces uint32[p, 3]: (index of the
    document, first token of it, tokens). `purpose` keys the shuffle. Pieces of a window stand in
    shuffled order, not longest first.
    """
    groups = [(low, min(low + GROUP, len(tokens))) for low in range(0, len(tokens), GROUP)]
    shuffled = [
        low + Permutation(high - low, *purpose, "group", i).forward(np.arange(high - low))
        for i, (low, high) in enumerate(groups)
    ]
    if packing == "concat":
        return _concat(tokens, np.concatenate(shuffled), sequence_length)
    packed = [_best_fit(tokens, order, sequence_length) for order in shuffled]
    counts = np.concatenate([count for count, _ in packed])
    pieces = np.concatenate([piece for _, piece in packed])
    offsets = np.zeros(len(counts) + 1, dtype=np.uint64)
    np.cumsum(counts, out=offsets[1:])
    return offsets, pieces


def _concat(tokens: np.ndarray, order: np.ndarray, window: int) -> tuple[np.ndarray, np.ndarray]:
    ends = np.cumsum(tokens[order])
    total = int(ends[-1])
    begins = ends - tokens[order]
    cuts = np.sort(np.concatenate([begins, np.arange(0, total, window, dtype=np.int64)]))
    cuts = cuts[np.concatenate([[True], cuts[1:] != cuts[:-1]])]
    lengths = np.diff(cuts, append=total)
    at = np.searchsorted(begins, cuts, side="right") - 1
    pieces = np.stack([order[at], cuts - begins[at], lengths], axis=1).astype(np.uint32)
    windows = -(-total // window)
    offsets = np.searchsorted(cuts, np.arange(windows + 1, dtype=np.int64) * window)
    return offsets.astype(np.uint64), pieces


def _best_fit(tokens: np.ndarray, order: np.ndarray, window: int) -> tuple[np.ndarray, np.ndarray]:
    """Pieces per window uint64[w], and the pieces by window."""
    lengths = tokens[order]
    parts = -(-lengths // window)
    document = np.repeat(order, parts)
    first = np.cumsum(parts) - parts
    start = (np.arange(len(document)) - np.repeat(first, parts)) * window
    length = np.minimum(window, tokens[document] - start)
    bins, used = best_fit(length, window)
    by_bin = np.argsort(bins, kind="stable")
    pieces = np.stack([document, start, length], axis=1)[by_bin].astype(np.uint32)
    return np.bincount(bins, minlength=used).astype(np.uint64), pieces
