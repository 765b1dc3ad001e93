"""Shards in a bucket: the same records, by ranges, through faults; a failing store is no loss."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from gristmill.documents.errors import StopError, UsageError
from gristmill.documents.records import Record
from gristmill.pipelines.readers import (
    ReadAccount,
    expand,
    plan_extents,
    read_extent,
    reread,
    storage,
)
from gristmill.pipelines.readers.storage import stat_file


def lines(count: int, start: int = 0) -> bytes:
    rng = random.Random(start)
    return b"".join(
        json.dumps({"id": f"r{n}", "text": f"row {n} {rng.randbytes(40).hex()}"}).encode() + b"\n"
        for n in range(start, start + count)
    )


def members(count: int) -> bytes:
    made = []
    for n in range(count):
        body = f"text {n} {random.Random(n).randbytes(200).hex()}".encode()
        head = f"WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        made.append(gzip.compress(head + body + b"\r\n\r\n", mtime=0))
    return b"".join(made)


def parquet(rows: int) -> bytes:
    out = io.BytesIO()
    table = pa.table({"text": [f"row {n}" for n in range(rows)], "id": range(rows)})
    pq.write_table(table, out, row_group_size=100)
    return out.getvalue()


FILES = {
    "web/a.warc.wet.gz": members(300),
    "web/b.jsonl.zst": zstandard.compress(lines(2_000)),
    "web/c.parquet": parquet(450),
    "web/d.jsonl": lines(3_000, 5_000),
}


def read(root, shards) -> list:
    account = ReadAccount()
    items = [i for s in shards for e in s for i in read_extent(root, e, account)]
    account.check()
    return items


def bare(items) -> list:
    """Items without the name of the file that they come from."""
    found = []
    for item in items:
        at = dataclasses.replace(item.locator, file="") if isinstance(item, Record) else None
        found.append((at, item.text, item.identity) if at else item)
    return found


@pytest.fixture
def twin(store, tmp_path):
    """The same files in the bucket and in a folder."""
    for name, data in FILES.items():
        store.put(name, data)
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    return tmp_path


@pytest.mark.parametrize("paths", [["s3://crawl/web/"], ["s3://crawl/web/*"], ["s3://crawl"]])
def test_bucket_reads_as_a_folder_does(store, twin, paths):
    plan = plan_extents(twin, paths, target_bytes=60_000)
    local = plan_extents(twin, ["web"], target_bytes=60_000)
    assert [[(e.start, e.end) for e in s] for s in plan] == [
        [(e.start, e.end) for e in s] for s in local
    ]
    assert len(plan) > 4  # large files are split in a bucket as well
    items = read(twin, plan)
    assert bare(items) == bare(read(twin, local))
    assert sum(isinstance(i, Record) for i in items) == 300 + 2_000 + 450 + 3_000
    for item in items[:: len(items) // 20]:
        assert reread(twin, item.locator) == item


def test_bucket_list_of_paths_starts_at_the_bucket(store, twin):
    names = "\n".join(["# a crawl", *sorted(FILES)[:2], "", "s3://crawl/web/c.parquet"])
    listed = store.put("lists/warc.paths.gz", gzip.compress(names.encode()))
    assert expand(twin, [listed]) == [f"s3://crawl/{n}" for n in sorted(FILES)[:3]]
    store.put("lists/bad.paths", b"web/a.warc.wet.gz\nweb/nowhere.gz\n")
    with pytest.raises(UsageError, match=r"bad\.paths, line 2: 's3://crawl/web/nowhere\.gz'"):
        expand(twin, ["s3://crawl/lists/bad.paths"])


@pytest.mark.parametrize("address", ["s3://crawl/nothing/", "s3://crawl/web/*.arc", "s3://crawl/x"])
def test_bucket_address_of_nothing_is_named(store, twin, address):
    with pytest.raises(UsageError, match="names nothing that is there"):
        expand(twin, [address])


def test_bucket_is_read_by_bounded_ranges(store, tmp_path):
    data = lines(60_000)
    assert len(data) > 6 << 20
    address = store.put("large.jsonl", data)
    plan = plan_extents(tmp_path, [address], target_bytes=len(data))
    store.gets.clear()
    assert len(read(tmp_path, plan)) == 60_000
    asked = [size for path, size in store.gets if path.endswith("large.jsonl")]
    assert 2 <= len(asked) < 12
    assert all(0 < size <= 16 << 20 for size in asked)
    assert sum(asked) <= len(data) + 100  # read once


@pytest.mark.parametrize("kind", ["refuse", "cut"])
def test_bucket_faults_that_pass_change_nothing(store, twin, monkeypatch, kind):
    monkeypatch.setattr(storage, "PAUSE", 0.01)
    expected = bare(read(twin, plan_extents(twin, ["web"])))
    store.fault = lambda number: kind if number % 3 == 0 else None
    assert bare(read(twin, plan_extents(twin, ["s3://crawl/web"]))) == expected


@pytest.mark.parametrize("name", sorted(FILES))
def test_bucket_that_fails_for_good_stops_and_books_no_loss(store, twin, monkeypatch, name):
    monkeypatch.setattr(storage, "PAUSE", 0.0)
    monkeypatch.setattr(storage, "ATTEMPTS", 2)
    address = f"s3://crawl/{name}"
    (shard,) = plan_extents(twin, [address])
    store.fault = lambda _: "cut"
    account = ReadAccount()
    with pytest.raises(StopError, match=rf"{address}: cannot be read.*same command"):
        list(read_extent(twin, shard[0], account))
    assert not account.losses


def test_bucket_object_changed_while_read_stops(store, tmp_path):
    address = store.put("x.jsonl", lines(50))
    (shard,) = plan_extents(tmp_path, [address])
    items = read_extent(tmp_path, shard[0], ReadAccount())
    next(items)
    store.put("x.jsonl", lines(50, 1))
    with pytest.raises(StopError, match="changed while it was read"):
        list(items)


def test_bucket_object_removed_since_stops_and_names_it(store, tmp_path):
    address = store.put("x.jsonl", lines(5))
    (shard,) = plan_extents(tmp_path, [address])
    store.client.delete_object(Bucket="crawl", Key="x.jsonl")
    with pytest.raises(StopError, match=r"s3://crawl/x\.jsonl: is not there any more"):
        list(read_extent(tmp_path, shard[0], ReadAccount()))


def test_bucket_version_is_size_and_etag(store, tmp_path):
    address = store.put("x.jsonl", lines(5))
    first = stat_file(tmp_path, address)
    assert (first.size, first.tagged, first.content) == (len(lines(5)), True, True)
    assert stat_file(tmp_path, store.put("y.jsonl", lines(5))) == first
    store.put("x.jsonl", lines(5)[:-2] + b" \n")
    assert stat_file(tmp_path, address) != first


RECIPE = """
name: bucket
root: .
sources:
  web:
    paths: ["{paths}"]
    converter: plain
    max_loss: 0.5
