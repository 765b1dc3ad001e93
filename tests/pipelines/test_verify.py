"""Verify finds nothing wrong with a run, and finds whatever is done to one."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.documents.errors import UsageError
from gristmill.documents.fingerprint import canonical, digest, file_digest
from gristmill.ledger.writer import connect
from gristmill.pipelines import proof, recount, witness
from gristmill.pipelines.run import Run, open_run
from gristmill.pipelines.store import Store
from gristmill.pipelines.verify import check_bytes, check_ledger, notes, verify, verify_folder


@pytest.fixture
def copy(small_run, tmp_path) -> Path:
    """A run that a test may damage."""
    return Path(shutil.copytree(small_run, tmp_path / "run"))


@pytest.fixture(scope="module")
def shared(small_run, tmp_path_factory) -> Path:
    """A copy for tests that mend what they damage."""
    return Path(shutil.copytree(small_run, tmp_path_factory.mktemp("shared") / "run"))


def reseal(run: Path, name: str, change=None) -> None:
    """Make the sidecar agree with the file as it stands, and change its counts."""
    path = run / f"{name}.json"
    side = json.loads(path.read_bytes())
    side |= {"digest": file_digest(run / name), "size": (run / name).stat().st_size}
    if change:
        change(side["counts"])
    side.pop("self")
    number = side.pop("format")
    path.write_bytes(canonical(side | {"format": number, "self": digest(side)}))


def web(run: Path, with_losses: bool = False) -> str:
    """The web shard with the most documents."""
    opened = open_run(run)
    shards = [n for n, s in opened.shards.items() if s.source == "web"]
    unit = "losses" if with_losses else "documents"
    folder = "losses" if with_losses else "documents"
    counts = {n: opened.store.require(f"{folder}/{n}.parquet").counts[unit] for n in shards}
    return max(shards, key=lambda n: counts[n])


def outputs(run: Path) -> list[str]:
    """Every file of a run but timings and the driver's notes."""
    names = sorted(p.relative_to(run).as_posix() for p in run.rglob("*") if p.is_file())
    return [n for n in names if not n.endswith("run.json") and n != "inputs.seen"]


def test_verify_whole_run_finds_nothing(small_run):
    lines: list[str] = []
    assert verify(open_run(small_run), lines.append) == []
    assert any(line.startswith("hashing 1 of") for line in lines)


def test_verify_changes_nothing(shared):
    before = {n: (shared / n).read_bytes() for n in outputs(shared)}
    verify_folder(shared)
    assert {n: (shared / n).read_bytes() for n in outputs(shared)} == before


def test_verify_folder_without_a_run_is_wrong_use(tmp_path):
    with pytest.raises(UsageError, match="not a run folder"):
        verify_folder(tmp_path)


def test_flipped_byte_in_any_output_names_the_file(shared):
    rng = random.Random(0)
    names = outputs(shared)
    assert {"ledger.duckdb", "report.html", "recipe.yaml", "lock.json", "manifest.jsonl"} <= set(
        names
    )
    store = Store(shared)
    assert check_bytes(store) == []
    # One of each kind of file in each folder; which one, a seeded draw says.
    kinds: dict[str, list[str]] = {}
    for name in names:
        folder, _, rest = name.rpartition("/")
        kinds.setdefault(f"{folder}/{rest.partition('.')[2]}", []).append(name)
    for those in kinds.values():
        name = rng.choice(those)
        path = shared / name
        old = path.read_bytes()
        if not old:
            continue
        at = rng.randrange(len(old))
        path.write_bytes(old[:at] + bytes([old[at] ^ (1 << rng.randrange(8))]) + old[at + 1 :])
        found = check_bytes(Store(shared))
        path.write_bytes(old)
        blamed = name.removesuffix(".json") if name not in open_names(shared) else name
        assert [p.file for p in found] == [blamed], f"{name} at {at}"


def open_names(run: Path) -> set[str]:
    """Files that have a sidecar."""
    return {n for n in outputs(run) if (run / f"{n}.json").is_file()}


@pytest.mark.parametrize("name", ["recipe.yaml", "manifest.jsonl"])
def test_run_that_cannot_be_opened_is_named_all_the_same(copy, name):
    (copy / name).write_bytes(b"{" + (copy / name).read_bytes())
    assert [p.file for p in verify_folder(copy)] == [name]


