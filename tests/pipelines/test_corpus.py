"""The corpus says how many copies a document stands for, and nothing else."""

from __future__ import annotations

import json

import pyarrow.parquet as pq

from gristmill.pipelines.driver import run_recipe
from gristmill.pipelines.tasks import perform

RECIPE = """
name: copies
root: data
sources: {a: {paths: [a.jsonl], converter: plain}}
shared: [exact_duplicates, {host_cap: {at_most: 3}}]
"""


class Inline:
    """Does tasks in this process."""

    def run(self, run_dir, step, keys, *, progress):
        for key in keys:
            perform(str(run_dir), step, key)
        return []

    def close(self):
        pass


def test_cluster_size_counts_copies_not_a_hosts_documents(tmp_path):
    texts = ["The same words stand twice.", "The same words stand twice.", "One.", "Two.", "Three."]
    rows = [{"text": t, "url": f"http://a.example/{i}"} for i, t in enumerate(texts)]
    (tmp_path / "data").mkdir()
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "data" / "a.jsonl").write_text(lines)
    (tmp_path / "r.yaml").write_text(RECIPE)
    run_recipe(tmp_path / "r.yaml", tmp_path / "run", executor=Inline(), say=lambda _: None)
    kept = {}
    for path in (tmp_path / "run" / "corpus").glob("*.parquet"):
        table = pq.read_table(path)
        kept |= dict(zip(table["text"].to_pylist(), table["cluster_size"].to_pylist(), strict=True))
    assert len(kept) == 3  # of the host's four
    assert all(size == 1 + (text == texts[0]) for text, size in kept.items())
