"""Near duplicates through the whole exchange, against all-pairs truth."""

from __future__ import annotations

import gzip
import json
import random
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.dedup import NearDuplicates
from gristmill.dedup.candidates import Candidates
from gristmill.dedup.clusters import Clusters
from gristmill.dedup.rank import Nodes, document_keys
from gristmill.dedup.verify import Verify
from gristmill.documents.errors import ContractError, UsageError
from gristmill.documents.exchange import DECISIONS, JoiningRound, WholeRound, counts_of
from gristmill.documents.fingerprint import measure_fingerprint

STAGE = NearDuplicates()


def words(seed, count, vocabulary=5000):
    draw = random.Random(seed)
    return [f"w{draw.randrange(vocabulary)}" for _ in range(count)]


def family(seed, members, length, edits):
    """Versions of one text, each with up to `edits` words changed at random places."""
    draw = random.Random(seed)
    base = words(seed, length)
    for _ in range(members):
        text = list(base)
        for _ in range(draw.randrange(edits + 1)):
            text[draw.randrange(length)] = f"e{draw.randrange(10**6)}"
        yield " ".join(text)


def assert_proven(naive, docs, key, found, threshold):
    """The guarantee: every removal names a kept document of exact Jaccard >= threshold."""
    texts = {
        ("shard", key(i)) if d.id is None else (d.shard, d.id): d.text for i, d in enumerate(docs)
    }
    for place, row in found.items():
        if row["code"] == 0:
            assert row["witness_id"] is None
            continue
        proof = ("shard", row["witness_id"])
        assert found[proof]["code"] == 0
        a, b = (naive.shingle_set(texts[p].encode()) for p in (place, proof))
        assert (row["shared"], row["either"]) == (len(a & b), len(a | b))
        assert Fraction(row["shared"], row["either"]) >= threshold


def brute_force(naive, docs, threshold):
    """Codes, witnesses and cluster roots by comparing all pairs; positions in `docs`."""
    size = range(len(docs))
    order = sorted(
        size, key=lambda i: (docs[i].priority, -docs[i].quality, -len(docs[i].text.encode()), i)
    )
    edges = naive.jaccard_edges([docs[i].text.encode() for i in order], threshold)
    witness = naive.cover(len(docs), edges)
    return {order[n]: None if w is None else order[w] for n, w in enumerate(witness)}, edges


@pytest.mark.parametrize("seed", range(4))
def test_near_small_corpus_equals_all_pairs_truth(corpus, doc, key, naive, seed):
    """64 bands of 4: a pair at 0.7 is missed with odds of 3e-8, so truth must be met exactly."""
    draw = random.Random(seed)
    docs = []
    for group in range(12):
        docs += [
            doc(text=text, priority=draw.randrange(2), quality=draw.randrange(-1, 2))
            for text in family(f"{seed}/{group}", draw.randrange(1, 7), 300, 6)
        ]
    docs += [doc(text=" ".join(words(f"{seed}-{i}", 60))) for i in range(20)]
    draw.shuffle(docs)
    truth, edges = brute_force(naive, docs, Fraction("0.7"))
    assert len(edges) > 20
    found = corpus(docs).decide(NearDuplicates(threshold="0.7", bands=64, rows=4))
    assert {p: row["code"] for p, row in found.items()} == {
        ("shard", key(i)): int(truth[i] is not None) for i in truth if ("shard", key(i)) in found
    }
    assert {key(i) for i, w in truth.items() if w is not None} <= {p[1] for p in found}
    for (_, place), row in found.items():
        expected = truth[int.from_bytes(place, "big")]
        assert row["witness_id"] == (None if expected is None else key(expected))
    assert_proven(naive, docs, key, found, Fraction("0.7"))


@given(
    st.lists(st.lists(st.sampled_from("abcdef"), max_size=12).map(" ".join), max_size=14),
    st.sampled_from(["0.3", "1/2", "0.8", "1"]),
    st.integers(2, 4),
)
@settings(max_examples=60)
def test_near_every_removal_is_proven(corpus, doc, key, naive, texts, threshold, cap):
    """Small alphabet, shingles of 5, tight caps: dense graphs full of chains and ties."""
    docs = [doc(text=text) for text in texts]
    stage = NearDuplicates(threshold=threshold, group_cap=cap, hot_cap=cap + 2)
    found = corpus(docs).decide(stage)
    assert_proven(naive, docs, key, found, Fraction(threshold))


