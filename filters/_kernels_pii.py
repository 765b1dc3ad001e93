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

from ._kernels_common import (
    ALNUM,
    ALPHA,
    DIGIT,
    GONE,
    HEX,
    UPPER,
    _after,
    _bracket,
    _called,
    _ends,
    _gap,
    _is,
    _luhn,
    _measured,
    _numeral,
    _unit_at,
    _when,
    _word,
)

COMMON = "60450845"  # version of _kernels_common

IPV4, IPV6, PHONE, IBAN, CARD = range(1, 6)  # kinds; e-mail comes before, secrets follow
REACH = 320  # bytes


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
        e = _numeral(work, p, hi, classes)
        if e == p or e - p > 3 or (e - p > 1 and work[p] == 0x30):
            return -1
        value = 0
        for t in range(p, e):
            value = value * 10 + (work[t] - 0x30)
        if value > 255:
            return -1
        wide |= e - p == 3
        if parts < 3:
            a, b, c = b, c, value
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
    groups = gap = run = first = second = 0
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
def _card(work, i, lo, hi, classes, number):
    """End of a card number: 13 to 19 digits, 4-4-4-4 or 4-6-5; -1 for none."""
    if i > lo:
        b = work[i - 1]
        if _word(work, i - 1, lo, hi, classes) or b == 0x2E or b == 0x2C or b == 0x2F:
            return -1
        if b == 0x2B or b == 0x23 or b == 0x3D or b == 0x26 or b == 0x24 or b == 0x25:
            return -1
        if b == 0x2D and _word(work, i - 2, lo, hi, classes):
            return -1
    e = _numeral(work, i, hi, classes)
    if e - i == 4:
        if e >= hi or (work[e] != 0x20 and work[e] != 0x2D):
            return -1
        mark = work[e]
        f = _numeral(work, e + 1, hi, classes)
        if f - e == 5:
            g = _numeral(work, f + 1, hi, classes) if f < hi and work[f] == mark else -1
            if g - f != 5:
                return -1
            e = _numeral(work, g + 1, hi, classes) if g < hi and work[g] == mark else -1
            if e - g != 5:
                return -1
        elif f - e == 7:
            e = _numeral(work, f + 1, hi, classes) if f < hi and work[f] == mark else -1
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
    return e if _issuer(number, n) and _luhn(number, n) else -1


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
def _area(work, i, hi, classes):
    """Three digits that may be an area: no N11, N9X, 200 or 300 (400 is one of China)."""
    if not _three(work, i, hi, classes) or work[i + 1] == 0x39:
        return False
    if work[i + 1] == 0x31 and work[i + 2] == 0x31:
        return False
    return work[i] > 0x33 or work[i + 1] != 0x30 or work[i + 2] != 0x30


@njit(cache=True, nogil=True)
def _shape(work, p, hi, classes):
    """End of `(ddd) ddd-dddd`, `ddd-ddd-dddd` or with dots, a `1` before it or not; or -1."""
    if work[p] == 0x31 and p + 1 < hi and (work[p + 1] in (0x20, 0x2D, 0x2E)):
        p += 2
    if p < hi and work[p] == 0x28:
        if not _area(work, p + 1, hi, classes) or p + 4 >= hi or work[p + 4] != 0x29:
            return -1
        p += 5
        if p < hi and work[p] == 0x20:
            p += 1
    else:
        if not _area(work, p, hi, classes) or p + 3 >= hi or work[p + 3] not in (0x2D, 0x2E):
            return -1
        p += 4
    if not _three(work, p, hi, classes) or p + 3 >= hi or work[p + 3] not in (0x2D, 0x2E):
        return -1
    p += 4
    e = _numeral(work, p, hi, classes)
    return e if e - p == 4 else -1


@njit(cache=True, nogil=True)
def _american(work, i, lo, hi, classes):
    """End of a number of that shape that is part of no longer one; or -1."""
    if i > lo:
        b = work[i - 1]
        if _word(work, i - 1, lo, hi, classes) or b in (0x2E, 0x2F, 0x2B, 0x23, 0x3D, 0x26, 0x24):
            return -1
        if b == 0x2D and _word(work, i - 2, lo, hi, classes):
            return -1
    e = _shape(work, i, hi, classes)
    if e < 0 or _word(work, e, lo, hi, classes):
        return -1
    if e < hi and (work[e] == 0x2D or work[e] == 0x2E) and _is(work, e + 1, lo, hi, classes, DIGIT):
        if work[e] == 0x2E or _shape(work, e + 1, hi, classes) < 0:  # or one after the other
            return -1
    return e


