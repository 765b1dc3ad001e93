"""The peers' side of `benchmarks/dedup_truth.py`; runs in their own environment.

    python dedup_peers.py TEXTS.jsonl FOLDER       removed documents of each peer, as JSON
    python dedup_peers.py same FOLDER              whether our signatures are datasketch's
    python dedup_peers.py speed TEXTS.json         MB/s of signatures, shingles included

datasketch and rensa get word 5-grams of the lower-cased text and keep the first document of each
group of duplicates, as their examples do; datatrove runs its four MinHash blocks.
"""

from __future__ import annotations

import json
import re
import struct
import sys
import time
from pathlib import Path

import numpy as np


def shingles(text):
    words = re.findall(r"\w+", text.lower())
    return [" ".join(words[i : i + 5]) for i in range(len(words) - 4)]


def by_datasketch(texts):
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=0.8, num_perm=128)
    gone = []
    for i, text in enumerate(texts):
        found = shingles(text)
        if not found:
            continue
        sketch = MinHash(num_perm=128)
        sketch.update_batch([s.encode() for s in found])
        if index.query(sketch):
            gone.append(i)
        else:
            index.insert(i, sketch)
    return gone


def by_rensa(texts, bands):
    from rensa import RMinHash, RMinHashLSH

    index = RMinHashLSH(threshold=0.8, num_perm=128, num_bands=bands)
    gone = []
    for i, text in enumerate(texts):
        found = shingles(text)
        if not found:
            continue
        sketch = RMinHash(num_perm=128, seed=42)
        sketch.update(found)
        if index.query(sketch):
            gone.append(i)
        else:
            index.insert(i, sketch)
    return gone


def by_datatrove(source, folder):
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import (
        MinhashDedupCluster,
        MinhashDedupFilter,
        MinhashDedupSignature,
    )
    from datatrove.pipeline.dedup.minhash import MinhashConfig, MinhashDedupBuckets
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers import JsonlWriter
    from datatrove.utils.hashing import HashConfig

    config = MinhashConfig(
        hash_config=HashConfig(precision=64), num_buckets=14, hashes_per_bucket=8
    )
    reader = JsonlReader(str(source.parent), glob_pattern=source.name)
    sigs, buckets, removed, kept = (str(folder / n) for n in ("sigs", "buckets", "removed", "kept"))
    for tasks, steps in (
        (1, [reader, MinhashDedupSignature(output_folder=sigs, config=config)]),
        (14, [MinhashDedupBuckets(input_folder=sigs, output_folder=buckets, config=config)]),
        (1, [MinhashDedupCluster(input_folder=buckets, output_folder=removed, config=config)]),
        (
            1,
            [reader, MinhashDedupFilter(input_folder=removed), JsonlWriter(kept, compression=None)],
        ),
    ):
        LocalPipelineExecutor(pipeline=steps, tasks=tasks, workers=1, logging_dir=None).run()
    left = set()
    for path in Path(kept).glob("*.jsonl"):
        left |= {int(json.loads(line)["id"]) for line in path.open(encoding="utf-8")}
    return left


def same(folder):
    from datasketch import LeanMinHash, MinHash, MinHashLSH

    ours = np.load(folder / "ours.npy")
    raw = (folder / "lean.bin").read_bytes()
    size = struct.calcsize("<qiB") + 4 * ours.shape[1]
    documents = json.loads((folder / "tokens.json").read_text())
    equal = loaded = found = asked = 0
    index = MinHashLSH(threshold=0.8, num_perm=128)
    for i, (tokens, lanes) in enumerate(zip(documents, ours, strict=True)):
        theirs = MinHash(num_perm=128)
        theirs.update_batch([" ".join(tokens[j : j + 5]).encode() for j in range(len(tokens) - 4)])
        equal += bool((theirs.hashvalues == lanes).all())
        lean = LeanMinHash.deserialize(raw[i * size : (i + 1) * size], "<")
        loaded += bool(lean == LeanMinHash(theirs))
        if len(tokens) >= 5:
            index.insert(i, lean)
            asked += 1
            found += i in index.query(theirs)
    print(
        f"datasketch: {equal:,} of {len(ours):,} signatures equal bit for bit, {loaded:,} load as "
        f"equal LeanMinHash, {found:,} of {asked:,} found by MinHashLSH under their own"
    )


def speed(path):
    """Best of two over the same texts, by CPU time."""
    from datasketch import MinHash
    from datatrove.pipeline.dedup import MinhashDedupSignature
    from datatrove.pipeline.dedup.minhash import MinhashConfig
    from datatrove.utils.hashing import HashConfig
    from rensa import RMinHash

    texts = json.loads(path.read_text())
    size = sum(len(t.encode()) for t in texts) / 1e6
    block = MinhashDedupSignature("unused", MinhashConfig(hash_config=HashConfig(precision=64)))

    def datasketch():
        for text in texts:
            MinHash(num_perm=128).update_batch([s.encode() for s in shingles(text)])

    def rensa():
        for text in texts:
            RMinHash(num_perm=128, seed=42).update(shingles(text))

    def datatrove():
        for text in texts:
            found = block.get_shingles(text)
            if len(found):
                block.get_signature(found)

    rates = {}
    for name, run in (
        ("datasketch 128", datasketch), ("rensa 128", rensa), ("datatrove 112", datatrove)
    ):  # fmt: skip
        spent = []
        for _ in range(2):
            start = time.process_time()  # of all threads: other work on the machine bears less
            run()
            spent.append(time.process_time() - start)
        rates[name] = size / min(spent)
    print("\n" + json.dumps(rates))


def main(source, folder):
    if source == "speed":
        speed(Path(folder))
        return
    if source == "same":
        same(Path(folder))
        return
    path = Path(source)
    texts = [json.loads(line)["text"] for line in path.open(encoding="utf-8")]
    results = {}
    for name, run in (
        ("datasketch 128, its optimum", lambda: by_datasketch(texts)),
        ("rensa 128, 16 bands", lambda: by_rensa(texts, 16)),
        ("rensa 128, 8 bands (its bench)", lambda: by_rensa(texts, 8)),
    ):
        start = time.perf_counter()
        gone = run()
        results[name] = gone, time.perf_counter() - start
    start = time.perf_counter()
    left = by_datatrove(path, Path(folder))
    gone = [i for i in range(len(texts)) if i not in left]
    results["datatrove 14x8"] = gone, time.perf_counter() - start
    print("\n" + json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