@pytest.mark.parametrize("parts", [1, 7])
def test_near_order_shards_and_partitions_do_not_matter(corpus, doc, parts):
    docs = []
    for group in range(6):
        for i, text in enumerate(family(group, 8, 300, 8)):
            docs.append(doc(text=text, shard=f"s{i % 3}", id=bytes([group, i]) * 8, quality=i % 2))
    stage = NearDuplicates(group_cap=4, hot_cap=6)
    expected = corpus(docs).run(stage).drop_columns(["row"])
    assert 10 < sum(expected["code"].to_pylist()) < len(docs)
    for seed in range(3):
        found = corpus(docs, seed).run(stage, partitions=parts).drop_columns(["row"])
        assert found.equals(expected)


def test_near_short_and_empty_texts_have_no_bands(corpus, doc):
    docs = [
        doc(text=text) for text in ("", "", "two words", "two words", "one", "a b c d", "a b c d")
    ]
    (documents,) = corpus(docs).surveyed(STAGE)
    assert not any(documents["shingles"].to_pylist())
    assert STAGE.scatter(documents).num_rows == 0
    assert corpus(docs).decide(STAGE, partitions=3) == {}


def test_near_one_shingle_and_identical_texts_are_merged(corpus, doc, key):
    docs = [doc(text="one two three four five") for _ in range(3)]
    docs += [doc(text="x " * 3000)] * 2  # 2,996 shingles, one distinct
    docs += [doc(text="ONE, two; three: four - five!")]
    found = corpus(docs).decide(STAGE)
    assert [found["shard", key(i)]["code"] for i in range(6)] == [1, 1, 1, 0, 1, 0]
    assert found["shard", key(4)]["shared"] == found["shard", key(4)]["either"] == 1
    assert found["shard", key(0)]["witness_id"] == key(5)  # the longest represents
    assert found["shard", key(0)]["cluster_size"] == 4


def test_near_shared_template_below_threshold_is_kept(corpus, doc, naive):
    """Case 25: 200 pages, 70 % one template, 30 % their own; elsewhere merged to one."""
    template = words("template", 140)
    docs = [doc(text=" ".join(template + words(f"body {i}", 60))) for i in range(200)]
    a, b = (naive.shingle_set(d.text.encode()) for d in docs[:2])
    assert 0.5 < len(a & b) / len(a | b) < 0.6
    run = corpus(docs)
    assert run.decide(STAGE) == {}
    assert run.fetched  # they were candidates, and verification spared them


def test_near_chain_keeps_the_far_end(corpus, doc, key, naive):
    """A~B~C with A and C apart: B goes, C stays though union-find joins it to A."""
    base = words("chain", 108)
    fresh = words("fresh", 40, 10**9)
    a, b, c = base[:100], base[4:100] + fresh[:8], base[12:100] + fresh[:16]
    texts = [" ".join(part) for part in (a, b, c)]
    edges = naive.jaccard_edges([t.encode() for t in texts], Fraction("0.8"))
    assert set(edges) == {(0, 1), (1, 2)}
    docs = [doc(text=text, quality=3 - i) for i, text in enumerate(texts)]
    found = corpus(docs).decide(STAGE)
    assert [found["shard", key(i)]["code"] for i in range(3)] == [0, 1, 0]
    assert {row["cluster"] for row in found.values()} == {key(0)}
    assert {row["cluster_size"] for row in found.values()} == {3}
    nearest = max(((0, 1), (1, 2)), key=lambda e: Fraction(*edges[e]))
    assert found["shard", key(1)]["witness_id"] == key(
        nearest[0] if nearest[0] != 1 else nearest[1]
    )


def test_near_threshold_is_exact(corpus, doc):
    """4 of 5 shingles: 0.8 is reached exactly; one part in a billion more is not."""
    docs = [doc(text="a b c d e f g h"), doc(text="a b c d e f g h i")]
    assert sum(row["code"] for row in corpus(docs).decide(STAGE).values()) == 1
    assert corpus(docs).decide(NearDuplicates(threshold="0.800000001")) == {}
    assert NearDuplicates(threshold=0.8) == STAGE  # as YAML reads it


def test_near_texts_without_spaces_use_characters(corpus, doc, key):
    base = "去年夏天我们在山里住了三个星期每天早上都去河边散步看见很多鸟和鱼晚上听老人讲从前的故事"
    docs = [doc(text=base), doc(text=base + "好"), doc(text=base[::-1])]
    found = corpus(docs).decide(STAGE)
    assert {p[1]: row["code"] for p, row in found.items()} == {key(1): 0, key(0): 1}


