"""The manifest: the shards of a run, fixed before any work.

A shard is one or more extents (whole records) of one source, named after the bytes that it holds:
`<source>-<digest>`, so neither paths, nor the order of a listing, nor the machine enter a name. A
repeated input of a source is booked `duplicate_input` and read once. Shards that are there stay as
they are when files are added; new files become new shards.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..documents.errors import StopError, UsageError
from ..documents.fingerprint import canonical, digest
from .readers.extents import Extent, group_extents
from .readers.inputs import expand
from .readers.storage import Ranges, Stat, open_file, stat_file
from .recipe import Recipe, Source
from .store import Store, write_whole

NAME = "manifest.jsonl"
_SEEN = "inputs.seen"  # digests by size and version, to hash an input once


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """Some extents of one source; the unit of work."""

    name: str
    source: str
    extents: tuple[Extent, ...]
    digests: tuple[str, ...]  # of each extent's stored bytes
    duplicate_of: str | None = None  # shard that holds the same bytes; this one is only booked

    @property
    def stored_bytes(self) -> int:
        """Bytes as stored."""
        return sum(e.end - e.start for e in self.extents)

    def place(self, locator: Mapping[str, Any]) -> dict[str, Any]:
        """A document's locator (extent, offset in it) as a file and an offset in that."""
        extent = self.extents[int(locator["extent"])]
        rest = {k: v for k, v in locator.items() if k not in {"extent", "offset"}}
        return {"file": extent.file, "offset": extent.start + locator["offset"], **rest}


def make_manifest(
    recipe: Recipe, store: Store, inputs: Mapping[str, list[str]]
) -> tuple[Shard, ...]:
    """Hash and group the inputs of all sources (`find_inputs`), and write `manifest.jsonl`."""
    seen = _Seen(store)
    old = {s.name: s for s in read_manifest(store)}
    shards: list[Shard] = []
    for source in recipe.sources:
        shards += _source_shards(recipe, source, inputs[source.name], seen, old)
    seen.save()
    lines = b"".join(canonical(asdict(s)) + b"\n" for s in shards)
    current = store.path(NAME)
    if not (current.is_file() and current.read_bytes() == lines and store.present(NAME)):
        with store.writing(NAME) as temporary:
            temporary.write_bytes(lines)
            store.commit(temporary, NAME, inputs={}, fingerprint=digest(["manifest", 1]))
    return tuple(shards)


def find_inputs(recipe: Recipe, say: Callable[[str], None] | None = None) -> dict[str, list[str]]:
    """The files of each source; UsageError names a source that has none."""
    found = {}
    for source in recipe.sources:
        try:
            files = expand(recipe.root, source.paths, say)
        except UsageError as error:
            msg = f"sources.{source.name}.paths: {error}"
            raise UsageError(msg) from error
        if not files:
            msg = f"sources.{source.name}.paths: no files with bytes in {list(source.paths)}"
            raise UsageError(msg)
        found[source.name] = files
    return found


def read_manifest(store: Store) -> tuple[Shard, ...]:
    """The shards of a run as written, in order; none without a manifest, StopError when torn."""
    try:
        lines = store.path(NAME).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return ()
    except UnicodeDecodeError as error:
        msg = f"{NAME} is not text ({error.reason}); give the same `run` command again"
        raise StopError(msg) from error
    try:
        return tuple(_shard(json.loads(line)) for line in lines)
    except (ValueError, KeyError, TypeError) as error:
        msg = f"{NAME} is torn ({error}); give the same `run` command again"
        raise StopError(msg) from error


def _shard(raw: Mapping[str, Any]) -> Shard:
    extents = tuple(Extent(**e) for e in raw["extents"])
    return Shard(**{**raw, "extents": extents, "digests": tuple(raw["digests"])})


def _kept(recipe: Recipe, mine: list[Shard], files: list[str], seen: _Seen) -> list[Shard]:
    """The shards that may stay: every file in them is listed, unchanged, and whole within them.

    A file that grew or changed in one place is planned again as a whole, with all that shares a
    shard with it: nothing of it may be left out, or read twice.
    """
    covered: dict[str, int] = {}
    sound = set(files)
    for shard in mine:
        for extent, value in zip(shard.extents, shard.digests, strict=True):
            covered[extent.file] = covered.get(extent.file, 0) + extent.end - extent.start
            if extent.file in sound and seen.digest(recipe.root, extent) != value:
                sound.discard(extent.file)
    for file, size in covered.items():
        if file in sound and size != seen.stat(recipe.root, file).size:
            sound.discard(file)
    kept = mine
    while True:
        names = {s.name for s in kept if s.duplicate_of is None}
        left = [
            s
            for s in kept
            if all(e.file in sound for e in s.extents) and s.duplicate_of in {None, *names}
        ]
        if len(left) == len(kept):
            return kept
        sound -= {e.file for s in kept if s not in left for e in s.extents}
        kept = left


