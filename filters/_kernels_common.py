# mypy: ignore-errors
"""What kernels of filters share: UTF-8, bits of masks, hashes, open tables, words, numbers.

Numba's cache sees edits of a kernel's own file alone. So each file that imports from here says in
`COMMON` which version it was compiled against: the first 8 hex digits of this file's BLAKE2b. A
test compares them, and says what to write, so that an edit here changes every file that uses it.
"""

# ruff: noqa: ARG001, PLR1714 - intrinsics have fixed arguments; chains of comparisons are faster

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

# Classes of characters (characters.tsv)
OTHER, SPACE, TERMINAL, QUOTE, CLOSER, MARK, NUMBER, LETTER, LATIN, UNSPACED = range(10)
U = np.uint64
ALL = U(0xFFFFFFFFFFFFFFFF)
# Bits of `classes`, by byte (`_pii_tables`), and what a byte is where personal data was masked
ALNUM, DIGIT, LOCAL, HEX, UPPER, ALPHA, BASE64, VALUE = (1 << _k for _k in range(8))
GONE = 1
# Words of templates: the base of their hashes, what stands for a run of masked ones, no mask
BASE = U(0xA24BAED4963EE407)  # odd; bytes of a word, and words of a line, are digits in it
MASK = U(0x6D61736B656420B5)
NOTHING = U(0)
LITERAL = 0
# Of eight bytes at once: upper bits, and what lifts a byte of seven bits over 127 from a bound on
EACH = U(0x0101010101010101)
HIGH, SEVEN, CASE = U(0x80) * EACH, U(0x7F) * EACH, U(0x20) * EACH
FROM_A, AFTER_Z, FROM_0, AFTER_9 = (U(0x80 - _b) * EACH for _b in (0x61, 0x7B, 0x30, 0x3A))


@njit(cache=True, nogil=True)
def _decode(data, i, end):
    """Code point at `i` and its size; what is not UTF-8 is U+FFFD, one byte long."""
    b = np.int64(data[i])
    if b < 0x80:
        return b, 1
    if 0xC2 <= b < 0xE0:
        more, cp = 1, b & 0x1F
    elif 0xE0 <= b < 0xF0:
        more, cp = 2, b & 0x0F
    elif 0xF0 <= b < 0xF5:
        more, cp = 3, b & 0x07
    else:
        return 0xFFFD, 1
    if i + more >= end:
        return 0xFFFD, 1
    for t in range(1, more + 1):
        c = np.int64(data[i + t])
        if c & 0xC0 != 0x80:
            return 0xFFFD, 1
        cp = (cp << 6) | (c & 0x3F)
    if cp > 0x10FFFF:
        return 0xFFFD, 1
    return cp, more + 1


@intrinsic
def _load8(typingctx, data, at):
    """Eight bytes at `at` as a little-endian uint64; the caller proves that they are there."""

    def generate(context, builder, signature, args):
        array = make_array(signature.args[0])(context, builder, args[0])
        at = context.cast(builder, args[1], signature.args[1], types.intp)
        word = ir.IntType(64)
        where = builder.bitcast(builder.gep(array.data, [at]), word.as_pointer())
        loaded = builder.load(where)
        loaded.align = 1
        return loaded

    return types.uint64(data, at), generate