def test_sidecar_in_another_spelling_is_damaged(copy):
    path = copy / "lock.json.json"
    path.write_bytes(path.read_bytes().replace(b'":', b'": ', 1))
    assert [p.file for p in check_bytes(Store(copy))] == ["lock.json"]


def test_stray_missing_and_bare_files_are_named(copy):
    shard = web(copy)
    (copy / "documents" / "stray.parquet").write_bytes(b"x")
    (copy / f"corpus/{shard}.parquet").unlink()
    (copy / f"losses/{shard}.parquet.json").unlink()
    found = {p.file: p.what for p in check_bytes(Store(copy))}
    assert found.keys() == {
        "documents/stray.parquet",
        f"corpus/{shard}.parquet",
        f"losses/{shard}.parquet",
    }
    assert "missing" in found[f"corpus/{shard}.parquet"]
    assert "no sidecar" in found["documents/stray.parquet"]


def test_output_and_sidecar_both_gone_are_named(copy):
    shard = web(copy)
    for suffix in ("", ".json", ".run.json"):
        (copy / f"tokens/{shard}.bin{suffix}").unlink()
    assert f"tokens/{shard}.bin" in {p.file for p in verify_folder(copy)}


def test_sidecar_of_another_file_is_named(copy):
    a, b = sorted(p for p in (copy / "corpus").glob("*.parquet"))[:2]
    shutil.copy(f"{a}.json", f"{b}.json")
    shutil.copy(a, b)
    assert f"corpus/{b.name}" in {p.file for p in check_bytes(Store(copy))}


def test_output_of_an_older_input_is_stale(copy):
    shard = web(copy)
    name = f"attributes/base/{shard}.parquet"
    table = pq.read_table(copy / name)
    pq.write_table(table, copy / name, compression="none")  # the same rows in other bytes
    reseal(copy, name)
    found = {p.file: p.what for p in verify_folder(copy)}
    assert "stale" in found[f"accounts/base/{shard}.parquet"]
    assert f"attributes/base/{shard}.parquet" in found[f"corpus/{shard}.parquet"]
    assert name not in found


def test_output_under_another_configuration_is_stale(copy):
    recipe = copy / "recipe.yaml"
    text = recipe.read_text()
    assert "  notes:\n" in text
    recipe.write_text(text.replace("  notes:\n", "  notes:\n    license: X\n"))
    reseal(copy, "recipe.yaml")
    stale = {p.file for p in verify_folder(copy) if "stale" in p.what}
    assert "lock.json" in stale
    assert any(n.startswith("documents/notes-") for n in stale)
    assert not any(n.startswith("documents/web-") for n in stale)


def test_stale_output_is_counted_all_the_same(copy):
    shard = web(copy)
    name = f"accounts/base/{shard}.parquet"
    path = copy / f"{name}.json"
    side = json.loads(path.read_bytes()) | {"fingerprint": "0" * 32}
    path.write_bytes(canonical(side))
    reseal(copy, name, lambda counts: counts["flow"][0].__setitem__(5, 1))
    found = [p.what for p in verify_folder(copy) if p.file == name]
    assert any(w.startswith("stale") for w in found)
    assert any("in the books" in w for w in found)


def test_other_libraries_are_a_note_and_no_fault(small_run, monkeypatch):
    assert notes(small_run) == []
    honest = Run.versions
    newer = lambda *names: [v + ".9" if "pyarrow" in v else v for v in honest(*names)]  # noqa: E731
    monkeypatch.setattr(Run, "versions", staticmethod(newer))
    assert verify_folder(small_run) == []
    (note,) = notes(small_run)
    assert "pyarrow" in note
    assert ".9 here" in note


@pytest.mark.parametrize(("at", "unit"), [(4, "documents"), (5, "bytes"), (6, "tokens")])
@pytest.mark.parametrize("account", ["in", "kept", "dropped", "stripped"])
def test_flow_off_by_one_names_stage_source_and_difference(copy, account, at, unit):
    shard = web(copy)
    name = f"accounts/base/{shard}.parquet"
    seen = {}

    def change(counts):
        row = next(r for r in counts["flow"] if r[2] == account)
        row[at] += 1
        seen["stage"] = row[0]

    reseal(copy, name, change)
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


def test_flow_of_a_stage_that_is_not_there_is_named(copy):
    shard = web(copy)
    change = lambda counts: counts["flow"].append(["ghost", "", "dropped", "why", 1, 2, 3])  # noqa: E731
    reseal(copy, f"accounts/base/{shard}.parquet", change)
    run = open_run(copy)
    found = list(recount.check_flow(run, connect(), run.passes[0], "read", shard))
    assert len(found) == 3
    assert all("stage ghost" in what for _, what in found)


