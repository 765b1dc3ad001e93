"""Near duplicates from text to decisions against the number of documents: time, memory, I/O.

    python benchmarks/dedup_scale.py [--documents 100000,1000000] [--words 60] [--workers 2]
                                     [--memory "512 MiB"] [--folder FOLDER] [--keep]

Generated documents stand in `documents/` as the read step leaves them; then the mill's own steps
run on its local pool: survey (sketch), scatter, candidates, fetch, verify, components, clusters,
decide. Words are drawn from 50,000 by a power law. A tenth of the documents are planted: clusters
of 2, 3, 5, 20 and 1,000, whose members are their first document as it is, or with one word in the
middle exchanged (for 60 words: Jaccard 51/61 = 0.836 with the first, 46/66 among each other), dealt
over all shards. Every removal is held to its planted cluster; what stays of each is counted.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gristmill.documents.fingerprint import canonical
from gristmill.documents.schema import DOCUMENTS, FORMAT, LOCATOR
from gristmill.pipelines.executors import make_executor
from gristmill.pipelines.manifest import NAME as MANIFEST
from gristmill.pipelines.read import READ
from gristmill.pipelines.recipe import load_recipe
from gristmill.pipelines.run import Run, prepare
from gristmill.pipelines.tasks import steps_of

SHARD = 100_000  # documents
GROUP = 20_000  # of a row group
SIZES = (2, 3, 5, 20, 1000)  # of planted clusters, each with a fifth of the planted documents
RECIPE = """\
name: scale
memory: {memory}
sources:
  web: {{paths: ["*.txt"], converter: plain, reader: {{format: text}}, removal_cap: 1}}
