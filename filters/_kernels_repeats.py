# mypy: ignore-errors
"""Kernels of what stands in a text more than once: Gopher repetition, FineWeb.

They read the masks of `_scan`. A word's key is its bytes when it has at most 8 of them, else a
64-bit mix of them: words of one key are taken for equal (two words longer than 8 bytes are confused
once in 2^64). n-grams have no chance of confusion beyond that of their pairs of words: the id of an
(n+1)-gram is looked up by the exact pair of the ids of its two n-grams, and only where both recur,
so the work shrinks with n.

Lines are the same when their bytes are, from the first visible one to the last. Scratch is sized by
the longest document and cleared by the document's own size.
"""

# ruff: noqa: PLR1714 - Numba compiles a chain of comparisons to less than a set

from __future__ import annotations

import numpy as np
from numba import njit

from ._kernels_common import (
    ALL,
    CLOSER,
    QUOTE,
    SPACE,
    TERMINAL,
    _count,
    _decode,
    _last,
    _load8,
    _mix,
    _next,
    _slot,
    _trailing_zeros,
)

COMMON = "d9947174"  # version of _kernels_common

MANY = 1 << 20  # n-grams; a table for more takes memory rather than time


@njit(cache=True, nogil=True, forceinline=True)
def _fold(h, key):
    """Add a token to the hash of a line or paragraph; order counts."""
    h = (h ^ np.uint64(key)) * np.uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> np.uint64(29))


@njit(cache=True, nogil=True, forceinline=True)
def _bytes(data, start, end):
    """Hash of data[start:end], never 0."""
    h = np.uint64(end - start) + np.uint64(0x243F6A8885A308D3)
    at = start
    while at + 8 <= end:
        h = _fold(h, _load8(data, at))
        at += 8
    k = np.uint64(0)
    if at < end:
        if at + 8 <= len(data):
            k = _load8(data, at) & (ALL >> np.uint64(64 - 8 * (end - at)))
        else:
            for t in range(end - 1, at - 1, -1):
                k = (k << np.uint64(8)) | np.uint64(data[t])
    return _mix(_fold(h, k)) | np.uint64(1)


@njit(cache=True, nogil=True, forceinline=True)
def _key(data, start, end):
    """The key of the word in data[start:end]: its bytes when they are at most 8, never 0.

    Up to 16 bytes without a branch, for the lengths of words cannot be foretold.
    """
    n = end - start
    if (n > 16) | (start + 8 > len(data)) | (end < 8):
        if n > 8:
            return _bytes(data, start, end)
        k = np.uint64(0)
        for t in range(end - 1, start - 1, -1):
            k = (k << np.uint64(8)) | np.uint64(data[t])
        return k
    first, last = _load8(data, start), _load8(data, end - 8)
    short = first & (ALL >> np.uint64(64 - 8 * min(n, 8)))
    long = _mix(_fold(_fold(np.uint64(n), first), last)) | np.uint64(1)
    return short if n <= 8 else long


@njit(cache=True, nogil=True)
def _ended(data, base, at, i, more, table):
    """Whether a line ends in terminal punctuation: closing quotes, brackets and spaces aside.

    `i` is the last visible byte of the line.
    """
    while i >= 0:
        end = i + 1
        while more[at + (i >> 6)] >> np.uint64(i & 63) & np.uint64(1):
            i -= 1
        cp, _ = _decode(data, base + i, base + end)
        c = table[cp]
        if cp == 0x0A or (c != QUOTE and c != CLOSER and c != SPACE):
            return c == TERMINAL
        i -= 1
    return False


@njit(cache=True, nogil=True, forceinline=True)
def _pair(a, b):
    """Key of two words in a row, never 0."""
    return _fold(a * np.uint64(0xC2B2AE3D27D4EB4F), b) | np.uint64(1)


@njit(cache=True, nogil=True)
def _room(n):
    """Power of two at least twice `n`, so that an open table is at most half full."""
    size = 16
    while size < 2 * n:
        size *= 2
    return size


