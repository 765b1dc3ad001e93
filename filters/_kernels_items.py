# mypy: ignore-errors
"""Kernels that find stretches of evaluation items in texts; `decontaminate.py` states the rules.

A token is a run of letters, digits and marks, ASCII in lower case; in scripts without spaces each
character is one. Soft hyphens, apostrophes inside a word, and hyphens at the end of a line where
the next begins with a small letter are passed over, full-width ASCII and the digits of all scripts
are ASCII, and `&eacute;`, `&#233;` and `&#xe9;` are what they stand for (the names of HTML 4,
`&apos;`, and the numbers that mean Windows' marks). A gram is `n` tokens in a row, as a polynomial
of their hashes modulo 2^64 that rolls on from token to token, so that a text is read once whatever
`n` is. Grams are first asked of a bitmap: most are in no item, and it stays in the cache where the
table does not.
"""

from __future__ import annotations

from html.entities import name2codepoint

import numpy as np
from numba import njit

from ._kernels_common import MARK, NUMBER, UNSPACED, _decode, _mix

COMMON = "60450845"  # version of _kernels_common

SOFT_HYPHEN, FULL_WIDTH = 0xAD, 0xFEE0  # the latter less than the ASCII character it is of
BASE = np.uint64(0x9E3779B97F4A7C15)
_NAMED = sorted((int.from_bytes(n.encode()), c) for n, c in {**name2codepoint, "apos": 39}.items())
NAMES = np.array([name for name, _ in _NAMED], np.uint64)  # eight letters at most
NAMED = np.array([code for _, code in _NAMED], np.int64)
WINDOWS = np.array([*map(ord, bytes(range(128, 160)).decode("cp1252", "replace"))], np.int64)
# Zeros of the scripts that have digits in a row (Nd of Unicode 14.0), but for ASCII and full width
_ZEROS = (
    "660 6f0 7c0 966 9e6 a66 ae6 b66 be6 c66 ce6 d66 de6 e50 ed0 f20 1040 1090 17e0 1810 1946 "
    "19d0 1a80 1a90 1b50 1bb0 1c40 1c50 a620 a8d0 a900 a9d0 a9f0 aa50 abf0 104a0 10d30 11066 "
    "110f0 11136 111d0 112f0 11450 114d0 11650 116c0 11730 118e0 11950 11c50 11d50 11da0 "
    "16a60 16ac0 16b50 1d7ce 1d7d8 1d7e2 1d7ec 1d7f6 1e140 1e2f0 1e950 1fbf0 "
)
ZEROS = np.array([int(zero, 16) for zero in _ZEROS.split()], np.int64)
AGAIN = 64  # tokens within which a gram that comes again is not told again


@njit(cache=True, nogil=True)
def _entity(data, i, end):
    """Code point and size of the character reference at `i`, an `&`; size 0: there is none."""
    p = i + 1
    if p >= end or data[p] != 0x23:
        name = np.uint64(0)
        while p < end and p - i <= 8 and (0x30 <= data[p] <= 0x39 or 0x61 <= data[p] | 32 <= 0x7A):
            name = name << np.uint64(8) | np.uint64(data[p])
            p += 1
        at = np.searchsorted(NAMES, name)
        good = p < end and data[p] == 0x3B and at < len(NAMES) and NAMES[at] == name
        return (NAMED[at], p + 1 - i) if good else (0, 0)
    p += 1
    hexes = p < end and data[p] | 32 == 0x78
    p += hexes
    start = p
    code = np.int64(0)
    while p < end and p - start < 7:
        b = np.int64(data[p])
        if 0x30 <= b <= 0x39:
            digit = b - 0x30
        elif hexes and 0x61 <= b | 32 <= 0x66:
            digit = (b | 32) - 0x57
        else:
            break
        code = code * (16 if hexes else 10) + digit
        p += 1
    if p == start or p >= end or data[p] != 0x3B or code > 0x10FFFF or 0xD800 <= code < 0xE000:
        return 0, 0
    return (WINDOWS[code - 128] if 128 <= code < 160 else code), p + 1 - i


