"""fastText's features of a text, as a sparse matrix: what a model of its format can be fitted on.

Tokens are what stands between fastText's blanks, case and punctuation and all, then `</s>`. On the
1,485 labelled pages that beats lower-cased words as features of a mean (`quality evaluate`). A
row is the mean that the library takes: words of the vocabulary and hashed bigrams, each 1/n.
Hashes are the library's: FNV-1a over signed bytes, bigrams by its multiplier, modulo `bucket`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
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
    """A vocabulary and a number of buckets: the columns of a matrix, words first."""

    words: tuple[str, ...]
    bucket: int

    @property
    def columns(self) -> int:
        """Words and buckets."""
        return len(self.words) + self.bucket


def vocabulary(tokens: Tokens, rows: Iterable[np.ndarray], at_least: int) -> tuple[str, ...]:
    """`</s>`, then the tokens that stand in `at_least` texts, by falling count, then by bytes."""
    seen = np.zeros(len(tokens.number), np.int64)
    for row in rows:
        seen[np.unique(row)] += 1
    names = [w for w in tokens.number if w != EOS and not w.startswith(_LABEL)]
    kept = [(-seen[tokens.number[w]], w.encode("utf-8", "replace"), w) for w in names]
    return EOS, *(w for count, _, w in sorted(kept) if -count >= at_least)


def matrix(tokens: Tokens, rows: Sequence[np.ndarray], space: Space) -> Any:
    """Scipy CSR float64[texts, columns] of means; each row sums to 1."""
    from scipy import sparse

    column = np.full(len(tokens.number), -1, np.int64)
    for place, word in enumerate(space.words):
        if word in tokens.number:
            column[tokens.number[word]] = place
    hashes = tokens.hashes()
    indices, data, ends = [], [], [0]
    for row in rows:
        h = hashes[row]
        pairs = (h[:-1] * _MULTIPLIER + h[1:]) % np.uint64(space.bucket) if space.bucket else h[:0]
        known = column[row]
        every = np.concatenate([known[known >= 0], pairs.astype(np.int64) + len(space.words)])
        places, counts = np.unique(every, return_counts=True)
        indices.append(places)
        data.append(counts / max(1, len(every)))
        ends.append(ends[-1] + len(places))
    flat = np.concatenate(indices) if indices else np.empty(0, np.int64)
    values = np.concatenate(data) if data else np.empty(0)
    return sparse.csr_matrix((values, flat, ends), shape=(len(rows), space.columns))