shared: [near_duplicates]
"""


def planted(n):
    """Cluster of each document or -1, and whether it is its first; the same every run."""
    cluster = np.full(n, -1, np.int64)
    first = np.zeros(n, bool)
    places = np.random.default_rng(11).permutation(n)[: n // 10]
    at = number = 0
    for size in SIZES:
        for _ in range(max(1, len(places) // len(SIZES) // size)):
            members = places[at : at + size]
            if len(members) == size:
                cluster[members] = number
                first[members[0]] = True
                number += 1
                at += size
    return cluster, first


def texts(start, stop, words, cluster, first, vocabulary):
    """Texts of documents [start, stop)."""
    draw = np.random.default_rng([5, start])
    rows = stop - start
    ranks = (len(vocabulary) ** draw.random((rows, words))).astype(np.int32) - 1  # log-uniform
    for i in np.flatnonzero(cluster[start:stop] >= 0):
        own = np.random.default_rng([6, cluster[start + i]])
        ranks[i] = (len(vocabulary) ** own.random(words)).astype(np.int32) - 1
        if not first[start + i] and draw.random() < 0.5:
            ranks[i, draw.integers(10, words - 10)] = draw.integers(len(vocabulary))
    flat = vocabulary.take(pa.array(ranks.ravel()))
    lists = pa.ListArray.from_arrays(pa.array(np.arange(rows + 1, dtype=np.int32) * words), flat)
    return pc.binary_join(lists, " ").cast(pa.large_string())


def write_shard(run, number, n, words, cluster, first, vocabulary):
    """`documents/` and `attributes/read/` of one shard, with sidecars."""
    name = f"web-{number:016x}"
    start, end = number * SHARD, min(n, (number + 1) * SHARD)
    meta = {b"gristmill": canonical({"format": FORMAT, "stages": []})}
    names = (f"documents/{name}.parquet", f"attributes/read/{name}.parquet")
    with run.store.writing(names[0]) as one, run.store.writing(names[1]) as two:
        with (
            pq.ParquetWriter(one, DOCUMENTS.with_metadata(meta), compression="zstd") as documents,
            pq.ParquetWriter(two, READ.with_metadata(meta), compression="zstd") as narrow,
        ):
            for begin in range(start, end, GROUP):
                stop = min(end, begin + GROUP)
                column = texts(begin, stop, words, cluster, first, vocabulary)
                ids = np.zeros((stop - begin, 2), ">u8")
                ids[:, 1] = np.arange(begin, stop)
                id_ = pa.FixedSizeBinaryArray.from_buffers(
                    pa.binary(16), stop - begin, [None, pa.py_buffer(ids)]
                )
                zero = np.zeros(stop - begin)
                places = [pa.array(zero, f.type, safe=False) for f in LOCATOR]
                fill = {"source": "web", "metadata": "{}"}
                columns = [
                    id_,
                    column,
                    *(
                        pa.array([fill[f.name]] * len(id_), f.type)
                        if f.name in fill
                        else pa.nulls(len(id_), f.type)
                        for f in list(DOCUMENTS)[2:-1]
                    ),
                    pa.StructArray.from_arrays(places, fields=list(LOCATOR)),
                ]
                documents.write_table(pa.table(columns, schema=DOCUMENTS.with_metadata(meta)))
                sizes = pc.binary_length(column).cast(pa.int64())
                narrow.write_table(pa.table([id_, sizes], schema=READ.with_metadata(meta)))
        for path, file in zip((one, two), names, strict=True):
            run.store.commit(
                path, file, inputs={}, fingerprint="generated", counts={"documents": end - start}
            )
    return name


def syllables(i):
    """A word's sound, so that words differ in length and letters."""
    return "".join("bcdfghjklmnprstvwz"[i // 5**k % 18] + "aeiou"[i // 2**k % 5] for k in range(3))


def generate(folder, n, words, memory):
    """A run folder whose shards are read."""
    recipe = folder / "scale.yaml"
    recipe.write_text(RECIPE.format(memory=memory))
    (folder / "one.txt").write_text("x")
    run = prepare(load_recipe(recipe), folder, folder / "run", without=[])
    vocabulary = pa.array(
        [syllables(i) + str(i) for i in range(50_000)]
    )  # fmt: skip
    cluster, first = planted(n)
    shards = [
        write_shard(run, number, n, words, cluster, first, vocabulary)
        for number in range(-(-n // SHARD))
    ]
    lines = [
        {"name": s, "source": "web", "extents": [], "digests": [], "duplicate_of": None}
        for s in shards
    ]
    (folder / "run" / MANIFEST).write_bytes(b"".join(canonical(line) + b"\n" for line in lines))
    return Run(folder / "run"), cluster


def mill(run, workers):
    """The steps from survey to decisions; {step: (wall, cpu, peak, tasks)}."""
    pool = make_executor("local", workers)
    found = {}
    steps = [s for s in steps_of(run) if "pass-base" in s.name or "near_duplicates" in s.name]
    for step in steps:
        if step.name.startswith(("pass-near", "account")):
            continue
        start = time.perf_counter()
        keys = step.keys(run)
        if step.local:
            for key in keys:
                step.make(run, key)
        else:
            failures = pool.run(run.store.root, step.name, keys, progress=lambda _: None)
            if failures:
                raise SystemExit(f"{step.name}: {failures[0].error}")
        wall = time.perf_counter() - start
        facts = [run.store.run_facts(step.outputs(run, k)[0]) for k in keys]
        cpu = sum(f.get("cpu_seconds", 0) for f in facts)
        peak = max((f.get("peak_rss_bytes", 0) for f in facts), default=0)
        found[step.name] = (wall, cpu, 0 if step.local else peak, len(keys))
    pool.close()
    return found


def size_of(folder):
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())


def check(run, cluster):
    """Removals outside of their planted cluster, and pairs of first and member both kept."""
    files = str(run.store.path("decisions/near_duplicates/*.parquet"))
    rows = duckdb.sql(f"SELECT code, id, witness_id FROM read_parquet('{files}')").to_arrow_table()
    gone = rows.filter(pc.equal(rows["code"], 1))

    def number(column):
        raw = b"".join(column.to_pylist())
        return np.frombuffer(raw, ">u8")[1::2].astype(np.int64)

    removed, witness = number(gone["id"]), number(gone["witness_id"])
    strays = int((cluster[removed] != cluster[witness]).sum() + (cluster[removed] < 0).sum())
    return len(removed), strays


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", default="100000,1000000")
    parser.add_argument("--words", type=int, default=60)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="512 MiB")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--keep", action="store_true")
    asked = parser.parse_args()
    for n in map(int, asked.documents.split(",")):
        folder = Path(tempfile.mkdtemp(dir=asked.folder))
        try:
            start = time.perf_counter()
            run, cluster = generate(folder, n, asked.words, asked.memory)
            text = size_of(run.store.path("documents"))
            spent = time.perf_counter() - start
            print(f"{n:,} documents of {asked.words} words made in {spent:.0f} s,", end=" ")
            print(f"{text / 1e9:.2f} GB stored", flush=True)
            found = mill(run, asked.workers)
            print(f"  {'step':42} tasks      wall s       CPU s   peak MB")
            for name, (wall, cpu, peak, tasks) in found.items():
                if not name.startswith("manifest") or wall > 1:
                    print(f"  {name:42} {tasks:5} {wall:11.1f} {cpu:11.1f} {peak / 1e6:9.0f}")
            wall, cpu = (sum(f[i] for f in found.values()) for i in (0, 1))
            peak = max(f[2] for f in found.values())
            stored = {
                f: size_of(run.store.path(f)) / 1e9 for f in ("attributes", "exchange", "decisions")
            }
            print(f"  {'together':48} {wall:11.1f} {cpu:11.1f} {peak / 1e6:9.0f}")
            print("  GB written: " + ", ".join(f"{k} {v:.2f}" for k, v in stored.items()))
            each = 1e6 / n
            print(
                f"  a million documents: {wall * each:.1f} s, {cpu * each:.1f} s of CPU,", end=" "
            )
            print(f"{sum(stored.values()) * each:.2f} GB")
            members = int((cluster >= 0).sum())
            removed, strays = check(run, cluster)
            print(f"  {members:,} planted in {int(cluster.max()) + 1:,} clusters:", end=" ")
            print(f"{removed:,} removed, {strays} without a witness in their cluster", flush=True)
        finally:
            if not asked.keep:
                shutil.rmtree(folder)


if __name__ == "__main__":
    main()