@njit(cache=True, nogil=True)
def _char(data, i, end):
    """As `_decode`, and a character reference is what it stands for."""
    if data[i] == 0x26:
        cp, size = _entity(data, i, end)
        if size > 0:
            return np.int64(cp), size
    return _decode(data, i, end)


@njit(cache=True, nogil=True)
def _goes_on(data, i, end, table):
    """Whether a word that an apostrophe before `i` stands in goes on there."""
    if i >= end:
        return False
    cp, _ = _char(data, i, end)
    return table[cp] >= MARK and table[cp] != UNSPACED


@njit(cache=True, nogil=True)
def _broken(data, i, end, table):
    """Where a word goes on whose hyphen ends at `i`, the end of a line; -1 where it does not."""
    p = i + 1 if i < end and data[i] == 0x0D else i
    if p >= end or data[p] != 0x0A:
        return -1
    p += 1
    while p < end and p - i < 10 and (data[p] == 0x20 or data[p] == 0x09):
        p += 1
    if p >= end or data[p] < 0x61 or 0x7A < data[p] < 0x80:
        return -1  # no letter, or a capital: a list
    return p if data[p] < 0x80 or _goes_on(data, p, end, table) else -1


@njit(cache=True, nogil=True)
def _hashed(h, cp):
    """The hash `h` of a token with the bytes of `cp` after it; ASCII in lower case."""
    if cp < 0x80:
        return (h ^ np.uint64(cp + 32 if 0x41 <= cp <= 0x5A else cp)) * np.uint64(0x100000001B3)
    more = 1 if cp < 0x800 else 2 if cp < 0x10000 else 3
    lead = (0xC0, 0xE0, 0xF0)[more - 1] | cp >> 6 * more
    h = (h ^ np.uint64(lead)) * np.uint64(0x100000001B3)
    for t in range(more - 1, -1, -1):
        h = (h ^ np.uint64(0x80 | (cp >> 6 * t) & 0x3F)) * np.uint64(0x100000001B3)
    return h


@njit(cache=True, nogil=True)
def _value_of_digit(cp):
    """What digit of a script beyond ASCII `cp` is, or -1."""
    at = np.searchsorted(ZEROS, cp, side="right") - 1
    return cp - ZEROS[at] if at >= 0 and cp - ZEROS[at] < 10 else -1


@njit(cache=True, nogil=True, forceinline=True)
def _token(data, i, end, table):
    """The next token from `i` on: start, end, hash, and whether its script has no spaces."""
    kind = 0
    while i < end:
        if data[i] < 0x80 and data[i] != 0x26:
            kind = table[data[i]]
            size = 1
        else:
            cp, size = _char(data, i, end)
            kind = table[cp]
        if kind >= MARK:
            break
        i += size
    start = i
    free = kind == UNSPACED
    h = np.uint64(0xCBF29CE484222325)
    while i < end:
        if data[i] < 0x80 and data[i] != 0x26:  # most bytes: nothing is decoded
            kind = table[data[i]]
            if data[i] == 0x27 and i > start and not free and _goes_on(data, i + 1, end, table):
                i += 1
                continue
            if kind < MARK or (free and i > start):
                at = _broken(data, i + 1, end, table) if data[i] == 0x2D and not free else -1
                if at < 0 or i == start:
                    break
                i = at
                continue
            b = np.uint64(data[i])
            if np.uint64(0x41) <= b <= np.uint64(0x5A):
                b += np.uint64(32)
            h = (h ^ b) * np.uint64(0x100000001B3)
            i += 1
            continue
        cp, size = _char(data, i, end)
        kind = table[cp]
        if cp in (SOFT_HYPHEN, 0x2010) and i > start:
            at = _broken(data, i + size, end, table) if not free else -1
            if at >= 0 or cp == SOFT_HYPHEN:
                i = at if at >= 0 else i + size
                continue
        quote = cp in (0x27, 0x2019, 0xFF07) and i > start and not free
        if quote and _goes_on(data, i + size, end, table):
            i += size
            continue
        if kind < MARK:
            break
        if i > start and kind != MARK and (free or kind == UNSPACED):
            break
        if FULL_WIDTH < cp <= FULL_WIDTH + 0x7E:  # as the ASCII character
            h = _hashed(h, cp - FULL_WIDTH)
        elif kind == NUMBER and _value_of_digit(cp) >= 0:
            h = _hashed(h, 0x30 + _value_of_digit(cp))
        elif data[i] == 0x26:
            h = _hashed(h, cp)
        else:
            for t in range(i, i + size):
                h = (h ^ np.uint64(data[t])) * np.uint64(0x100000001B3)
        i += size
    return start, i, _mix(h), free


