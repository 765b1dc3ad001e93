"""fastText's features of a text, as a sparse matrix: what a model of its format can be fitted on.

Tokens are what stands between fastText's blanks, then `</s>`: what the library sees of a text as
the head reads it (`_reading`). A row is the mean that the library takes: words of the
vocabulary and hashed bigrams, each 1/n.
Hashes are the library's: FNV-1a over signed bytes, bigrams by its multiplier, modulo `bucket`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

EOS = "</s>"
_BLANK = re.compile("[ \n\r\t\v\f\0]+")
_MULTIPLIER = np.uint64(116049371)
_LABEL = "__label__"


def fnv(word: bytes) -> int:
    """The library's 32-bit hash of a word."""
    h = 2166136261
    for byte in word:
        h = ((h ^ (byte if byte < 128 else byte | 0xFFFFFF00)) * 16777619) & 0xFFFFFFFF
    return h


class Tokens:
    """Texts as arrays of token numbers; numbers are given in the order of first sight."""

    def __init__(self) -> None:
        self.number: dict[str, int] = {}
        self._hash: list[int] = []

    def read(self, text: str) -> np.ndarray:
        """int32[n + 1] numbers of the tokens of `text` and of `</s>`."""
        out = []
        for token in [*(t for t in _BLANK.split(text) if t), EOS]:
            number = self.number.get(token)
            if number is None:
                number = self.number[token] = len(self._hash)
                self._hash.append(fnv(token.encode("utf-8", "replace")))
            out.append(number)
        return np.array(out, np.int32)

    def hashes(self) -> np.ndarray:
        """uint64[tokens]: each hash as the library widens it, sign and all."""
        return np.array(self._hash, np.uint32).view(np.int32).astype(np.int64).view(np.uint64)


@dataclass(frozen=True, slots=True)
class Space:
    """The columns of a matrix: words, then the buckets of bigrams that have a row."""

    words: tuple[str, ...]
    bucket: int  # what hashes are taken modulo
    kept: np.ndarray  # int64[m], rising

    @property
    def columns(self) -> int:
        """Words and buckets."""
        return len(self.words) + len(self.kept)


def space(
    tokens: Tokens, rows: Sequence[np.ndarray], bucket: int, at_least: int, pairs_at_least: int
) -> Space:
    """`</s>`, the words and the bigrams that stand in enough texts; others are not features.

    Words come by falling count, then by bytes. Bigrams are counted as pairs of tokens, before
    hashing: a bucket does not come in because two rare ones met there.
    """
    seen = np.zeros(len(tokens.number), np.int64)
    pairs = []
    for row in rows:
        seen[np.unique(row)] += 1
        pairs.append(np.unique(row[:-1].astype(np.int64) << 32 | row[1:]))
    kept = sorted(
        (-int(seen[n]), w.encode("utf-8", "replace"), w)
        for w, n in tokens.number.items()
        if w != EOS and not w.startswith(_LABEL) and seen[n] >= at_least
    )
    words = (EOS, *(w for *_, w in kept))
    every, counts = np.unique(np.concatenate(pairs), return_counts=True)
    often = every[counts >= pairs_at_least]
    hashes = tokens.hashes()
    hashed = _bigrams(hashes[often >> 32], hashes[often & 0xFFFFFFFF], bucket)
    return Space(words, bucket, np.unique(hashed))


def _bigrams(first: np.ndarray, second: np.ndarray, bucket: int) -> np.ndarray:
    return ((first * _MULTIPLIER + second) % np.uint64(bucket)).astype(np.int64)


def matrix(tokens: Tokens, rows: Sequence[np.ndarray], space: Space) -> Any:
    """CSR float64[texts, columns] of means (scipy); a row sums to 1, for `</s>` is in each text."""
    from scipy import sparse

    column = np.full(len(tokens.number), -1, np.int64)
    for place, word in enumerate(space.words):
        if word in tokens.number:
            column[tokens.number[word]] = place
    hashes = tokens.hashes()
    indices, data, ends = [], [], [0]
    for row in rows:
        h = hashes[row]
        pairs = _bigrams(h[:-1], h[1:], space.bucket)
        at = np.searchsorted(space.kept, pairs)
        at = at[np.append(space.kept, -1)[at] == pairs]
        known = column[row]
        every = np.concatenate([known[known >= 0], at + len(space.words)])
        places, counts = np.unique(every, return_counts=True)
        indices.append(places)
        data.append(counts / len(every))
        ends.append(ends[-1] + len(places))
    flat = np.concatenate(indices) if indices else np.empty(0, np.int64)
    values = np.concatenate(data) if data else np.empty(0)
    return sparse.csr_matrix((values, flat, ends), shape=(len(rows), space.columns))
