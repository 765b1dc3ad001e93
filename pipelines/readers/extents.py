"""Which bytes of which files make a shard: extents of whole records, fixed before any work.

Small files share a shard, large ones are split where a record provably starts:

    plain JSONL   after a newline
    zstd          at a frame, found by walking block headers (3 bytes a block, nothing decoded)
    gzip          at a member that a chain of members with sound checksums, longer than 64 KiB,
                  runs into. An archive inside an archive cannot fake such a chain: deflate stores
                  bytes as they are in blocks of at most 65,535, with 5 bytes of header between.
    Parquet       at a row group

and only where the bytes before end a line or a WARC record. A plan reads about 1 MiB per split,
whatever the size of the file. Anything else (plain WARC, bzip2, xz, one member, lines that reach
over members) is one extent.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath

from ...documents.errors import UsageError, did_you_mean

_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True, order=True)
class Extent:
    """Stored bytes [start, end) of `file`, which is relative to the root, with `/`."""

    file: str
    start: int
    end: int


def expand(root: Path, paths: Sequence[str]) -> list[str]:
    """Files with bytes that `paths` (files, folders, globs) name, sorted, each once.

    An empty list means that all is there but without a byte: the caller's to refuse. Folders are
    read to the bottom, without names that start with a dot. UsageError names a path that does not
    exist, a pattern that matches nothing, or one that leaves the root.
    """
    found: set[str] = set()
    base = root.resolve()
    for path in paths:
        found.update(_matches(base, path))
    return sorted(f for f in found if (base / f).stat().st_size)


def _matches(base: Path, path: str) -> Iterator[str]:
    given = Path(path)
    if given.is_absolute():
        try:
            path = given.relative_to(base).as_posix()
        except ValueError as error:
            msg = f"path {path!r} is outside the root {str(base)!r}; paths are relative to the root"
            raise UsageError(msg) from error
    if ".." in PurePosixPath(path).parts:
        msg = f"path {path!r} leaves the root {str(base)!r}; raise the root instead"
        raise UsageError(msg)
    target = base / path
    if target.exists():
        yield from _files(base, target)
        return
    if not _GLOB.search(path):
        near = sorted(p.name for p in target.parent.iterdir()) if target.parent.is_dir() else []
        msg = f"no file or folder {path!r} under the root {str(base)!r}"
        raise UsageError(msg + (did_you_mean(target.name, near[:200]) if near else ""))
    hits = sorted(base.glob(path))
    if not hits:
        msg = f"pattern {path!r} matches nothing under the root {str(base)!r}"
        raise UsageError(msg)
    for hit in hits:
        yield from _files(base, hit)


def _files(base: Path, target: Path) -> Iterator[str]:
    if target.is_dir():
        for folder, names, files in os.walk(target, followlinks=False):
            names[:] = sorted(n for n in names if not n.startswith("."))
            for name in sorted(files):
                if not name.startswith("."):
                    yield from _files(base, Path(folder) / name)
    elif target.is_file():
        name = target.relative_to(base).as_posix()
        try:
            name.encode()
        except UnicodeEncodeError as error:
            msg = f"the file name {name!r} is not UTF-8: rename it"
            raise UsageError(msg) from error
        yield name


def plan_extents(
    root: Path, paths: Sequence[str], *, target_bytes: int = 256 << 20
) -> list[list[Extent]]:
    """Shards of about `target_bytes` stored bytes; [] when no file has a byte.

    The order of `paths` never matters. Raises as `expand` does.
    """
    return group_extents(root, expand(root, paths), target_bytes=target_bytes)


def group_extents(root: Path, files: Sequence[str], *, target_bytes: int) -> list[list[Extent]]:
    """Split and group `files` (relative to `root`) in sorted order."""
    if target_bytes < 1:
        msg = f"shards need at least 1 byte, found {target_bytes}"
        raise UsageError(msg)
    shards: list[list[Extent]] = []
    held: list[Extent] = []
    size = 0
    for file in sorted(set(files)):
        for extent in split_file(root, file, target_bytes):
            bytes_ = extent.end - extent.start
            if held and size + bytes_ > target_bytes:
                shards.append(held)
                held, size = [], 0
            held.append(extent)
            size += bytes_
    return [*shards, held] if held else shards


def split_file(root: Path, file: str, target_bytes: int) -> list[Extent]:
    """Extents of one file, in order, together all of its bytes; none for an empty file."""
    from .splits import record_starts

    path = root / file
    size = path.stat().st_size
    if size == 0:
        return []
    cuts = [0]
    if size > target_bytes:
        # A last piece under half a target is not worth a shard.
        wanted = range(target_bytes, size - target_bytes // 2 + 1, target_bytes)
        for cut in record_starts(path, size, list(wanted)):
            if cut > cuts[-1]:
                cuts.append(cut)
    cuts.append(size)
    return [Extent(file, a, b) for a, b in pairwise(cuts)]


def nearest(starts: Sequence[int], wanted: Sequence[int]) -> list[int]:
    """For each wanted place the first of the ascending `starts` at or after it."""
    hits = (bisect_left(starts, w) for w in wanted)
    return [starts[h] for h in hits if h < len(starts)]
