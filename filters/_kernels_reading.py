# mypy: ignore-errors
"""Kernel of `_reading`: text to the plain words that a head reads, in one pass.

A row's tokens are counted in an open table of their hashes (64 bits, 0 is free), at most half full;
the slots that a row took are made free after it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ._kernels_common import _mix, _slot

COMMON = "d9947174"  # version of _kernels_common

BLANK, SIGN, WORD, LINE = range(4)
BASIS, PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_LETTERS = [chr(b).isalnum() for b in range(128)]
_KINDS = [WORD if b > 127 or _LETTERS[b] else SIGN if 32 < b < 127 else BLANK for b in range(256)]
KIND = np.array(_KINDS, np.int64)
KIND[0x0A] = LINE
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
PLAIN = np.frombuffer(bytes(range(256)).lower().translate(_DIGITS), np.uint8)
MARK = np.frombuffer("\u00b6".encode(), np.uint8)  # of the end of a line


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
    while at > start and data[at] & 0xC0 == 0x80:
        at -= 1
    return at


@njit(cache=True, nogil=True)
def read(data, offsets, limit, out, bounds, keys, counts, used):
    """Write the words of each row to `out` with a blank after each; `bounds` int64[rows + 1].

    `out` uint8 holds thrice the bytes that are looked at (a line's end becomes three). `keys`
    uint64, `counts` int64: a power of two, twice the bytes of a row or more, all 0; `used` int64:
    the bytes of a row.
    """
    at = 0
    mask = len(keys) - 1
    for row in range(len(offsets) - 1):
        first, last = offsets[row], offsets[row + 1]
        i, stop, second = first, last, last
        if last - first > limit:
            head, piece = 2 * limit // 3, limit // 3
            middle = first + max(head, (last - first - piece) // 2)
            stop, second = _letter(data, first, first + head), _letter(data, first, middle)
            last = _letter(data, first, middle + piece)
        taken, said = 0, False
        while i < stop or stop < last:
            if i >= stop:
                i, stop = second, last
                continue
            kind, width = KIND[data[i]], 1
            if data[i] >= 0x80:
                kind, width = _sort(data, i, stop)
            if kind == BLANK:
                i += width
                continue
            token, h = at, BASIS
            said |= kind != LINE
            if kind == WORD:
                while kind == WORD:
                    for _ in range(width):
                        out[at] = _plain(data, i)
                        h = (h ^ np.uint64(out[at])) * PRIME
                        at += 1
                        i += 1
                    if i >= stop:
                        break
                    kind, width = KIND[data[i]], 1
                    if data[i] >= 0x80:
                        kind, width = _sort(data, i, stop)
            else:
                for k in range(len(MARK) if kind == LINE else width):
                    out[at] = MARK[k] if kind == LINE else data[i + k]
                    h = (h ^ np.uint64(out[at])) * PRIME
                    at += 1
                i += width
            key = _mix(h) | np.uint64(1)
            slot = _slot(keys, mask, key)
            if keys[slot] == 0:
                keys[slot] = key
                used[taken] = slot
                taken += 1
            counts[slot] += 1
            if counts[slot] & (counts[slot] - 1):  # not the 1st, 2nd, 4th, 8th, ...
                at = token
            else:
                out[at] = 0x20
                at += 1
        for slot in used[:taken]:
            keys[slot] = 0
            counts[slot] = 0
        at = at if said else bounds[row]  # lines without a word are nothing
        bounds[row + 1] = at
