# mypy: ignore-errors
"""One kernel that finds personal data in bytes; `pii.py` states the rules.

A table of byte pairs says where anything may start, so that most bytes cost one look-up. Each rule
looks at no more than `REACH` bytes before or after such a place, so that no text is quadratic.

What is found is overwritten in `work`, a copy, with a byte that belongs to nothing, as the mask
does in the text; then the bytes before it are tried again, since a number that touched an address
stands free now. So masking a masked text finds nothing.
"""

# ruff: noqa: PLR1714, SIM102 - Numba compiles chains of comparisons to less

from __future__ import annotations

from numba import njit

EMAIL, IPV4, IPV6, PHONE, IBAN, CARD = range(6)  # kinds; secrets follow
REACH = 320  # bytes
GONE = 1  # what a masked byte is in `work`
# Bits of `classes`, by byte
ALNUM, DIGIT, LOCAL, HEX, UPPER, LETTER = 1, 2, 4, 8, 16, 32


@njit(cache=True, nogil=True, forceinline=True)
def _is(work, i, lo, hi, classes, bits):
    return lo <= i < hi and classes[work[i]] & bits != 0


@njit(cache=True, nogil=True, forceinline=True)
def _word(work, i, lo, hi, classes):
    """Whether a letter, digit or `_` stands at `i`."""
    return lo <= i < hi and (classes[work[i]] & ALNUM != 0 or work[i] == 0x5F)


@njit(cache=True, nogil=True)
def _ends(work, lo, end, words):
    """Number of the first word that the text up to `end` ends with, ASCII case aside; or -1."""
    text, bounds = words
    for k in range(len(bounds) - 1):
        size = bounds[k + 1] - bounds[k]
        if end - size < lo:
            continue
        same = True
        for t in range(size - 1, -1, -1):
            b = work[end - size + t]
            if 0x41 <= b <= 0x5A:
                b += 32
            if b != text[bounds[k] + t]:
                same = False
                break
        if same:
            return k
    return -1


@njit(cache=True, nogil=True)
def _digits(work, i, hi, classes):
    """End of the digits that start at `i`, at most 20 of them."""
    e = i
    while e < hi and e - i < 20 and classes[work[e]] & DIGIT:
        e += 1
    return e


@njit(cache=True, nogil=True)
def _email(work, at, lo, hi, classes, reserved, keep_hosts, keep_users):
    s = at
    while s > lo and at - s < 65 and classes[work[s - 1]] & LOCAL:
        s -= 1
    if at - s > 64:
        return -1, -1
    while s < at and not (classes[work[s]] & ALNUM or work[s] == 0x5F):
        s += 1
    if s == at or work[at - 1] == 0x2E:
        return -1, -1
    e = at + 1
    label = e
    dots = 0
    if not _is(work, e, lo, hi, classes, ALNUM):
        return -1, -1
    while e < hi and e - at <= 255:
        if classes[work[e]] & ALNUM or work[e] == 0x2D:
            e += 1
        elif work[e] == 0x2E and _is(work, e + 1, lo, hi, classes, ALNUM):
            dots += 1
            e += 1
            label = e
        else:
            break
    if e - at > 255 or dots == 0:
        return -1, -1
    while work[e - 1] == 0x2D:
        e -= 1
    if e - label < 2 or e - label > 24:
        return -1, -1
    coded = e - label > 4 and work[label + 2] == 0x2D and work[label + 3] == 0x2D
    for t in range(label, e):
        if not coded and not classes[work[t]] & LETTER:
            return -1, -1
    if e < hi and (work[e] == 0x28 or work[e] == 0x5B):
        return -1, -1
    if _ends(work, at, e, keep_users) >= 0:  # names of pictures: icon@2x.png
        return -1, -1
    if not reserved:
        k = _ends(work, at, e, keep_hosts)
        if k >= 0:
            return -1, -1
    if at - s == 3 and work[s] == 0x67 and work[s + 1] == 0x69 and work[s + 2] == 0x74:
        return -1, -1  # git@host
    return s, e


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
    four = two * 100 + number[2] * 10 + number[3]
    three = four // 10
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
def _american(work, i, lo, hi, classes):
    """End of `(ddd) ddd-dddd`, `ddd-ddd-dddd` or with dots, a `1` before it or not; or -1."""
    if i > lo:
        b = work[i - 1]
        if _word(work, i - 1, lo, hi, classes) or b == 0x2E or b == 0x2D or b == 0x2F:
            return -1
        if b == 0x2B or b == 0x23 or b == 0x3D or b == 0x26:
            return -1
    p = i
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
    if e - p != 4 or _word(work, e, lo, hi, classes):
        return -1
    if e < hi and (work[e] == 0x2D or work[e] == 0x2E) and _is(work, e + 1, lo, hi, classes, DIGIT):
        return -1
    return e


@njit(cache=True, nogil=True)
def _number(work, i, lo, hi, classes, least):
    """End of a telephone number whose first digit is at `i`: see `pii.py`; -1 for none."""
    p = i
    total = 0
    end = -1
    while True:
        e = _digits(work, p, hi, classes)
        if total + e - p > 15:
            break
        total += e - p
        end = e
        q = e
        while q < hi and q - e < 3 and work[q] in (0x20, 0x28, 0x29, 0x2D, 0x2E, 0x2F):
            q += 1
        if q == e or not _is(work, q, lo, hi, classes, DIGIT):
            break
        if total >= 10 and not (q - e == 1 and work[e] == 0x2D):
            break
        p = q
    if end < 0 or total < least or _word(work, end, lo, hi, classes):
        return -1
    return end


@njit(cache=True, nogil=True)
def _phone(work, i, lo, hi, classes, labels):
    """End of a telephone number that starts at `i` with a digit, `+` or `(`; or -1."""
    if work[i] == 0x2B:
        if _word(work, i - 1, lo, hi, classes) or (i > lo and work[i - 1] == 0x2B):
            return -1
        if i + 1 >= hi or not 0x31 <= work[i + 1] <= 0x39:
            return -1
        return _number(work, i + 1, lo, hi, classes, 8)
    e = _american(work, i, lo, hi, classes)
    if e >= 0:
        return e
    if _word(work, i - 1, lo, hi, classes):
        return -1
    first = i + 1 if work[i] == 0x28 else i
    if not _is(work, first, lo, hi, classes, DIGIT):
        return -1
    s = i
    while s > lo and i - s < 4 and work[s - 1] in (0x20, 0x2E, 0x3A, 0x28, 0x09):
        s -= 1
    k = _ends(work, lo, s, labels)
    if k < 0:
        return -1
    size = labels[1][k + 1] - labels[1][k]
    if labels[0][labels[1][k]] < 0x80 and _is(work, s - size - 1, lo, hi, classes, LETTER):
        return -1
    return _number(work, first, lo, hi, classes, 6)


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
    classes, words, lengths = tables
    hosts, pictures, versions, labels = words
    b = work[i]
    on, reserved = what
    if b == 0x40:
        if on[EMAIL]:
            s, e = _email(work, i, lo, hi, classes, reserved, hosts, pictures)
            return s, e, EMAIL
    elif b == 0x3A:
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
            e = _card(work, i, lo, hi, classes, scratch) if on[CARD] else -1
            if e >= 0:
                return i, e, CARD
        if on[PHONE]:
            return i, _phone(work, i, lo, hi, classes, labels), PHONE
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
