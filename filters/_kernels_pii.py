# mypy: ignore-errors
"""One kernel that finds addresses of machines and numbers in bytes; `pii.py` states the rules.

A table of byte pairs says where anything may start, so that most bytes cost one look-up. Each rule
looks at no more than `REACH` bytes before or after such a place, so that no text is quadratic.

What is found is overwritten in `work`, a folded copy, with a byte that belongs to nothing, as the
mask does in the text; then the bytes before it are tried again, since a number that touched it
stands free now. So masking a masked text finds nothing.
"""

# ruff: noqa: PLR1714, SIM102 - Numba compiles chains of comparisons to less

from __future__ import annotations

from numba import njit

from ._kernels_common import _ends

COMMON = "d9947174"  # version of _kernels_common

IPV4, IPV6, PHONE, IBAN, CARD = range(1, 6)  # kinds; e-mail comes before, secrets follow
REACH = 320  # bytes
GONE = 1  # what a masked byte is in `work`
# Bits of `classes`, by byte
ALNUM, DIGIT, HEX, UPPER, LETTER = 1, 2, 8, 16, 32


@njit(cache=True, nogil=True, forceinline=True)
def _is(work, i, lo, hi, classes, bits):
    return lo <= i < hi and classes[work[i]] & bits != 0


@njit(cache=True, nogil=True, forceinline=True)
def _word(work, i, lo, hi, classes):
    """Whether a letter, digit or `_` stands at `i`."""
    return lo <= i < hi and (classes[work[i]] & ALNUM != 0 or work[i] == 0x5F)


@njit(cache=True, nogil=True)
def _after(work, i, lo, classes, words):
    """Number of the word before `i`, up to four of ` .:(#=` and a tab between; or -1.

    `lasts` uint8[65536]: pairs of bytes, ASCII in lower case, that words end with.
    """
    listed, lasts = words
    s = i
    while s > lo and i - s < 4 and work[s - 1] in (0x20, 0x2E, 0x3A, 0x28, 0x09, 0x23, 0x3D):
        s -= 1
    if s - 2 < lo or not lasts[(work[s - 2] | 32) << 8 | work[s - 1] | 32]:
        return -1
    k = _ends(work, lo, s, listed)
    if k < 0:
        return -1
    start = s - (listed[1][k + 1] - listed[1][k])
    letter = start > lo and work[start] < 0x80 and classes[work[start - 1]] & LETTER != 0
    if letter or (s - start == 2 and work[s - 2] == 0x70 and work[s - 1] == 0x48):
        return -1  # part of a word; `pH`
    return k


@njit(cache=True, nogil=True)
def _digits(work, i, hi, classes):
    """End of the digits that start at `i`, at most 20 of them."""
    e = i
    while e < hi and e - i < 20 and classes[work[e]] & DIGIT:
        e += 1
    return e


@njit(cache=True, nogil=True)
def _ipv4(work, i, lo, hi, classes, reserved, before):
    if _word(work, i - 1, lo, hi, classes) or (i > lo and work[i - 1] == 0x2E):
        return -1
    schemed = i > lo + 1 and work[i - 1] == 0x2F and work[i - 2] == 0x2F
    if i > lo and work[i - 1] == 0x2F and not schemed:
        return -1
    p = i
    parts = 0
    wide = schemed or (i > lo and work[i - 1] == 0x40)
    a = b = c = 0
    while True:
        e = _digits(work, p, hi, classes)
        if e == p or e - p > 3 or (e - p > 1 and work[p] == 0x30):
            return -1
        value = 0
        for t in range(p, e):
            value = value * 10 + (work[t] - 0x30)
        if value > 255:
            return -1
        wide |= e - p == 3
        if parts == 0:
            a = value
        elif parts == 1:
            b = value
        elif parts == 2:
            c = value
        parts += 1
        p = e
        if parts == 4:
            break
        if p >= hi or work[p] != 0x2E:
            return -1
        p += 1
    if _word(work, p, lo, hi, classes) or not wide:
        return -1
    if p < hi and work[p] == 0x2E and _is(work, p + 1, lo, hi, classes, ALNUM):
        return -1
    if _ends(work, lo, i, before) >= 0:
        return -1
    if reserved:
        return p
    if a == 0 or a == 10 or a == 127 or a >= 224 or (a == 169 and b == 254):
        return -1
    if (a == 172 and 16 <= b < 32) or (a == 192 and b == 168) or (a == 100 and 64 <= b < 128):
        return -1
    if (a == 192 and b == 0 and (c == 0 or c == 2)) or (a == 198 and (b == 18 or b == 19)):
        return -1
    if (a == 198 and b == 51 and c == 100) or (a == 203 and b == 0 and c == 113):
        return -1
    return p


