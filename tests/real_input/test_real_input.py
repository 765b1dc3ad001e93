"""The main job on real pages: every balance, every hop, memory, from WARC to the feed."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

HERE = Path(__file__).parent
WORKER_BYTES = 1_500_000_000  # peak of one worker that the project promises on this input


@pytest.fixture(scope="module")
def real_run(real_data, mill, tmp_path_factory):
    out = tmp_path_factory.mktemp("real") / "run"
    done = mill.command(
        "run", HERE / "recipe.yaml", "--root", real_data, "--out", out, "--workers", 2
    )
    assert done.returncode == 0, done.stderr
    return out


def test_real_input_verifies(real_run, mill):
    done = mill.command("verify", real_run)
    assert done.returncode == 0, done.stdout


def test_real_input_every_source_reaches_the_corpus(real_run):
    counts: dict[str, int] = {}
    for side in (real_run / "corpus").glob("*.parquet.json"):
        source = side.name.rsplit("-", 1)[0]
        documents = json.loads(side.read_bytes())["counts"]["documents"]
        counts[source] = counts.get(source, 0) + documents
    everything = [
        "agent",
        "books",
        "code",
        "encyclopedia",
        "textbooks",
        "trajectories",
        "web",
        "wet",
    ]
    assert sorted(counts) == everything
    assert all(counts.values()), counts
    assert counts["web"] > 300
    assert counts["wet"] < counts["web"]  # most of it is a copy


def test_real_input_peak_memory_of_a_worker_is_bounded(real_run):
    facts = [json.loads(p.read_bytes()) for p in real_run.rglob("*.run.json")]
    peaks = [f["peak_rss_bytes"] for f in facts if "peak_rss_bytes" in f]
    assert peaks
    assert max(peaks) < WORKER_BYTES


def test_real_input_lineage_holds_both_ways(real_run, naive):
    trail = naive("naive_lineage").Trail(real_run)
    rows = [
        (shard, row)
        for shard in trail.run.shards
        for row in range(trail.table(f"documents/{shard}.parquet").num_rows)
    ]
    web = [r for r in rows if r[0].startswith(("web", "wet"))]
    chosen = random.Random(50).sample(rows, 25) + random.Random(51).sample(web, 25)
    ends = [trail.check_document(*place) for place in chosen]
    assert "trained" in ends
    assert any(e.startswith("dropped") for e in ends)
    positions = random.Random(52).sample(range(trail.plan.positions), 50)
    assert sum(trail.check_position(p) for p in positions) >= 50


def test_real_input_no_record_unaccounted_for(real_run):
    for side in (real_run / "documents").glob("*.parquet.json"):
        counts = json.loads(side.read_bytes())["counts"]
        lost = sum(size for _, size in counts["lost"].values())
        skipped = sum(size for _, size in counts["skipped"].values())
        assert counts["record_bytes"] + lost + skipped == counts["decoded_bytes"]