@njit(cache=True, nogil=True)
def tokens(data, offsets, table, out, free, ends, places):
    """Hashes uint64 of all tokens, which are space-free, and int64[rows + 1] ends by row.

    `places` int64[tokens, 2], or of no rows where nobody asks: first and last byte in `data`.
    """
    n = 0
    ends[0] = 0
    for r in range(len(offsets) - 1):
        i, end = offsets[r], offsets[r + 1]
        while True:
            start, i, h, alone = _token(data, i, end, table)
            if start == i:
                break
            out[n], free[n] = h, alone
            if len(places):
                places[n, 0], places[n, 1] = start, i
            n += 1
        ends[r + 1] = n
    return n


@njit(cache=True, nogil=True)
def grams(hashes, ends, n, out):
    """At each token the hash of the gram that starts there, 0 where its row has no `n` more."""
    for r in range(len(ends) - 1):
        for at in range(ends[r], ends[r + 1]):
            out[at] = 0
            if at + n <= ends[r + 1]:
                h = np.uint64(0)
                for t in range(n):
                    h = h * BASE + hashes[at + t]
                out[at] = _mix(h) | np.uint64(1)


@njit(cache=True, nogil=True)
def enter(known, used, bitmap, slots, numbers):
    """Enter the grams `known` uint64 that are `used` into an empty index; see `scan`."""
    mask = np.uint64(len(slots) - 1)
    bits = np.uint64(len(bitmap) * 64 - 1)
    for number in range(len(known)):
        if not used[number]:
            continue
        gram = known[number]
        bit = (gram >> np.uint64(1)) & bits
        bitmap[bit >> np.uint64(6)] |= np.uint64(1) << (bit & np.uint64(63))
        at = (gram >> np.uint64(8)) & mask
        while slots[at] != 0:
            at = (at + np.uint64(1)) & mask
        slots[at], numbers[at] = gram, number


@njit(cache=True, nogil=True)
def scan(data, offsets, table, n, index, last, again, out):
    """Grams of the texts that stand in items, in order; how many there are.

    `index`: bitmap uint64, slots uint64 (0: free) and the gram of each int32. `last` int64[grams],
    negative at first: where a gram was seen; it is told once within `again` tokens. `out`: row
    int64, token int64, gram int32, first and last byte int64 in the row; more hits than `out`
    holds: call again with a fresh `last`.
    """
    bitmap, slots, numbers = index
    rows, places, found, starts, stops = out
    mask = np.uint64(len(slots) - 1)
    bits = np.uint64(len(bitmap) * 64 - 1)
    power = np.uint64(1)
    for _ in range(n):
        power *= BASE
    ring = np.zeros(n, np.uint64)
    begin = np.zeros(n, np.int64)
    hits = 0
    count = np.int64(0)  # tokens of all rows, with a gap between rows
    for r in range(len(offsets) - 1):
        i, end = offsets[r], offsets[r + 1]
        h = np.uint64(0)
        ring[:] = 0
        seen = 0
        slot = 0
        count += again
        while True:
            start, i, key, _ = _token(data, i, end, table)
            if start == i:
                break
            h = h * BASE + key - ring[slot] * power
            ring[slot] = key
            begin[slot] = start
            slot = slot + 1 if slot + 1 < n else 0
            seen += 1
            count += 1
            if seen < n:
                continue
            gram = _mix(h) | np.uint64(1)
            bit = (gram >> np.uint64(1)) & bits
            if not (bitmap[bit >> np.uint64(6)] >> (bit & np.uint64(63))) & np.uint64(1):
                continue
            at = (gram >> np.uint64(8)) & mask
            while slots[at] != 0 and slots[at] != gram:
                at = (at + np.uint64(1)) & mask
            if slots[at] == 0:
                continue
            number = numbers[at]
            if last[number] >= 0 and count - last[number] < again:
                continue
            last[number] = count
            if hits < len(rows):
                rows[hits], places[hits], found[hits] = r, seen - n, number
                starts[hits], stops[hits] = begin[slot] - offsets[r], i - offsets[r]
            hits += 1
    return hits


