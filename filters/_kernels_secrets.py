# mypy: ignore-errors
"""One kernel that finds keys and secrets in bytes; `pii.py` states the rules.

It is like that of `_kernels_pii.py`, and goes first: an address in a secret is the secret's. A
table of byte pairs says where anything may start, and of which group of forms a key may be there. A
private key is read no further than the next five dashes, a key in pieces once for each of these,
all else up to `SHORT` bytes, so that no text is quadratic. What is found is overwritten in `work`,
a copy; then the unbroken bytes before it are tried again, since a key that touched it ends there
now.
"""

# ruff: noqa: PLR1714 - Numba compiles chains of comparisons to less

from __future__ import annotations

from numba import njit

from ._kernels_common import ALNUM, BASE64, DIGIT, GONE, HEX, LOCAL, VALUE, _ends, _word

COMMON = "60450845"  # version of _kernels_common

KEY, PRIVATE_KEY, SECRET = range(6, 9)  # kinds; those of personal data come before
REACH = 4200  # bytes: the longest key
SHORT = 260  # bytes: the longest of one piece, and the longest secret
PIECES = 4  # runs of dots that the longest key ends behind, and one
NEAR = 128  # bytes: the longest name with its type and the spaces around `=`
TOUCHED = LOCAL | BASE64  # what a key or a secret without quotes may end with
LOOSE = (0x20, 0x24, 0x28, 0x29, 0x2C, 0x3B, 0x3C, 0x3E, 0x7B, 0x7C, 0x7D)  # code has ` $(),;<>{|}`
JOINS = (0x26, 0x28, 0x29, 0x2B, 0x2C, 0x2E, 0x3B)  # what stands before and after quotes: &()+,.;
AFTER = (0x22, 0x26, 0x27, 0x29, 0x2C, 0x3B, 0x3C, 0x5C, 0x5D, 0x60, 0x7C, 0x7D)  # "&'),;<\\]`|}


@njit(cache=True, nogil=True, forceinline=True)
def _dashes(work, p, hi):
    """Whether five dashes start at `p`: they begin a private key and are part of no other."""
    return (
        work[p] == 0x2D
        and p + 5 <= hi
        and work[p + 1] == work[p + 2] == work[p + 3] == work[p + 4] == 0x2D
    )


@njit(cache=True, nogil=True)
def _key(work, i, hi, keys, group):
    """End of a key of a known form of the group at `i`, or -1; and as `_dotted` tells it."""
    text, bounds, forms, sets, example, groups = keys
    again = i
    for k in range(groups[group], groups[group + 1]):
        size = bounds[k + 1] - bounds[k]
        if i + size > hi:
            continue
        same = True
        for t in range(size):
            if work[i + t] != text[bounds[k] + t]:
                same = False
                break
        if not same:
            continue
        least, most, kind, dots = forms[k]
        p = i + size
        digits = 0
        if dots:
            p, again = _dotted(work, i, p, hi, (most, dots), sets[kind])
            digits = p
        else:
            while p < hi and p - i - size <= most and sets[kind, work[p]]:
                if _dashes(work, p, hi):
                    break
                digits += 0x30 <= work[p] <= 0x39
                p += 1
        if least <= p - i - size <= most and digits > 0 and _ends(work, i, p, example) < 0:
            return p, again
    return -1, again


@njit(cache=True, nogil=True)
def _dotted(work, i, s, hi, form, letters):
    """End of a key in pieces that dots part, its prefix from `i` to `s`; or -1.

    And before which place no other of its form starts: those before its first dot have its dots and
    its end; before a place from which the end is near enough all are too long as well. Read are no
    more than `dots` + 2 pieces, or twice the longest; three dots in a row end it.
    """
    most, dots = form
    stop = min(hi, s + 2 * most)
    found = digits = 0
    first = -1
    p = s
    while p < stop and letters[work[p]] and not _dashes(work, p, hi):
        if work[p] == 0x2E:
            if p + 2 < hi and work[p + 1] == 0x2E and work[p + 2] == 0x2E:
                break
            first = p if first < 0 else first
            found += 1
        elif found > dots:
            return -1, first
        digits += 0x30 <= work[p] <= 0x39
        p += 1
    again = first if first >= 0 else p
    while p > s and work[p - 1] == 0x2E:
        p -= 1
        found -= 1
    if p - s > most:
        return -1, i + p - s - most
    return (p if digits and found == dots else -1), again


