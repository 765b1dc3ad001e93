"""A damaged run folder: the same command mends it, a flipped bit never reaches a new file."""

from __future__ import annotations

import shutil

import pytest

from gristmill.documents.errors import StopError, UsageError
from gristmill.pipelines.driver import run_recipe
from gristmill.pipelines.tasks import perform


class Inline:
    """Does tasks in this process; `before` is called once before the first of a step."""

    def __init__(self, before=None):
        self.before = before or {}

    def run(self, run_dir, step, keys, *, progress):
        from gristmill.pipelines.executors import Failure

        self.before.pop(step, lambda: None)()
        failures = []
        for key in keys:
            try:
                perform(str(run_dir), step, key)
            except StopError as error:
                failures.append(Failure(key=key, attempts=1, error=str(error)))
        return failures

    def close(self):
        pass


@pytest.fixture
def copy(mill, small_run, tmp_path):
    """A copy of the finished small run, and a function that gives the same command again."""
    out = tmp_path / "run"
    shutil.copytree(small_run, out)

    def again(**options):
        change = options.pop("change", ("", ""))
        executor = Inline(options.pop("before", None))
        recipe = mill.small_recipe(tmp_path, change=change)
        return run_recipe(recipe, options.pop("out", out), executor=executor, **options)

    again.out = out
    return again


NAMES = ["run.json", "recipe.yaml", "manifest.jsonl", "lock.json.json", "plans/current.json"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("damage", ["gone", "garbage"])
def test_run_heals_the_drivers_own_files(mill, small_run, copy, name, damage):
    path = copy.out / name
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(b"\xff" * len(content))
    copy()
    assert mill.differing(mill.snapshot(small_run), mill.snapshot(copy.out)) == []
    assert mill.command("verify", copy.out).returncode == 0


def test_run_changed_threshold_never_carries_a_flipped_bit_on(mill, copy, tmp_path):
    change = ("gopher_quality, gopher_rep", "{gopher_quality: {min_words: 80}}, gopher_rep")
    flipped = 0
    for path in (copy.out / "attributes" / "base").glob("web-*.parquet"):
        content = bytearray(path.read_bytes())
        for at in range(len(content) // 3, len(content), len(content) // 3):
            content[at] ^= 1
            flipped += 1
        path.write_bytes(content)
    assert flipped > 1
    copy(change=change)
    copy(change=change, out=tmp_path / "fresh")
    fresh, healed = mill.snapshot(tmp_path / "fresh"), mill.snapshot(copy.out)
    assert mill.differing(fresh, healed) == []


def test_run_input_that_changes_midway_stops_with_its_name(mill, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    path = data / "x.jsonl"
    path.write_text('{"text": "one"}\n{"text": "two"}\n')
    recipe = tmp_path / "r.yaml"
    recipe.write_text(
        "name: r\nroot: data\nsources: {a: {paths: [x.jsonl], converter: plain, removal_cap: 1}}\n"
    )

    def change():
        path.write_text('{"text": "TWO"}\n{"text": "one"}\n')

    with pytest.raises(StopError):
        run_recipe(recipe, tmp_path / "run", executor=Inline({"read": change}))
    failed = (tmp_path / "run" / "failed.json").read_text()
    assert "x.jsonl: its bytes 0-32 are not those that the manifest names" in failed
    assert run_recipe(recipe, tmp_path / "run", executor=Inline()).exit_code == 0


def test_fresh_wrong_path_or_mixture_deletes_nothing(mill, copy):
    before = mill.snapshot(copy.out)
    for change in (("books/notes", "books/nots"), ("slices:", "slizes:")):
        with pytest.raises(UsageError):
            copy(change=change, fresh=True)
    assert mill.snapshot(copy.out) == before


def test_run_moved_input_keeps_lineage_and_equals_a_fresh_run(mill, tmp_path):
    data = tmp_path / "data"
    (data / "a").mkdir(parents=True)
    (data / "a" / "m.jsonl").write_text('{"text": "one", "url": "https://x.example/1"}\n')
    recipe = tmp_path / "r.yaml"
    recipe.write_text(
        "name: r\nroot: data\nsources: {a: {paths: [a], converter: plain, removal_cap: 1}}\n"
    )
    run_recipe(recipe, tmp_path / "run", executor=Inline())
    (data / "a" / "m.jsonl").rename(data / "a" / "n.jsonl")
    run_recipe(recipe, tmp_path / "run", executor=Inline())
    told = mill.command("why", tmp_path / "run", "https://x.example/1").stdout
    assert "a/n.jsonl" in told
    assert "there" in told
    run_recipe(recipe, tmp_path / "fresh", executor=Inline())
    resumed, fresh = mill.snapshot(tmp_path / "run"), mill.snapshot(tmp_path / "fresh")
    assert mill.differing(resumed, fresh) == []


def test_commands_that_read_need_the_inputs_no_more(mill, small_run, tmp_path):
    import json

    out = tmp_path / "run"
    shutil.copytree(small_run, out)
    place = json.loads((out / "run.json").read_bytes())
    (out / "run.json").write_text(json.dumps(place | {"root": "/nowhere/at/all"}))
    for command in (["status", out], ["verify", out], ["ledger", out], ["mix", "show", out]):
        assert mill.command(*command).returncode == 0
