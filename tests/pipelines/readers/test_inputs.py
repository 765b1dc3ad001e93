"""What paths, lists and addresses name, and how stores that misbehave are read."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import random
import tarfile
import threading
import zipfile
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from gristmill.documents.errors import StopError, UsageError
from gristmill.documents.records import Loss, Record
from gristmill.pipelines.manifest import find_inputs, make_manifest
from gristmill.pipelines.readers import (
    Extent,
    ReadAccount,
    expand,
    plan_extents,
    read_extent,
    reread,
    storage,
)
from gristmill.pipelines.readers.storage import key_of
from gristmill.pipelines.recipe import parse_recipe
from gristmill.pipelines.store import Store

LINES = b"".join(b'{"id": "r%d", "text": "row %d"}\n' % (n, n) for n in range(99))


def read(root, shards) -> list:
    account = ReadAccount()
    items = [i for s in shards for e in s for i in read_extent(root, e, account)]
    account.check()
    return items


@pytest.fixture
def tree(tmp_path):
    for name in ("a.jsonl", "b/1.jsonl", "b/2.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(LINES)
    return tmp_path


@pytest.mark.parametrize("name", ["x.paths", "x.paths.gz", "b/*.paths"])
def test_list_names_files_under_the_root(tree, name):
    data = b"# files\nb/2.jsonl\r\n\n a.jsonl \n"
    file = tree / name.replace("*", "x")
    file.write_bytes(gzip.compress(data, mtime=0) if name.endswith("gz") else data)
    assert expand(tree, [name]) == ["a.jsonl", "b/2.jsonl"]


def test_list_that_lies_in_a_folder_is_data(tree):
    (tree / "b/x.paths").write_bytes(b"a.jsonl\n")
    assert expand(tree, ["b"]) == ["b/1.jsonl", "b/2.jsonl", "b/x.paths"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"a.jsonl\nnowhere\n", r"x\.paths, line 2: 'nowhere' is not there"),
        (b"../a.jsonl\n", "leaves the root"),
        (b"\xff\xfe\n", "cannot be read as a list"),
        (gzip.compress(b"a.jsonl\n", mtime=0)[:-9], "cannot be read as a list"),
    ],
)
def test_list_that_is_wrong_is_named(tree, data, said):
    (tree / "x.paths").write_bytes(data)
    with pytest.raises(UsageError, match=said):
        expand(tree, ["x.paths"])


def test_list_of_addresses(tree):
    (tree / "x.paths").write_text(f"file://{tree}/b/1.jsonl\na.jsonl\n")
    assert expand(tree, ["x.paths"]) == ["a.jsonl", f"file://{tree}/b/1.jsonl"]


@pytest.fixture
def memory():
    system = fsspec.filesystem("memory")
    system.store.clear()
    yield system
    system.store.clear()


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        (["memory://d/a.jsonl"], ["a.jsonl"]),
        (["memory://d"], ["a.jsonl", "e/b.jsonl"]),
        (["memory://d/"], ["a.jsonl", "e/b.jsonl"]),
        (["memory://d/**/*.jsonl", "memory://d/a.jsonl"], ["a.jsonl", "e/b.jsonl"]),
        (["memory://d/e*"], ["e/b.jsonl"]),
    ],
)
def test_address_folder_glob_and_file(tree, memory, paths, found):
    for name in ("a.jsonl", "e/b.jsonl", ".hidden/x", "e/.y"):
        memory.pipe(f"/d/{name}", LINES)
    memory.pipe("/d/empty", b"")
    files = expand(tree, paths)
    assert [f for f in files if f != "memory:///d/empty"] == [f"memory:///d/{n}" for n in found]
    items = read(tree, plan_extents(tree, paths))
    assert sum(isinstance(i, Record) for i in items) == 99 * len(found)
    empty = [i for i in items if isinstance(i, Loss)]
    assert [i.reason for i in empty] == ["empty_file"] * ("memory:///d/empty" in files)


def test_address_file_reads_as_the_path_does(tree):
    near = read(tree, plan_extents(tree, ["a.jsonl"]))
    far = read(tree, plan_extents(tree, [f"file://{tree}/a.jsonl"]))
    assert [(i.text, i.locator.offset) for i in far] == [(i.text, i.locator.offset) for i in near]
    assert reread(tree, far[5].locator) == far[5]


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("memory://nothing", "names nothing that is there"),
        ("nosuch://x", "fsspec knows no nosuch://"),
        ("zip://x::memory://y", "chained"),
    ],
)
def test_address_of_no_use_is_named(tree, memory, address, said):
    with pytest.raises(UsageError, match=said):
        expand(tree, [address])


def test_key_of_is_the_path_within_the_store():
    assert key_of("a/b") == "a/b"
    assert key_of("s3://bucket/a/b") == "a/b"
    assert key_of("https://h/a/b") == "a/b"
    assert key_of("memory:///a/b") == "a/b"


class Ranged(SimpleHTTPRequestHandler):
    """The standard library's server, which knows no ranges; `ranges` teaches it."""

    ranges = True
    fail = 0  # so many of the next answers are 500

    def log_message(self, format, *args):  # noqa: A002
        pass

    def do_GET(self):
        if type(self).fail:
            type(self).fail -= 1
            self.send_error(500)
            return
        span = self.headers.get("Range", "")
        if not self.ranges or not span:
            super().do_GET()
            return
        data = Path(self.translate_path(self.path)).read_bytes()
        first, _, last = span.removeprefix("bytes=").partition("-")
        part = data[int(first) : int(last) + 1]
        self.send_response(206)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
        self.end_headers()
        self.wfile.write(part)


