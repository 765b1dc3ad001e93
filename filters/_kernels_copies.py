# mypy: ignore-errors
"""Kernels that look for items token by token where grams pointed; `decontaminate.py` has the rules.

Both take groups of hits (of one row and one item, in order) and the tokens of the row.
"""

from __future__ import annotations

import numpy as np
from numba import njit

BETWEEN = 5  # tokens before a choice that are not of the item: `Answer: B Choices: A`


@njit(cache=True, nogil=True, forceinline=True)
def _stands(hashes, at, wanted, first, last):
    """Whether the tokens from `at` on are the `wanted` from `first` to `last`."""
    good = 0 <= at <= len(hashes) - (last - first)
    t = 0
    while good and t < last - first:
        good = hashes[at + t] == wanted[first + t]
        t += 1
    return good


@njit(cache=True, nogil=True)
def _but_one(hashes, s, e, lo, hi, wanted, base, end, open_):
    """First and last token of the item from `base` to `end` but for one word, or -1, -1.

    From `lo` to `hi` it stands in the text, from `s` to `e`. Its next word may be another, or two,
    or none, where that is `open_`, and its next two may be one; or a word more may stand before it.
    """
    if lo == base:
        for gap in (1, 2, 0):
            if hi + 1 < end and open_[hi] and _stands(hashes, e + gap, wanted, hi + 1, end):
                return s, e + gap + end - hi - 1
        two = hi + 2 < end and open_[hi] and open_[hi + 1]
        if two and _stands(hashes, e + 1, wanted, hi + 2, end):
            return s, e + 1 + end - hi - 2
        if _stands(hashes, e + 1, wanted, hi, end):
            return s, e + 1 + end - hi
    elif hi == end:
        for gap in (1, 2, 0):
            at = s - gap - (lo - 1 - base)
            if lo - 1 > base and open_[lo - 1] and _stands(hashes, at, wanted, base, lo - 1):
                return at, e
        at = s - 1 - (lo - 2 - base)
        two = lo - 2 > base and open_[lo - 1] and open_[lo - 2]
        if two and _stands(hashes, at, wanted, base, lo - 2):
            return at, e
        if _stands(hashes, s - 1 - (lo - base), wanted, base, lo):
            return s - 1 - (lo - base), e
    return -1, -1


@njit(cache=True, nogil=True)
def near(hashes, groups, hits, items, n, out):
    """For each group of hits (one row, one item) where the item stands but for one word.

    `hashes` uint64: tokens of the row; `groups` int64[g, 2] bounds; `hits`: item int32, token
    int64; `items`: their tokens uint64 (flat, by bounds), and which of these may be another word.
    `out` int64[g, 2]: first and last token; -1 where it stands nowhere.
    """
    which, places = hits
    wanted, bases, open_ = items
    for g in range(len(groups)):
        out[g] = -1
        for hit in range(groups[g, 0], groups[g, 1]):
            base, end = bases[which[hit]], bases[which[hit] + 1]
            for q in range(base, end - n + 1):
                if not _stands(hashes, places[hit], wanted, q, q + n):
                    continue
                lo, s = q, places[hit]
                while lo > base and s > 0 and hashes[s - 1] == wanted[lo - 1]:
                    lo, s = lo - 1, s - 1
                hi, e = q + n, places[hit] + n
                while hi < end and e < len(hashes) and hashes[e] == wanted[hi]:
                    hi, e = hi + 1, e + 1
                s, e = _but_one(hashes, s, e, lo, hi, wanted, base, end, open_)
                out[g, 0], out[g, 1] = s, e
                if out[g, 0] >= 0:
                    break
            if out[g, 0] >= 0:
                break


@njit(cache=True, nogil=True)
def _choices(hashes, at, wanted, bounds, first, last):
    """Where the parts from `first` to `last` end that stand from `at` on, in any order, or -1.

    Before each up to `BETWEEN` tokens are passed over. Of two that stand at one place the longer
    is taken: one may begin as the other does.
    """
    taken = np.zeros(last - first, np.bool_)
    for _ in range(last - first):
        best = -1
        gap = 0
        while best < 0 and gap <= BETWEEN:
            for p in range(first, last):
                size = bounds[p + 1] - bounds[p]
                longer = best < 0 or size > bounds[best + 1] - bounds[best]
                asked = longer and not taken[p - first]
                if asked and _stands(hashes, at + gap, wanted, bounds[p], bounds[p + 1]):
                    best = p
            gap += 1
        if best < 0:
            return -1
        taken[best - first] = True
        at += gap - 1 + bounds[best + 1] - bounds[best]
    return at


@njit(cache=True, nogil=True)
def laid_out(hashes, groups, hits, items, out):
    """For each group of hits where its item's first part stands with all others behind it.

    `hashes` uint64: tokens of the row; `groups` int64[g, 2] bounds; `hits`: item int32, token
    int64; `items`: tokens of all parts uint64, their bounds, and the bounds of each item's parts.
    `out` int64[g, 2]: first and last token; -1 where it stands nowhere.
    """
    which, places = hits
    wanted, bounds, parts = items
    for g in range(len(groups)):
        out[g] = -1
        k = which[groups[g, 0]]
        first, last = parts[k], parts[k + 1]
        reach = bounds[last] - bounds[first] + BETWEEN * (last - first)
        s = np.int64(0)
        for hit in range(groups[g, 0], groups[g, 1]):
            s = max(s, places[hit] - reach)
            while s <= places[hit] and out[g, 0] < 0:
                if _stands(hashes, s, wanted, bounds[first], bounds[first + 1]):
                    at = s + bounds[first + 1] - bounds[first]
                    e = _choices(hashes, at, wanted, bounds, first + 1, last)
                    if e >= 0:
                        out[g] = s, e
                s += 1
            if out[g, 0] >= 0:
                break
