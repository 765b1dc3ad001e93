"""Files that stages read: where they are, what is in them, and how they count in fingerprints."""

from __future__ import annotations

import gzip
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import zstandard

from gristmill.documents.errors import UsageError
from gristmill.documents.files import as_paths, files_field, read_lines
from gristmill.documents.fingerprint import measure_fingerprint
from gristmill.pipelines.registry import build


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A stage with a list."""

    name: ClassVar[str] = "listed"
    revision: ClassVar[int] = 1
    reasons: ClassVar[tuple[str, ...]] = ("keep",)
    verdict_fields: ClassVar[frozenset[str]] = frozenset()
    lists: Any = files_field()


def test_lines_plain_and_compressed_read_alike(tmp_path):
    text = "﻿eins\n\n  zwei\r\ndrei".encode()
    for name, raw in (
        ("a.txt", text),
        ("a.gz", gzip.compress(text[:9], mtime=0) + gzip.compress(text[9:], mtime=0)),
        ("a.zst", zstandard.compress(text[:9]) + zstandard.compress(text[9:])),
    ):
        (tmp_path / name).write_bytes(raw)
        assert list(read_lines(tmp_path / name, "x")) == [(1, "eins"), (3, "zwei"), (4, "drei")]


@pytest.mark.parametrize(
    ("name", "raw", "said"),
    [
        ("a.txt", b"", "is empty"),
        ("a.txt", b" \n\n", "is empty"),
        ("a.txt", b"good\n\xff\xfe\n", r"a.txt:2: not UTF-8"),
        ("a.txt", b"good\nno\x00good\n", r"a.txt:2: a NUL byte"),
        ("a.gz", b"no gzip", "cannot be read"),
        ("a.gz", gzip.compress(b"word\n" * 999, mtime=0)[:-9], "cannot be read"),
        ("a.zst", b"no zstd", "cannot be read"),
    ],
)
def test_lines_of_a_bad_file_name_it(tmp_path, name, raw, said):
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(UsageError, match=said):
        list(read_lines(tmp_path / name, "stage.lists"))


def test_paths_relative_to_the_recipe_and_missing_ones_named(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    assert as_paths("a.txt", "w", tmp_path) == (tmp_path / "a.txt",)
    stage = build(Listed, {"lists": ["a.txt"]}, "stages[0].listed", tmp_path)
    assert stage.lists == (tmp_path / "a.txt",)
    with pytest.raises(UsageError, match=r"stages\[0\].listed.lists: no file or folder .*b.txt"):
        build(Listed, {"lists": "b.txt"}, "stages[0].listed", tmp_path)
    with pytest.raises(UsageError, match="expected a path"):
        build(Listed, {"lists": [3]}, "w", tmp_path)


def test_fingerprint_follows_contents_and_not_places(tmp_path):
    def of(path: Path) -> str:
        return measure_fingerprint(Listed(lists=(path,)))

    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        (folder / "adult").mkdir(parents=True)
        (folder / "adult" / "domains").write_text("a.example\n")
    assert of(one / "adult" / "domains") == of(two / "adult" / "domains")
    assert of(one) == of(two)
    before = of(two)
    (two / "adult" / "domains").write_text("b.example\n")
    os.utime(two / "adult" / "domains", ns=(1, 1))  # equal in size: told by the time of change
    assert of(two) != before
