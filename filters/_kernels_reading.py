# mypy: ignore-errors
"""Kernel of `_reading`: text to the plain words that a head reads, in one pass.

A row's tokens are counted in an open table of their hashes (64 bits, 0 is free), at most half full,
and so are its windows of tokens, with their digits; the slots that a row took are made free after.
"""

# ruff: noqa: ARG001 - intrinsics have fixed arguments

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from ._kernels_common import ALL, EACH, HIGH, U, _ascii_word, _load8, _mix, _ones

COMMON = "60450845"  # version of _kernels_common

BLANK, SIGN, WORD, LINE = range(4)
BASIS, PRIME = U(0xCBF29CE484222325), U(0x9E3779B97F4A7C15)  # odd: a digit of a hash is 8 bytes
AFTER_BLANK = U(0x80 - 0x21) * EACH  # lifts a byte of seven bits over 127 from `!` on
_LETTERS = [chr(b).isalnum() for b in range(128)]
_KINDS = [WORD if b > 127 or _LETTERS[b] else SIGN if 32 < b < 127 else BLANK for b in range(256)]
KIND = np.array(_KINDS, np.int64)
KIND[0x0A] = LINE
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
PLAIN = np.frombuffer(bytes(range(256)).lower().translate(_DIGITS), np.uint8)
MARK = np.frombuffer("\u00b6".encode(), np.uint8)  # of the end of a line
LINES = 2  # of a run of them
TITLE = 0x40  # @, in front of a word of a text's first


@njit(cache=True, nogil=True)
def _sort(data, i, end):
    """What stands at `i`, where no ASCII does, and its size in bytes; a letter comes by bytes."""
    b = data[i]
    if b == 0xC2 and i + 1 < end:  # U+0080 to U+00BF
        c = data[i + 1]
        if c in (0xAA, 0xB5, 0xBA):
            return WORD, 2
        return (BLANK if c <= 0xA0 or c == 0xAD else SIGN), 2
    if b == 0xE2 and i + 2 < end:  # U+2000 to U+206F
        c, d = data[i + 1], data[i + 2]
        if c == 0x80:
            return (BLANK if d <= 0x8F or 0xA8 <= d <= 0xAF else SIGN), 3
        if c == 0x81 and d <= 0xAF:
            return (BLANK if d >= 0x9F else SIGN), 3
    if b == 0xE3 and i + 2 < end and data[i + 1] == 0x80:  # U+3000 to U+303F
        return (BLANK if data[i + 2] == 0x80 else SIGN), 3
    return WORD, 1


@njit(cache=True, nogil=True, forceinline=True)
def _plain(data, i):
    """A byte of a word in lower case (ASCII and Latin-1), each digit a 0."""
    b = data[i]
    if 0x80 <= b <= 0x9E and b != 0x97 and i > 0 and data[i - 1] == 0xC3:
        return np.uint8(b + 0x20)
    return PLAIN[b]


@njit(cache=True, nogil=True)
def _letter(data, start, at):
    """The first byte of the letter that `at` stands in."""
    while start < at < len(data) and data[at] & 0xC0 == 0x80:
        at -= 1
    return at


@njit(cache=True, nogil=True, forceinline=True)
def _sorted(data, i, end):
    """The kind of what stands at `i`, and its size in bytes; of a letter, of one byte."""
    return _sort(data, i, end) if data[i] >= 0x80 else (KIND[data[i]], 1)


@njit(cache=True, nogil=True)
def _walk(data, i, end, size):
    """The place `size` bytes after `i`, at most `end`; a run of blanks and lines is one byte."""
    blank = False
    while i < end and size > 0:
        if i + 8 <= end and size > 8:
            x = _load8(data, i)
            if x & HIGH == 0:
                blanks = ((x + AFTER_BLANK) & ~(x + EACH) & HIGH) ^ HIGH
                size -= 8 - np.int64(_ones(blanks & (blanks << U(8) | U(blank) << U(7))))
                blank = blanks >> U(63) != 0
                i += 8
                continue
        b = data[i]
        if 0x20 < b < 0x7F or (b > 0x7F and b not in (0xC2, 0xE2, 0xE3)):  # no blank
            size -= 1
            blank = False
            i += 1
            continue
        kind, width = _sorted(data, i, end)
        now = kind in (BLANK, LINE)
        size -= not (now and blank)
        blank = now
        i += width if now else 1
    return i


