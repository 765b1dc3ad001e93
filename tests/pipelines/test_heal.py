"""A damaged run folder: the same command mends it, a flipped bit never reaches a new file."""

from __future__ import annotations

import json

import pytest

from gristmill.documents.errors import StopError, UsageError
from gristmill.pipelines.driver import run_recipe


@pytest.fixture
def again(mill, copy, inline, tmp_path):
    """Gives the command that made `copy` again."""

    def command(*, change=("", ""), out=copy, **options):
        recipe = mill.small_recipe(tmp_path, change=change)
        return run_recipe(recipe, out, executor=inline(), **options)

    return command


NAMES = ["run.json", "recipe.yaml", "manifest.jsonl", "lock.json.json", "plans/current.json"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("damage", ["gone", "garbage"])
def test_run_heals_the_drivers_own_files(mill, small_run, copy, again, name, damage):
    path = copy / name
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(b"\xff" * len(content))
    again()
    assert mill.differing(mill.snapshot(small_run), mill.snapshot(copy)) == []
    assert mill.command("verify", copy).returncode == 0


def test_run_changed_threshold_never_carries_a_flipped_bit_on(mill, copy, again, tmp_path):
    change = ("gopher_quality, gopher_rep", "{gopher_quality: {min_words: 80}}, gopher_rep")
    flipped = 0
    for path in (copy / "attributes" / "base").glob("web-*.parquet"):
        content = bytearray(path.read_bytes())
        for at in range(len(content) // 3, len(content), len(content) // 3):
            content[at] ^= 1
            flipped += 1
        path.write_bytes(content)
    assert flipped > 1
    again(change=change)
    again(change=change, out=tmp_path / "fresh")
    fresh, healed = mill.snapshot(tmp_path / "fresh"), mill.snapshot(copy)
    assert mill.differing(fresh, healed) == []


def test_run_input_that_changes_midway_stops_with_its_name(inline, tmp_path):
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
        run_recipe(recipe, tmp_path / "run", executor=inline(before={"read": change}))
    failed = (tmp_path / "run" / "failed.json").read_text()
    assert "x.jsonl: its bytes 0-32 are not those that the manifest names" in failed
    assert run_recipe(recipe, tmp_path / "run", executor=inline()).exit_code == 0


def test_fresh_wrong_path_or_mixture_deletes_nothing(mill, copy, again):
    before = mill.snapshot(copy)
    for change in (("books/notes", "books/nots"), ("slices:", "slizes:")):
        with pytest.raises(UsageError):
            again(change=change, fresh=True)
    assert mill.snapshot(copy) == before


def test_run_moved_input_keeps_lineage_and_equals_a_fresh_run(mill, inline, tmp_path):
    data = tmp_path / "data"
    (data / "a").mkdir(parents=True)
    (data / "a" / "m.jsonl").write_text('{"text": "one", "url": "https://x.example/1"}\n')
    recipe = tmp_path / "r.yaml"
    recipe.write_text(
        "name: r\nroot: data\nsources: {a: {paths: [a], converter: plain, removal_cap: 1}}\n"
    )
    run_recipe(recipe, tmp_path / "run", executor=inline())
    (data / "a" / "m.jsonl").rename(data / "a" / "n.jsonl")
    run_recipe(recipe, tmp_path / "run", executor=inline())
    told = mill.command("why", tmp_path / "run", "https://x.example/1").stdout
    assert "a/n.jsonl" in told
    assert "there" in told
    run_recipe(recipe, tmp_path / "fresh", executor=inline())
    resumed, fresh = mill.snapshot(tmp_path / "run"), mill.snapshot(tmp_path / "fresh")
    assert mill.differing(resumed, fresh) == []


def test_commands_that_read_need_the_inputs_no_more(mill, copy):
    place = json.loads((copy / "run.json").read_bytes())
    (copy / "run.json").write_text(json.dumps(place | {"root": "/nowhere/at/all"}))
    for command in (["status", copy], ["verify", copy], ["ledger", copy], ["mix", "show", copy]):
        assert mill.command(*command).returncode == 0
