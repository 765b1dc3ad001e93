"""Round `families`: documents of one family -> what becomes of them, by their texts.

The template is what a sample of the family shares: n-grams of masked items that at least a fifth of
64 members (and three) have; and n-grams of words, for lines that are all names. Every member is
then laid over it word by word (`_kernels_laid.cover`): words of the template, fills, and its own.
Lines that all pages have word for word say nothing of a page: they are boilerplate and go one by
one. Of the rest, a template page has at least `min_share` of its words, and `min_slotted` of them,
in lines with a slot, and fewer than `min_prose` of its own in lines of prose. So an entry of a
dictionary stays whatever stands around it, and so does a page whose slots hold prose.

A template has slots: where fewer than `min_pages` different fills are seen, the family is one text
on many pages (an article that others print too) and left to the duplicate stages.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from ...documents.exchange import KEY
from ._kernels_laid import RARE
from .keepers import DECIDED, with_lines
from .laid import Template, cover, grams, table_of, weigh, words_of
from .rows import array, id_order, ids_of, runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...documents.exchange import Texts

FETCH = 4 << 20  # bytes of texts at a time; their words take some ten times as much
HEARD = 2  # texts of the sample with a rare word, from which it is of their language
OF_ALL = 9, 10  # and fewer than so many of them: what all have is the template's
CHOICES = ("novelty", "length", "id")  # of exemplars


def template_of(texts: pa.Array, n: int, share: Fraction) -> Template:
    """n-grams that at least `share` of the texts (and three) have; words that many of them have."""
    words = words_of(texts)
    least = max(3, -(-len(texts) * share.numerator // share.denominator))
    shared = _in_many(grams(words, n), least)
    each = np.split(words.words, words.ends[:-1])
    usual = _in_many(each, -(-len(texts) // 2))
    rare = np.split(words.masks == RARE, words.ends[:-1])
    heard = _in_many([w[r] for w, r in zip(each, rare, strict=True)], HEARD)
    heard = np.setdiff1d(heard, _in_many(each, -(-OF_ALL[0] * len(texts) // OF_ALL[1])))
    return Template(table_of(shared), table_of(usual), table_of(heard))


def _in_many(each: list[np.ndarray], least: int) -> np.ndarray:
    """Values that at least `least` of the arrays have, ascending."""
    distinct = [np.unique(values) for values in each]
    values, number = np.unique(np.concatenate(distinct), return_counts=True)
    return values[number >= least]


def _batches(sizes: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Stretches (first, after) of texts of together at most `most` bytes, or of one."""
    ends = np.cumsum(sizes, dtype=np.int64)
    begin = 0
    while begin < len(ends):
        before = ends[begin - 1] if begin else 0
        end = max(int(np.searchsorted(ends, before + most, "right")), begin + 1)
        yield begin, end
        begin = end