shared: [exact_duplicates]
"""


def documents(run) -> list:
    found = []
    for path in sorted((run / "documents").glob("*.parquet")):
        table = pq.read_table(path)
        found += zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True)
    return sorted(found)


def test_run_from_a_bucket_gives_the_documents_of_a_folder(store, twin, mill):
    for name, paths in (("far", "s3://crawl/web"), ("near", "web")):
        (twin / f"{name}.yaml").write_text(RECIPE.format(paths=paths))
        done = mill.command("run", twin / f"{name}.yaml", "--out", twin / name, "--workers", 2)
        assert done.returncode == 0, done.stderr
    assert documents(twin / "far") == documents(twin / "near")
    store.gets.clear()
    again = mill.command("run", twin / "far.yaml", "--out", twin / "far", "--workers", 1)
    assert again.returncode == 0
    assert store.gets == []  # unchanged etags: not a byte is fetched again
    assert mill.command("verify", twin / "far").returncode == 0
    store.put("web/e.jsonl", lines(40, 9_000))
    store.put("web/copy.jsonl", FILES["web/d.jsonl"])
    more = mill.command("run", twin / "far.yaml", "--out", twin / "far", "--workers", 1)
    assert more.returncode == 0, more.stderr
    assert len(documents(twin / "far")) == len(documents(twin / "near")) + 40
    manifest = [json.loads(x) for x in (twin / "far/manifest.jsonl").read_text().splitlines()]
    copies = [s for s in manifest if s["duplicate_of"]]
    assert len(copies) == 1  # which of the two is the copy hangs on what was there first
    assert not any("e.jsonl" not in p and "copy" not in p for p, _ in store.gets)
