"""What a second command redoes: what is missing, what depends on a change, and nothing else."""

from __future__ import annotations

import json
import shutil

import pytest

from gristmill.documents.errors import StopError
from gristmill.pipelines.driver import run_recipe

OLD = "gopher_quality, gopher_repetition"


class Mill:
    """The small recipe in one folder; a call runs it and tells what was made."""

    def __init__(self, mill, inline, folder):
        self.mill = mill
        self.inline = inline
        self.top = folder
        self.folder = folder / "run"

    def __call__(self, *, fail=None, change=("", ""), web=None, **options):
        executor = self.inline(fail=fail)
        recipe = self.mill.small_recipe(self.top, change=change, web=web)
        return executor.made, run_recipe(recipe, self.folder, executor=executor, **options)


@pytest.fixture(scope="module")
def finished(mill, inline, tmp_path_factory):
    """A finished run, to be copied."""
    made = Mill(mill, inline, tmp_path_factory.mktemp("finished"))
    made()
    return made


@pytest.fixture
def run(mill, inline, finished, tmp_path):
    """A copy of the finished run, with all times kept."""
    shutil.copytree(finished.folder, tmp_path / "run")
    return Mill(mill, inline, tmp_path)


@pytest.fixture
def empty(mill, inline, tmp_path):
    return Mill(mill, inline, tmp_path)


def text_read(folder, steps):
    """Text bytes that the tasks of some steps read, by file."""
    found = {}
    for path in folder.rglob("*.run.json"):
        facts = json.loads(path.read_text())
        if facts.get("step", "").startswith(steps) and facts["text_bytes_read"]:
            found[path.name] = facts["text_bytes_read"]
    return found


def test_run_again_makes_nothing(mill, run):
    done, outcome = run()
    assert done == []
    assert sum(outcome.made.values()) == 0


@pytest.mark.parametrize(
    "kind", ["documents", "losses", "attributes/base", "accounts/base", "corpus", "decisions"]
)
def test_run_deleted_sidecar_redoes_that_output_alone(mill, run, kind):
    before = mill.snapshot(run.folder)
    victim = min((run.folder / kind).rglob("*.parquet.json"))
    victim.unlink()
    done, _ = run()
    assert len(done) == 1  # same bytes come out, so nothing that depends on them is stale
    assert mill.differing(before, mill.snapshot(run.folder)) == []


def test_run_deleted_token_file_redoes_tokens_alone(mill, run):
    before = mill.snapshot(run.folder)
    min((run.folder / "tokens").glob("*.bin")).unlink()
    done, _ = run()
    assert [step for step, _ in done] == ["tokens"]
    assert mill.differing(before, mill.snapshot(run.folder)) == []


@pytest.mark.parametrize(
    ("change", "tighter"),
    [
        ((OLD, OLD.replace("gopher_quality", "{gopher_quality: {min_words: 300}}")), True),
        (
            (
                OLD,
                OLD.replace(
                    "gopher_quality", "{gopher_quality: {min_words: 1, min_stop_words: 0}}"
                ),
            ),
            False,
        ),
    ],
)
def test_run_changed_threshold_equals_a_fresh_run(mill, inline, run, tmp_path, change, tighter):
    for path in run.folder.rglob("*.run.json"):
        path.unlink()
    done, _ = run(change=change)
    assert {"pass-base", "account-base"} <= {step for step, _ in done}
    assert not any(step in {"read", "account-read"} for step, _ in done)
    measured = text_read(run.folder, ("pass-", "account-"))
    if tighter:
        assert measured == {}  # no text was read again to measure or to count
    else:
        assert measured  # rows that an earlier cut had kept from later stages
    fresh = tmp_path / "fresh"
    run_recipe(mill.small_recipe(tmp_path, change=change), fresh, executor=inline())
    assert mill.differing(mill.snapshot(run.folder), mill.snapshot(fresh)) == []


def test_run_added_file_reads_the_new_shard_alone(run):
    web = ["web/pages-00000.warc.gz", "web/truncated.warc.gz", "web/pages-00001.warc.gz"]
    done, _ = run(web=web)
    read = [key for step, key in done if step == "read"]
    assert read
    old = {p.name.split(".")[0] for p in (run.folder / "documents").glob("*.parquet")} - set(read)
    assert old
    assert not any(key in old for step, key in done if step == "pass-base")


def test_run_failed_shard_is_reported_and_the_next_global_round_stops(empty):
    with pytest.raises(StopError, match=r"1 of \d+ shards failed \(notes-.*--without notes-"):
        empty(fail=("read", "notes"))
    steps = {p.parent.name for p in (empty.folder / "attributes").rglob("*.parquet")}
    assert "base" in steps  # the pass went on with the others
    assert not (empty.folder / "exchange").exists() or not list(
        (empty.folder / "exchange").rglob("1/*.arrow")
    )
    (trouble,) = json.loads((empty.folder / "failed.json").read_bytes())
    assert (trouble["step"], trouble["error"]) == ("read", "planted")
    done, outcome = empty()
    assert outcome.exit_code == 0
    assert not (empty.folder / "failed.json").exists()
    assert "read" in {step for step, _ in done}


def test_run_without_a_shard_goes_on_and_books_the_loss(mill, empty):
    with pytest.raises(StopError):
        empty(fail=("read", "notes"))
    lines = (empty.folder / "manifest.jsonl").read_text().splitlines()
    shards = [json.loads(line)["name"] for line in lines]
    (lost,) = [s for s in shards if s.startswith("notes")]
    _, outcome = empty(without=[lost], fail=("read", "notes"))
    assert outcome.damage  # exit 1: usable, the damage listed
    assert outcome.exit_code == 1
    books = mill.command(
        "ledger", empty.folder, "--sql", "select shard, state from shards", "--format", "csv"
    )
    assert f"{lost},without" in books.stdout
