# mypy: ignore-errors
"""Kernel of Gopher quality, over the masks of `_scan`.

A word's key is its bytes when it has at most 8 of them.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ._kernels_common import ALL, _decode, _last, _load8, _next, _ones, _slot, _trailing_zeros

COMMON = "60450845"  # version of _kernels_common

ENOUGH = 4  # stop words; to look up every word took a fifth of the kernel's time


@njit(cache=True, nogil=True, forceinline=True)
def _short(data, start, end):
    """The bytes of a word of at most 8 as a number."""
    if start + 8 <= len(data):
        return _load8(data, start) & (ALL >> np.uint64(64 - 8 * (end - start)))
    k = np.uint64(0)
    for t in range(end - 1, start - 1, -1):
        k = (k << np.uint64(8)) | np.uint64(data[t])
    return k


@njit(cache=True, nogil=True)
def _dots(data, i, end):
    """Full stops in a row from `i` on."""
    n = 0
    while i + n < end and data[i + n] == 0x2E:
        n += 1
    return n


@njit(cache=True, nogil=True)
def _tail(data, first, last):
    """Whether what ends at `last` (inclusive) and begins at `first` ends in an ellipsis."""
    if last - first < 2:
        return False
    a, b, c = data[last - 2], data[last - 1], data[last]
    return (a == 0x2E and b == 0x2E and c == 0x2E) or (a == 0xE2 and b == 0x80 and c == 0xA6)


@njit(cache=True, nogil=True)
def _stops(data, base, n, at, planes, stop_keys, stop_lists, stamp, mark, hits):
    """Most different stop words of one list, looked for until there are `ENOUGH`."""
    word, start, unspaced = planes[0], planes[1], planes[2]
    mask = len(stop_keys) - 1
    hits[:] = 0
    best = 0
    for k in range(n // 64 + 1):
        m = start[at + k] & ~unspaced[at + k]
        while m:
            i = 64 * k + np.int64(_trailing_zeros(m))
            m &= m - np.uint64(1)
            end = _next(word, at, i, n, ALL)
            if end - i > 8:
                continue
            fold = np.uint64(0x2020202020202020) >> np.uint64(64 - 8 * (end - i))
            slot = _slot(stop_keys, mask, _short(data, base + i, base + end) | fold)
            if stop_keys[slot] and stamp[slot] != mark:
                stamp[slot] = mark
                which, bit = stop_lists[slot], 0
                while which:
                    hits[bit] += which & np.uint64(1)
                    best = max(best, np.int64(hits[bit]))
                    which >>= np.uint64(1)
                    bit += 1
                if best >= ENOUGH:
                    return best
    return best


@njit(cache=True, nogil=True)
def quality(data, offsets, planes, blocks, stop_keys, stop_lists, bullets, out):
    """Gopher's counts, out int32[rows, 14]; columns in `gopher_quality.SCORES`."""
    word, start, unspaced, letter, latin_ = planes[0], planes[1], planes[2], planes[3], planes[4]
    visible, terminal, more, dots, line = planes[6], planes[7], planes[8], planes[9], planes[10]
    stamp = np.zeros(len(stop_keys), np.int64)
    hits = np.zeros(64, np.int32)
    one, top, no = np.uint64(1), np.uint64(63), np.uint64(0)
    for row in range(len(blocks)):
        base, n, at = offsets[row], offsets[row + 1] - offsets[row], blocks[row]
        words, singles, word_chars, bare, symbols = 0, 0, 0, 0, 0
        hashes, ellipses, letters, latin, marks = 0, 0, 0, 0, 0
        size = n // 64 + 1
        before, free = no, 0
        for k in range(size):
            p = at + k
            first = ~more[p]
            w, s, u, seen = word[p], start[p], unspaced[p], visible[p]
            words += np.int64(_ones(s))
            singles += np.int64(_ones(u))
            word_chars += np.int64(_ones(w & first))
            letters += np.int64(_ones(letter[p] & first))
            latin += np.int64(_ones(latin_[p] & first))
            marks += np.int64(_ones(seen & ~w & first))
            ellipses += np.int64(_ones(dots[p]))
            m = s & ~letter[p] & ~u  # words that begin with a number: few
            while m:
                i = 64 * k + np.int64(_trailing_zeros(m))
                m &= m - one
                end = _next(word, at, i, n, ALL)
                bare += _next(letter, at, i, end, no) == end
            m = seen & ~(seen << one | before) & ~s  # runs of visible characters without a word yet
            while m:
                i = 64 * k + np.int64(_trailing_zeros(m))
                m &= m - one
                end = _next(visible, at, i, n, ALL)
                symbols += _next(start, at, i, end, no) == end
            before = seen >> top
            after = terminal[p + 1] if k + 1 < size else no
            m = terminal[p]
            m &= m >> one | after << top
            m &= m >> one | after << top  # the second and third of three may be in the next block
            while m:
                i = 64 * k + np.int64(_trailing_zeros(m))
                m &= m - one
                if i >= free:
                    run = _dots(data, base + i, base + n)
                    ellipses += run // 3
                    free = i + run
        for b in data[base : base + n]:  # by index it takes longer
            hashes += b == 0x23
        lines, bullet_lines, ellipsis_lines = 0, 0, 0
        i = 0
        while i < n:
            end = _next(line, at, i, n, no)
            begin = _next(visible, at, i, end, no)
            i = end + 1
            if begin == end:
                continue
            last = _last(visible, at, begin, end)
            cp = _decode(data, base + begin, base + end)[0]
            lines += 1
            for x in bullets:
                bullet_lines += cp == x
            ellipsis_lines += _tail(data, base + begin, base + last)
        o = out[row]
        o[0], o[1], o[2], o[3], o[4] = words, singles, word_chars, words - bare, symbols
        o[5], o[6], o[7], o[8], o[9] = hashes, ellipses, letters + singles, latin, lines
        o[10], o[11] = bullet_lines, ellipsis_lines
        o[12] = _stops(
            data, base, n, at, planes, stop_keys, stop_lists, stamp, np.int64(row + 1), hits
        )
        o[13] = marks - singles
