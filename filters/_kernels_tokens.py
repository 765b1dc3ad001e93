# mypy: ignore-errors
"""Kernels of `as_datatrove`: texts cut into tokens as datatrove 0.10.1's tokeniser (spaCy's) does.

What stands between spaces is peeled: marks in front and behind are tokens, as are 's, units after
digits and ellipses; then an address is one token, a contraction two, and the rest is split at
hyphens, commas and slashes between letters and at full stops between a small and a capital letter.
That is spaCy's English tokeniser without its lists of exceptions (`Inc.`, `e.g.`, `cannot`) and its
rules for other languages; each character of a script without spaces is a token. What that does to
the rules `benchmarks/filters.py agreement` prints.
"""

# ruff: noqa: PLR1714, RUF001, SIM102 - Numba compiles a chain of comparisons to less than a set; the
# quotes are what is meant

from __future__ import annotations

import numpy as np
from numba import njit

from ._kernels_common import LETTER, MARK, OTHER, _bit, _citation, _decode

COMMON = "60450845"  # version of _kernels_common

FORMS = np.frombuffer(b"[edit][citation needed]", np.uint8)
FORM_ENDS = np.array([6, 23])
LONGEST = 1000  # characters without a space; what is longer is one token
P, S, Q, C, I = 1, 2, 4, 8, 16  # peeled in front, behind, a quote, a currency, an icon


def _kinds() -> np.ndarray:
    """What a code point is to the peeling, uint8[0x10000]."""
    kinds = np.zeros(0x10000, np.uint8)
    marks = "…,:;!?¿؟¡()[]{}<>_#*&。？！，、；：～·।،۔؛٪"
    quotes = "'\"”“`‘´’‚,„»«「」『』（）〔〕【】《》〈〉⟦⟧"
    for chars, bits in (
        (marks, P | S),
        (quotes, P | S | Q),
        ("§%=", P),
        ("—–", P | S),
        ("$£€¥฿₽﷼₴₠₡₢₣₤₥₦₧₨₩₪₫₭₮₯₰₱₲₳₵₶₷₸₹₺₻₼₾₿", P | C),
        ("¦©®°℀℁℃℄℅℆℈℉℔№℗℞℟℠™℥℧℩℮\ufffc\ufffd", P | S | I),
    ):
        for char in chars:
            kinds[ord(char)] |= bits
    kinds[0x2195:0x2C00] |= P | S | I  # arrows, boxes, dingbats
    return kinds


KINDS = _kinds()
UNITS = tuple(
    "km m dm cm mm ha nm yd in ft kg g mg t lb oz kmh mph hPa Pa mbar mb MB kb KB gb GB tb TB T G M K %".split()  # noqa: E501, SIM905
)


def _units() -> np.ndarray:
    """Units of length 1 to 4 as numbers, sorted."""
    return np.array(sorted(int.from_bytes(u.encode(), "big") for u in UNITS), np.int64)


UNIT_KEYS = _units()


@njit(cache=True, nogil=True)
def _kind(cp, kinds):
    if cp < len(kinds):
        return np.int64(kinds[cp])
    return 19 if 0x1F000 <= cp < 0x1FB00 else 0


@njit(cache=True, nogil=True)
def _digit(cp):
    return 0x30 <= cp <= 0x39


@njit(cache=True, nogil=True)
def _alpha(cp, table):
    """Letters; and vowel signs of Indic scripts and points of Hebrew and Arabic, as in spaCy."""
    c = table[cp]
    return c >= LETTER or (c == MARK and 0x591 <= cp < 0xE00)


@njit(cache=True, nogil=True)
def _upper(cp):
    """Capital letters of Latin, Greek and Cyrillic, nearly."""
    return (
        0x41 <= cp <= 0x5A
        or (0xC0 <= cp <= 0xDE and cp != 0xD7)
        or (0x100 <= cp < 0x180 and cp & 1 == 0)
        or 0x391 <= cp <= 0x3AB
        or 0x400 <= cp <= 0x42F
    )


@njit(cache=True, nogil=True)
def _lower(cp, table):
    return _alpha(cp, table) and not _upper(cp)


@njit(cache=True, nogil=True)
def _cased(cp):
    """Small letters of the same scripts."""
    return (
        0x61 <= cp <= 0x7A
        or 0xDF <= cp <= 0xFF
        or (0x100 <= cp < 0x180 and cp & 1 == 1)
        or 0x3AC <= cp <= 0x3CE
        or 0x430 <= cp <= 0x45F
    )


@njit(cache=True, nogil=True)
def _front(cps, i, j, kinds):
    """How many characters are peeled off in front."""
    c = cps[i]
    if c == 0x2E:
        n = 1
        while i + n < j and cps[i + n] == 0x2E:
            n += 1
        return n if n > 1 else 0
    if c == 0x2B:
        return 0 if i + 1 < j and _digit(cps[i + 1]) else 1
    if c == 0x2026 and i + 1 < j and cps[i + 1] == 0x2026:
        return 2
    return 1 if _kind(c, kinds) & P else 0


