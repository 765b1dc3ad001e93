"""The kernels of the template stage against their plain-Python twins."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gristmill.documents.text import text_view
from gristmill.filters.templates import _kernels as kernels
from gristmill.filters.templates import _kernels_laid as kernels_laid
from gristmill.filters.templates import _kernels_lines as kernels_lines
from gristmill.filters.templates import _kernels_marks as kernels_marks
from gristmill.filters.templates import _kernels_url as kernels_url
from gristmill.filters.templates import laid
from gristmill.filters.templates.words import common, ignored, notices

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
            "```sh\n",
            "```a``` ",
            "~~~\n",
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
        # Words are read eight bytes at a time, those of other scripts byte by byte.
        *("Zymurgys", "z2zymurgyZ", "zymurgiczymurgic", "zymurgyé", "@", "[", "`", "{", "/", ":"),
        *("C++ ", "C# ", "-"),
        *("````\n", "~~~~~\n", "~~~ b ~~~\n", "<pre>\n", "</pre>\n", "</PRE>x\n", "return "),
        *("from ", "import ", "$ ", "x;\n"),
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


@pytest.fixture(name="code", scope="session")
def code_fixture(naive):
    return naive("naive_code_lines")


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
    some = st.lists(st.sampled_from(plain), unique=True) if plain else st.just([])
    usual, heard = data.draw(some), data.draw(some)
    tables = [laid.table_of(np.array(values, np.uint64)) for values in (chosen, usual, heard)]
    state = laid.cover(words, n, laid.Template(*tables))
    out, fills = laid.weigh(words, state)
    names = ("GAP", "PROSE", "SENTENCE", "TOLD", "BRIDGE", "PLAIN", "VERSE")
    names += ("CARD", "LABEL", "VALUE")
    sizes = [getattr(kernels_laid, name) for name in names]
    for row, text in enumerate(texts):
        told = twin.weigh(text, common(), n, set(chosen), set(usual), set(heard), sizes)
        assert (*out[row].tolist(), int(fills[row])) == told


HOW = {"first": 1, "notice": 4, "often": 8, "before": 16, "after": 32, "nearly": 64}


@given(BATCHES, st.integers(0, 2), st.data())
def test_strip_arbitrary_bytes_equals_twin(twin, code, values, cut, data):
    column, texts = sliced(values, cut)
    gone, marked = [], []
    hows = st.sets(st.sampled_from([*HOW]), min_size=data.draw(st.integers(0, 4)))
    for text in texts:
        lines = twin.lines_of(twin.scan(text, common()))
        own = sorted({twin.exact(line, text) for line in lines})
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
        laid.lines_of(column), (flat(gone), how, seen, ends(gone)), (flat(marked), ends(marked))
    )
    names = (
        *("HEADING", "PARAGRAPH", "BLOCK_LINES", "BLOCK_WORDS", "LONGEST", "SCALE", "AGAIN"),
        *("HEAD", "FOOT", "ENDS", "FORM", "ITEMS", "PROGRAM"),
    )
    sizes = [getattr(kernels_lines, name) for name in names]
    expected = []
    for row, text in enumerate(texts):
        of = gone[row], pages[row], set(marked[row])
        cuts, told = twin.strip(text, common(), *of, sizes, code)
        expected += [(row, *c) for c in cuts]
        assert tuple(fills[row].tolist()) == told
    found = [x.tolist() for x in (rows, starts, lengths, least)]
    assert list(zip(*found, strict=True)) == expected


WRITTEN = st.one_of(
    st.text(st.sampled_from("abS(){}[];:=!+-_&`/*<> \t.,'\"1#|"), max_size=14),
    st.lists(
        st.sampled_from(
            [
                *("item(s)", "Cart(0)", "f(", "x", ")", "==", "=", "--", "-x", "->", "::", ":="),
                *("&&", "__", "<b>", "SELECT", "FROM", "*", "git", "innen)", "a,", "tm)", "X(c)"),
            ]
        ),
        max_size=6,
    ).map(" ".join),
    st.lists(
        st.sampled_from(
            [
                *("from", "import", "return", "as", "$", "git", "status", "cd", "..", "make", "p"),
                *("a_b", "a_", "ab.c", "a.b", "x=1", "$x", "./", "~", "//", "/", "'x'", '"', "\\"),
                *("using namespace", "make install", "install", "function", "", ".", "a(", "tag"),
            ]
        ),
        min_size=1,
        max_size=5,
    ).map(" ".join),
)


@given(WRITTEN)
def test_marks_of_any_line_equal_twin(code, line):
    lines = laid.lines_of(pa.array([line], pa.large_string()))
    bare = line.encode().strip(code.SPACE)
    reads = code.reads_as_code(bare)
    found = [(reads, not reads and code.opened(bare) is False)][: len(lines.marks)]
    bits = kernels_marks.READS, kernels_marks.OPENS
    assert [tuple(mark & bit != 0 for bit in bits) for mark in lines.marks] == found


@given(st.lists(st.one_of(WRITTEN, PIECES)).map("\n".join))
def test_code_of_any_text_equals_twin(code, text):
    found = laid.in_code(laid.lines_of(pa.array([text], pa.large_string())))
    raws = re.findall(rb"[^\n]*\n|[^\n]+$", text.encode())
    assert set(np.flatnonzero(found).tolist()) == code.code_lines(raws, set())


@pytest.mark.parametrize(
    "line",
    [
        *('if __name__ == "__main__":', 'with open("x.csv") as f:', "print(x)", "np.zeros((3, 4))"),
        *(
            "SELECT name, age",
            "FROM Customers",
            "WHERE city = 'Berlin'",
            "`make install`",
            "x += 1",
        ),
        *(
            "conda install -c conda-forge x",
            "ls -l /tmp",
            "grep --count a b",
            "a.b->c",
            "std::sort",
        ),
        *("// a remark", "<div>", "y := 3", "run()", "items.append(row, 3)", "x <- 5"),
        *("import numpy as np", "from os import path", "from .a import *", "import java.util.List"),
        *('import React from "react"', "return self.name", "return my_name", "$ ls", "cd ../a"),
        *("cd build/", "git status", "make install", "export PATH=/usr/bin", "cd $HOME/x b"),
        *("make CC=gcc", "curl https://a.example", "using namespace std", "docker ps"),
        *("export default x", "package main", "pip install x", "import (", "git cherry-pick x"),
    ],
)
def test_code_of_any_kind_reads_as_code(code, line):
    assert laid.lines_of(pa.array([line])).marks[0] & kernels_marks.READS
    assert code.reads_as_code(line.encode())


@pytest.mark.parametrize(
    "line",
    [
        *("Home > News > Sports", "Comment(s)", "Cart (0)", "Cart(0)", "Home :: News :: Contact"),
        *("Share on X (opens in a new window)", "Share on X(opens in a new window)", "== News =="),
        *("FROM OUR BLOG", "SELECT YOUR COUNTRY", "read more ->", "Teilnehmer(innen)", "______"),
        *("© 2020 - All rights reserved -", "Tel: +49 30 123 - Fax: 124", "Smith(2020, p. 4)"),
        *(
            "Previous || Next",
            "Terms & Conditions",
            "E-mail: a_b@c.example",
            "a -- b",
            "=====",
            "=)",
        ),
        *("return policy", "return to our-shop.example now", "from our blog", "make a booking"),
        *("public holidays 2024", "import duties", "import & export", "class schedule", "<- Back"),
        *("function rooms", "private dining", "package holidays / cruises", "using this site"),
        *("static caravans", "apt rentals", "cd reviews", "docker jobs", "git tutorials"),
        *(
            "$ 20 off",
            "curl your hair",
            "from $5 to $9",
            "from 9 a.m. to 5 p.m.",
            "make it as you like it",
        ),
    ],
)
def test_furniture_of_pages_reads_not_as_code(code, line):
    assert not laid.lines_of(pa.array([line])).marks[0] & kernels_marks.READS
    assert not code.reads_as_code(line.encode())


@pytest.mark.parametrize(
    ("text", "masked"),
    [("the people of the city zymurgy quokka", 2), ("the of city zymurgy quokka numbat", 0)],
)
def test_masks_rare_words_only_where_two_thirds_are_known(twin, text, masked):
    assert np.count_nonzero(laid.words_of(pa.array([text])).masks) == masked
    assert sum(word.masked for word in twin.scan(text.encode(), common())) == masked


def test_masks_numbers_names_and_rare_words_hide_what_fills_a_slot(twin):
    a, b = b"Plumbers in Dallas, call 555 now", b"Plumbers in New York City, call 7 now"
    skeletons = [twin.survey(t, common(), notices(), 4, 8)[0][0][1] for t in (a, b)]
    assert skeletons[0] == skeletons[1]


def test_masks_language_without_a_table_is_not_masked_away():
    view = text_view(pa.array(["kieli jota taulukko ei tunne pysyy kokonaan"], pa.large_string()))
    words, masks = np.empty(64, np.uint64), np.empty(64, np.uint8)
    count = kernels.scan(
        view.data,
        0,
        view.offsets[1],
        common(),
        words,
        masks,
        np.empty((64, 3), np.int64),
        np.empty(64, np.uint64),
    )
    assert count == 7
    assert not masks[:count].any()


PARTS = (
    "http|https|://|www.|WWW.|A.Example|a.example|/|/|#|#!|#/|/media/|:|b|B|?q=1|é|:80|:443|:8|?|&|&|="
    "|utm_a=1|UTM_|gclid=2|GCLID|gclid|;|;jsessionid=3|amp;|_gl=4"
)
ADDRESSES = st.lists(st.sampled_from(PARTS.split("|"))).map("".join)


@given(st.lists(st.one_of(st.none(), ADDRESSES), max_size=5), st.integers(0, 2))
@example(values=[":80;"], cut=0)
def test_addresses_hash_equals_twin(naive, twin, values, cut):
    view = text_view(pa.array(values, pa.large_string())[cut:])
    out = np.ones(view.rows, np.uint64)
    kernels_url.hash_addresses(view.data, view.offsets, ignored(), out)
    told = set(ignored().tolist())
    address = naive("naive_addresses").address
    assert out.tolist() == [address((v or "").encode(), told, twin) for v in values[cut:]]


def test_addresses_whose_fragment_is_a_route_leave_out_the_same():
    same = [
        "https://a.example/#/b",
        "http://www.a.example:80?utm_source=x#/b/",
        "a.example#/b?gclid=1",
    ]
    view = text_view(pa.array(same, pa.large_string()))
    out = np.empty(view.rows, np.uint64)
    kernels_url.hash_addresses(view.data, view.offsets, ignored(), out)
    assert len(set(out.tolist())) == 1


def test_addresses_of_one_page_have_one_hash():
    same = [
        "http://a.example/b", "https://www.A.example/b/", "https://a.example/b#part",
        "https://a.example/b#/", "https://a.example/b#!", "https://a.example/b#/media/File:X.jpg",
        "https://a.example:443/b", "https://a.example/b?", "https://a.example/b/?utm_source=x",
        "https://a.example/b?PHPSESSID=1&utm_id=2", "https://a.example/b;jsessionid=4F",
        "http://a.example/b/;JSESSIONID=1?_gl=x", "http://a.example/b;/?gclid=",
        "https://a.example/b?_gl=1&amp;utm_medium=x&amp;srsltid=y&fbclid=z",
    ]  # fmt: skip
    others = [
        "https://a.example/B", "https://a.example/b?q=1", "https://a.example/b#!part",
        "https://a.example/b;q=1", "https://a.example/b?q=1&q=1", "https://a.example/b?r=1",
        "https://a.example/b?q=1&r=2", "https://a.example/b?q=2&r=1", "https://a.example/b?q=1r=2",
        "https://a.example//b", "https://a.example/b/c", "https://a.example/b?amp=1",
        "https://a.example/b#/part", "https://a.example/b#/part/c", "https://a.example/b?q=1#/part",
        "https://a.example/b#/part?q=1", "https://a.example/b#!/part", "https://a.example/b#/media/x",
    ]  # fmt: skip
    view = text_view(pa.array([*same, *others], pa.large_string()))
    out = np.empty(view.rows, np.uint64)
    kernels_url.hash_addresses(view.data, view.offsets, ignored(), out)
    assert len(set(out[: len(same)].tolist())) == 1
    assert len(set(out[len(same) - 1 :].tolist())) == 1 + len(others)


@given(st.permutations(["a=1", "b=2", "a=3", "c", "utm_id=4"]), st.sampled_from(["&", "&amp;"]))
def test_addresses_order_of_parameters_does_not_count(order, between):
    urls = [f"https://a.example/?{between.join(order)}", "https://a.example/?a=1&a=3&b=2&c"]
    view = text_view(pa.array(urls, pa.large_string()))
    out = np.empty(2, np.uint64)
    kernels_url.hash_addresses(view.data, view.offsets, ignored(), out)
    assert out[0] == out[1]


@pytest.mark.parametrize(
    ("line", "fence"),
    [
        *(("```", True), ("```python", True), ("````", True), ("~~~", True), ("```so```", False)),
        *(("~~~ sh", True), ("~~~ News ~~~", False), ("``", False), ("~~ ~", False)),
    ],
)
def test_fences_open_with_a_name_and_have_no_sign_behind_it(line, fence):
    mark = laid.lines_of(pa.array([line])).marks[0]
    assert (mark & kernels_marks.FENCE != 0) == fence


FENCED = [
    ("````", "```sh", "a", "```", "b", "````"),  # the shorter one within closes nothing
    ("~~~", "a", "```", "b", "~~~~"),
    ("```", "a", "~~~", "```sh", "b", "```"),  # nor another sign, nor one with a name
    ("<pre>", "a", "```", "b", "</pre>"),
    ('<PRE class="x">', "a", "b</pre></div>"),
]


@pytest.mark.parametrize("lines", FENCED)
def test_fences_close_with_the_same_sign_and_as_many_of_it(lines):
    text = "\n".join(["before", *lines, "after"])
    found = laid.in_code(laid.lines_of(pa.array([text], pa.large_string())))
    assert found.tolist() == [False, *(True for _ in lines), False]


@pytest.mark.parametrize("text", ["A title\n~~~~~~~\nText", "~" * 9 + "\nText", "One\n~~~~\nText"])
def test_underlines_and_rules_open_no_fence(text):
    assert not laid.in_code(laid.lines_of(pa.array([text], pa.large_string()))).any()


def test_pre_that_is_not_closed_or_in_one_line_opens_none():
    for lines in (["<pre>", "a", "b"], ["<pre>x</pre>", "a", "b"], ["a", "</pre>", "b"]):
        found = laid.in_code(laid.lines_of(pa.array(["\n".join(lines)], pa.large_string())))
        assert found.tolist() == [line.startswith("<") for line in lines]


def test_menu_words_are_code_beside_code_alone():
    text = "return policy\n\nfrom our blog\nNews\nimport os\n\nimport sys\nx = f(1)\nreturn x\n\nb"
    found = laid.in_code(laid.lines_of(pa.array([text], pa.large_string())))
    assert np.flatnonzero(found).tolist() == [4, 6, 7, 8]
