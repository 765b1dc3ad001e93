"""The arrays of a page against the tree that lexbor built: two independent readings."""

from __future__ import annotations

from html import unescape

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from resiliparse.parse.html import HTMLTree

from gristmill.pipelines.convert.choose import _kernels as choose
from gristmill.pipelines.convert.page import main_text, read_nodes
from gristmill.pipelines.convert.render import _kernels as render
from gristmill.pipelines.convert.tree import _kernels as tree
from gristmill.pipelines.convert.tree import vocabulary as words
from gristmill.pipelines.convert.weed import _kernels as weed

PIECES = st.sampled_from([
    "<div>", "</div>", "<p class='nav menu'>", "</p>", "<a href='x>y'>", "</a>", "<b>", "</b>",
    "<ul><li>", "</ul>", "<table><tr><td>", "</table>", "<pre>\n", "</pre>", "<br>",
    "<img alt='<p>'>",
    "<script>if (a<b) '</p>'</script>", "<!-- a > b -->", "<!--->", "<style>p>a{}</style>",
    "&lt;p&gt;",
    "&amp;", "&nbsp;", "word", "two words. ", "\n\t", "é漢", "<x-y>", "</x-y>", "<textarea><p>",
    "</textarea>", "<select><option>o", "</select>", "<svg><title>t</title><path/></svg>", "<h1>",
    "</h1>", "<iframe><p></iframe>", "<math><mi>x</mi></math>", "<noscript>n</noscript>",
])  # fmt: skip
SOURCES = st.lists(PIECES, max_size=40).map("".join)


def shown(source, nodes, i):
    """A text as lexbor has it: entities are written in all but raw elements."""
    text = source[nodes.start[i] : nodes.end[i]].decode()
    above = nodes.parent[i]
    return text if above >= 0 and words.RAW[nodes.tag[above]] else unescape(text)


def walk(node):
    """(name, or None for text; text; parent's place; one past the subtree), in document order."""
    rows = []

    def visit(node, parent):
        at = len(rows)
        name = node.tag if node.type == 1 else None
        rows.append([name, node.text if name is None else "", parent, 0])
        child = node.first_child
        while child is not None:
            if child.type == 1 or child.type == 3:  # noqa: PLR1714 - its types have no hash
                visit(child, at)
            child = child.next
        rows[at][3] = len(rows)

    visit(node, -1)
    return rows


@given(SOURCES)
def test_scan_reads_the_tree_that_lexbor_built(source):
    parsed = HTMLTree.parse(f"<body>{source}")
    nodes = read_nodes(parsed)
    expected = walk(parsed.body)
    # An empty text is written back as nothing, and two texts that meet as one.
    expected_names = [row[0] for row in expected]
    if len(expected) == len(nodes.tag):
        assert nodes.parent.tolist() == [row[2] for row in expected]
        assert nodes.last.tolist() == [row[3] for row in expected]
    names = [name for name in expected_names if name is not None]
    assert [words.TAG.get(name, 0) for name in names] == nodes.tag[nodes.tag != 1].tolist()
    source = nodes.buf.tobytes()
    texts = "".join(shown(source, nodes, i) for i in np.flatnonzero(nodes.tag == 1))
    assert texts == "".join(row[1] for row in expected)


@given(st.binary(max_size=300) | st.lists(PIECES, max_size=20).map(lambda p: "".join(p).encode()))
def test_scan_of_any_bytes_gives_a_tree(source):
    buf = np.frombuffer(source, np.uint8)
    tag, parent, last, start, end, _ = tree.scan(
        buf, words.TAG_KEYS, words.TAG_VALUES, words.HINT_KEYS, words.HINT_VALUES,
        words.VOID, words.RAW, np.int32(1),
    )  # fmt: skip
    at = np.arange(len(tag))
    assert (parent < at).all()
    assert ((last > at) & (last <= len(tag))).all()
    assert ((start < end) & (end <= len(source))).all()
    inside = parent >= 0
    assert (last[inside] <= last[parent[inside]]).all()


