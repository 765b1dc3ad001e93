"""An index of a run's documents: time and size of building it, and of asking it.

    python benchmarks/dedup_index.py RUN [--index FOLDER] [--queries 1000] [--alone 50]

RUN holds near_survey's sketches, such as a run of `dedup_scale.py --keep`. The index is built from
them and from the texts (unless --index names one that is there; it is kept); a query is one text of
the run as it is, or with words exchanged, asked of the open index. Three times: with nothing of the
index in memory before each query (its files are dropped from the page cache), one after the other
from there on, and the same ones again. Decisions are left out: they are those of a batch
(tests/dedup/test_index.py).
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from gristmill.dedup.index import Index
from gristmill.dedup.index_query import query
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
    print(
        f"built: {added - start:.0f} s to add, {time.perf_counter() - added:.0f} s to sort",
        end=", ",
    )
    print(f"{time.process_time():.0f} s of CPU together", flush=True)
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


def forget(folder):
    """Drop the files of a folder from the page cache; nothing may have them mapped."""
    for path in folder.rglob("*.bin"):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def timed(index, text):
    start = time.perf_counter()
    found = bool(query(index, text))
    return time.perf_counter() - start, found


def tell(what, times):
    spent, found = zip(*times, strict=True)
    low, middle, high = np.quantile(spent, [0.01, 0.5, 0.99]) * 1e3
    print(
        f"{what}: {len(spent):,} queries, {sum(found):,} with a duplicate: median {middle:.2f} ms, "
        f"1 in 100 below {low:.2f} or above {high:.2f}, the slowest {max(spent) * 1e3:.2f}",
        flush=True,
    )


def ask(folder, run, queries, alone):
    texts = list(texts_of(run, queries))
    query(Index.open(folder), texts[0])  # the kernels are loaded
    times = []
    for text in texts[:alone]:
        forget(folder)
        times.append(timed(Index.open(folder), text))
    tell("nothing in memory before each", times)
    forget(folder)
    start = time.perf_counter()
    index = Index.open(folder)
    print(f"opened in {(time.perf_counter() - start) * 1e3:.1f} ms")
    tell("one after the other", [timed(index, text) for text in texts])
    tell("the same again", [timed(index, text) for text in texts])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--index", type=Path)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--alone", type=int, default=50)
    asked = parser.parse_args()
    run = open_run(asked.run)
    scratch = Path(tempfile.mkdtemp())
    folder = asked.index or scratch / "index"
    try:
        index = Index.open(folder) if (folder / "index.json").exists() else build(folder, run)
        size = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
        count = int(index.starts[-1])
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(
            f"{count:,} documents, {size / 1e9:.2f} GB, {size / count:.0f} bytes a document", end=""
        )
        print(f"; peak so far {peak / 1e6:.0f} MB", flush=True)
        del index
        ask(folder, run, asked.queries, asked.alone)
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
