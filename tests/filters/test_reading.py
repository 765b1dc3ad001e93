"""What heads read: the kernel against its twin, and what thinning, folding and excerpts do."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gristmill.filters._reading import LEAST, read

# ruff: noqa: RUF001 - look-alike characters are what is tested
PIECES = st.sampled_from(
    [
        *"aZ9é\u00c9\u00d7\u00ff\u00b5\u00ad\u00a0 \n\t.-_“”…\u200b\u2028\u205e\u2060、中\u3000😀",
        "the ",
        "of ",
    ]
)
texts = st.one_of(st.lists(PIECES, max_size=120).map("".join), st.text(max_size=60))


def words(text, limit=6000):
    return read(pa.array([text], pa.large_string()), limit)[0].as_py().split()


@given(st.lists(texts, max_size=4), st.integers(LEAST, 80))
@example(["é" * 40, "a\n" * 30, "中" * 30], 10)
def test_read_is_its_twin(naive, given_texts, limit):
    found = read(pa.array(given_texts, pa.large_string()), limit)
    found.validate(full=True)
    twin = naive("naive_filters").read_words
    assert found.to_pylist() == [twin(text, limit) for text in given_texts]


def test_read_of_slices_and_nulls_is_that_of_their_values():
    column = pa.array(["skipped", None, "One", "two\n2"], pa.large_string())[1:]
    assert read(column, 6000).to_pylist() == ["", "one ", "two ¶ 0 "]


def test_read_again_changes_no_word_that_stands_once():
    text = "Curie’s  work (1898): two elements – polonium and radium."
    plain = " ".join(words(text))
    assert plain == "curie ’ s work ( 0000 ) : two elements – polonium and radium ."
    assert words(plain) == words(text)


@pytest.mark.parametrize(("times", "left"), [(1, 1), (2, 2), (3, 2), (4, 3), (100, 7)])
def test_read_writes_a_repeated_word_by_the_logarithm(times, left):
    assert words("energy " * times) == ["energy"] * left


def test_read_of_blank_lines_is_nothing():
    assert words(" \n\t\n ") == []
    assert words("\n\nOne\n") == ["\u00b6", "\u00b6", "one"]


def test_read_capitals_are_read_as_small_letters():
    assert words("THE CELL WALL, ÉCOLE") == words("the cell wall, école")


def test_read_of_a_long_text_is_its_beginning_and_middle():
    text = " ".join(f"w{'abcdefghij'[n // 1000]}{n:04}".translate(DIGITS) for n in range(9000))
    found = words(text, 600)
    every = text.split()
    at = [every.index(w) for w in found if w in every]
    assert at[0] == 0
    gap = max(range(1, len(at)), key=lambda k: at[k] - at[k - 1])
    assert gap == pytest.approx(2 * len(at) / 3, abs=2)
    assert at[gap] == pytest.approx(4500, abs=30)


DIGITS = str.maketrans("0123456789", "klmnopqrst")


def test_read_leaves_nothing_that_is_a_label_to_fasttext():
    assert words("__label__5 </s>") == ["_", "_", "label", "_", "0", "<", "/", "s", ">"]
