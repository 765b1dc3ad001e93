"""Round `verify`: pairs -> edges, the pairs whose exact Jaccard reaches the threshold.

Texts are read again, of candidates only, each shard once (`documents.exchange.FetchingRound`): a
text becomes its sorted set of distinct 64-bit shingle hashes, which travels to the partitions that
compare it. There sets are taken in chunks of texts of at most `FETCH_BYTES`, so that memory does
not follow the partition. |A and B| and |A or B| are counted by merging. They are those of the true
shingle sets unless two of the pair's shingles share a hash: odds of 2.7e-14 for a pair of 1,000
shingles in all.
The comparison is shared * denominator >= numerator * either, in integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from ..documents.errors import ContractError
from ..documents.exchange import with_counts
from ..documents.text import text_view
from . import _kernels_pairs as kernels
from ._kernels import shingle_lists
from .rank import Nodes, document_keys, nodes, runs

if TYPE_CHECKING:
    from ..documents.exchange import Texts

FETCH_BYTES = 64 << 20  # texts of a chunk; their sets take up to 4 times that, typically 1.3


def shingle_sets(
    column: pa.Array, ngram: int, char_ngram: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Make sets of distinct shingle hashes: (values, starts, ends).

    Set i is values[starts[i]:ends[i]], sorted, and sets stand without gaps; a text of fewer tokens
    than a shingle has an empty one.
    """
    view = text_view(column)
    room = np.diff(view.offsets) // 2 + 2
    starts = np.zeros(view.rows + 1, np.int64)
    np.cumsum(room, out=starts[1:])
    values = np.empty(int(starts[-1]), np.uint64)  # pages that stay untouched take no memory
    starts = starts[:-1]
    ends = np.empty(view.rows, np.int64)
    shingle_lists(view.data, view.offsets, ngram, char_ngram, starts, values, ends)
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        values[start:end].sort()  # NumPy's vectorised sort: 2 to 5 x faster than Numba's
    kernels.drop_repeats(values, starts, ends)
    return values[: ends[-1] if view.rows else 0], starts, ends


def reaches(threshold: str, shared: np.ndarray, either: np.ndarray) -> np.ndarray:
    """Whether each Jaccard shared / either, int64[n] each, is at the threshold or above; exact."""
    limit = Fraction(threshold)
    return (shared * limit.denominator >= limit.numerator * either) & (either > 0)


@dataclass(frozen=True, kw_only=True)
class Verify:
    """Exact Jaccard of candidate pairs."""

    name: ClassVar[str] = "verify"
    ngram: int = 5  # tokens
    char_ngram: int = 5  # characters
    threshold: str = "0.8"  # exact, as decimal or fraction
    fetch_bytes: int = FETCH_BYTES

    def needs(self, rows: pa.Table) -> pa.Table:
        """Each document of a pair, once."""
        a, b = nodes(rows, "a_"), nodes(rows, "b_")
        shard, row = np.concatenate((a.shard, b.shard)), np.concatenate((a.row, b.row))
        order = np.lexsort((row, shard))
        some = order[runs(shard[order], row[order])[0]]
        return pa.table({"shard": pa.array(shard[some]), "row": pa.array(row[some])})

    def prepare(self, texts: pa.LargeStringArray) -> pa.Array:
        """Sets of shingles, large_list<uint64>."""
        values, starts, ends = shingle_sets(texts, self.ngram, self.char_ngram)
        offsets = np.append(starts, ends[-1:] if len(ends) else 0)
        return pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(values))

    def gather(self, rows: pa.Table, texts: Texts) -> pa.Table:
        """Pairs (a_*, b_*) -> edges with `shared` and `either`, by their first document's key."""
        a, b = nodes(rows, "a_"), nodes(rows, "b_")
        order = np.lexsort((b.low, b.high, b.shard, a.low, a.high, a.shard))
        keys = (a.shard, a.high, a.low, b.shard, b.high, b.low)
        distinct = order[runs(*(values[order] for values in keys))[0]]
        a, b = a.take(distinct), b.take(distinct)
        order = np.lexsort((b.row, b.shard, a.row, a.shard))  # near in the chunk, near on disk
        a, b = a.take(order), b.take(order)
        shared, either, fetched = self._count(a, b, texts)
        close = reaches(self.threshold, shared, either)
        columns = {"partition": pa.array(document_keys(a.take(close)))}
        columns |= a.take(close).columns("a_") | b.take(close).columns("b_")
        columns["shared"] = pa.array(shared[close].astype(np.uint32))
        columns["either"] = pa.array(either[close].astype(np.uint32))
        edges = pa.table(columns)
        return with_counts(edges, pairs=len(shared), edges=len(edges), bytes_fetched=fetched)

    def _count(self, a: Nodes, b: Nodes, texts: Texts) -> tuple[np.ndarray, np.ndarray, int]:
        """Sizes of intersection and union of each pair, int64, and bytes of text fetched."""
        pairs = len(a.shard)
        shared, either = np.zeros(pairs, np.int64), np.zeros(pairs, np.int64)
        if not pairs:
            return shared, either, 0
        shard, row = np.concatenate((a.shard, b.shard)), np.concatenate((a.row, b.row))
        order = np.lexsort((row, shard))
        starts, sizes = runs(shard[order], row[order])
        which = np.empty(2 * pairs, np.int64)
        which[order] = np.repeat(np.arange(len(starts)), sizes)
        shard, row = shard[order[starts]], row[order[starts]]
        size = np.concatenate((a.size, b.size)).astype(np.int64)[order[starts]]
        first, second = which[:pairs], which[pairs:]
        ends = np.empty(pairs, np.int64)
        chunks = kernels.chunk_ends(first, second, size, self.fetch_bytes, ends)
        begin = fetched = 0
        for end in ends[:chunks].tolist():
            need, local = np.unique(
                np.concatenate((first[begin:end], second[begin:end])), return_inverse=True
            )
            sets = texts(shard[need], row[need])
            if len(sets) != len(need):
                msg = f"asked for {len(need)} texts, got {len(sets)}"
                raise ContractError(msg)
            values, offsets = sets.values.to_numpy(), sets.offsets.to_numpy()
            half = end - begin
            kernels.intersections(
                values, offsets[:-1], offsets[1:],
                local[:half], local[half:], shared[begin:end], either[begin:end],
            )  # fmt: skip
            fetched += int(size[need].sum())
            begin = end
        return shared, either, fetched
