"""Exact token counts: MB/s of our encoder and of `tokenizers`, one core, and whether ids are equal.

    python benchmarks/tokens.py [--data FOLDER] [--tokenizer FILE] [--megabytes N]

Each engine runs in a process of its own, bound to one core; seconds are of CPU, which other work
blurs less. `first` is text that the process has not seen (its cache of words fills): the figure to
quote. `again` is the same text once more. Both include making Python strings of the Arrow column.
`shard` is the whole of `encode_shard`: Parquet in, five files out.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

SETS = {
    "encyclopaedia": "c-encyclopedia-enwiki/*.gz",
    "web, 5 languages": "c-register-web/*.gz",
    "code": "e-code-repos/*.gz",
    "agent runs": "e-agent-*/*.gz",
}


def texts_of(data: Path, pattern: str, limit: int) -> list[str]:
    """Documents of a set, at most `limit` bytes."""
    texts, held = [], 0
    for path in sorted(data.glob(pattern)):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                body = row.get("text") or row.get("content") or json.dumps(row, ensure_ascii=False)
                text = body.encode("utf-8", "replace").decode()
                held += len(text.encode())
                if held > limit:
                    return texts
                texts.append(text)
    return texts


def measure(engine: str, corpus: Path, tokenizer: Path | None) -> dict[str, object]:
    """Time one engine in this process."""
    from gristmill.mixing.encoder import load_encoder
    from gristmill.mixing.shards import ShardPaths
    from gristmill.mixing.tokens import encode_shard

    column = pq.read_table(corpus)["text"].combine_chunks()
    start = time.process_time()
    encoder = load_encoder(tokenizer, bos=False if tokenizer else None)
    seconds: dict[str, float] = {"load": time.process_time() - start}
    if engine == "tokenizers":
        from functools import partial

        import tokenizers

        from gristmill.mixing import encoder as module

        raw = json.loads((tokenizer or module.OWN).read_bytes()) | {"added_tokens": []}
        reference = tokenizers.Tokenizer.from_str(json.dumps(raw))
        slow = partial(
            module.rows_flat, lambda text: reference.encode(text, add_special_tokens=False).ids
        )
        start = time.process_time()
        ids, _ = slow(column.to_pylist())
        seconds["first"] = time.process_time() - start
    else:
        start = time.process_time()
        encoder.count(column)
        seconds["first"] = time.process_time() - start
        start = time.process_time()
        ids, _ = encoder.encode(column)
        seconds["again"] = time.process_time() - start
        p = ShardPaths.of(corpus.with_name("shard"))
        start = time.process_time()
        encode_shard(corpus, encoder, p)
        seconds["shard"] = time.process_time() - start
    digest = hashlib.sha256(ids.astype("<u4").tobytes()).hexdigest()
    return {"seconds": seconds, "tokens": len(ids), "digest": digest, "engine": encoder.engine}


def main() -> None:
    parser = argparse.ArgumentParser()
    root = Path(__file__).resolve().parent.parent
    default = Path(os.environ.get("GRISTMILL_DATA", root.parent / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=default)
    parser.add_argument("--tokenizer", type=Path, default=None)
    parser.add_argument("--megabytes", type=int, default=10)
    parser.add_argument("--engine", help=argparse.SUPPRESS)
    parser.add_argument("--corpus", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.engine:
        print(json.dumps(measure(options.engine, options.corpus, options.tokenizer)))
        return
    heads = ("MB", "bytes/token", "first", "again", "shard", "tokenizers", "ratio", "ids")
    print(f"MB/s of CPU time on one core\n{'text':>18}" + "".join(f"{head:>12}" for head in heads))
    for name, pattern in SETS.items():
        texts = texts_of(options.data, pattern, options.megabytes * 1_000_000)
        if not texts:
            print(f"{name:>18}  no files at {pattern} (set GRISTMILL_DATA)")
            continue
        size = sum(len(t.encode()) for t in texts)
        with tempfile.TemporaryDirectory() as folder:
            corpus = Path(folder) / "corpus.parquet"
            ids = pa.array([n.to_bytes(16, "big") for n in range(len(texts))], pa.binary(16))
            table = pa.table({"id": ids, "text": pa.array(texts, pa.large_string())})
            pq.write_table(table, corpus, compression="zstd")
            made = {}
            for engine in ("ours", "tokenizers"):
                command = [sys.executable, __file__, "--engine", engine, "--corpus", str(corpus)]
                command += ["--tokenizer", str(options.tokenizer)] if options.tokenizer else []
                if Path("/usr/bin/taskset").exists():
                    command = ["taskset", "-c", "0", *command]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                made[engine] = json.loads(done.stdout)
        ours = made["ours"]
        fast = {k: size / s / 1e6 for k, s in ours["seconds"].items()}
        slow = size / made["tokenizers"]["seconds"]["first"] / 1e6
        print(
            f"{name:>18}{size / 1e6:12.1f}{size / ours['tokens']:12.2f}{fast['first']:12.1f}"
            f"{fast['again']:12.1f}{fast['shard']:12.1f}{slow:12.2f}{fast['first'] / slow:11.0f}x"
            f"{'equal' if ours['digest'] == made['tokenizers']['digest'] else 'DIFFER':>12}"
        )
    print(f"engine {ours['engine']}, load and proof {ours['seconds']['load']:.2f} s")


if __name__ == "__main__":
    main()