@njit(cache=True, nogil=True)
def _block(work, i, hi, classes, words):
    """End of a private key: of its END line, or of its base64 where that is cut off; -1 for none.

    Between lines of base64 may stand what quotes or joins them; before the first also headers.
    """
    begin, close, stop = words
    p = i
    while p < hi and p - i < 64 and work[p] != 0x0A:
        p += 1
        if p - i > 20 and _ends(work, i, p, close) >= 0:
            break
    if _ends(work, i, min(i + 11, hi), begin) < 0 or _ends(work, i, p, close) < 0:
        return -1
    letters = longest = 0
    last = p
    while p < hi:
        b = work[p]
        if classes[b] & BASE64:
            q = p
            while p < hi and classes[work[p]] & BASE64:
                p += 1
            if p - q >= 16 or (p == hi and letters >= 64):
                letters += p - q
                longest = max(longest, p - q)
                last = p
            continue
        if _dashes(work, p, hi):
            if _ends(work, p, min(p + 9, hi), stop) < 0:
                break
            e = p + 9
            while e < hi and e - p < 64:
                e += 1
                if e - p > 20 and _ends(work, p, e, close) >= 0:
                    return e if letters >= 64 else -1
            break
        if b == GONE or b == 0x3C or b == 0x7C or p - last >= (64 if letters else 512):
            break
        p += 1
    return last if letters >= 64 and longest >= 40 else -1


@njit(cache=True, nogil=True)
def _blank(b):
    return b == 0x20 or b == 0x09


@njit(cache=True, nogil=True)
def _back(work, k, lo):
    """Before spaces and one quote, a backslash before it or not, that end at `k`."""
    at = k
    while k > lo and at - k < 32 and _blank(work[k - 1]):
        k -= 1
    if k > lo and work[k - 1] in (0x22, 0x27, 0x60):
        k -= 2 if k - 1 > lo and work[k - 2] == 0x5C else 1
    return k


@njit(cache=True, nogil=True, forceinline=True)
def _last(work, k, lo, lasts):
    """1 where the two bytes before `k` end a name or a tail, 2 where they end a type, else 0."""
    return lasts[(work[k - 2] | 32) << 8 | work[k - 1] | 32] if k - 2 >= lo else 0


@njit(cache=True, nogil=True)
def _named(work, at, lo, classes, named):
    """Whether the name of a secret stands before `at`: `token`, `token_dev`, `token: str`."""
    names, tails, _, lasts, _ = named
    k = _back(work, at, lo)
    last = _last(work, k, lo, lasts)
    if last == 0 or (last == 2 and work[at] != 0x3D):
        return False
    for _ in range(2):
        if _ends(work, lo, k, names) >= 0:
            return True
        t = _ends(work, lo, k, tails)
        if t >= 0 and _ends(work, lo, k - (tails[1][t + 1] - tails[1][t]), names) >= 0:
            return True
        if work[at] != 0x3D:
            return False
        q = k
        while (
            q > lo
            and k - q < 24
            and (classes[work[q - 1]] & ALNUM or work[q - 1] in (0x2E, 0x5B, 0x5D, 0x5F))
        ):
            q -= 1
        q = _back(work, q, lo) if q < k else lo
        if q <= lo or work[q - 1] != 0x3A:
            return False
        k = _back(work, q - 1, lo)  # `token: str = ...`
    return False


@njit(cache=True, nogil=True)
def _template(work, s, e, classes, marks):
    """Whether a value is code or to be filled in: `+f(x)+`, `${X}`, `{x}`, `<x>`, `a-z`."""
    a, z = s, e
    while a < z and work[a] == 0x20:
        a += 1
    while z > a and work[z - 1] == 0x20:
        z -= 1
    if a == z or (work[a] in JOINS and work[z - 1] in JOINS):
        return True
    for t in range(s, e):
        if _ends(work, s, t + 1, marks) >= 0:
            return True
        close = 0
        if work[t] == 0x3C or work[t] == 0x7B or work[t] == 0x7C:
            close = work[t] if work[t] == 0x7C else work[t] + 2
        q = t + 1
        while close and (
            _word(work, q, s, e, classes) or (q < e and work[q] in (0x20, 0x2D, 0x2E))
        ):
            q += 1
        if close and q < e and work[q] == close:
            return True
    return False


