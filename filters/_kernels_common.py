# mypy: ignore-errors
"""What several kernels of filters share: UTF-8, bits of masks, open tables, words at an end.

Numba's cache sees edits of a kernel's own file alone. So each file that imports from here says in
`COMMON` which version it was compiled against: the first 8 hex digits of this file's BLAKE2b. A
test compares them, and says what to write, so that an edit here changes every file that uses it.
"""

# ruff: noqa: ARG001 - intrinsics have fixed arguments

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

# Classes of characters (characters.tsv)
OTHER, SPACE, TERMINAL, QUOTE, CLOSER, MARK, NUMBER, LETTER, LATIN, UNSPACED = range(10)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


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
