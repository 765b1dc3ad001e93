"""Verify holds decisions to each other and to the texts: each removal proves itself."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.ledger.writer import connect
from gristmill.pipelines import proof, witness
from gristmill.pipelines.run import open_run

DECISIONS = "decisions/near_duplicates/00000.parquet"


def removed(table: dict) -> int:
    """Place of the first removed document."""
    return next(i for i, code in enumerate(table["code"]) if code)


def set_at(column, to):
    def change(table):
        i = removed(table)
        table[column][i] = to(table, i) if callable(to) else to

    return change


def chain_of_witnesses(table):
    """The witness is removed as well, with a witness of its own."""
    i = removed(table)
    key = table["witness_id"][i]
    j = table["id"].index(key)
    for column in ("code", "shared", "either"):
        table[column][j] = table[column][i]
    for column, other in (("witness_id", "id"), ("witness_shard", "shard"), ("witness_in", None)):
        table[column][j] = table[other][i] if other else table["witness_in"][i]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (set_at("witness_id", None), "with no witness"),
        (set_at("witness_id", bytes(16)), "a witness that is not there"),
        (set_at("witness_shard", 7), "a witness that is not there"),
        (set_at("witness_in", "elsewhere"), "named in the wrong shard"),
        (set_at("shared", lambda t, i: t["either"][i] * 4 // 5 - 1), "less alike than 4/5"),
        (set_at("shared", lambda t, i: t["either"][i] + 1), "less alike"),
        (set_at("either", None), "less alike"),
        (set_at("id", bytes(16)), "documents that were not there"),
        (set_at("code", 9), "a code without a reason"),
        (set_at("code", 0), "codes are not those of its decisions"),
        (chain_of_witnesses, "a witness that was removed itself"),
    ],
)
def test_decision_that_does_not_prove_itself_is_named(copy, change, says, damage):
    table = pq.read_table(copy / DECISIONS)
    columns = table.to_pydict()
    change(columns)
    pq.write_table(pa.Table.from_pydict(columns, schema=table.schema), copy / DECISIONS)
    damage.reseal(copy, DECISIONS)
    run = open_run(copy)
    use = run.passes[1].surveys
    found = list(
        witness.check_decisions(run, connect(), use, "exact_duplicates", "near_duplicates")
    )
    assert any(says in what for _, what in found), found


def test_decisions_of_a_run_prove_themselves(small_run):
    run = open_run(small_run)
    for number in (0, 1):
        use = run.passes[number].surveys
        after, applying = run.passes[number].name, run.passes[number + 1].name
        assert list(witness.check_decisions(run, connect(), use, after, applying)) == []
        assert list(proof.check_texts(run, use, [p.name for p in run.passes[: number + 1]])) == []


def test_decision_with_another_jaccard_is_named_from_the_texts(copy, damage):
    """One shingle more of each: near enough still, and not what the texts say."""
    table = pq.read_table(copy / DECISIONS)
    columns = table.to_pydict()
    i = removed(columns)
    columns["shared"][i] += 1
    columns["either"][i] += 1
    pq.write_table(pa.Table.from_pydict(columns, schema=table.schema), copy / DECISIONS)
    damage.reseal(copy, DECISIONS)
    run = open_run(copy)
    through = [p.name for p in run.passes[:2]]
    ((_, what),) = proof.check_texts(run, run.passes[1].surveys, through)
    assert columns["id"][i].hex() in what
    assert "its decision says" in what
