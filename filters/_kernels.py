# mypy: ignore-errors
"""Kernels that count and cut: Gopher quality, C4, and what the language stage asks for.

Words. A word is a run of letters, numbers and marks. An apostrophe between two letters and a full
stop or comma between two digits stay inside (a light form of Unicode's UAX #29). Scripts written
without spaces (Han, kana, Thai, Lao, Khmer, Myanmar) count each character as one word, with its
marks. Characters are code points; a byte that is not UTF-8 counts as one U+FFFD.

A word's key is its bytes when it has at most 8 of them, else a 64-bit mix of them: words of one key
are taken for equal (two words longer than 8 bytes are confused once in 2^64).

Lines end with U+000A. What finds words stands here and in `_kernels_repeats.py` word for word (a
test compares them): Numba's cache does not see edits in another file.
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
DOTS = 0x2026  # the ellipsis character
ENOUGH = 4  # stop words; to look up every word took a fifth of the kernel's time


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


@njit(cache=True, nogil=True)
def quality(data, offsets, table, stop_keys, stop_lists, bullets, out):
    """Gopher's counts, out int32[rows, 14]; columns in `gopher_quality.SCORES`."""
    mask = len(stop_keys) - 1
    stamp = np.zeros(len(stop_keys), np.int64)
    hits = np.zeros(64, np.int32)
    for row in range(len(offsets) - 1):
        i, end = offsets[row], offsets[row + 1]
        words, unspaced, word_chars, alpha, symbols = 0, 0, 0, 0, 0
        hashes, ellipses, letters, latin, marks = 0, 0, 0, 0, 0
        lines, bullet_lines, ellipsis_lines = 0, 0, 0
        hits[:] = 0
        best = 0  # most stop words of one list; looked for until there are enough
        blank, bullet = True, False  # of this line
        chunk, wordless = False, True  # of this run of visible characters
        dots, tail = 0, False  # full stops in a row; does the line end with an ellipsis so far
        while i < end:
            b = data[i]
            cp, size = (np.int64(b), 1) if b < 0x80 else _decode(data, i, end)
            c = table[cp]
            if c >= NUMBER:
                blank, chunk, wordless, tail, dots = False, True, False, False, 0
                if c == UNSPACED:
                    unspaced += 1
                    alpha += 1
                    letters += 1
                    i += size
                else:
                    at = i
                    i, n, a, r = _word(data, i, end, table)
                    words += 1
                    word_chars += n
                    alpha += a > 0
                    letters += a
                    latin += r
                    if best < ENOUGH and i - at <= 8:
                        fold = np.uint64(0x2020202020202020) >> np.uint64(64 - 8 * (i - at))
                        at = _slot(stop_keys, mask, _key(data, at, i) | fold)
                        if stop_keys[at] and stamp[at] <= row:
                            stamp[at] = row + 1
                            which, bit = stop_lists[at], 0
                            while which:
                                hits[bit] += which & np.uint64(1)
                                best = max(best, np.int64(hits[bit]))
                                which >>= np.uint64(1)
                                bit += 1
                    if i < end and data[i] == 0x20:  # the usual case
                        chunk, wordless = False, True
                        i += 1
                continue
            i += size
            if c == SPACE:
                dots = 0
                if chunk:
                    symbols += wordless
                    chunk, wordless = False, True
                if cp == 0x0A:
                    if not blank:
                        lines += 1
                        bullet_lines += bullet
                        ellipsis_lines += tail
                    blank, bullet, tail = True, False, False
                continue
            if blank:
                blank = False
                for x in bullets:
                    bullet |= cp == x
            chunk = True
            marks += 1
            if cp == 0x2E:
                dots += 1
                if dots % 3 == 0:
                    ellipses += 1
                tail = dots >= 3
            else:
                dots = 0
                tail = cp == DOTS
                ellipses += cp == DOTS
                hashes += cp == 0x23
        if chunk:
            symbols += wordless
        if not blank:
            lines += 1
            bullet_lines += bullet
            ellipsis_lines += tail
        o = out[row]
        o[0], o[1], o[2], o[3], o[4] = words + unspaced, unspaced, word_chars, alpha, symbols
        o[5], o[6], o[7], o[8], o[9] = hashes, ellipses, letters, latin, lines
        o[10], o[11], o[12], o[13] = bullet_lines, ellipsis_lines, best, marks


