"""The quality stage: scores, buckets and labels by cards; what a card or a model may not be."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.documents.errors import FormatError, UsageError
from gristmill.documents.fingerprint import measure_fingerprint, verdict_fingerprint
from gristmill.documents.stage import checked_measure, checked_verdict
from gristmill.filters import Quality
from gristmill.filters._cards import model_sha256
from gristmill.filters._reading import read
from gristmill.filters._scan import few_words
from gristmill.filters.fasttext import load
from gristmill.pipelines.registry import build

PIECES = st.sampled_from([*"a1é光ก'.,- \n\u0301\u200d", "word ", "-" * 99, "é" * 99, "3.5"])
WORDS = st.one_of(st.lists(PIECES, max_size=30).map("".join), st.text(max_size=40))
CUTS = [round(0.45 + 0.01 * k, 2) for k in range(19)]  # .45 to .63


def batch_of(*texts: str) -> pa.RecordBatch:
    return pa.record_batch({"text": pa.array(texts, pa.large_string())})


@pytest.fixture
def head(tmp_path, small_model):
    """Write a model and its card; returns the model's path. Other arguments change the card."""

    def write(name: str = "edu", model: dict | None = None, **card):
        path = tmp_path / f"{name}.bin"
        path.write_bytes(small_model(**(model or {})))
        full = {
            "format": 1,
            "labels": ["b", "a"],
            "expectation": {"a": 0, "b": 1},
            "cut_points": CUTS,
            "calibration": [[0.0, 0.1], [0.5, 0.3], [1.0, 0.9]],
            "model_sha256": model_sha256(path),
        } | card
        path.with_suffix(".json").write_text(json.dumps(full))
        return path

    return write


def test_quality_scores_are_those_of_the_card(head) -> None:
    path = head()
    texts = ("", "river", "river river river", "nothing known here")
    stage = Quality(models=(path,), min_bucket=12, min_known=0, min_words=0)
    scores = checked_measure(stage, batch_of(*texts)).scores
    chance = load(path).probabilities(pa.array(texts))[:, 1].astype(np.float64)
    assert scores["edu_score"].tolist() == chance.astype(np.float32).tolist()
    wanted = [sum(p >= cut for cut in CUTS) for p in chance]
    assert scores["edu_bucket"].tolist() == scores["bucket"].tolist() == wanted
    assert set(wanted) - {0, 19}
    expected = np.interp(chance, [0, 0.5, 1], [0.1, 0.3, 0.9])
    assert scores["edu_probability"] == pytest.approx(expected, abs=1e-6)
    codes = checked_verdict(stage, scores, len(texts))
    assert codes.tolist() == [int(b < 12) for b in wanted]
    assert {str(v.dtype) for v in scores.values()} == {"float32", "int8"}


def test_quality_bucket_is_the_best_of_all_heads(head) -> None:
    rows = -np.arange(18).reshape(-1, 3) / 10
    models = (head("edu"), head("know", model={"rows": rows}))
    scores = checked_measure(
        Quality(models=models, min_words=0), batch_of("", "river", "x y")
    ).scores
    assert (scores["edu_bucket"] != scores["know_bucket"]).any()
    best = np.maximum(scores["edu_bucket"], scores["know_bucket"])
    assert scores["bucket"].tolist() == best.tolist()


def test_quality_head_of_kinds_names_the_likeliest(head) -> None:
    kinds = {"expectation": None, "cut_points": None, "calibration": None}
    stage = Quality(
        models=(head("format", **kinds), head()),
        drop_labels=("format: b",),
        min_known=0,
        min_words=0,
    )
    assert stage.load() == ("format: 2 kinds", "edu: 2 degrees")
    scores = checked_measure(stage, batch_of("", "river")).scores
    assert scores["format"].tolist() == [b"b", b"b"]
    assert (scores["format_probability"] > 0.5).all()
    assert checked_verdict(stage, scores, 2).tolist() == [2, 2]
    empty = checked_measure(stage, batch_of()).scores
    assert empty["format"].dtype == scores["format"].dtype


def test_quality_only_kinds_give_no_bucket(head) -> None:
    path = head("format", expectation=None)
    with pytest.raises(UsageError, match="no head gives a bucket: format"):
        Quality(models=(path,), min_bucket=1).load()
    with pytest.raises(UsageError, match=r"no 'format: c'; did you mean 'format: [ab]'"):
        Quality(models=(path,), drop_labels=("format: c",)).load()