def _source_shards(
    recipe: Recipe, of: Source, files: list[str], seen: _Seen, old: Mapping[str, Shard]
) -> list[Shard]:
    source = of.name
    whole = of.reader.get("format") is not None  # a file is one document
    kept = _kept(recipe, [s for s in old.values() if s.source == source], files, seen)
    covered = {e.file for s in kept for e in s.extents}
    by_digest = {d: s.name for s in kept for d in s.digests if s.duplicate_of is None}
    fresh: list[Shard] = []
    left = [f for f in files if f not in covered]
    for group in group_extents(recipe.root, left, target_bytes=recipe.shard_bytes, split=not whole):
        unique: list[tuple[Extent, str]] = []
        repeated: list[tuple[Extent, str]] = []
        own: set[str] = set()
        for extent in group:
            value = seen.digest(recipe.root, extent)
            (repeated if value in by_digest or value in own else unique).append((extent, value))
            own.add(value)
        name = f"{source}-{digest([d for _, d in unique])[:12]}"
        if unique:
            fresh.append(_named(name, source, unique))
            by_digest |= {d: name for _, d in unique}
        fresh += [
            Shard(
                name=f"{source}-{digest([d, e.file, e.start])[:12]}",
                source=source,
                extents=(e,),
                digests=(d,),
                duplicate_of=by_digest[d],
            )
            for e, d in repeated
        ]
    return kept + fresh


def _named(name: str, source: str, unique: list[tuple[Extent, str]]) -> Shard:
    extents, digests = zip(*unique, strict=True)
    return Shard(name=name, source=source, extents=extents, digests=digests)


def extent_digest(root: Path, extent: Extent, stat: Stat | None = None) -> str:
    """BLAKE2b-128 of an extent's stored bytes, and of what it takes to decode them.

    A Parquet row group means nothing without the footer: equal pages under another schema are
    other documents. An object whose store gives an etag is not read for it: its digest is that of
    size and etag, and of the address too unless the etag is known to be made of the bytes (S3).
    """
    stat = stat or stat_file(root, extent.file)
    if stat.tagged:
        place = "" if stat.content else extent.file
        return digest([stat.size, stat.version, place, extent.start, extent.end])
    hasher = hashlib.blake2b(digest_size=16)
    with closing(open_file(root, extent.file)) as file:
        hasher.update(_footer(file))
        at = extent.start
        while at < extent.end:
            chunk = file.read(at, min(extent.end - at, file.sequential))
            if not chunk:
                break
            hasher.update(chunk)
            at += len(chunk)
    return hasher.hexdigest()


def _footer(file: Ranges) -> bytes:
    """The footer of a Parquet file; empty for anything else."""
    if file.size < 12 or file.read(0, 4) != b"PAR1":
        return b""
    tail = file.read(file.size - 8, 8)
    size = int.from_bytes(tail[:4], "little")
    whole = tail[4:] == b"PAR1" and size + 12 <= file.size
    return file.read(file.size - 8 - size, size) if whole else b""


class _Seen:
    """Digests of extents, remembered by what a change of the file changes: hashed once.

    A note of the driver's, no proof: every shard is hashed again when it is read.
    An object whose store gives an etag is not read for it (`extent_digest`).
    """

    def __init__(self, store: Store) -> None:
        self._path = store.path(_SEEN)
        self._known: dict[str, list[Any]] = {}
        self._stats: dict[str, Stat] = {}
        try:
            held = json.loads(self._path.read_bytes())
            if held["self"] == digest(held["known"]):
                self._known = held["known"]
        except (OSError, ValueError, KeyError, TypeError):
            return

    def stat(self, root: Path, file: str) -> Stat:
        """Size and version, asked for once."""
        if file not in self._stats:
            self._stats[file] = stat_file(root, file)
        return self._stats[file]

    def digest(self, root: Path, extent: Extent) -> str:
        stat = self.stat(root, extent.file)
        if stat.tagged or not stat.version:
            return extent_digest(root, extent, stat)
        key = f"{extent.file}:{extent.start}-{extent.end}"
        stamp = [stat.size, stat.version]
        held = self._known.get(key)
        if held and held[:-1] == stamp:
            return str(held[-1])
        value = extent_digest(root, extent, stat)
        self._known[key] = [*stamp, value]
        return value

    def save(self) -> None:
        body = {"known": self._known, "self": digest(self._known)}
        write_whole(self._path, canonical(body), durable=False)
