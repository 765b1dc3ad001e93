# mypy: ignore-errors
"""Kernels that fold what stands for ASCII, and find e-mail addresses; `pii.py` states the rules.

Folding puts one ASCII byte for each full-width character, digit of another script, hyphen and space
that is written instead of the ASCII one, for a dash within a number, and for a reference
(`&#64;`, `&commat;`, `%40`), so that all rules that come after see ASCII alone; and the letter for
a reference to one (`&uuml;`). What nobody sees (soft hyphens, zero-width spaces) is nothing, or a
space. Where bytes went is told, for masks go into the text as it was.

Addresses are looked for at each `@`, over `work`, the folded copy; what is found is overwritten
with a byte that belongs to nothing, as the mask does in the text, and what stands before is tried
again.
"""

# ruff: noqa: PLR1714 - Numba compiles chains of comparisons to less

from __future__ import annotations

import numpy as np
from numba import njit

from ._kernels_common import (
    ALNUM,
    ALPHA,
    GONE,
    HEX,
    LATIN,
    LETTER,
    LOCAL,
    MARK,
    UNSPACED,
    UPPER,
    _decode,
    _ends,
)

COMMON = "60450845"  # version of _kernels_common

EMAIL = 0  # a kind; the others follow in `_kernels_pii`
REACH = 320  # bytes: the longest address
# What a character stands for that is no byte of ASCII in every place; a letter for itself alone
DASH, NONE, ITSELF = 0x80, 0x81, 0x82
BACK = 40  # bytes before a dash that are looked at
LONE = 10  # digits after which a dash is none of a number: a year follows, or another number
LONGEST = 24  # letters of a reference's name
CALLED, RESERVED = 2, 4  # bits of a top-level domain: usual in addresses; kept for examples


@njit(cache=True, nogil=True)
def _found(h, known):
    """What an open table (slots uint64, 0: free; values) holds for the hash `h`; or 0."""
    slots, values = known
    h |= np.uint64(1)
    mask = np.uint64(len(slots) - 1)
    at = (h >> np.uint64(32)) & mask
    while slots[at] != 0:
        if slots[at] == h:
            return np.int64(values[at])
        at = (at + np.uint64(1)) & mask
    return np.int64(0)


@njit(cache=True, nogil=True)
def _reference(data, i, end, names):
    """The code point that a reference at `i` stands for, and its size; or 0, 0.

    `names`: slots uint64 (0: free) by hash, as for `_top`, and the code point of each. A number to
    ASCII may go without its semicolon, as browsers read it.
    """
    if data[i] == 0x25:
        if i + 2 < end and data[i + 1] == 0x34 and data[i + 2] == 0x30:
            return 0x40, 3  # %40
        good = i + 2 < end and data[i + 1] == 0x32 and data[i + 2] | 32 == 0x65
        return (0x2E, 3) if good else (0, 0)  # %2E
    p = i + 1
    if p >= end or data[p] != 0x23:
        h = np.uint64(0xCBF29CE484222325)
        while p < end and p - i <= LONGEST and (data[p] | 32) - 0x61 < 26 and data[p] >= 0x41:
            h = (h ^ np.uint64(data[p])) * np.uint64(0x100000001B3)
            p += 1
        if p == i + 1 or p >= end or data[p] != 0x3B:
            return 0, 0
        cp = _found(h, names)
        return (cp, p + 1 - i) if cp else (0, 0)
    p += 1
    base = 10
    if p < end and data[p] | 32 == 0x78:
        base, p = 16, p + 1
    value = 0
    first = p
    while p < end and p - first < 8:
        b = data[p]
        if 0x30 <= b <= 0x39:
            value = value * base + b - 0x30
        elif base == 16 and 0x61 <= b | 32 <= 0x66:
            value = value * base + (b | 32) - 0x57
        else:
            break
        p += 1
    closed = p < end and data[p] == 0x3B
    good = first < p < first + 8 and value >= 0x20 and (closed or value < 0x7F)
    return (value, p + closed - i) if good else (0, 0)


@njit(cache=True, nogil=True)
def _read_as(data, i, end, stands):
    """What the character or reference at `i` stands for, or 0; its size."""
    _, ascii_of, names = stands
    if data[i] < 0x80:
        cp, size = _reference(data, i, end, names)
    else:
        cp, size = _decode(data, i, end)
    if size < 2 or cp >= 0x10000:
        return np.int64(0), size
    value = np.int64(cp) if cp < 0x7F else np.int64(ascii_of[cp])
    if value == ITSELF:
        value = np.int64(cp) if data[i] < 0x80 else np.int64(0)
    return value, size


