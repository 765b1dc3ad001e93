"""The manifest: the shards of a run, fixed before any work.

A shard is one or more extents (whole records) of one source, named after the bytes that it holds:
`<source>-<digest>`, so neither paths, nor the order of a listing, nor the machine enter a name. A
repeated input of a source is booked `duplicate_input` and read once. Shards that are there stay as
they are when files are added; new files become new shards.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..documents.errors import UsageError
from ..documents.fingerprint import canonical, digest
from .readers.extents import Extent, group_extents
from .readers.inputs import expand
from .readers.storage import Stat, open_file, stat_file
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


def make_manifest(recipe: Recipe, store: Store) -> tuple[Shard, ...]:
    """Find, hash and group the inputs of all sources, and write `manifest.jsonl`."""
    seen = _Seen(store)
    old = {s.name: s for s in read_manifest(store)}
    shards: list[Shard] = []
    for source in recipe.sources:
        files = expand(recipe.root, source.paths)
        if not files:
            msg = f"source {source.name!r}: no files with bytes in {list(source.paths)}"
            raise UsageError(msg)
        shards += _source_shards(recipe, source, files, seen, old)
    seen.save()
    lines = b"".join(canonical(asdict(s)) + b"\n" for s in shards)
    current = store.path(NAME)
    if not (current.is_file() and current.read_bytes() == lines and store.present(NAME)):
        with store.writing(NAME) as temporary:
            temporary.write_bytes(lines)
            store.commit(temporary, NAME, inputs={}, fingerprint=digest(["manifest", 1]))
    return tuple(shards)


def read_manifest(store: Store) -> tuple[Shard, ...]:
    """The shards of a run as written, in order; empty when there is no manifest."""
    try:
        lines = store.path(NAME).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return ()
    return tuple(_shard(json.loads(line)) for line in lines)


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


class _Seen:
    """Digests of extents, remembered by (file, size, version): an input is hashed once.

    An object whose store gives an etag is not read for it: its digest is that of size and etag,
    and of the address too unless the etag is known to be made of the bytes (S3, GCS).
    """

    def __init__(self, store: Store) -> None:
        self._path = store.path(_SEEN)
        self._stats: dict[str, Stat] = {}
        try:
            self._known: dict[str, list[Any]] = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            self._known = {}

    def stat(self, root: Path, file: str) -> Stat:
        """Size and version, asked for once."""
        if file not in self._stats:
            self._stats[file] = stat_file(root, file)
        return self._stats[file]

    def digest(self, root: Path, extent: Extent) -> str:
        stat = self.stat(root, extent.file)
        if stat.tagged:
            place = "" if stat.content else extent.file
            return digest([stat.size, stat.version, place, extent.start, extent.end])
        key = f"{extent.file}:{extent.start}-{extent.end}"
        stamp = [stat.size, stat.version]
        held = self._known.get(key)
        if held and held[:2] == stamp and stat.version:
            return str(held[2])
        hasher = hashlib.blake2b(digest_size=16)
        with closing(open_file(root, extent.file)) as file:
            at = extent.start
            while at < extent.end:
                chunk = file.read(at, min(extent.end - at, file.sequential))
                if not chunk:
                    break
                hasher.update(chunk)
                at += len(chunk)
        self._known[key] = [*stamp, hasher.hexdigest()]
        return hasher.hexdigest()

    def save(self) -> None:
        write_whole(self._path, canonical(self._known), durable=False)