@njit(cache=True, nogil=True)
def _pieces(data, first, last, limit):
    """Beginning and middle: start, stop, start, stop. The text is one piece if it is short."""
    if last - first <= limit:
        return first, last, last, last
    while last > first and data[last - 1] <= 0x20:
        last -= 1
    piece = limit // 3
    stop = _walk(data, first, last, 2 * limit // 3)
    if _walk(data, stop, last, piece) == last:
        return first, last, last, last
    stop = _letter(data, first, stop)
    second = _letter(data, first, max(stop, first + (last - first - piece) // 2))
    return first, stop, second, _letter(data, first, _walk(data, second, last, piece))


@intrinsic
def _store8(typingctx, data, at, value):
    """Put a uint64 into eight bytes at `at`, little-endian; the caller proves that they are there.

    Byte by byte, the compiler makes eight stores of it.
    """

    def generate(context, builder, signature, args):
        array = make_array(signature.args[0])(context, builder, args[0])
        at = context.cast(builder, args[1], signature.args[1], types.intp)
        where = builder.bitcast(builder.gep(array.data, [at]), ir.IntType(64).as_pointer())
        builder.store(args[2], where).align = 1
        return context.get_dummy_value()

    return types.none(data, at, types.uint64), generate


@njit(cache=True, nogil=True, forceinline=True)
def _write_word(data, i, stop, out, at, h):
    """Write the word at `i`: places after it in `data` and `out`, its hash, and with its digits.

    Eight bytes at a time while they are ASCII; `out` has eight bytes of room behind all words.
    """
    begin, written, basis = i, at, h
    exact = h
    whole = False
    while i + 8 <= len(data):
        x = _load8(data, i)
        size, letter, digit = _ascii_word(x)
        size = min(size, stop - i)
        if size:
            keep = ALL >> U(64 - 8 * size)
            low = (x | letter >> U(2)) & keep
            plain = low & ~((digit >> U(7)) * U(0x0F))  # each digit a 0
            _store8(out, at, plain)
            h = h * PRIME + plain
            exact = exact * PRIME + low
            i += size
            at += size
        if size < 8 or i == stop:
            whole = i == stop or data[i] < 0x80
            break
    if whole:
        return i, at, h, exact
    i, at, h, exact = begin, written, basis, basis
    part, shown, shift = U(0), U(0), U(0)
    kind, width = _sorted(data, i, stop)
    while kind == WORD:
        for _ in range(width):
            b = out[at] = _plain(data, i)
            part |= U(b) << shift
            shown |= U(data[i] if b == 0x30 else b) << shift
            shift += U(8)
            if shift == U(64):
                h, exact = h * PRIME + part, exact * PRIME + shown
                part, shown, shift = U(0), U(0), U(0)
            at += 1
            i += 1
        if i >= stop:
            break
        kind, width = _sorted(data, i, stop)
    if shift:
        h, exact = h * PRIME + part, exact * PRIME + shown
    return i, at, h, exact


@njit(cache=True, nogil=True, forceinline=True)
def _free(keys, mask, key):
    """Slot of a mixed `key` in an open table where 0 is free."""
    at = np.int64(key >> U(20) & U(mask))
    while (keys[at] != 0) & (keys[at] != key):
        at = (at + 1) & mask
    return at


@njit(cache=True, nogil=True)
def read(data, offsets, limit, front, out, bounds, words, keys, counts, used, seen, slots, ring):
    """Write the words of each row to `out` with a blank after each, and count them.

    `bounds` int64[rows + 1], `words` int64[rows]. `front` bytes of a text are read once more,
    before all. `out` uint8 holds four bytes for each that is looked at, a run of blanks being one.
    `keys`, `seen` uint64 and `counts` int64: a power of two above the tokens of a row (three for
    two bytes), all 0; `used`, `slots` int64: as many as tokens. `ring` uint64: the tokens of a
    window.
    """
    at = 0
    mask, most = len(keys) - 1, len(seen) - 1
    lead = U(1)
    for _ in ring:
        lead *= PRIME
    for row in range(len(offsets) - 1):
        first, end, second, last = _pieces(data, offsets[row], offsets[row + 1], limit)
        i, stop = first, _letter(data, first, _walk(data, first, end, front))
        title = True  # the first words, marked, before all
        taken, tokens, place, distinct, lines, said = 0, 0, 0, 0, 0, False
        window = U(0)
        words[row] = 0
        ring[:] = 0
        while title or i < stop or second < last:
            if i >= stop and title:
                i, stop, title, lines = first, end, False, 0
                continue
            if i >= stop:
                i, stop, second = second, last, last
                continue
            kind, width = _sorted(data, i, stop)
            lines = 0 if kind in (SIGN, WORD) else lines + (kind == LINE)
            if kind == BLANK or lines > LINES or (title and kind != WORD):
                i += width
                continue
            token, h = at, BASIS
            if title:
                out[at], h = TITLE, PRIME
                at += 1
            said |= kind != LINE
            if kind == WORD:
                i, at, h, exact = _write_word(data, i, stop, out, at, h)
            else:
                part = U(0)
                for k in range(len(MARK) if kind == LINE else width):
                    out[at] = MARK[k] if kind == LINE else data[i + k]
                    part = part << U(8) | U(out[at])
                    at += 1
                i += width
                h = exact = h * PRIME + part
            if not title:
                exact = _mix(exact)
                window = window * PRIME + exact - ring[place] * lead
                ring[place] = exact
                tokens += 1
                place = place + 1 if place + 1 < len(ring) else 0
            if tokens >= len(ring):
                key = _mix(window) | U(1)
                slot = _free(seen, most, key)
                if seen[slot] != 0:
                    at = token  # said before, after the same words
                    continue
                seen[slot] = key
                slots[distinct] = slot
                distinct += 1
            # Without branches, which would be guessed wrong at every other word.
            key = _mix(h) | U(1)
            slot = _free(keys, mask, key)
            used[taken] = slot
            taken += keys[slot] == 0
            keys[slot] = key
            counts[slot] += 1
            stays = counts[slot] & (counts[slot] - 1) == 0  # the 1st, 2nd, 4th, 8th, ...
            out[at] = 0x20
            at = at + 1 if stays else token
            words[row] += stays
        for slot in used[:taken]:
            keys[slot] = 0
            counts[slot] = 0
        for slot in slots[:distinct]:
            seen[slot] = 0
        if not said:  # lines without a word are nothing
            at, words[row] = bounds[row], 0
        bounds[row + 1] = at


@njit(cache=True, nogil=True)
def again(data, bounds, words, least, most, out, ends):
    """Copy each row, and one of fewer than `least` words again and again, `most` times at most."""
    at = 0
    for row in range(len(words)):
        first, last, left = bounds[row], bounds[row + 1], least
        for time in range(most if 0 < words[row] < least else 1):
            i = first
            while i < last and (time == 0 or left > 0):
                b = out[at] = data[i]
                left -= b == 0x20
                at += 1
                i += 1
        ends[row + 1] = at
