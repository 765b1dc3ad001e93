"""Round `clusters`: verified edges -> decisions, each removal with a kept witness.

Near-duplicate is not transitive: A~B~C may hold with A and C far apart. So a component is not
reduced to one document; it is covered greedily: in representative order, a document goes only if
a verified edge joins it to a document already kept. A removed document that was never compared
with any kept one therefore cannot be: what proves a removal is always an edge.

The result is a function of the edges of whole components, and of nothing between components:
`dedup.components` brings each to one partition (92 bytes an edge, and 330 more while it runs).
A giant component needs no other treatment. Elsewhere it is cut by tighter bands, since there all of
it would be reduced to one document; here its members go only by edges of their own, and their
number is linear: a hot band yields at most two pairs a member (`dedup.candidates`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from . import _kernels_pairs as kernels
from .rank import Nodes, column, decisions, nodes, number

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
        ends = zip(nodes(rows, "a_"), nodes(rows, "b_"), strict=True)
        found, which = number(Nodes(*(np.concatenate(pair) for pair in ends)))
        half = len(which) // 2
        first = np.minimum(which[:half], which[half:])
        second = np.maximum(which[:half], which[half:])
        order = np.lexsort((first, second))
        first, second = first[order], second[order]
        shared = column(rows, "shared").astype(np.uint64)[order]
        either = column(rows, "either").astype(np.uint64)[order]
        size = len(found.shard)
        root = np.empty(size, np.int64)
        witness = np.empty(size, np.int64)
        proof = np.zeros(size, np.int64)
        kernels.components(first, second, root)
        kernels.cover(first, second, shared, either, witness, proof)
        kernels.spare(root, self.exemplars, witness)
        if not len(first):
            return decisions(found, witness, shared, either, root)
        return decisions(found, witness, shared[proof], either[proof], root)
