"""The kernels of the template stage against their plain-Python twins."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.documents.text import text_view
from gristmill.filters.templates import _kernels as kernels
from gristmill.filters.templates import _kernels_laid as kernels_laid
from gristmill.filters.templates import laid
from gristmill.filters.templates.words import common, notices

PIECES = st.sampled_from(
    [
        *("The", "the", "of", "and", "Dallas", "zymurgy", "cookies", "10", "a1", "É", "Ελ", "Дом"),
        *(
            " ",
            " ",
            " ",
            "\n",
            "\n",
            "\n\n",
            ". ",
            "? ",
            "\t",
            "# ",
            "| ",
            "```\n",
            "* ",
            "    ",
            "\n==\n",
        ),
        *("中", "文字", "カナ", "ไทย", "𠀀", "\u00a0", "\u2014", "\u3000", "\uff0c", "é"),
    ]
)
TEXTS = st.one_of(
    st.binary(max_size=60),
    st.lists(PIECES, max_size=80).map(lambda parts: "".join(parts).encode()),
    st.lists(st.sampled_from([b"\xe4", b"\xe2\x80", b"\xc2", b"\xf0\xa0", b"a", b" ", b"\n"])).map(
        b"".join
    ),
)
BATCHES = st.lists(st.one_of(st.none(), TEXTS), max_size=5)


@pytest.fixture(name="twin", scope="session")
def twin_fixture(naive):
    return naive("naive_templates")


def sliced(values, cut):
    column = pa.array(values, pa.large_binary())
    return column[cut:], [value or b"" for value in values[cut:]]


@given(BATCHES, st.integers(0, 2), st.sampled_from([2, 4]), st.sampled_from([3, 24]))
def test_survey_arbitrary_bytes_equals_twin(twin, values, cut, n, k):
    column, texts = sliced(values, cut)
    seen = text_view(column)
    room = sum(t.count(b"\n") + 1 for t in texts)
    anchors, pages = np.ones((len(texts), k), np.uint64), np.ones((len(texts), 2), np.int32)
    lines, marks = np.empty((room, 2), np.uint64), np.empty((room, 4), np.int32)
    whole = np.empty(len(texts), np.uint64)
    number = kernels.survey(
        seen.data, seen.offsets, common(), notices(), n, anchors, pages, lines, marks, whole
    )
    expected = [twin.survey(text, common(), notices(), n, k) for text in texts]
    assert [(marks[i, 0], *lines[i].tolist(), *marks[i, 1:].tolist()) for i in range(number)] == [
        (row, *line) for row, (lines_, *_) in enumerate(expected) for line in lines_
    ]
    for row, (_, least, text, words) in enumerate(expected):
        assert anchors[row].tolist() == least + [0] * (k - len(least))
        assert pages[row].tolist() == [words, len(least)]
        assert whole[row] == text


@given(BATCHES, st.integers(0, 2), st.integers(2, 5))
def test_grams_arbitrary_bytes_equals_twin(twin, values, cut, n):
    column, texts = sliced(values, cut)
    found = [g.tolist() for g in laid.grams(laid.words_of(column), n)]
    assert found == [twin.grams(text, common(), n) for text in texts]


@given(BATCHES, st.integers(0, 2), st.integers(2, 4), st.data())
def test_weigh_arbitrary_bytes_equals_twin(twin, values, cut, n, data):
    column, texts = sliced(values, cut)
    every = sorted({g for text in texts for g in twin.grams(text, common(), n)})
    chosen = data.draw(st.lists(st.sampled_from(every), unique=True) if every else st.just([]))
    words = laid.words_of(column)
    state = laid.cover(words, n, laid.table_of(np.array(chosen, np.uint64)))
    out, fills = laid.weigh(words, state)
    for row, text in enumerate(texts):
        told = twin.weigh(text, common(), n, set(chosen), kernels_laid.GAP, kernels_laid.PROSE)
        assert (*out[row].tolist(), int(fills[row])) == told


@given(BATCHES, st.integers(0, 2), st.data())
def test_strip_arbitrary_bytes_equals_twin(twin, values, cut, data):
    column, texts = sliced(values, cut)
    gone, marked = [], []
    for text in texts:
        own = sorted({twin.exact(line) for line in twin.lines_of(twin.scan(text, common()))})
        some = st.lists(st.sampled_from(own), unique=True) if own else st.just([])
        gone.append(sorted(data.draw(some)))
        marked.append(sorted(data.draw(some))[:1])

    def flat(lists):
        ends = np.cumsum([len(x) for x in lists]).astype(np.int64)
        return np.array([v for x in lists for v in x], np.uint64), ends

    (rows, starts, lengths), fills = laid.strip(laid.words_of(column), flat(gone), flat(marked))
    expected = []
    for row, text in enumerate(texts):
        cuts, told = twin.strip(
            text,
            common(),
            set(gone[row]),
            set(marked[row]),
            kernels_laid.HEADING,
            kernels_laid.PARAGRAPH,
        )
        expected += [(row, *c) for c in cuts]
        assert tuple(fills[row].tolist()) == told
    assert list(zip(rows.tolist(), starts.tolist(), lengths.tolist(), strict=True)) == expected


def test_masks_numbers_names_and_rare_words_hide_what_fills_a_slot(twin):
    a, b = b"Plumbers in Dallas, call 555 now", b"Plumbers in New York City, call 7 now"
    skeletons = [twin.survey(t, common(), notices(), 4, 8)[0][0][1] for t in (a, b)]
    assert skeletons[0] == skeletons[1]


def test_masks_language_without_a_table_is_not_masked_away():
    view = text_view(pa.array(["kieli jota taulukko ei tunne pysyy kokonaan"], pa.large_string()))
    words, masks = np.empty(64, np.uint64), np.empty(64, np.uint8)
    count = kernels.scan(
        view.data, 0, view.offsets[1], common(), words, masks, np.empty((64, 3), np.int64)
    )
    assert count == 7
    assert not masks[:count].any()
