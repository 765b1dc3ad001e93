"""fastText's model files, `.bin` and `.ftz`: what stands where, and what is wrong with a file.

Format 12 (and 11, whose supervised models have no subwords), little-endian, no alignment:

    int32  magic, format
    int32  dim, ws, epoch, minCount, neg, wordNgrams, loss, model, bucket, minn, maxn, lrUpdateRate
    f64    t
    int32  entries, words, labels;  int64 tokens, pruned (buckets kept; -1: never pruned)
    entry  bytes, NUL, int64 count, int8 kind (0 word, 1 label)          x entries
    int32  bucket, row after the words                                   x pruned
    u8     is the input matrix quantized?   matrix
    u8     is the output matrix, if the input is?   matrix

A dense matrix is int64 rows, int64 columns, float32s. A quantized one: u8 are norms apart, int64
rows, int64 columns, int32 bytes of codes, codes, a quantizer; and with norms a byte for each
row and a quantizer of them. A quantizer: int32 dim, parts, part's width, last part's width, and 256
centroids for each part. (Joulin et al. 2016, "FastText.zip"; the library's source.)

The file is mapped, not read: matrices are taken in blocks, so that a model of 2 GB need not be held
twice.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...documents.errors import UsageError
from . import _kernels

MAGIC, FORMATS = 793712314, (11, 12)
SUPERVISED = 3
HIERARCHICAL, NEGATIVE, SOFTMAX, ONE_VS_ALL = 1, 2, 3, 4
_ARGS = (
    "dim", "ws", "epoch", "minCount", "neg", "wordNgrams", "loss", "model", "bucket", "minn",
    "maxn", "lrUpdateRate",
)  # fmt: skip
_LIMITS = {  # what a field may be, in a file that is what it says
    "dim": (1, 1 << 16),
    "wordNgrams": (0, 64),
    "loss": (1, 4),
    "model": (1, 3),
    "bucket": (0, 1 << 31),
    "minn": (0, 1 << 10),
    "maxn": (0, 1 << 10),
}
_BLOCK = 1 << 16  # rows read at once


@dataclass(frozen=True, slots=True)
class Quantizer:
    """256 centroids for each part of a row."""

    width: int  # of a part
    last: int  # of the last part
    centroids: np.ndarray  # float32[dim * 256]

    def rows(self, codes: np.ndarray) -> np.ndarray:
        """The rows float32[n, dim] that codes uint8[n, parts] stand for."""
        parts = codes.shape[1]
        pieces = []
        for part in range(parts):
            width = self.last if part == parts - 1 else self.width
            start = part * 256 * self.width
            table = self.centroids[start : start + 256 * width].reshape(256, width)
            pieces.append(table[codes[:, part]])
        return np.concatenate(pieces, axis=1)


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix in the file: dense where `quantizer` is None."""

    rows: int
    columns: int
    data: np.ndarray  # dense: uint8 bytes of float32[rows, columns]; else codes uint8[rows, parts]
    quantizer: Quantizer | None = None
    norms: np.ndarray | None = None  # float32[rows]

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """(first row, float32[n, columns]) one after another."""
        for first in range(0, self.rows, _BLOCK):
            last = min(self.rows, first + _BLOCK)
            if self.quantizer is None:
                size = 4 * self.columns
                raw = self.data[first * size : last * size].tobytes()
                yield first, np.frombuffer(raw, "<f4").reshape(-1, self.columns)
                continue
            block = self.quantizer.rows(self.data[first:last])
            if self.norms is not None:
                block *= self.norms[first:last, None]
            yield first, block

    def whole(self) -> np.ndarray:
        """All of it, float32[rows, columns]."""
        parts = [block for _, block in self.blocks()]
        return np.concatenate(parts) if parts else np.empty((0, self.columns), np.float32)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A supervised model as its file holds it."""

    name: str  # of the file, for messages
    loss: int
    ngrams: int  # of words
    bucket: int
    minn: int  # characters; no subwords where maxn is 0
    maxn: int
    words: tuple[bytes, ...]
    labels: tuple[bytes, ...]  # with their prefix
    label_counts: tuple[int, ...]
    kept: np.ndarray | None  # int64[m, 2]: bucket and row after the words; None: all are there
    input: Matrix
    output: Matrix


class _Reader:
    """Takes fields off a mapped file; says where it ends too soon."""

    def __init__(self, path: Path, data: np.ndarray) -> None:
        self.path, self.data, self.at = path, data, 0

    def wrong(self, at: int, found: str, expected: str) -> UsageError:
        return UsageError(f"{self.path}: at byte {at}: found {found}; expected {expected}")

    def take(self, size: int, what: str) -> np.ndarray:
        if size < 0 or self.at + size > len(self.data):
            msg = (
                f"{self.path}: truncated: {what} takes {size:,} bytes at byte {self.at:,}, and the "
                f"file ends at {len(self.data):,}. Copy the model again"
            )
            raise UsageError(msg)
        self.at += size
        return self.data[self.at - size : self.at]

    def fields(self, layout: str, what: str) -> tuple[int, ...]:
        return struct.unpack("<" + layout, self.take(struct.calcsize("<" + layout), what).tobytes())

    def flag(self, what: str) -> bool:
        at = self.at
        (value,) = self.fields("B", what)
        if value > 1:
            raise self.wrong(at, f"{value} for {what}", "0 or 1")
        return bool(value)


def _open(path: Path) -> np.ndarray:
    try:
        with path.open("rb") as file:
            return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    except ValueError:  # nothing to map
        msg = f"{path}: an empty file; expected a fastText model (.bin or .ftz)"
        raise UsageError(msg) from None
    except OSError as error:
        msg = f"{path}: {error.strerror}; expected a fastText model (.bin or .ftz)"
        raise UsageError(msg) from error


def _check_magic(reader: _Reader) -> int:
    head = reader.data[:4].tobytes()
    if head != struct.pack("<i", MAGIC):
        hint = ""
        first = reader.data[:64].tobytes().split(b"\n")[0].split()
        if len(first) == 2 and all(part.isdigit() for part in first):
            hint = ". It looks like a .vec file (word vectors as text): name the .bin it came from"
        elif head[:2] == b"\x1f\x8b" or head in {b"\x28\xb5\x2f\xfd", b"PK\x03\x04"}:
            hint = ". It is compressed: unpack it first"
        msg = (
            f"{reader.path}: not a fastText model: begins with {head.hex(' ')}, expected "
            f"{struct.pack('<i', MAGIC).hex(' ')}{hint}"
        )
        raise UsageError(msg)
    _, number = reader.fields("ii", "the header")
    if number not in FORMATS:
        msg = (
            f"{reader.path}: fastText format {number} at byte 4; this version reads "
            f"{' and '.join(map(str, FORMATS))}. Save the model with fasttext-community 0.11"
        )
        raise UsageError(msg)
    return number


def _quantizer(reader: _Reader, dim: int, what: str) -> Quantizer:
    at = reader.at
    found, parts, width, last = reader.fields("iiii", what)
    if found != dim or width < 1 or last < 1 or (parts - 1) * width + last != dim:
        shape = f"dim {found}, {parts} parts of {width}, the last of {last}"
        raise reader.wrong(at, f"{what} of {shape}", f"parts that make up {dim}")
    raw = reader.take(dim * 256 * 4, f"centroids of {what}").tobytes()
    return Quantizer(width, last, np.frombuffer(raw, "<f4"))


def _matrix(reader: _Reader, dim: int, quantized: bool, what: str) -> Matrix:
    at = reader.at
    normed = quantized and reader.flag(f"whether {what} has norms apart")
    rows, columns = reader.fields("qq", f"the shape of {what}")
    if columns != dim or rows < 0:
        raise reader.wrong(at, f"{what} of {rows:,} x {columns:,}", f"{dim} columns (dim)")
    if not quantized:
        return Matrix(rows, columns, reader.take(rows * columns * 4, what))
    at = reader.at
    (size,) = reader.fields("i", f"the size of {what}'s codes")
    parts = size // rows if rows else 0
    if rows and size != rows * parts:
        raise reader.wrong(at, f"{size:,} bytes of codes", f"as many for each of {rows:,} rows")
    codes = reader.take(size, f"codes of {what}").reshape(rows, parts)
    quantizer = _quantizer(reader, dim, f"the quantizer of {what}")
    if rows and parts != -(-dim // quantizer.width):
        raise reader.wrong(at, f"{parts} codes a row", f"{-(-dim // quantizer.width)}")
    norms = None
    if normed:
        norm_codes = reader.take(rows, f"norms of {what}").reshape(rows, 1)
        norms = _quantizer(reader, 1, f"the quantizer of {what}'s norms").rows(norm_codes)[:, 0]
    return Matrix(rows, columns, codes, quantizer, norms)


def _entries(reader: _Reader, size: int, words: int) -> tuple[list[bytes], np.ndarray, np.ndarray]:
    """Bytes, counts and kinds of the dictionary's entries."""
    if size > len(reader.data) - reader.at:
        reader.take(10 * size, f"the dictionary of {size:,} entries")
    starts, sizes, counts = (np.zeros(size, np.int64) for _ in range(3))
    kinds = np.zeros(size, np.uint8)
    end = _kernels.entries(reader.data, reader.at, size, starts, sizes, counts, kinds)
    if end < 0:
        reader.at = int(starts[-1 - end])
        reader.take(len(reader.data), f"entry {-1 - end:,} of {size:,} of the dictionary")
    wrong = np.flatnonzero(kinds != (np.arange(size) >= words))
    if len(wrong):
        at, kind = int(starts[wrong[0]]), int(kinds[wrong[0]])
        expected = f"{words:,} words (0) and then labels (1)"
        raise reader.wrong(at, f"entry {int(wrong[0]):,} of kind {kind}", expected)
    reader.at = int(end)
    raw = reader.data.data
    texts = [bytes(raw[s : s + n]) for s, n in zip(starts.tolist(), sizes.tolist(), strict=True)]
    return texts, counts, kinds


