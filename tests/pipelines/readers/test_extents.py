"""Plans: what is found, how it is grouped, and that splits lose and double nothing."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.documents.errors import UsageError
from gristmill.pipelines.readers import Extent, ReadAccount, plan_extents, read_extent


def read_all(root, extents) -> list:
    account = ReadAccount()
    items = [i for e in extents for i in read_extent(root, e, account)]
    account.check()
    return items


@pytest.fixture
def tree(tmp_path):
    for name, size in (
        ("b/2.jsonl", 30),
        ("b/1.jsonl", 20),
        ("a.jsonl", 10),
        ("b/.hidden", 5),
        ("zero", 0),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * size)
    return tmp_path


def test_plan_order_and_repetition_of_paths_never_matter(tree):
    plans = [
        plan_extents(tree, paths, target_bytes=1000)
        for paths in (
            ["a.jsonl", "b"],
            ["b", "a.jsonl", "b/1.jsonl"],
            ["**/*.jsonl"],
            [str(tree / "b"), "*"],
        )
    ]
    expected = [Extent("a.jsonl", 0, 10), Extent("b/1.jsonl", 0, 20), Extent("b/2.jsonl", 0, 30)]
    assert plans[:3] == [[expected]] * 3
    assert plans[3] == [[*expected, Extent("zero", 0, 0)]]  # for the books


def test_plan_groups_small_files_up_to_the_target(tree):
    plan = plan_extents(tree, ["."], target_bytes=30)
    assert [[e.file for e in shard] for shard in plan] == [
        ["a.jsonl", "b/1.jsonl"],
        ["b/2.jsonl", "zero"],
    ]


def test_plan_of_nothing_but_empty_files_is_empty(tree):
    (tree / "folder").mkdir()
    assert plan_extents(tree, ["zero", "folder"]) == []


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("a.jsnl", r"'a\.jsnl'.*did you mean 'a\.jsonl'"),
        ("nowhere/*.gz", r"pattern 'nowhere/\*\.gz' matches nothing"),
        ("../x", "leaves the root"),
        ("/etc/hosts", "outside the root"),
    ],
)
def test_plan_of_what_is_not_there_names_it(tree, path, said):
    with pytest.raises(UsageError, match=said):
        plan_extents(tree, ["a.jsonl", path])


def big_warc(make) -> list[bytes]:
    """Records of incompressible text; one of them holds a whole archive as it stands."""
    rng = random.Random(5)
    parts = [make.wet(n, rng.randbytes(700).hex()) for n in range(400)]
    inner = b"".join(
        make.pack(make.wet(n, rng.randbytes(300).hex()), "gzip") for n in range(900, 1_000)
    )
    parts[150] = make.warc("resource", inner, Content_Type="application/warc")
    return parts


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_split_warc_members_are_whole_and_once(make, tmp_path, codec):
    members = [make.pack(p, codec) for p in big_warc(make)]
    (tmp_path / "f").write_bytes(b"".join(members))
    starts = {sum(map(len, members[:n])) for n in range(len(members))}
    plan = plan_extents(tmp_path, ["f"], target_bytes=90_000)
    extents = [e for shard in plan for e in shard]
    assert len(extents) >= 3
    assert {e.start for e in extents} <= starts
    whole = read_all(tmp_path, [Extent("f", 0, extents[-1].end)])
    assert read_all(tmp_path, extents) == whole
    assert [a.end for a in extents[:-1]] == [b.start for b in extents[1:]]


def test_split_never_believes_an_archive_inside_an_archive(make, tmp_path):
    """The wanted place lies within the stored copy of another archive, members and all."""
    rng = random.Random(9)
    inner = b"".join(make.pack(make.wet(n, rng.randbytes(200).hex()), "gzip") for n in range(600))
    outer = [
        make.wet(0),
        make.warc("resource", inner, Content_Type="application/warc"),
        make.wet(1),
    ]
    members = [make.pack(p, "gzip") for p in outer]
    (tmp_path / "f").write_bytes(b"".join(members))
    starts = {0, len(members[0]), len(members[0]) + len(members[1])}
    for target in (40_000, 70_000, 100_000):
        extents = [e for shard in plan_extents(tmp_path, ["f"], target_bytes=target) for e in shard]
        assert {e.start for e in extents} <= starts


@pytest.mark.parametrize("codec", ["plain", "gzip", "zstd"])
@pytest.mark.parametrize("aligned", [True, False])
def test_split_jsonl_at_lines_alone(make, tmp_path, codec, aligned):
    rng = random.Random(3)
    lines = [
        b'{"id":"r%d","text":"%s"}\n' % (n, rng.randbytes(30).hex().encode()) for n in range(20_000)
    ]
    if aligned:
        pieces = [b"".join(lines[n : n + 100]) for n in range(0, 20_000, 100)]
    else:
        data = b"".join(lines)
        pieces = [data[n : n + 5_003] for n in range(0, len(data), 5_003)]
    (tmp_path / "f").write_bytes(b"".join(make.pack(p, codec) for p in pieces))
    size = (tmp_path / "f").stat().st_size
    extents = [e for s in plan_extents(tmp_path, ["f"], target_bytes=size // 5) for e in s]
    if aligned or codec == "plain":
        assert len(extents) == 5
    items = read_all(tmp_path, extents)
    assert [i.identity for i in items] == [f"r{n}" for n in range(20_000)]


def test_split_parquet_at_row_groups(tmp_path):
    table = pa.table({"text": [f"row {n}" for n in range(5_000)]})
    pq.write_table(table, tmp_path / "f", row_group_size=500, compression="none")
    size = (tmp_path / "f").stat().st_size
    extents = [e for s in plan_extents(tmp_path, ["f"], target_bytes=size // 4) for e in s]
    assert len(extents) >= 3
    assert [i.text for i in read_all(tmp_path, extents)] == [f"row {n}" for n in range(5_000)]


@pytest.mark.parametrize("codec", ["plain", "gzip", "zstd", "bzip2", "xz"])
def test_split_of_what_has_no_provable_boundary_is_one_extent(make, tmp_path, codec):
    data = make.pack(b"".join(big_warc(make)), codec)
    (tmp_path / "f").write_bytes(data)
    plan = plan_extents(tmp_path, ["f"], target_bytes=len(data) // 4)
    assert plan == [[Extent("f", 0, len(data))]]
