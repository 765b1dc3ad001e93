"""Write a fitted linear classifier as a fastText file that the library and `filters.fasttext` load.

A row of the input matrix is (what the feature says, 1); the mean of the ones is 1, so the last
column of the output matrix is the bias that the format has no place for. Only buckets of bigrams
that were seen have a row: the format's pruning. `.ftz` is the format's product quantization with
parts of one column: 256 levels for each, a byte a feature and column. The library takes pruned
models only when they are quantized; the dense `.bin` is for `quantize` and `filters.fasttext`.
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
    kept: np.ndarray  # int64[m]: the buckets that have a row
    labels: tuple[str, ...]  # without `__label__`
    label_counts: tuple[int, ...]
    rows: np.ndarray  # float32[words + m, dim], the last column ones
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
    sizes = (len(entries), len(head.words), len(head.labels), len(head.words), len(head.kept))
    parts = [
        struct.pack("<ii", _MAGIC, _FORMAT),
        struct.pack("<12i", *arguments),
        struct.pack("<d", 1e-4),
        struct.pack("<iiiqq", *sizes),
        *(word + b"\0" + struct.pack("<qb", count, kind) for word, count, kind in entries),
        np.stack([head.kept, np.arange(len(head.kept))], 1).astype("<i4").tobytes(),
        struct.pack("<?", quantized),
    ]
    if quantized:
        codes, centroids = _quantize(head.rows)
        parts += [struct.pack("<Bqqi", 0, rows, dim, codes.size), codes.tobytes()]
        parts += [struct.pack("<iiii", dim, dim, 1, 1), centroids]
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
    dense = parsed.input.quantizer is None and parsed.kept is not None
    if not dense or parsed.loss != _SOFTMAX or parsed.ngrams != 2 or parsed.maxn:
        msg = f"{path}: expected the .bin of `gristmill quality train`: dense, softmax"
        raise UsageError(msg)
    return Head(
        words=parsed.words,
        bucket=parsed.bucket,
        kept=np.asarray(parsed.kept)[:, 0],
        labels=tuple(label.decode().removeprefix("__label__") for label in parsed.labels),
        label_counts=tuple(parsed.label_counts),
        rows=parsed.input.whole(),
        output=parsed.output.whole(),
    )


def _quantize(rows: np.ndarray) -> tuple[np.ndarray, bytes]:
    """Codes uint8[rows, columns] and the bytes of the centroids, column by column.

    `</s>` has a centroid of its own: its weight, of the length of a text, is the largest by far,
    and stands in every text.
    """
    codes, centroids = [], []
    for column in rows.astype(np.float64).T:
        table = _centroids(np.unique(column[1:]), _CENTROIDS - 1)
        table = np.sort(np.append(table, column[0]))
        codes.append(np.searchsorted((table[1:] + table[:-1]) / 2, column).astype(np.uint8))
        centroids.append(table.astype("<f4").tobytes())
    return np.stack(codes, 1), b"".join(centroids)


def _centroids(values: np.ndarray, count: int) -> np.ndarray:
    """`count` float64, rising, by Lloyd's steps from even places in the order of the values.

    0, what a bucket says that no text of the training fell into, stays exactly 0.
    """
    if len(values) <= count:
        return np.concatenate([values, np.repeat(values[-1:], count - len(values))])
    points = values[:: -(-len(values) // _SAMPLE)]
    table = points[((np.arange(count) + 0.5) / count * len(points)).astype(np.int64)]
    for _ in range(_STEPS):
        near = np.searchsorted((table[1:] + table[:-1]) / 2, points)
        points_in = np.bincount(near, minlength=count)
        total = np.bincount(near, points, count)
        table = np.where(points_in > 0, total / np.maximum(points_in, 1), table)
    if values[0] < 0 < values[-1]:
        table[np.abs(table).argmin()] = 0.0
    return table
