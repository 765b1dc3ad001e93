"""The report: one page that stands alone, with the ledger's numbers and nothing unescaped."""

from __future__ import annotations

import copy
import re
from html.parser import HTMLParser

import pytest

from gristmill.ledger.writer import connect, write_ledger
from gristmill.pipelines.charts import funnel, share, short, table
from gristmill.pipelines.report import render

VOID = {"meta", "rect"}


class Page(HTMLParser):
    """Collects texts and tags, and checks that tags close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID or tag == "rect":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        if data.strip() and self.open and self.open[-1] != "style":
            self.texts.append(data.strip())


def read(page: str) -> Page:
    parsed = Page()
    parsed.feed(page)
    parsed.close()
    return parsed


@pytest.fixture(scope="module")
def page(small_run):
    return (small_run / "report.html").read_text(encoding="utf-8")


def test_report_is_well_formed(page):
    parsed = read(page)
    assert parsed.open == [], parsed.open


def test_report_needs_nothing_else(page):
    parsed = read(page)
    tags = {t for t, _ in parsed.tags}
    assert not tags & {"script", "link", "img", "iframe", "object"}
    assert not any({"src", "href", "onload"} & attrs.keys() for _, attrs in parsed.tags)
    assert "@import" not in page
    assert "url(" not in page
    assert "prefers-color-scheme: dark" in page


def test_report_shows_the_funnel_of_the_ledger(page, small_run):
    con = connect(small_run / "ledger.duckdb", read_only=True)
    rows = con.execute("SELECT stage, documents, bytes, tokens FROM funnel").fetchall()
    con.close()
    texts = read(page).texts
    for row in rows:
        at = [i for i, t in enumerate(texts) if t == row[0]]
        assert any(f"{row[1]:,}" in texts[i : i + 4] for i in at), row
        assert all(f"{n:,}" in texts for n in row[1:])
    assert "Every account balances, to the last byte and token." in texts


def test_report_has_all_sections(page):
    headings = re.findall(r"<h2>(.*?)</h2>", page)
    assert headings == [
        "The funnel",
        "What went, and why",
        "Sources",
        "Languages of what is left",
        "The mixture",
        "Duplicates",
        "Speed",
    ]
    assert page.count("<svg") == 3  # the funnel, two cluster charts


EVIL = '<script>alert("x")</script>&\''


def tables():
    flow = [EVIL, 1000, EVIL, EVIL, None, "", "dropped", EVIL, 1, 2, 3]
    return {
        "runs": [[EVIL, "r", "m", None, "0"]],
        "sources": [[EVIL, None, None, 0, 0.0, 1.0]],
        "shards": [
            [EVIL, EVIL, "done", None, 5, 5, 1, 2],
            ["gone", EVIL, "without", None, 5, None, None, None],
        ],
        "reads": [[EVIL, EVIL, "in", "", "", None, 5], [EVIL, EVIL, "lost", "fault", EVIL, 1, 5]],
        "losses": [[EVIL, EVIL, EVIL, 0, 0, 5, "fault", EVIL, EVIL, EVIL]],
        "flow": [["read", 0, "read", EVIL, None, "", "kept", "", 1, 2, 3], flow],
        "clusters": [[EVIL, 2, 1, 1]],
        "slices": [[EVIL, EVIL, EVIL, EVIL, EVIL, 1, 1, 1, 2, 3]],
        "plan": [["p", 0, EVIL, EVIL, EVIL, 16, 1, 3, 13, 0, 1, 2, 3, 0, 3, 1, 1, 1.0, 1]],
        "plan_stages": [["p", 0, EVIL, 1, 16, 16]],
        "speed": [[EVIL, EVIL, 1, 0.0, None, 0, None, None]],
    }


def test_report_escapes_every_text(tmp_path):
    write_ledger(tmp_path / "l", tables())
    page = render(tmp_path / "l")
    parsed = read(page)
    assert not [t for t, _ in parsed.tags if t == "script"]
    assert parsed.open == []
    assert EVIL in " ".join(parsed.texts)


def test_report_of_books_out_of_balance_says_so(tmp_path):
    write_ledger(tmp_path / "l", tables())
    texts = " ".join(read(render(tmp_path / "l")).texts)
    assert "Out of balance" in texts
    assert "Every account balances" not in texts


def test_report_of_empty_books_is_a_page(tmp_path):
    empty = {name: [] for name in tables()}
    empty["runs"] = copy.deepcopy(tables()["runs"])
    write_ledger(tmp_path / "l", empty)
    parsed = read(render(tmp_path / "l"))
    assert parsed.open == []
    assert "unknown" in " ".join(parsed.texts)


def test_unknown_is_never_nought():
    assert "unknown" in table(["a"], [[None]])
    assert ">0<" not in table(["a"], [[None]])
    assert short(None) == "unknown"
    assert share(None, 5) == "unknown"
    assert "unknown" in funnel([("read", [None])], ["tokens"])


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (812, "812"), (9_310, "9.31 k"), (1_200_000, "1.20 M"), (151_000, "151 k")],
)
def test_short_keeps_three_digits(value, text):
    assert short(value) == text


def test_funnel_bars_are_in_proportion():
    picture = funnel([("read", [200]), ("clean", [50])], ["documents"])
    widths = [float(w) for w in re.findall(r'class="bar"[^>]*width="([\d.]+)"', picture)]
    assert widths[1] == pytest.approx(widths[0] / 4)
    assert "25.0%" in picture
