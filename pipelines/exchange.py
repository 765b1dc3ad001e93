"""The exchange: rows of a global stage, partitioned by hash, in checksummed runs.

`exchange/<stage>/<round>/<writer>.arrow`: one Arrow IPC file per writer (a shard in round 0, a
partition after), with a record batch per partition and stretch of rows, so that a writer holds one
stretch at a time and a reader maps the file and takes its batches. The number of partitions follows
from rows and the memory budget; it never bears on a result, for rows of equal `partition` values
meet whatever it is.

A **piece** is what one file holds for one partition. Its digest stands in the sidecar of the file,
so that whoever reads a partition names the pieces in it as its inputs, and not whole files: a new
shard without rows for it changes nothing. For that the number of partitions must not change with
every shard: it is a power of two.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..documents.identity import shard_hash

if TYPE_CHECKING:
    from .run import Run

LEAST, FINE, MOST = 4, 256, 1024  # partitions
FEW = 4096  # documents of a partition, below which its own cost (some 20 ms a round) shows
STRETCH = 32 << 20  # bytes of rows that a writer holds, about
_HEX = 32  # digits of a piece's digest
NONE = "0" * _HEX  # of a piece without rows


def partitions(run: Run, documents: int, row_bytes: int) -> int:
    """How many partitions keep one of them, sorted in memory, within half the recipe's `memory`.

    Up to `FINE` there are more, of `FEW` documents each: the more there are, the fewer have rows
    of an added crawl. A power of two changes, and with it all pieces, when the corpus doubles.
    """
    if run.recipe.partitions is not None:
        return run.recipe.partitions
    fine = min(FINE, documents // FEW)
    return power_of_two(max(fine, documents * row_bytes * 4 // run.recipe.memory), LEAST)


def power_of_two(number: int, least: int) -> int:
    """The next power of two from `number` on, between `least` (one itself) and `MOST`."""
    return max(least, min(MOST, 1 << max(0, number - 1).bit_length()))


def part_of(hashes: np.ndarray, count: int) -> np.ndarray:
    """The partition of each `partition` value: its high bits, scaled."""
    high = hashes >> np.uint64(32)
    return (high * np.uint64(count) >> np.uint64(32)).astype(np.min_scalar_type(count))


def part_of_shard(shard: str, count: int) -> int:
    """The partition of a shard, where rows go by the hash of theirs."""
    return int(part_of(np.array([shard_hash(shard)], np.uint64), count)[0])


def hash_of(parts: np.ndarray, count: int) -> np.ndarray:
    """A `partition` value that leads to each partition: `part_of(hash_of(p, n), n) == p`."""
    return ((parts.astype(np.uint64) << np.uint64(32)) // np.uint64(count) + np.uint64(1)) << (
        np.uint64(32)
    )


def write_run(path: Path, stretches: Iterable[pa.Table], count: int) -> dict[str, Any]:
    """Write each stretch as `count` batches by partition, order kept; returns counts of the file.

    They are `rows` and `pieces`, the digests of all pieces in one string. At least one stretch must
    come, if without rows: it names the columns.
    """
    writer: pa.RecordBatchFileWriter | None = None
    written = 0
    hashers = [hashlib.blake2b(digest_size=_HEX // 2) for _ in range(count)]
    some = np.zeros(count, np.int64)
    with pa.OSFile(str(path), "wb") as sink:
        for rows in stretches:
            # Counts of a round stand in its sidecar: in the file the next round would hand them on.
            table = rows.combine_chunks().replace_schema_metadata(None)
            if writer is None:
                writer = pa.ipc.new_file(sink, table.schema)
            part = part_of(table.column("partition").to_numpy(), count)
            order = np.argsort(part, kind="stable")  # a radix sort
            sizes = np.bincount(part, minlength=count)
            some += sizes
            none = _one_batch(table.slice(0, 0))  # most pieces of a small file
            start = 0
            # partition by partition: the rows are never held twice
            for hasher, end in zip(hashers, np.cumsum(sizes).tolist(), strict=True):
                batch = none
                if end > start:
                    batch = _one_batch(table.take(pa.array(order[start:end])))
                    hasher.update(batch.serialize())
                writer.write_batch(batch)
                start = end
            written += table.num_rows
        if writer is None:
            msg = f"{path.name}: a run of the exchange needs the columns of one stretch"
            raise ValueError(msg)
        writer.close()
    pieces = (h.hexdigest() if n else NONE for h, n in zip(hashers, some.tolist(), strict=True))
    return {"rows": written, "pieces": "".join(pieces)}


def digest_of(rows: pa.Table) -> str:
    """Digest of some rows, however they are chunked."""
    return hashlib.blake2b(_one_batch(rows).serialize(), digest_size=_HEX // 2).hexdigest()


def digests_by_partition(pieces: Iterable[tuple[str, str]]) -> list[str]:
    """For each partition one digest over its pieces, from the name and `pieces` of many files.

    Files without rows for a partition do not count in it.
    """
    hashers: list[Any] = []
    for name, digests in pieces:
        if not hashers:
            hashers = [hashlib.blake2b(digest_size=_HEX // 2) for _ in range(len(digests) // _HEX)]
        for at, hasher in enumerate(hashers):
            one = digests[at * _HEX : (at + 1) * _HEX]
            if one != NONE:
                hasher.update(f"{name} {one}\n".encode())
    return [h.hexdigest() for h in hashers]


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    """One batch with buffers of its own, so that no byte of a shared buffer reaches the file."""
    batches = table.combine_chunks().to_batches()
    if not batches:
        return pa.RecordBatch.from_pylist([], schema=table.schema)
    return pa.concat_batches(batches).take(pa.array(np.arange(table.num_rows)))


def batches_of(path: Path, partition: int, count: int) -> Iterator[pa.RecordBatch]:
    """The batches of one partition of a run, mapped."""
    with pa.memory_map(str(path)) as source:
        file = pa.ipc.open_file(source)
        for at in range(partition, file.num_record_batches, count):
            yield file.get_batch(at)


def read_partition(run: Run, names: list[str], partition: int, count: int) -> pa.Table:
    """All rows of one partition from many runs, in the order of `names`; mapped, not read."""
    batches = [b for n in names for b in batches_of(run.store.path(n), partition, count)]
    some = [b for b in batches if b.num_rows]
    return pa.Table.from_batches(some or batches[:1])


class Partitions:
    """All partitions of many runs, each mapped when it is come to, as often as they are asked."""

    def __init__(self, run: Run, names: list[str], count: int) -> None:
        self._run, self._names, self._count = run, names, count

    def __iter__(self) -> Iterator[pa.Table]:
        """Partition by partition."""
        for partition in range(self._count):
            yield read_partition(self._run, self._names, partition, self._count)