@njit(cache=True, nogil=True)
def _unit(cps, i, j, units):
    """Length of a unit right behind a digit, 0 if there is none."""
    key = np.int64(0)
    for n in range(1, 5):
        t = j - n
        if t <= i or cps[t] > 0x7A:
            return 0
        key |= np.int64(cps[t]) << np.int64(8 * (n - 1))
        if _digit(cps[t - 1]):
            at = np.searchsorted(units, key)
            return n if at < len(units) and units[at] == key else 0
    return 0


@njit(cache=True, nogil=True)
def _back(cps, i, j, kinds, units, table):
    """How many characters are peeled off behind."""
    c = cps[j - 1]
    if c == 0x2E:
        n = 1
        while j - n > i and cps[j - n - 1] == 0x2E:
            n += 1
        if n > 1:
            return n
        if j - i < 2:
            return 0
        p = cps[j - 2]
        if _digit(p) or _lower(p, table) or p == 0x25 or p == 0xB2 or p == 0x2D or p == 0x2B:
            return 1
        if _kind(p, kinds) & S and p != 0x2014 and p != 0x2013:
            return 1
        return 1 if j - i > 2 and _upper(p) and _upper(cps[j - 3]) else 0
    if _kind(c, kinds) & S:
        return 1
    if j - i < 2:
        return 0
    p = cps[j - 2]
    if (c == 0x73 or c == 0x53) and (p == 0x27 or p == 0x2019):
        return 2
    if _digit(p) and (c == 0x2B or _kind(c, kinds) & C):
        return 1
    return _unit(cps, i, j, units)


@njit(cache=True, nogil=True)
def _face(cps, i, j):
    """Two characters that make a face are one token."""
    if j - i != 2:
        return False
    a, b = cps[i], cps[i + 1]
    if a == 0x28 or a == 0x29 or a == 0x5B:
        return b == 0x3A or b == 0x3D or (b == 0x3B and a == 0x28)
    eyes = a == 0x3A or a == 0x3B or a == 0x3D
    return eyes and (b == 0x28 or b == 0x29 or b == 0x44 or b == 0x50 or b == 0x5D)


@njit(cache=True, nogil=True)
def _address(cps, i, j):
    """Whether it looks like an address: names joined by full stops, the last in small letters."""
    host = i
    for t in range(i, j):
        c = cps[t]
        if c == 0x40:
            host = t + 1
        elif c == 0x3A and t + 2 < j and cps[t + 1] == 0x2F and cps[t + 2] == 0x2F:
            host = t + 3
        elif c == 0x2F and not (t > i and (cps[t - 1] == 0x3A or cps[t - 1] == 0x2F)):
            break
    label, small, dots = 0, 0, 0
    for t in range(host, j):
        c = cps[t]
        if c == 0x2E:
            if label == 0:
                return False
            label, small = 0, 0
            dots += 1
            continue
        if c == 0x2F or c == 0x3F or c == 0x23 or c == 0x3A:
            break
        letter = 0x61 <= c <= 0x7A or c >= 0xDF
        fine = letter or 0x41 <= c <= 0x5A or _digit(c) or c == 0x2D or c == 0x5F or c > 0xA0
        if not fine:
            return False
        label += 1
        small += letter
    return dots > 0 and small == label and small > 1


@njit(cache=True, nogil=True)
def _contraction(cps, i, j):
    """Where n't, 'll, 've, 're, 'd or 'm begins in a word of ASCII letters, -1 if it does not."""
    at = -1
    for t in range(i, j):
        c = cps[t] | 0x20
        if cps[t] == 0x27 or cps[t] == 0x2019:
            if at >= 0:
                return -1
            at = t
        elif c < 0x61 or c > 0x7A:
            return -1
    if at <= i or at == j - 1:
        return -1
    a, n = cps[at + 1] | 0x20, j - at - 1
    b = cps[at + 2] | 0x20 if n == 2 else 0
    if n == 1 and a == 0x74 and cps[at - 1] | 0x20 == 0x6E and at - 1 > i:
        return at - 1
    if (n == 1 and (a == 0x64 or a == 0x6D)) or (n == 2 and b == 0x6C and a == 0x6C):
        return at
    return at if n == 2 and b == 0x65 and (a == 0x76 or a == 0x72) else -1


@njit(cache=True, nogil=True)
def _joint(cps, i, j, t, kinds, table):
    """How many characters at t are a token between two parts of a word, 0 if none."""
    c = cps[t]
    a = cps[t - 1] if t > i else 0x20
    b = cps[t + 1] if t + 1 < j else 0x20
    if c == 0x2E and b == 0x2E:
        n = 2
        while t + n < j and cps[t + n] == 0x2E:
            n += 1
        return n
    if c == 0x2026:
        return 1
    if _kind(c, kinds) & I:
        return 1
    after, before = _alpha(b, table), _alpha(a, table)
    if (c == 0x2B or c == 0x2D or c == 0x2A or c == 0x5E) and _digit(a):
        if _digit(b) or b == 0x2D:
            return 1
    if c == 0x2E:
        left = _lower(a, table) or _kind(a, kinds) & Q
        right = (after and not _cased(b)) or _kind(b, kinds) & Q
        return 1 if left and right else 0
    if c == 0x2C:
        return 1 if before and after else 0
    if not (before or _digit(a)):
        return 0
    if c == 0x2D or c == 0x2013 or c == 0x2014 or c == 0x7E:
        n = 1
        if not after and (c == 0x2D or c == 0x2014):
            while t + n < j and cps[t + n] == c and n < 3:
                n += 1
        return n if t + n < j and _alpha(cps[t + n], table) else 0
    if (c == 0x3A or c == 0x3C or c == 0x3E or c == 0x3D or c == 0x2F) and after:
        return 1
    return 0


