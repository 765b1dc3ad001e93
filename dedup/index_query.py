"""Queries: which documents of an index a text duplicates.

One text reads 32 short stretches of keys a run, and the sets of what they name; each page that it
reads is checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from ..documents.errors import UsageError
from . import _kernels_pairs as kernels
from .index_run import IndexRun, joined_sets
from .verify import reaches, shingle_sets

if TYPE_CHECKING:
    from .index import Index

MOST = 4096  # documents of one key that a query compares: of more than so many copies, the first


class Match(NamedTuple):
    """A document of the index that a text duplicates."""

    shard: str
    id: str  # 32 hex digits
    shared: int  # shingles of both
    either: int  # shingles of either
    crawl: str  # name of the run


def query(index: Index, text: str) -> list[Match]:
    """Documents whose exact Jaccard with `text` reaches the threshold, the nearest first."""
    (found,) = query_texts(index, pa.array([text], pa.large_string()))
    return found


def query_texts(index: Index, texts: pa.LargeStringArray) -> Iterator[list[Match]]:
    """The same for each of many texts; UsageError where documents meet within a scope alone."""
    stage = index.stage
    if stage.scope != "corpus":
        msg = (
            f"{index.folder}: made with near_duplicates.scope: {stage.scope}, where texts "
            "of one scope alone are compared, and a text that is asked about has none; index "
            "a run of scope corpus"
        )
        raise UsageError(msg)
    keys = stage.survey.measure(pa.record_batch({"text": texts})).scores["bands"]
    values, starts, ends = shingle_sets(texts, stage.ngram, stage.char_ngram)
    for row in range(len(texts)):
        mine = values[starts[row] : ends[row]]
        found = []
        if len(mine):
            for number, run in enumerate(index.runs):
                near = _near(run, keys[row])
                for local, shared, either in _compared(stage.threshold, run, near, mine):
                    found.append((shared, either, number, local))
        found.sort(key=lambda f: (-Fraction(f[0], f[1]), f[2], f[3]))
        yield [_match(index.runs[n], shared, either, local) for shared, either, n, local in found]


def _compared(
    threshold: str, run: IndexRun, near: np.ndarray, mine: np.ndarray
) -> Iterator[tuple[int, int, int]]:
    """(document, shared, either) of those of a run whose set is near enough to one."""
    run.sound("documents", near)
    run.sound_sets(near)
    values, offsets = joined_sets([mine, *map(run.set_of, near.tolist())])
    shared, either = np.zeros(len(near), np.int64), np.zeros(len(near), np.int64)
    first, second = np.zeros(len(near), np.int64), np.arange(1, len(near) + 1)
    kernels.intersections(values, offsets[:-1], offsets[1:], first, second, shared, either)
    close = reaches(threshold, shared, either)
    counts = (near[close], shared[close], either[close])
    return zip(*(values.tolist() for values in counts), strict=True)


def _near(run: IndexRun, keys: np.ndarray) -> np.ndarray:
    """Documents of a run that share a band, ascending."""
    low, high = run.places(keys)
    ends = np.minimum(high, low + MOST)
    run.sound("owners", low, ends)
    pieces = [run.owners[a:b] for a, b in zip(low.tolist(), ends.tolist(), strict=True)]
    return np.unique(np.concatenate(pieces)).astype(np.int64)


def _match(run: IndexRun, shared: int, either: int, local: int) -> Match:
    row = run.documents[local]
    id_ = f"{int(row['high']):016x}{int(row['low']):016x}"
    return Match(run.shards[int(row["shard"])], id_, shared, either, run.folder.name)
