"""Tokens per second beside PyTorch's own memory map, mosaicml-streaming and litdata.

    python benchmarks/feed_peers.py [--cache FOLDER] [--tokens-mib 256] [--rounds 3]

The same windows of 4,096 tokens on local disk, page cache warm, micro-batches of 8, one process
without workers, each in a shuffled order of its own. Ours checks every extent's CRC-32 at its first
touch, and gives labels, positions, masks, boundaries and provenance beside the ids; the others give
ids (as int64) and check nothing of local files. All run in one environment, taking turns; `--cache`
keeps it. Seconds are of the CPU, because other work may share the machine; the median of rounds.
`first batch` counts from the script's start, imports and all.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from statistics import median

import numpy as np
from feed import catalogue, lengths, spec, write_shard
from peers.venv import UnavailableError, environment

from gristmill.mixing import TokenFeed, compile_plan
from gristmill.mixing.export import export

PACKAGES = ("torch==2.13.0", "mosaicml-streaming==0.13.0", "litdata==0.2.76")
WHAT = ("gristmill", "gristmill-torch", "memmap", "mosaicml-streaming", "litdata")
SIDE = Path(__file__).parent / "peers" / "feed_side.py"


def make(folder: Path, mib: int) -> int:
    """A plan over `mib` MiB of tokens, and its windows as raw tokens and as MDS; its windows."""
    tokens = lengths(max(4096, (mib << 20) // 2 // 1400))
    (folder / "tokens").mkdir(parents=True)
    shard = np.arange(len(tokens)) * 8 // len(tokens)
    names = [f"part-{i:05d}" for i in range(8)]
    digests = {
        n: write_shard(folder / "tokens", n, tokens[shard == i]) for i, n in enumerate(names)
    }
    name = compile_plan(
        catalogue(tokens, 8),
        spec(int(tokens.sum()) * 9 // 10, "best_fit", 4096),
        tokens_digests=digests,
        tokenizer_digest="bench",
        out=folder / "plans",
    )
    (folder / "plan").symlink_to(folder / "plans" / name)
    (folder / "path").mkdir()
    (folder / "path" / "gristmill").symlink_to(Path(__file__).resolve().parent.parent)
    feed = TokenFeed(folder / "plans" / name, folder / "tokens")
    for to in ("npy", "mds"):
        export(feed, to, folder / to)
    return len(feed)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--tokens-mib", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as where:
        folder = Path(where)
        try:
            python = environment((asked.cache or folder / "cache") / "feed-peers", *PACKAGES)
        except UnavailableError as error:
            print(f"peers: not installed ({error})")
            return
        windows = make(folder / "data", asked.tokens_mib)
        print(f"{windows:,} windows of 4,096 tokens; tokens per CPU second, median of rounds")
        said = [str(python), str(SIDE)]
        done = subprocess.run(
            [*said, "make", str(folder / "data")], capture_output=True, text=True, check=False
        )
        if done.returncode:
            print("litdata: not written:", done.stderr.strip().splitlines()[-1:])
        found: dict[str, list[dict[str, float]]] = {name: [] for name in WHAT}
        for _ in range(asked.rounds):
            for name in WHAT:
                done = subprocess.run(
                    [*said, name, str(folder / "data"), str(windows // 8 // 3)],
                    capture_output=True,
                    text=True,
                    check=False,
                )
                lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
                if lines:
                    found[name].append(json.loads(lines[-1]))
                else:
                    print(f"{name}:", (done.stderr.strip().splitlines() or ["no output"])[-1])
        for name, rounds in found.items():
            if rounds:
                cpu = median(r["tokens"] / r["cpu"] for r in rounds) / 1e6
                wall = median(r["tokens"] / r["wall"] for r in rounds) / 1e6
                first = median(r["first"] for r in rounds)
                print(f"{name:20s} {cpu:8.1f} M/CPU s {wall:8.1f} M/s   first batch {first:5.2f} s")


if __name__ == "__main__":
    main()
