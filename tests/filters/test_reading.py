"""What heads read: the kernel against its twin, and what thinning, folding and excerpts do."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gristmill.filters._reading import FRONT, LEAST, LEAST_WORDS, MOST_TIMES, WINDOW, read

# ruff: noqa: RUF001 - look-alike characters are what is tested
PIECES = st.sampled_from(
    [
        *"aZ9é\u00c9\u00d7\u00ff\u00b5\u00ad\u00a0 \n\t.-_“”…\u200b\u2028\u205e\u2060、中\u3000😀",
        *("Zymurgies", "z2ZYMURGY3é", "abcdefgh", "@", "[", "`", "{", "/", ":", "\x1f", "\x7f"),
        "the ",
        "of ",
        " " * 9,
        "\n\n\n",
        "a b 1 d e f g h ",
        "a b 2 d e f g h ",
    ]
)
texts = st.one_of(st.lists(PIECES, max_size=120).map("".join), st.text(max_size=60))


DIGITS = str.maketrans("0123456789", "klmnopqrst")
# Before what is tested, so that it is not in a short text, nor marked as the first of a text.
LONG = " ".join(f"filler{n}" for n in range(LEAST_WORDS)).translate(DIGITS)


def plain(text, limit=6000):
    return read(pa.array([text], pa.large_string()), limit)[0].as_py().split()


def words(text, limit=6000):
    """What is read of a text behind others."""
    found = plain(f"{LONG} {text}", limit)
    return found[found.index(LONG.split()[-1]) + 1 :]


@given(st.lists(texts, max_size=4), st.integers(LEAST, 200))
@example(["é" * 40, "a\n" * 30, "中" * 30], 10)
def test_read_is_its_twin(naive, given_texts, limit):
    found = read(pa.array(given_texts, pa.large_string()), limit)
    found.validate(full=True)
    twin = naive("naive_filters").read_words
    assert found.to_pylist() == [twin(text, limit) for text in given_texts]


def test_read_of_slices_and_nulls_is_that_of_their_values():
    column = pa.array(["skipped", None, "One", "two\n2"], pa.large_string())[1:]
    once = ["", "@one one ", "@two @0 two ¶ 0 "]
    assert read(column, 6000).to_pylist() == [text * MOST_TIMES for text in once]


def test_read_again_changes_no_word_that_stands_once():
    text = "Curie’s  work (1898): two elements – polonium and radium."
    found = " ".join(words(text))
    assert found == "curie ’ s work ( 0000 ) : two elements – polonium and radium ."
    assert words(found) == words(text)


@pytest.mark.parametrize(
    ("times", "left"), [(1, 1), (2, 2), (3, 2), (4, 3), (31, 5), (100, 6), (500, 6)]
)
def test_read_writes_a_repeated_word_by_the_logarithm(times, left):
    assert words("energy " * times) == ["energy"] * left


def test_read_of_blank_lines_is_nothing():
    assert plain(" \n\t\n ") == []
    assert words("\n\n \n\nOne\n") == ["\u00b6", "\u00b6", "one"]


def test_read_capitals_are_read_as_small_letters():
    assert words("THE CELL WALL, ÉCOLE") == words("the cell wall, école")


def test_read_of_a_long_text_is_its_beginning_and_middle():
    text = " ".join(f"w{'abcdefghij'[n // 1000]}{n:04}".translate(DIGITS) for n in range(9000))
    found = plain(text, 1500)
    every = text.split()
    at = [every.index(w) for w in found if w in every]
    assert at[0] == 0
    gap = max(range(1, len(at)), key=lambda k: at[k] - at[k - 1])
    assert gap == pytest.approx(2 * len(at) / 3, abs=2)
    assert at[gap] == pytest.approx(4500, abs=80)


@pytest.mark.parametrize("blank", [" ", "\n", "\t\n", "\u00a0 ", "\u3000"])
def test_read_blanks_hide_nothing_behind_them(blank):
    before, behind = LONG, LONG.replace("filler", "behind")
    found = plain(before + blank * 20_000 + behind + blank * 20_000)
    assert [w for w in found if w != "\u00b6" and w[0] != "@"] == [
        *before.split(),
        *behind.split(),
    ]


@pytest.mark.parametrize("text", [LONG, LONG.replace(" ", " = x + 0;\n\t")], ids=["prose", "code"])
def test_read_of_a_text_repeated_is_little_more_than_of_it_once(text):
    once = plain(text)
    for times in (3, 50):
        more = plain("\n".join([text] * times), 100_000)
        assert len(once) < len(more) <= len(once) + WINDOW + 1
        assert set(more) - set(once) <= {"\u00b6"}


def test_read_numbers_that_differ_are_no_repetition():
    rows = "\n".join(
        f"{LONG.split()[n % 9]} {n} was {n * 7} of {n * 3} in {n * 5}" for n in range(60)
    )
    assert words(rows).count("was") == 6  # 1, 2, 4, ... 32


def test_read_of_a_short_text_comes_again_until_it_is_none():
    once = "Glucose is a sugar that plants make of carbon dioxide and water in light."
    found = plain(once)
    assert len(found) == LEAST_WORDS
    assert found[29:] == found[:-29]
    assert len(plain("Buy now")) == 4 * MOST_TIMES
    assert len(plain(f"@{LONG}")) > LEAST_WORDS


def test_read_marks_the_first_words():
    found = plain(f"The Krebs cycle, 1937\n{LONG}")
    assert found[:4] == ["@the", "@krebs", "@cycle", "@0000"]
    marked = [w for w in found if w[0] == "@"]
    assert found[len(marked) : len(marked) + 6] == ["the", "krebs", "cycle", ",", "0000", "\u00b6"]
    assert sum(len(w) for w in marked) <= FRONT


def test_read_leaves_nothing_that_is_a_label_to_fasttext():
    assert words("__label__5 </s>") == ["_", "_", "label", "_", "0", "<", "/", "s", ">"]
