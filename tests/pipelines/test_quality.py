"""A run with a quality stage: the better of two near copies is kept, thresholds need no text."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from gristmill.filters._cards import model_sha256

RECIPE = """
name: notes
root: .
sources:
  notes: {paths: ["*.jsonl"], converter: plain, removal_cap: 1}
shared: [STAGESnear_duplicates]
"""


@pytest.fixture
def notes(tmp_path, small_model):
    """Two near copies, the second a word shorter, and a head that likes rivers."""
    words = " ".join(f"stone{n % 37} bank{n}" for n in range(60))
    texts = [f"{words} and a wall, as it were.", f"{words} and a river"]
    lines = [json.dumps({"text": text, "id": str(n)}) for n, text in enumerate(texts)]
    (tmp_path / "notes.jsonl").write_text("\n".join(lines) + "\n")
    rows = np.zeros((6, 3))
    rows[1, 1] = 200  # `river`, one of 127 features
    (tmp_path / "edu.bin").write_bytes(small_model(rows=rows))
    card = {
        "format": 1,
        "labels": ["a", "b"],
        "expectation": {"a": 0, "b": 1},
        "cut_points": [0.05 * k for k in range(1, 20)],
        "calibration": [[0, 0], [1, 1]],
        "model_sha256": model_sha256(tmp_path / "edu.bin"),
    }
    (tmp_path / "edu.json").write_text(json.dumps(card))
    return tmp_path


def kept(mill, folder, name, stages) -> tuple[list[str], str]:
    """Texts of the corpus, and what the run said."""
    path = folder / f"{name}.yaml"
    path.write_text(RECIPE.replace("STAGES", stages))
    done = mill.command("run", path, "--out", folder / name, "--workers", 1)
    assert done.returncode == 0, done.stderr
    files = sorted((folder / name / "corpus").rglob("*.parquet"))
    return [t for f in files for t in pq.read_table(f).column("text").to_pylist()], done.stderr


def test_run_near_copies_the_better_is_kept_though_shorter(mill, notes) -> None:
    (longest,), _ = kept(mill, notes, "plain", "")
    assert longest.endswith("it were.")
    (best,), _ = kept(mill, notes, "judged", "{quality: {models: [edu.bin]}}, ")
    assert best.endswith("a river")


def test_run_damaged_model_stops_at_once_with_its_byte(mill, notes) -> None:
    (notes / "edu.bin").write_bytes((notes / "edu.bin").read_bytes()[:-9])
    path = notes / "bad.yaml"
    path.write_text(RECIPE.replace("STAGES", "{quality: {models: [edu.bin]}}, "))
    done = mill.command("run", path, "--out", notes / "bad", "--workers", 1)
    assert done.returncode == 2
    assert "truncated: the output matrix takes 24 bytes" in done.stderr
    assert not list((notes / "bad").rglob("*.parquet"))
