"""Dedup on real text: speed of the survey beside other sketches, recall against all pairs.

    python benchmarks/dedup.py [DATA]

DATA is the folder of real data sets (default: $GRISTMILL_DATA or ../shared/data). One thread, best
of five. `datasketch` is measured where it can be imported; it is no dependency of the project.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import resource
import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
from numba import njit

from gristmill.dedup import ExactDuplicates, NearDuplicates, candidate_probability
from gristmill.dedup import _kernels as kernels
from gristmill.dedup.candidates import counts_of
from gristmill.dedup.verify import shingle_sets
from gristmill.documents.text import text_view

ROOT = Path(__file__).resolve().parent.parent
NEAR = NearDuplicates()
SETS = {
    "PEP revisions": "d-dup-pep-revisions/develop.jsonl.gz",
    "news articles": "d-dup-minhash-articles/articles_1000.jsonl.gz",
    "encyclopaedia": "c-encyclopedia-enwiki/develop.jsonl.gz",
    "Chinese Wikipedia": "f-multilingual-zhwiki/zhwiki.jsonl.gz",
}


def load(path, limit=None):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line)["text"] for line in islice(file, limit)]


def batch_of(texts):
    return pa.record_batch({"text": pa.array(texts, pa.large_string())})


def best(function, times=5):
    """Seconds of the fastest call."""
    function()
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        function()
        spent.append(time.perf_counter() - start)
    return min(spent)


@njit(cache=True, nogil=True)
def classic(values, starts, ends, a, b, out):
    """Textbook MinHash: len(a) multiply-shift hashes of every shingle, 32 bits kept."""
    for row in range(len(starts)):
        lanes = out[row]
        lanes[:] = np.uint32(0xFFFFFFFF)
        for i in range(starts[row], ends[row]):
            x = values[i]
            for j in range(len(a)):
                lanes[j] = min(lanes[j], np.uint32((x * a[j] + b[j]) >> np.uint64(32)))


def shingled(batch):
    """Shingle hashes with repeats: the scan that both sketches share."""
    view = text_view(batch.column("text"))
    room = np.diff(view.offsets) // 2 + 2
    starts = np.concatenate(([0], np.cumsum(room)))
    values, ends = np.empty(starts[-1], np.uint64), np.empty(view.rows, np.int64)
    kernels.shingle_lists(view.data, view.offsets, 5, 5, starts[:-1], values, ends)
    return values, starts[:-1], ends


def classic_112(batch):
    odd = np.random.default_rng(1).integers(0, 2**64, (2, 112), np.uint64) | np.uint64(1)
    out = np.empty((batch.num_rows, 112), np.uint32)
    classic(*shingled(batch), odd[0], odd[1], out)


def datasketch_128(texts):
    from datasketch import MinHash

    for text in texts:
        words = text.lower().split()
        sketch = MinHash(num_perm=128)
        sketch.update_batch([" ".join(words[i : i + 5]).encode() for i in range(len(words) - 4)])


def speed(data):
    print("survey, MB/s on one core")
    for name, path in SETS.items():
        texts = load(data / path)
        batch = batch_of(texts)
        size = sum(len(text.encode()) for text in texts) / 1e6
        rows = [
            ("near (scan + FSS-256 + bands)", best(lambda b=batch: NEAR.survey.measure(b))),
            ("scan and shingle alone", best(lambda b=batch: shingled(b))),
            ("same scan + classic 112", best(lambda b=batch: classic_112(b), 2)),
            ("exact (128-bit hash)", best(lambda b=batch: ExactDuplicates().survey.measure(b))),
        ]
        print(f"  {name}: {len(texts)} documents, {size:.1f} MB")
        for what, spent in rows:
            print(f"    {what:32} {size / spent:8.1f}")
        try:
            few = texts[:100]
            part = sum(len(text.encode()) for text in few) / 1e6
            spent = best(lambda f=few: datasketch_128(f), 1)
            print(f"    {'datasketch 128, 100 documents':32} {part / spent:8.1f}")
        except ImportError:
            print("    datasketch is not installed")


def graded(texts, seed=7):
    """Each text with a copy in which a share of words, up to 8 %, is exchanged at random places."""
    draw = random.Random(seed)
    for text in texts:
        yield text
        words = text.split()
        for _ in range(int(len(words) * draw.random() * 0.08)):
            words[draw.randrange(len(words))] = f"x{draw.randrange(10**6)}"
        yield " ".join(words)


def all_pairs(sets, least=0.5):
    """Every pair whose exact Jaccard is at least `least`: (a, b, Jaccard), by brute force."""
    values, starts, ends = sets
    sizes = ends - starts
    order = np.argsort(sizes, kind="stable")
    found = []
    for at, a in enumerate(order):
        if not sizes[a]:
            continue
        reach = np.searchsorted(sizes[order], sizes[a] / least, side="right")
        others = order[at + 1 : reach].astype(np.int64)
        mine = np.full(len(others), a, np.int64)
        shared, either = np.zeros(len(others), np.int64), np.zeros(len(others), np.int64)
        kernels.intersections(values, starts, ends, mine, others, shared, either)
        close = shared >= least * either
        found += zip(mine[close], others[close], shared[close] / either[close], strict=True)
    return found


def recall(name, texts):
    start = time.perf_counter()
    column = pa.array(texts, pa.large_string())
    pairs = all_pairs(shingle_sets(column, 5, 5))
    brute = time.perf_counter() - start
    bands = NEAR.survey.measure(batch_of(texts)).scores["bands"]
    print(f"candidates of {name}: {len(texts)} documents")
    print(f"    {len(pairs)} pairs >= 0.5, by brute force in {brute:.1f} s")
    print("    Jaccard        pairs   found  recall  theory   (14 x 8 in theory)")
    for low in (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9):
        high = {0.5: 0.6, 0.6: 0.7, 0.9: 1.01}.get(low, low + 0.05)
        part = [p for p in pairs if low <= p[2] < high]
        hits = sum(bool((bands[a] == bands[b]).any()) for a, b, _ in part)
        theory, fine = (
            np.mean([candidate_probability(min(s, 1), *setting) for *_, s in part]) if part else 1
            for setting in ((32, 8), (14, 8))
        )
        print(
            f"    {low:.2f} - {min(high, 1):.2f} {len(part):9} {hits:7} "
            f"{hits / max(1, len(part)):7.3f} {theory:7.3f} {fine:12.3f}"
        )


def documents_of(texts):
    """The table that `scatter` gets."""
    rows = len(texts)
    scores = NEAR.survey.measure(batch_of(texts)).scores
    ids = np.arange(2 * rows, dtype=">u8").reshape(rows, 2)
    return pa.table({
        "shard": pa.array(np.zeros(rows, np.uint64)),
        "id": pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), rows, [None, pa.py_buffer(ids)]),
        "row": pa.array(np.arange(rows, dtype=np.uint32)),
        "priority": pa.array(np.zeros(rows, np.uint16)),
        "quality": pa.array(np.full(rows, -1, np.int32)),
        "bytes": pa.array(np.array([len(text.encode()) for text in texts], np.uint32)),
        "shingles": pa.array(scores["shingles"]),
        "bands": pa.FixedSizeListArray.from_arrays(pa.array(scores["bands"].ravel()), NEAR.bands),
    })  # fmt: skip


def rounds(texts):
    column = pa.array(texts, pa.large_string())
    rows = NEAR.scatter(documents_of(texts))
    each = rows.nbytes / len(texts)
    print(f"rounds over {len(texts)} documents, {len(rows)} rows, {each:.0f} bytes a document")
    for step in NEAR.rounds:
        start = time.perf_counter()
        result = step.gather(rows, lambda _, at: column.take(pa.array(at)))
        spent = time.perf_counter() - start
        print(f"    {step.name:10} {len(rows):9} rows -> {len(result):8} in {spent:6.2f} s")
        print(f"        {counts_of(result)}")
        rows = result
    print(f"    removed: {sum(rows['code'].to_pylist())}")


def clusters_memory(edges=1_000_000):
    """Peak memory of the last round, which sees all edges at once."""
    draw = np.random.default_rng(3)
    ends = np.sort(draw.integers(0, edges, (2, edges), np.uint64), axis=0)
    columns = {"partition": pa.array(np.zeros(edges, np.uint64))}
    for prefix, which in zip(("a_", "b_"), ends, strict=True):
        ids = np.stack([which, which], axis=1).astype(">u8")
        buffers = [None, pa.py_buffer(ids)]
        columns |= {
            prefix + "shard": pa.array(np.zeros(edges, np.uint64)),
            prefix + "id": pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), edges, buffers),
            prefix + "row": pa.array(which.astype(np.uint32)),
            prefix + "priority": pa.array(np.zeros(edges, np.uint16)),
            prefix + "quality": pa.array(np.zeros(edges, np.int32)),
            prefix + "bytes": pa.array(which.astype(np.uint32)),
        }
    columns |= {
        n: pa.array(np.full(edges, v, np.uint32)) for n, v in (("shared", 9), ("either", 10))
    }
    table = pa.table(columns)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    result = NEAR.rounds[-1].gather(table, None)
    spent = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"clusters: {edges} random edges, {len(result)} documents in {spent:.2f} s; "
        f"{table.nbytes / edges:.0f} bytes an edge held, "
        f"{(after - before) * 1024 / edges:.0f} more while it runs"
    )


def main():
    default = os.environ.get("GRISTMILL_DATA", ROOT.parent / "shared" / "data")
    data = Path(sys.argv[1] if len(sys.argv) > 1 else default)
    if not (data / SETS["PEP revisions"]).exists():
        sys.exit(
            f"benchmarks/dedup.py: no data sets in {data}; name their folder or set GRISTMILL_DATA"
        )
    clusters_memory()
    speed(data)
    recall("PEP revisions", load(data / SETS["PEP revisions"]))
    articles = load(data / SETS["encyclopaedia"])
    recall("encyclopaedia with graded copies", list(graded(articles[:2000])))
    rounds(list(graded(articles)))


if __name__ == "__main__":
    main()