def parse(path: Path) -> Parsed:
    """Read a supervised model; UsageError says which file, at what byte, what is not as it should.

    A file that goes on after the output matrix is refused: something was appended or misread.
    """
    reader = _Reader(path, _open(path))
    number = _check_magic(reader)
    at = reader.at
    args = dict(zip(_ARGS, reader.fields("12i", "the arguments"), strict=True))
    reader.fields("d", "the sampling threshold")
    for position, name in enumerate(_ARGS):
        low, high = _LIMITS.get(name, (-(1 << 31), 1 << 31))
        if not low <= args[name] <= high:
            expected = f"{low} to {high}"
            raise reader.wrong(at + 4 * position, f"{name} = {args[name]}", expected)
    if args["model"] != SUPERVISED:
        kind = {1: "cbow", 2: "skipgram"}[args["model"]]
        msg = (
            f"{path}: word vectors ({kind}), not a classifier. Train one with labels "
            "(fasttext supervised, or gristmill quality train)"
        )
        raise UsageError(msg)
    if number == FORMATS[0]:
        args["maxn"] = 0
    at = reader.at
    size, words, labels = reader.fields("iii", "the dictionary's sizes")
    _, pruned = reader.fields("qq", "the dictionary's counts")
    if min(words, labels) < 0 or words + labels != size or not labels or pruned < -1:
        found = f"{size:,} entries, {words:,} words, {labels:,} labels, {pruned:,} buckets kept"
        raise reader.wrong(at, found, "entries = words + labels, a label at least")
    texts, counts, _ = _entries(reader, size, words)
    kept = None
    if pruned >= 0:
        raw = reader.take(8 * pruned, f"{pruned:,} kept buckets").tobytes()
        kept = np.frombuffer(raw, "<i4").reshape(-1, 2).astype(np.int64)
    quantized = reader.flag("whether the input matrix is quantized")
    at = reader.at
    into = _matrix(reader, args["dim"], quantized, "the input matrix")
    needs = args["wordNgrams"] > 1 or args["maxn"] > 0
    if needs and not args["bucket"]:
        raise reader.wrong(8, "no buckets", "some, for n-grams hash into them")
    need = words + (len(kept) if kept is not None else args["bucket"] if needs else 0)
    if into.rows < need:
        raise reader.wrong(at, f"an input matrix of {into.rows:,} rows", f"{need:,} at least")
    if kept is not None and len(kept):
        inside = (kept >= 0).all() and (kept[:, 0] < max(1, args["bucket"])).all()
        if not inside or (kept[:, 1] + words >= into.rows).any():
            raise reader.wrong(at, "a kept bucket beyond the buckets or the rows", "one of them")
    both = reader.flag("whether the output matrix is quantized")
    at = reader.at
    out = _matrix(reader, args["dim"], quantized and both, "the output matrix")
    if out.rows != labels:
        raise reader.wrong(at, f"an output matrix of {out.rows:,} rows", f"{labels:,} (labels)")
    if reader.at != len(reader.data):
        found = f"{len(reader.data) - reader.at:,} bytes after the output matrix"
        raise reader.wrong(reader.at, found, "the end of the file")
    return Parsed(
        name=str(path),
        loss=args["loss"],
        ngrams=args["wordNgrams"],
        bucket=args["bucket"],
        minn=args["minn"],
        maxn=args["maxn"],
        words=tuple(texts[:words]),
        labels=tuple(texts[words:]),
        label_counts=tuple(counts[words:].tolist()),
        kept=kept,
        input=into,
        output=out,
    )