@njit(cache=True, nogil=True)
def fineweb(data, offsets, planes, blocks, table, short, out):
    """FineWeb's counts, out int32[rows, 7]; columns in `fineweb.SCORES`. `short` in code points."""
    start, visible, more, line = planes[1], planes[6], planes[8], planes[10]
    seen = np.empty(0, np.uint64)
    for row in range(len(blocks)):
        base, n, at = offsets[row], offsets[row + 1] - offsets[row], blocks[row]
        feeds = _count(line, at, 0, n)
        room = _room(feeds + 1)
        if room > len(seen):
            seen = np.empty(room, np.uint64)
        seen[:room] = 0
        lines, ended_lines, short_lines, dup_chars, breaks = 0, 0, 0, 0, 0
        i = 0
        while i < n:
            end = _next(line, at, i, n, np.uint64(0))
            first = _next(visible, at, i, end, np.uint64(0))
            i = end + 1
            if first == end:
                continue
            last = _last(visible, at, first, end)
            chars = last + 1 - first - _count(more, at, first, last + 1)
            lines += 1
            breaks += end < n
            ended_lines += _ended(data, base, at, last, more, table)
            short_lines += chars <= short
            h = _bytes(data, base + first, base + last + 1)
            slot = _slot(seen, room - 1, h)
            if seen[slot] == h:
                dup_chars += chars
            seen[slot] = h
        o = out[row]
        o[0], o[1], o[2], o[3] = lines, ended_lines, short_lines, dup_chars
        o[4] = n - _count(more, at, 0, n) - feeds
        o[5], o[6] = _count(start, at, 0, n), breaks


@njit(cache=True, nogil=True)
def _words(data, base, n, at, planes, keys, lens):
    """Keys and code points of the words of a text; how many, and how many of unspaced scripts."""
    word, start, unspaced, more = planes[0], planes[1], planes[2], planes[8]
    w, singles = 0, 0
    size = n // 64 + 1
    above = np.uint64(0)
    for k in range(size):
        above |= more[at + k]
    for k in range(size):
        m = start[at + k]
        after = at + min(k + 1, size - 1)
        ends, further = ~word[at + k] | m, ~word[after] | start[after]
        while m:
            b = _trailing_zeros(m)
            m &= m - np.uint64(1)
            i = 64 * k + np.int64(b)
            rest = ends >> b >> np.uint64(1) | further << (np.uint64(63) - b)
            end = i + 1 + np.int64(_trailing_zeros(rest))
            if rest == 0:
                end = min(_next(word, at, i, n, ALL), _next(start, at, i + 1, n, np.uint64(0)))
            chars = end - i
            if above:
                if unspaced[at + k] >> b & np.uint64(1):
                    end = _next(more, at, i + 1, n, ALL)
                    chars = 1
                    singles += 1
                else:
                    chars -= _count(more, at, i, end)
            keys[w], lens[w] = _key(data, base + i, base + end), chars
            w += 1
    return w, singles


