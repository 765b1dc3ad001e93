"""Plain-Python twin of filters/fasttext: features by lists and dictionaries, as the library's.

And a model file written byte by byte, for tests that need no library.
"""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import numpy as np

SPACES = b" \n\r\t\v\f\0"
EOS = b"</s>"


def fnv(data: bytes) -> int:
    h = 2166136261
    for byte in data:
        h ^= byte if byte < 128 else byte | 0xFFFFFF00
        h = h * 16777619 % 2**32
    return h


def signed(h: int) -> int:
    return h - 2**32 if h >= 2**31 else h


def split(text: bytes) -> list[bytes]:
    """Words of the text as one line, "</s>" last; one that stands in the text ends it."""
    for space in SPACES:
        text = text.replace(bytes([space]), b" ")
    words = [w for w in text.split(b" ") if w]
    if EOS in words:
        return words[: words.index(EOS) + 1]
    return [*words, EOS]


def characters(word: bytes) -> list[bytes]:
    """Pieces that begin with what is no continuation byte; those before the first are no piece."""
    out: list[bytes] = []
    for at in range(len(word)):
        if word[at] & 0xC0 != 0x80:
            out.append(word[at : at + 1])
        elif out:
            out[-1] += word[at : at + 1]
    return out


def subwords(word: bytes, minn: int, maxn: int, bucket: int) -> list[int]:
    if word == EOS:
        return []
    chars = characters(b"<" + word + b">")
    out = []
    for first in range(len(chars)):
        for size in range(1, maxn + 1):
            last = first + size
            if last > len(chars):
                break
            alone = size == 1 and (first == 0 or last == len(chars))
            if size >= minn and not alone:
                out.append(fnv(b"".join(chars[first:last])) % bucket)
    return out


def features(text: bytes, words, labels, scheme, kept) -> list[tuple[str, object]]:
    """("word", bytes) and ("bucket", number) of a text, for one model."""
    ngrams, bucket, minn, maxn = scheme
    found: list[tuple[str, object]] = []
    hashes = []
    for word in split(text):
        if word in words:
            found.append(("word", word))
        elif word in labels or word.startswith(b"__label__"):
            continue
        if maxn > 0:
            found += [("bucket", b) for b in subwords(word, minn, maxn, bucket)]
        hashes.append(signed(fnv(word)))
    for first in range(len(hashes)):
        h = hashes[first] % 2**64
        for other in hashes[first + 1 : first + ngrams]:
            h = (h * 116049371 + other) % 2**64
            if bucket:
                found.append(("bucket", h % bucket))
    return [(k, v) for k, v in found if k == "word" or kept is None or v in kept]


def total(text: bytes, words, labels, scheme, kept, values) -> tuple[list[Fraction], int]:
    """Sum of the features' rows, and how many there are. `values`: rows by feature."""
    rows = [values[f] for f in features(text, words, labels, scheme, kept)]
    if not rows:
        return [Fraction(0)] * len(next(iter(values.values()), [])), 0
    return [sum(map(Fraction, column), Fraction(0)) for column in zip(*rows, strict=True)], len(
        rows
    )


def softmax(logits: list[float]) -> list[float]:
    powers = [math.exp(x - max(logits)) for x in logits]
    return [p / sum(powers) for p in powers]


def sigmoid_table(x: float) -> float:
    if x < -8:
        return 0.0
    if x > 8:
        return 1.0
    step = math.floor((x + 8) * 32)
    return 1 / (1 + math.exp(-(step / 32 - 8)))


def huffman(counts: list[int]) -> list[list[tuple[int, int]]]:
    """For each label the way from the root: (inner node, 1 for right), by merging the lightest.

    Of equal weight, inner nodes come before labels, older inner nodes before newer, and labels
    from the last to the first: what two pointers over sorted counts come to.
    """
    labels = len(counts)
    pool = [(c, 1, labels - i, i) for i, c in enumerate(counts)]
    parent: dict[int, tuple[int, int]] = {}
    for inner in range(labels, 2 * labels - 1):
        pool.sort()
        (a, *_, left), (b, *_, right) = pool[:2]
        parent[left], parent[right] = (inner, 0), (inner, 1)
        pool = [*pool[2:], (a + b, 0, inner, inner)]
    paths = []
    for label in range(labels):
        path, node = [], label
        while node in parent:
            node, side = parent[node]
            path.append((node - labels, side))
        paths.append(path)
    return paths


DIM, BUCKET, WORDS, LABELS = 3, 4, (b"</s>", b"river"), (b"__label__a", b"__label__b")


def model_bytes(*, number=12, kept=None, rows=None, args=None, labels=LABELS) -> bytes:
    """The bytes of a dense model, written here, so that tests need no library."""
    fields = {
        "dim": DIM, "ws": 5, "epoch": 5, "minCount": 1, "neg": 5, "wordNgrams": 2, "loss": 3,
        "model": 3, "bucket": BUCKET, "minn": 0, "maxn": 0, "lrUpdateRate": 100,
    } | (args or {})  # fmt: skip
    raw = struct.pack("<ii12id", 793712314, number, *fields.values(), 1e-4)
    pruned = -1 if kept is None else len(kept)
    raw += struct.pack("<iiiqq", 4, 2, 2, 100, pruned)
    for kind, entries in enumerate((WORDS, labels)):
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
