"""Repeated paragraphs in a whole run: accounts balance, `why` shows the cut."""

from __future__ import annotations

import pyarrow.parquet as pq

from gristmill.ledger.writer import connect
from gristmill.pipelines.run import open_run
from gristmill.pipelines.verify import verify_folder
from gristmill.pipelines.why import why

RECIPE = """
name: paragraphs
root: data
sources: {a: {paths: [a.jsonl], converter: plain}, b: {paths: [b.jsonl], converter: plain}}
shared: [{repeated_paragraphs: {at_most: 2}}]
"""
NOTICE = "This page may be copied under the licence that stands at the foot of every page."


def test_run_cuts_beyond_the_count_and_verifies(tiny):
    sources = {
        name: [
            {
                "text": f"{name}{i} tells of its own.\n\n{NOTICE}\n\nAnd ends.",
                "url": f"http://{name}.example/{i}",
            }
            for i in range(3)
        ]
        for name in "ab"
    }
    out = tiny(RECIPE, **sources).out
    texts = [
        t
        for p in sorted((out / "corpus").glob("*.parquet"))
        for t in pq.read_table(p)["text"].to_pylist()
    ]
    assert len(texts) == 6
    assert sum(NOTICE in text for text in texts) == 2
    assert verify_folder(out) == []
    (told,) = why(open_run(out), "http://b.example/2")["documents"]
    stage = told["passes"][1]["stages"][0]
    assert stage["evidence"]["paragraphs_cut"] == 1
    assert stage["cuts"][0]["reason"] == "repeated_paragraph"
    assert NOTICE[:40] in stage["cuts"][0]["text"]


def test_run_drops_and_books_a_document_that_is_cut_away(tiny):
    own = [{"text": f"{NOTICE}\n\nPage {i} goes on about it.", "url": f"u{i}"} for i in range(2)]
    out = tiny(RECIPE, a=own, b=[{"text": f"{NOTICE}\n\n", "url": "http://b.example/"}]).out
    texts = [
        t
        for p in sorted((out / "corpus").glob("*.parquet"))
        for t in pq.read_table(p)["text"].to_pylist()
    ]
    assert sorted(texts) == [row["text"] for row in own]
    (told,) = why(open_run(out), "http://b.example/")["documents"]
    assert told["passes"][1]["stages"][0]["verdict"] == "emptied"
    con = connect(out / "ledger.duckdb", read_only=True)
    rows = con.execute(
        "SELECT documents FROM flow WHERE stage = 'repeated_paragraphs' "
        "AND reason = 'emptied' AND account = 'dropped'"
    ).fetchall()
    con.close()
    assert sum(n for (n,) in rows) == 1
    assert verify_folder(out) == []