@given(SOURCES)
def test_measure_counts_what_shows(source):
    nodes = read_nodes(HTMLTree.parse(f"<body>{source}"))
    chars, _ = tree.measure(nodes.buf, nodes.tag, nodes.parent, nodes.start, nodes.end, words.NEVER)
    raw = nodes.buf.tobytes()
    own = np.zeros(len(nodes.tag), np.int64)
    for i in np.flatnonzero(nodes.tag == 1):
        above, hidden = nodes.parent[i], False
        while above >= 0:
            button = nodes.tag[above] == words.TAG["button"] and nodes.parent[above] >= 0
            spared = button and nodes.tag[nodes.parent[above]] == words.TAG["h1"]
            hidden = hidden or (words.NEVER[nodes.tag[above]] and not spared)
            above = nodes.parent[above]
        if not hidden:
            own[i] = sum(
                c > " " and c != "\xa0"
                for c in unescape(raw[nodes.start[i] : nodes.end[i]].decode())
            )
    total = [own[i : nodes.last[i]].sum() for i in range(len(own))]
    assert chars.tolist() == total


@given(SOURCES, st.booleans(), st.booleans())
def test_main_text_accounts_for_every_character(source, product, markdown):
    """What is kept and what is cut are all that shows; and the same again gives the same."""
    nodes = read_nodes(HTMLTree.parse(f"<body>{source}"))
    text, cut = main_text(nodes, product=product, markdown=markdown)
    assert (text, cut) == main_text(nodes, product=product, markdown=markdown)
    chars, _ = tree.measure(nodes.buf, nodes.tag, nodes.parent, nodes.start, nodes.end, words.NEVER)
    kept = int(chars[0]) - sum(cut.values())
    assert kept >= 0
    assert bool(text.strip()) == (kept > 0)
    if not markdown:
        assert sum(c > " " for c in text) == kept


@pytest.mark.parametrize("module", [tree, choose, weed, render])
def test_kernels_number_tags_as_the_vocabulary_does(module):
    checked = 0
    for name in words.TAG:
        value = getattr(module, name.upper(), None)
        if isinstance(value, int):
            assert value == words.TAG[name], name
            checked += 1
    assert checked > 5
    assert module.TEXT == words.TEXT


def test_kernels_know_reasons_and_hints_as_the_vocabulary_does():
    names = {
        "navigation": choose.NAVIGATION, "footer": choose.FOOT, "header": choose.TOP,
        "sidebar": choose.SIDE, "promotion": choose.PROMOTION, "related": choose.RELATED,
        "hidden": choose.HIDDEN, "form": choose.FORMS, "cookies": choose.COOKIES,
        "links": weed.LINKS, "outside": choose.OUTSIDE, "labels": weed.LABELS,
        "caption": weed.CAPTIONS, "repeated": weed.REPEATED,
    }  # fmt: skip
    for name, code in names.items():
        assert words.REASONS[code - 1] == name
    for mine, theirs in (
        (choose.CONTENT, words.CONTENT), (choose.MAIN_HINT, words.MAIN),
        (choose.GUTTER, words.GUTTER), (choose.TAB, words.TAB), (choose.PRESS, words.BUTTON),
        (choose.CAROUSEL, words.CAROUSEL), (render.CODE_HINT, words.CODE),
        (choose.BODY_HINT, words.BODY), (tree.BODY_HINT, words.BODY), (tree.HEAD_HINT, words.HEAD),
        (tree.TAIL_HINT, words.TAIL), (tree.NEGATES, words.NEGATES),
        (weed.CAPTION_HINT, words.CAPTION),
        (choose.KINDS, sum(
            1 << words.REASONS.index(n) for n in ("footer", "sidebar", "comments", "reviews")
        )),
    ):  # fmt: skip
        assert mine == theirs


def hint(name):
    nodes = read_nodes(HTMLTree.parse(f'<body><div class="{name}">x</div>'))
    return int(nodes.hints[1])


def test_words_are_found_whole_and_split_at_capitals():
    cart = hint("addtocart")
    assert cart
    assert hint("ADDTOCART") == cart
    share = hint("share")
    assert share
    assert hint("postShare") & share
    assert hint("post-share_box") & share
    assert not hint("shareholder") & share
    assert not hint("download") & hint("ad")


def test_words_of_a_name_that_speaks_of_others_do_not_count():
    share = hint("share")
    for name in ("has-share", "no-share", "withShare", "card--share", "elementor-share"):
        assert not hint(name) & share, name
    assert hint("no-share share") & share
    assert hint("share--large") & share


def test_words_of_one_name_together_say_that_it_is_the_main_text():
    for name in ("entry-content", "postBody", "article__text", "storybody"):
        assert hint(name) & words.BODY, name
    for name in ("entry content", "content-entry", "content"):
        assert not hint(name) & words.BODY, name
    nodes = read_nodes(HTMLTree.parse('<body><div itemprop="articleBody">x</div>'))
    assert nodes.hints[1] & words.BODY