@contextmanager
def serving(folder, handler: type[BaseHTTPRequestHandler]):
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder)))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("ranges", [True, False])
def test_web_server_with_and_without_ranges(tree, ranges, monkeypatch):
    pytest.importorskip("aiohttp", reason="make test-cluster installs it")
    monkeypatch.setattr(storage, "PAUSE", 0.01)
    kind = type("Server", (Ranged,), {"ranges": ranges})
    big = zstandard.compress(LINES) * 3_000
    (tree / "big.jsonl.zst").write_bytes(big)
    with serving(tree, kind) as url:
        plan = plan_extents(tree, [f"{url}/big.jsonl.zst"], target_bytes=len(big))
        kind.fail = 2
        assert len(read(tree, plan)) == 99 * 3_000
        with pytest.raises(UsageError, match="names nothing"):
            expand(tree, [f"{url}/nowhere.gz"])


def test_file_that_shrank_since_it_was_planned_stops(tree):
    (shard,) = plan_extents(tree, ["a.jsonl"])
    (tree / "a.jsonl").write_bytes(LINES[:500])
    with pytest.raises(StopError, match=r"a\.jsonl: ends at byte 500, and \d+ bytes were planned"):
        list(read_extent(tree, shard[0], ReadAccount()))


def test_file_that_cannot_be_read_stops_and_is_no_loss(tree, monkeypatch):
    def broken(fd, size, at):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(storage.os, "pread", broken)
    account = ReadAccount()
    with pytest.raises(StopError, match=r"a\.jsonl: cannot be read at byte 0.*Input/output"):
        list(read_extent(tree, Extent("a.jsonl", 0, len(LINES)), account))
    assert not account.losses


def test_file_that_is_gone_stops(tree):
    with pytest.raises(StopError, match="gone: is not there any more"):
        list(read_extent(tree, Extent("gone", 0, 5), ReadAccount()))


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("target", [1 << 20, 3_000])
def test_zstd_dictionary_at_the_start_of_the_file(make, tmp_path, compressed, target):
    """`.warc.zst`: a skippable frame holds the dictionary that every later frame needs."""
    parts = [make.wet(n, f"common words stand in each text, number {n}") for n in range(300)]
    made = zstandard.train_dictionary(4_000, parts)
    stored = zstandard.compress(made.as_bytes()) if compressed else made.as_bytes()
    packer = zstandard.ZstdCompressor(dict_data=made, write_checksum=True)
    head = b"\x5d\x2a\x4d\x18" + len(stored).to_bytes(4, "little") + stored
    frames = [packer.compress(p) for p in parts]
    assert sum(map(len, frames)) < sum(map(len, parts)) // 2
    (tmp_path / "f").write_bytes(head + b"".join(frames))
    plan = plan_extents(tmp_path, ["f"], target_bytes=target)
    assert (len(plan) > 1) == (target == 3_000)
    items = [i for i in read(tmp_path, plan) if hasattr(i, "identity")]
    assert [i.identity for i in items] == [f"<urn:{n}>" for n in range(300)]
    assert reread(tmp_path, items[250].locator) == items[250]
    got = make.read(b"".join(frames))  # without it
    assert got.records == []
    assert set(got.reasons) == {"corrupt_member"}


