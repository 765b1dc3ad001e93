"""Texts for benchmarks of filters, and the way they are timed."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import zstandard

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("GRISTMILL_DATA", ROOT.parent / "shared" / "data"))


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    """Rows of JSON lines in zstd or gzip; planted damage is passed over."""
    if not path.is_file():
        name = path.relative_to(DATA) if path.is_relative_to(DATA) else path
        sys.exit(f"no {name} here: set GRISTMILL_DATA to the folder of the real data")
    with path.open("rb") as file:
        if path.suffix == ".zst":
            stream = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        else:
            stream = gzip.GzipFile(fileobj=file)
        for line in io.TextIOWrapper(stream, "utf-8", errors="replace"):
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if isinstance(row, dict):
                yield row


def texts() -> tuple[str, list[str]]:
    """Name of the set, and its texts: the labelled web pages, or sample_data repeated to 20 MB."""
    pages = DATA / "labels" / "web_pages.jsonl.zst"
    if pages.exists():
        return "labelled web pages", [str(row["text"]) for row in rows_of(pages)]
    found = [
        str(row.get("text", "")).encode("utf-8", "replace").decode()  # a planted lone surrogate
        for path in sorted((ROOT / "sample_data").rglob("*.jsonl.zst"))
        for row in rows_of(path)
    ]
    if not found:
        sys.exit("no texts: set GRISTMILL_DATA, or make sample_data (make demo)")
    return "sample_data, repeated", found * (1 + 20_000_000 // max(1, sum(map(len, found))))


def batch_of(values: list[str]) -> pa.RecordBatch:
    """One batch with these texts."""
    return pa.record_batch({"text": pa.array(values, pa.large_string())})


def best(run: Callable[[], object], times: int = 5) -> float:
    """Least CPU seconds of `times` runs, after one that compiles."""
    run()
    seconds = []
    for _ in range(times):
        start = time.process_time()
        run()
        seconds.append(time.process_time() - start)
    return min(seconds)