@njit(cache=True, nogil=True)
def _repeats(keys, lens, w, stretch, joined, scratch, out):
    """Top 2- to 4-grams and repeated 5- to 10-grams (times `stretch`) of `w` words, out[0:9].

    A repeated (n+1)-gram begins and goes on with a repeated n-gram, so each level looks only at
    places where both are. Ids of a level are dense and in order of first occurrence.
    """
    tab, ids, places, counts, firsts, chars, hints, slots = scratch
    out[:9] = 0
    chars[0] = 0
    for p in range(w):
        chars[p + 1] = chars[p] + lens[p]
    live = max(w - 1, 0)
    for p in range(live):
        keys[p] = _pair(keys[p], keys[p + 1])
        places[p] = p
    ids[live] = -1
    for n in range(2, 10 * stretch + 1):
        if n > 2:  # written without branches, as is all below: they could not be foretold
            kept = 0
            for q in range(live):
                p = places[q]
                after = ids[p + 1]
                # 1 is added to the left id so that no key is 0
                keys[kept] = (np.uint64(ids[p] + 1) << np.uint64(32)) | np.uint64(after)
                places[kept] = p
                ids[p] = -1
                kept += after >= 0
            live = kept
        # what falls alone into a place of a small table occurs once, and needs no look-up
        room = _room(2 * live)
        hints[:room] = 0
        for q in range(live):
            slot = np.int64(_mix(keys[q]) >> np.uint64(32)) & (room - 1)
            slots[q] = slot
            hints[slot] = (hints[slot] << np.uint8(1)) | np.uint8(1)
        kept = 0
        for q in range(live):
            p = places[q]
            keys[kept], places[kept] = keys[q], p
            ids[p] = -1
            kept += hints[slots[q]] > 1
        live = kept
        # a quarter full: a second look costs a mispredicted branch; half of what is very long
        room = _room(2 * live if live < MANY else live)
        tab[: 2 * room] = 0
        m = 0
        for q in range(live):
            p = places[q]
            key = keys[q]
            at = 2 * np.int64(_mix(key) & np.uint64(room - 1))
            while (tab[at] != 0) & (tab[at] != key):
                at = (at + 2) & (2 * room - 1)
            new = tab[at] == 0
            x = m if new else np.int64(tab[at + 1])
            tab[at], tab[at + 1] = key, x
            counts[m], firsts[m] = (0 if new else counts[m]), p
            m += new
            ids[p] = x
            counts[x] += 1
        if n % stretch == 0 and 2 <= n // stretch <= 4:
            best = -1
            for x in range(m):
                if counts[x] > 1 and (best < 0 or counts[x] > counts[best]):
                    best = x
            if best >= 0:
                p = firsts[best]
                size = chars[p + n] - chars[p] + joined * (n - 1)
                out[n // stretch - 2] = min(np.int64(counts[best]) * size, 0x7FFFFFFF)
        kept = 0
        for q in range(live):
            p = places[q]
            more = counts[ids[p]] > 1
            places[kept] = p
            kept += more
            ids[p] = ids[p] if more else -1
        live = kept
        if live == 0:
            return
        if n % stretch == 0 and n // stretch >= 5:
            free, repeated = 0, 0
            for q in range(live):
                p = places[q]
                if p < free:
                    continue
                x = ids[p]
                if counts[x] < 0:
                    repeated += chars[p + n] - chars[p]
                    free = p + n
                else:
                    counts[x] = -1  # seen
            out[n // stretch - 2] = repeated


@njit(cache=True, nogil=True)
def repetition(data, offsets, planes, blocks, whole, out):
    """Gopher's repetition counts, out int32[rows, 18]; columns in `gopher_repetition.SCORES`.

    `whole`: lines are all of their bytes, and one of spaces is a line.
    """
    start, visible, more, line = planes[1], planes[6], planes[8], planes[10]
    most = 0
    for row in range(len(blocks)):
        n = offsets[row + 1] - offsets[row]
        most = max(most, _count(start, blocks[row], 0, n), _count(line, blocks[row], 0, n) // 2 + 1)
    keys, lens = np.empty(most + 1, np.uint64), np.empty(most + 1, np.int32)
    room = _room(most)
    tab = np.empty(4 * room if most < MANY else 2 * room, np.uint64)
    scratch = (
        tab,
        np.empty(most + 1, np.int32),
        np.empty(most + 1, np.int32),
        np.empty(most + 1, np.int32),
        np.empty(most + 1, np.int32),
        np.empty(most + 2, np.int32),
        np.empty(2 * room, np.uint8),
        np.empty(most + 1, np.int32),
    )
    seen = np.empty(2 * room, np.uint64)
    for row in range(len(blocks)):
        base, n, at = offsets[row], offsets[row + 1] - offsets[row], blocks[row]
        room = _room(_count(line, at, 0, n) + 1)
        tab[:room] = 0  # lines
        seen[:room] = 0  # paragraphs
        lines, dup_lines, dup_line_chars, parts, dup_parts, dup_part_chars = 0, 0, 0, 0, 0, 0
        part, part_chars = np.uint64(0), -1
        i = 0
        while i < n or part_chars >= 0:
            blank = True
            if i < n:
                end = _next(line, at, i, n, np.uint64(0))
                first = i if whole else _next(visible, at, i, end, np.uint64(0))
                i = end + 1
                blank = first == end
                if not blank:
                    last = end - 1 if whole else _last(visible, at, first, end)
                    chars = last + 1 - first - _count(more, at, first, last + 1)
                    h = _bytes(data, base + first, base + last + 1)
                    lines += 1
                    slot = _slot(tab, room - 1, h)
                    if tab[slot] == h:
                        dup_lines += 1
                        dup_line_chars += chars
                    tab[slot] = h
                    part = _fold(part, h)
                    part_chars += chars + 1
            if (blank or i >= n) and part_chars >= 0:
                part |= np.uint64(1)
                parts += 1
                slot = _slot(seen, room - 1, part)
                if seen[slot] == part:
                    dup_parts += 1
                    dup_part_chars += part_chars
                seen[slot] = part
                part, part_chars = np.uint64(0), -1
        w, unspaced = _words(data, base, n, at, planes, keys, lens)
        o = out[row]
        o[0], o[1], o[2] = n - _count(more, at, 0, n), w, unspaced
        o[3], o[4], o[5] = lines, dup_lines, dup_line_chars
        o[6], o[7], o[8] = parts, dup_parts, dup_part_chars
        dense = 2 * unspaced > w
        firsts = lens[:4].copy()
        _repeats(keys, lens, w, 2 if dense else 1, 0 if dense else 1, scratch, o[9:])
        if whole:  # where none recurs the top n-gram is the first
            for m in range(2, 5):
                if o[7 + m] == 0 and w >= m:
                    o[7 + m] = firsts[:m].sum() + m - 1
