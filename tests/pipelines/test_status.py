"""Status from sidecars alone: of a whole run, and of one that was cut off."""

from __future__ import annotations

import json
import shutil

import pytest

from gristmill.documents.errors import UsageError
from gristmill.pipelines.run import open_run
from gristmill.pipelines.status import render, status
from gristmill.pipelines.tasks import steps_of


def by_step(found):
    return {s["step"]: s for s in found["steps"]}


def test_status_whole_run_is_complete(small_run):
    found = status(open_run(small_run))
    assert found["complete"]
    assert found["failed"] == []
    assert [s["step"] for s in found["steps"]] == [s.name for s in steps_of(open_run(small_run))]
    assert all(s["left"] == 0 and s["done"] for s in found["steps"])
    read = by_step(found)["read"]
    assert read["done"] == found["shards"]
    assert read["documents"] > by_step(found)["corpus"]["documents"] > 0
    assert read["peak_rss_bytes"] > 50 << 20
    assert 0 < read["mb_per_second"] < 10_000
    assert {"language", "c4", "near_duplicates"} <= {s["stage"] for s in found["stages"]}


def test_status_reads_no_data_file(copy):
    for path in copy.rglob("*"):
        if path.suffix in {".parquet", ".arrow", ".bin", ".npy"}:
            size = path.stat().st_size
            path.write_bytes(bytes(size))  # the size is all that it looks at
    assert status(open_run(copy))["complete"]


def test_status_of_a_run_cut_off_in_the_middle(copy):
    gone = ("manifests", "exchange", "decisions", "attributes/exact_duplicates", "corpus", "tokens")
    for folder in gone:
        shutil.rmtree(copy / folder)
    found = status(open_run(copy))
    steps = by_step(found)
    assert not found["complete"]
    assert steps["pass-base"]["left"] == 0
    assert steps["scatter-exact_duplicates"]["left"] == found["shards"]
    assert steps["corpus"]["done"] == 0
    assert steps["round-near_duplicates-candidates"]["left"] is None  # not known yet
    assert steps["corpus"]["documents"] is None
    assert "unknown" in render(found)
    assert "not complete" in render(found)


def test_status_names_the_shard_that_failed(copy):
    trouble = {"step": "pass-base", "key": "web-1", "attempts": 3, "error": "killed by signal 9"}
    (copy / "failed.json").write_text(json.dumps([trouble]))
    found = status(open_run(copy))
    assert found["failed"] == [trouble]
    assert "failed: web-1 at pass-base, 3 attempts: killed by signal 9" in render(found)


def test_status_of_a_run_that_waits_names_no_failure(copy):
    for folder in ("corpus", "tokens", "plans"):
        shutil.rmtree(copy / folder)
    found = status(open_run(copy))
    assert found["failed"] == []
    assert not found["complete"]


def test_status_without_facts_shows_blanks(copy):
    for path in copy.rglob("*.run.json"):
        path.unlink()
    found = status(open_run(copy))
    assert found["complete"]
    assert by_step(found)["read"]["mb_per_second"] is None
    assert "unknown" in render(found)  # peak memory


def test_status_of_no_run_is_wrong_use(tmp_path):
    with pytest.raises(UsageError, match="no folder"):
        open_run(tmp_path / "none")
