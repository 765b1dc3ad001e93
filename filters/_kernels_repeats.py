# mypy: ignore-errors
"""Kernels of what stands in a text more than once: Gopher repetition, FineWeb.

They read the masks of `_scan`. A word's key is its bytes when it has at most 8 of them, else a
64-bit mix of them: words of one key are taken for equal (two words longer than 8 bytes are confused
once in 2^64). n-grams have no chance of confusion beyond that of their pairs of words: an n-gram is
known by the place where it first stands, an (n+1)-gram by the two of its two n-grams, and is looked
at only where both recur, so the work shrinks with n.

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
    _ones,
    _slot,
    _trailing_zeros,
)

COMMON = "60450845"  # version of _kernels_common

FOLD = np.uint64(0x9E3779B97F4A7C15)
MANY = 1 << 20  # n-grams; a table for more takes memory rather than time


@njit(cache=True, nogil=True, forceinline=True)
def _fold(h, key):
    """Add a token to the hash of a line or paragraph; order counts."""
    h = (h ^ np.uint64(key)) * FOLD
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
def _long(first, last, n):
    """Key of a word of 9 to 16 bytes by its first and last eight, never 0."""
    return _fold(_fold(np.uint64(n), first), last) | np.uint64(1)


@njit(cache=True, nogil=True)
def _key(data, start, end):
    """The key of the word in data[start:end]: its bytes when they are at most 8, never 0."""
    n = end - start
    if n > 16:
        return _bytes(data, start, end)
    if n > 8:
        return _long(_load8(data, start), _load8(data, end - 8), n)
    k = np.uint64(0)
    for t in range(end - 1, start - 1, -1):
        k = (k << np.uint64(8)) | np.uint64(data[t])
    return k


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


@njit(cache=True, nogil=True, forceinline=True)
def _high(room):
    """Shift that leaves of a hash its high bits: a slot in a table of `room`, a power of two."""
    return np.uint64(64) - _trailing_zeros(np.uint64(room))


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
def _singles(data, base, n, at, planes, keys, chars):
    """As `_words`, of a text with characters of scripts without spaces; how many of these too."""
    word, start, unspaced, more = planes[0], planes[1], planes[2], planes[8]
    w, singles, total = 0, 0, 0
    for k in range(n // 64 + 1):
        m = start[at + k]
        while m:
            b = _trailing_zeros(m)
            m &= m - np.uint64(1)
            i = 64 * k + np.int64(b)
            if unspaced[at + k] >> b & np.uint64(1):
                end = _next(more, at, i + 1, n, ALL)
                total += 1
                singles += 1
            else:
                end = min(_next(word, at, i, n, ALL), _next(start, at, i + 1, n, np.uint64(0)))
                total += end - i - _count(more, at, i, end)
            keys[w] = _key(data, base + i, base + end)
            w += 1
            chars[w] = total
    return w, singles


@njit(cache=True, nogil=True)
def _words(data, base, n, at, planes, keys, chars, begins, ends, odd):
    """Keys of the words of a text, and code points of all before each; how many words there are.

    And how many of them are characters of scripts without spaces.
    """
    word, start, unspaced, more = planes[0], planes[1], planes[2], planes[8]
    blocks = n // 64 + 1
    one = np.uint64(1)
    some = np.uint64(0)
    for k in range(blocks):
        some |= unspaced[at + k]
    chars[0] = 0
    if some or len(data) < 8:
        return _singles(data, base, n, at, planes, keys, chars)
    w, ended, total, before = np.uint64(0), np.uint64(0), 0, np.uint64(0)
    for k in range(blocks):
        m, inside = start[at + k], word[at + k]
        stops = (inside << one | before) & (~inside | m)
        before = inside >> np.uint64(63)
        i = base + 64 * k
        left, after = w + _ones(m), ended + _ones(stops)
        while True:  # without a branch for each word: eight at once
            for t in range(8):
                begins[w + np.uint64(t)] = i + np.int64(_trailing_zeros(m))
                m &= m - one
            w += np.uint64(8)
            if w >= left:
                break
        w = left
        first = inside & ~more[at + k]
        while True:
            for t in range(8):
                low = (stops & (np.uint64(0) - stops)) - one
                ends[ended + np.uint64(t)] = i + np.int64(_trailing_zeros(stops))
                chars[ended + np.uint64(t + 1)] = total + np.int64(_ones(first & low))
                stops &= stops - one
            ended += np.uint64(8)
            if ended >= after:
                break
        ended = after
        total += np.int64(_ones(first))
    size = len(data)
    rare = np.uint64(0)
    for t in range(w):
        begin, end = begins[t], ends[t]
        n = end - begin
        start8, end8 = _load8(data, min(begin, size - 8)), _load8(data, max(end, 8) - 8)
        short = start8 & (ALL >> np.uint64(64 - 8 * min(n, 8)))
        keys[t] = short if n <= 8 else _long(start8, end8, n)
        odd[rare] = t
        rare += np.uint64((n > 16) | (begin + 8 > size) | (end < 8))
    for q in range(rare):  # a branch above would be foretold wrongly for each of them
        t = odd[q]
        keys[t] = _key(data, begins[t], ends[t])
    return np.int64(w), 0


@njit(cache=True, nogil=True)
def _bigrams(keys, w, first, places, hints):
    """Pairs of `w` words that may recur: keys and places to the front of theirs; how many.

    What falls alone into a place of a small table occurs once.
    """
    live = max(w - 1, 0)
    first[: live + 1] = -1
    room = _room(2 * live)
    hints[:room] = 0
    shift = _high(room)
    for p in range(live):
        key = _pair(keys[p], keys[p + 1])
        keys[p] = key
        slot = key >> shift
        hints[slot] = (hints[slot] << np.uint8(1)) | np.uint8(1)
    kept = np.uint64(0)
    for p in range(live):  # written without a branch: it could not be foretold
        key = keys[p]
        keys[kept], places[kept] = key, p
        kept += np.uint64(hints[key >> shift] > 1)
    return np.int64(kept)


@njit(cache=True, nogil=True)
def _repeats(keys, chars, w, stretch, joined, scratch, out):
    """Top 2- to 4-grams and repeated 5- to 10-grams (times `stretch`) of `w` words, out[0:9].

    A repeated (n+1)-gram begins and goes on with a repeated n-gram, so each level looks only at
    places where both are. An n-gram is known by the place where it first stands (`first`). `chars`
    are those before each word.
    """
    tab, first, places, counts, follows, odd, hints = scratch
    out[:9] = 0
    live = _bigrams(keys, w, first, places, hints)
    asked = live
    for n in range(2, 10 * stretch + 1):
        if n > 2:
            # Most go on as the first of their beginning does; the odd ones have to be looked up.
            # Written without branches, as is all below: they could not be foretold.
            kept, asked = 0, 0
            for q in range(live):
                p = places[q]
                x, after = first[p], first[p + 1]
                follows[p] = after
                there, same = after >= 0, follows[x] == after
                places[kept], odd[asked] = p, p
                kept += there
                asked += there & (not same)
                first[p] = x if there else -1
                counts[x] = (0 if x == p else counts[x]) + (there & same)
            live = kept
            for q in range(asked):
                p = odd[q]
                keys[q] = np.uint64(first[p]) << np.uint64(32) | np.uint64(follows[p])
        # a quarter full: a second look costs a mispredicted branch; half of what is very long
        room = _room(2 * asked if asked < MANY else asked)
        tab[:room] = 0
        mask, shift = room - 1, _high(room)
        for q in range(asked):
            p = places[q] if n == 2 else odd[q]
            key = keys[q]
            at = np.int64((key * FOLD) >> shift)
            t = tab[at]
            while (t != 0) & (keys[t - 1] != key):
                at = (at + 1) & mask
                t = tab[at]
            new = t == 0
            tab[at] = q + 1 if new else t
            x = p if new else (places[t - 1] if n == 2 else odd[t - 1])
            first[p] = x
            counts[x] = (0 if new else counts[x]) + 1
        m = n // stretch if n % stretch == 0 else 0
        kept, free, repeated, most, best = 0, 0, 0, 1, 0
        for q in range(live):
            p = places[q]
            x = first[p]
            times = counts[x]
            places[kept] = p
            kept += times != 1
            first[p] = x if times != 1 else -1
            if m >= 5:
                if times != 1 and p >= free:
                    if times < 0:
                        repeated += chars[p + n] - chars[p]
                        free = p + n
                    counts[x] = -1  # seen
            elif times > most:
                most, best = times, x
        live = kept
        if 2 <= m <= 4 and most > 1:
            size = chars[best + n] - chars[best] + joined * (n - 1)
            out[m - 2] = min(np.int64(most) * size, 0x7FFFFFFF)
        if live == 0:
            return
        if m >= 5:
            out[m - 2] = repeated


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
    # eight words are written at once
    keys, chars_before = np.empty(most + 9, np.uint64), np.empty(most + 10, np.int32)
    room = _room(most)
    tab = np.empty(2 * room if most < MANY else room, np.int32)
    odd = np.empty(most + 1, np.int32)
    scratch = (
        tab,
        np.empty(most + 1, np.int32),
        np.empty(most + 1, np.int32),
        np.empty(most + 1, np.int32),
        np.empty(most + 1, np.int32),
        odd,
        np.empty(2 * room, np.uint8),
    )
    begins, ends = np.empty(most + 9, np.int64), np.empty(most + 9, np.int64)
    lines_seen = np.empty(2 * room, np.uint64)
    seen = np.empty(2 * room, np.uint64)
    for row in range(len(blocks)):
        base, n, at = offsets[row], offsets[row + 1] - offsets[row], blocks[row]
        room = _room(_count(line, at, 0, n) + 1)
        lines_seen[:room] = 0
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
                    slot = _slot(lines_seen, room - 1, h)
                    if lines_seen[slot] == h:
                        dup_lines += 1
                        dup_line_chars += chars
                    lines_seen[slot] = h
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
        w, unspaced = _words(data, base, n, at, planes, keys, chars_before, begins, ends, odd)
        o = out[row]
        o[0], o[1], o[2] = n - _count(more, at, 0, n), w, unspaced
        o[3], o[4], o[5] = lines, dup_lines, dup_line_chars
        o[6], o[7], o[8] = parts, dup_parts, dup_part_chars
        dense = 2 * unspaced > w
        _repeats(keys, chars_before, w, 2 if dense else 1, 0 if dense else 1, scratch, o[9:])
        if whole:  # where none recurs the top n-gram is the first
            for m in range(2, 5):
                if o[7 + m] == 0 and w >= m:
                    o[7 + m] = chars_before[m] + m - 1