@njit(cache=True, nogil=True)
def _in_number(data, i, end, stands, out, n, low):
    """Whether a dash before `i` stands within a number.

    `out` from `low` to `n` is what stands before it: fewer than `LONE` digits, or a card's twelve.
    """
    after = np.int64(data[i]) if i < end else np.int64(0x20)
    if after >= 0x80 or after == 0x26:
        after, _ = _read_as(data, i, end, stands)
    digit = 0x30 <= after <= 0x39
    if not digit and after != 0x28 and after != 0x20:
        return False
    before = np.int64(out[n - 1]) if n > low else np.int64(0x20)
    good = before == 0x20 or before == 0x29 or 0x30 <= before <= 0x39
    digits = run = 0
    fours = True
    t = n - 1
    while t >= low and n - t < BACK:
        b = out[t]
        if 0x30 <= b <= 0x39:
            digits += 1
            run += 1
        elif b == 0x20 or b == 0x2D or b == 0x28 or b == 0x29 or b == 0x2E or b == 0x2F:
            fours &= run == 4
            run = 0
        else:
            break
        t -= 1
    many = digits >= LONE and not (digits == 12 and fours and run == 4)
    return good and not (digit and many)


@njit(cache=True, nogil=True)
def _bound(data, i, size, lo, hi):
    """Whether what nobody sees, at `i`, stands within what is no space and is ASCII on a side.

    Where something was masked counts as ASCII. Elsewhere a space makes no difference.
    """
    if i <= lo or i + size >= hi:
        return False
    a, b = data[i - 1], data[i + size]
    if (a <= 0x20 and a != GONE) or (b <= 0x20 and b != GONE):
        return False
    return a < 0x7F or b < 0x7F


@njit(cache=True, nogil=True)
def _meaning(row, i, stands, gap, out, n):
    """What the character or reference at `i` stands for there, or 0; its size; if `gap` matters."""
    data, lo, hi, low = row
    value, size = _read_as(data, i, hi, stands)
    matters = False
    if value == DASH:
        value = 0x2D if _in_number(data, i + size, hi, stands, out, n, low) else 0
    elif value == NONE:
        matters = _bound(data, i, size, lo, hi)
        value = 0x20 if gap else NONE
    return value, size, matters


@njit(cache=True, nogil=True)
def _written(out, n, cp):
    """Write a code point below 65,536 in UTF-8; its size."""
    if cp < 0x80:
        out[n] = cp
        return 1
    size = 2 if cp < 0x800 else 3
    for t in range(size - 1, 0, -1):
        out[n + t] = 0x80 | cp & 0x3F
        cp >>= 6
    out[n] = (0xC0 if size == 2 else 0xE0) | cp
    return size


@njit(cache=True, nogil=True)
def fold(data, offsets, stands, gap, out, bounds, marks, unsure):
    """Write the texts folded to `out` uint8, and int64[rows + 1] bounds; how many were folded.

    `stands`: pairs of bytes that what is folded begins with, uint8[65536], the byte for a code
    point below 65,536, or 0, and names of references (`_reference`); what nobody sees is a space
    where `gap`, or else nothing. A letter that is referred to is written in UTF-8. `marks`
    int64[folded, 2]: twice the byte of `out` from which on bytes were left out (and one more where
    they stand before it), and how many were by then; more folded than it holds: call again.
    `unsure` bool[rows]: whether it matters if `gap`.
    """
    pairs = stands[0]
    one, two, eight = np.uint64(1), np.uint64(2), np.uint64(8)
    first, percent = (
        np.uint64(0xC2),
        np.uint64(0x25),
    )  # unsigned: Numba asks of other places if they wrap
    n = np.uint64(0)
    folded = shift = 0
    bounds[0] = 0
    for r in range(len(offsets) - 1):
        i, end = np.uint64(offsets[r]), np.uint64(offsets[r + 1])
        unsure[r] = False
        while i < end:
            b = np.uint64(data[i])
            value = size = 0
            if b >= first:
                known = i + one < end and pairs[b << eight | np.uint64(data[i + one])] != 0
            else:
                known = b - percent <= one
            if known:
                row = data, offsets[r], offsets[r + 1], bounds[r]
                value, size, matters = _meaning(row, np.int64(i), stands, gap, out, np.int64(n))
                unsure[r] |= matters
            if value:
                i += np.uint64(size)
                shift += size
                if value != NONE:
                    shift -= _written(out, np.int64(n), value)
                    n += one if value < 0x80 else two if value < 0x800 else two + one
                if folded < len(marks):
                    marks[folded, 0] = n << one | np.uint64(value == NONE)
                    marks[folded, 1] = shift
                folded += 1
                continue
            out[n] = b
            n += one
            i += one
        bounds[r + 1] = n
    return folded


