"""Dedup on real text: speed of the survey beside other sketches and peers, and of the rounds.

    python benchmarks/dedup.py [DATA] [--cache FOLDER]

DATA is the folder of real data sets (default: $GRISTMILL_DATA or ../shared/data). One thread, best
of five. datasketch, rensa and datatrove make signatures of the first 300 texts of each set, in an
environment of their own below --cache. Recall and precision: `dedup_truth.py`.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from _dedup import PEERS, cache_folder, data_folder, decide, graded, load
from numba import njit
from peers.venv import UnavailableError, environment

from gristmill.dedup import ExactDuplicates, NearDuplicates
from gristmill.dedup import _kernels as kernels
from gristmill.dedup.near import NearSurvey
from gristmill.documents.exchange import counts_of
from gristmill.documents.text import text_view

NEAR = NearDuplicates()
CLASSIC = NearSurvey(k=128, bands=16, scheme="datasketch")
SETS = {
    "PEP revisions": "d-dup-pep-revisions/develop.jsonl.gz",
    "news articles": "d-dup-minhash-articles/articles_1000.jsonl.gz",
    "encyclopaedia": "c-encyclopedia-enwiki/develop.jsonl.gz",
    "Chinese Wikipedia": "f-multilingual-zhwiki/zhwiki.jsonl.gz",
}


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


def peers(python, texts):
    """MB/s of the peers' signatures, shingles included."""
    script = Path(__file__).parent / "peers" / "dedup_peers.py"
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(texts, file)
        file.flush()
        done = subprocess.run(
            [str(python), str(script), "speed", file.name],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {}


def speed(data, python):
    print("survey, MB/s on one core")
    for name, path in SETS.items():
        texts = load(data / path)
        batch = batch_of(texts)
        size = sum(len(text.encode()) for text in texts) / 1e6
        rows = [
            ("near (scan + FSS-256 + bands)", best(lambda b=batch: NEAR.survey.measure(b))),
            ("scan and shingle alone", best(lambda b=batch: shingled(b))),
            ("same scan + classic 112", best(lambda b=batch: classic_112(b), 2)),
            ("scheme: datasketch, 128 (SHA-1)", best(lambda b=batch: CLASSIC.measure(b), 2)),
            ("exact (128-bit hash)", best(lambda b=batch: ExactDuplicates().survey.measure(b))),
        ]
        print(f"  {name}: {len(texts)} documents, {size:.1f} MB")
        for what, spent in rows:
            print(f"    {what:42} {size / spent:8.1f}")
        if python:
            for what, rate in peers(python, texts[:300]).items():
                print(f"    {what + ', 300 documents':42} {rate:8.1f}")


def rounds(texts):
    print(f"rounds over {len(texts)} documents")
    clock = [time.perf_counter()]

    def watch(step, rows, made):
        now = time.perf_counter()
        print(f"    {step.name:10} {len(rows):9} rows -> {len(made):8} in {now - clock[0]:6.2f} s")
        print(f"        {counts_of(made)}")
        clock[0] = now

    found = decide(NEAR, texts, watch)
    print(f"    removed: {sum(found['code'].to_pylist())}")


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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="?")
    parser.add_argument("--cache", type=Path, default=cache_folder())
    asked = parser.parse_args()
    data = data_folder(asked.data)
    try:
        python = environment(asked.cache / "dedup-peers", *PEERS)
    except UnavailableError as error:
        print(f"no peers: {error}")
        python = None
    clusters_memory()
    speed(data, python)
    rounds(list(graded(load(data / SETS["encyclopaedia"]))))


if __name__ == "__main__":
    main()
