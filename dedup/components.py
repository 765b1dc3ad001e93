"""Rounds `components` and `label`: verified edges -> edges that meet by connected component.

`clusters` is a function of whole components. Which component an edge belongs to cannot be told
partition by partition, so one call sees all edges, partition by partition and twice: once for the
documents that have one, as 64-bit keys, once to unite them. So its memory follows the documents
that have a near duplicate and not their edges: two keys and a number, 24 bytes each; text, ids and
sizes stay on disk. `label` then brings each edge to its component's partition, where `clusters`
covers it.

Label propagation in rounds would keep less in memory, but needs as many rounds as a chain is long.
A key is a hash of (shard, id): two documents that share one (odds of 3 % that any do among 10**9)
bring two components to one partition, which changes nothing there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

import numpy as np
import pyarrow as pa

from . import _kernels_pairs as kernels
from .rank import EDGES, column, document_keys, merged, nodes, runs


def _ends(parts: Iterable[pa.Table]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Keys of the documents of each edge, some edges at a time."""
    for edges in parts:
        for start in range(0, len(edges), EDGES):
            some = edges.slice(start, EDGES)
            yield column(some, "partition"), document_keys(nodes(some, "b_"))


def _distinct(*values: np.ndarray) -> np.ndarray:
    """The distinct keys, ascending (NumPy's `unique` hashes, which takes longer)."""
    keys = np.sort(np.concatenate(values))
    return keys[runs(keys)[0]]


@dataclass(frozen=True, kw_only=True)
class Components:
    """Edges of all partitions -> the component of each document."""

    name: ClassVar[str] = "components"

    def whole(self, parts: Iterable[pa.Table]) -> pa.Table:
        """Edges -> `partition` (the document's key) and `component` (the least key in it)."""
        some = (_distinct(*ends) for ends in _ends(parts))
        keys = merged(chain([np.empty(0, np.uint64)], some), _distinct, len)
        root = np.arange(len(keys))
        for first, second in _ends(parts):
            kernels.unite(np.searchsorted(keys, first), np.searchsorted(keys, second), root)
        kernels.settle(root)
        return pa.table({"partition": pa.array(keys), "component": pa.array(keys[root])})


@dataclass(frozen=True, kw_only=True)
class Label:
    """Components and edges -> edges whose partition is their component."""

    name: ClassVar[str] = "label"
    beside: ClassVar[str] = "verify"

    def join(self, rows: pa.Table, others: pa.Table) -> pa.Table:
        """Both meet by the key of an edge's first document."""
        keys = column(rows, "partition")
        order = np.argsort(keys)
        at = np.searchsorted(keys[order], column(others, "partition"))
        found = column(rows, "component")[order][at]
        return others.set_column(
            others.column_names.index("partition"), "partition", pa.array(found)
        )
