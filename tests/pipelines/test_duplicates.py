"""Duplicate stages in a run: caps, clusters that a later stage wipes out, damaged exchange."""

from __future__ import annotations

import random

import pytest

from gristmill.documents.errors import StopError
from gristmill.ledger.writer import connect
from gristmill.pipelines.demo import summary
from gristmill.pipelines.run import open_run
from gristmill.pipelines.verify import verify_folder
from gristmill.pipelines.why import why

RECIPE = """
name: dup
root: data
partitions: 3
sources:
  a: {paths: [a.jsonl], converter: plain, removal_cap: CAP}
  b: {paths: [b.jsonl], converter: plain, removal_cap: CAP}
shared: [exact_duplicates, near_duplicates, {gopher_quality: {min_words: 50}}]
"""


def text(seed, words):
    """Prose enough for Gopher's rules but for its length."""
    draw = random.Random(seed)
    return " ".join(
        draw.choice(["the", "of", "and", "that", "with"]) + f" w{draw.randrange(9**5)}x"
        for _ in range(words // 2)
    )


@pytest.fixture
def made(tiny, tmp_path):
    """Two sources: near copies of a short text (dropped later), copies of a long one."""
    short, long = text("short", 40), text("long", 120)
    texts = {
        "a": [short, long, text("own a", 100)],
        "b": [short + " more", long, long + " end", text("own b", 100)],
    }
    sources = {
        name: [{"text": t, "url": f"http://{name}.example/{i}"} for i, t in enumerate(some)]
        for name, some in texts.items()
    }

    def run(cap="1"):
        return tiny(RECIPE.replace("CAP", cap), **sources).made

    run.out = tmp_path / "run"
    return run


def test_cluster_whose_kept_document_is_dropped_later_stands_in_the_books(made):
    made()
    con = connect(made.out / "ledger.duckdb", read_only=True)
    rows = con.execute("SELECT * FROM gone_clusters").fetchall()
    con.close()
    assert [(r[0], r[2], r[3], r[4]) for r in rows] == [("near_duplicates", 2, 1, "gopher_quality")]
    assert "none left" in (made.out / "report.html").read_text()
    (told,) = why(open_run(made.out), "http://b.example/0")["documents"]
    near = told["passes"][-1]["stages"][0]
    assert near["verdict"] == "near_duplicate"
    assert near["evidence"]["witness_now"] == "dropped by gopher_quality"
    assert near["evidence"]["cluster_now"].endswith("was dropped by gopher_quality")
    (other,) = why(open_run(made.out), "http://b.example/2")["documents"]
    assert other["passes"][-1]["stages"][0]["evidence"]["witness_now"] == "kept"
    assert "cluster_now" not in other["passes"][-1]["stages"][0]["evidence"]
    assert "clusters of near_duplicates with none left: 1;" in summary(made.out)
    assert verify_folder(made.out) == []


def test_cluster_whose_kept_document_is_a_later_duplicate_stands_with_its_witness(tiny):
    """Copies go for `copy`, `copy` for `near`: gone only where `near` is dropped, and by whom."""
    rows = []
    for words in (40, 120):
        copy = text(f"copies {words}", words)
        rows += [{"text": t, "url": f"http://{words}/{i}"} for i, t in enumerate([copy, copy])]
        rows.append({"text": copy + " and more", "url": f"http://{words}/near"})
    made = tiny(RECIPE.replace("CAP", "1"), a=rows, b=[{"text": text("own", 90)}])
    con = connect(made.out / "ledger.duckdb", read_only=True)
    found = con.execute("SELECT stage, size, kept, lost_to FROM gone_clusters").fetchall()
    con.close()
    assert found == [
        ("exact_duplicates", 2, 1, "gopher_quality"),
        ("near_duplicates", 2, 1, "gopher_quality"),
    ]
    removed = {}
    for url in ("http://40/0", "http://40/1", "http://120/0", "http://120/1"):
        (told,) = why(open_run(made.out), url)["documents"]
        note = told["passes"][-1]["stages"][0]["evidence"]
        removed[url] = (note["witness_now"].split(" for ")[0], note["witness_now"].split(": ")[-1])
    assert sorted(removed.values()) == [
        ("dropped by gopher_quality", "dropped by gopher_quality"),
        ("dropped by near_duplicates", "dropped by gopher_quality"),
        ("dropped by near_duplicates", "kept"),
        ("kept", "kept"),
    ]


def test_removal_cap_stops_the_run_and_names_the_source(made):
    with pytest.raises(StopError, match=r"would remove 1 of 4 documents of source 'b'; .* 0.2"):
        made("0.2")
    with pytest.raises(StopError, match=r"near_duplicates would remove 2 of 3 .* is 0.5"):
        made("0.5")
    assert made("0.7")  # goes on from there


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("exchange/near_duplicates/0/{a}.arrow", {"scatter-near_duplicates"}),
        ("exchange/near_duplicates/1/0001.arrow", {"round-near_duplicates-candidates"}),
        ("exchange/near_duplicates/1-wanted/0000.arrow", {"wanted-near_duplicates-verify"}),
        ("exchange/near_duplicates/1-fetched/{a}.arrow", {"fetch-near_duplicates-verify"}),
        ("exchange/near_duplicates/3/all.arrow", {"round-near_duplicates-components"}),
    ],
)
@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_damaged_run_of_the_exchange_alone_is_made_again(made, name, steps, damage):
    made()
    shard = next(s for s in open_run(made.out).shards if s.startswith("a-"))
    path = made.out / name.format(a=shard)
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(content[:-8])
    again = made()
    assert {step for step, _ in again} == steps
    assert len(again) == 1
    assert path.read_bytes() == content


def test_flipped_bit_in_a_run_of_the_exchange_is_named_by_verify(made):
    made()
    path = made.out / "exchange" / "near_duplicates" / "1" / "0001.arrow"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert ["exchange/near_duplicates/1/0001.arrow" in str(p) for p in verify_folder(made.out)] == [
        True
    ]