@njit(cache=True, nogil=True)
def _ipv6(work, at, lo, hi, classes, reserved):
    """The address around the colon at `at`: global unicast, three groups or more."""
    s = at
    while s > lo and at - s < 46 and (classes[work[s - 1]] & HEX or work[s - 1] == 0x3A):
        s -= 1
    e = at
    while e < hi and e - s < 46 and (classes[work[e]] & HEX or work[e] == 0x3A):
        e += 1
    if e - s > 45 or _word(work, s - 1, lo, hi, classes) or _word(work, e, lo, hi, classes):
        return -1, -1
    while e > s and work[e - 1] == 0x3A and (e - 2 < s or work[e - 2] != 0x3A):
        e -= 1  # a colon after it
    groups = 0
    gap = 0
    run = 0
    first = 0
    second = 0
    p = s
    while p < e:
        if work[p] == 0x3A:
            if p + 1 < e and work[p + 1] == 0x3A:
                gap += 1
                p += 1
                if p + 1 < e and work[p + 1] == 0x3A:
                    return -1, -1
            elif run == 0:
                return -1, -1
            run = 0
            p += 1
            continue
        if run == 0:
            groups += 1
        run += 1
        if run > 4:
            return -1, -1
        b = work[p]
        value = b - 0x30 if b < 0x3A else (b | 32) - 0x57
        if groups == 1:
            first = first * 16 + value
        elif groups == 2:
            second = second * 16 + value
        p += 1
    if gap > 1 or groups < 3 or groups > 8 or (gap == 0 and groups != 8) or (gap and groups > 7):
        return -1, -1
    if first < 0x2000 or first >= 0x4000:
        return -1, -1
    if not reserved and first == 0x2001 and second == 0x0DB8:
        return -1, -1
    return s, e


@njit(cache=True, nogil=True)
def _luhn(number, n):
    total = 0
    for t in range(n):
        d = number[n - 1 - t]
        if t % 2:
            d *= 2
            if d > 9:
                d -= 9
        total += d
    return total % 10 == 0


@njit(cache=True, nogil=True)
def _issuer(number, n):
    """Whether an issuer gives out numbers of this beginning and length."""
    two = number[0] * 10 + number[1]
    three = two * 10 + number[2]
    four = three * 10 + number[3]
    if number[0] == 4:
        return n == 13 or n == 16 or n == 19
    if 51 <= two <= 55 or 2221 <= four <= 2720:
        return n == 16
    if two == 34 or two == 37:
        return n == 15
    if four == 6011 or 644 <= three <= 649 or two == 65 or 3528 <= four <= 3589 or two == 62:
        return n >= 16
    return n == 14 and (300 <= three <= 305 or two == 36 or two == 38)


