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
from gristmill.filters.templates import _kernels_lines as kernels_lines
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
        *(
            "中",
            "文字",
            "カナ",
            "ไทย",
            "ภาษา",
            "བོད་སྐད།",
            "မြန်မာ",
            "ខ្មែរ",
            "𠀀",
            "\u00a0",
            "\u2014",
            "\u3000",
            "\uff0c",
            "é",
        ),
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
    lines, marks = np.empty((room, 2), np.uint64), np.empty((room, 6), np.int32)
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
    plain = sorted({w.hash for text in texts for w in twin.scan(text, common())})
    usual = data.draw(st.lists(st.sampled_from(plain), unique=True) if plain else st.just([]))
    tables = [laid.table_of(np.array(values, np.uint64)) for values in (chosen, usual)]
    state = laid.cover(words, n, laid.Template(*tables))
    out, fills = laid.weigh(words, state)
    sizes = [getattr(kernels_laid, x) for x in ("GAP", "PROSE", "SENTENCE", "TOLD", "BRIDGE")]
    for row, text in enumerate(texts):
        told = twin.weigh(text, common(), n, set(chosen), set(usual), sizes)
        assert (*out[row].tolist(), int(fills[row])) == told


HOW = {"first": 1, "notice": 4, "often": 8, "before": 16, "after": 32}


@given(BATCHES, st.integers(0, 2), st.data())
def test_strip_arbitrary_bytes_equals_twin(twin, values, cut, data):
    column, texts = sliced(values, cut)
    gone, marked = [], []
    hows = st.sets(st.sampled_from([*HOW, "before", "after"]))
    for text in texts:
        own = sorted({twin.exact(line) for line in twin.lines_of(twin.scan(text, common()))})
        some = st.lists(st.sampled_from(own), unique=True) if own else st.just([])
        gone.append({line: data.draw(hows) for line in sorted(data.draw(some))})
        marked.append(sorted(data.draw(some))[:1])

    def flat(lists, dtype=np.uint64):
        return np.array([v for x in lists for v in x], dtype)

    def ends(lists):
        return np.cumsum([len(x) for x in lists]).astype(np.int64)

    how = flat([[sum(HOW[h] for h in hs) for hs in x.values()] for x in gone], np.uint8)
    pages = [{line: data.draw(st.integers(1, 9)) for line in x} for x in gone]
    seen = flat([x.values() for x in pages], np.uint32)
    (rows, starts, lengths, least), fills = laid.strip(
        laid.words_of(column), (flat(gone), how, seen, ends(gone)), (flat(marked), ends(marked))
    )
    names = ("HEADING", "PARAGRAPH", "BLOCK_LINES", "BLOCK_WORDS")
    sizes = [getattr(kernels_lines, name) for name in names]
    expected = []
    for row, text in enumerate(texts):
        cuts, told = twin.strip(text, common(), gone[row], pages[row], set(marked[row]), sizes)
        expected += [(row, *c) for c in cuts]
        assert tuple(fills[row].tolist()) == told
    found = [x.tolist() for x in (rows, starts, lengths, least)]
    assert list(zip(*found, strict=True)) == expected


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


PARTS = "http|https|://|www.|WWW.|A.Example|a.example|/|/|#|#!|b|B|?q=1|é"
ADDRESSES = st.lists(st.sampled_from(PARTS.split("|"))).map("".join)


@given(st.lists(st.one_of(st.none(), ADDRESSES), max_size=5), st.integers(0, 2))
def test_addresses_hash_equals_twin(twin, values, cut):
    view = text_view(pa.array(values, pa.large_string())[cut:])
    out = np.ones(view.rows, np.uint64)
    kernels.hash_addresses(view.data, view.offsets, out)
    assert out.tolist() == [twin.address((v or "").encode()) for v in values[cut:]]


def test_addresses_of_one_page_have_one_hash():
    same = ["http://a.example/b", "https://www.A.example/b/", "https://a.example/b#part"]
    others = ["https://a.example/B", "https://a.example/b?q=1", "https://a.example/b#!part"]
    view = text_view(pa.array([*same, *others], pa.large_string()))
    out = np.empty(view.rows, np.uint64)
    kernels.hash_addresses(view.data, view.offsets, out)
    assert len(set(out[:3].tolist())) == 1
    assert len(set(out[2:].tolist())) == 4
