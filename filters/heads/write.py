"""Write a fitted linear classifier as a fastText file that the library and `filters.fasttext` load.

A row of the input matrix is (what the feature says, 1); the mean of the ones is 1, so the last
column of the output matrix is the bias that the format has no place for. `.ftz` is the format's
own product quantization: 256 centroids for each pair of columns, chosen by k-means over the rows that
carry weight. That is a byte for each feature and pair of columns.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_MAGIC, _FORMAT = 793712314, 12
_SUPERVISED, _SOFTMAX = 3, 3
_CENTROIDS = 256


@dataclass(frozen=True, slots=True)
class Head:
    """A linear classifier over `features.Space`, before or after quantization."""

    words: tuple[str, ...]
    counts: np.ndarray  # int64[words]
    bucket: int
    labels: tuple[str, ...]  # without `__label__`
    label_counts: np.ndarray  # int64[labels]
    rows: np.ndarray  # float32[words + bucket, dim], the last column ones
    output: np.ndarray  # float32[labels, dim]
    weight: np.ndarray  # float64[words + bucket]: how much a row matters, for the centroids


def to_bytes(head: Head, quantized: bool) -> bytes:
    """The file's bytes: dense (`.bin`) or quantized (`.ftz`)."""
    rows, dim = head.rows.shape
    entries = [
        *((w, int(c), 0) for w, c in zip(head.words, head.counts, strict=True)),
        *((f"__label__{n}", int(c), 1) for n, c in zip(head.labels, head.label_counts, strict=True)),
    ]
    arguments = (dim, 5, 1, 1, 5, 2, _SOFTMAX, _SUPERVISED, head.bucket, 0, 0, 100)
    sizes = (len(entries), len(head.words), len(head.labels), int(head.counts.sum()), -1)
    parts = [
        struct.pack("<ii", _MAGIC, _FORMAT),
        struct.pack("<12i", *arguments),
        struct.pack("<d", 1e-4),
        struct.pack("<iiiqq", *sizes),
        *(
            word.encode("utf-8", "replace") + b"\0" + struct.pack("<qb", count, kind)
            for word, count, kind in entries
        ),
        struct.pack("<?", quantized),
    ]
    if quantized:
        codes, centroids = _quantize(head.rows, head.weight)
        parts += [struct.pack("<?qqi", False, rows, dim, codes.size), codes.tobytes()]
        width = min(2, dim)
        last = dim % width or width
        parts += [struct.pack("<iiii", dim, codes.shape[1], width, last), centroids]
    else:
        parts += [struct.pack("<qq", rows, dim), head.rows.astype("<f4").tobytes()]
    output = head.output.astype("<f4")
    parts += [struct.pack("<?", False), struct.pack("<qq", *output.shape), output.tobytes()]
    return b"".join(parts)


def write(head: Head, path: Path, quantized: bool) -> None:
    """Write the file; the name does not decide what is in it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(to_bytes(head, quantized))


def _quantize(rows: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, bytes]:
    """Codes uint8[rows, pairs] and the bytes of the centroids, pair by pair."""
    dim = rows.shape[1]
    codes, centroids = [], []
    for start in range(0, dim, 2):
        block = rows[:, start : start + 2].astype(np.float64)
        table = _centroids(block, weight)
        codes.append(_nearest(block, table))
        centroids.append(table.astype("<f4").tobytes())
    return np.stack(codes, 1), b"".join(centroids)


def _nearest(block: np.ndarray, table: np.ndarray) -> np.ndarray:
    out = np.empty(len(block), np.uint8)
    norms = (table * table).sum(1)
    for first in range(0, len(block), 1 << 14):
        part = block[first : first + (1 << 14)]
        out[first : first + len(part)] = (norms - 2 * part @ table.T).argmin(1)
    return out


def _centroids(block: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """float64[256, width] by weighted Lloyd steps from weighted quantiles of the first column.

    A row of zeros (a bucket that no text of the training fell into) is a centroid of its own, so
    that it stays exactly zero.
    """
    silent = np.flatnonzero(weight == 0)
    spoken = np.flatnonzero(weight > 0)
    points, mass = block[spoken], weight[spoken]
    size = _CENTROIDS - (len(silent) > 0)
    order = np.argsort(points[:, 0], kind="stable")
    ramp = np.cumsum(mass[order] * (1e-9 + np.abs(points[order, 0] - _middle(points[:, 0], mass))))
    at = np.searchsorted(ramp, (np.arange(size) + 0.5) / size * ramp[-1])
    table = points[order[np.minimum(at, len(order) - 1)]].copy()
    for _ in range(12):
        near = _nearest(points, table).astype(np.int64)
        total = np.bincount(near, mass, size)
        for column in range(points.shape[1]):
            mean = np.bincount(near, mass * points[:, column], size) / np.maximum(total, 1e-300)
            table[:, column] = np.where(total > 0, mean, table[:, column])
    return np.concatenate([table, block[silent[:1]]])[:_CENTROIDS] if len(silent) else table


def _middle(values: np.ndarray, mass: np.ndarray) -> float:
    return float((values * mass).sum() / mass.sum())