@njit(cache=True, nogil=True)
def _card(work, i, lo, hi, classes, number, numbered):
    """End of a card number: 13 to 19 digits, 4-4-4-4 or 4-6-5; -1 for none."""
    if i > lo:
        b = work[i - 1]
        if _word(work, i - 1, lo, hi, classes) or b == 0x2E or b == 0x2C or b == 0x2D or b == 0x2F:
            return -1
        if b == 0x2B or b == 0x23 or b == 0x3D or b == 0x26 or b == 0x24 or b == 0x25:
            return -1
    e = _digits(work, i, hi, classes)
    if e - i == 4:
        if e >= hi or (work[e] != 0x20 and work[e] != 0x2D):
            return -1
        mark = work[e]
        f = _digits(work, e + 1, hi, classes)
        if f - e == 5:
            g = _digits(work, f + 1, hi, classes) if f < hi and work[f] == mark else -1
            if g - f != 5:
                return -1
            e = _digits(work, g + 1, hi, classes) if g < hi and work[g] == mark else -1
            if e - g != 5:
                return -1
        elif f - e == 7:
            e = _digits(work, f + 1, hi, classes) if f < hi and work[f] == mark else -1
            if e - f != 6:
                return -1
        else:
            return -1
    elif not 13 <= e - i <= 19:
        return -1
    if _word(work, e, lo, hi, classes):
        return -1
    if e < hi and (work[e] == 0x2D or work[e] == 0x2E or work[e] == 0x2C):
        if _is(work, e + 1, lo, hi, classes, DIGIT):
            return -1
    n = 0
    for t in range(i, e):
        if classes[work[t]] & DIGIT:
            number[n] = work[t] - 0x30
            n += 1
    good = _issuer(number, n) and _luhn(number, n)
    return e if good and _after(work, i, lo, classes, numbered) < 0 else -1


@njit(cache=True, nogil=True)
def _three(work, i, hi, classes):
    """Three digits of which the first is 2 to 9, and no fourth."""
    return (
        i + 3 <= hi
        and 0x32 <= work[i] <= 0x39
        and classes[work[i + 1]] & DIGIT != 0
        and classes[work[i + 2]] & DIGIT != 0
        and not (i + 3 < hi and classes[work[i + 3]] & DIGIT != 0)
    )


@njit(cache=True, nogil=True)
def _shape(work, p, hi, classes):
    """End of `(ddd) ddd-dddd`, `ddd-ddd-dddd` or with dots, a `1` before it or not; or -1."""
    if work[p] == 0x31 and p + 1 < hi and (work[p + 1] in (0x20, 0x2D, 0x2E)):
        p += 2
    if p < hi and work[p] == 0x28:
        if not _three(work, p + 1, hi, classes) or p + 4 >= hi or work[p + 4] != 0x29:
            return -1
        p += 5
        if p < hi and work[p] == 0x20:
            p += 1
    else:
        if not _three(work, p, hi, classes) or p + 3 >= hi or work[p + 3] not in (0x2D, 0x2E):
            return -1
        p += 4
    if not _three(work, p, hi, classes) or p + 3 >= hi or work[p + 3] not in (0x2D, 0x2E):
        return -1
    p += 4
    e = _digits(work, p, hi, classes)
    return e if e - p == 4 else -1


@njit(cache=True, nogil=True)
def _american(work, i, lo, hi, classes, numbered):
    """End of a number of that shape that is part of no longer one; or -1."""
    if i > lo:
        b = work[i - 1]
        if _word(work, i - 1, lo, hi, classes) or b == 0x2E or b == 0x2F:
            return -1
        if b == 0x2B or b == 0x23 or b == 0x3D or b == 0x26:
            return -1
        if b == 0x2D and _word(work, i - 2, lo, hi, classes):
            return -1
    e = _shape(work, i, hi, classes)
    if e < 0 or _word(work, e, lo, hi, classes):
        return -1
    if e < hi and (work[e] == 0x2D or work[e] == 0x2E) and _is(work, e + 1, lo, hi, classes, DIGIT):
        if work[e] == 0x2E or _shape(work, e + 1, hi, classes) < 0:  # or one after the other
            return -1
    return e if _after(work, i, lo, classes, numbered) < 0 else -1