@pytest.mark.parametrize("key", ["documents", "text_bytes", "record_bytes", "stored_bytes"])
def test_reader_count_off_by_one_is_named(copy, key):
    shard = web(copy)
    name = f"documents/{shard}.parquet"
    reseal(copy, name, lambda counts: counts.update({key: counts[key] + 1}))
    found = list(recount.check_read(open_run(copy), connect(), shard))
    assert [file for file, _ in found] == [name]
    assert "1)" in found[0][1]


def test_decoded_byte_too_many_is_an_imbalance(copy):
    shard = web(copy)
    name = f"documents/{shard}.parquet"
    reseal(copy, name, lambda counts: counts.update(decoded_bytes=counts["decoded_bytes"] + 1))
    found = [p for p in check_ledger(open_run(copy), set()) if "decoded bytes" in p.what]
    assert len(found) == 1
    assert f"read/{shard}, source web" in found[0].what
    assert "(-1)" in found[0].what


def test_loss_that_is_not_listed_is_an_imbalance(copy):
    shard = web(copy, with_losses=True)
    name = f"losses/{shard}.parquet"
    table = pq.read_table(copy / name)
    assert table.num_rows
    pq.write_table(table.slice(1), copy / name)
    reseal(copy, name)
    assert any(p.what.startswith("losses:") for p in check_ledger(open_run(copy), set()))


def edit(run: Path, name: str, column: str, change) -> None:
    """Rewrite one column of a Parquet file row group by row group, and seal it."""
    file = pq.ParquetFile(run / name)
    groups = [file.read_row_group(g) for g in range(file.num_row_groups)]
    schema = file.schema_arrow
    at = schema.get_field_index(column)
    done = False
    with pq.ParquetWriter(run / name, schema, compression="zstd") as writer:
        for table in groups:
            values = table.column(column).to_pylist()
            done = done or bool(change(values))
            changed = table.set_column(
                at, schema.field(at), pa.array(values, schema.field(at).type)
            )
            writer.write_table(changed, row_group_size=max(1, table.num_rows))
    assert done, "nothing was there to change"
    reseal(run, name)


def first(test, to):
    """Change the first value that passes a test."""

    def change(values):
        for i, value in enumerate(values):
            if value is not None and test(value):
                values[i] = to(value)
                return True
        return False

    done = []

    def once(values):
        if done or not change(values):
            return False
        done.append(True)
        return True

    return once


def test_token_count_off_by_one_is_named(copy):
    shard = web(copy)
    name = f"accounts/near_duplicates/{shard}.parquet"
    edit(copy, name, "tokens", first(lambda _: True, lambda v: v + 1))
    run = open_run(copy)
    found = dict(recount.check_corpus(run, connect(), shard))
    assert "(-1 tokens)" in found[f"tokens/{shard}.ends.npy"]
    rows = dict(recount.check_flow(run, connect(), run.passes[2], "exact_duplicates", shard))
    assert "tokens left: 1 rows" in rows[name]


def test_token_count_as_read_off_by_one_is_named(copy):
    shard = web(copy)
    name = f"accounts/read/{shard}.parquet"
    edit(copy, name, "tokens", first(lambda _: True, lambda v: v + 1))
    found = list(recount.check_flow(open_run(copy), connect(), None, "read", shard))
    assert [file for file, _ in found] == [name]
    assert "stage read, source web, kept: tokens" in found[0][1]
    assert "(+1)" in found[0][1]


def test_document_size_off_by_one_is_named(copy):
    shard = web(copy)
    name = f"attributes/read/{shard}.parquet"
    edit(copy, name, "bytes", first(lambda _: True, lambda v: v + 1))
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
def test_attribute_that_contradicts_the_others_is_named(copy, column, test, to, says):
    shard = web(copy)
    name = f"attributes/base/{shard}.parquet"
    edit(copy, name, column, first(test, to))
    run = open_run(copy)
    found = [
        w for f, w in recount.check_flow(run, connect(), run.passes[0], "read", shard) if f == name
    ]
    assert any(says in w for w in found), found


