"""Round `clusters`: verified edges -> decisions, each removal with a kept witness.

Near-duplicate is not transitive: A~B~C may hold with A and C far apart. So a component is not
reduced to one document; it is covered greedily: in representative order, a document goes only if
a verified edge joins it to a document already kept. A removed document that was never compared
with any kept one therefore cannot be: what proves a removal is always an edge.

The result is a function of the edges of whole components, and of nothing between components:
`dedup.components` brings each to one partition (92 bytes an edge, mapped). Of an edge four numbers
of 32 bits are held, and documents once, so a giant component fits too: benchmarks/dedup.py counts
the bytes. It needs no other treatment. Elsewhere it is cut by tighter bands, since there all of it
would be reduced to one document; here its members go only by edges of their own, and their number
is linear: a hot band yields at most two pairs a member (`dedup.candidates`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from . import _kernels_pairs as kernels
from .rank import EDGES, Nodes, column, decisions, document_keys, merged, nodes, number

if TYPE_CHECKING:
    import pyarrow as pa

    from ..documents.exchange import Texts


@dataclass(frozen=True, kw_only=True)
class Clusters:
    """Union-find on verified edges, then the greedy cover of every component."""

    name: ClassVar[str] = "clusters"
    exemplars: int = 1  # documents of a cluster that stay

    def gather(self, rows: pa.Table, texts: Texts) -> pa.Table:
        """Edges of whole components -> DECISIONS for every document that has an edge.

        Kept documents are among them, for their cluster's size. The witness is the kept neighbour
        of the highest exact Jaccard (ties: the first in representative order). A cluster that
        keeps fewer than `exemplars` gets its first removed documents back.
        """
        found, first, second = _numbered(rows)
        order = np.argsort(second.astype(np.uint64) << np.uint64(32) | first)
        first, second = first[order], second[order]
        shared, either = (column(rows, name)[order] for name in ("shared", "either"))
        del order
        size = len(found.shard)
        root = np.arange(size)
        witness = np.empty(size, np.int64)
        proof = np.zeros(size, np.int64)
        kernels.unite(first, second, root)
        kernels.settle(root)
        kernels.cover(first, second, shared, either, witness, proof)
        kernels.spare(root, self.exemplars, witness)
        if not len(first):
            return decisions(found, witness, shared, either, root)
        return decisions(found, witness, shared[proof], either[proof], root)


def _numbered(rows: pa.Table) -> tuple[Nodes, np.ndarray, np.ndarray]:
    """Documents in representative order, and the numbers uint32 of each edge's, the lower first."""
    starts = range(0, max(1, len(rows)), EDGES)
    pieces = [rows.slice(start, EDGES) for start in starts]
    some = (number(nodes(piece, side))[0] for piece in pieces for side in ("a_", "b_"))
    found = merged(some, _together, lambda found: len(found.shard))
    for salt in count():  # until no two documents share a key: odds of 3 % among 10**9
        keys = document_keys(found, salt)
        order = np.argsort(keys)
        keys = keys[order]
        if not (keys[1:] == keys[:-1]).any():
            break
    ends = np.empty((2, len(rows)), np.uint32)
    for start, piece in zip(starts, pieces, strict=True):
        for side, out in zip(("a_", "b_"), ends, strict=True):
            at = np.searchsorted(keys, document_keys(nodes(piece, side), salt))
            out[start : start + len(piece)] = order[at]
    return found, ends.min(axis=0), ends.max(axis=0)


def _together(one: Nodes, other: Nodes) -> Nodes:
    """The distinct documents of both, in representative order."""
    return number(Nodes(*map(np.concatenate, zip(one, other, strict=True))))[0]
