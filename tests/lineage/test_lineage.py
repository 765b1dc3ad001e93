"""50 raw records followed to their end, and 50 training positions followed back, hop by hop."""

from __future__ import annotations

import random

import pytest

RECORDS = POSITIONS = 50


@pytest.fixture(scope="module")
def trail(demo_run, naive):
    return naive("naive_lineage").Trail(demo_run)


def places_of(trail):
    """(file, offset, inner) of every document and loss, to (shard, row) or None."""
    found = {}
    for shard in trail.run.shards:
        table = trail.table(f"documents/{shard}.parquet")
        for row, at in enumerate(table.column("locator").to_pylist()):
            place = trail.run.shards[shard].place(at)
            found[place["file"], place["offset"], place["inner"]] = (shard, row)
        for loss in trail.table(f"losses/{shard}.parquet").to_pylist():
            place = trail.run.shards[shard].place(loss)
            found.setdefault((place["file"], place["offset"], place["inner"]), None)
    return found


def test_raw_records_50_followed_to_their_end(trail, naive):
    lineage = naive("naive_lineage")
    root = trail.run.recipe.root
    files = ["web/pages-00000.warc.gz", "web/pages-00001.warc.gz", "agent/trajectories.jsonl.gz"]
    records = [(f, *at) for f in files for at in lineage.raw_records(root, f)]
    places = places_of(trail)
    ends = []
    for record in random.Random(2026).sample(records, RECORDS):
        assert record in places, f"a raw record is in no book: {record}"
        place = places[record]
        ends.append("lost, booked" if place is None else trail.check_document(*place))
    assert ends.count("trained") > RECORDS // 2
    assert any(e.startswith("dropped") for e in ends)


def test_documents_50_of_all_sources_followed_to_their_end(trail):
    rows = [
        (shard, row)
        for shard in trail.run.shards
        for row in range(trail.table(f"documents/{shard}.parquet").num_rows)
    ]
    ends = [trail.check_document(*p) for p in random.Random(7).sample(rows, RECORDS)]
    assert "trained" in ends


def test_training_positions_50_followed_back(trail):
    chosen = random.Random(11).sample(range(trail.plan.positions), POSITIONS)
    assert sum(trail.check_position(p) for p in chosen) >= POSITIONS


def test_why_of_a_record_that_became_no_document_says_what_did(demo_run, mill):
    done = mill.command("why", demo_run, "https://news.harbourpost.example/gone")
    assert done.returncode == 2
    assert "its record became none: http_client_error (404) at web/pages-" in done.stderr