def test_manifest_of_addresses_plans_again_what_changed(tree, memory, tmp_path):
    memory.pipe("/d/a.jsonl", LINES)
    memory.pipe("/d/b.jsonl", LINES + LINES)
    text = "name: m\nsources: {a: {paths: ['memory://d'], converter: plain}}\n"
    recipe = parse_recipe(text, folder=tmp_path, root=tree, where="m.yaml")
    store = Store(tmp_path / "run")
    first = make_manifest(recipe, store, find_inputs(recipe))
    assert make_manifest(recipe, store, find_inputs(recipe)) == first
    memory.pipe("/d/c.jsonl", LINES[:-1] + b" \n")
    memory.pipe("/d/copy.jsonl", LINES)
    second = make_manifest(recipe, store, find_inputs(recipe))
    assert second[: len(first)] == first
    assert [s.duplicate_of is not None for s in second[len(first) :]].count(True) == 1
    assert {e.file for s in second for e in s.extents} == {
        f"memory:///d/{n}.jsonl" for n in ("a", "b", "c", "copy")
    }


@pytest.mark.parametrize("codec", ["gzip", "zstd", "bzip2", "xz"])
def test_large_member_of_an_object_is_fetched_once(make, memory, tmp_path, monkeypatch, codec):
    """It is decoded twice, to its checksum first; a range of it is paid for once."""
    monkeypatch.setattr(storage.Remote, "sequential", 1 << 20)
    chance = random.Random(5)
    lines = [
        b'{"id": "r%d", "text": "%s"}\n' % (n, chance.randbytes(900).hex().encode())
        for n in range(4_000)
    ]
    data = make.pack(b"".join(lines[:3_900]), codec) + make.pack(b"".join(lines[3_900:]), codec)
    memory.pipe("/d/a", data)
    asked = []
    fetch = storage.Remote._range

    def counted(self, at, size):
        asked.append((at, size))
        return fetch(self, at, size)

    monkeypatch.setattr(storage.Remote, "_range", counted)
    account = ReadAccount()
    got = [
        i.identity for i in read_extent(tmp_path, Extent("memory:///d/a", 0, len(data)), account)
    ]
    assert got == [f"r{n}" for n in range(4_000)]
    assert len(asked) > 3
    assert sum(size for _, size in asked) < 1.01 * len(data) + (1 << 20)


@pytest.mark.parametrize(
    ("make_it", "said"),
    [
        (os.mkfifo, "no file but a pipe or device"),
        (lambda p: p.symlink_to("nowhere"), "a link that leads nowhere"),
        (lambda p: p.symlink_to(p.name), "a link that leads nowhere"),
    ],
)
def test_what_is_no_file_is_named_wherever_it_is_met(tree, make_it, said):
    make_it(tree / "b/odd")
    (tree / "x.paths").write_text("a.jsonl\nb/odd\n")
    for paths in (["b"], ["b/odd"], ["b/*"], ["**/*"]):
        with pytest.raises(UsageError, match=f"'b/odd' is {said}"):
            expand(tree, paths)
    with pytest.raises(UsageError, match=r"line 2: 'b/odd' is not there"):
        expand(tree, ["x.paths"])


def test_links_to_folders_are_followed_and_loops_end(tree):
    (tree / "far").symlink_to(tree / "b")
    (tree / "b/up").symlink_to("..")
    found = expand(tree, ["."])
    assert found[:3] == ["a.jsonl", "b/1.jsonl", "b/2.jsonl"]
    assert {"far/1.jsonl", "far/2.jsonl"} <= set(found)


