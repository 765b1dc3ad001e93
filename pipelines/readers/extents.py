"""Which bytes of which files make a shard: extents of whole records, fixed before any work.

Small files share a shard, large ones are split where a record provably starts:

    plain JSONL   after a newline
    zstd          at a frame, found by walking block headers (3 bytes a block, nothing decoded)
    gzip          at a member that a chain of members with sound checksums, longer than 64 KiB,
                  runs into. An archive inside an archive cannot fake such a chain: deflate stores
                  bytes as they are in blocks of at most 65,535, with 5 bytes of header between.
    Parquet       at a row group

and only where the bytes before end a line, a WARC or an ARC record. A plan reads about 1 MiB per
split, whatever the size of the file. Anything else (plain WARC and ARC, bzip2, xz, one member,
lines that reach over members, a file that is one document) is one extent.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from ...documents.errors import UsageError
from .inputs import expand
from .storage import open_file, stat_file


@dataclass(frozen=True, slots=True, order=True)
class Extent:
    """Stored bytes [start, end) of `file`: relative to the root, with `/`, or an address."""

    file: str
    start: int
    end: int


def plan_extents(
    root: Path, paths: Sequence[str], *, target_bytes: int = 256 << 20
) -> list[list[Extent]]:
    """Shards of about `target_bytes` stored bytes; [] when no file has a byte.

    The order of `paths` never matters. Raises as `expand` does.
    """
    return group_extents(root, expand(root, paths), target_bytes=target_bytes)


def group_extents(
    root: Path, files: Sequence[str], *, target_bytes: int, split: bool = True
) -> list[list[Extent]]:
    """Group `files` (relative to `root`, or addresses) in sorted order, large ones `split`."""
    if target_bytes < 1:
        msg = f"shards need at least 1 byte, found {target_bytes}"
        raise UsageError(msg)
    shards: list[list[Extent]] = []
    held: list[Extent] = []
    size = 0
    for file in sorted(set(files)):
        for extent in split_file(root, file, target_bytes if split else None):
            bytes_ = extent.end - extent.start
            if held and size + bytes_ > target_bytes:
                shards.append(held)
                held, size = [], 0
            held.append(extent)
            size += bytes_
    return [*shards, held] if held else shards


def split_file(root: Path, file: str, target_bytes: int | None) -> list[Extent]:
    """Extents of one file, in order, together all of its bytes; one of 0 bytes if it is empty."""
    from .splits import record_starts

    size = stat_file(root, file).size
    cuts = [0]
    if target_bytes is not None and size > target_bytes:
        # A last piece under half a target is not worth a shard.
        wanted = range(target_bytes, size - target_bytes // 2 + 1, target_bytes)
        with closing(open_file(root, file)) as ranges:
            for cut in record_starts(ranges, file, list(wanted)):
                if cut > cuts[-1]:
                    cuts.append(cut)
    cuts.append(size)
    return [Extent(file, a, b) for a, b in pairwise(cuts)]


def nearest(starts: Sequence[int], wanted: Sequence[int]) -> list[int]:
    """For each wanted place the first of the ascending `starts` at or after it."""
    hits = (bisect_left(starts, w) for w in wanted)
    return [starts[h] for h in hits if h < len(starts)]