@njit(cache=True, nogil=True)
def _number(work, i, lo, hi, classes, least, groups):
    """End of a telephone number whose first digit is at `i`, or -1, and how many groups it has.

    `groups` int64[16, 4]: digits, their value, bytes after, the mark among these.
    """
    p = i
    total = 0
    end = -1
    n = 0
    e = _digits(work, p, hi, classes)
    while total + e - p <= 15:
        total += e - p
        end = e
        value = 0
        for t in range(p, e):
            value = value * 10 + (work[t] - 0x30)
        q = e
        while q < hi and q - e < 3 and work[q] in (0x20, 0x28, 0x29, 0x2D, 0x2E, 0x2F):
            q += 1
        mark = e + 1 if q - e > 1 and work[e] == 0x20 else e  # ` - ` is a dash
        groups[n, 0], groups[n, 1] = e - p, value
        groups[n, 2], groups[n, 3] = q - e, work[mark] if q > e else 0
        n += 1
        if q == e or not _is(work, q, lo, hi, classes, DIGIT):
            break
        if total >= 10 and not (q - e == 1 and work[e] == 0x2D):
            break
        p, e = q, _digits(work, q, hi, classes)
    if end < 0 or total < least or _word(work, end, lo, hi, classes):
        return -1, 0
    return end, n


@njit(cache=True, nogil=True)
def _measured(groups, n):
    """Whether groups of digits are a date, years, hours, a decimal or a round number."""
    a, x, _, mark = groups[0]
    if n < 2:
        return False
    b, y, _, other = groups[1]
    if a == 1 and b <= 2 and mark == 0x2E:
        return True  # 7.35-7.45
    year = a == 4 and 1800 <= x < 2100
    if n == 2 and year and ((b == 4 and 1800 <= y < 2100) or (b == 2 and mark != 0x20)):
        return True  # 2015-2016, 2015/16
    zeros = 1
    while zeros < n and groups[zeros, 0] == 3 and groups[zeros, 1] == 0:
        zeros += 1
    if zeros == n and a <= 3 and x >= 10 ** (a - 1):
        return True  # 1 000 000
    if n == 3 and mark == other and mark != 0x20:
        c, z = groups[2, 0], groups[2, 1]
        if a <= 2 and b <= 2 and x <= 31 and y <= 31 and c == 4 and 1800 <= z < 2100:
            return True  # 12.05.2024
        if year and b <= 2 and y <= 12 and c <= 2 and z <= 31:
            return True  # 2024-05-12
    if n == 4 and mark == 0x2E and other == 0x2D and groups[2, 3] == 0x2E:
        hours = x <= 24 and groups[2, 1] <= 24 and y < 60 and groups[3, 1] < 60
        return hours and a <= 2 and b == 2 and groups[2, 0] <= 2 and groups[3, 0] == 2
    return False


@njit(cache=True, nogil=True)
def _phone(work, i, lo, hi, classes, words, groups):
    """End of a telephone number that starts at `i` with a digit, `+` or `(`; or -1."""
    labels, numbered, briefs = words
    if work[i] == 0x2B:
        if _word(work, i - 1, lo, hi, classes) or (i > lo and work[i - 1] == 0x2B):
            return -1
        if i + 1 >= hi or not 0x31 <= work[i + 1] <= 0x39:
            return -1
        e, n = _number(work, i + 1, lo, hi, classes, 8, groups)
        if e < 0 or n < 2 or groups[0, 2] != 1 or groups[0, 3] != 0x2E:
            return e
        decimal = n == 2 or (groups[1, 0] >= 4 and groups[1, 3] != 0x2E)  # +37.774929
        return -1 if decimal and _after(work, i, lo, classes, labels) < 0 else e
    e = _american(work, i, lo, hi, classes, numbered)
    if e >= 0:
        return e
    if _word(work, i - 1, lo, hi, classes):
        return -1
    first = i + 1 if work[i] == 0x28 else i
    if not _is(work, first, lo, hi, classes, DIGIT):
        return -1
    k = _after(work, i, lo, classes, labels)
    if k < 0:
        return -1
    e, n = _number(work, first, lo, hi, classes, 7 if briefs[k] else 6, groups)
    return -1 if e < 0 or _measured(groups, n) else e


