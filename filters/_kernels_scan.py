# mypy: ignore-errors
"""The kernel of `_scan`: masks of the bytes of texts, 64 at a time.

ASCII is told apart by vector comparisons, other characters one by one by a table of their classes.
A joiner (an apostrophe between letters, a full stop or comma between digits) is found by shifting
masks.
"""

# ruff: noqa: ARG001, PLR1714, SIM109 - intrinsics have fixed arguments; Numba compiles a chain of
# comparisons to less than a set

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from ._kernels_common import (
    LATIN,
    LETTER,
    MARK,
    NUMBER,
    SPACE,
    TERMINAL,
    UNSPACED,
    _bit,
    _decode,
    _trailing_zeros,
)

COMMON = "60450845"  # version of _kernels_common


@intrinsic
def _between(typingctx, data, at, low, high):
    """Mask of data[at : at + 64]: which bytes are from `low` to `high`."""

    def generate(context, builder, signature, args):
        array = make_array(signature.args[0])(context, builder, args[0])
        at = context.cast(builder, args[1], signature.args[1], types.intp)
        byte, lanes = ir.IntType(8), ir.VectorType(ir.IntType(8), 64)
        where = builder.bitcast(builder.gep(array.data, [at]), lanes.as_pointer())
        found = builder.load(where)
        found.align = 1

        def spread(value):
            one = builder.insert_element(
                ir.Constant(lanes, ir.Undefined), value, ir.Constant(ir.IntType(32), 0)
            )
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
            return builder.shuffle_vector(one, ir.Constant(lanes, ir.Undefined), zeros)

        low = builder.trunc(context.cast(builder, args[2], signature.args[2], types.int64), byte)
        high = builder.trunc(context.cast(builder, args[3], signature.args[3], types.int64), byte)
        inside = builder.icmp_unsigned(
            "<=", builder.sub(found, spread(low)), spread(builder.sub(high, low))
        )
        return builder.bitcast(inside, ir.IntType(64))

    return types.uint64(data, at, low, high), generate


@njit(cache=True, nogil=True, forceinline=True)
def _ascii(data, at):
    """Masks of 64 bytes: letters, digits, visible, terminal, above ASCII, line feeds, joiners."""
    letters = _between(data, at, 0x41, 0x5A) | _between(data, at, 0x61, 0x7A)
    digits = _between(data, at, 0x30, 0x39)
    space = _between(data, at, 0x09, 0x0D) | _between(data, at, 0x1C, 0x20)
    stops = _between(data, at, 0x2E, 0x2E)
    ends = stops | _between(data, at, 0x21, 0x21) | _between(data, at, 0x3F, 0x3F)
    high = _between(data, at, 0x80, 0xFF)
    feeds = _between(data, at, 0x0A, 0x0A)
    points = stops | _between(data, at, 0x2C, 0x2C)
    return letters, digits, ~space, ends, high, feeds, points, _between(data, at, 0x27, 0x27)


@njit(cache=True, nogil=True, forceinline=True)
def _set(plane, at, i, size):
    """Set bits i to i + size of a text whose first block is `at`."""
    for t in range(i, i + size):
        plane[at + (t >> 6)] |= np.uint64(1) << np.uint64(t & 63)


@njit(cache=True, nogil=True)
def _others(data, base, end, at, size, table, planes):
    """Characters above ASCII, one by one; `more` comes with all their bytes."""
    word, unspaced, letter, latin = planes[0], planes[2], planes[3], planes[4]
    number, visible, terminal = planes[5], planes[6], planes[7]
    more, dots = planes[8], planes[9]
    done = 0
    for k in range(size):
        m = more[at + k]
        while m:
            b = _trailing_zeros(m)
            m &= m - np.uint64(1)
            i = 64 * k + np.int64(b)
            if i < done:
                continue
            cp, n = _decode(data, base + i, end)
            done = i + n
            more[at + k] &= ~(np.uint64(1) << b)
            c = table[cp]
            if c == LETTER or c == LATIN:
                _set(word, at, i, n)
                _set(letter, at, i, n)
                if c == LATIN:
                    _set(latin, at, i, n)
            elif c == NUMBER:
                _set(word, at, i, n)
                _set(number, at, i, n)
            elif c == UNSPACED:
                _set(unspaced, at, i, 1)
            elif c == MARK:
                if i and _bit(word, at, i - 1):
                    _set(word, at, i, n)
            elif c == SPACE:
                for t in range(i, done):
                    visible[at + (t >> 6)] &= ~(np.uint64(1) << np.uint64(t & 63))
            elif c == TERMINAL:
                _set(terminal, at, i, 1)
            elif cp == 0x2019:
                if i and base + done < end and _bit(letter, at, i - 1):
                    c = table[_decode(data, base + done, end)[0]]
                    if c == LETTER or c == LATIN:
                        _set(word, at, i, n)
            elif cp == 0x2026:
                _set(dots, at, i, 1)


@njit(cache=True, nogil=True)
def scan(data, offsets, blocks, table, planes):
    """Masks of the texts between `offsets`; planes uint64[11, blocks] (`PLANES`)."""
    word, start, unspaced, letter, latin = planes[0], planes[1], planes[2], planes[3], planes[4]
    number, visible, terminal = planes[5], planes[6], planes[7]
    more, dots, line = planes[8], planes[9], planes[10]
    tail = np.zeros(64, np.uint8)
    longest = 0
    for row in range(len(blocks)):
        longest = max(longest, offsets[row + 1] - offsets[row])
    points, quotes = np.empty(longest // 64 + 1, np.uint64), np.empty(longest // 64 + 1, np.uint64)
    for row in range(len(blocks)):
        base, end, at = offsets[row], offsets[row + 1], blocks[row]
        size = (end - base) // 64 + 1
        above = np.uint64(0)
        for k in range(size):
            i = base + 64 * k
            if i + 64 <= len(data):
                letters, digits, seen, ends, high, feeds, point, quote = _ascii(data, i)
            else:
                tail[: len(data) - i] = data[i:]
                letters, digits, seen, ends, high, feeds, point, quote = _ascii(tail, 0)
            left = end - i
            mask = ~np.uint64(0) if left >= 64 else (np.uint64(1) << np.uint64(left)) - np.uint64(1)
            letters &= mask
            digits &= mask
            above |= high & mask
            p = at + k
            word[p], letter[p], latin[p], number[p] = letters | digits, letters, letters, digits
            visible[p], terminal[p], more[p], line[p] = (
                seen & mask,
                ends & mask,
                high & mask,
                feeds & mask,
            )
            points[k], quotes[k], unspaced[p], dots[p] = point & mask, quote & mask, 0, 0
        if above:
            _others(data, base, end, at, size, table, planes)
        before = np.uint64(0)
        last_letter, last_number = np.uint64(0), np.uint64(0)
        for k in range(size):
            p = at + k
            if points[k] | quotes[k]:
                next_letter, next_number = np.uint64(0), np.uint64(0)
                if k + 1 < size:
                    next_letter, next_number = letter[p + 1], number[p + 1]
                one, all_but = np.uint64(1), np.uint64(63)
                joined = (
                    quotes[k]
                    & (letter[p] << one | last_letter >> all_but)
                    & (letter[p] >> one | next_letter << all_but)
                ) | (
                    points[k]
                    & (number[p] << one | last_number >> all_but)
                    & (number[p] >> one | next_number << all_but)
                )
                word[p] |= joined
                terminal[p] &= ~joined
            last_letter, last_number = letter[p], number[p]
            start[p] = (word[p] & ~(word[p] << np.uint64(1) | before)) | unspaced[p]
            before = word[p] >> np.uint64(63)
