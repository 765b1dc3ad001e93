# mypy: ignore-errors
"""Kernels that fold what stands for ASCII, and find e-mail addresses; `pii.py` states the rules.

Folding puts one ASCII byte for each full-width character, digit of another script, dash and space
that is written instead of the ASCII one, so that all rules that come after see ASCII alone. Where
bytes went is told, for masks go into the text as it was.

Addresses are looked for at each `@`, over `work`, the folded copy; what is found is overwritten
with a byte that belongs to nothing, as the mask does in the text, and what stands before is tried
again.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ._kernels_common import _decode, _ends

COMMON = "d9947174"  # version of _kernels_common

EMAIL = 0  # a kind; the others follow in `_kernels_pii`
REACH = 320  # bytes: the longest address
GONE = 1  # what a masked byte is in `work`
# Bits of `classes`, by byte
ALNUM, LOCAL, UPPER, LETTER = 1, 4, 16, 32
# Classes of `_characters`: MARK, NUMBER, LETTER (of other scripts), LATIN, UNSPACED
WORDLIKE, OTHER, LATIN, SPACE_FREE = 5, 7, 8, 9
CALLED, RESERVED = 2, 4  # bits of a top-level domain: usual in addresses; kept for examples


@njit(cache=True, nogil=True)
def fold(data, offsets, stands, out, bounds, marks):
    """Write the texts folded to `out` uint8, and int64[rows + 1] bounds; how many were folded.

    `stands`: pairs of bytes that what is folded begins with, uint8[65536], and the byte for a code
    point below 65,536, or 0. `marks` int64[folded, 2]: from which byte of `out` on how many bytes
    more stood before; more folded than it holds: call again.
    """
    pairs, ascii_of = stands
    one, eight = np.uint64(1), np.uint64(8)  # unsigned: Numba asks of other places if they wrap
    n = np.uint64(0)
    folded = shift = 0
    bounds[0] = 0
    for r in range(len(offsets) - 1):
        i, end = np.uint64(offsets[r]), np.uint64(offsets[r + 1])
        while i < end:
            b = np.uint64(data[i])
            if b >= 0xC2 and i + one < end and pairs[b << eight | np.uint64(data[i + one])]:
                cp, size = _decode(data, np.int64(i), np.int64(end))
                if size > 1 and ascii_of[cp]:
                    out[n] = ascii_of[cp]
                    n += one
                    i += np.uint64(size)
                    shift += size - 1
                    if folded < len(marks):
                        marks[folded, 0], marks[folded, 1] = n, shift
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
            if s == at and kind == SPACE_FREE:
                free = True
            if kind < WORDLIKE or (kind == SPACE_FREE) != free:
                break
        elif free or not classes[work[s - 1]] & LOCAL:
            break
        elif classes[work[s - 1]] & LETTER:
            kind = LATIN
        if kind in (OTHER, LATIN):
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
    slots, bits = tlds
    h = np.uint64(0xCBF29CE484222325)
    for t in range(i, end):
        b = np.uint64(work[t])
        if np.uint64(0x41) <= b <= np.uint64(0x5A):
            b += np.uint64(32)
        h = (h ^ b) * np.uint64(0x100000001B3)
    h |= np.uint64(1)
    mask = np.uint64(len(slots) - 1)
    at = (h >> np.uint64(32)) & mask
    while slots[at] != 0:
        if slots[at] == h:
            return bits[at]
        at = (at + np.uint64(1)) & mask
    return 0


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
            inside &= not foreign and (coded or classes[work[e]] & LETTER != 0)
        else:
            cp, size = _decode(work, e, hi)
            if table[cp] < WORDLIKE or (e == i and table[cp] == WORDLIKE):
                break
            free |= e == i and table[cp] == SPACE_FREE
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
