"""datatrove's side of `benchmarks/pipeline.py`; runs in the peer's own environment (`venv.py`).

    python datatrove_base.py INPUT OUT TOKENIZER MODEL KIND      KIND: wet | warc; MODEL: file or -

The blocks of its FineWeb example, in its order and with its options, less the URL lists and the
mask of e-mail addresses, which ours does not have in this recipe either. Exclusion writers are left
out (less work for it). One executor after the other in this process: tasks as few as each allows.
Prints one JSON object: seconds of each stage (wall, CPU with children), documents after each block.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import datatrove.utils.lid
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import MinhashDedupCluster, MinhashDedupFilter, MinhashDedupSignature
from datatrove.pipeline.dedup.minhash import MinhashConfig, MinhashDedupBuckets
from datatrove.pipeline.extractors import Trafilatura
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
    LanguageFilter,
)
from datatrove.pipeline.readers import JsonlReader, WarcReader
from datatrove.pipeline.tokens import DocumentTokenizer
from datatrove.pipeline.writers import JsonlWriter
from datatrove.utils.hashing import HashConfig


def cpu() -> float:
    """Seconds of CPU of this process and its ended children."""
    both = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, both))


def main(source: str, out: str, tokenizer: str, model: str, kind: str) -> None:
    """Run the four parts and print what they took."""
    base = Path(out)
    config = MinhashConfig(
        hash_config=HashConfig(precision=64), num_buckets=14, hashes_per_bucket=8, n_grams=5
    )
    language = []
    if model != "-":
        datatrove.utils.lid.cached_asset_path_or_download = lambda *_args, **_named: model
        language = [LanguageFilter()]
        language[0].languages = ["en"]
        language[0].model.languages = ["en"]
    extract = [Trafilatura(favour_precision=True, timeout=30)] if kind == "warc" else []
    kept, sigs, buckets, removed = (str(base / n) for n in ("kept", "sigs", "buckets", "removed"))
    parts = {
        "filters": (
            [
                WarcReader(source, glob_pattern=f"*.{kind}.gz", default_metadata={"dump": "bench"}),
                *extract,
                *language,
                GopherRepetitionFilter(),
                GopherQualityFilter(),
                C4QualityFilter(filter_no_terminal_punct=False),
                FineWebQualityFilter(),
                JsonlWriter(kept),
            ],
            1,
        ),
        "signatures": ([JsonlReader(kept), MinhashDedupSignature(sigs, config=config)], 1),
        "buckets": ([MinhashDedupBuckets(sigs, buckets, config=config)], config.num_buckets),
        "cluster": ([MinhashDedupCluster(buckets, removed, config=config)], 1),
        "filter": (
            [
                JsonlReader(kept),
                MinhashDedupFilter(removed),
                JsonlWriter(str(base / "deduplicated")),
                DocumentTokenizer(
                    str(base / "tokens"),
                    tokenizer,
                    save_filename="base",
                    shuffle_documents=False,
                ),
            ],
            1,
        ),
    }
    said: dict[str, object] = {"language_model": model != "-"}
    for name, (pipeline, tasks) in parts.items():
        wall, used = time.perf_counter(), cpu()
        LocalPipelineExecutor(
            pipeline, tasks=tasks, workers=1, logging_dir=str(base / "logs" / name)
        ).run()
        said[name] = {
            "seconds": time.perf_counter() - wall,
            "cpu_seconds": cpu() - used,
            "blocks": blocks(base / "logs" / name / "stats.json"),
        }
    said["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(said))


def blocks(path: Path) -> list[dict[str, object]]:
    """Name, seconds and counters of each block of an executor."""
    found = []
    for block in json.loads(path.read_text()):
        stats = {
            k: v["total"] if isinstance(v, dict) else v
            for k, v in block["stats"].items()
            if k in {"total", "forwarded", "dropped", "documents", "tokens", "extracted", "timeout"}
        }
        took = block["time_stats"]  # a number, not an object, where nothing was timed
        seconds = took.get("total", 0) if isinstance(took, dict) else took
        found.append({"block": block["name"], "seconds": seconds, **stats})
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
