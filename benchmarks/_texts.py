"""Texts for benchmarks of filters, and the way they are timed."""

from __future__ import annotations

import io
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import zstandard

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("GRISTMILL_DATA", ROOT.parent / "shared" / "data"))


def texts() -> tuple[str, list[str]]:
    """Name of the set, and its texts: the labelled web pages, or sample_data repeated to 20 MB."""
    pages = DATA / "labels" / "web_pages.jsonl.zst"
    if pages.exists():
        return "labelled web pages", _read(pages)
    found = [t for p in sorted((ROOT / "sample_data").rglob("*.jsonl.zst")) for t in _read(p)]
    if not found:
        sys.exit("no texts: set GRISTMILL_DATA, or make sample_data (make demo)")
    return "sample_data, repeated", found * (1 + 20_000_000 // max(1, sum(map(len, found))))


def _read(path: Path) -> list[str]:
    found = []
    with path.open("rb") as file:
        stream = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        for line in io.TextIOWrapper(stream, "utf-8", errors="replace"):
            try:
                found.append(str(json.loads(line).get("text", "")))
            except (ValueError, AttributeError):
                continue  # planted damage
    return found


def best(run: Callable[[], object], times: int = 5) -> float:
    """Least CPU seconds of `times` runs, after one that compiles."""
    run()
    seconds = []
    for _ in range(times):
        start = time.process_time()
        run()
        seconds.append(time.process_time() - start)
    return min(seconds)