@njit(cache=True, nogil=True)
def _secret(work, at, hi, classes, named, shares, counts):
    """Start and end of the value that is given at `at` to the name before it; or -1, -1."""
    marks = named[4]
    p = at + 1
    while p < hi and p - at < 3 and (work[p] == 0x3D or work[p] == 0x3E):
        p += 1
    q = p
    while p < hi and p - q < 32 and _blank(work[p]):
        p += 1
    nested = p + 1 < hi and work[p] == 0x5C and work[p + 1] in (0x22, 0x27)
    p += nested
    quote = work[p] if p < hi and work[p] in (0x22, 0x27, 0x60) else 0
    if quote:
        p += 1
    for size in (6, 7):  # `Authorization: Bearer ...`
        if p + size <= hi and _ends(work, p, p + size, named[2]) >= 0:
            p += size
            break
    s = p
    digits = letters = hexes = changes = mixed = before = 0
    upper = turns = last = small = longest = loose = 0
    counts[:] = 0
    while p < hi and p - s < 256 and work[p] != quote and classes[work[p]] & VALUE:
        b = work[p]
        if not quote and not (classes[b] & BASE64 or b == 0x2D or b == 0x5F):
            break
        if _dashes(work, p, hi) or (nested and b == 0x5C):
            break
        if b == 0x2F and p > s + 1 and work[p - 1] == 0x2F and work[p - 2] == 0x3A:
            return -1, -1  # an address
        counts[b] += 1
        kind = 0
        if classes[b] & DIGIT:
            kind = 1
        elif classes[b] & ALNUM:
            kind = 2 if b & 0x20 else 3
        digits += kind == 1
        letters += kind > 1
        hexes += classes[b] & HEX != 0
        if kind and before and kind != before:
            changes += 1
            mixed += kind == 1 or before == 1
        before = kind
        upper += kind == 3
        turns += p > s and kind != last
        last = kind
        small = small + 1 if kind == 2 else 0
        longest = max(longest, small)
        loose += kind == 0 and b in LOOSE
        p += 1
        if quote and b == 0x5C and p < hi and (work[p] == quote or work[p] == 0x5C):
            counts[work[p]] += 1  # escaped
            p += 1
    n = p - s
    if n < 16 or n > 255 or digits == 0 or letters == 0:
        return -1, -1
    random = mixed >= 3 or 2 * changes >= n  # or words with numbers: a name, a placeholder
    if loose or not random:
        many = counts[0x20] + counts[0x2C] + counts[0x3B]  # in a sentence, in a list
        if not quote or longest > 4 or 10 * many > n:
            return -1, -1
        few = min(upper, letters - upper, digits, n - digits - letters) < 2
        if not random and (few or 2 * turns < n):
            return -1, -1
        if _template(work, s, p, classes, marks):
            return -1, -1
    if quote:
        if nested and p < hi and work[p] == 0x5C:
            p += 1
        elif nested:
            return -1, -1
        if p >= hi or work[p] != quote:
            return -1, -1
        p -= nested
    elif n < 20 or (p < hi and 0x21 <= work[p] < 0x80 and work[p] not in AFTER):
        return -1, -1
    bits = shares[n]
    for b in range(0x20, 0x7F):
        bits -= shares[counts[b]]
    return (s, p) if bits * 2 >= (6 if hexes == n else 7) * 64 * n else (-1, -1)


@njit(cache=True, nogil=True)
def _at(work, i, lo, hi, on, tables, counts, group):
    """What is found at the pair of bytes at `i` that may start it: (start, end, kind) or -1.

    Where it is none: `i`, or before which place there is no other key of its form.
    """
    classes, _, named, block, keys, shares = tables
    b = work[i]
    if b == 0x3A or b == 0x3D:
        if on[SECRET] and _named(work, i, lo, classes, named):
            s, e = _secret(work, i, hi, classes, named, shares, counts)
            return s, e, SECRET
    elif b == 0x2D:
        if on[PRIVATE_KEY]:
            return i, _block(work, i, hi, classes, block), PRIVATE_KEY
    elif on[KEY]:
        e, again = _key(work, i, hi, keys, group)
        return again if e < 0 else i, e, KEY
    return i, -1, 0


@njit(cache=True, nogil=True)
def find(work, places, may, on, tables, counts, out):
    """Find all in each row to do of `work`, a copy of the text; see `_kernels_pii.find`.

    `may` uint8[65536]: 1 where a pair of bytes may start something, 2 and more: a key of a group.
    """
    rows, starts, lengths, kinds = out
    offsets, todo = places
    classes, (lasts, thirds), letters = tables[0], tables[1], tables[4][3][3]
    n = 0
    for r in range(len(offsets) - 1):
        if not todo[r]:
            continue
        lo, hi = offsets[r], offsets[r + 1]
        i = barren = lo
        while i < hi:
            pair = work[i] << 8 | (work[i + 1] if i + 1 < hi else 0)
            group = may[pair]
            if not group:
                i += 1
                continue
            if group > 1 and (i + 2 >= hi or not thirds[group - 2, work[i + 2]]):
                i += 1
                continue
            word = _word(work, i - 1, lo, hi, classes)
            b = work[i]
            if b == 0x65 and i < barren:  # eyJ
                i += 1
                continue
            if b == 0x2D and (i + 5 >= hi or work[i + 5] | 32 != 0x62):  # no B after five dashes
                i += 1
                continue
            if word and (_last(work, i, lo, lasts) == 0 if b == 0x3A or b == 0x3D else b != 0x2D):
                i += 1  # most places; to ask here is to leave out a call
                continue
            s, e, kind = _at(work, i, lo, hi, on, tables, counts, group - 2)
            if e < 0:
                barren = s if b == 0x65 else barren
                i += 1
                continue
            if n < len(rows):
                rows[n], starts[n], lengths[n], kinds[n] = r, s - lo, e - s, kind
            n += 1
            work[s:e] = GONE
            i = s
            dots = 0
            while i > lo and s - i < REACH and 0x20 < work[i - 1] < 0x7F:
                if s - i > SHORT and (dots >= PIECES or not letters[work[i - 1]]):
                    break
                dots += work[i - 1] == 0x2E and work[i] != 0x2E
                i -= 1
            i = max(lo, i - NEAR)
            barren = lo
    return n
