"""Dedup on real text: speed of the survey beside other sketches and peers, and of the rounds.

    python benchmarks/dedup.py [DATA] [--cache FOLDER]

DATA is the folder of real data sets (default: $GRISTMILL_DATA or ../shared/data). One thread, CPU
time of the best of five. datasketch, rensa and datatrove make signatures of the first 300 texts of
each set, in an environment of their own below --cache. Recall and precision: `dedup_truth.py`.
"""

from __future__ import annotations

import argparse
import json
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
from gristmill.dedup.rank import Nodes, document_keys
from gristmill.documents.exchange import counts_of
from gristmill.documents.text import text_view

NEAR = NearDuplicates()
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
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
    """CPU seconds of the fastest call."""
    function()
    spent = []
    for _ in range(times):
        start = time.process_time()
        function()
        spent.append(time.process_time() - start)
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


def random_edges(documents, edges):
    """Edges as `verify` gives them, between random documents: nearly all one giant component."""
    draw = np.random.default_rng(3)
    ends = np.sort(draw.integers(0, documents, (2, edges), np.uint64), axis=0)
    ends = np.unique(ends[:, ends[0] < ends[1]], axis=1)
    zero = np.zeros(ends.shape[1], np.uint64)
    a, b = (
        Nodes(zero, which * GOLDEN, which, which.astype(np.uint32), zero.astype(np.uint16),
              zero.astype(np.int32), which.astype(np.uint32))
        for which in ends
    )  # fmt: skip
    columns = {"partition": pa.array(document_keys(a))} | a.columns("a_") | b.columns("b_")
    counts = {n: pa.array(zero.astype(np.uint32) + v) for n, v in (("shared", 9), ("either", 10))}
    return pa.table(columns | counts)


def edges_memory(documents=500_000, edges=5_000_000):
    """Peak memory of the rounds that see all edges of a component, or of all components."""
    table = random_edges(1000, 1000)
    components, clusters = NEAR.rounds[2], NEAR.rounds[4]
    calls = {
        "components": lambda t: components.whole([t]),
        "clusters": lambda t: clusters.gather(t, None),
    }
    for call in calls.values():
        call(table)  # the kernels are loaded
    table = random_edges(documents, edges)
    for name, call in calls.items():
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        before, start = peak(), time.process_time()
        made = call(table)
        spent = time.process_time() - start
        print(
            f"{name}: {len(table):,} edges of {len(made):,} documents in {spent:.2f} s of CPU; "
            f"{table.nbytes / len(table):.0f} bytes an edge given; while it runs "
            f"{peak() - before:,} bytes more, {(peak() - before) / len(table):.0f} an edge"
        )


def peak():
    """Bytes of resident memory at most since it was set back. Linux alone."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(x.split()[1]) << 10 for x in lines if x.startswith("VmHWM"))


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
    edges_memory()
    speed(data, python)
    rounds(list(graded(load(data / SETS["encyclopaedia"]))))


if __name__ == "__main__":
    main()