@njit(cache=True, nogil=True)
def _number(work, i, lo, hi, classes, least, groups):
    """End of a telephone number whose first digit is at `i`, or -1, and how many groups it has.

    `groups` int64[16, 4]: digits, their value, bytes after, the mark among these.
    """
    p = i
    total = n = 0
    end = -1
    e = _numeral(work, p, hi, classes)
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
        p, e = q, _numeral(work, q, hi, classes)
        if _when(work, p, e, hi, classes) and (total >= 6 or work[e] == 0x3A):
            break
    if end < 0 or total < least or _word(work, end, lo, hi, classes):
        return -1, 0
    return end, n


@njit(cache=True, nogil=True)
def _counted(groups, n):
    """Whether groups of digits may be a quantity: one, thousands, a size, a range."""
    a, x = groups[0, 0], groups[0, 1]
    if n == 1 and a > 9:
        return False
    if a > 1 and x < 10 ** (a - 1):
        return False  # begins with 0
    b = groups[1, 0]
    if n < 3:
        return n == 1 or abs(a - b) < 2 or (a < 4 and b == 3)
    threes = fours = 0
    for t in range(1, n):
        threes += groups[t, 0] == 3
        fours += groups[t, 0] == 4
    return (a < 4 and threes == n - 1) or (a == 4 and fours == n - 1)


@njit(cache=True, nogil=True)
def _priced(work, e, hi, classes):
    """Whether a comma and the two digits of a price stand at `e`: 129900,00."""
    return e < hi and work[e] == 0x2C and _numeral(work, e + 1, hi, classes) - e == 3


@njit(cache=True, nogil=True)
def _undashed(work, i, lo):
    """Where a dash before `i` begins, or a hyphen with a space on a side (`Tel - 020`); or `i`."""
    s = i - 1 if i > lo and work[i - 1] == 0x20 else i
    if s > lo and work[s - 1] == 0x2D:
        return s - 1 if s < i or (s - 1 > lo and work[s - 2] == 0x20) else i
    if s - 3 >= lo and work[s - 3] == 0xE2 and work[s - 2] == 0x80 and 0x92 <= work[s - 1] <= 0x95:
        return s - 3
    return i


@njit(cache=True, nogil=True)
def _phone(work, i, lo, hi, classes, words, groups):
    """End of a telephone number that starts at `i` with a digit, `+` or `(`; or -1."""
    labels, numbered, briefs, (codes, units, sizes), _ = words
    if work[i] == 0x2B:
        if _word(work, i - 1, lo, hi, classes) or (i > lo and work[i - 1] == 0x2B):
            return -1
        if i + 1 >= hi or not 0x31 <= work[i + 1] <= 0x39:
            return -1
        e, n = _number(work, i + 1, lo, hi, classes, 8, groups)
        if e < 0 or (_counted(groups, n) and _unit_at(work, e, hi, classes, units)):
            return -1
        good = _called(work, i + 1, e, classes, (codes, sizes), groups, n)
        if good and e + 1 < hi and work[e] == 0x2C:  # @@ -1,8 +44123456,8 @@
            good = not classes[work[e + 1]] & DIGIT
        return e if good or _after(work, i, lo, classes, labels) >= 0 else -1
    e = _american(work, i, lo, hi, classes)
    if e >= 0 and _after(work, i, lo, classes, numbered) < 0:
        if not _unit_at(work, e, hi, classes, units):
            return e
    if _word(work, i - 1, lo, hi, classes):
        return -1
    first = i + 1 if work[i] == 0x28 else i
    if not _is(work, first, lo, hi, classes, DIGIT):
        return -1
    k = _after(work, _undashed(work, i, lo), lo, classes, labels)
    if k < 0:
        return -1
    e, n = _number(work, first, lo, hi, classes, 7 if briefs[k] else 6, groups)
    if e < 0 or _measured(groups, n, sizes):
        return -1
    if _counted(groups, n):
        if _priced(work, e, hi, classes) or _unit_at(work, e, hi, classes, units):
            return -1
    return e


