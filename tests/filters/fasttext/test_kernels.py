"""Kernels against their plain-Python twins, on arbitrary bytes and models made up for it."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gristmill.filters.fasttext import _kernels, _kernels_linear, parse
from gristmill.filters.fasttext.collapse import Answer, Linear, Scheme, _tree
from gristmill.filters.fasttext.model import Bank

SPACES = [bytes([b]) for b in b" \n\r\t\v\f\0"]
WORDS = [
    b"a", b"bc", b"seven77", b"eight888", b"nine99999", b"sixteen_letters_", b"seventeen_letters",
    b"seventeen-letters", b"caf\xc3\xa9", "你好".encode(), b"\xff\xfe", b"\x80", b"<x>", b"</s>",
    b"</s", b"__label__", b"__label__a", b"__label__b", b"_label_", b"#c", b"x" * 40,
]  # fmt: skip
texts = st.lists(st.one_of(st.sampled_from(WORDS + SPACES * 3), st.binary(max_size=6))).map(
    b"".join
)


@st.composite
def models(draw) -> list[Linear]:
    """One to three models of one scheme, with small whole numbers as their rows."""
    ngrams, bucket = draw(st.integers(1, 3)), draw(st.sampled_from([1, 7, 64, 200]))
    minn, maxn = draw(st.sampled_from([(0, 0), (1, 1), (2, 3), (3, 6), (4, 2)]))
    if ngrams == 1 and maxn == 0:
        bucket = 0
    pruned = draw(st.booleans())
    out = []
    for _ in range(draw(st.integers(1, 3))):
        words = tuple(draw(st.lists(st.sampled_from(WORDS[:15]), unique=True)))
        labels = draw(st.sampled_from([(b"__label__a",), (b"__label__a", b"__label__b")]))
        kept = None
        if pruned:
            every = st.integers(0, max(0, bucket - 1))
            kept = np.array(sorted(draw(st.sets(every))) if bucket else [], np.int64)
        rows = len(words) + (bucket if kept is None else len(kept))
        width = draw(st.integers(0, 6))
        seed = draw(st.integers(0, 1000))
        values = np.random.default_rng(seed).integers(-100, 100, (rows, width)).astype(np.float64)
        scheme = Scheme(ngrams, bucket, minn, maxn, frozenset())
        names = tuple(str(n) for n in range(width + 1))
        out.append(Linear(Answer(names, parse.SOFTMAX), scheme, words, labels, kept, values))
    return out


def rows_of(model: Linear) -> dict[tuple[str, object], list[float]]:
    buckets = range(model.scheme.bucket) if model.buckets is None else model.buckets.tolist()
    names = [("word", w) for w in model.words] + [("bucket", b) for b in buckets]
    return dict(zip(names, model.values.tolist(), strict=True))


@given(models(), st.lists(st.one_of(st.none(), texts), max_size=4), st.integers(0, 1))
def test_sums_any_bytes_equal_twin(naive, models, values, skip) -> None:
    """Several models in one table, sliced columns, nulls, empty batches: the exact sums of each."""
    twin = naive("naive_fasttext")
    column = pa.array(values, pa.large_binary())[skip:]
    bank = Bank(models)
    (table,) = bank._tables
    found = np.zeros((len(column), table.table.shape[1]), np.int64)
    view = _view(column)
    _kernels.sums(*view, table.words, table.scheme, table.buckets, table.table, found)
    for place in table.places:
        model = models[place.model]
        known = {("x", 0): [0.0] * model.values.shape[1]} | rows_of(model)
        kept = None if model.buckets is None else set(model.buckets.tolist())
        for row, value in enumerate(values[skip:]):
            want, count = twin.total(
                value or b"", model.words, model.label_entries, table.scheme, kept, known
            )
            got = found[row, place.column : place.column + model.values.shape[1]]
            assert [Fraction(int(x)) * Fraction(place.step) for x in got] == want
            assert found[row, place.count] == count
    for got, model in zip(bank.probabilities(column), models, strict=True):
        assert got.shape == (len(column), len(model.answer.labels))
        assert np.abs(got.sum(axis=1) - 1).max(initial=0) < 1e-6


def _view(column):
    from gristmill.documents.text import text_view

    return text_view(column)


def test_sums_long_text_equals_twin(naive) -> None:
    """More words than a stretch holds, and more rows than are held back."""
    twin = naive("naive_fasttext")
    draw = np.random.default_rng(3)
    words = (b"a", b"bc", b"eight888", b"seventeen_letters", b"</s>")
    values = draw.integers(-9, 9, (len(words) + 50, 2)).astype(np.float64)
    scheme = Scheme(3, 50, 2, 4, frozenset())
    model = Linear(
        Answer(("1", "2", "3"), parse.SOFTMAX), scheme, words, (b"__label__a",), None, values
    )
    text = b" ".join(bytes(draw.choice([*words[:4], b"new", b"__label__z"])) for _ in range(2000))
    bank = Bank([model])
    (table,) = bank._tables
    found = np.zeros((1, table.table.shape[1]), np.int64)
    column = pa.array([text], pa.large_binary())
    _kernels.sums(*_view(column), table.words, table.scheme, table.buckets, table.table, found)
    want, count = twin.total(text, words, (), scheme[:4], None, rows_of(model))
    assert [Fraction(int(x)) * Fraction(table.places[0].step) for x in found[0, :2]] == want
    assert found[0, 2] == count


@given(st.floats(-690, 690))
@example(0.0)
@example(-0.34657359027997264)
def test_exponential_any_number_within_one_unit_of_the_library(x) -> None:
    got, want = _kernels_linear.exponential(x), math.exp(x)
    assert abs(got - want) <= math.ulp(want)


@pytest.mark.parametrize(("x", "want"), [(-1e9, 0.0), (-701.0, 0.0), (800.0, math.inf)])
def test_exponential_of_extremes_stays_in_range(x, want) -> None:
    assert _kernels_linear.exponential(x) == want


finite = st.floats(-50, 50, width=32)


@given(st.lists(finite, min_size=1, max_size=6))
def test_softmax_and_sigmoids_equal_twins(naive, logits) -> None:
    twin = naive("naive_fasttext")
    values = np.array([logits], np.float64)
    out = np.empty((1, len(logits) + 1), np.float32)
    _kernels_linear.softmax(values, out)
    assert np.allclose(out[0], twin.softmax([0.0, *logits]), atol=1e-7)
    out = np.empty((1, len(logits)), np.float32)
    _kernels_linear.sigmoids(values, out)
    assert np.allclose(out[0], [twin.sigmoid_table(x) for x in logits], atol=1e-7)


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=9).map(lambda c: sorted(c, reverse=True)),
    st.integers(0, 100),
)
def test_tree_equals_twin(naive, counts, seed) -> None:
    paths = naive("naive_fasttext").huffman(counts)
    logits = np.random.default_rng(seed).normal(0, 2, (1, len(counts) - 1))
    out = np.empty((1, len(counts)), np.float32)
    _kernels_linear.tree(logits, *_tree(tuple(counts)), out)
    for label, path in enumerate(paths):
        want = 1.0
        for node, right in path:
            p = 1 / (1 + math.exp(-logits[0, node]))
            want *= p if right else 1 - p
        assert out[0, label] == pytest.approx(want, abs=1e-6)
    assert out.sum() == pytest.approx(1, abs=1e-5)


def test_collapse_means_and_fix_equal_numpy() -> None:
    draw = np.random.default_rng(0)
    rows, matrix = draw.normal(size=(9, 5)).astype(np.float32), draw.normal(size=(5, 3))
    out = np.empty((9, 3))
    _kernels_linear.collapse(rows, matrix, out)
    assert np.allclose(out, rows.astype(np.float64) @ matrix)
    table = np.zeros((12, 8), np.int32)
    _kernels_linear.fix(out, 2.0**20, 2, 4, table)
    assert (table[2:11, 4:7] == np.rint(out * 2**20)).all()
    assert np.count_nonzero(table[:2]) == np.count_nonzero(table[:, :4]) == 0
    sums = np.array([[6, -3, 3, 0], [5, 5, 0, 0]], np.int64)
    mean = np.empty((2, 2))
    _kernels_linear.means(sums, 0, 2, 0.5, mean)
    assert mean.tolist() == [[1.0, -0.5], [0.0, 0.0]]  # no feature: nothing


def test_entries_read_as_written() -> None:
    raw = b"".join(
        w + b"\0" + (7 - i).to_bytes(8, "little") + bytes([i % 2])
        for i, w in enumerate((b"ab", b"", b"c"))
    )
    data = np.frombuffer(b"xx" + raw, np.uint8)
    arrays = [np.zeros(3, np.int64) for _ in range(3)]
    kinds = np.zeros(3, np.uint8)
    assert _kernels.entries(data, 2, 3, *arrays, kinds) == len(data)
    assert [a.tolist() for a in arrays] == [[2, 14, 24], [2, 0, 1], [7, 6, 5]]
    assert kinds.tolist() == [0, 1, 0]
    assert _kernels.entries(data[:-1], 2, 3, *arrays, kinds) == -3


@given(st.lists(st.binary(max_size=40), max_size=6), st.integers(0, 2))
def test_words_equal_twin(texts, low):
    data = np.frombuffer(b"".join(texts), np.uint8)
    offsets = np.cumsum([0, *map(len, texts)])[low:]
    out = np.empty(max(0, len(offsets) - 1), np.int64)
    _kernels.words(data, offsets, out)
    parts = [re.split(rb"[ \n\r\t\v\f\0]+", text) for text in texts[low:]]
    assert out.tolist() == [sum(map(bool, part)) for part in parts]