def test_folder_in_a_list_and_mark_at_its_start(tree):
    (tree / "x.paths").write_bytes(b"\xef\xbb\xbfa.jsonl\n")
    assert expand(tree, ["x.paths"]) == ["a.jsonl"]
    (tree / "x.paths").write_bytes(b"b\n")
    with pytest.raises(UsageError, match="a list names single files"):
        expand(tree, ["x.paths"])


def test_path_that_no_file_system_takes_is_wrong_use(tree):
    for path in ("a" * 5_000, "a\0b"):
        with pytest.raises(UsageError, match=r"path|no file"):
            expand(tree, [path])


def test_folder_and_file_that_may_not_be_read_are_named(tree, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(storage.Local, "__init__", refuse)
        with pytest.raises(StopError, match=r"a\.jsonl: cannot be opened: Permission denied"):
            list(read_extent(tree, Extent("a.jsonl", 0, 5), ReadAccount()))
    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(UsageError, match="folder 'b' cannot be read: Permission denied"):
        expand(tree, ["b"])


@pytest.mark.parametrize(
    "name", ["a b", "a#b", "a?b", "a*b", "a[1]", "a%20b", "'\"", "ü", "-x", "~x", "a:b", "{x}"]
)
def test_name_of_odd_letters_is_a_name(tree, name):
    (tree / name).write_bytes(LINES)
    (tree / "x.paths").write_text(f"{name}\n")
    for paths in ([name], ["x.paths"]):
        assert expand(tree, paths) == [name]
        assert len(read(tree, plan_extents(tree, paths))) == 99


def tarred(data: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        about = tarfile.TarInfo("a.jsonl")
        about.size = len(data)
        archive.addfile(about, io.BytesIO(data))
    return out.getvalue()


def zipped(data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:  # stored: the lines stand in it as they are
        archive.writestr("a.jsonl", data)
    return out.getvalue()


def columns(data: bytes) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"text": data.decode().splitlines()}), out)
    return out.getvalue()


@pytest.mark.parametrize("codec", ["plain", "gzip", "zstd", "bzip2", "xz"])
@pytest.mark.parametrize(
    ("pack", "said"),
    [
        (tarred, "a tar archive"),
        (zipped, "a ZIP archive"),
        (gzip.compress, "gzip inside"),
        (zstandard.compress, "zstd inside"),
        (bz2.compress, "bzip2 inside"),
        (lzma.compress, "xz inside"),
        (columns, "Parquet inside"),
    ],
)
def test_archives_and_twice_packed_files_are_one_fault_that_says_so(make, pack, said, codec):
    if codec == "plain" and said.endswith("inside"):
        return  # packed once
    got = make.read(make.pack(pack(LINES), codec))
    assert (got.records, got.reasons) == ([], ["unknown_format"])
    assert said in got.losses[0].detail


def test_last_line_with_more_behind_its_value_is_not_called_cut(make):
    assert make.read(LINES.replace(b"\n", b"\r")).reasons == ["bad_json"]
    assert make.read(b'{"text": "a"}{"text": "b"}').reasons == ["bad_json"]
    assert make.read(b'{"text": "a"}\n{"text": "b').reasons == ["truncated_stream"]


def test_expand_leaves_folders_of_runs_out_unless_they_are_named(tree):
    run = tree / "b" / "out"
    (run / "corpus").mkdir(parents=True)
    for name in ("run.json", "recipe.yaml", "corpus/x.jsonl"):
        (run / name).write_text("{}")
    said: list[str] = []
    for path in ("**/*.jsonl", "b", "b/*", "*"):
        assert not any("out/" in f for f in expand(tree, [path, "a.jsonl"], said.append)), path
    assert len(said) == 4
    assert "b/out/" in said[0]
    for path in ("b/out/corpus", "b/out/corpus/*.jsonl", "b/out/corpus/x.jsonl"):
        assert expand(tree, [path], said.append) == ["b/out/corpus/x.jsonl"]
    assert len(said) == 4


@pytest.mark.parametrize("path", ["", "  "])
def test_expand_empty_path_is_wrong_use(tree, path):
    with pytest.raises(UsageError, match="empty path"):
        expand(tree, [path])
