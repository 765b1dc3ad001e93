# mypy: ignore-errors
"""Kernels of what stands in a text more than once: Gopher repetition, FineWeb.

Words and their keys are those of `_kernels.py`. n-grams have no chance of confusion beyond that of
their pairs of words: the id of an (n+1)-gram is looked up by the exact pair of the ids of its two
n-grams, and only where both recur, so the work shrinks with n.

Lines are the same when their words and other visible characters are, spaces aside. Scratch is sized
by the longest document and cleared by the document's own size.
"""

# ruff: noqa: ARG001, PLR1714, SIM102, SIM109 - intrinsics have fixed arguments; Numba compiles a chain
# of comparisons to less than a tuple or a set

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

OTHER, SPACE, TERMINAL, QUOTE, CLOSER, MARK, NUMBER, LETTER, LATIN, UNSPACED = range(10)


@njit(cache=True, nogil=True)
def _decode(data, i, end):
    """Code point at `i` and its size; what is not UTF-8 is U+FFFD, one byte long."""
    b = np.int64(data[i])
    if b < 0x80:
        return b, 1
    if 0xC2 <= b < 0xE0:
        more, cp = 1, b & 0x1F
    elif 0xE0 <= b < 0xF0:
        more, cp = 2, b & 0x0F
    elif 0xF0 <= b < 0xF5:
        more, cp = 3, b & 0x07
    else:
        return 0xFFFD, 1
    if i + more >= end:
        return 0xFFFD, 1
    for t in range(1, more + 1):
        c = np.int64(data[i + t])
        if c & 0xC0 != 0x80:
            return 0xFFFD, 1
        cp = (cp << 6) | (c & 0x3F)
    if cp > 0x10FFFF:
        return 0xFFFD, 1
    return cp, more + 1


@njit(cache=True, nogil=True, forceinline=True)
def _mix(h):
    """Finaliser of splitmix64: every bit of the key bears on every bit of the slot."""
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@njit(cache=True, nogil=True, forceinline=True)
def _fold(h, key):
    """Add a token to the hash of a line or paragraph; order counts."""
    h = (h ^ np.uint64(key)) * np.uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> np.uint64(29))


@njit(cache=True, nogil=True)
def _joins(data, i, size, cp, last, end, table):
    """Whether the character at `i` stays inside a word whose last class is `last`."""
    if i + size >= end:
        return False
    if cp == 0x27 or cp == 0x2019:
        if last != LETTER and last != LATIN:
            return False
        c = table[_decode(data, i + size, end)[0]]
        return c == LETTER or c == LATIN
    if cp == 0x2E or cp == 0x2C:
        return last == NUMBER and table[_decode(data, i + size, end)[0]] == NUMBER
    return False


@intrinsic
def _load8(typingctx, data, at):
    """Eight bytes at `at` as a little-endian uint64; the caller proves that they are there."""

    def generate(context, builder, signature, args):
        array = make_array(signature.args[0])(context, builder, args[0])
        at = context.cast(builder, args[1], signature.args[1], types.intp)
        word = ir.IntType(64)
        where = builder.bitcast(builder.gep(array.data, [at]), word.as_pointer())
        loaded = builder.load(where)
        loaded.align = 1
        return loaded

    return types.uint64(data, at), generate


