"""The ledger of a run says what its files say, and what was not read is booked as unknown."""

from __future__ import annotations

import json
import shutil
from collections import Counter

import pyarrow.parquet as pq
import pytest

from gristmill.documents.errors import StopError
from gristmill.documents.fingerprint import canonical, digest
from gristmill.ledger.balance import imbalances
from gristmill.ledger.writer import connect
from gristmill.pipelines.books import build_ledger, collect, over_limit, positions
from gristmill.pipelines.run import open_run
from gristmill.pipelines.verify import verify_folder

RECIPE = """
name: notes
root: .
shard_bytes: 1 KiB
sources:
  notes: {paths: ["*.jsonl"], converter: plain, removal_cap: 1, max_loss: MAX_LOSS}
shared: [exact_duplicates]
"""


@pytest.fixture(scope="module")
def notes(mill, tmp_path_factory):
    """Four files, two of them the same bytes, one with a line that is no JSON."""
    folder = tmp_path_factory.mktemp("notes")
    texts = {"a": "the river bends north", "b": "a lamp stands by the door", "c": "old maps fade"}
    for name, text in texts.items():
        lines = [json.dumps({"text": f"{text} {i} {'and on ' * 60}"}) for i in range(3)]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    shutil.copy(folder / "a.jsonl", folder / "d.jsonl")
    with (folder / "c.jsonl").open("a") as file:
        file.write('{"text": "never ends\n')
    (folder / "notes.yaml").write_text(RECIPE.replace("MAX_LOSS", "0.5"))
    done = mill.command("run", folder / "notes.yaml", "--out", folder / "run", "--workers", 1)
    assert done.returncode == 0, done.stderr
    return folder


def test_ledger_of_a_run_balances(small_run):
    con = connect(small_run / "ledger.duckdb", read_only=True)
    assert imbalances(con) == []
    con.close()


def test_ledger_counts_what_the_files_hold(small_run, ask):
    run = open_run(small_run)
    read, final = Counter(), Counter()
    for name, shard in run.shards.items():
        read[shard.source] += pq.read_metadata(small_run / f"documents/{name}.parquet").num_rows
        final[shard.source] += pq.read_metadata(small_run / f"corpus/{name}.parquet").num_rows
    assert dict(ask(small_run, "SELECT source, documents FROM flow WHERE pass = 'read'")) == read
    kept = "SELECT source, documents FROM flow WHERE pass = 'corpus' AND account = 'kept'"
    assert dict(ask(small_run, kept)) == final
    assert sum(final.values()) < sum(read.values())
    assert ask(small_run, "SELECT documents FROM funnel ORDER BY position DESC LIMIT 1") == [
        (sum(final.values()),)
    ]


def test_ledger_lists_every_loss(small_run, ask):
    names = [small_run / f"losses/{n}.parquet" for n in open_run(small_run).shards]
    rows = sum(pq.read_metadata(n).num_rows for n in names)
    assert rows
    assert ask(small_run, "SELECT count(*) FROM losses") == [(rows,)]


def test_ledger_clusters_agree_with_what_was_dropped(small_run, ask):
    for stage in ("exact_duplicates", "near_duplicates"):
        gone = ask(small_run, f"SELECT sum(removed) FROM clusters WHERE stage = '{stage}'")
        flow = f"SELECT sum(documents) FROM flow WHERE stage = '{stage}' AND account = 'dropped'"
        assert gone == ask(small_run, flow)
        assert gone[0][0]


def test_ledger_plan_holds_all_windows(small_run, ask):
    rows = ask(small_run, "SELECT stage, sum(windows) FROM plan GROUP BY 1")
    assert sorted(rows) == sorted(ask(small_run, "SELECT stage, windows FROM plan_stages"))
    assert {r[0] for r in rows} == {"base", "agentic"}


def test_positions_put_own_stages_before_shared_ones(small_run):
    place = positions(open_run(small_run))
    order = sorted(place, key=lambda k: place[k])
    assert order[0] == ("read", "read")
    assert order[-1] == ("corpus", "corpus")
    assert order.index(("base", "c4")) < order.index(("base", "exact_survey"))
    assert order.index(("base", "exact_survey")) < order.index(
        ("exact_duplicates", "exact_duplicates")
    )


def test_repeated_input_is_booked_and_its_counts_unknown(notes, ask):
    rows = ask(notes / "run", "SELECT state, documents, decoded_bytes, duplicate_of FROM shards")
    aside = [r for r in rows if r[0] != "done"]
    assert [(r[0], r[1], r[2]) for r in aside] == [("duplicate_input", None, None)]
    names = [r[0] for r in ask(notes / "run", "SELECT shard FROM shards WHERE state = 'done'")]
    assert aside[0][3] in names
    assert ask(notes / "run", "SELECT sum(documents) FROM shards") == [(9,)]