def test_quality_text_of_another_language_is_not_judged_and_kept(head) -> None:
    chinese = "光合作用是植物利用光能的过程。其中水和二氧化碳变成糖。\n" * 20
    russian = "Фотосинтез это процесс, при котором зелёные растения преобразуют свет. " * 9
    english = (Path(__file__).parents[2] / "docs" / "heads.md").read_text("utf-8")
    stage = Quality(heads=("edu", "know", "format"), min_bucket=1)
    batch = batch_of(chinese, russian, english, "", " \n\t ")
    scores = checked_measure(stage, batch).scores
    for name in ("bucket", "edu_bucket", "know_bucket", "edu_probability", "format_probability"):
        assert (scores[name] == -1).tolist() == [True, True, False, True, True]
    assert (scores["format"] == b"unknown").tolist() == [True, True, False, True, True]
    assert scores["bucket"][2] > 0
    assert checked_verdict(stage, scores, 5).tolist() == [0] * 5
    stricter = Quality(heads=("edu", "know", "format"), min_bucket=1, unjudged="drop")
    codes = checked_verdict(stricter, scores, 5)
    assert [stricter.reasons[c] for c in codes] == [*["unjudged"] * 2, "keep", *["unjudged"] * 2]
    everything = Quality(heads=("edu", "know", "format"), min_known=0, min_words=0)
    assert (checked_measure(everything, batch).scores["bucket"] >= 0).all()


def test_quality_text_of_a_few_words_is_not_judged_and_kept(head) -> None:
    lesson = "Plants make sugar from light, water and air; the cell's wall is one of sugar. " * 2
    cut = " ".join(lesson.split()[:29])
    texts = ("World War II history", "History of the company", cut, cut + "." * 5000, lesson)
    stage = Quality(heads=("edu", "know", "format"), models=(head("mine"),), min_bucket=1)
    scores = checked_measure(stage, batch_of(*texts)).scores
    for name in ("bucket", "edu_bucket", "know_bucket", "know_probability", "mine_bucket"):
        assert (scores[name] == -1).tolist() == [True] * 4 + [False]
    assert (scores["format"] == b"unknown").tolist() == [True] * 4 + [False]
    assert checked_verdict(stage, scores, 5)[:4].tolist() == [0] * 4
    every = Quality(heads=("edu", "know", "format"), models=(head("mine"),), min_words=0)
    assert measure_fingerprint(every) != measure_fingerprint(stage)
    judged = checked_measure(every, batch_of(*texts)).scores
    assert judged["know_bucket"][1] == 19  # what its four words would make of it
    for name in ("edu_score", "know_score", "mine_score"):
        assert judged[name].tolist() == scores[name].tolist()


@given(st.lists(WORDS, max_size=4), st.integers(0, 9))
def test_few_words_are_counted_as_the_rules_count_them(naive, given_texts, least) -> None:
    twin = naive("naive_filters")
    counts = [sum(map(twin.is_word, twin.tokens(t.encode()))) for t in given_texts]
    for column in (pa.array(given_texts, pa.large_string()), pa.array(given_texts, pa.string())):
        assert few_words(column, least).tolist() == [n < least for n in counts]


def test_few_words_of_slices_nulls_chunks_and_words_behind_many_signs() -> None:
    texts = ["skipped", None, "one two", "-" * 999 + "one two three", "é" * 999 + " 光合"]
    column = pa.chunked_array([pa.array(texts), pa.array(["a b c"])])[1:]
    assert few_words(column, 3).tolist() == [True, True, False, False, False]
    assert few_words(column[:0], 3).tolist() == []


def test_quality_heads_that_read_otherwise_are_asked_side_by_side(head) -> None:
    whole, some = head("whole"), head("some", reads=30)
    texts = ["River RIVER river. " * 5, "nothing", ""]
    scores = checked_measure(Quality(models=(whole, some)), batch_of(*texts)).scores
    column = pa.array(texts, pa.large_string())
    for name, path, asked in (("whole", whole, column), ("some", some, read(column, 30))):
        chance = load(path).probabilities(asked)[:, 1]
        assert scores[f"{name}_score"].tolist() == chance.tolist()
    assert scores["whole_score"][0] != scores["some_score"][0]