@intrinsic
def _trailing_zeros(typingctx, value):
    """Zero bits below the lowest one; 64 for 0."""

    def generate(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


@njit(cache=True, nogil=True, forceinline=True)
def _letters(x):
    """How many of the low bytes of `x`, in a row, are ASCII letters: 0 to 8, without a branch."""
    y = (x | np.uint64(0x2020202020202020)) & np.uint64(0x7F7F7F7F7F7F7F7F)
    from_a = y + np.uint64(0x1F1F1F1F1F1F1F1F)  # the high bit says: at least "a"
    past_z = y + np.uint64(0x0505050505050505)  # the high bit says: more than "z"
    no = (~from_a | past_z | x) & np.uint64(0x8080808080808080)
    return np.int64(_trailing_zeros(no) >> np.uint64(3))


@njit(cache=True, nogil=True, forceinline=True)
def _word(data, i, end, table):
    """Scan the spaced word at `i`: its end, code points, letters, Latin letters.

    Sixteen ASCII letters a step, and as few branches as can be, for the lengths of words cannot be
    foretold: 3 times as fast as one by one.
    """
    chars, letters, latin, last = 0, 0, 0, 0
    room = len(data) - 16
    while True:
        if i <= room:
            n = _letters(_load8(data, i))
            n += _letters(_load8(data, i + 8)) & -(n >> 3)  # only after eight
            n = min(n, end - i)
            if n:
                i += n
                chars += n
                letters += n
                latin += n
                last = LATIN
                if n == 16:
                    continue
                after = data[i]  # the usual ends at once: ASCII that is not "'" or a digit
                if (after < 0x80) & (after != 0x27) & ((after < 0x30) | (after > 0x39)):
                    break
        if i >= end:
            break
        b = data[i]
        cp, size = (np.int64(b), 1) if b < 0x80 else _decode(data, i, end)
        c = table[cp]
        if c == LETTER or c == LATIN:
            letters += 1
            latin += c == LATIN
        elif c != NUMBER and (c != MARK or last == 0):
            if not _joins(data, i, size, cp, last, end, table):
                break
        i += size
        chars += 1
        last = c
    return i, chars, letters, latin


@njit(cache=True, nogil=True, forceinline=True)
def _key(data, start, end):
    """The key of the word in data[start:end]."""
    if end - start <= 8:
        if start + 8 <= len(data):
            return _load8(data, start) & (
                np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - 8 * (end - start))
            )
        k = np.uint64(0)
        for t in range(end - 1, start - 1, -1):
            k = (k << np.uint64(8)) | np.uint64(data[t])
        return k
    h = np.uint64(end - start)
    at = start
    while at + 8 <= end:
        h = _fold(h, _load8(data, at))
        at += 8
    k = np.uint64(0)
    if at + 8 <= len(data):
        k = _load8(data, at) & ((np.uint64(1) << np.uint64(8 * (end - at))) - np.uint64(1))
    else:
        for t in range(end - 1, at - 1, -1):
            k = (k << np.uint64(8)) | np.uint64(data[t])
    return _mix(_fold(h, k)) | np.uint64(1)


@njit(cache=True, nogil=True, forceinline=True)
def _slot(keys, mask, key):
    """Slot of `key` in an open table of keys where 0 is free (no key is 0)."""
    at = np.int64(_mix(key) & np.uint64(mask))
    while (keys[at] != 0) & (keys[at] != key):
        at = (at + 1) & mask
    return at


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


@njit(cache=True, nogil=True, forceinline=True)
def _line(data, i, end, table, keys, lens, w):
    """Scan one line: the next line's start, its words' keys and lengths into `keys`, `lens` at `w`.

    Returns next, code points from the first to the last visible one, code points in all (without
    the line feed), hash, words after it, words of unspaced scripts, and whether it ends in terminal
    punctuation, closing quotes and brackets aside.
    """
    h = np.uint64(0x243F6A8885A308D3)  # not 0: NULs count too
    chars, visible, first, unspaced = 0, 0, -1, 0
    ended = False
    while i < end:
        b = data[i]
        cp, size = (np.int64(b), 1) if b < 0x80 else _decode(data, i, end)
        c = table[cp]
        if c == SPACE:
            i += size
            if cp == 0x0A:
                break
            chars += 1
            continue
        if first < 0:
            first = chars
        if c >= NUMBER and c != UNSPACED:
            at = i
            i, n, _, _ = _word(data, i, end, table)
            key = _key(data, at, i)
            keys[w], lens[w] = key, n
            w += 1
            chars += n
            ended = False
        else:
            key = _key(data, i, i + size)
            if c == UNSPACED:
                keys[w], lens[w] = key, 1
                w += 1
                unspaced += 1
                ended = False
            elif c == TERMINAL:
                ended = True
            elif c != QUOTE and c != CLOSER:
                ended = False
            i += size
            chars += 1
        h = _fold(h, key)
        visible = chars
    return i, visible - max(first, 0), chars, h, w, unspaced, ended


@njit(cache=True, nogil=True)
def _longest(offsets):
    n = 0
    for row in range(len(offsets) - 1):
        n = max(n, offsets[row + 1] - offsets[row])
    return n


@njit(cache=True, nogil=True)
def _breaks(data, start, end):
    """Lines of a text at most: line feeds and one."""
    n = 1
    for i in range(start, end):
        n += data[i] == 0x0A
    return n


