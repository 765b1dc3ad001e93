"""datatrove's side of `benchmarks/filters.py`; runs in the peer's own environment (`venv.py`).

    python datatrove_rules.py DOCUMENTS OUT rules|speed

DOCUMENTS: JSON lines with `text` and `language` (as datatrove names it). OUT gets one JSON object:

- `speed`: CPU seconds of each filter over all documents, and how many it keeps;
- `rules`: for each filter and reason the numbers of the documents that this rule alone drops. A
  filter stops at the first rule that fails; here each rule is asked by a filter of its own, made
  with all other thresholds off, so it is their code that judges. The line rules of C4 edit;
  FineWeb's rules see what C4's leave, as in the FineWeb recipe; `lines` is how many lines each
  document has left. What a filter raises an exception on is listed under `crash`.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from datatrove.data import Document
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
)
from datatrove.utils.text import split_into_parts

NO_QUALITY: dict[str, Any] = dict.fromkeys(
    (
        "min_doc_words",
        "max_doc_words",
        "min_avg_word_length",
        "max_avg_word_length",
        "max_symbol_word_ratio",
        "max_bullet_lines_ratio",
        "max_ellipsis_lines_ratio",
        "max_non_alpha_words_ratio",
        "min_stop_words",
    )
)
NO_REPETITION: dict[str, Any] = {
    **dict.fromkeys(("dup_line_frac", "dup_para_frac", "dup_line_char_frac", "dup_para_char_frac")),
    "top_n_grams": (),
    "dup_n_grams": (),
}
NO_C4: dict[str, Any] = {
    "filter_no_terminal_punct": False,
    "min_num_sentences": -1,
    "filter_lorem_ipsum": False,
    "filter_curly_bracket": False,
}
NO_FINEWEB: dict[str, Any] = {
    "line_punct_thr": 0,
    "short_line_thr": 9,
    "char_duplicates_ratio": 9,
    "new_line_ratio": 1e9,
}
QUALITY = (
    {"min_doc_words": 50},
    {"max_doc_words": 100_000},
    {"min_avg_word_length": 3},
    {"max_avg_word_length": 10},
    {"max_symbol_word_ratio": 0.1},
    {"max_bullet_lines_ratio": 0.9},
    {"max_ellipsis_lines_ratio": 0.3},
    {"max_non_alpha_words_ratio": 0.8},
    {"min_stop_words": 2},
)
REPETITION = (
    {"dup_para_frac": 0.3},
    {"dup_para_char_frac": 0.2},
    {"dup_line_frac": 0.3},
    {"dup_line_char_frac": 0.2},
    *({"top_n_grams": ((n, limit),)} for n, limit in ((2, 0.2), (3, 0.18), (4, 0.16))),
    *(
        {"dup_n_grams": ((n, limit),)}
        for n, limit in ((5, 0.15), (6, 0.14), (7, 0.13), (8, 0.12), (9, 0.11), (10, 0.10))
    ),
)
C4 = ({"filter_lorem_ipsum": True}, {"filter_curly_bracket": True}, {"min_num_sentences": 5})
FINEWEB = (
    {"line_punct_thr": 0.12},
    {"short_line_thr": 0.67},
    {"char_duplicates_ratio": 0.01},
    {"new_line_ratio": 0.3},
)
PLANS: dict[str, tuple[type, dict[str, Any], tuple[dict[str, Any], ...]]] = {
    "gopher_quality": (GopherQualityFilter, NO_QUALITY, QUALITY),
    "gopher_repetition": (GopherRepetitionFilter, NO_REPETITION, REPETITION),
    "c4": (C4QualityFilter, NO_C4, C4),
    "fineweb_quality": (FineWebQualityFilter, NO_FINEWEB, FINEWEB),
}
DEFAULTS: dict[str, dict[str, Any]] = {"c4": {"filter_no_terminal_punct": False}}


def documents(path: str) -> Iterator[tuple[str, str]]:
    """Text and language of each."""
    with Path(path).open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            yield row["text"], row["language"]


def judge(made: Any, text: str) -> str:
    """The reason of a filter, "" when it keeps."""
    try:
        said = made.filter(Document(text=text, id=""))
    except Exception:  # noqa: BLE001 - that is what is asked
        return "crash"
    return "" if said is True else said[1]


def rules(path: str) -> dict[str, Any]:
    """Documents that each rule drops when asked alone; a filter drops what any of them drops."""
    filters: dict[tuple[str, str], list[Any]] = {}
    dropped: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    lines = []
    for number, (text, language) in enumerate(documents(path)):
        edited = Document(text=text, id="")
        C4QualityFilter(**NO_C4, language=language).filter(edited)
        lines.append(sum(bool(line.strip()) for line in edited.text.split("\n")))
        for name, (kind, off, each) in PLANS.items():
            if (name, language) not in filters:
                filters[name, language] = [kind(**{**off, **on}, language=language) for on in each]
            seen = edited.text if name == "fineweb_quality" else text
            for reason in {judge(made, seen) for made in filters[name, language]} - {""}:
                dropped[name][reason].append(number)
    return {"dropped": dropped, "lines": lines}


def speed(path: str) -> dict[str, Any]:
    """CPU seconds of each filter with its defaults, and how many documents it keeps."""
    found = list(documents(path))
    said = {}
    for name, (kind, _, _) in PLANS.items():
        made = kind(**DEFAULTS.get(name, {}))
        judge(made, "Loads the tokeniser.")
        split_into_parts.cache_clear()
        start = time.process_time()
        kept = sum(not judge(made, text) for text, _ in found)
        said[name] = {"seconds": time.process_time() - start, "kept": kept}
    return said


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    source, out, what = sys.argv[1:]
    Path(out).write_text(json.dumps((rules if what == "rules" else speed)(source)))
