"""The manifest: shards are named after bytes, listings do not matter, and no byte is left out."""

from __future__ import annotations

import gzip

import pytest

from gristmill.documents.errors import UsageError
from gristmill.pipelines.manifest import NAME, find_inputs, make_manifest, read_manifest
from gristmill.pipelines.recipe import parse_recipe
from gristmill.pipelines.store import Store


@pytest.fixture
def plan(tmp_path):
    """Write files, then `plan(paths)` makes the manifest of one source in one run folder."""
    root = tmp_path / "data"
    root.mkdir()

    def make(*paths, shard_bytes=1 << 20, out="run"):
        text = (
            f"name: m\nshard_bytes: {shard_bytes}\n"
            f"sources: {{a: {{paths: {list(paths)}, converter: plain}}}}\n"
        )
        recipe = parse_recipe(text, folder=tmp_path, root=root, where="m.yaml")
        return make_manifest(recipe, Store(tmp_path / out), find_inputs(recipe))

    make.root = root
    make.store = Store(tmp_path / "run")
    return make


def write(plan, name, lines):
    path = plan.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(b'{"text": "%d"}\n' % i for i in lines))


def covered(shards):
    """Bytes of each file that some shard holds."""
    found: dict[str, int] = {}
    for shard in shards:
        for extent in shard.extents:
            found[extent.file] = found.get(extent.file, 0) + extent.end - extent.start
    return found


def sizes(plan):
    return {
        p.relative_to(plan.root).as_posix(): p.stat().st_size for p in plan.root.rglob("*.jsonl")
    }


def test_make_manifest_order_of_listing_and_folder_do_not_matter(plan):
    write(plan, "x.jsonl", range(50))
    write(plan, "y.jsonl", range(50, 90))
    one = plan("x.jsonl", "y.jsonl", out="one")
    two = plan("y.jsonl", "x.jsonl", out="two")
    assert one == two
    (plan.root / "deep").mkdir()
    (plan.root / "x.jsonl").rename(plan.root / "deep" / "x.jsonl")
    assert {s.name for s in plan("deep", "y.jsonl", out="three")} == {s.name for s in one}


def test_make_manifest_repeated_input_is_booked_and_read_once(plan):
    write(plan, "x.jsonl", range(50))
    write(plan, "copy.jsonl", range(50))
    shards = plan("*.jsonl")
    assert [s.duplicate_of for s in shards] == [None, shards[0].name]
    assert covered(shards) == sizes(plan)


def test_make_manifest_added_file_leaves_the_old_shards(plan):
    write(plan, "x.jsonl", range(50))
    before = plan("*.jsonl")
    write(plan, "a.jsonl", range(90, 99))
    after = plan("*.jsonl")
    assert set(before) < set(after)
    assert covered(after) == sizes(plan)


@pytest.mark.parametrize("change", ["grown", "changed at the end", "changed at the start"])
def test_make_manifest_changed_file_is_planned_again_as_a_whole(plan, change):
    write(plan, "x.jsonl", range(1000, 4000))
    write(plan, "y.jsonl", range(5000, 5003))
    before = plan("*.jsonl", shard_bytes=20_000)
    assert len([s for s in before if s.extents[0].file == "x.jsonl"]) > 2
    path = plan.root / "x.jsonl"
    data = path.read_bytes()
    if change == "grown":
        path.write_bytes(data + b'{"text": "new"}\n')
    elif change == "changed at the end":
        path.write_bytes(data[:-5] + b'x"}\n')
    else:
        path.write_bytes(b'{"text":"' + data[9:])
    after = plan("*.jsonl", shard_bytes=20_000)
    assert covered(after) == sizes(plan)
    fresh = plan("*.jsonl", shard_bytes=20_000, out="fresh")
    assert {s.name for s in after} == {s.name for s in fresh}


def test_make_manifest_original_gone_its_copy_is_read(plan):
    write(plan, "a.jsonl", range(50))
    write(plan, "b.jsonl", range(50))
    plan("*.jsonl")
    (plan.root / "a.jsonl").unlink()
    (shard,) = plan("*.jsonl")
    assert shard.duplicate_of is None
    assert shard.extents[0].file == "b.jsonl"


def test_make_manifest_nothing_to_read_is_wrong_use(plan):
    (plan.root / "empty.jsonl").write_bytes(b"")
    with pytest.raises(UsageError, match=r"sources\.a\.paths: no files with bytes"):
        plan("empty.jsonl")
    with pytest.raises(UsageError, match="nowhere"):
        plan("nowhere.jsonl")


def test_read_manifest_gives_back_what_was_written(plan):
    (plan.root / "x.jsonl.gz").write_bytes(gzip.compress(b'{"text": "a"}\n', mtime=0))
    shards = plan("x.jsonl.gz")
    assert read_manifest(plan.store) == shards
    plan.store.check_bytes(NAME)
