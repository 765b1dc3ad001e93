"""`scheme: datasketch`: classic MinHash, bit for bit that of datasketch 2 with its default scheme.

datasketch 2.0 changed what a MinHash holds: `affine32` (SHA-1, a finaliser, a * h + b modulo 2**32)
in place of `legacy` (a prime of 61 bits, folded), and values carry no trace of which made them. So
the scheme is the name of the score, `affine32`, and stands in `LeanMinHash` bytes as their format
has it. The seed is 1, datasketch's default.

A row equals `MinHash(num_perm=k)` updated with the UTF-8 bytes of every shingle: `ngram` tokens
(see `_kernels`: lower-cased words, or characters of scripts without spaces) joined by one space.
Cost: SHA-1 of every shingle; figures in benchmarks/README.md.
"""

from __future__ import annotations

import struct
from functools import lru_cache

import numpy as np
import pyarrow as pa

from ..documents.text import text_view
from . import _kernels as kernels
from ._kernels_minhash import affine32

SEED = 1
_CODE = 1  # of affine32 in datasketch's format


@lru_cache(maxsize=4)
def permutations(k: int) -> tuple[np.ndarray, np.ndarray]:
    """Factors (odd) and summands, uint32[k], as datasketch draws them.

    NumPy promises that the streams of `RandomState` stay as they are for ever (NEP 19).
    """
    draw = np.random.RandomState(SEED)
    factors = draw.randint(0, 1 << 31, k, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
    return factors, draw.randint(0, 1 << 32, k, dtype=np.uint32)


def signatures(
    column: pa.Array, ngram: int, char_ngram: int, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Signatures uint32[rows, k], and shingles with repeats of each text, int32[rows]."""
    view = text_view(column)
    size = int(view.offsets[-1] - view.offsets[0]) if view.rows else 0
    text = np.empty(2 * size + view.rows, np.uint8)
    begins, ends = np.empty(size, np.int64), np.empty(size, np.int64)
    tokens, single = np.zeros(view.rows, np.int64), np.zeros(view.rows, np.int64)
    kernels.spell(view.data, view.offsets, text, begins, ends, tokens, single)
    widths = np.where(2 * single > tokens, char_ngram, ngram)
    out = np.empty((view.rows, k), np.uint32)
    affine32(text, begins, ends, tokens, widths, *permutations(k), out)
    counts = np.clip(tokens - widths + 1, 0, 2**31 - 1).astype(np.int32)
    return out, counts


def lean_minhash(signature: np.ndarray) -> bytes:
    """One signature uint32[k] as `datasketch.LeanMinHash.deserialize(b, "<")` takes it."""
    k = len(signature)
    return struct.pack("<qiB", SEED, -k, _CODE) + signature.astype("<u4").tobytes()