@njit(cache=True, nogil=True)
def _before(work, i, lo, table):
    """Class and size of the character beyond ASCII that ends at `i`; size 0: there is none."""
    j = i - 1
    while j > lo and i - j < 4 and work[j] & 0xC0 == 0x80:
        j -= 1
    cp, size = _decode(work, j, i)
    return (table[cp], size) if size > 1 and j + size == i else (0, 0)


@njit(cache=True, nogil=True)
def _escaped(work, i, classes):
    """Whether the two bytes at `i` are hex digits that stand for a mark of an address."""
    a, b = work[i], work[i + 1]
    if a == 0x33:
        return b >= 0x3A and classes[b] & HEX != 0
    return a == 0x32 and classes[b] & HEX != 0 and b | 32 not in (0x62, 0x64, 0x65)  # `+`, `-`, `.`


@njit(cache=True, nogil=True)
def _local(work, at, lo, classes, table):
    """Where what stands before the `@` begins, or -1; and whether its script has no spaces.

    Latin letters and those of another script are of one name in no case: `نJoe@mail.com`.
    """
    s = at
    free = False
    script = 0
    while s > lo:
        kind, size = 0, 1
        if work[s - 1] >= 0x80:
            kind, size = _before(work, s, lo, table)
            if s == at and kind == UNSPACED:
                free = True
            if kind < MARK or (kind == UNSPACED) != free:
                break
        elif free or not classes[work[s - 1]] & LOCAL:
            break
        elif s + 2 <= at and work[s - 1] == 0x25 and _escaped(work, s, classes):
            s += 2  # to=%3Cjoe@mail.com
            break
        elif classes[work[s - 1]] & ALPHA:
            kind = LATIN
        if kind in (LETTER, LATIN):
            if script and script != kind:
                break
            script = kind
        s -= size
        if at - s > 64:
            return -1, free
    if s > lo and work[s - 1] == 0x5C and work[s] in (0x6E, 0x72, 0x74):
        s += 1  # \\n, \\r, \\t of a quoted text
    while s < at and work[s] < 0x80 and not (classes[work[s]] & ALNUM or work[s] == 0x5F):
        s += 1
    if s == at or work[at - 1] == 0x2E:
        return -1, free
    return s, free


@njit(cache=True, nogil=True)
def _top(work, i, end, tlds):
    """Bits of the top-level domain that stands from `i` to `end`; 0: there is none such."""
    h = np.uint64(0xCBF29CE484222325)
    for t in range(i, end):
        b = np.uint64(work[t])
        if np.uint64(0x41) <= b <= np.uint64(0x5A):
            b += np.uint64(32)
        h = (h ^ b) * np.uint64(0x100000001B3)
    return _found(h, tlds)


