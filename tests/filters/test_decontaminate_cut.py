"""Items cut out of texts: every occurrence, until nothing is found."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.documents.edits import apply_edits
from gristmill.documents.stage import checked_measure, checked_verdict
from gristmill.filters import Decontaminate


def batch_of(texts) -> pa.RecordBatch:
    return pa.record_batch({"text": pa.array(texts, pa.large_string())})


def test_passage_is_cut_and_the_rest_stays(sentence, write):
    one, two = sentence(1, 12), sentence(2, 12)
    stage = Decontaminate(files=write([one, two]), policy="cut")
    batch = batch_of([f"é {one} 字 {two}. end", "nothing", f"{one}"])
    measured = checked_measure(stage, batch)
    left = apply_edits(batch.column("text"), measured.edits).to_pylist()
    assert left == ["é  字 . end", "nothing", ""]
    assert checked_verdict(stage, measured.scores, 3).tolist() == [0, 0, 0]
    assert checked_measure(stage, batch.slice(1, 0)).edits is not None


@pytest.mark.parametrize("size", [9, 13, 40])
@pytest.mark.parametrize("between", [0, 1, 30, 200])
def test_every_occurrence_is_cut_and_what_is_between_stays(cut, sentence, write, size, between):
    item, other = sentence(1, size), sentence(2, size)
    stage = Decontaminate(files=write([item, other]), policy="cut")
    gaps = [sentence(10 + k, between) for k in range(4)]
    text = (
        f"Prologue. {item} {gaps[0]} {item.upper()}; {gaps[1]} {other} {gaps[2]} {item} Epilogue."
    )
    (left,) = cut(stage, [text])
    assert left.startswith("Prologue. ")
    assert left.endswith(" Epilogue.")
    assert " ".join(left.split()).replace(" ;", "") == " ".join(
        ["Prologue.", *filter(None, gaps[:3]), "Epilogue."]
    )


def test_many_changed_copies_are_cut_and_what_is_between_stays(cut, sentence, write):
    """One of them goes at a pass: after 16 passes the whole text went."""
    item = sentence(1, 18).split()
    copies = [" ".join([*item[:8], f"other{n}", *item[9:]]) for n in range(40)]
    prose = [sentence(10 + n, 30) for n in range(41)]
    text = prose[0] + "".join(f" {c}. {p}" for c, p in zip(copies, prose[1:], strict=True))
    stage = Decontaminate(files=write([" ".join(item)]), policy="cut", near="any")
    (left,) = cut(stage, [text])
    assert all(p in left for p in prose)
    assert "other" not in left


def test_items_in_items_are_cut_to_the_end(cut, sentence, write, monkeypatch):
    item = sentence(1, 10)
    head, tail = item[:20], item[20:]
    nested = item
    for _ in range(5):
        nested = f"{head}{nested} {tail}"
    stage = Decontaminate(files=write([item]), policy="cut")
    left = cut(stage, [f"Before {nested} after", "clean", ""])
    assert [t.split() for t in left] == [["Before", "after"], ["clean"], []]
    for _ in range(40):
        nested = f"{head}{nested} {tail}"
    assert [t.split() for t in cut(stage, [f"Before {nested} after"])] == [["Before", "after"]]
    monkeypatch.setattr("gristmill.filters.decontaminate.REREAD", 0)
    assert cut(stage, [f"Before {nested} after"]) == [""]  # `PASSES` are not enough


def test_numbered_copies_are_cut_and_what_is_between_stays(cut, write):
    question, choices = "Who paints the barn here", ["red paint", "no one", "a fox", "Anna"]
    stage = Decontaminate(files=write([{"question": question, "choices": choices}]), policy="cut")
    lines = [f"{label}) {choice}\n" for label, choice in zip("ABCD", choices, strict=True)]
    ways = [lines, lines[::-1], lines[1:] + lines[:1]]
    text = "Prologue.\n" + "".join(f"{question}?\n{''.join(way)}Prose {way}.\n" for way in ways)
    (left,) = cut(stage, [text])
    assert question not in left
    assert left.startswith("Prologue.\n")
    assert all(f"Prose {way}." in left for way in ways)


@pytest.mark.parametrize("size", [9, 13])
def test_half_a_million_copies_are_all_cut(cut, sentence, write, size):
    """A pass that cut one copy, or looked at all others for each, would not end."""
    item = sentence(1, size)
    stage = Decontaminate(files=write([item]), policy="cut")
    (left,) = cut(stage, [f"{item}. " * 500_000])
    assert not left.strip(" .")


@given(
    st.lists(st.lists(st.sampled_from("abcdefg"), min_size=4, max_size=14), min_size=1, max_size=4),
    st.lists(st.sampled_from("abcdefgxyz"), max_size=200),
)
@settings(max_examples=150)
def test_nothing_is_left_of_any_items_in_any_text(cut, tmp_path_factory, items, text):
    path = tmp_path_factory.mktemp("cut") / "items.jsonl"
    path.write_text("".join(json.dumps({"question": " ".join(i)}) + "\n" for i in items))
    options = {"ngram": 2, "min_words": 4, "full_to": 6, "long_from": 20, "share": 0.4}
    cut(Decontaminate(files=path, policy="cut", **options), [" ".join(text), "x"])
