"""The exchange: rows of a global stage, partitioned by hash, in checksummed runs.

`exchange/<stage>/<round>/<writer>.arrow`: one Arrow IPC file per writer (a shard in round 0, a
partition after), with one record batch per partition, so that a reader maps the file and takes its
batch. The number of partitions follows from rows and the memory budget; it never bears on a result,
for rows of equal `partition` values meet whatever it is.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from .run import Run

ROW_BYTES = 4096  # per document and round: 32 band rows of about 60 bytes, sorted in memory (x 2)
LEAST, MOST = 4, 1024  # partitions


def partitions(run: Run, documents: int) -> int:
    """How many partitions keep one of them within the recipe's `memory`."""
    if run.recipe.partitions is not None:
        return run.recipe.partitions
    return max(LEAST, min(MOST, -(-documents * ROW_BYTES // run.recipe.memory)))


def write_run(path: Path, rows: pa.Table, count: int) -> None:
    """Write rows as `count` batches, by the high bits of their `partition` hash; order is kept."""
    rows = rows.combine_chunks()
    hashes = rows.column("partition").to_numpy() >> np.uint64(32)
    part = (hashes * np.uint64(count) >> np.uint64(32)).astype(np.min_scalar_type(count))  # radix
    order = np.argsort(part, kind="stable")
    ends = np.cumsum(np.bincount(part, minlength=count))
    del hashes, part
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        start = 0
        for end in ends.tolist():  # partition by partition: the rows are never held twice
            writer.write_batch(_one_batch(rows.take(pa.array(order[start:end]))))
            start = end


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    """One batch with buffers of its own, so that no byte of a shared buffer reaches the file."""
    batches = table.combine_chunks().to_batches()
    if not batches:
        return pa.RecordBatch.from_pylist([], schema=table.schema)
    return pa.concat_batches(batches).take(pa.array(np.arange(table.num_rows)))


def read_partition(run: Run, names: list[str], partition: int) -> pa.Table:
    """All rows of one partition from many runs, in the order of `names`."""
    batches = []
    for name in names:
        with pa.memory_map(str(run.store.path(name))) as source:
            batches.append(pa.ipc.open_file(source).get_batch(partition))
    return pa.Table.from_batches(batches)
