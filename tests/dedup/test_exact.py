"""Exact duplicates through the whole exchange."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.dedup import GLOBAL_STAGES, ExactDuplicates
from gristmill.documents.errors import ContractError
from gristmill.documents.exchange import DECISIONS, GlobalStage

STAGE = ExactDuplicates()


def test_global_stages_keep_the_contract():
    names = {
        "exact_duplicates",
        "url_duplicates",
        "near_duplicates",
        "host_cap",
        "repeated_paragraphs",
    }
    assert set(GLOBAL_STAGES) == names
    for name, make in GLOBAL_STAGES.items():
        stage = make()
        assert stage.name == name
        assert stage.reasons[0] == stage.survey.reasons[0] == "keep"
        assert stage.rounds
        for member in ("revision", "verdict_fields", "scatter"):
            assert hasattr(stage, member)
    assert GlobalStage in GlobalStage.__mro__


def test_exact_white_space_alone_differs_is_duplicate(corpus, doc, key):
    docs = [doc(text="two words"), doc(text=" two \n\twords\r\n"), doc(text="Two words")]
    found = corpus(docs).decide(STAGE)
    assert set(found) == {("shard", key(0)), ("shard", key(1))}
    longer, shorter = found["shard", key(1)], found["shard", key(0)]
    assert longer["code"] == 0  # longer in bytes, so it represents
    assert longer["witness_id"] is None
    assert longer["shared"] is None
    assert shorter["code"] == 1
    assert (shorter["witness_id"], shorter["shared"], shorter["either"]) == (key(1), 1, 1)
    assert shorter["cluster"] == longer["cluster"] == key(1)
    assert shorter["cluster_size"] == longer["cluster_size"] == 2


def test_exact_empty_texts_are_never_merged(corpus, doc):
    docs = [doc(text=""), doc(text=""), doc(text=" \n "), doc(text="\t")]
    assert corpus(docs).decide(STAGE) == {}


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"priority": 1, "quality": 0, "id": b"z" * 16}, {"priority": 2, "quality": 9}),
        ({"quality": 5, "id": b"z" * 16}, {"quality": 4}),
        ({"quality": 0, "id": b"z" * 16}, {"quality": -1}),
        ({"text": "a  b", "id": b"z" * 16}, {"text": "a b"}),
        ({"id": b"a" * 16}, {"id": b"\xff" * 16}),
    ],
)
def test_exact_representative_order_decides(corpus, doc, better, worse):
    for seed in range(3):
        docs = [doc(**({"text": "a b"} | worse)), doc(**({"text": "a b"} | better))]
        kept = [row for row in corpus(docs, seed).decide(STAGE).values() if row["code"] == 0]
        assert [row["id"] for row in kept] == [better["id"]]


def test_exact_same_id_in_two_shards_is_two_documents(corpus, doc):
    docs = [doc(text="same", shard=name, id=b"i" * 16) for name in ("one", "two")]
    found = corpus(docs).decide(STAGE)
    assert sorted(row["code"] for row in found.values()) == [0, 1]
    gone = next(row for row in found.values() if row["code"])
    assert gone["witness_shard"] != gone["shard"]


TEXTS = st.sampled_from(["", " ", "a", "a ", "b", "b  c", "b c", "\u00a0"])


@given(
    st.lists(st.tuples(TEXTS, st.sampled_from("xy"), st.integers(0, 1)), max_size=20),
    st.integers(0, 5),
    st.integers(1, 7),
)
def test_exact_any_order_and_partitions_same_decisions(corpus, doc, naive, entries, seed, parts):
    docs = [doc(text=t, shard=s, quality=q) for t, s, q in entries]
    expected = corpus(docs).decide(STAGE)
    found = corpus(docs, seed).decide(STAGE, partitions=parts)
    for row in (*expected.values(), *found.values()):
        row.pop("row")  # the place in the shard is what was shuffled
    assert found == expected
    contents = [naive.normalise(t.encode()) for t, _, _ in entries if t.strip(" ")]
    kept = len(contents) - sum(row["code"] for row in found.values())
    assert kept == len(set(contents))


def test_exact_empty_partition_gives_empty_decisions(corpus, doc):
    (step,) = STAGE.rounds
    (documents,) = corpus([doc(text="a")]).surveyed(STAGE)
    found = step.gather(STAGE.scatter(documents).slice(1), None)
    assert found.num_rows == 0
    assert found.schema == DECISIONS


def test_exact_one_document_of_two_ranks_is_refused(corpus, doc):
    docs = [doc(text="a", id=b"i" * 16, quality=quality) for quality in (1, 2)]
    with pytest.raises(ContractError, match="two ranks"):
        corpus(docs).run(STAGE)


def test_exact_scores_of_wrong_width_are_refused():
    table = pa.table({"hash": pa.array([[1, 2, 3]], pa.list_(pa.uint64()))})
    with pytest.raises(ContractError, match="expected 2 values"):
        STAGE.scatter(table)