@njit(cache=True, nogil=True)
def judge(groups, hits, items, counts, out):
    """For each group of hits (one row, one item, by place) its best window.

    `groups` int64[g + 1] bounds; `hits`: item int32, local int32 (the gram's number in its item),
    token, first and last byte int64; `items`: tokens int64, needed int64 (thousandths), weights and
    own (flat, by `bases`), totals of both. `out` int64[g, 4]: least of the two shares in
    thousandths where it is enough (else 0), own grams there, first and last byte.
    """
    which, local, places, starts, stops = hits
    sizes, needed, bases, weights, own, total_weight, total_own = items
    for g in range(len(groups) - 1):
        a, z = groups[g], groups[g + 1]
        out[g] = 0
        k = which[a]
        need = needed[k]
        if (z - a) * 1000 < need * total_own[k]:
            continue
        base = bases[k]
        reach = 2 * sizes[k] + 8 + AGAIN
        counts[: bases[k + 1] - base] = 0
        weight = np.int64(0)
        mine = np.int64(0)
        left = a
        best = np.int64(-1)
        for right in range(a, z):
            at = local[right]
            if counts[at] == 0:
                weight += weights[base + at]
                mine += own[base + at]
            counts[at] += 1
            while places[right] - places[left] > reach:
                at = local[left]
                counts[at] -= 1
                if counts[at] == 0:
                    weight -= weights[base + at]
                    mine -= own[base + at]
                left += 1
            if mine * 1000 < need * total_own[k] or weight * 1000 < need * total_weight[k]:
                continue
            if weight > best:
                best = weight
                share = min(mine * 1000 // total_own[k], weight * 1000 // total_weight[k])
                out[g, 0], out[g, 1] = share, mine
                out[g, 2], out[g, 3] = starts[left], stops[right]


@njit(cache=True, nogil=True)
def stretches(groups, hits, items, counts, where, out):
    """Every window of each group that holds its item, one after the other; how many.

    Arguments as for `judge`, which found each of the groups good. A window ends before a gram that
    it holds comes again an item's length further, or lies out of reach: another occurrence. Hits at
    its ends that others in it repeat are not of it. `out` int64[hits, 3]: group, first and last
    byte.
    """
    which, local, places, starts, stops = hits
    sizes, needed, bases, weights, own, total_weight, total_own = items
    told = 0
    for g in range(len(groups)):
        a, z = groups[g]
        k = which[a]
        need, base, size = needed[k], bases[k], sizes[k]
        reach = 2 * size + 8 + AGAIN
        counts[: bases[k + 1] - base] = 0
        weight = np.int64(0)
        mine = np.int64(0)
        left = a
        for right in range(a, z + 1):
            last = right == z
            good = mine * 1000 >= need * total_own[k] and weight * 1000 >= need * total_weight[k]
            if good and not last:
                at = local[right]
                again = counts[at] > 0 and places[right] - where[at] >= size
                last = again or places[right] - places[left] > reach
            if good and last:
                end = right - 1
                while places[end] - places[left] > size and counts[local[left]] > 1:
                    counts[local[left]] -= 1
                    left += 1
                while places[end] - places[left] > size and counts[local[end]] > 1:
                    counts[local[end]] -= 1
                    end -= 1
                out[told] = g, starts[left], stops[end]
                told += 1
                counts[: bases[k + 1] - base] = 0
                weight, mine, left = np.int64(0), np.int64(0), right
            if right == z:
                break
            while places[right] - places[left] > reach:
                at = local[left]
                counts[at] -= 1
                if counts[at] == 0:
                    weight -= weights[base + at]
                    mine -= own[base + at]
                left += 1
            at = local[right]
            if counts[at] == 0:
                weight += weights[base + at]
                mine += own[base + at]
            counts[at] += 1
            where[at] = places[right]
    return told
