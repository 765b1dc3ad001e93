"""From what a recipe names to files: paths, folders, globs, lists of paths, addresses.

    web/*.warc.gz                           under the recipe's root
    s3://bucket/crawl/                      a folder, glob or object of any store that fsspec knows
    warc.paths.gz                           a list, one path or address a line, as Common Crawl's
    s3://commoncrawl/.../warc.paths.gz      a list in a store: its lines start at the bucket

Folders of runs below what is named are left out, with a word: a pattern must not read what the run
wrote a moment ago. Who names a folder in a run (`run/corpus`) gets it.

A list acts when it is named, itself or by a pattern that ends as lists do; one that merely lies in
a folder is data like the rest. Its lines are relative to the root, or to the bucket that it is in.
Sizes of the files of a list are asked for 16 at a time.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from ...documents.errors import UsageError, did_you_mean
from .storage import Stat, filesystem, is_address, key_of, open_file, persist, stat_file, stat_of

_GLOB = re.compile(r"[*?\[]")
_LIST = (".paths", ".paths.gz")
_RUN = ("run.json", "recipe.yaml")  # what every folder of a run has
_ASKED = 16  # files whose size is asked for at the same time


def expand(root: Path, paths: Sequence[str], say: Callable[[str], None] | None = None) -> list[str]:
    """Files that `paths` name, sorted, each once; a file of 0 bytes is one of them, for the books.

    An empty list means that all is there but without a byte: the caller's to refuse. Folders are
    read to the bottom, links to folders followed, without names that start with a dot and without
    folders of runs, each of which `say` gets a line about. UsageError
    names a path that does not exist, a pattern that matches nothing, one that leaves the root, a
    folder that may not be read, and what is no file: a pipe, a device, a link to nothing.
    """
    found: dict[str, int] = {}
    runs: dict[Path, bool] = {}
    base = root.resolve()
    for path in paths:
        for file, size in _named(base, path, runs):
            if path.endswith(_LIST) and file.endswith(_LIST):
                found.update(_listed(base, file))
            else:
                found[file] = size
    for folder in sorted(folder for folder, is_run in runs.items() if is_run):
        if say is not None:
            name = folder.relative_to(base).as_posix()
            say(f"{name}/ is a run's own folder and left out; name a folder in it to read that")
    return sorted(found) if any(found.values()) else []


def _named(base: Path, path: str, runs: dict[Path, bool]) -> Iterator[tuple[str, int]]:
    if is_address(path):
        yield from _addressed(path)
    else:
        for file in _matches(base, path, runs):
            yield file, (base / file).stat().st_size


def _addressed(address: str) -> Iterator[tuple[str, int]]:
    """Objects that an address names: itself, all below it, or all that match."""
    system, path = filesystem(address)
    system.invalidate_cache()
    try:
        info = persist(address, lambda: system.info(path))
    except FileNotFoundError:
        info = {}
    if info.get("type") == "file" and not address.endswith("/"):
        full = system.unstrip_protocol(path)  # one name for one object, however it was given
        yield full, stat_of(info, full).size
        return
    pattern = _GLOB.search(address.partition("://")[2]) is not None
    if info:
        hits = persist(address, lambda: system.find(path, detail=True))
    elif pattern:
        hits = _globbed(system, path, address)
    else:
        hits = {}
    if not hits:
        msg = f"{'pattern' if pattern else 'address'} {address!r} names nothing that is there"
        raise UsageError(msg)
    root = re.split(_GLOB, path)[0].rpartition("/")[0] if pattern else path
    for name, about in hits.items():
        below = name.removeprefix(root)
        marker = about.get("type") == "directory" or name.endswith("/")  # of a folder, 0 bytes
        if not marker and not any(part.startswith(".") for part in below.split("/")):
            full = system.unstrip_protocol(name)
            yield full, stat_of(about, full).size


def _globbed(system: Any, path: str, address: str) -> Mapping[str, Mapping[str, Any]]:
    hits: dict[str, Mapping[str, Any]] = {}
    for name, about in persist(address, lambda: system.glob(path, detail=True)).items():
        if about.get("type") == "directory":
            hits |= persist(address, partial(system.find, name, detail=True))
        else:
            hits[name] = about
    return hits


def _listed(base: Path, file: str) -> Iterator[tuple[str, int]]:
    """The files that a list names."""
    names = []
    for number, line in enumerate(_lines(base, file), 1):
        name = line.strip()
        if not name or name.startswith("#"):
            continue
        if not is_address(name) and is_address(file):
            name = f"{file.removesuffix(key_of(file))}{name.lstrip('/')}"
        elif not is_address(name):
            name = _relative(base, name)
        if is_address(name):
            system, path = filesystem(name)
            name = system.unstrip_protocol(path)
        names.append((number, name))

    def ask(entry: tuple[int, str]) -> Stat:
        number, name = entry
        try:
            found = stat_file(base, name)
            if not is_address(name) and not (base / name).is_file():
                raise FileNotFoundError
        except OSError as error:
            msg = f"{file}, line {number}: {name!r} is not there; a list names single files"
            raise UsageError(msg) from error
        return found

    with ThreadPoolExecutor(_ASKED) as pool:
        for (_, name), stat in zip(names, pool.map(ask, names), strict=True):
            yield name, stat.size


def _lines(base: Path, file: str) -> list[str]:
    with closing(open_file(base, file)) as ranges:
        data = ranges.read(0, ranges.size)
    try:
        if data.startswith(b"\x1f\x8b"):
            data = gzip.decompress(data)
        return data.decode("utf-8-sig").splitlines()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        msg = f"{file}: cannot be read as a list of paths: {error}"
        raise UsageError(msg) from error


def _relative(base: Path, path: str) -> str:
    """The path as it stands under the root; UsageError when it does not."""
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
    return path


def _is_run(folder: Path, runs: dict[Path, bool]) -> bool:
    if folder not in runs:
        runs[folder] = all((folder / name).is_file() for name in _RUN)
    return runs[folder]


def _matches(base: Path, path: str, runs: dict[Path, bool]) -> Iterator[str]:
    if not path.strip():
        msg = f"an empty path {path!r} names nothing; `.` is the root {str(base)!r} itself"
        raise UsageError(msg)
    path = _relative(base, path)
    target = base / path
    try:
        there = target.exists() or target.is_symlink()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        msg = f"path {path[:200]!r} cannot be looked up: {why}"
        raise UsageError(msg) from error
    if there:
        yield from _files(base, target, runs)
        return
    if not _GLOB.search(path):
        near = sorted(p.name for p in target.parent.iterdir()) if target.parent.is_dir() else []
        msg = f"no file or folder {path!r} under the root {str(base)!r}"
        raise UsageError(msg + (did_you_mean(target.name, near[:200]) if near else ""))
    hits = sorted(base.glob(path))
    if not hits:
        msg = f"pattern {path!r} matches nothing under the root {str(base)!r}"
        raise UsageError(msg)
    named = base / re.split(_GLOB, path)[0].rpartition("/")[0]
    for hit in hits:
        folders = (hit, *hit.parents) if hit.is_dir() else hit.parents
        between = (p for p in folders if p != named and p.is_relative_to(named))
        if not any(_is_run(p, runs) for p in between):
            yield from _files(base, hit, runs)


def _files(base: Path, target: Path, runs: dict[Path, bool]) -> Iterator[str]:
    name = target.relative_to(base).as_posix()
    if target.is_dir():
        yield from _below(base, target, (), runs)
        return
    try:
        name.encode()
    except UnicodeEncodeError as error:
        msg = f"the file name {name!r} is not UTF-8: rename it"
        raise UsageError(msg) from error
    if not target.is_file():
        what = (
            "a link that leads nowhere" if target.is_symlink() else "no file but a pipe or device"
        )
        raise UsageError(f"{name!r} is {what}: mend it, remove it, or name the files beside it")
    yield name


def _below(
    base: Path, folder: Path, above: tuple[tuple[int, int], ...], runs: dict[Path, bool]
) -> Iterator[str]:
    """All files below `folder`. A link back to one `above` ends there: that one is read."""
    about = folder.stat()
    here = about.st_dev, about.st_ino
    if here in above:
        return
    try:
        names = sorted(n for n in os.listdir(folder) if not n.startswith("."))  # noqa: PTH208 - names
    except OSError as error:
        name = folder.relative_to(base).as_posix()
        raise UsageError(f"folder {name!r} cannot be read: {error.strerror}") from error
    for name in names:
        entry = folder / name
        if not entry.is_dir():
            yield from _files(base, entry, runs)
        elif not _is_run(entry, runs):
            yield from _below(base, entry, (*above, here), runs)