@njit(cache=True, nogil=True)
def _iban(work, i, lo, hi, classes, lengths):
    if _word(work, i - 1, lo, hi, classes) or i + 4 > hi:
        return -1
    a, b = work[i] - 0x41, work[i + 1] - 0x41
    size = lengths[a * 26 + b]
    if not (classes[work[i + 2]] & DIGIT and classes[work[i + 3]] & DIGIT):
        return -1
    p = i + 4
    n = 4
    rest = 0
    while n < size:
        if p < hi and work[p] == 0x20:
            p += 1
        if p >= hi or not classes[work[p]] & (DIGIT | UPPER):
            return -1
        if classes[work[p]] & DIGIT:
            rest = (rest * 10 + (work[p] - 0x30)) % 97
        else:
            rest = (rest * 100 + (work[p] - 0x37)) % 97
        n += 1
        p += 1
    rest = (rest * 10000 + (a + 10) * 100 + b + 10) % 97
    rest = (rest * 100 + (work[i + 2] - 0x30) * 10 + (work[i + 3] - 0x30)) % 97
    return p if rest == 1 and not _word(work, p, lo, hi, classes) else -1


@njit(cache=True, nogil=True)
def _at(work, i, lo, hi, what, tables, scratch):
    """What is found at the pair of bytes at `i` that may start it: (start, end, kind) or -1."""
    classes, versions, phones, lengths = tables
    b = work[i]
    on, reserved = what
    if b == 0x3A:
        if on[IPV6]:
            s, e = _ipv6(work, i, lo, hi, classes, reserved)
            return s, e, IPV6
    elif classes[b] & UPPER:
        if on[IBAN]:
            return i, _iban(work, i, lo, hi, classes, lengths), IBAN
    else:
        if classes[b] & DIGIT:
            e = _ipv4(work, i, lo, hi, classes, reserved, versions) if on[IPV4] else -1
            if e >= 0:
                return i, e, IPV4
            e = _card(work, i, lo, hi, classes, scratch[0], phones[1]) if on[CARD] else -1
            if e >= 0:
                return i, e, CARD
        if on[PHONE]:
            return i, _phone(work, i, lo, hi, classes, phones, scratch[1]), PHONE
    return i, -1, 0


@njit(cache=True, nogil=True)
def find(work, places, may, what, tables, scratch, out):
    """Find all in each row to do of `work`, a copy of the text.

    `places`: offsets int64[rows + 1] and bool[rows], the rows to do. `may` uint8[65536]: pairs of
    bytes where something may start. `out`: rows, starts, lengths int64[n] and kinds uint8[n].
    Returns how many were found; more than `out` holds: call again.
    """
    rows, starts, lengths, kinds = out
    offsets, todo = places
    classes = tables[0]
    n = 0
    for r in range(len(offsets) - 1):
        if not todo[r]:
            continue
        lo, hi = offsets[r], offsets[r + 1]
        i = lo
        while i < hi:
            pair = work[i] << 8 | (work[i + 1] if i + 1 < hi else 0)
            if not may[pair]:
                i += 1
                continue
            if classes[work[i]] & ALNUM and _word(work, i - 1, lo, hi, classes):
                i += 1  # most digits; to ask here is to leave out a call
                continue
            s, e, kind = _at(work, i, lo, hi, what, tables, scratch)
            if e < 0:
                i += 1
                continue
            if n < len(rows):
                rows[n], starts[n], lengths[n], kinds[n] = r, s - lo, e - s, kind
            n += 1
            work[s:e] = GONE
            i = max(lo, s - REACH)
    return n