def test_shard_left_out_is_booked_and_its_counts_unknown(notes, mill, tmp_path, ask):
    out = tmp_path / "run"
    shutil.copytree(notes / "run", out)
    name = ask(out, "SELECT min(shard) FROM shards WHERE state = 'done'")[0][0]
    done = mill.command(
        "run", notes / "notes.yaml", "--out", out, "--workers", 1, "--without", name
    )
    assert done.returncode == 0, done.stderr
    query = f"SELECT state, documents, stored_bytes > 0 FROM shards WHERE shard = '{name}'"
    assert ask(out, query) == [("without", None, True)]
    assert verify_folder(out) == []


def test_books_of_an_unfinished_run_name_the_missing_piece(notes, tmp_path):
    out = tmp_path / "run"
    shutil.copytree(notes / "run", out)
    gone = next((out / "corpus").glob("*.parquet"))
    gone.unlink()
    with pytest.raises(StopError, match=gone.name):
        build_ledger(open_run(out))


def test_ledger_is_not_written_again_when_nothing_changed(notes, tmp_path, ask):
    out = tmp_path / "run"
    shutil.copytree(notes / "run", out)
    before = (out / "ledger.duckdb").stat().st_mtime_ns
    build_ledger(open_run(out))
    assert (out / "ledger.duckdb").stat().st_mtime_ns == before
    (out / "ledger.duckdb").unlink()
    build_ledger(open_run(out))
    assert collect(open_run(out))["flow"]
    assert ask(out, "SELECT count(*) FROM flow")[0][0] == len(collect(open_run(out))["flow"])


def test_damage_within_the_limit_is_no_line(notes):
    assert over_limit(open_run(notes / "run")) == []


def test_damage_over_the_limit_names_source_share_and_query(notes, mill, tmp_path, ask):
    for name in ("a.jsonl", "c.jsonl"):
        shutil.copy(notes / name, tmp_path / name)
    (tmp_path / "notes.yaml").write_text(RECIPE.replace("MAX_LOSS", "0.001"))
    out = tmp_path / "run"
    done = mill.command("run", tmp_path / "notes.yaml", "--out", out, "--workers", 1)
    assert done.returncode == 1, done.stderr
    (line,) = over_limit(open_run(out))
    assert line in done.stderr
    decoded, damaged = ask(
        out,
        "SELECT sum(bytes) FILTER (account = 'in'), sum(bytes) FILTER (kind = 'fault') FROM reads",
    )[0]
    assert f"source 'notes': 1 faults took {damaged / decoded:.3%}" in line
    assert "max_loss is 0.001" in line
    query = line.partition('--sql "')[2].rstrip('"')
    assert [r[6] for r in ask(out, query)] == ["fault"]  # what the line tells to do shows the fault
    assert verify_folder(out) == []


@pytest.mark.parametrize(
    ("lost", "decoded", "limit", "lines"),
    [
        ({}, 1000, "0.0", 0),
        ({"dropped:no_text": [9, 900]}, 1000, "0.0", 0),  # a rule is no damage
        ({"fault:bad_json": [1, 10]}, 1000, "0.01", 0),
        ({"fault:bad_json": [1, 11]}, 1000, "0.01", 1),
        ({"fault:corrupt_member": [1, 0]}, 1000, "0.2", 0),  # 1 of 10 records never was bytes
        ({"fault:corrupt_member": [1, 0]}, 1000, "0.01", 1),
        ({"fault:corrupt_member": [1, 0]}, 1000, "0.0", 1),  # none is allowed, and there is one
        ({"fault:corrupt_member": [1, 0]}, 0, "0.5", 1),  # nothing at all came through
    ],
)
def test_limit_counts_faults_by_decoded_bytes(notes, tmp_path, lost, decoded, limit, lines):
    out = tmp_path / "run"
    shutil.copytree(notes / "run", out)
    place = json.loads((out / "run.json").read_bytes())
    (out / "run.json").write_text(json.dumps(place | {"root": str(notes)}))
    (out / "recipe.yaml").write_text(RECIPE.replace("MAX_LOSS", limit))
    shards = sorted((out / "documents").glob("*.parquet"))
    for i, shard in enumerate(shards):
        path = shard.with_name(f"{shard.name}.json")
        side = json.loads(path.read_bytes())
        side["counts"] |= {"decoded_bytes": 0 if i else decoded, "lost": {} if i else lost}
        unseen = sum(number for number, size in side["counts"]["lost"].values() if not size)
        side["counts"] |= {"unseen_records": unseen}
        side.pop("self")
        number = side.pop("format")
        path.write_bytes(canonical(side | {"format": number, "self": digest(side)}))
    assert len(over_limit(open_run(out))) == lines
