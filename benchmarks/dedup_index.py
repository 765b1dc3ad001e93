"""An index of a run's documents: time and size of building it, and of asking it.

    python benchmarks/dedup_index.py RUN [--folder FOLDER] [--queries 1000]

RUN holds near_survey's sketches, such as a run of `dedup_scale.py --keep`. The index is built from
them and from the texts; a query is one text of the run as it is, or with words exchanged, asked of
the open index. Decisions are left out: they are those of a batch (tests/dedup/test_index.py).
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from gristmill.dedup.index import Index
from gristmill.pipelines.indexing import near_pass, pieces
from gristmill.pipelines.run import open_run


def build(folder, run):
    index = Index.make(folder, near_pass(run)[0].stage)
    writer = index.writer()
    start = time.perf_counter()
    for piece in pieces(run):
        writer.add(*piece)
    added = time.perf_counter()
    name = writer.finish()
    writer.folder.rename(writer.folder.parent / name)
    index.register(name)
    print(f"built: {added - start:.0f} s to add, {time.perf_counter() - added:.0f} s to sort")
    return Index.open(folder)


def texts_of(run, number, seed=3):
    """Texts from all over a run, every second one with three words exchanged."""
    draw = random.Random(seed)
    shards = [draw.choice(list(run.shards)) for _ in range(min(20, number))]
    for i in range(number):
        shard = shards[i % len(shards)]
        if i < len(shards):
            file = pq.ParquetFile(run.store.path(f"documents/{shard}.parquet"))
            group = file.read_row_group(draw.randrange(file.num_row_groups), columns=["text"])
            shards[i % len(shards)] = (shard, group.column(0))
        _, column = shards[i % len(shards)]
        words = column[draw.randrange(len(column))].as_py().split()
        for _ in range(3 * (i % 2)):
            words[draw.randrange(len(words))] = f"x{draw.randrange(10**6)}"
        yield " ".join(words)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--queries", type=int, default=1000)
    asked = parser.parse_args()
    run = open_run(asked.run)
    folder = Path(tempfile.mkdtemp(dir=asked.folder))
    try:
        index = build(folder / "index", run)
        size = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
        count = int(index.starts[-1])
        print(f"{count:,} documents, {size / 1e9:.2f} GB, {size / count:.0f} bytes a document")
        index.query("warm the kernels up with a text of some ten words or so")
        start = time.perf_counter()
        index = Index.open(folder / "index")
        print(f"opened in {(time.perf_counter() - start) * 1e3:.1f} ms")
        spent, found = [], 0
        for text in texts_of(run, asked.queries):
            start = time.perf_counter()
            found += bool(index.query(text))
            spent.append(time.perf_counter() - start)
        low, middle, high = np.quantile(spent, [0.01, 0.5, 0.99]) * 1e3
        print(
            f"{len(spent):,} queries, {found:,} with a duplicate: median {middle:.2f} ms, "
            f"1 in 100 below {low:.2f} or above {high:.2f}, the first {spent[0] * 1e3:.2f}, "
            f"the slowest {max(spent) * 1e3:.2f}"
        )
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
