# mypy: ignore-errors
"""Kernels of the language stage: samples of long texts, and which have too few letters."""

from __future__ import annotations

import numpy as np
from numba import njit

from ._kernels_common import _decode

COMMON = "60450845"  # version of _kernels_common

LETTER = 7  # of `_characters`; letters of all kinds are from here on


@njit(cache=True, nogil=True)
def few_letters(data, offsets, table, enough, out):
    """Which texts have fewer than `enough` letters, out bool[rows]; stops at the last needed."""
    for row in range(len(offsets) - 1):
        i, end = offsets[row], offsets[row + 1]
        n = 0
        while i < end and n < enough:
            cp, size = _decode(data, i, end)
            n += table[cp] >= LETTER
            i += size
        out[row] = n < enough


@njit(cache=True, nogil=True)
def sample(data, offsets, samples, size, out, ends):
    """Copy `samples` pieces of `size` bytes of each text into `out`, joined by spaces.

    Pieces are cut inwards to whole characters; texts up to samples * size bytes are copied whole.
    `ends` int64[rows * samples + 1] become the ends of the pieces, spaces before them included.
    """
    write = np.int64(0)
    for row in range(len(offsets) - 1):
        base, length = offsets[row], offsets[row + 1] - offsets[row]
        pieces = 1 if length <= samples * size else samples
        for k in range(pieces):
            start, stop = np.int64(0), length
            if length > samples * size:
                start = k * (length - size) // max(samples - 1, 1)
                stop = start + size
                while start < stop and data[base + start] & 0xC0 == 0x80:
                    start += 1
                while stop > start and stop < length and data[base + stop] & 0xC0 == 0x80:
                    stop -= 1
            if k:
                out[write] = 0x20
                write += 1
            out[write : write + stop - start] = data[base + start : base + stop]
            write += stop - start
            ends[row * samples + k + 1] = write
        for k in range(pieces, samples):
            ends[row * samples + k + 1] = write
