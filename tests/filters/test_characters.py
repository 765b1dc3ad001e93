"""The table of characters, the stop lists, and that word rules spare scripts without spaces."""

from __future__ import annotations

import gzip
import json
import unicodedata

import numpy as np
import pyarrow as pa
import pytest

from gristmill.filters import STAGES, GopherQuality, GopherRepetition, _characters
from gristmill.filters.gopher_quality import stop_lists


@pytest.mark.skipif(
    unicodedata.unidata_version != "14.0.0", reason="the table is of Unicode 14.0 (Python 3.11)"
)
def test_characters_file_equals_unicode_database() -> None:
    wanted = np.zeros(0x110000, np.uint8)
    for first, last, kind in _characters.ranges():
        wanted[first : last + 1] = kind
    assert np.array_equal(wanted, _characters.table())


def test_characters_ascii_classes_are_pythons() -> None:
    names = [_characters.NAMES[kind] for kind in _characters.table()[:128]]
    for code, name in enumerate(names):
        char = chr(code)
        assert (name == "latin") == char.isalpha()
        assert (name == "number") == char.isdigit()
        assert (name == "space") == char.isspace()


def test_stop_lists_fit_the_kernel() -> None:
    lists = stop_lists()
    assert len(lists) <= 64  # bits
    assert lists["eng"] == ("the", "be", "to", "of", "and", "that", "have", "with")
    for language, words in lists.items():
        assert len(set(words)) >= 5, language
        assert all(len(word.encode()) <= 8 for word in words), language


def test_stages_found_by_their_names() -> None:
    for name, stage in STAGES.items():
        assert stage.name == name
        assert stage.reasons[0] == "keep"
        assert len(set(stage.reasons)) == len(stage.reasons)


def dropped(stage, texts: list[str]) -> float:
    batch = pa.record_batch({"text": pa.array(texts, pa.large_string())})
    return float((stage.verdict(stage.measure(batch).scores) > 0).mean())


def test_word_rules_spare_chinese_articles(real_data) -> None:
    with gzip.open(real_data / "f-multilingual-zhwiki" / "zhwiki.jsonl.gz", "rt") as file:
        texts = [text for text in (json.loads(line)["text"] for line in file) if len(text) > 300]
    assert dropped(GopherQuality(), texts) < 0.05
    assert dropped(GopherRepetition(), texts) < 0.15


def test_stop_rule_spares_declarations_in_listed_languages(real_data) -> None:
    """The rule asks for two words of one list: it must not drop a language that has a list."""
    listed = set(stop_lists())
    with gzip.open(real_data / "f-multilingual-udhr" / "udhr.jsonl.gz", "rt") as file:
        rows = [row for row in map(json.loads, file) if row["lang"] in listed]
    assert len(rows) > 30
    stage = GopherQuality()
    batch = pa.record_batch({"text": pa.array([r["text"] for r in rows], pa.large_string())})
    codes = stage.verdict(stage.measure(batch).scores)
    bad = [
        r["lang"] for r, c in zip(rows, codes, strict=True) if stage.reasons[c] == "few_stop_words"
    ]
    assert bad == []