def test_near_huge_group_stays_linear_and_finds_copies(corpus, doc):
    """1,000 copies with a few words changed: stars and re-banding instead of 499,500 pairs."""
    docs = [doc(text=text) for text in family("hot", 1000, 200, 1)]
    run = corpus(docs)
    tables = [STAGE.scatter(documents) for documents in run.surveyed(STAGE)]
    first, second, *_, last = STAGE.rounds
    pairs = first.gather(tables[0], run.texts)
    counts = counts_of(pairs)
    assert counts["hot_groups"] == 32
    assert counts["hot_rows"] > 25_000
    assert counts["pairs_unseen"] > 10**7
    found = last.gather(second.gather(pairs, run.fetched_for(second, pairs)), None)
    assert found["code"].to_pylist().count(0) == 1
    assert set(found["cluster_size"].to_pylist()) == {1000}


def test_candidates_caps_bound_the_pairs(corpus, doc):
    docs = [doc(text=text) for text in family("caps", 300, 60, 3)]
    run = corpus(docs)
    (documents,) = run.surveyed(STAGE)
    rows = STAGE.scatter(documents)
    everything = counts_of(Candidates(group_cap=10**6, hot_cap=10**6).gather(rows, None))
    capped = counts_of(Candidates(group_cap=8, hot_cap=100).gather(rows, None))
    hottest = counts_of(Candidates(group_cap=8, hot_cap=8).gather(rows, None))
    assert everything["hot_rows"] == everything["pairs_unseen"] == 0
    assert hottest["pairs"] <= capped["pairs"] < everything["pairs"] / 4
    assert hottest["over_hot_cap_rows"] >= capped["over_hot_cap_rows"] > 0


def test_scatter_rows_carry_their_key_and_the_next(corpus, doc):
    (documents,) = corpus(
        [doc(text="a b c d e f"), doc(text="short"), doc(text="g " * 9)]
    ).surveyed(STAGE)
    rows = STAGE.scatter(documents).to_pylist()
    assert [row["row"] for row in rows] == [0] * 32 + [2] * 32
    for begin, keys in ((0, documents["bands"][0].as_py()), (32, documents["bands"][2].as_py())):
        part = rows[begin : begin + 32]
        assert [row["partition"] for row in part] == keys
        assert [row["next"] for row in part] == keys[1:] + keys[:1]


@pytest.mark.parametrize(("hot_cap", "inner"), [(100, 3), (32, 2)])
def test_candidates_hot_group_gives_star_and_re_banded_pairs(corpus, doc, hot_cap, inner):
    """39 rows of one key, in 13 sub-groups of 3 by their next key; above hot_cap stars alone."""
    (documents,) = corpus([doc(text="a b c d e", quality=-i) for i in range(39)]).surveyed(STAGE)
    rows = STAGE.scatter(documents).filter([band == 0 for _ in range(39) for band in range(32)])
    following = pa.array([i % 13 for i in range(39)], pa.uint64())
    rows = rows.set_column(rows.column_names.index("next"), "next", following)
    pairs = Candidates(group_cap=16, hot_cap=hot_cap).gather(rows, None)
    found = set(zip(pairs["a_row"].to_pylist(), pairs["b_row"].to_pylist(), strict=True))
    expected = {(0, i) for i in range(1, 39)}
    for first in range(13):
        expected |= {(first, first + 13), (first, first + 26)}
        if inner == 3:
            expected.add((first + 13, first + 26))
    assert found == expected
    assert len(found) == len(pairs) == counts_of(pairs)["pairs"]


def test_verify_missing_texts_are_refused(corpus, doc):
    run = corpus([doc(text="a b c d e f")] * 2)
    (documents,) = run.surveyed(STAGE)
    pairs = STAGE.rounds[0].gather(STAGE.scatter(documents), None)
    verify = STAGE.rounds[1]
    with pytest.raises(ContractError, match="asked for 2 texts, got 1"):
        verify.gather(pairs, lambda s, r: verify.prepare(run.texts(s, r)[:1]))


@pytest.mark.parametrize("budget", [1, 1000, 64 << 20])
def test_verify_chunks_stay_in_budget_and_do_not_matter(corpus, doc, budget):
    docs = [doc(text=text) for text in family("chunks", 12, 60, 3)]
    run = corpus(docs)
    first, verify, *rest = STAGE.rounds
    expected = corpus(docs).run(STAGE)
    small = Verify(threshold=verify.threshold, fetch_bytes=budget)
    assert run.run(STAGE, rounds=(first, small, *rest)).equals(expected)
    two = 2 * max(len(d.text) for d in docs)
    assert max(run.fetched) <= max(budget, two)
    assert (len(run.fetched) == 1) == (budget == 64 << 20)


