"""What the text of a page looks like, and pages made to break it."""

from __future__ import annotations

import time

import pytest

from gristmill.pipelines.convert.page import read_page

FILL = "<p>Enough words, in a sentence or two, to be a page. It is the main part, and it stays.</p>"


def text(source, *, markdown=True):
    """The text of a page after its filling paragraph."""
    whole = read_page(f"<body><main>{FILL}{source}</main></body>", markdown=markdown).text
    return whole.split("it stays.", 1)[1].strip("\n")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<h2>A <b>b</b>\n c</h2><p>d</p>", "## A b c\n\nd"),
        ("<h2></h2><p>d</p>", "d"),
        ("<ul><li>a<ul><li>b</ul><li>c</ul>", "- a\n  - b\n- c"),
        ("<ol><li>a<li><p>b</p></ol>end", "1. a\n2. b\n\nend"),
        ("<ul><li></li><li>a</ul>", "- a"),
        ("a<br>b<div>c</div>d", "a\nb\nc\nd"),
        ("<p>a &lt;b&gt; &amp;amp; &quot;&nbsp;c</p>", 'a <b> &amp; " c'),
        ("10<sup>6</sup> m<sup>-2</sup>, H<sub>2</sub>O", "10^6 m^-2, H2O"),
        ("see<sup><a href=#1>[1]</a></sup>", "see[1]"),
        ("Use <code>f(x)</code>, <code>a`b</code>.", "Use `f(x)`, a`b."),
    ],
)
def test_text_of_blocks_and_lines(source, expected):
    assert text(source) == expected


def test_text_of_data_tables_is_rows_of_cells():
    table = (
        "<table><caption>Cap</caption><thead><tr><th>a|b<th>c</thead>"
        "<tr><td>1<td><p>2</p><p>3</p><tr><td>4<td></table>after"
    )
    assert text(table).split("\n") == [
        "Cap", "", "| a\\|b | c |", "| --- | --- |", "| 1 | 2 3 |", "| 4 |  |", "", "after",
    ]  # fmt: skip
    assert text("<table><tr><td>1<td>2<tr><td>3<td>4</table>") == "| 1 | 2 |\n| 3 | 4 |"


def test_text_of_layout_tables_is_their_content():
    long = "A cell that holds a paragraph of a page, as pages made long ago had it, is not data."
    assert text(f"<table><tr><td><h2>a</h2>{long}<td>b</table>").split("\n") == [
        "## a", "", long, "b",
    ]  # fmt: skip
    assert text("<table><tr><td>one<td>row</table>") == "one row"


def test_text_of_code_keeps_lines_and_indentation():
    code = "def f(x):\n\n    if x &lt; 1:\n\treturn  x"
    block = "```python\ndef f(x):\n\n    if x < 1:\n\treturn  x\n```"
    assert text(f'<pre><code class="hljs language-python">{code}\n\n</code></pre>') == block
    assert text(f'<div class="highlight-source-python"><pre>{code}</pre></div>') == block
    spans = "<span class=k>def</span> f(x):<br><div>    pass</div>"
    assert text(f"<pre class=code>{spans}</pre>end") == "```\ndef f(x):\n    pass\n```\n\nend"
    assert text(f"<pre>{code}</pre>", markdown=False) == "def f(x):\n\n    if x < 1:\n\treturn  x"


def test_text_of_a_page_that_is_one_pre_has_no_fence():
    page = read_page("<body><pre>A letter,\n\n  indented. With lines.\n</pre></body>")
    assert page.text.strip("\n") == "A letter,\n\n  indented. With lines."


def test_text_leaves_out_the_numbers_beside_code():
    lines = "<td class=gutter><pre>1\n2\n</pre><td><pre class=code>a = 1\nb = 2\n</pre>"
    assert text(f"<table><tr>{lines}</table>") == "```\na = 1\nb = 2\n```"


@pytest.mark.parametrize(
    "source",
    [
        "<div class='a' " * 50_000,
        "<ul><li>" * 20_000 + "end",
        "<table><tr><td>" * 3_000 + "end",
        "<a>" * 20_000 + "x" + "</b>" * 20_000,
        "<pre class=lang->" * 5_000 + "end",
        "<!--" * 50_000,
        "<div class=gutter>" * 5_000 + "1 " * 20_000 + "end",
        "<p class='" + "nav-" * 200_000 + "'>end",
        "<meta name=date content=" * 100_000,
        "</p>" * 100_000 + "end",
        "&" * 200_000,
        "<svg><title>" * 20_000,
    ],
)
def test_text_of_hostile_markup_takes_linear_time(source):
    begun = time.process_time()
    read_page(f"<body>{FILL}{source}")
    assert time.process_time() - begun < 20  # a hang, not a verdict
