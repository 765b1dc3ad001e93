"""Models ready to score: several of one scheme share one pass over the text and one table.

The table has a row for each word that any of the models knows and for each bucket that any of them
kept, and in it, beside each other, what every model says of that feature: a look-up and a miss of
the cache are paid once. A column for each model counts its features, for a word that one model
knows may be new to the next; a word's subwords are added to its row beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from ...documents.text import TextView, text_view
from . import _kernels, _kernels_linear
from .collapse import Answer, Linear, Scheme, linear
from .parse import HIERARCHICAL, SOFTMAX, parse

_BITS = 30  # of the largest number of a model, in fixed point


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a model stands in the table."""

    model: int  # in the order asked for
    answer: Answer
    column: int
    width: int  # columns
    count: int  # its column of counts
    step: float  # what one unit of its columns is


@dataclass(frozen=True, slots=True)
class _Table:
    """Models of one scheme over one table; the tuples are `_kernels`'s."""

    scheme: tuple[int, int, int, int]
    words: tuple[np.ndarray, np.ndarray, np.ndarray, int]
    buckets: tuple[np.ndarray, np.ndarray]
    table: np.ndarray  # int32[words + buckets, columns], columns a multiple of four
    places: tuple[_Place, ...]

    def score(self, view: TextView, into: list[np.ndarray], known: list[np.ndarray]) -> None:
        """Probabilities of each model of this table into `into`, features into `known`."""
        sums = np.zeros((view.rows, self.table.shape[1]), np.int64)
        _kernels.sums(
            view.data, view.offsets, self.words, self.scheme, self.buckets, self.table, sums
        )
        for place in self.places:
            mean = np.empty((view.rows, place.width), np.float64)
            _kernels_linear.means(sums, place.column, place.count, place.step, mean)
            into[place.model] = _probabilities(place.answer, mean)
            known[place.model] = sums[:, place.count].copy()


def _probabilities(model: Answer, mean: np.ndarray) -> np.ndarray:
    if model.product is not None:
        logits = np.empty((len(mean), model.product.shape[1]), np.float64)
        _kernels_linear.collapse(mean.astype(np.float32), model.product, logits)
        mean = logits
    out = np.empty((len(mean), len(model.labels)), np.float32)
    if model.loss == SOFTMAX:
        _kernels_linear.softmax(mean, out)
    elif model.loss == HIERARCHICAL:
        _kernels_linear.tree(mean, *model.children, out)
    else:
        _kernels_linear.sigmoids(mean, out)
    return out