@njit(cache=True, nogil=True)
def _iban(work, i, lo, hi, classes, countries):
    """End of an account number whose two letters are at `i`; or -1.

    In small letters after the word alone, or of digits alone after the country.
    """
    lengths, named = countries
    if i < lo or _word(work, i - 1, lo, hi, classes) or i + 4 > hi:
        return -1
    if not classes[work[i]] & ALPHA or not classes[work[i + 1]] & ALPHA:
        return -1
    a, b = (work[i] | 32) - 0x61, (work[i + 1] | 32) - 0x61
    size = lengths[a * 26 + b]
    if size == 0 or not (classes[work[i + 2]] & DIGIT and classes[work[i + 3]] & DIGIT):
        return -1
    letters = UPPER if classes[work[i]] & classes[work[i + 1]] & UPPER else 0
    if letters == 0 and _after(work, i, lo, classes, named) >= 0:
        letters = ALPHA
    p = i + 4
    n = 4
    rest = 0
    while n < size:
        if p < hi and (work[p] == 0x20 or work[p] == 0x2D):
            p += 1
        if p >= hi or not classes[work[p]] & (DIGIT | letters):
            return -1
        if classes[work[p]] & DIGIT:
            rest = (rest * 10 + (work[p] - 0x30)) % 97
        else:
            rest = (rest * 100 + ((work[p] | 32) - 0x57)) % 97
        n += 1
        p += 1
    rest = (rest * 10000 + (a + 10) * 100 + b + 10) % 97
    rest = (rest * 100 + (work[i + 2] - 0x30) * 10 + (work[i + 3] - 0x30)) % 97
    return p if rest == 1 and not _word(work, p, lo, hi, classes) else -1


@njit(cache=True, nogil=True, forceinline=True)
def _may_call(work, i, lo, hi, lasts, thirds):
    """Whether digits at `i` may be of that North American shape, or stand after a word of one."""
    if i + 3 < hi and (work[i + 3] == 0x2D or work[i + 3] == 0x2E or work[i] == 0x31):
        return True
    s = _gap(work, _undashed(work, i, lo), lo)
    size = _bracket(work, s, lo)
    s = _gap(work, s - size, lo) if size else s
    if s - 2 < lo or lasts[(work[s - 2] | 32) << 8 | work[s - 1] | 32] == 0:
        return False
    return s - 3 < lo or thirds[(work[s - 3] | 32) << 8 | work[s - 1] | 32] != 0


@njit(cache=True, nogil=True)
def _at(work, i, lo, hi, what, tables, scratch):
    """What is found at the pair of bytes at `i` that may start it: (start, end, kind) or -1."""
    classes, versions, phones, countries = tables
    b = work[i]
    on, reserved = what
    if b == 0x3A:
        if on[IPV6]:
            s, e = _ipv6(work, i, lo, hi, classes, reserved)
            return s, e, IPV6
    elif classes[b] & UPPER:
        if on[IBAN]:
            return i, _iban(work, i, lo, hi, classes, countries), IBAN
    else:
        if classes[b] & DIGIT:
            e = _ipv4(work, i, lo, hi, classes, reserved, versions) if on[IPV4] else -1
            if e >= 0:
                return i, e, IPV4
            e = _card(work, i, lo, hi, classes, scratch[0]) if on[CARD] else -1
            if e >= 0 and _after(work, i, lo, classes, phones[1]) < 0:
                return i, e, CARD
            if not _may_call(work, i, lo, hi, phones[0][1], phones[4]):
                return i, -1, 0  # most numbers; to ask here is to leave out a call
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
    small = what[0][IBAN]
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
                # most digits; to ask here is to leave out a call
                if not small or work[i - 1] | 32 < 0x61 or not classes[work[i]] & DIGIT:
                    i += 1
                    continue
                s, e, kind = i - 2, -1, IBAN  # after small letters
                if not classes[work[i - 1]] & classes[work[max(lo, s)]] & UPPER:
                    e = _iban(work, s, lo, hi, classes, tables[3])
            else:
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
