"""Kernels of classic MinHash as datasketch 2 defines it: SHA-1, then affine maps modulo 2**32.

A permutation of a shingle is one multiply-add and a minimum, without a branch; SHA-1 of it takes 80
rounds for each block of 64 bytes. Plain-Python twin: hashlib and NumPy in tests/naive_dedup.py.
"""

from __future__ import annotations

import numpy as np
from numba import njit

U = np.uint32


@njit(cache=True, nogil=True, inline="always")
def _left(x, by):
    x = U(x)  # Numba widens sums and shifts of 32 bits to 64: every step is cut back
    return U(U(x << U(by)) | U(x >> U(32 - by)))


@njit(cache=True, nogil=True)
def sha1_word(text, begin, end, w):
    """First word of SHA-1 of text[begin:end], read as little-endian; `w` uint32[80] is scratch."""
    size = end - begin
    h0, h1, h2, h3, h4 = (
        U(0x67452301), U(0xEFCDAB89), U(0x98BADCFE), U(0x10325476), U(0xC3D2E1F0)
    )  # fmt: skip
    for block in range((size + 8) // 64 + 1):
        base = block * 64
        for i in range(16):
            at = base + 4 * i
            if at + 4 <= size:
                p = begin + at
                w[i] = (
                    (U(text[p]) << U(24))
                    | (U(text[p + 1]) << U(16))
                    | (U(text[p + 2]) << U(8))
                    | U(text[p + 3])
                )
                continue
            word = U(0)
            for j in range(4):
                byte = U(0)
                if at + j < size:
                    byte = U(text[begin + at + j])
                elif at + j == size:
                    byte = U(0x80)
                word = (word << U(8)) | byte
            w[i] = word
        if base + 64 >= size + 9:  # the last block ends with the length in bits
            w[14] = U((size * 8) >> 32)
            w[15] = U((size * 8) & 0xFFFFFFFF)
        for i in range(16, 80):
            w[i] = _left(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1)
        a, b, c, d, e = h0, h1, h2, h3, h4
        for i in range(20):
            f = U(_left(a, 5) + ((b & c) | (~b & d)) + e + U(0x5A827999) + w[i])
            e, d, c, b, a = d, c, _left(b, 30), a, f
        for i in range(20, 40):
            f = U(_left(a, 5) + (b ^ c ^ d) + e + U(0x6ED9EBA1) + w[i])
            e, d, c, b, a = d, c, _left(b, 30), a, f
        for i in range(40, 60):
            f = U(_left(a, 5) + ((b & c) | (b & d) | (c & d)) + e + U(0x8F1BBCDC) + w[i])
            e, d, c, b, a = d, c, _left(b, 30), a, f
        for i in range(60, 80):
            f = U(_left(a, 5) + (b ^ c ^ d) + e + U(0xCA62C1D6) + w[i])
            e, d, c, b, a = d, c, _left(b, 30), a, f
        h0 = U(h0 + a)
        h1 = U(h1 + b)
        h2 = U(h2 + c)
        h3 = U(h3 + d)
        h4 = U(h4 + e)
    return U(
        (h0 >> U(24)) | ((h0 >> U(8)) & U(0xFF00)) | ((h0 << U(8)) & U(0xFF0000)) | (h0 << U(24))
    )


@njit(cache=True, nogil=True)
def affine32(text, begins, ends, tokens, widths, a, b, out):
    """Signatures uint32[rows, k]; row r has `tokens[r]` tokens and `widths[r]` in a shingle.

    A shingle's bytes are its tokens joined by one space. Lanes of a row without one stay 2**32 - 1.
    """
    w = np.empty(80, np.uint32)
    k = len(a)
    first = 0
    for row in range(len(tokens)):
        lanes = out[row]
        lanes[:] = U(0xFFFFFFFF)
        n = widths[row]
        for i in range(first, first + tokens[row] - n + 1):
            h = sha1_word(text, begins[i], ends[i + n - 1], w)
            h = U((h ^ (h >> U(16))) * U(0x85EBCA6B))
            h = U((h ^ (h >> U(13))) * U(0xC2B2AE35))
            h = U(h ^ (h >> U(16)))
            for j in range(k):
                lanes[j] = min(lanes[j], U(a[j] * h + b[j]))
        first += tokens[row]