def test_rounds_empty_partition_gives_the_same_columns(corpus, doc):
    docs = [doc(text="a b c d e f g h")] * 2
    (documents,) = (run := corpus(docs)).surveyed(STAGE)
    rows, none = STAGE.scatter(documents), STAGE.scatter(documents.slice(0, 0))
    seen = {}
    for step in STAGE.rounds:
        if isinstance(step, WholeRound):
            full, empty = step.whole([rows]), step.whole([none])
        elif isinstance(step, JoiningRound):
            full, empty = (
                step.join(r, o) for r, o in zip((rows, none), seen[step.beside], strict=True)
            )
        else:
            full, empty = (step.gather(r, run.fetched_for(step, r)) for r in (rows, none))
        assert empty.num_rows == 0
        assert full.num_rows > 0
        assert empty.schema == full.schema
        rows, none = seen[step.name] = full, empty
    assert rows.schema == DECISIONS


def test_clusters_components_may_come_apart_in_partitions(corpus, doc):
    """Clustering is a function of whole components: split by component, the rest is equal."""
    docs = [doc(text=text) for g in range(5) for text in family(f"apart {g}", 4, 100, 3)]
    run = corpus(docs)
    (documents,) = run.surveyed(STAGE)
    first, verify, *_, last = STAGE.rounds
    pairs = first.gather(STAGE.scatter(documents), None)
    edges = verify.gather(pairs, run.fetched_for(verify, pairs))
    whole = {row["id"]: row for row in last.gather(edges, None).to_pylist()}
    owner = [whole[key]["cluster"] for key in edges["a_id"].to_pylist()]
    parts = {}
    for cluster in sorted(set(owner)):
        part = edges.filter([o == cluster for o in owner])
        parts |= {row["id"]: row for row in Clusters().gather(part, None).to_pylist()}
    assert len(set(owner)) == 5
    assert parts == whole


def test_clusters_documents_that_share_a_key_stay_two():
    """The key mixes shard, then id: of two shards, ids can be chosen that come to one key."""
    one = Nodes(*(np.array([v], np.uint64) for v in (7, 1, 2, 0, 0, 0, 0)))
    mixed = [shard * 0x9E3779B97F4A7C15 % 2**64 for shard in (7, 9)]
    apart = np.uint64(mixed[0] ^ mixed[0] >> 32 ^ mixed[1] ^ mixed[1] >> 32)
    other = one._replace(shard=np.array([9], np.uint64), high=one.high ^ apart)
    assert document_keys(other) == document_keys(one)
    third = one._replace(low=np.array([3], np.uint64))
    ends = [
        Nodes(*map(np.concatenate, zip(*pair, strict=True)))
        for pair in ((one, other), (third, third))
    ]
    columns = ends[0].columns("a_") | ends[1].columns("b_")
    counts = pa.array(np.array([9, 9], np.uint32))
    found = Clusters().gather(pa.table(columns | {"shared": counts, "either": counts}), None)
    assert found["cluster_size"].to_pylist() == [3, 3, 3]
    assert found["code"].to_pylist() == [0, 1, 0]  # of shard 7, 7, 9: the third goes for the first


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"threshold": "0"}, "threshold is '0'"),
        ({"threshold": "1.1"}, "threshold is '1.1'"),
        ({"threshold": "most"}, "threshold is 'most'"),
        ({"threshold": "1/0"}, "threshold is '1/0'"),
        ({"k": 128}, "set k: 256"),
        ({"ngram": 0}, "ngram is 0"),
        ({"group_cap": 1}, "group_cap is 1"),
        ({"hot_cap": 5}, "hot_cap 5 is below group_cap 32"),
        ({"scheme": "fs"}, "did you mean 'fss'"),
    ],
)
def test_near_wrong_settings_are_refused(fields, message):
    with pytest.raises(UsageError, match=message):
        NearDuplicates(**fields)


def test_near_thresholds_do_not_touch_the_survey():
    changed = NearDuplicates(threshold="0.9", group_cap=8, hot_cap=80)
    assert measure_fingerprint(changed.survey) == measure_fingerprint(STAGE.survey)
    other = NearDuplicates(k=128, bands=16)
    assert measure_fingerprint(other.survey) != measure_fingerprint(STAGE.survey)


def test_near_real_revisions_match_all_pairs(real_data, corpus, doc, key, naive):
    """Revisions of the first 60 documents: every pair at 0.8 or above ends up joined."""
    with gzip.open(real_data / "d-dup-pep-revisions" / "develop.jsonl.gz", "rt") as file:
        rows = [json.loads(line) for line in file][:150]
    docs = [doc(text=row["text"]) for row in rows]
    truth, edges = brute_force(naive, docs, Fraction("0.8"))
    assert len(edges) > 60
    found = corpus(docs).decide(STAGE)
    assert_proven(naive, docs, key, found, Fraction("0.8"))
    gone = {p[1] for p, row in found.items() if row["code"]}
    assert gone == {key(i) for i, w in truth.items() if w is not None}
