"""The run folder: what counts as done, and what a crash or a flipped byte leaves."""

from __future__ import annotations

import json

import pytest

from gristmill.documents.errors import DamagedError, FormatError, StopError
from gristmill.pipelines.store import Store


def make(store, name="a/x.bin", content=b"hello", inputs=None, fingerprint="f1"):
    with store.writing(name) as path:
        path.write_bytes(content)
        return store.commit(path, name, inputs=inputs or {"in": "d1"}, fingerprint=fingerprint)


def test_valid_same_inputs_and_fingerprint_only(tmp_path):
    store = Store(tmp_path)
    assert not store.valid("a/x.bin", {"in": "d1"}, "f1")
    make(store)
    assert store.valid("a/x.bin", {"in": "d1"}, "f1")
    assert not store.valid("a/x.bin", {"in": "d2"}, "f1")
    assert not store.valid("a/x.bin", {"in": "d1"}, "f2")
    assert not store.valid("a/x.bin", {}, "f1")


def test_sidecar_is_deterministic_and_run_facts_stand_apart(tmp_path):
    one, two = Store(tmp_path / "1"), Store(tmp_path / "2")
    make(one)
    make(two)
    sides = [(s.root / "a/x.bin.json").read_bytes() for s in (one, two)]
    assert sides[0] == sides[1]
    assert one.run_facts("a/x.bin") == {}


@pytest.mark.parametrize("damage", ["truncate", "missing", "no sidecar", "torn sidecar"])
def test_valid_damaged_output_is_not_done(tmp_path, damage):
    store = Store(tmp_path)
    make(store)
    path, side = tmp_path / "a/x.bin", tmp_path / "a/x.bin.json"
    if damage == "truncate":
        path.write_bytes(b"hell")
    elif damage == "missing":
        path.unlink()
    elif damage == "no sidecar":
        side.unlink()
    else:
        side.write_bytes(side.read_bytes()[:-9])
    assert not Store(tmp_path).valid("a/x.bin", {"in": "d1"}, "f1")
    with pytest.raises(StopError, match=r"a/x\.bin is missing"):
        Store(tmp_path).require("a/x.bin")


def test_sidecar_any_flipped_byte_is_not_trusted(tmp_path):
    store = Store(tmp_path)
    make(store)
    side = tmp_path / "a/x.bin.json"
    good = side.read_bytes()
    for at in range(len(good)):
        side.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        try:
            assert Store(tmp_path).sidecar("a/x.bin") is None, good[at - 5 : at + 5]
        except FormatError:
            assert (
                b'"format"' in good[at - 12 : at]
            )  # the format number itself: an error of its own


def test_check_bytes_flipped_byte_of_same_size_is_named(tmp_path):
    store = Store(tmp_path)
    make(store)
    store.check_bytes("a/x.bin")
    (tmp_path / "a/x.bin").write_bytes(b"hellp")
    assert store.valid("a/x.bin", {"in": "d1"}, "f1")  # `run` trusts sizes; `verify` does not
    with pytest.raises(DamagedError, match=r"a/x\.bin: digest"):
        store.check_bytes("a/x.bin")


def test_writing_error_leaves_nothing(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(RuntimeError), store.writing("a/x.bin") as path:
        path.write_bytes(b"half")
        raise RuntimeError
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_commit_killed_between_file_and_sidecar_is_not_done(tmp_path, monkeypatch):
    store = Store(tmp_path)
    make(store, content=b"hello", fingerprint="f1")

    def killed(path, content, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("gristmill.pipelines.store.write_whole", killed)
    with pytest.raises(KeyboardInterrupt):
        make(store, content=b"jelly", fingerprint="f2")
    # The old sidecar would call the new bytes valid for f1: it must be gone.
    assert (tmp_path / "a/x.bin").read_bytes() == b"jelly"
    assert not Store(tmp_path).valid("a/x.bin", {"in": "d1"}, "f1")


def test_sidecar_unknown_format_is_an_error(tmp_path):
    store = Store(tmp_path)
    make(store)
    side = tmp_path / "a/x.bin.json"
    side.write_text(json.dumps({**json.loads(side.read_text()), "format": 99}))
    with pytest.raises(FormatError, match="format 99"):
        Store(tmp_path).sidecar("a/x.bin")
