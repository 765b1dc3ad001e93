"""Filters: MB/s of each stage on one core, what each drops, and agreement with datatrove.

    python benchmarks/filters.py              speed, on GRISTMILL_DATA or on sample_data
    python benchmarks/filters.py agreement    the same texts through datatrove 0.10.1's filters

The second needs `datatrove==0.10.1`, `spacy` and `regex` beside gristmill (spaCy's blank English
tokeniser: nothing is downloaded). MB are 10^6 bytes of UTF-8; times are CPU time, the best of five.
"""

from __future__ import annotations

import io
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import zstandard

from gristmill.documents.edits import apply_edits
from gristmill.filters import (
    C4,
    STAGES,
    FineWebQuality,
    GopherQuality,
    GopherRepetition,
    Language,
)

ROOT = Path(__file__).resolve().parent.parent
TOGETHER = (GopherQuality(), GopherRepetition(), C4(), FineWebQuality())


def real_texts(root: Path) -> Iterator[str]:
    """Texts of the labelled web pages."""
    with (root / "labels" / "web_pages.jsonl.zst").open("rb") as file:
        stream = zstandard.ZstdDecompressor().stream_reader(file)
        for line in io.TextIOWrapper(stream, "utf-8"):
            yield json.loads(line)["text"]


def sample_texts(root: Path) -> Iterator[str]:
    """Texts of every JSONL under sample_data."""
    for path in sorted(root.rglob("*.jsonl.zst")):
        with path.open("rb") as file:
            stream = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
            for line in io.TextIOWrapper(stream, "utf-8", errors="replace"):
                try:
                    yield str(json.loads(line).get("text", ""))
                except (ValueError, AttributeError):
                    continue  # planted damage


def texts() -> tuple[str, list[str]]:
    """Name of the set, and its texts."""
    root = Path(os.environ.get("GRISTMILL_DATA", ROOT.parent / "shared" / "data"))
    if (root / "labels" / "web_pages.jsonl.zst").exists():
        return "labelled web pages", list(real_texts(root))
    found = list(sample_texts(ROOT / "sample_data"))
    if not found:
        sys.exit("no texts: set GRISTMILL_DATA, or make sample_data (make demo)")
    found *= 1 + 20_000_000 // max(1, sum(map(len, found)))  # long enough to be timed
    return "sample_data, repeated", found


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


def speed() -> None:
    name, values = texts()
    batch = batch_of(values)
    mb = sum(len(v.encode()) for v in values) / 1e6
    print(f"{name}: {len(values):,} texts, {mb:.1f} MB")
    print(f"{'stage':<20} {'MB/s':>8} {'dropped':>8}")
    total = 0.0
    for stage in (*TOGETHER, Language(keep=("eng_Latn",))):
        seconds = best(lambda stage=stage: stage.verdict(stage.measure(batch).scores))
        codes = stage.verdict(stage.measure(batch).scores)
        print(f"{stage.name:<20} {mb / seconds:8.1f} {np.count_nonzero(codes) / len(codes):8.1%}")
        total += seconds if stage in TOGETHER else 0
    print(f"{'the first four':<20} {mb / total:8.1f}")
    edits = C4().measure(batch).edits
    seconds = best(lambda: apply_edits(batch.column("text"), edits), 1)
    print(f"C4 makes {len(edits.rows):,} edits; making them: {mb / seconds:.1f} MB/s")


def agreement(every: int = 2) -> None:
    try:
        from datatrove.data import Document
        from datatrove.pipeline import filters as theirs
    except ImportError as error:
        sys.exit(f"agreement needs datatrove==0.10.1, spacy and regex in this environment: {error}")
    values = texts()[1][::every]
    batch = batch_of(values)
    pairs = {
        "gopher_quality": (theirs.GopherQualityFilter(), QUALITY, AS_THEIRS),
        "gopher_repetition": (theirs.GopherRepetitionFilter(), REPETITION, {}),
        "c4": (theirs.C4QualityFilter(filter_no_terminal_punct=False), C4_NAMES, {}),
        "fineweb_quality": (theirs.FineWebQualityFilter(), FINEWEB, {}),
    }
    for name, (filter_, names, fields) in pairs.items():
        stage = STAGES[name](**fields)
        codes = stage.verdict(stage.measure(batch).scores)
        ours = np.array(stage.reasons)[codes]
        found = [filter_.filter(Document(text=v, id=str(i))) for i, v in enumerate(values)]
        other = np.array(["keep" if f is True else names.get(f[1], f[1]) for f in found])
        report(name, ours, other)


def report(name: str, ours: np.ndarray, other: np.ndarray) -> None:
    """Jaccard of the dropped sets: in all, and by the first rule that a text breaks."""
    print(f"\n{name}: {len(ours)} texts{'ours':>20} {'theirs':>7} {'both':>6} {'Jaccard':>8}")
    rules = sorted((set(ours) | set(other)) - {"keep"})
    for rule in ["dropped", *rules]:
        a = ours != "keep" if rule == "dropped" else ours == rule
        b = other != "keep" if rule == "dropped" else other == rule
        both, either = int((a & b).sum()), int((a | b).sum())
        print(
            f"  {rule:<30} {a.sum():6} {b.sum():7} {both:6} {both / either if either else 1:8.2f}"
        )


AS_THEIRS = {"stop_languages": ("eng",), "count_marks": True}
QUALITY = {
    "gopher_short_doc": "few_words",
    "gopher_long_doc": "many_words",
    "gopher_below_avg_threshold": "short_words",
    "gopher_above_avg_threshold": "long_words",
    "gopher_too_many_hashes": "hashes",
    "gopher_too_many_ellipsis": "ellipses",
    "gopher_too_many_bullets": "bullet_lines",
    "gopher_too_many_end_ellipsis": "ellipsis_lines",
    "gopher_below_alpha_threshold": "few_alphabetic_words",
    "gopher_enough_stop_words": "few_stop_words",
}
REPETITION = {
    "dup_para_frac": "duplicate_paragraphs",
    "dup_para_char_frac": "duplicate_paragraph_chars",
    "dup_line_frac": "duplicate_lines",
    "dup_line_char_frac": "duplicate_line_chars",
    **{f"duplicated_{n}_n_grams": f"duplicate_{n}_grams" for n in range(5, 11)},
}
C4_NAMES = {"too_few_sentences": "few_sentences"}
FINEWEB = {
    "line_punct_ratio": "few_terminal_lines",
    "short_line_ratio": "short_lines",
    "char_dup_ratio": "duplicate_chars",
    "list_ratio": "line_breaks",
}

if __name__ == "__main__":
    agreement() if sys.argv[1:] == ["agreement"] else speed()
