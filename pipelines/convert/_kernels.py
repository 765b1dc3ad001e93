# mypy: ignore-errors
"""The kernel of the text policy: what of it a text needs."""

from __future__ import annotations

import numpy as np
from numba import njit

_U = np.uint64
_HIGH = _U(0x8080808080808080)
_ORDER = _U(0x0001020304050607)


# What `look` finds, added up.
NUL, CR, VERTICAL, CONTROL = 1, 2, 4, 8
C1, LINE, BOM, FORM = 16, 32, 64, 128
# Classes of code points; below them stand the combining classes (at most 240).
CLASS_C1, CLASS_LINE, CLASS_BOM, CLASS_FORM = 252, 253, 254, 255


@njit(cache=True, nogil=True)
def look(data, words, classes):
    """What of the text policy `data` uint8[bytes], sound UTF-8, asks for: 0 if it certainly stays.

    `words` uint64[bytes // 8] are the same bytes. `classes` uint8[code points]: one of CLASS_*, or
    the canonical combining class (FORM is also found where marks follow each other out of order);
    0 for all code points behind it. FORM is a suspicion, all else is there.

    One pass looks for controls, by vectors; one for the first bytes of characters beyond ASCII,
    eight bytes at a time: 0.45 ns a byte of web text, where a walk over the characters takes 1.1.
    """
    found = np.uint8(0)
    for byte in data:
        found |= (byte == 127) | ((byte < 32) & (byte != 9) & (byte != 10))
    if found:
        found = np.uint8(0)
        for byte in data:
            if byte == 0:
                found |= NUL
            elif byte == 13:
                found |= CR
            elif 11 <= byte <= 12:
                found |= VERTICAL
            elif byte == 127 or byte < 9 or 13 < byte < 32:
                found |= CONTROL
    size = len(data)
    points = _U(len(classes))
    follows = last = 0  # where the last mark ended, and its class
    for w in range(len(words) + 1):
        if w < len(words):
            word = words[w]
        else:
            word = _U(0)
            for k in range(8 * w, size):
                word |= _U(data[k]) << _U(8 * (k - 8 * w))
        leads = word & (word << _U(1)) & _HIGH  # both upper bits of a byte
        while leads:
            low = leads & (~leads + _U(1))
            leads ^= low
            at = 8 * w + np.int64(((low >> _U(7)) * _ORDER) >> _U(56))  # 256**k picks byte k
            byte = np.uint32(data[at])
            point = np.uint32(data[at + 1]) & 0x3F
            if byte < 0xE0:
                point |= (byte & 0x1F) << 6
                end = at + 2
            elif byte < 0xF0:
                point = (byte & 0x0F) << 12 | point << 6 | (data[at + 2] & 0x3F)
                end = at + 3
            else:
                point = (byte & 0x07) << 18 | point << 12 | (np.uint32(data[at + 2]) & 0x3F) << 6
                point |= data[at + 3] & 0x3F
                end = at + 4
            which = classes[_U(point)] if point < points else 0
            if which >= CLASS_C1:
                found |= C1 << (which - CLASS_C1)
            elif which:
                if at == follows and which < last:
                    found |= FORM
                follows = end
                last = which
    return found
