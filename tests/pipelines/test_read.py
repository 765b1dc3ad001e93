"""The read step's own counts."""

from __future__ import annotations

import json

import pytest

RECIPE = """
name: counts
root: .
sources:
  web: {paths: [web.jsonl], converter: plain}
  texts: {paths: [texts], converter: plain, reader: {format: text}}
"""


@pytest.fixture(scope="module")
def counted(tmp_path_factory, mill):
    folder = tmp_path_factory.mktemp("counts")
    rows = [("http://h/1", "a"), ("http://h/2", "b"), ("http://h/1", "a"), ("http://h/1", "c")]
    lines = [json.dumps({"url": u, "text": t}) for u, t in rows]
    lines.append(json.dumps({"text": "e\u0301\u0000\x92", "url": None}))
    (folder / "web.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "texts" / "sub").mkdir(parents=True)
    (folder / "texts" / "one.txt").write_text("\ufefffirst text\r\n")
    (folder / "texts" / "sub" / "two.txt").write_text("second text")
    (folder / "counts.yaml").write_text(RECIPE)
    done = mill.command("run", folder / "counts.yaml", "--out", folder / "run", "--workers", 1)
    assert done.returncode == 0, done.stderr
    found = {}
    for side in (folder / "run" / "documents").glob("*.parquet.json"):
        found[side.name.partition("-")[0]] = json.loads(side.read_bytes())["counts"]
    return found


def test_read_counts_urls_that_repeat_in_a_shard(counted):
    assert counted["web"]["repeated_urls"] == {"other_text": 1, "same_text": 1}
    assert counted["texts"]["repeated_urls"] == {}


def test_read_counts_what_the_text_policy_changed(counted):
    assert counted["web"]["repairs"] == {"c1": 1, "nfc": 1, "nul": 1}
    assert counted["texts"]["repairs"] == {"bom": 1, "crlf": 1}


def test_read_folder_of_texts_is_one_document_a_file(counted):
    assert counted["texts"]["documents"] == 2
    assert counted["texts"]["lost"] == {}
