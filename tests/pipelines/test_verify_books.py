"""Verify counts again: whatever the books or the stored rows say wrongly is named."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from gristmill.ledger.writer import connect
from gristmill.pipelines import recount
from gristmill.pipelines.run import open_run
from gristmill.pipelines.verify import check_ledger, verify_folder


@pytest.mark.parametrize(("at", "unit"), [(4, "documents"), (5, "bytes"), (6, "tokens")])
@pytest.mark.parametrize("account", ["in", "kept", "dropped", "stripped"])
def test_flow_off_by_one_names_stage_source_and_difference(copy, account, at, unit, damage):
    shard = damage.web(copy)
    name = f"accounts/base/{shard}.parquet"
    seen = {}

    def change(counts):
        row = next(r for r in counts["flow"] if r[2] == account)
        row[at] += 1
        seen["stage"] = row[0]

    damage.reseal(copy, name, change)
    run = open_run(copy)
    found = list(recount.check_flow(run, connect(), run.passes[0], "read", shard))
    assert len(found) == 1
    file, what = found[0]
    assert file == name
    for part in (f"stage {seen['stage']}", "source web", account, f"{unit}:", "(-1)"):
        assert part in what
    whole = [str(p) for p in check_ledger(run, set())]
    assert any("ledger.duckdb: table flow" in p for p in whole)
    if account == "in" or unit != "documents" or account != "stripped":
        assert any(p.startswith("ledger.duckdb: ") and f"/{seen['stage']}" in p for p in whole)


def test_flow_of_a_stage_that_is_not_there_is_named(copy, damage):
    shard = damage.web(copy)
    change = lambda counts: counts["flow"].append(["ghost", "", "dropped", "why", 1, 2, 3])  # noqa: E731
    damage.reseal(copy, f"accounts/base/{shard}.parquet", change)
    run = open_run(copy)
    found = list(recount.check_flow(run, connect(), run.passes[0], "read", shard))
    assert len(found) == 3
    assert all("stage ghost" in what for _, what in found)


@pytest.mark.parametrize("key", ["documents", "text_bytes", "record_bytes", "stored_bytes"])
def test_reader_count_off_by_one_is_named(copy, key, damage):
    shard = damage.web(copy)
    name = f"documents/{shard}.parquet"
    damage.reseal(copy, name, lambda counts: counts.update({key: counts[key] + 1}))
    found = list(recount.check_read(open_run(copy), connect(), shard))
    assert [file for file, _ in found] == [name]
    assert "1)" in found[0][1]


def test_decoded_byte_too_many_is_an_imbalance(copy, damage):
    shard = damage.web(copy)
    name = f"documents/{shard}.parquet"
    damage.reseal(copy, name, lambda c: c.update(decoded_bytes=c["decoded_bytes"] + 1))
    found = [p for p in check_ledger(open_run(copy), set()) if "decoded bytes" in p.what]
    assert len(found) == 1
    assert f"read/{shard}, source web" in found[0].what
    assert "(-1)" in found[0].what


def test_loss_that_is_not_listed_is_an_imbalance(copy, damage):
    shard = damage.web(copy, with_losses=True)
    name = f"losses/{shard}.parquet"
    table = pq.read_table(copy / name)
    assert table.num_rows
    pq.write_table(table.slice(1), copy / name)
    damage.reseal(copy, name)
    assert any(p.what.startswith("losses:") for p in check_ledger(open_run(copy), set()))


def test_token_count_off_by_one_is_named(copy, damage):
    shard = damage.web(copy)
    name = f"accounts/near_duplicates/{shard}.parquet"
    damage.edit(copy, name, "tokens", damage.first(lambda _: True, lambda v: v + 1))
    run = open_run(copy)
    found = dict(recount.check_corpus(run, connect(), shard))
    assert "(-1 tokens)" in found[f"tokens/{shard}.ends.npy"]
    rows = dict(recount.check_flow(run, connect(), run.passes[2], "exact_duplicates", shard))
    assert "tokens left: 1 rows" in rows[name]


def test_token_count_as_read_off_by_one_is_named(copy, damage):
    shard = damage.web(copy)
    name = f"accounts/read/{shard}.parquet"
    damage.edit(copy, name, "tokens", damage.first(lambda _: True, lambda v: v + 1))
    found = list(recount.check_flow(open_run(copy), connect(), None, "read", shard))
    assert [file for file, _ in found] == [name]
    assert "stage read, source web, kept: tokens" in found[0][1]
    assert "(+1)" in found[0][1]


def test_document_size_off_by_one_is_named(copy, damage):
    shard = damage.web(copy)
    name = f"attributes/read/{shard}.parquet"
    damage.edit(copy, name, "bytes", damage.first(lambda _: True, lambda v: v + 1))
    found = dict(recount.check_read(open_run(copy), connect(), shard))
    assert found == {name: f"1 rows differ in id or bytes from documents/{shard}.parquet"}


@pytest.mark.parametrize(
    ("column", "test", "to", "says"),
    [
        ("gopher_quality.code", lambda v: v == 0, lambda _: 1, "code"),
        ("gopher_quality.code", lambda v: v > 0, lambda _: 0, "code"),
        ("gopher_quality.code", lambda v: v > 0, lambda _: 200, "a code without a reason"),
        ("bytes", lambda _: True, lambda v: v + 1, "bytes left: 1 rows"),
        ("dropped_by", lambda v: v == 0, lambda _: 1, "dropped_by: 1 rows"),
        ("c4.bytes", lambda _: True, lambda v: v + 1, "bytes that its edits do not give: 1 rows"),
    ],
)
def test_attribute_that_contradicts_the_others_is_named(copy, column, test, to, says, damage):
    shard = damage.web(copy)
    name = f"attributes/base/{shard}.parquet"
    damage.edit(copy, name, column, damage.first(test, to))
    run = open_run(copy)
    found = [
        w for f, w in recount.check_flow(run, connect(), run.passes[0], "read", shard) if f == name
    ]
    assert any(says in w for w in found), found


def test_edit_that_is_longer_than_booked_is_named(copy, damage):
    shard = damage.web(copy)
    name = f"attributes/base/{shard}.parquet"
    grow = lambda v: [v[0] | {"length": v[0]["length"] + 1}, *v[1:]]  # noqa: E731
    damage.edit(copy, name, "c4.edits", damage.first(bool, grow))
    run = open_run(copy)
    found = list(recount.check_flow(run, connect(), run.passes[0], "read", shard))
    assert any("stage c4" in w and "stripped" in w and "(+1)" in w for _, w in found)


def test_text_changed_in_the_corpus_is_named(copy, damage):
    shard = damage.web(copy)
    name = f"corpus/{shard}.parquet"
    damage.edit(copy, name, "text", damage.first(bool, lambda v: v + "x"))
    found = dict(recount.check_corpus(open_run(copy), connect(), shard))
    assert "1 texts differ in bytes" in found[name]
    assert "(+1)" in found[name]


def test_document_changed_in_the_corpus_is_named(copy, damage):
    shard = damage.web(copy)
    name = f"corpus/{shard}.parquet"
    damage.edit(copy, name, "id", damage.first(bool, lambda _: bytes(16)))
    found = dict(recount.check_corpus(open_run(copy), connect(), shard))
    assert "2 documents stand on one side only" in found[name]


def test_end_token_that_is_missing_is_named(copy, damage):
    shard = damage.web(copy)
    name = f"tokens/{shard}.bin"
    index = json.loads((copy / f"tokens/{shard}.index.json").read_bytes())
    data = np.fromfile(copy / name, index["dtype"])
    data[-1] = index["eos_id"] + 1
    data.tofile(copy / name)
    damage.reseal(copy, name)
    documents = index["documents"]
    found = [w for f, w in recount.check_corpus(open_run(copy), connect(), shard) if f == name]
    eos = index["eos_id"]
    assert f"token {eos}: {documents} in the index, {documents - 1} in the file" in found[0]
    assert f"do not end in the token {eos}" in found[1]
    assert "(+1)" in found[2]


def test_text_tokens_off_by_one_in_the_sidecar_are_named(copy, damage):
    shard = damage.web(copy)
    name = f"tokens/{shard}.bin"
    damage.reseal(copy, name, lambda c: c.update(text_tokens=c["text_tokens"] + 1))
    found = [str(p) for p in verify_folder(copy)]
    assert any(p.startswith(name) and "(-1)" in p for p in found)
    assert any("corpus/tokens, source web" in p and "(+1)" in p for p in found)
    assert any(p.startswith("plans/") and f"shard {shard}" in p for p in found)


def test_ledger_that_differs_from_the_sidecars_is_named(copy, damage):
    con = connect(copy / "ledger.duckdb")
    con.execute("UPDATE flow SET tokens = tokens + 1 WHERE stage = 'c4' AND account = 'kept'")
    con.close()
    damage.reseal(copy, "ledger.duckdb")
    found = [str(p) for p in verify_folder(copy)]
    assert any(p.startswith("ledger.duckdb: table flow") for p in found)


def test_plan_over_other_tokens_is_named(copy, damage):
    plan = json.loads((copy / "plans/current.json").read_bytes())["plan"]
    name = f"plans/{plan}/documents.npy"
    rows = np.load(copy / name)
    rows[0, 2] += 1
    np.save(copy / name, rows)
    damage.reseal(copy, name)
    found = [str(p) for p in verify_folder(copy)]
    assert any(p.startswith(f"plans/{plan}/plan.json") and "(+1)" in p for p in found), found
