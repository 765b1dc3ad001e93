"""Write a fitted linear classifier as a fastText file that the library and `filters.fasttext` load.

A row of the input matrix is (what the feature says, 1); the mean of the ones is 1, so the last
column of the output matrix is the bias that the format has no place for. `.ftz` is the format's
own product quantization: 256 centroids for each pair of columns, chosen by k-means over the rows
that say anything. That is a byte for each feature and pair of columns.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...documents.errors import UsageError
from ..fasttext.parse import parse

_MAGIC, _FORMAT = 793712314, 12
_SUPERVISED, _SOFTMAX = 3, 3
_CENTROIDS = 256
_SAMPLE, _STEPS = 1 << 15, 15


@dataclass(frozen=True, slots=True)
class Head:
    """A linear classifier over `features.Space`, before or after quantization."""

    words: tuple[bytes, ...]
    bucket: int
    labels: tuple[str, ...]  # without `__label__`
    label_counts: tuple[int, ...]
    rows: np.ndarray  # float32[words + bucket, dim], the last column ones
    output: np.ndarray  # float32[labels, dim]


def to_bytes(head: Head, *, quantized: bool) -> bytes:
    """The file's bytes: dense (`.bin`) or quantized (`.ftz`)."""
    rows, dim = head.rows.shape
    entries = [
        *((w, 1, 0) for w in head.words),  # counts of words serve a training of the library alone
        *(
            (f"__label__{n}".encode(), c, 1)
            for n, c in zip(head.labels, head.label_counts, strict=True)
        ),
    ]
    arguments = (dim, 5, 1, 1, 5, 2, _SOFTMAX, _SUPERVISED, head.bucket, 0, 0, 100)
    sizes = (len(entries), len(head.words), len(head.labels), len(head.words), -1)
    parts = [
        struct.pack("<ii", _MAGIC, _FORMAT),
        struct.pack("<12i", *arguments),
        struct.pack("<d", 1e-4),
        struct.pack("<iiiqq", *sizes),
        *(word + b"\0" + struct.pack("<qb", count, kind) for word, count, kind in entries),
        struct.pack("<?", quantized),
    ]
    if quantized:
        codes, centroids = _quantize(head.rows)
        parts += [struct.pack("<Bqqi", 0, rows, dim, codes.size), codes.tobytes()]
        width = min(2, dim)
        last = dim % width or width
        parts += [struct.pack("<iiii", dim, codes.shape[1], width, last), centroids]
    else:
        parts += [struct.pack("<qq", rows, dim), head.rows.astype("<f4").tobytes()]
    output = head.output.astype("<f4")
    parts += [struct.pack("<B", 0), struct.pack("<qq", *output.shape), output.tobytes()]
    return b"".join(parts)


def write(head: Head, path: Path, *, quantized: bool) -> None:
    """Write the file; the name does not decide what is in it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(to_bytes(head, quantized=quantized))


def read_dense(path: Path) -> Head:
    """Read back what `write` wrote dense; UsageError for any other model."""
    parsed = parse(path)
    dense = parsed.input.quantizer is None and parsed.kept is None
    if not dense or parsed.loss != _SOFTMAX or parsed.ngrams != 2 or parsed.maxn:
        msg = f"{path}: expected the .bin of `gristmill quality train`: dense, softmax"
        raise UsageError(msg)
    return Head(
        words=parsed.words,
        bucket=parsed.bucket,
        labels=tuple(label.decode().removeprefix("__label__") for label in parsed.labels),
        label_counts=tuple(parsed.label_counts),
        rows=parsed.input.whole(),
        output=parsed.output.whole(),
    )


def _quantize(rows: np.ndarray) -> tuple[np.ndarray, bytes]:
    """Codes uint8[rows, pairs] and the bytes of the centroids, pair by pair."""
    codes, centroids = [], []
    for start in range(0, rows.shape[1], 2):
        block = rows[:, start : start + 2].astype(np.float64)
        kinds, back = np.unique(block, axis=0, return_inverse=True)
        table = _centroids(kinds)
        codes.append(_nearest(kinds, table)[back.ravel()])
        centroids.append(table.astype("<f4").tobytes())
    return np.stack(codes, 1), b"".join(centroids)


def _nearest(block: np.ndarray, table: np.ndarray) -> np.ndarray:
    out = np.empty(len(block), np.uint8)
    norms = (table * table).sum(1)
    for first in range(0, len(block), 1 << 14):
        part = block[first : first + (1 << 14)]
        out[first : first + len(part)] = (norms - 2 * part @ table.T).argmin(1)
    return out


def _centroids(kinds: np.ndarray) -> np.ndarray:
    """float64[256, width] by Lloyd's steps over at most 32,768 of the rows, evenly spaced in order.

    The row of a bucket that no text of the training fell into, zero but for the one, is a centroid
    of its own: it stays exactly zero.
    """
    quiet = kinds[(kinds[:, 0] == 0) & ((kinds == 0) | (kinds == 1)).all(1)][:1]
    points = kinds[:: -(-len(kinds) // _SAMPLE)]
    size = _CENTROIDS - len(quiet)
    at = ((np.arange(size) + 0.5) / size * len(points)).astype(np.int64)
    table = points[at].copy()
    for _ in range(_STEPS):
        near = _nearest(points, table).astype(np.int64)
        total = np.bincount(near, minlength=size)
        for column in range(points.shape[1]):
            mean = np.bincount(near, points[:, column], size) / np.maximum(total, 1)
            table[:, column] = np.where(total > 0, mean, table[:, column])
    return np.concatenate([table, quiet])