@dataclass(frozen=True, kw_only=True)
class Families:
    """Templates from samples, and every member laid over its template."""

    name: ClassVar[str] = "families"
    ngram: int = 5
    sample: int = 64
    sample_share: str = "1/5"
    min_pages: int = 10
    min_share: str = "0.3"
    min_slotted: int = 20
    min_prose: int = 60
    cross_share: str = "0.5"
    exemplars: int = 3
    choice: str = "novelty"

    def needs(self, rows: pa.Table) -> pa.Table:
        """The members of each family: texts are read shard by shard, once, for all partitions."""
        family = array(rows, "family")
        _, which, sizes = np.unique(family, return_inverse=True, return_counts=True)
        some = (family != 0) & (sizes[which] >= self.min_pages)
        return rows.select(["shard", "row"]).filter(pa.array(some))

    def prepare(self, texts: pa.LargeStringArray) -> pa.Array:
        """The texts: their words would take more."""
        return texts

    def gather(self, rows: pa.Table, texts: Texts) -> pa.Table:
        """FOUND of whole families -> ASKED: decisions, and lines of those that stay."""
        family, page, text = (array(rows, n) for n in ("family", "page", "text"))
        order = id_order(rows, family, page, text)
        rows = rows.take(pa.array(order))
        family = family[order]
        decided = _Decided(rows)
        starts, sizes = runs(family)
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
            if family[start] != 0 and size >= self.min_pages:
                self._one(decided, rows, np.arange(start, start + size), texts)
        return with_lines(decided.table(), rows)

    def _one(self, decided: _Decided, rows: pa.Table, which: np.ndarray, texts: Texts) -> None:
        mine = rows.take(pa.array(which))
        page, text = array(mine, "page"), array(mine, "text")
        first_page = np.unique(page, return_index=True)[1]
        first_text = np.unique(text, return_index=True)[1]
        if min(len(first_page), len(first_text)) < self.min_pages:
            return
        shard, row = array(mine, "shard"), array(mine, "row")
        chosen = np.intersect1d(first_page, first_text)[: self.sample]
        known = template_of(
            texts(shard[chosen], row[chosen]), self.ngram, Fraction(self.sample_share)
        )
        weights = np.zeros((len(which), 5), np.int32)
        fills = np.zeros(len(which), np.uint64)
        for begin, end in _batches(array(mine, "bytes"), FETCH):
            words = words_of(texts(shard[begin:end], row[begin:end]))
            state = cover(words, self.ngram, known)
            weights[begin:end], fills[begin:end] = weigh(words, state)
        if len(np.unique(fills)) < self.min_pages:  # one text, copied: duplicates, no template
            return
        size, template, own, _, slotted = weights.T.astype(np.int64)
        limit = Fraction(self.min_share)
        rest = slotted + size - template  # without lines that all pages have word for word
        filled = (slotted * limit.denominator >= limit.numerator * rest) & (rest > 0)
        filled &= (own < self.min_prose) & (slotted >= self.min_slotted)
        if len(np.unique(array(mine, "host"))) > 1:  # what strangers share may be a footer
            most = Fraction(self.cross_share)
            filled &= template * most.denominator >= most.numerator * size
        if filled.any():
            rank = self._rank(mine, weights)
            decided.book(which, page, weights, rank[filled[rank]], self.exemplars)

    def _rank(self, mine: pa.Table, weights: np.ndarray) -> np.ndarray:
        """Members in the order in which exemplars are chosen."""
        length = -array(mine, "bytes").astype(np.int64)
        novelty = weights[:, 3].astype(np.int64) - weights[:, 0]
        keys = {"novelty": (novelty, length), "length": (length,), "id": ()}[self.choice]
        return id_order(mine, *keys)


class _Decided:
    """Decisions on all rows; what is not booked is kept."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows
        size = rows.num_rows
        self.code = np.zeros(size, np.uint8)
        self.witness = np.full(size, -1, np.int64)
        self.cluster = np.full(size, -1, np.int64)
        self.cluster_size = np.ones(size, np.uint32)
        self.weights = np.zeros((size, 5), np.int32)
        self.exemplar = np.zeros(size, bool)

    def book(
        self,
        which: np.ndarray,
        page: np.ndarray,
        weights: np.ndarray,
        filled: np.ndarray,
        exemplars: int,
    ) -> None:
        """One family: `filled` are its template pages, best first, as positions in `which`."""
        kept, gone = which[filled[:exemplars]], which[filled[exemplars:]]
        self.weights[which] = weights
        self.code[gone] = 1
        self.exemplar[kept] = True
        self.witness[gone] = kept[0]
        self.cluster[which] = kept[0]
        self.cluster_size[which] = len(np.unique(page))

    def table(self) -> pa.Table:
        """DECIDED, in the order of the rows."""
        rows = self.rows
        gone = self.code != 0
        slotted = self.weights[:, 4].astype(np.uint32)
        own = (self.weights[:, 0] - self.weights[:, 1]).astype(np.uint32)
        ids = ids_of(rows)
        proof = pa.array(self.witness, mask=~gone)
        columns = {
            n: rows.column(n) for n in (*KEY.names, "host_pages", "lone", "filled", "segments")
        }
        columns |= {
            "code": pa.array(self.code),
            "witness_shard": rows.column("shard").take(proof),
            "witness_id": ids.take(proof),
            "shared": pa.array(slotted, mask=~gone),
            "either": pa.array(slotted + own, mask=~gone),
            "cluster": ids.take(pa.array(self.cluster, mask=self.cluster < 0)),
            "cluster_size": pa.array(self.cluster_size),
            "words": pa.array(self.weights[:, 0].astype(np.uint32)),
            "template_words": pa.array(self.weights[:, 1].astype(np.uint32)),
            "own_words": pa.array(self.weights[:, 2].astype(np.uint32)),
            "exemplar": pa.array(self.exemplar),
        }
        return pa.table({n: columns[n] for n in DECIDED.names}, schema=DECIDED)