@njit(cache=True, nogil=True)
def count_either(data, one, other):
    """How often two byte values occur together."""
    n = 0
    for b in data:
        n += (b == one) | (b == other)
    return n


@njit(cache=True, nogil=True)
def _citation(data, i, end, forms, form_ends):
    """Length of `[1]`, `[]` or one of the lower-case `forms` at the bracket `i`; 0 if none."""
    at = i + 1
    while at < end and 0x30 <= data[at] <= 0x39:
        at += 1
    if at < end and data[at] == 0x5D:
        return at + 1 - i
    start = 0
    for stop in form_ends:
        n = stop - start
        if i + n <= end:
            same = True
            for t in range(n):
                same &= data[i + t] == forms[start + t]
            if same:
                return n
        start = stop
    return 0


@njit(cache=True, nogil=True)
def _phrases(data, start, end, first, second, text, ends, kinds, anchors):
    """Kinds (bits) of the ASCII phrases in data[start:end], without regard to case.

    Bit `p % 8` of first[b] and second[b] says that phrase p has b at its rarest pair of bytes,
    `anchors[p]` from its beginning: two loads a byte, and hardly a phrase is compared in vain.
    """
    found = 0
    for i in range(start, end - 1):
        maybe = first[data[i]] & second[data[i + 1]]
        if maybe:
            at = 0
            for p in range(len(ends)):
                n, begin = ends[p] - at, i - anchors[p]
                if maybe >> np.uint8(p & 7) & np.uint8(1) and begin >= start and begin + n <= end:
                    same = True
                    for t in range(n):
                        b = data[begin + t]
                        same &= text[at + t] == (b | 0x20 if 0x41 <= b <= 0x5A else b)
                    if same:
                        found |= kinds[p]
                at = ends[p]
    return found


