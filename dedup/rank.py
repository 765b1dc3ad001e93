"""The representative order, and documents of the exchange as parallel arrays.

One order everywhere: source priority, quality (higher first), bytes (longer first), id, shard.
It is total on (shard, id), so that whatever is decided "for the first" is decided the same way for
any order of rows and any number of partitions. Documents stay NumPy arrays from the exchange to
the decisions, 38 bytes each; datatrove's dict of tuples takes about 256 bytes a document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar, cast

import numpy as np
import pyarrow as pa

from ..documents.errors import ContractError
from ..documents.exchange import DECISIONS, KEY, RANK

T = TypeVar("T")
_ODD = np.uint64(0x9E3779B97F4A7C15)
SLICES = 16  # a power of two
EDGES = 1 << 18  # edges looked at together, where a round sees all of a component: 40 MB


class Nodes(NamedTuple):
    """Documents as parallel arrays; `high` and `low` are the id as two big-endian integers."""

    shard: np.ndarray  # uint64[n]
    high: np.ndarray  # uint64[n]
    low: np.ndarray  # uint64[n]
    row: np.ndarray  # uint32[n]
    priority: np.ndarray  # uint16[n]
    quality: np.ndarray  # int32[n]
    size: np.ndarray  # uint32[n], bytes of text

    def take(self, which: np.ndarray) -> Nodes:
        """Take the documents at positions (or under a mask) `which`."""
        return Nodes(*(values[which] for values in self))

    def order(self, *major: np.ndarray) -> np.ndarray:
        """Positions int64[n] sorted by `major`, then in representative order."""
        longest = -self.size.astype(np.int64)
        best = -self.quality.astype(np.int64)
        return np.lexsort(
            (self.shard, self.low, self.high, longest, best, self.priority, *reversed(major))
        )

    def ids(self) -> pa.FixedSizeBinaryArray:
        """Return the ids as binary(16)."""
        pairs = np.empty((len(self.high), 2), ">u8")
        pairs[:, 0] = self.high
        pairs[:, 1] = self.low
        return pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(16), len(pairs), [None, pa.py_buffer(pairs)]
        )

    def columns(self, prefix: str = "") -> dict[str, pa.Array]:
        """KEY and RANK columns, each name after `prefix`."""
        values = (self.shard, self.ids(), self.row, self.priority, self.quality, self.size)
        return {
            prefix + name: value if name == "id" else pa.array(value)
            for name, value in zip(KEY.names + RANK.names, values, strict=True)
        }


def nodes(table: pa.Table, prefix: str = "") -> Nodes:
    """Read KEY and RANK columns whose names follow `prefix`."""
    ids = _array(table, prefix + "id")
    pairs = np.empty((0, 2), ">u8")
    if len(ids):
        raw = np.frombuffer(ids.buffers()[1], ">u8")
        pairs = raw[2 * ids.offset : 2 * (ids.offset + len(ids))].reshape(-1, 2)
    shard, row, priority, quality, size = (
        column(table, prefix + name) for name in ("shard", "row", "priority", "quality", "bytes")
    )
    high = pairs[:, 0].astype(np.uint64)
    return Nodes(shard, high, pairs[:, 1].astype(np.uint64), row, priority, quality, size)


def column(table: pa.Table, name: str) -> np.ndarray:
    """Read a column of numbers without nulls."""
    return _array(table, name).to_numpy(zero_copy_only=False)


def matrix(table: pa.Table, name: str, width: int) -> np.ndarray:
    """Read a score of shape [rows, width] that the exchange carries as a list column."""
    array = _array(table, name)
    values = array.flatten().to_numpy(zero_copy_only=False)
    if len(values) != len(array) * width:
        msg = f"score {name!r}: expected {width} values a row, found {array.type} of {len(values)}"
        raise ContractError(msg)
    return values.reshape(-1, width)


def _array(table: pa.Table, name: str) -> pa.Array:
    found = table.column(name).combine_chunks()
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found


def document_keys(found: Nodes, salt: int = 0) -> np.ndarray:
    """Mix (shard, id) to uint64: where rows of a document meet; what is decided goes by ids."""
    return _mixed(found.shard, found.high, found.low, salt=salt)


def _mixed(*values: np.ndarray, salt: int = 0) -> np.ndarray:
    key = np.full(len(values[0]), salt, np.uint64)
    for value in values:
        key = (key ^ value) * _ODD
        key ^= key >> np.uint64(32)
    key *= _ODD
    return key ^ (key >> np.uint64(29))


def pair_keys(a: Nodes, b: Nodes) -> np.ndarray:
    """Where a pair meets itself: pairs of one first document in `SLICES` places at most.

    So a set of shingles travels to few partitions, and a text that is the first of a million
    copies does not bring a million pairs to one.
    """
    part = document_keys(b) >> np.uint64(64 - SLICES.bit_length() + 1)
    return _mixed(document_keys(a), part)


def runs(*fields: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find stretches of rows equal in all `fields`, which are sorted: starts and sizes, int64."""
    size = len(fields[0])
    change = np.zeros(size, bool)
    change[:1] = True
    for values in fields:
        change[1:] |= values[1:] != values[:-1]
    starts = np.flatnonzero(change).astype(np.int64)
    return starts, np.diff(np.append(starts, size))