def _pool(entries: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
    bounds = np.zeros(len(entries) + 1, np.int64)
    np.cumsum([len(e) for e in entries], out=bounds[1:])
    return np.frombuffer(b"".join(entries), np.uint8), bounds


def _buckets(models: Sequence[Linear], bucket: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which buckets have a row (ascending), and the bits and ranks that find it."""
    none = np.empty(0, np.uint64), np.empty(0, np.uint32)
    kept = [m.buckets for m in models if m.buckets is not None]
    if len(kept) < len(models):
        return np.arange(bucket), *none
    held = np.unique(np.concatenate(kept))
    bits = np.zeros(bucket // 64 + 1, np.uint64)
    np.bitwise_or.at(bits, held >> 6, np.uint64(1) << (held & 63).astype(np.uint64))
    ranks = np.searchsorted(held, np.arange(len(bits)) * 64).astype(np.uint32)
    return held, bits, ranks


def _fuse(models: Sequence[tuple[int, Linear]]) -> _Table:
    """One table of models of one scheme, each with its place in the order asked for."""
    alone = [m for _, m in models]
    *numbers, _ = alone[0].scheme
    scheme = (numbers[0], numbers[1], numbers[2], numbers[3])
    words = list(dict.fromkeys(word for m in alone for word in m.words))
    labels = list(dict.fromkeys(entry for m in alone for entry in m.label_entries))
    pool, bounds = _pool([*words, *labels])
    slots = 1 << max(4, (2 * len(bounds)).bit_length())
    known = np.zeros((slots, 4), np.uint64)
    _kernels.index(pool, bounds, known)
    held, *found = _buckets(alone, scheme[1])
    width = sum(m.values.shape[1] + 1 for m in alone)
    table = np.zeros((len(words) + len(held), -(-width // 4) * 4), np.int32)
    places, column = [], 0
    for at, m in models:
        count = column + m.values.shape[1]
        step = _fill(m, words, (pool, bounds), held, table, column)
        places.append(_Place(at, m.answer, column, m.values.shape[1], count, step))
        column = count + 1
    return _Table(
        scheme, (known, pool, bounds, len(words)), (found[0], found[1]), table, tuple(places)
    )


def _fill(
    m: Linear,
    words: list[bytes],
    pool: tuple[np.ndarray, np.ndarray],
    held: np.ndarray,
    table: np.ndarray,
    column: int,
) -> float:
    """Write a model's columns, its counts after them; returns what one unit is."""
    number = {word: row for row, word in reversed(list(enumerate(m.words)))}
    own = np.array([number.get(word, -1) for word in words], np.int32)
    _, bits, ranks = _buckets([m], m.scheme.bucket)
    width = m.values.shape[1]
    folded, counts = np.zeros((len(words), width)), np.zeros(len(words), np.int32)
    bounds = pool[1][: len(words) + 1]
    *scheme, _ = m.scheme
    _kernels.fold(
        pool[0], bounds, own, tuple(scheme), (bits, ranks), m.values, len(m.words), folded, counts
    )
    rest = m.values[len(m.words) :]
    most = max((float(np.abs(part).max()) for part in (folded, rest) if part.size), default=0.0)
    scale = float(np.ldexp(1.0, _BITS - int(np.frexp(most)[1]) if most else 0))
    _kernels_linear.fix(folded, scale, 0, column, table)
    rows = len(words) + (held if m.buckets is None else np.searchsorted(held, m.buckets))
    fixed = np.zeros((len(rest), width), np.int32)
    _kernels_linear.fix(rest, scale, 0, 0, fixed)
    table[rows, column : column + width] = fixed
    table[: len(words), column + width] = counts
    table[rows, column + width] = 1
    return 1.0 / scale


class Bank:
    """Several models over the same texts. Models of one scheme share the pass and the table.

    The models themselves need not be kept: the table has all that is asked of them.
    """

    def __init__(self, models: Sequence[Linear]) -> None:
        """Fuse the models; half a second for 2,000,000 rows of two models."""
        groups: dict[Scheme, list[tuple[int, Linear]]] = {}
        for at, model in enumerate(models):
            groups.setdefault(model.scheme, []).append((at, model))
        self._models = len(models)
        self._tables = [_fuse(group) for group in groups.values()]

    def probabilities(self, text: pa.Array | pa.ChunkedArray) -> list[np.ndarray]:
        """float32[rows, labels] of each model, in the order given."""
        return self._ask(text_view(text))[0]

    def judge(
        self, text: pa.Array | pa.ChunkedArray
    ) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
        """Probabilities as above, and on how much they stand.

        Features of each text that each model knows, int64[rows] in the order given, the end of the
        line aside; and words (between blanks) of each text, int64[rows].
        """
        view = text_view(text)
        out, known = self._ask(view)
        _, nothing = self._ask(text_view(pa.array([""], pa.large_string())))
        words = np.empty(view.rows, np.int64)
        _kernels.words(view.data, view.offsets, words)
        return out, [k - n for k, n in zip(known, nothing, strict=True)], words

    def _ask(self, view: TextView) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Probabilities of each model, and how many features of each text it knows."""
        out = [np.empty((0, 0), np.float32)] * self._models
        known = [np.empty(0, np.int64)] * self._models
        for table in self._tables:
            table.score(view, out, known)
        return out, known


@dataclass(frozen=True, eq=False)
class Model:
    """One model of a file. `labels` are without `__label__`, in the file's order."""

    linear: Linear

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns of `probabilities`."""
        return self.linear.answer.labels

    @cached_property
    def _bank(self) -> Bank:
        return Bank([self.linear])

    def probabilities(self, text: pa.Array | pa.ChunkedArray) -> np.ndarray:
        """float32[rows, labels]: what the library's `predict` gives, less the 1e-5 that it adds.

        Line feeds are spaces and a line ends after the text. A text without any feature that the
        model knows gets what the model says of nothing: all labels alike under softmax.
        """
        return self._bank.probabilities(text)[0]


def load(path: str | Path) -> Model:
    """Read a supervised `.bin` or `.ftz`; UsageError says what is wrong, and at which byte."""
    return Model(linear(parse(Path(path))))


def bank(models: Sequence[Model]) -> Bank:
    """Models to be asked together; one pass over the text for all that share a scheme."""
    return Bank([model.linear for model in models])
