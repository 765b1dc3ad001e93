"""Repeated paragraphs in a whole run: accounts balance, `why` shows the cut."""

from __future__ import annotations

import pyarrow.parquet as pq

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