@intrinsic
def _trailing_zeros(typingctx, value):
    """Zero bits below the lowest one; 64 for 0."""

    def generate(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


@intrinsic
def _ones(typingctx, value):
    """How many bits are set."""

    def generate(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


@njit(cache=True, nogil=True, forceinline=True)
def _ascii_word(x):
    """Of eight bytes, how many from the first on are ASCII letters or digits; their bits.

    The upper bit of each byte that is a letter, and of each that is a digit, whatever stands before
    it; bytes beyond ASCII may have them as well.
    """
    seven = x & SEVEN
    small = seven | CASE
    letter = (small + FROM_A) & ~(small + AFTER_Z) & HIGH
    digit = (seven + FROM_0) & ~(seven + AFTER_9) & HIGH
    return np.int64(_trailing_zeros(((letter | digit) & ~x) ^ HIGH) >> U(3)), letter, digit


@njit(cache=True, nogil=True, forceinline=True)
def _bit(plane, at, i):
    return plane[at + (i >> 6)] >> np.uint64(i & 63) & np.uint64(1)


@njit(cache=True, nogil=True, forceinline=True)
def _next(plane, at, i, end, flip):
    """First set bit (clear one with `flip` = ALL) from i on, `end` if there is none before it.

    Bits are counted from the text's first block, `at`.
    """
    k = i >> 6
    m = (plane[at + k] ^ flip) >> np.uint64(i & 63)
    if m:
        return min(i + np.int64(_trailing_zeros(m)), end)
    k += 1
    while 64 * k < end:
        m = plane[at + k] ^ flip
        if m:
            return min(64 * k + np.int64(_trailing_zeros(m)), end)
        k += 1
    return end


@njit(cache=True, nogil=True)
def _last(plane, at, i, end):
    """Last set bit from i to before `end`, -1 if there is none."""
    t = end - 1
    while t >= i:
        if plane[at + (t >> 6)] >> np.uint64(t & 63) & np.uint64(1):
            return t
        t -= 1
    return -1


@njit(cache=True, nogil=True, forceinline=True)
def _count(plane, at, i, end):
    """How many bits are set from i to before `end`."""
    if i >= end:
        return 0
    first, last = i >> 6, (end - 1) >> 6
    low = ALL << np.uint64(i & 63)
    high = ALL >> np.uint64(63 - ((end - 1) & 63))
    if first == last:
        return np.int64(_ones(plane[at + first] & low & high))
    n = np.int64(_ones(plane[at + first] & low))
    for k in range(first + 1, last):
        n += np.int64(_ones(plane[at + k]))
    return n + np.int64(_ones(plane[at + last] & high))


@njit(cache=True, nogil=True, forceinline=True)
def _mix(h):
    """Finaliser of splitmix64: every bit of the key bears on every bit of the slot."""
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@njit(cache=True, nogil=True, inline="always")
def _fmix(x):
    """Finaliser of MurmurHash3: a bijection of 64 bits in which every bit moves every bit."""
    x ^= x >> U(33)
    x *= U(0xFF51AFD7ED558CCD)
    x ^= x >> U(33)
    x *= U(0xC4CEB9FE1A85EC53)
    x ^= x >> U(33)
    return x


@njit(cache=True, nogil=True, forceinline=True)
def _slot(keys, mask, key):
    """Slot of `key` in an open table of keys where 0 is free (no key is 0)."""
    at = np.int64(_mix(key) & np.uint64(mask))
    while (keys[at] != 0) & (keys[at] != key):
        at = (at + 1) & mask
    return at


@njit(cache=True, nogil=True)
def _citation(data, i, end, forms, form_ends):
    """Length of `[1]`, `[]` or one of the lower-case `forms` at the bracket `i`; 0 if none."""
    at = i + 1
    while at < end and 0x30 <= data[at] <= 0x39:
        at += 1
    if at < end and data[at] == 0x5D:
        return at + 1 - i
    start = 0
    for stop in form_ends:
        n = stop - start
        if i + n <= end:
            same = True
            for t in range(n):
                same &= data[i + t] == forms[start + t]
            if same:
                return n
        start = stop
    return 0


@njit(cache=True, nogil=True, forceinline=True)
def _word(work, i, lo, hi, classes):
    """Whether a letter, digit or `_` stands at `i`."""
    return lo <= i < hi and (classes[work[i]] & ALNUM != 0 or work[i] == 0x5F)


@njit(cache=True, nogil=True)
def _ends(work, lo, end, words):
    """Number of the first word that the text up to `end` ends with, ASCII case aside; or -1."""
    return _ends_with(work, lo, end, words, 0, len(words[1]) - 1)


@njit(cache=True, nogil=True)
def _ends_with(work, lo, end, words, first, last):
    """The same of the words from `first` to before `last`."""
    text, bounds = words
    for k in range(first, last):
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


@njit(cache=True, nogil=True, forceinline=True)
def _is(work, i, lo, hi, classes, bits):
    return lo <= i < hi and classes[work[i]] & bits != 0


@njit(cache=True, nogil=True, forceinline=True)
def _gap(work, i, lo):
    """Before up to four of ` .:(#=*` and tabs that end at `i`."""
    s = i
    while s > lo and i - s < 4 and work[s - 1] in (0x20, 0x2E, 0x3A, 0x28, 0x09, 0x23, 0x3D, 0x2A):
        s -= 1
    return s


@njit(cache=True, nogil=True, forceinline=True)
def _bracket(work, s, lo):
    """Bytes of the closing bracket that ends at `s`: `)`, `]`, U+3011; or 0."""
    if s > lo and (work[s - 1] == 0x29 or work[s - 1] == 0x5D):
        return 1
    lens = s - 3 >= lo and work[s - 3] == 0xE3 and work[s - 2] == 0x80 and work[s - 1] == 0x91
    return 3 if lens else 0


@njit(cache=True, nogil=True)
def _opened(work, start, s, lo, size):
    """Whether the bracket of `size` bytes that ends at `s` opens just before `start`."""
    if start - size < lo:
        return False
    a, z = work[start - 1], work[s - 1]
    if size == 1:
        return (a == 0x28 and z == 0x29) or (a == 0x5B and z == 0x5D)
    return a == 0x90 and work[start - 2] == 0x80 and work[start - 3] == 0xE3


@njit(cache=True, nogil=True)
def _after(work, i, lo, classes, words):
    """Number of the word before `i`, up to four of ` .:(#=*` and tabs between; or -1.

    The word may stand in brackets alone: `(Tel.) 030`. The words are in groups by the pair of bytes
    that they end with, `lasts` uint16[65536] has the group of each pair (ASCII in lower case) and 0
    for none, `groups` int64 where each begins.
    """
    listed, lasts, groups = words
    close = _gap(work, i, lo)
    size = _bracket(work, close, lo)
    s = _gap(work, close - size, lo) if size else close
    group = lasts[(work[s - 2] | 32) << 8 | work[s - 1] | 32] if s - 2 >= lo else 0
    if group == 0:
        return -1
    k = _ends_with(work, lo, s, listed, groups[group - 1], groups[group])
    if k < 0:
        return -1
    start = s - (listed[1][k + 1] - listed[1][k])
    if size and not _opened(work, start, close, lo, size):
        return -1
    letter = start > lo and work[start] < 0x80 and classes[work[start - 1]] & ALPHA != 0
    if start - 2 >= lo and work[start - 1] >= 0x80:  # hôtel, хотел; but ВенаТел
        lead, first = work[start - 2], work[start]
        letter = first < 0x80 and 0xC3 <= lead <= 0xC9
        if 0xD0 <= first <= 0xD1 and 0xD0 <= lead <= 0xD1:
            capital = lead == 0xD0 and work[start - 1] < 0xB0
            letter = capital or first == 0xD1 or work[start + 1] >= 0xB0
    if letter or (s - start == 2 and work[s - 2] == 0x70 and work[s - 1] == 0x48):
        return -1  # part of a word; `pH`
    return k


@njit(cache=True, nogil=True)
def _unit_at(work, i, hi, classes, units):
    """Whether a unit stands at `i` or after a space there; no space before those of Chinese."""
    text, bounds = units
    for k in range(len(bounds) - 1):
        p = i + 1 if i < hi and work[i] == 0x20 and text[bounds[k]] < 0xE3 else i
        e = p + bounds[k + 1] - bounds[k]
        if e > hi:
            continue
        same = True
        for t in range(p, e):
            b = work[t] | 32 if classes[work[t]] & UPPER else work[t]
            same &= b == text[bounds[k] + t - p]
        if not same:
            continue
        if classes[work[e - 1]] & ALPHA or 0xC3 <= work[e - 2] < 0xE0:
            same = not (e < hi and (classes[work[e]] & ALNUM != 0 or work[e] >= 0x80))
        else:  # `Tel. 030 123456 € 20`
            q = e + 1 if e < hi and work[e] == 0x20 else e
            same = not (q < hi and classes[work[q]] & DIGIT != 0)
        if same:
            return True
    return False


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
def _numeral(work, i, hi, classes):
    """End of the digits that start at `i`, at most 20 of them."""
    e = i
    while e < hi and e - i < 20 and classes[work[e]] & DIGIT:
        e += 1
    return e


@njit(cache=True, nogil=True)
def _when(work, i, e, hi, classes):
    """Whether the digits from `i` to `e` are an hour, or a year that a month follows: 2018-10."""
    n = _numeral(work, e + 1, hi, classes) - e - 1 if e < hi else 0
    if e - i <= 2 and e < hi and work[e] == 0x3A:
        return n == 2  # 10:30
    if e - i != 4 or e >= hi or work[e] not in (0x2D, 0x2E, 0x2F):
        return False
    century = work[i] * 256 + work[i + 1] in (0x3138, 0x3139, 0x3230)
    return century and 1 <= n <= 2


@njit(cache=True, nogil=True)
def _dated(groups, n):
    """Whether groups of digits are a date and what may follow it, or hold a year in brackets."""
    for t in range(1, n):
        if groups[t - 1, 3] == 0x28 and groups[t, 3] == 0x29 and _year(groups, t):
            return True  # Cell 150 (2012) 1107
    if n < 3:
        return False
    a, x, _, mark = groups[0]
    b, y, _, other = groups[1]
    c, z, _, after = groups[2]
    if mark != other or mark not in (0x2D, 0x2E, 0x2F) or (n > 3 and after == mark):
        return False
    if _year_of_any(groups, 0) or (a == 3 and 90 <= x < 130 and mark == 0x2F):
        return b <= 2 and y <= 12 and c <= 2 and z <= 31  # 2024-05-12, 113/05/12
    if a > 2 or b > 2 or x > 31 or y > 31:
        return False
    return _year_of_any(groups, 2) or (
        c == 2 and mark != 0x2D and min(x, y) <= 12
    )  # 12.05.2024, 12/5/24


@njit(cache=True, nogil=True)
def _year(groups, t):
    return groups[t, 0] == 4 and 1800 <= groups[t, 1] < 2100


@njit(cache=True, nogil=True)
def _year_of_any(groups, t):
    """A year of the Gregorian, the Persian and Islamic, or the Buddhist calendar."""
    value = groups[t, 1]
    return groups[t, 0] == 4 and (
        1300 <= value < 1500 or 1800 <= value < 2100 or 2400 <= value < 2600
    )


@njit(cache=True, nogil=True)
def _hours(groups, n):
    """Whether groups of digits are hours: 10.00-12.30, 8-12 / 13-17, 0900-1730."""
    a, x, _, mark = groups[0]
    b, y, _, other = groups[1]
    if n == 2 and a == 4 and b == 4 and mark == 0x2D and x < y <= 2400:
        return x % 100 % 15 == 0 and x % 100 < 60 and y % 100 % 15 == 0 and y % 100 < 60
    if n < 4:
        return False
    c, z, _, third = groups[2]
    d, w, _, last = groups[3]
    if mark == 0x2E and other == 0x2D and third == 0x2E:
        good = a <= 2 and b == 2 and c <= 2 and d == 2 and (n == 4 or last != 0x2E)
        return good and x <= 24 and z <= 24 and y < 60 and w < 60
    good = n == 4 and mark == 0x2D and third == 0x2D and (other == 0x2F or other == 0x20)
    return good and max(a, b, c, d) <= 2 and x < y <= 24 and z < w <= 24


@njit(cache=True, nogil=True)
def _measured(groups, n, sizes):
    """Whether groups of digits are a date, years, hours, a decimal, sizes or a round number."""
    a, x, _, mark = groups[0]
    if n < 2:
        return False
    b, _, _, other = groups[1]
    if a == 1 and b <= 2 and mark == 0x2E:
        return True  # 7.35-7.45
    if n == 2 and mark == 0x2E and (b <= 2 or (a == 1 and b < 9)):
        return True  # 1299.00, 3.141592
    if n == 2 and _year(groups, 0) and b == 2 and mark != 0x20:
        return True  # 2015/16
    years = same = zeros = thirds = ups = downs = short = 0
    for t in range(n):
        short += groups[t, 0] == 3
        ups += t > 0 and groups[t, 1] > groups[t - 1, 1]
        downs += t > 0 and groups[t, 1] < groups[t - 1, 1]
        years += _year(groups, t)
        same += (
            3 <= groups[t, 0] <= 4
            and groups[t, 1] >= 10 ** (groups[t, 0] - 1)
            and (sizes[groups[t, 1]] != 0)
        )
        zeros += t > 0 and groups[t, 0] == 3 and groups[t, 1] == 0
        thirds += t > 0 and groups[t, 0] == 3 and groups[t - 1, 3] == 0x2E
    sorted_ = n == 2 or short < n or ups == n - 1 or downs == n - 1  # not 900 900 900
    if years == n or (same == n and sorted_):
        return True  # 2015-2016, 1920/1080
    if zeros == n - 1 and a <= 3 and x >= 10 ** (a - 1):
        return True  # 1 000 000
    if thirds == n - 1 and (a == 1 or (n > 2 and a == 2 and x >= 10 and groups[n - 1, 1] == 0)):
        return True  # 1.234.567, 12.990.000
    if n == 4 and mark == 0x2E and other == 0x2E and groups[2, 3] == 0x2E:
        most = longest = 0
        for t in range(4):
            most, longest = max(most, groups[t, 1]), max(longest, groups[t, 0])
        if most < 256 and longest == 3:
            return True  # 192.168.0.1
    pairs = n == 4 and mark == 0x2E and other == 0x2D and groups[2, 3] == 0x2E
    if pairs and b == 2 and groups[3, 0] == 2:
        return True  # 149.99 - 199.99
    return _hours(groups, n) or _dated(groups, n)


@njit(cache=True, nogil=True)
def _called(work, i, end, classes, known, groups, n):
    """Whether digits after a `+` begin with a calling code, and do not read as a quantity."""
    codes, sizes = known
    head = many = total = 0
    p = i
    while p < end and many < 3:
        if classes[work[p]] & DIGIT:
            head = head * 10 + work[p] - 0x30
            many += 1
        p += 1
    for t in range(n):
        total += groups[t, 0]
    size = codes[head]
    if size == 0 or size > groups[0, 0] or (n > 2 and total <= 8):
        return False  # +23 456 789
    if size == 1 and (total < 11 or (head < 200 and head % 100 < 20)):
        return False
    point = n > 1 and groups[0, 2] == 1 and groups[0, 3] == 0x2E
    if point and (n == 2 or (groups[1, 0] >= 4 and groups[1, 3] != 0x2E)):
        return False  # +37.774929
    return not _measured(groups, n, sizes)