@njit(cache=True, nogil=True)
def fineweb(data, offsets, table, short, out):
    """FineWeb's counts, out int32[rows, 7]; columns in `fineweb.SCORES`. `short` in code points."""
    longest = _longest(offsets)
    keys, lens = np.empty(longest, np.uint64), np.empty(longest, np.int32)
    seen = np.empty(_room(longest), np.uint64)
    for row in range(len(offsets) - 1):
        i, end = offsets[row], offsets[row + 1]
        room = _room(_breaks(data, i, end))
        seen[:room] = 0
        lines, ended_lines, short_lines, dup_chars, all_chars, words, breaks = 0, 0, 0, 0, 0, 0, 0
        while i < end:
            before = i
            i, visible, chars, h, w, _, ended = _line(data, i, end, table, keys, lens, 0)
            words += w
            all_chars += chars
            if visible == 0:
                continue
            lines += 1
            breaks += data[i - 1] == 0x0A and i > before
            ended_lines += ended
            short_lines += visible <= short
            h |= np.uint64(1)
            at = _slot(seen, room - 1, h)
            if seen[at] == h:
                dup_chars += visible
            seen[at] = h
        o = out[row]
        o[0], o[1], o[2], o[3] = lines, ended_lines, short_lines, dup_chars
        o[4], o[5], o[6] = all_chars, words, breaks


@njit(cache=True, nogil=True)
def _repeats(keys, lens, w, stretch, joined, scratch, out):
    """Top 2- to 4-grams and repeated 5- to 10-grams (times `stretch`) of `w` words, out[0:9].

    A repeated (n+1)-gram begins and goes on with a repeated n-gram, so each level looks only at
    places where both are. Ids of a level are dense and in order of first occurrence.
    """
    tab, ids, places, counts, firsts, chars = scratch
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
        room = _room(2 * live)  # a quarter full: a second look costs a mispredicted branch
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
def repetition(data, offsets, table, out):
    """Gopher's repetition counts, out int32[rows, 18]; columns in `gopher_repetition.SCORES`."""
    longest = _longest(offsets)
    keys, lens = np.empty(longest + 1, np.uint64), np.empty(longest + 1, np.int32)
    room = _room(longest)
    tab = np.empty(4 * room, np.uint64)
    scratch = (
        tab,
        np.empty(longest + 1, np.int32),
        np.empty(longest + 1, np.int32),
        np.empty(longest + 1, np.int32),
        np.empty(longest + 1, np.int32),
        np.empty(longest + 2, np.int32),
    )
    seen = np.empty(room, np.uint64)
    for row in range(len(offsets) - 1):
        i, end = offsets[row], offsets[row + 1]
        room = _room(_breaks(data, i, end))
        tab[:room] = 0  # lines
        seen[:room] = 0  # paragraphs
        w, unspaced, all_chars = 0, 0, 0
        lines, dup_lines, dup_line_chars, parts, dup_parts, dup_part_chars = 0, 0, 0, 0, 0, 0
        part, part_chars = np.uint64(0), -1
        while i < end or part_chars >= 0:
            visible = 0
            if i < end:
                i, visible, chars, h, w, u, _ = _line(data, i, end, table, keys, lens, w)
                all_chars += chars + (data[i - 1] == 0x0A)
                unspaced += u
                if visible:
                    h |= np.uint64(1)
                    lines += 1
                    at = _slot(tab, room - 1, h)
                    if tab[at] == h:
                        dup_lines += 1
                        dup_line_chars += visible
                    tab[at] = h
                    part = _fold(part, h)
                    part_chars += visible + 1
            if (visible == 0 or i >= end) and part_chars >= 0:
                part |= np.uint64(1)
                parts += 1
                at = _slot(seen, room - 1, part)
                if seen[at] == part:
                    dup_parts += 1
                    dup_part_chars += part_chars
                seen[at] = part
                part, part_chars = np.uint64(0), -1
        o = out[row]
        o[0], o[1], o[2], o[3], o[4] = all_chars, w, unspaced, lines, dup_lines
        o[5], o[6], o[7], o[8] = dup_line_chars, parts, dup_parts, dup_part_chars
        dense = 2 * unspaced > w
        _repeats(keys, lens, w, 2 if dense else 1, 0 if dense else 1, scratch, o[9:])
