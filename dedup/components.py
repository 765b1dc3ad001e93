"""Rounds `components` and `label`: verified edges -> edges that meet by connected component.

`clusters` is a function of whole components. Which component an edge belongs to cannot be told
partition by partition, so one call sees all edges, but of each only two 64-bit keys: it reduces a
partition's edges to a forest (a link a document, 16 bytes), and joins the forests. So its memory
follows the documents that have a near duplicate, not the edges; text, ids and sizes stay on disk.
`label` then brings each edge to its component's partition, where `clusters` covers it.

Label propagation in rounds would keep less in memory, but needs as many rounds as a chain is long.
A key is a hash of (shard, id): two documents that share one (odds of 3 % that any do among 10**9)
bring two components to one partition, which changes nothing there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from . import _kernels_pairs as kernels
from .rank import column, document_keys, nodes


def _forest(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Links (document, least document of its component) of edges; roots link to themselves."""
    keys, place = np.unique(np.concatenate((first, second)), return_inverse=True)
    root = np.empty(len(keys), np.int64)
    half = len(first)
    kernels.components(place[:half], place[half:], root)
    return keys, keys[root]


@dataclass(frozen=True, kw_only=True)
class Components:
    """Edges of all partitions -> the component of each document."""

    name: ClassVar[str] = "components"

    def whole(self, parts: Iterable[pa.Table]) -> pa.Table:
        """Edges -> `partition` (the document's key) and `component` (the least key in it)."""
        links: list[tuple[np.ndarray, np.ndarray]] = []
        for edges in parts:
            keys, roots = _forest(column(edges, "partition"), document_keys(nodes(edges, "b_")))
            links.append((keys, roots))
        empty = np.empty(0, np.uint64)
        first = np.concatenate([k for k, _ in links] or [empty])
        second = np.concatenate([r for _, r in links] or [empty])
        del links
        keys, roots = _forest(first, second)
        return pa.table({"partition": pa.array(keys), "component": pa.array(roots)})


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