def test_edit_that_is_longer_than_booked_is_named(copy):
    shard = web(copy)
    name = f"attributes/base/{shard}.parquet"
    grow = lambda v: [v[0] | {"length": v[0]["length"] + 1}, *v[1:]]  # noqa: E731
    edit(copy, name, "c4.edits", first(bool, grow))
    run = open_run(copy)
    found = list(recount.check_flow(run, connect(), run.passes[0], "read", shard))
    assert any("stage c4" in w and "stripped" in w and "(+1)" in w for _, w in found)


def test_text_changed_in_the_corpus_is_named(copy):
    shard = web(copy)
    name = f"corpus/{shard}.parquet"
    edit(copy, name, "text", first(bool, lambda v: v + "x"))
    found = dict(recount.check_corpus(open_run(copy), connect(), shard))
    assert "1 texts differ in bytes" in found[name]
    assert "(+1)" in found[name]


def test_document_changed_in_the_corpus_is_named(copy):
    shard = web(copy)
    name = f"corpus/{shard}.parquet"
    edit(copy, name, "id", first(bool, lambda _: bytes(16)))
    found = dict(recount.check_corpus(open_run(copy), connect(), shard))
    assert "2 documents stand on one side only" in found[name]


def test_end_token_that_is_missing_is_named(copy):
    shard = web(copy)
    name = f"tokens/{shard}.bin"
    index = json.loads((copy / f"tokens/{shard}.index.json").read_bytes())
    data = np.fromfile(copy / name, index["dtype"])
    data[-1] = index["eos_id"] + 1
    data.tofile(copy / name)
    reseal(copy, name)
    documents = index["documents"]
    found = [w for f, w in recount.check_corpus(open_run(copy), connect(), shard) if f == name]
    assert len(found) == 1
    assert f"{documents - 1} end-of-document tokens for {documents} documents" in found[0]


def test_text_tokens_off_by_one_in_the_sidecar_are_named(copy):
    shard = web(copy)
    name = f"tokens/{shard}.bin"
    reseal(copy, name, lambda c: c.update(text_tokens=c["text_tokens"] + 1))
    found = [str(p) for p in verify_folder(copy)]
    assert any(p.startswith(name) and "(-1)" in p for p in found)
    assert any("corpus/tokens, source web" in p and "(+1)" in p for p in found)
    assert any(p.startswith("plans/") and f"shard {shard}" in p for p in found)


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
def test_decision_that_does_not_prove_itself_is_named(copy, change, says):
    table = pq.read_table(copy / DECISIONS)
    columns = table.to_pydict()
    change(columns)
    pq.write_table(pa.Table.from_pydict(columns, schema=table.schema), copy / DECISIONS)
    reseal(copy, DECISIONS)
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


def test_decision_with_another_jaccard_is_named_from_the_texts(copy):
    """One shingle more of each: near enough still, and not what the texts say."""
    table = pq.read_table(copy / DECISIONS)
    columns = table.to_pydict()
    i = removed(columns)
    columns["shared"][i] += 1
    columns["either"][i] += 1
    pq.write_table(pa.Table.from_pydict(columns, schema=table.schema), copy / DECISIONS)
    reseal(copy, DECISIONS)
    run = open_run(copy)
    through = [p.name for p in run.passes[:2]]
    ((_, what),) = proof.check_texts(run, run.passes[1].surveys, through)
    assert columns["id"][i].hex() in what
    assert "its decision says" in what


def test_ledger_that_differs_from_the_sidecars_is_named(copy):
    con = connect(copy / "ledger.duckdb")
    con.execute("UPDATE flow SET tokens = tokens + 1 WHERE stage = 'c4' AND account = 'kept'")
    con.close()
    reseal(copy, "ledger.duckdb")
    found = [str(p) for p in verify_folder(copy)]
    assert any(p.startswith("ledger.duckdb: table flow") for p in found)


def test_plan_over_other_tokens_is_named(copy):
    plan = json.loads((copy / "plans/current.json").read_bytes())["plan"]
    name = f"plans/{plan}/documents.npy"
    rows = np.load(copy / name)
    rows[0, 2] += 1
    np.save(copy / name, rows)
    reseal(copy, name)
    found = [str(p) for p in verify_folder(copy)]
    assert any(p.startswith(f"plans/{plan}/plan.json") and "(+1)" in p for p in found), found


def test_file_that_is_no_parquet_is_named_not_raised(copy):
    shard = web(copy)
    name = f"attributes/base/{shard}.parquet"
    (copy / name).write_bytes(b"not parquet")
    reseal(copy, name)
    assert any(shard in str(p) for p in verify_folder(copy))