def test_quality_text_in_capitals_is_the_same_to_shipped_heads() -> None:
    text = "Plants make sugar from light, water and air. We call it photosynthesis. " * 9
    scores = checked_measure(Quality(heads=("edu", "know")), batch_of(text, text.upper())).scores
    for name in ("edu_score", "know_score"):
        assert scores[name][0] == scores[name][1]


def test_quality_of_shipped_heads_empty_and_100_mb_documents() -> None:
    page = "The cell wall is a layer outside of the membrane. It gives the cell its shape.\n"
    page += " ".join(f"Plants and fungi have one of sugar number {n}." for n in range(30))
    texts = ["", " ", "\n" * 50, page, page * 80_000, page + " " * 100_000_000]
    stage = Quality(heads=("edu", "know", "format"))
    scores = checked_measure(stage, batch_of(*texts)).scores
    assert scores["bucket"][:3].tolist() == [-1, -1, -1]
    assert scores["format"][:3].tolist() == [b"unknown"] * 3
    assert len(texts[4]) > 100_000_000
    # Once and 80,000 times, and with blanks behind.
    assert scores["edu_score"][4] == pytest.approx(scores["edu_score"][3], abs=0.2)
    assert scores["edu_score"][5] == scores["edu_score"][3]


def test_quality_one_head_may_judge_where_another_does_not(head) -> None:
    """`small_model` knows every pair of words, the shipped head no Chinese."""
    stage = Quality(heads=("edu",), models=(head("mine"),), min_words=14)
    scores = checked_measure(stage, batch_of("光合作用是植物 利用光能的过程")).scores
    assert scores["edu_bucket"].tolist() == [-1]
    assert scores["mine_bucket"].tolist() == scores["bucket"].tolist() != [-1]


@pytest.mark.parametrize(
    ("degrees", "kinds", "says"),
    [
        (
            ("one",),
            ("one_score",),
            "head 'one_score' has a score 'one_score', and so has head 'one",
        ),
        (("edu",), ("edu_bucket",), "'edu_bucket', and so has head 'edu'; give the head's files"),
        ((), ("bucket",), "head 'bucket' has a score 'bucket', and so has the best bucket"),
    ],
)
def test_quality_heads_whose_scores_have_one_name_refused(head, degrees, kinds, says) -> None:
    models = [head(n) for n in degrees] + [head(n, expectation=None) for n in kinds]
    for order in (models, models[::-1]):
        with pytest.raises(UsageError, match=says if order == models else "and so has"):
            Quality(models=tuple(order)).load()


def test_quality_score_on_a_cut_point_is_above_it(head) -> None:
    from gristmill.filters._cards import read_card

    card = read_card(head(), ("a", "b"))
    assert card.bucket(np.array([0.4499, 0.45, 0.46, 0.63, 9.0])).tolist() == [0, 1, 2, 19, 19]
    assert card.calibrated(np.array([-1.0, 0.25, 2.0])) == pytest.approx([0.1, 0.2, 0.9])
    assert card.score(np.array([[0.25, 0.75]], np.float32)).tolist() == [0.75]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"labels": ["a", "c"]}, r"labels \[a, c\] \(2\) are not those of edu.bin: \[a, b\] \(2\)"),
        ({"labels": None}, "labels None are not those"),
        ({"model_sha256": "00"}, "made for a model of sha256 00, and edu.bin has"),
        ({"reads": 2}, "reads: expected 0 or bytes of a text from 3, found 2"),
        ({"reads": True}, "reads: expected 0 or bytes"),
        ({"reads": "all"}, "reads: expected 0 or bytes"),
        ({"expectation": {"a": 1}}, "expectation: expected a number for each"),
        ({"expectation": {"a": 1, "b": "x"}}, "expectation: expected numbers"),
        ({"cut_points": CUTS[:-1]}, "cut_points: expected 19 increasing"),
        ({"cut_points": CUTS[::-1]}, "cut_points: expected 19 increasing"),
        ({"cut_points": [*CUTS[:-1], float("nan")]}, "cut_points: expected numbers from -1e"),
        ({"expectation": {"a": -1e308, "b": 1e308}}, "expectation: expected numbers from -1e"),
        ({"expectation": {"a": [1], "b": [2]}}, "expectation: expected one number for each"),
        ({"expectation": {"a": [1], "b": [2, 3]}}, "expectation: expected numbers"),
        ({"calibration": [[0, 0.1]]}, "calibration: expected two or more"),
        ({"calibration": [[0, 0.1], [0, 0.2]]}, "calibration: expected two or more"),
        ({"calibration": [[0, 0.1], [1, 1.2]]}, "calibration: expected two or more"),
        ({"calibration": [0, 1]}, "calibration: expected two or more"),
    ],
)
def test_card_that_does_not_fit_named(head, change, says) -> None:
    stage = Quality(models=(head(**change),))
    with pytest.raises(UsageError, match=says):
        stage.load()


