"""What a compiled mixture costs: compiling per million documents, resuming, reading at random.

    python benchmarks/feed.py [--documents 1000000] [--tokens-gib 0.5] [--only compile]

Lengths are log-normal by quantile (median 600, sigma 1.3). Tokens are written once to a temporary
folder and are in the page cache afterwards: the figures are the feed's own cost, not the disk's.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import tempfile
import time
import zlib
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pyarrow as pa

from gristmill.mixing import FeedLoader, MixSpec, Plan, TokenFeed, compile_plan
from gristmill.mixing.account import DIMENSIONS, account
from gristmill.mixing.order import Permutation
from gristmill.mixing.shards import EXTENT, FORMAT


def lengths(count: int) -> np.ndarray:
    """Log-normal lengths by quantile, shuffled by our own order."""
    normal = NormalDist()
    grid = np.array([normal.inv_cdf((i + 0.5) / 65_536) for i in range(65_536)])
    at = Permutation(count, "bench").forward(np.arange(count)) * 65_536 // count
    return np.maximum(2, (600 * np.exp(1.3 * grid[at])).astype(np.int64))


def catalogue(tokens: np.ndarray, shards: int) -> pa.Table:
    count = len(tokens)
    shard = np.arange(count) * shards // count
    first = np.searchsorted(shard, np.arange(shards))
    ids = np.zeros((count, 16), np.uint8)
    ids[:, :8] = np.arange(count, dtype="<u8").view(np.uint8).reshape(-1, 8)
    names = pa.array([f"part-{i:05d}" for i in range(shards)])
    sources = pa.array([f"source-{i:02d}" for i in range(40)])
    return pa.table(
        {
            "shard": pa.DictionaryArray.from_arrays(pa.array(shard, pa.int32()), names).cast(
                "string"
            ),
            "doc": pa.array(np.arange(count) - first[shard], pa.uint32()),
            "id": pa.FixedSizeBinaryArray.from_buffers(
                pa.binary(16), count, [None, pa.py_buffer(ids)]
            ),
            "tokens": pa.array(tokens, pa.uint32()),
            "source": pa.DictionaryArray.from_arrays(
                pa.array(np.arange(count) * 7919 % 40, pa.int32()), sources
            ).cast("string"),
            "language": pa.nulls(count, "string"),
            "dump": pa.nulls(count, "string"),
            "license": pa.nulls(count, "string"),
        }
    )


def write_shard(folder: Path, name: str, tokens: np.ndarray) -> str:
    total = int(tokens.sum())
    data = (np.arange(total, dtype=np.uint64) * 40_503 % 65_521).astype("<u2").tobytes()
    (folder / f"{name}.bin").write_bytes(data)
    entries = {}
    for what, array in (
        ("ends", np.cumsum(tokens).astype("<u8")),
        ("ids", np.zeros((len(tokens), 16), np.uint8)),
        ("unlearnt", np.zeros((0, 2), "<u8")),
    ):
        file = folder / f"{name}.{what}.npy"
        np.save(file, array)
        raw = file.read_bytes()
        entries[what] = {"size": len(raw), "crc32": zlib.crc32(raw)}
    index = {
        "format": FORMAT,
        "dtype": "uint16",
        "documents": len(tokens),
        "tokens": total,
        "tokenizer": "bench",
        "size": len(data),
        "extent": EXTENT,
        "crc32": [zlib.crc32(data[i : i + EXTENT]) for i in range(0, len(data), EXTENT)],
        "digest": hashlib.blake2b(data, digest_size=16).hexdigest(),
        **entries,
    }
    index["unlearnt"]["spans"] = 0
    (folder / f"{name}.index.json").write_text(json.dumps(index))
    return str(index["digest"])


def spec(tokens: int, packing: str, length: int) -> MixSpec:
    names = [f"s{i:02d}" for i in range(40)]
    return MixSpec.parse(
        {
            "global_batch": 64,
            "slices": {n: {"source": f"source-{i:02d}"} for i, n in enumerate(names)},
            "stages": [
                {
                    "name": "base",
                    "tokens": tokens,
                    "sequence_length": length,
                    "packing": packing,
                    "weights": {n: 1 + i % 3 for i, n in enumerate(names)},
                }
            ],
        }
    )


def timed(label: str, work, per: float = 0, unit: str = "") -> object:
    start, cpu = time.perf_counter(), time.process_time()
    result = work()
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    rate = f"{per / seconds:14,.0f} {unit}/s, {per / max(cpu, 1e-9):,.0f} per CPU s" if per else ""
    print(f"{label:58s} {seconds * 1e3:10.1f} ms {rate}")
    return result


def compile_speed(root: Path, documents: int) -> None:
    tokens = lengths(documents)
    table = catalogue(tokens, 64)
    digests = {f"part-{i:05d}": "0" * 32 for i in range(64)}
    common = {"tokens_digests": digests, "tokenizer_digest": "bench", "out": root / "plans"}
    for packing, length in (("concat", 4096), ("best_fit", 4096), ("best_fit", 65_536)):
        mix = spec(int(tokens.sum()), packing, length)
        name = timed(
            f"compile {packing} {length}, 40 slices, {documents:,} documents",
            lambda mix=mix: compile_plan(table, mix, **common),
            documents,
            "documents",
        )
    plan = Plan.open(root / "plans" / str(name))
    timed("account of the last", lambda: account(plan), documents, "documents")
    cube = list(DIMENSIONS)
    timed("account by all dimensions", lambda: account(plan, by=cube), documents, "documents")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    print(f"-- {peak:.1f} GiB at most in memory")


def order_speed() -> None:
    order = Permutation(10**9 + 7, "bench")
    index = np.arange(1 << 20)
    timed("order: 2**20 elements of 10**9 + 7", lambda: order.forward(index), 1 << 20, "elements")
    few = range(0, 10**9, 10**5)
    timed(
        "order: 10,000 single elements", lambda: [order.forward(i) for i in few], 10_000, "elements"
    )


def feed_speed(root: Path, gib: float) -> None:
    tokens = lengths(max(4096, int(gib * (1 << 30) / 2 / 1400)))
    folder = root / "tokens"
    folder.mkdir()
    table = catalogue(tokens, 8)
    parts = np.array_split(np.arange(len(tokens)), 8)
    shard = np.arange(len(tokens)) * 8 // len(tokens)
    digests = {
        f"part-{i:05d}": write_shard(folder, f"part-{i:05d}", tokens[shard == i])
        for i in range(len(parts))
    }
    mix = spec(int(tokens.sum()), "best_fit", 4096)
    out = {"tokens_digests": digests, "tokenizer_digest": "bench", "out": root / "plans"}
    plan_folder = root / "plans" / compile_plan(table, mix, **out)
    size = sum(f.stat().st_size for f in folder.glob("*.bin")) / (1 << 30)
    print(f"-- feed: {int(tokens.sum()):,} tokens, {size:.2f} GiB, windows of 4,096, best fit")
    positions = TokenFeed(plan_folder, folder, verify="off").plan.positions
    where = Permutation(positions, "where").forward(np.arange(min(positions, 4000))).tolist()
    for verify, label in (("off", "no checks"), ("first", "first touch checked")):
        feed = TokenFeed(plan_folder, folder, verify=verify)
        for turn in ("first", "second"):
            timed(
                f"random access, {label}, {turn} pass over {len(where):,}",
                lambda feed=feed: [feed[p] for p in where],
                len(where) * 4096,
                "tokens",
            )
    for verify in ("off", "first"):
        for part in (0.0, 0.37, 0.93):
            low = int(positions * part) // 64 * 64
            state = FeedLoader(TokenFeed(plan_folder, folder))
            state._position = low  # noqa: SLF001
            saved = state.state_dict()

            def resume(saved=saved, verify=verify) -> None:
                loader = FeedLoader(TokenFeed(plan_folder, folder, verify=verify), world=8)
                loader.load_state_dict(saved)
                next(iter(loader))

            timed(f"open, resume at {low:,} and first sample, verify={verify}", resume)
    feed = TokenFeed(plan_folder, folder)
    list(zip(FeedLoader(feed, micro_batch=8), range(200), strict=False))
    loader = FeedLoader(feed, micro_batch=8)
    count = 400
    timed(
        "loader, micro-batches of 8, checked, warm",
        lambda: [None for _ in zip(range(count), loader, strict=False)],
        count * 8 * 4096,
        "tokens",
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--tokens-gib", type=float, default=0.5)
    parser.add_argument("--only", choices=["compile"])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        if not arguments.only:
            order_speed()
            feed_speed(root, arguments.tokens_gib)
        compile_speed(root, arguments.documents)


if __name__ == "__main__":
    main()
