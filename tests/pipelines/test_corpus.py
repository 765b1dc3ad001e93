"""The corpus says how many copies a document stands for, and nothing else."""

from __future__ import annotations

import pyarrow.parquet as pq

RECIPE = """
name: copies
root: data
sources: {a: {paths: [a.jsonl], converter: plain}}
shared: [exact_duplicates, {host_cap: {at_most: 3}}]
"""


def test_cluster_size_counts_copies_not_a_hosts_documents(tiny):
    texts = ["The same words stand twice.", "The same words stand twice.", "One.", "Two.", "Three."]
    rows = [{"text": t, "url": f"http://a.example/{i}"} for i, t in enumerate(texts)]
    kept = {}
    for path in (tiny(RECIPE, a=rows).out / "corpus").glob("*.parquet"):
        table = pq.read_table(path)
        kept |= dict(zip(table["text"].to_pylist(), table["cluster_size"].to_pylist(), strict=True))
    assert len(kept) == 3  # of the host's four
    assert all(size == 1 + (text == texts[0]) for text, size in kept.items())