@njit(cache=True, nogil=True)
def _label(work, i, hi, classes, table, tlds):
    """Of the label at `i`: its end, the end of a top-level domain at its start (or -1), its bits.

    The domain is the label's letters of one kind: `com` of `com-phone` and of `com请`, not of
    `com2`; or those before a capital, where a text lost its spaces. In scripts without spaces it is
    what is one: a sentence may go on after it.
    """
    a = i
    foreign = i < hi and work[i] >= 0x80
    coded = i + 4 <= hi and work[i] | 32 == 0x78 and work[i + 1] | 32 == 0x6E
    coded = coded and work[i + 2] == work[i + 3] == 0x2D
    e = i
    inside = True  # what stands from `i` to `e` may be the domain
    free = False
    while e < hi:
        size = 1
        if work[e] < 0x80:
            if not classes[work[e]] & ALNUM and (work[e] != 0x2D or e == i):
                break
            inside &= not foreign and (coded or classes[work[e]] & ALPHA != 0)
        else:
            cp, size = _decode(work, e, hi)
            if table[cp] < MARK or (e == i and table[cp] == MARK):
                break
            free |= e == i and table[cp] == UNSPACED
            inside &= foreign
        e += size
        if inside:
            a = e
    while a > i and work[a - 1] == 0x2D:
        a -= 1
    digit = a < e and work[a] < 0x80 and work[a] != 0x2D
    bits = _top(work, i, a, tlds) if a > i and not digit else 0
    if not foreign and not bits and a == e:  # joe@mail.comEnglish
        up = i
        while up < a and not classes[work[up]] & UPPER:
            up += 1
        bits = _top(work, i, up, tlds) if up > i else 0
        bits = bits if bits & CALLED or up - i > 2 else 0
        a = up
    while free and not bits and a > i:
        a -= 1
        while a > i and work[a] & 0xC0 == 0x80:
            a -= 1
        bits = _top(work, i, a, tlds)
    return e, (a if bits else -1), bits


@njit(cache=True, nogil=True)
def _host(work, at, hi, classes, table, tlds, reserved):
    """End of the host after the `@`, or -1: as long as it ends in a top-level domain."""
    stop = min(hi, at + 256)
    p = at + 1
    best = -1
    last = bits = 0
    while True:
        e, a, found = _label(work, p, stop, classes, table, tlds)
        if e == p:
            break
        last = e
        if p > at + 1 and a > 0 and (reserved or not found & RESERVED):
            best, bits = a, found
        if e >= stop or work[e] != 0x2E:
            break
        p = e + 1
    if best < 0 or best >= hi:
        return best
    b = work[best]
    if b in (0x28, 0x5B):  # a call, unless it is what follows addresses: joe@mail.com(work)
        return best if bits & CALLED else -1
    if b == 0x2E and best < last:  # the next sentence, but no attribute: x@a.co.shape
        b = work[best + 1]
        return best if b >= 0x80 or classes[b] & UPPER else -1
    if b == 0x3A and best + 1 < hi and (work[best + 1] == 0x2F or work[best + 1] == 0x7E):
        return -1  # a path there: me@host.com:/srv
    return best


@njit(cache=True, nogil=True)
def _email(work, at, lo, hi, tables, reserved):
    classes, table, tlds, kept, shells = tables
    s, free = _local(work, at, lo, classes, table)
    if s < 0 or (free and (at + 1 >= hi or work[at + 1] < 0x80)):
        return -1, -1
    e = _host(work, at, hi, classes, table, tlds, reserved)
    if e < 0 or (not reserved and _ends(work, at, e, kept) >= 0):
        return -1, -1
    for t in range(e - 1, at, -1):  # `q@k.mT` is code
        if work[t] == 0x2E:
            if classes[work[e - 1]] & UPPER and work[t + 1] & 0x20 and work[t + 1] < 0x80:
                return -1, -1
            break
    if at - s == 3 and work[s] == 0x67 and work[s + 1] == 0x69 and work[s + 2] == 0x74:
        return -1, -1  # git@host
    return (-1, -1) if _ends(work, lo, s, shells) >= 0 else (s, e)


@njit(cache=True, nogil=True)
def find(work, places, ats, reserved, tables, out):
    """Find addresses at `ats` int64, where an `@` stands; the rest as for `_kernels_pii.find`.

    `tables`: classes of bytes and of characters, top-level domains (slots uint64, bits uint8),
    words that a host or what stands before an address ends with.
    """
    rows, starts, lengths, kinds = out
    offsets, todo = places
    n = k = 0
    for r in range(len(offsets) - 1):
        lo, hi = offsets[r], offsets[r + 1]
        while k < len(ats) and ats[k] < hi:
            at = ats[k]
            s, e = -1, -1
            if todo[r] and work[at] == 0x40:
                s, e = _email(work, at, lo, hi, tables, reserved)
            if e < 0:
                k += 1
                continue
            if n < len(rows):
                rows[n], starts[n], lengths[n], kinds[n] = r, s - lo, e - s, EMAIL
            n += 1
            work[s:e] = GONE
            while k > 0 and ats[k - 1] >= max(lo, s - REACH):
                k -= 1
    return n
