"""Host caps through the whole exchange: which pages stay depends on the corpus alone."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.dedup import HostCap
from gristmill.documents.errors import UsageError

HOSTS = st.sampled_from([None, "", "a.example", "www.a.example", "A.example.", "b.example"])


def test_host_cap_keeps_the_longest_of_each_host(corpus, doc, key):
    docs = [doc(text="x" * size, host="a.example") for size in (3, 9, 5)]
    docs += [doc(text="y", host="b.example"), doc(text="z"), doc(text="z")]
    found = corpus(docs).decide(HostCap(at_most=2))
    assert {k[1]: row["code"] for k, row in found.items()} == {key(0): 1, key(1): 0, key(2): 0}
    gone = found["shard", key(0)]
    assert (gone["witness_id"], gone["shared"], gone["either"]) == (key(2), 1, 1)
    assert (gone["cluster"], gone["cluster_size"]) == (key(1), 3)


def test_host_cap_by_id_ignores_length_and_quality(corpus, doc, key):
    docs = [doc(text="x" * (i + 1), host="a.example", quality=i) for i in range(5)]
    found = corpus(docs).decide(HostCap(at_most=2, order="id"))
    assert [found["shard", key(i)]["code"] for i in range(5)] == [0, 0, 1, 1, 1]


@given(
    st.lists(st.tuples(HOSTS, st.integers(1, 4), st.sampled_from("xy")), max_size=24),
    st.integers(1, 4),
    st.sampled_from(["best", "id"]),
    st.integers(0, 5),
    st.integers(1, 7),
)
def test_host_cap_any_order_and_partitions_same_decisions(
    corpus, doc, entries, at_most, order, seed, parts
):
    docs = [doc(text="t" * n, host=h, shard=s) for h, n, s in entries]
    stage = HostCap(at_most=at_most, order=order)
    expected = corpus(docs).decide(stage)
    found = corpus(docs, seed).decide(stage, partitions=parts)
    for row in (*expected.values(), *found.values()):
        row.pop("row")  # the place in the shard is what was shuffled
    assert found == expected
    sizes = Counter((h or "").lower().rstrip(".").removeprefix("www.") for h, _, _ in entries)
    sizes.pop("", None)
    over = {h: n for h, n in sizes.items() if n > at_most}
    assert sum(row["code"] for row in found.values()) == sum(n - at_most for n in over.values())
    assert len(found) == sum(over.values())
    kept = {(row["shard"], row["id"]) for row in found.values() if not row["code"]}
    for row in found.values():
        assert not row["code"] or (row["witness_shard"], row["witness_id"]) in kept


@pytest.mark.parametrize("fields", [{"at_most": 0}, {"at_most": True}, {"order": "length"}])
def test_host_cap_wrong_fields_are_named(fields):
    with pytest.raises(UsageError, match=f"host_cap.{next(iter(fields))}"):
        HostCap(**fields)