def test_card_of_another_format_or_missing_named(head) -> None:
    path = head(format=2)
    with pytest.raises(FormatError, match="card format 2; this version reads 1"):
        Quality(models=(path,)).load()
    path.with_suffix(".json").write_text("[]")
    with pytest.raises(UsageError, match="expected an object"):
        Quality(models=(path,)).load()
    path.with_suffix(".json").write_text("[" * 100_000)
    with pytest.raises(UsageError, match="not a card"):
        Quality(models=(path,)).load()
    path.with_suffix(".json").unlink()
    with pytest.raises(UsageError, match="needs a card beside it"):
        Quality(models=(path,)).load()


def test_card_labels_of_kinds_are_short_ascii(head) -> None:
    path = head("format", expectation=None)
    with pytest.raises(UsageError, match="labels"):
        from gristmill.filters._cards import read_card

        read_card(path, ("a", "naïf"))


def test_quality_wrong_fields_named(head, tmp_path) -> None:
    path = head()
    with pytest.raises(UsageError, match="no head named"):
        Quality()
    with pytest.raises(UsageError, match="no head 'edv' ships"):
        Quality(heads=("edv",))
    with pytest.raises(UsageError, match="unjudged: found 'cut', expected keep or drop"):
        Quality(models=(path,), unjudged="cut")
    with pytest.raises(UsageError, match="min_known: found 2"):
        Quality(models=(path,), min_known=2)
    with pytest.raises(UsageError, match="min_words: found -1"):
        Quality(models=(path,), min_words=-1)
    with pytest.raises(UsageError, match="unjudged: no head gives a bucket"):
        Quality(models=(head("kinds", expectation=None),), unjudged="drop").load()
    with pytest.raises(UsageError, match="min_bucket: found 20, expected 0 to 19"):
        Quality(models=(path,), min_bucket=20)
    with pytest.raises(UsageError, match="a head is called by its file, 'My Head'"):
        Quality(models=(head("My Head"),))
    (tmp_path / "twice").mkdir()
    (tmp_path / "twice" / "edu.ftz").write_bytes(path.read_bytes())
    with pytest.raises(UsageError, match="a name of its own"):
        Quality(models=(path, tmp_path / "twice" / "edu.ftz"))
    with pytest.raises(UsageError, match=r"expected model.onnx and tokenizer.json"):
        folder = tmp_path / "folder"
        folder.mkdir()
        with pytest.raises(UsageError, match=r"folder.json: No such file .*needs a card beside it"):
            Quality(models=(folder,)).load()
        (tmp_path / "folder.json").write_text('{"labels": ["a"]}')
        Quality(models=(folder,)).load()


def test_quality_of_a_damaged_model_names_file_and_byte(head) -> None:
    path = head()
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(UsageError, match=r"edu.bin: truncated: the output matrix takes 24 bytes"):
        Quality(models=(path,)).load()


def test_quality_fingerprints_follow_model_and_card(head, tmp_path) -> None:
    path = head()
    before = Quality(models=(path,))
    moved = build(Quality, {"models": ["edu.bin"]}, "recipe", path.parent)
    assert measure_fingerprint(moved) == measure_fingerprint(before)
    stricter = Quality(models=(path,), min_bucket=9)
    assert measure_fingerprint(stricter) == measure_fingerprint(before)
    assert verdict_fingerprint(stricter) != verdict_fingerprint(before)
    was = measure_fingerprint(before)
    head(cut_points=[c + 0.001 for c in CUTS])
    assert measure_fingerprint(Quality(models=(path,))) != was
    assert Quality(models=(path,)).load() == ("edu: 2 degrees",)
