# mypy: ignore-errors
"""One kernel that finds keys and secrets in bytes; `pii.py` states the rules.

It is like that of `_kernels_pii.py`, and goes first: an address in a secret is the secret's. A
table of byte pairs says where anything may start; a private key is looked for up to 32 KiB ahead
and no further than the next dashes, all else up to 256 bytes, so that no text is quadratic. What is
found is overwritten in `work`, a copy.
"""

# ruff: noqa: PLR1714 - Numba compiles chains of comparisons to less

from __future__ import annotations

from numba import njit

KEY, PRIVATE_KEY, SECRET = range(6, 9)  # kinds; those of personal data come before
GONE = 1  # what a masked byte is in `work`
# Bits of `classes`, by byte
ALNUM, BASE64, VALUE = 1, 64, 128


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
def _key(work, i, hi, keys):
    """End of a key of a known form at `i`; -1 for none."""
    text, bounds, forms, sets, example = keys
    for k in range(len(bounds) - 1):
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
        digits = found = 0
        while p < hi and p - i - size <= most and sets[kind, work[p]]:
            digits += 0x30 <= work[p] <= 0x39
            found += work[p] == 0x2E
            p += 1
        if kind == 3:
            while p > i and work[p - 1] == 0x2E:
                p -= 1
                found -= 1
        tail = p - i - size
        if (
            least <= tail <= most
            and digits > 0
            and found == dots
            and _ends(work, i, p, example) < 0
        ):
            return p
    return -1


@njit(cache=True, nogil=True)
def _block(work, i, hi, classes, words):
    """End of a private key between its BEGIN and END lines; -1 for none."""
    begin, close, stop = words
    p = i
    while p < hi and p - i < 64 and work[p] != 0x0A:
        p += 1
        if p - i > 20 and _ends(work, i, p, close) >= 0:
            break
    if _ends(work, i, min(i + 11, hi), begin) < 0 or _ends(work, i, p, close) < 0:
        return -1
    letters = 0
    while p < hi and p - i < 1 << 15:
        b = work[p]
        if b == 0x2D and _ends(work, i, min(p + 9, hi), stop) >= 0 and p + 9 <= hi:
            e = p + 9
            while e < hi and e - p < 64:
                e += 1
                if e - p > 20 and _ends(work, p, e, close) >= 0:
                    return e if letters >= 64 else -1
            return -1
        if classes[b] & BASE64:
            letters += 1
        elif b not in (0x20, 0x0A, 0x0D, 0x09, 0x3A, 0x2C, 0x5C, 0x22, 0x27):
            return -1
        p += 1
    return -1


@njit(cache=True, nogil=True)
def _secret(work, at, lo, hi, classes, names, shares, counts):
    """Start and end of the value that is given to a name like `api_key` at `at`; or -1, -1."""
    k = at
    while k > lo and at - k < 2 and work[k - 1] == 0x20:
        k -= 1
    if k > lo and work[k - 1] in (0x22, 0x27, 0x60):
        k -= 1
    if _ends(work, lo, k, names) < 0:
        return -1, -1
    p = at + 1
    while p < hi and p - at < 3 and (work[p] == 0x3D or work[p] == 0x3E):
        p += 1
    q = p
    while p < hi and p - q < 2 and work[p] == 0x20:
        p += 1
    quote = work[p] if p < hi and work[p] in (0x22, 0x27, 0x60) else 0
    if quote:
        p += 1
    s = p
    lower = upper = digits = 0
    counts[:] = 0
    while p < hi and p - s < 256 and work[p] != quote and classes[work[p]] & VALUE:
        if not quote and not (classes[work[p]] & BASE64 or work[p] == 0x2D or work[p] == 0x5F):
            break
        counts[work[p]] += 1
        digits += 0x30 <= work[p] <= 0x39
        upper += 0x41 <= work[p] <= 0x5A
        lower += 0x61 <= work[p] <= 0x7A
        p += 1
    n = p - s
    if n < 16 or n > 255 or digits == 0 or upper + lower == 0:
        return -1, -1
    if quote:
        if p >= hi or work[p] != quote:
            return -1, -1
    elif n < 20 or upper == 0 or lower == 0 or (p < hi and work[p] >= 0x21 and work[p] != 0x22):
        return -1, -1
    bits = shares[n]
    for b in range(0x21, 0x7F):
        bits -= shares[counts[b]]
    return (s, p) if bits * 2 >= 7 * 64 * n else (-1, -1)  # 3.5 bits a byte


@njit(cache=True, nogil=True)
def _at(work, i, lo, hi, on, tables, counts):
    """What is found at the pair of bytes at `i` that may start it: (start, end, kind) or -1."""
    classes, _, names, block, keys, shares = tables
    b = work[i]
    if b == 0x3A or b == 0x3D:
        if on[SECRET]:
            s, e = _secret(work, i, lo, hi, classes, names, shares, counts)
            return s, e, SECRET
    elif b == 0x2D:
        if on[PRIVATE_KEY]:
            return i, _block(work, i, hi, classes, block), PRIVATE_KEY
    elif on[KEY]:
        return i, _key(work, i, hi, keys), KEY
    return i, -1, 0


@njit(cache=True, nogil=True)
def find(work, offsets, may, on, tables, counts, out):
    """Find all in each row of `work`, a copy of the text; see `_kernels_pii.find`."""
    rows, starts, lengths, kinds = out
    classes, lasts = tables[0], tables[1]
    n = 0
    for r in range(len(offsets) - 1):
        lo, hi = offsets[r], offsets[r + 1]
        i = lo
        while i < hi:
            pair = work[i] << 8 | (work[i + 1] if i + 1 < hi else 0)
            if not may[pair]:
                i += 1
                continue
            word = _word(work, i - 1, lo, hi, classes)
            b = work[i]
            if b == 0x2D and (i + 5 >= hi or work[i + 5] | 32 != 0x62):  # no B after five dashes
                i += 1
                continue
            if word and (not lasts[work[i - 1]] if b == 0x3A or b == 0x3D else b != 0x2D):
                i += 1  # most places; to ask here is to leave out a call
                continue
            s, e, kind = _at(work, i, lo, hi, on, tables, counts)
            if e < 0:
                i += 1
                continue
            if n < len(rows):
                rows[n], starts[n], lengths[n], kinds[n] = r, s - lo, e - s, kind
            n += 1
            work[s:e] = GONE
            i = e
    return n