@njit(cache=True, nogil=True)
def c4(data, offsets, table, limits, phrases, forms, edits, out):
    """C4's line rules as edits and its page rules as counts, out int32[rows, 5] (`c4.SCORES`).

    `limits`: longest word (code points), fewest words, is terminal punctuation asked for;
    `phrases`: the arguments of `_phrases`; `forms`: those of `_citation`. `edits`: rows, starts,
    lengths, reasons (1 citation, 2 long word, 3 no terminal, 4 few words, 5 script, 6 policy) less
    1, with room for every `[` and line. Returns how many edits there are.
    """
    max_word, min_words, terminal, citations = limits
    first, second, text, ends, kinds, anchors = phrases
    form_text, form_ends = forms
    e_rows, e_starts, e_lengths, e_reasons = edits
    edit = 0
    for row in range(len(offsets) - 1):
        base, end = offsets[row], offsets[row + 1]
        i = base
        sentences, lorem, curly, kept, cut = 0, 0, 0, 0, 0
        blank_before, cutting = True, False
        while i < end:
            start, edit_before = i, edit
            words, chunk, longest, brackets, breaks = 0, 0, 0, 0, 0
            visible, ended = False, False
            dots, tail, full, gap = 0, False, 0, False  # full: 1 a full stop, 2 another, 3 CJK
            while i < end:
                b = data[i]
                cp, size = (np.int64(b), 1) if b < 0x80 else _decode(data, i, end)
                c = table[cp]
                if c == SPACE:
                    i += size
                    if cp == 0x0A:
                        break
                    gap, chunk, dots = True, 0, 0
                    continue
                visible = True
                if c >= NUMBER:
                    if full:
                        stops = full == 3 or gap
                        breaks += stops and not (full == 1 and 0x61 <= cp <= 0x7A)
                    words += 1
                    ended, tail, dots, full, gap = False, False, 0, 0, False
                    if c == UNSPACED:
                        chunk = 0
                        i += size
                    else:
                        i, n, _, _ = _word(data, i, end, table)
                        chunk += n
                        longest = max(longest, chunk)
                        if i < end and data[i] == 0x20:  # the usual case
                            gap, chunk = True, 0
                            i += 1
                    continue
                if citations and cp == 0x5B:
                    n = _citation(data, i, end, form_text, form_ends)
                    if n:
                        e_rows[edit], e_starts[edit] = row, i - base
                        e_lengths[edit], e_reasons[edit] = n, 0
                        edit += 1
                        i += n
                        continue
                i += size
                chunk += 1
                longest = max(longest, chunk)
                if c == TERMINAL:
                    ended = True
                    full, gap = (1 if cp == 0x2E else 3 if cp >= 0x3000 else 2), False
                elif c == QUOTE:
                    ended = True
                elif c != CLOSER:
                    ended = False
                if cp == 0x2E:
                    dots += 1
                    tail = dots >= 3
                else:
                    dots, tail = 0, False
                    brackets += cp == 0x7B
            if not visible:
                if cutting:
                    e_lengths[edit - 1] = i - base - e_starts[edit - 1]
                else:
                    blank_before = True
                continue
            reason, found = 0, 0
            if longest > max_word:
                reason = 1
            elif terminal and (tail or not ended):
                reason = 2
            elif words < min_words:
                reason = 3
            else:
                found = _phrases(data, start, i, first, second, text, ends, kinds, anchors)
                reason = 4 if found & 1 else 5 if found & 2 else 0
            cutting = reason > 0 and blank_before
            if reason:
                edit = edit_before
                e_rows[edit], e_starts[edit] = row, start - base
                e_lengths[edit], e_reasons[edit] = i - start, reason
                edit += 1
                cut += 1
            else:
                blank_before = False
                kept += 1
                lorem += (found & 4) >> 2
                curly += brackets
                sentences += (words > 0) + breaks
        o = out[row]
        o[0], o[1], o[2], o[3], o[4] = sentences, lorem, curly, kept, cut
    return edit


@njit(cache=True, nogil=True)
def few_letters(data, offsets, table, enough, out):
    """Which texts have fewer than `enough` letters, out bool[rows]; stops at the last needed."""
    for row in range(len(offsets) - 1):
        i, end = offsets[row], offsets[row + 1]
        n = 0
        while i < end and n < enough:
            cp, size = _decode(data, i, end)
            n += table[cp] >= LETTER
            i += size
        out[row] = n < enough


@njit(cache=True, nogil=True)
def sample(data, offsets, samples, size, out, ends):
    """Copy `samples` pieces of `size` bytes of each text into `out`, joined by spaces.

    Pieces are cut inwards to whole characters; texts up to samples * size bytes are copied whole.
    `ends` int64[rows * samples + 1] become the ends of the pieces, spaces before them included.
    """
    write = np.int64(0)
    for row in range(len(offsets) - 1):
        base, length = offsets[row], offsets[row + 1] - offsets[row]
        pieces = 1 if length <= samples * size else samples
        for k in range(pieces):
            start, stop = np.int64(0), length
            if length > samples * size:
                start = k * (length - size) // max(samples - 1, 1)
                stop = start + size
                while start < stop and data[base + start] & 0xC0 == 0x80:
                    start += 1
                while stop > start and stop < length and data[base + stop] & 0xC0 == 0x80:
                    stop -= 1
            if k:
                out[write] = 0x20
                write += 1
            out[write : write + stop - start] = data[base + start : base + stop]
            write += stop - start
            ends[row * samples + k + 1] = write
        for k in range(pieces, samples):
            ends[row * samples + k + 1] = write
