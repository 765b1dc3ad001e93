"""A fastText model written byte by byte, for tests that need no library."""

from __future__ import annotations

import struct

import numpy as np
import pytest

DIM, BUCKET, WORDS, LABELS = 3, 4, (b"</s>", b"river"), (b"__label__a", b"__label__b")


def fasttext_bytes(*, number=12, kept=None, rows=None, args=None) -> bytes:
    """The bytes of a dense model, written here, so that tests need no library."""
    fields = {
        "dim": DIM, "ws": 5, "epoch": 5, "minCount": 1, "neg": 5, "wordNgrams": 2, "loss": 3,
        "model": 3, "bucket": BUCKET, "minn": 0, "maxn": 0, "lrUpdateRate": 100,
    } | (args or {})  # fmt: skip
    raw = struct.pack("<ii12id", 793712314, number, *fields.values(), 1e-4)
    pruned = -1 if kept is None else len(kept)
    raw += struct.pack("<iiiqq", 4, 2, 2, 100, pruned)
    for kind, entries in enumerate((WORDS, LABELS)):
        for entry in entries:
            raw += entry + b"\0" + struct.pack("<qb", 9, kind)
    for pair in kept or ():
        raw += struct.pack("<ii", *pair)
    if rows is None:
        rows = np.arange((2 + (BUCKET if kept is None else len(kept))) * DIM).reshape(-1, DIM) / 10
    out = np.array([[1, 0, 0], [0, 1, 1]])
    for matrix in (rows, out):
        raw += b"\0" + struct.pack("<qq", *matrix.shape) + matrix.astype("<f4").tobytes()
    return raw


@pytest.fixture(scope="session")
def small():
    """`small(number=, kept=, rows=, args=)`: a dense model of words `</s>` and `river`."""
    return fasttext_bytes
