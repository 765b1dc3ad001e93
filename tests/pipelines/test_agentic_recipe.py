"""The recipe that code and runs of agents start from runs as it ships, and its books balance."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_agentic_recipe_runs_on_the_sample_and_its_books_balance(mill, tmp_path):
    pytest.importorskip("jsonschema_rs")
    recipe, run = ROOT / "pipelines" / "recipes" / "agentic.yaml", tmp_path / "run"
    root = ROOT / "sample_data"
    done = mill.command("run", recipe, "--root", root, "--out", run, "--workers", 1)
    assert done.returncode == 0, done.stderr
    assert mill.command("verify", run).returncode == 0
    losses = [pq.read_table(p).to_pylist() for p in (run / "losses").glob("*.parquet")]
    assert [loss["reason"] for shard in losses for loss in shard] == ["failed"] * 10
    rows = [pq.read_table(p).to_pylist() for p in (run / "corpus").glob("agent*.parquet")]
    assert sum(map(len, rows)) == 20  # of 30 verified: 10 are near copies
    assert all(row["turns"] for shard in rows for row in shard)
