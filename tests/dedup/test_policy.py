"""Scopes, exemplars, and the hard cases of near duplicates with the survivors that are right."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.dedup import ExactDuplicates, NearDuplicates, UrlDuplicates
from gristmill.dedup.scope import within
from gristmill.documents.errors import UsageError

NEAR = NearDuplicates()
EXACT = ExactDuplicates()


def words(seed, count):
    draw = random.Random(seed)
    return [f"w{draw.randrange(10**6)}" for _ in range(count)]


def kept(found):
    return sorted(int.from_bytes(p[1], "big") for p, row in found.items() if row["code"] == 0)


@pytest.mark.parametrize("stage", [ExactDuplicates, UrlDuplicates, NearDuplicates])
def test_scope_documents_of_two_scopes_never_meet(corpus, doc, stage):
    text = " ".join(words("scope", 30))
    made = [("a", "s1"), ("a", "s2"), ("b", "s1"), ("b", "s2"), (None, "s1"), (None, "s2")]
    docs = [doc(text=text, url="http://x.example/", dump=d, source=s) for d, s in made]
    assert len(kept(corpus(docs).decide(stage()))) == 1
    assert kept(corpus(docs).decide(stage(scope="crawl"), partitions=3)) == [0, 2, 4]
    assert kept(corpus(docs).decide(stage(scope="source"))) == [0, 1]


def test_scope_of_one_name_keeps_keys_apart_and_zero_zero():
    batch = pa.record_batch({"dump": pa.array(["a", "b", "a", None], pa.string())})
    keys = np.array([[7, 0], [7, 0], [7, 9], [7, 0]], np.uint64)
    found = within(keys, batch, "crawl")
    assert (found[:, 1] == 0).tolist() == [True, True, False, True]
    assert found[0, 0] == found[2, 0]
    assert len({*found[:, 0].tolist()}) == 3
    assert within(keys, batch, "corpus") is keys


@pytest.mark.parametrize("exemplars", [1, 2, 5, 9])
def test_exemplars_first_documents_of_a_cluster_stay(corpus, doc, exemplars):
    text = " ".join(words("exemplars", 40))
    docs = [doc(text=text, quality=10 - i) for i in range(6)]
    for stage in (ExactDuplicates(exemplars=exemplars), NearDuplicates(exemplars=exemplars)):
        found = corpus(docs).decide(stage)
        assert kept(found) == list(range(min(6, exemplars)))
        assert {row["cluster_size"] for row in found.values()} == {6}
        for row in found.values():
            if row["code"]:
                assert int.from_bytes(row["witness_id"], "big") in kept(found)


def test_exemplars_fewer_than_one_are_refused():
    for stage in (ExactDuplicates, NearDuplicates):
        with pytest.raises(UsageError, match="exemplars is 0, expected >= 1"):
            stage(exemplars=0)


@given(st.permutations(range(9)))
def test_chain_any_order_of_quality_keeps_what_has_no_kept_neighbour(corpus, doc, naive, order):
    """Ends at 0.2 must never be merged, whichever link is the best."""
    base = words("chain", 320)
    texts = [" ".join(base[i * 16 : i * 16 + 160]) for i in range(9)]
    edges = naive.jaccard_edges([t.encode() for t in texts], Fraction("0.8"))
    assert set(edges) == {(i, i + 1) for i in range(8)}
    sets = [naive.shingle_set(texts[i].encode()) for i in (0, 8)]
    assert len(sets[0] & sets[1]) / len(sets[0] | sets[1]) < 0.2
    docs = [doc(text=t, quality=order[i]) for i, t in enumerate(texts)]
    found = corpus(docs).decide(NEAR)
    best = sorted(range(9), key=lambda i: -order[i])
    expected: set[int] = set()
    for i in best:  # greedy, from the best: no kept neighbour, so it stays
        if not {i - 1, i + 1} & expected:
            expected.add(i)
    assert kept(found) == sorted(expected)
    assert {row["cluster_size"] for row in found.values()} == {9}


def test_identical_documents_of_a_thousand_sources_leave_the_first(corpus, doc):
    text = " ".join(words("everywhere", 80))
    docs = [
        doc(text=text, shard=f"s{i % 50}", source=f"source{i:04}", priority=(i * 7 + 3) % 1000)
        for i in range(1000)
    ]
    first = next(i for i, d in enumerate(docs) if d.priority == 0)
    for stage in (EXACT, NEAR):
        found = corpus(docs, 1).decide(stage, partitions=5)
        assert kept(found) == [first]
        assert {row["cluster_size"] for row in found.values()} == {1000}


def test_templates_with_bodies_of_their_own_all_stay(corpus, doc):
    """Half of each page is the same; a hot band compares them, none is removed."""
    template = words("template", 100)
    docs = [doc(text=" ".join(template + words(f"body {i}", 60))) for i in range(300)]
    assert corpus(docs).decide(NEAR, partitions=4) == {}


def test_short_texts_go_the_exact_way(corpus, doc):
    """Four words make no shingle: near leaves them, exact takes them, empty ones stay."""
    docs = [doc(text=t) for t in ("a b c d", "a b  c d", "", "", "a b c d e", "a b c d e")]
    assert kept(corpus(docs).decide(EXACT)) == [1, 4]
    assert kept(corpus(docs).decide(NEAR)) == [4]
    assert len(corpus(docs).decide(NEAR)) == 2