@njit(cache=True, nogil=True)
def _peel(cps, begins, size, kinds, units, table):
    """Set begins[t] for the first character of each token of a run of `size`."""
    begins[:size] = False
    begins[0] = True
    i, j = 0, size
    while i < j:
        if _face(cps, i, j):
            return
        p = _front(cps, i, j, kinds)
        s = _back(cps, i + p, j, kinds, units, table) if i + p < j else 0
        if p == 0 and s == 0:
            break
        i += p
        j -= s
        if j < size:
            begins[j] = True
        if i < size:
            begins[i] = True
    if i >= j or _address(cps, i, j):
        return
    at = _contraction(cps, i, j)
    if at >= 0:
        begins[at] = True
        return
    begun = i
    t = i
    while t < j:
        n = _joint(cps, i, j, t, kinds, table)
        if n == 0:
            t += 1
            continue
        if t > begun:
            begins[t] = True
            begun = t + n
            if begun < j:
                begins[begun] = True
        t += n


@njit(cache=True, nogil=True)
def tokens(data, offsets, planes, blocks, table, kinds, units, citations):
    """Make `start` of planes (`_scan.PLANES`) the first bytes of tokens, `word` their bytes.

    `citations`: tokens are found as though citation marks were not there.
    """
    word, start, unspaced, visible = planes[0], planes[1], planes[2], planes[6]
    cps, at_byte = np.empty(LONGEST, np.int64), np.empty(LONGEST, np.int64)
    begins = np.empty(LONGEST, np.bool_)
    one = np.uint64(1)
    for row in range(len(blocks)):
        base, n, at = offsets[row], offsets[row + 1] - offsets[row], blocks[row]
        for k in range(at, at + n // 64 + 1):
            start[k], word[k] = unspaced[k], visible[k]
        i = 0
        while i < n:
            if not visible[at + (i >> 6)] >> np.uint64(i & 63) & one:
                i += 1
                continue
            first, size = i, 0
            while i < n and visible[at + (i >> 6)] >> np.uint64(i & 63) & one:
                if unspaced[at + (i >> 6)] >> np.uint64(i & 63) & one:
                    if i > first:
                        break
                    i += _decode(data, base + i, base + n)[1]
                    first = i
                    continue
                cp, width = _decode(data, base + i, base + n)
                if citations and cp == 0x5B:
                    width = _citation(data, base + i, base + n, FORMS, FORM_ENDS)
                    if width:
                        i += width
                        continue
                    width = 1
                if size < LONGEST:
                    cps[size], at_byte[size] = cp, i
                size += 1
                i += width
            if size > LONGEST:
                start[at + (first >> 6)] |= one << np.uint64(first & 63)
            elif size:
                _peel(cps, begins, size, kinds, units, table)
                for t in range(size):
                    if begins[t]:
                        i_t = at_byte[t]
                        start[at + (i_t >> 6)] |= one << np.uint64(i_t & 63)


@njit(cache=True, nogil=True)
def count(data, offsets, planes, blocks, table, kinds, out):
    """Counts of tokens over those of words in `out`, int32[rows, 14] of `gopher_quality.SCORES`.

    `words` (tokens that are more than punctuation), `word_chars`, `alphabetic_words`,
    `symbol_words` (the other tokens); `lines` with the blank ones.
    """
    start, unspaced, visible = planes[1], planes[2], planes[6]
    for row in range(len(blocks)):
        base, n, at = offsets[row], offsets[row + 1] - offsets[row], blocks[row]
        words, chars, alphabetic, marks = 0, 0, 0, 0
        i = 0
        while i < n:
            if not _bit(visible, at, i):
                i += 1
                continue
            single = _bit(unspaced, at, i)
            size, letters, full = 0, False, False
            while True:
                cp, width = _decode(data, base + i, base + n)
                c = table[cp]
                letters |= c >= LETTER
                full |= c >= MARK or (c == OTHER and (_kind(cp, kinds) & I) > 0)
                size += 1
                i += width
                if i >= n or not _bit(visible, at, i) or _bit(start, at, i):
                    break
            words += full
            marks += not full
            alphabetic += letters
            chars += size if full and not single else 0
        o = out[row]
        o[0], o[2], o[3], o[4] = words, chars, alphabetic, marks
        lines = 1 if n and data[base + n - 1] != 0x0A else 0
        for t in range(n):
            lines += data[base + t] == 0x0A
        o[9] = lines
