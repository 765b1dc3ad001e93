"""The exchange: rows of a global stage, partitioned by hash, in checksummed runs.

`exchange/<stage>/<round>/<writer>.arrow`: one Arrow IPC file per writer (a shard in round 0, a
partition after), with a record batch per partition and stretch of rows, so that a writer holds one
stretch at a time and a reader maps the file and takes its batches. The number of partitions follows
from rows and the memory budget; it never bears on a result, for rows of equal `partition` values
meet whatever it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from .run import Run

LEAST, MOST = 4, 1024  # partitions
STRETCH = 32 << 20  # bytes of rows that a writer holds, about


def partitions(run: Run, documents: int, row_bytes: int) -> int:
    """How many partitions keep one of them, sorted in memory, within half the recipe's `memory`."""
    if run.recipe.partitions is not None:
        return run.recipe.partitions
    return max(LEAST, min(MOST, -(-documents * row_bytes * 4 // run.recipe.memory)))


def part_of(hashes: np.ndarray, count: int) -> np.ndarray:
    """The partition of each `partition` value: its high bits, scaled."""
    high = hashes >> np.uint64(32)
    return (high * np.uint64(count) >> np.uint64(32)).astype(np.min_scalar_type(count))


def hash_of(parts: np.ndarray, count: int) -> np.ndarray:
    """A `partition` value that leads to each partition: `part_of(hash_of(p, n), n) == p`."""
    return ((parts.astype(np.uint64) << np.uint64(32)) // np.uint64(count) + np.uint64(1)) << (
        np.uint64(32)
    )


def write_run(path: Path, stretches: Iterable[pa.Table], count: int) -> int:
    """Write each stretch as `count` batches by partition, order kept; returns the rows written.

    At least one stretch must come, if without rows: it names the columns.
    """
    writer: pa.RecordBatchFileWriter | None = None
    written = 0
    with pa.OSFile(str(path), "wb") as sink:
        for rows in stretches:
            table = rows.combine_chunks()
            if writer is None:
                writer = pa.ipc.new_file(sink, table.schema)
            part = part_of(table.column("partition").to_numpy(), count)
            order = np.argsort(part, kind="stable")  # a radix sort
            ends = np.cumsum(np.bincount(part, minlength=count))
            start = 0
            for end in ends.tolist():  # partition by partition: the rows are never held twice
                writer.write_batch(_one_batch(table.take(pa.array(order[start:end]))))
                start = end
            written += table.num_rows
        if writer is None:
            msg = f"{path.name}: a run of the exchange needs the columns of one stretch"
            raise ValueError(msg)
        writer.close()
    return written


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
