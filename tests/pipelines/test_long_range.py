"""A slice by the score of `long_range`: documents whose far parts share words, and no others."""

from __future__ import annotations

import json
import random

import pyarrow.parquet as pq

from gristmill.mixing import Plan
from gristmill.pipelines.run import open_run

RECIPE = """
name: far
root: data
sources:
  books: {paths: [books.jsonl], converter: plain, stages: [{long_range: {distance: 8}}]}
mixture:
  slices:
    long: {source: [books], long_range.score: {min: 300}}
    short: {source: [books], long_range.score: {max: 299}}
  stages:
    - {name: base, tokens: 8192, sequence_length: 512, weights: {long: 1, short: 1}, max_epochs: 99}
"""


def text(rng: random.Random, subjects: int) -> str:
    """2,400 words about so many subjects of 300 words each, in turn."""
    parts = []
    for _ in range(subjects):
        words = ["".join(rng.choices("abcdefghijklmnop", k=8)) for _ in range(300)]
        parts += rng.choices(words, k=2400 // subjects)
    return " ".join(parts)


def test_long_range_score_chooses_documents_of_a_slice(tiny):
    rng = random.Random(5)
    rows = [{"text": text(rng, subjects)} for subjects in (1, 8, 1, 6, 1, 8)]
    out = tiny(RECIPE, books=[*rows, {"text": "A short note, which is no dependency at all."}]).out
    wrote = {}
    for shard in open_run(out).shards:
        corpus = pq.read_table(out / f"corpus/{shard}.parquet", columns=["id", "row"]).to_pylist()
        scores = pq.read_table(out / f"attributes/base/{shard}.parquet").to_pylist()
        wrote |= {row["id"]: scores[row["row"]]["long_range.score"] for row in corpus}
    pointer = json.loads((out / "plans/current.json").read_bytes())
    plan = Plan.open(out / "plans" / pointer["plan"], verify=True)
    chosen = {
        lane.slice: {plan.ids[row].tobytes() for row in plan.pieces[at][:, 0]}
        for at, lane in enumerate(plan.lanes)
    }
    assert len(wrote) == 7  # nothing was dropped
    assert chosen["long"] == {key for key, score in wrote.items() if score >= 300}
    assert chosen["short"] == wrote.keys() - chosen["long"]
    assert len(chosen["long"]) == 3
    assert min(wrote.values()) == -1