def merged(pieces: Iterable[T], join: Callable[[T, T], T], size: Callable[[T], int]) -> T:
    """Join pieces as they come, the smaller first: each is joined but log n times, few are held."""
    held: list[T] = []
    for piece in pieces:
        held.append(piece)
        while len(held) > 1 and size(held[-2]) < 2 * size(held[-1]):
            held.append(join(held.pop(), held.pop()))
    while len(held) > 1:
        held.append(join(held.pop(), held.pop()))
    return held[0]


def number(found: Nodes, *major: np.ndarray) -> tuple[Nodes, np.ndarray]:
    """Give equal documents one number: (the distinct ones in order, number int64 of each row).

    The order is that of `major`, then the representative order. ContractError when one document
    comes with two ranks: nothing could be decided the same way twice.
    """
    order = found.order(*major)
    starts, sizes = runs(*(values[order] for values in (*major, *found)))
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.repeat(np.arange(len(starts)), sizes)
    distinct = found.take(order[starts])
    keys = (distinct.low, distinct.high, distinct.shard)
    again = np.lexsort(keys)
    _, repeats = runs(*(values[again] for values in keys))
    if len(repeats) != len(starts):
        at = int(np.flatnonzero(repeats > 1)[0])
        where = again[int(repeats[:at].sum())]
        msg = (
            f"document {distinct.high[where]:016x}{distinct.low[where]:016x} of shard "
            f"{distinct.shard[where]:016x} comes with two ranks (row, priority, quality, bytes) or "
            "two texts; an exchange carries one of each for a document"
        )
        raise ContractError(msg)
    return distinct, numbers


def hash_rows(documents: pa.Table, score: str, *more: str) -> pa.Table:
    """Exchange rows by a 128-bit score uint64[rows, 2], of documents where it is not (0, 0).

    Columns `partition` and `rest` (its halves), `more` of the scores, KEY and RANK.
    """
    hashes = matrix(documents, score, 2)
    some = (hashes[:, 0] | hashes[:, 1]) != 0
    columns = {"partition": pa.array(hashes[some, 0]), "rest": pa.array(hashes[some, 1])}
    columns |= {name: pa.array(column(documents, name)[some]) for name in more}
    return pa.table(columns | nodes(documents).take(some).columns())


def grouped(rows: pa.Table, most: int) -> tuple[Nodes, np.ndarray]:
    """Documents of `hash_rows` whose hash more than `most` have, and the group int64 of each.

    Groups stand together, each in representative order; the newest first where rows have a `date`.
    """
    found, head, rest = nodes(rows), column(rows, "partition"), column(rows, "rest")
    order = np.lexsort((rest, head))
    _, sizes = runs(head[order], rest[order])
    order = order[np.repeat(sizes > most, sizes)]  # most documents have no equal: leave early
    head, rest = head[order], rest[order]
    newest = [-column(rows, "date")[order]] if "date" in rows.column_names else []
    found, which = number(found.take(order), head, rest, *newest)
    group = np.empty(len(found.shard), np.int64)
    starts, sizes = runs(head, rest)
    group[which] = np.repeat(np.arange(len(starts)), sizes)
    return found, group


def decisions(
    found: Nodes, witness: np.ndarray, shared: np.ndarray, either: np.ndarray, root: np.ndarray
) -> pa.Table:
    """Make DECISIONS, sorted by (shard, id), of documents numbered in representative order.

    `witness` int64[n] is the number of the kept document that proves a removal, -1 where kept;
    `root` int64[n] the number of the first document of the cluster; `shared` and `either` count.
    """
    gone = witness >= 0
    order = np.lexsort((found.low, found.high, found.shard))
    ids = found.ids()
    proof = pa.array(witness[order], mask=~gone[order])
    sizes = np.bincount(root, minlength=len(root))
    columns = {
        "shard": pa.array(found.shard[order]),
        "id": ids.take(pa.array(order)),
        "row": pa.array(found.row[order]),
        "code": pa.array(gone[order].astype(np.uint8)),
        "witness_shard": pa.array(found.shard).take(proof),
        "witness_id": ids.take(proof),
        "shared": pa.array(shared[order].astype(np.uint32), mask=~gone[order]),
        "either": pa.array(either[order].astype(np.uint32), mask=~gone[order]),
        "cluster": ids.take(pa.array(root[order])),
        "cluster_size": pa.array(sizes[root[order]].astype(np.uint32)),
    }
    return cast("pa.Table", pa.table(columns).cast(DECISIONS))
