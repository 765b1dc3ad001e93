"""Block lists as sorted 64-bit keys: 8 bytes an entry, where a set of Python's takes over 100.

Read are hosts files (`0.0.0.0 host`), one host or URL a line, `||host^` of ad blockers, hex keys
(`_hosts.key_of`), and folders of categories as the University of Toulouse publishes them: files
called `domains` and `urls`, plain or `.gz`. A list where more than a tenth of the lines is not what
it should be is refused; fewer are passed over and said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np

from ..documents.errors import UsageError
from ..documents.files import read_lines
from ..documents.fingerprint import path_digest
from ._hosts import host_of, key_of

_SIMPLE = re.compile(r"(?=.{4,253}$)[a-z0-9_](?:[a-z0-9_-]*\.)+[a-z0-9-]{2,63}")
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}|[0-9a-fA-F:]*::?[0-9a-fA-F:]*")
_ADBLOCK = re.compile(r"\|\|([^/^*|]+)\^(?:\$[\w,~=.|-]*)?")
_LOCAL = re.compile(r"localhost(\.localdomain)?\d?|broadcasthost|local|ip6-\S+|0\.0\.0\.0|::1?")
_HEX = re.compile(r"[0-9a-f]{16}")
_WORD = re.compile(r"[^\W_]+")
WORST = 10  # one line in so many may be garbled


class Keys(NamedTuple):
    """Sorted distinct `keys` uint64[n], the list of each, int16[n], and names of the lists."""

    keys: np.ndarray
    of: np.ndarray
    names: list[str]

    def find(self, keys: np.ndarray) -> np.ndarray:
        """Of each key the place of its list, int64[n]; -1 for those that stand in none."""
        if not len(self.keys):
            return np.full(len(keys), -1, np.int64)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, self.of[at].astype(np.int64), -1)


@dataclass(frozen=True, slots=True)
class Lists:
    """All that the files of a stage hold."""

    hosts: Keys
    urls: Keys
    words: frozenset[str]
    soft: frozenset[str]
    inside: re.Pattern[str] | None
    notes: tuple[str, ...]


def _split(url: str) -> tuple[str, str]:
    """Host without `www.`, and path with query, percent codes undone; ("", "") without a path."""
    url = re.sub(r"[\t\r\n]", "", url).strip()  # as browsers do (WHATWG), dots of folders too
    rest = re.sub(r"^(?:(?i:https?:)[/\\]*|(?:[A-Za-z][A-Za-z0-9+.-]*:)?[/\\]{2,})", "", url)
    authority = re.split(r"[/?#\\\s]", rest)[0]
    path = re.sub(r"^[/\\]", "", rest[len(authority) :])
    host = host_of(authority).removeprefix("www.")
    path, mark, query = unquote(path.partition("#")[0])[:2000].partition("?")
    folders: list[str] = []
    for part in path.replace("\\", "/").split("/"):
        if part == "..":
            folders = folders[:-1]
        elif part != ".":
            folders.append(part)
    path = ("/".join(folders) + mark + query).rstrip("/")
    return (host, path) if host and path else ("", "")


def url_keys(url: str) -> list[str]:
    """`host/path` of a URL and of the folders above it: a listed folder lists all below it."""
    host, path = _split(url)
    if not host:
        return []
    bare = path.partition("?")[0].rstrip("/").split("/")[:16]
    return [f"{host}/{path}", *("/".join([host, *bare[:n]]) for n in range(len(bare), 0, -1))]


def words_of(url: str) -> list[str]:
    """Runs of letters and digits of a URL, percent codes undone, lower case."""
    return _WORD.findall(unquote(url[:4096]).lower())


def _host_line(line: str) -> list[str] | None:
    """Hosts that a line lists; none for a comment; None when it is garbled."""
    if _SIMPLE.fullmatch(line):
        return [line]
    if line[0] in "#!;" or (line[0] == "[" and line.endswith("]") and "::" not in line):
        return []
    if match := _ADBLOCK.fullmatch(line):
        line = match[1]
    parts = line.partition("#")[0].split()
    if len(parts) > 1 and _ADDRESS.fullmatch(parts[0]):
        parts = parts[1:]
    elif len(parts) != 1:
        return None
    found = []
    for part in parts:
        if _LOCAL.fullmatch(part):
            continue
        rest = re.sub(r"^[A-Za-z][A-Za-z0-9+.-]*://", "", part).rstrip("/")
        host = host_of(rest.removeprefix("*."))
        if "/" in rest or not (_SIMPLE.fullmatch(host) or _ADDRESS.fullmatch(host.strip("[]"))):
            return None
        found.append(host)
    return found


def _url_line(line: str) -> list[str] | None:
    if line[0] in "#!;":
        return []
    return url_keys(line)[:1] or None


def _word_line(line: str) -> list[str] | None:
    if line[0] in "#!;":
        return []
    found = words_of(line)
    return found if len(found) == 1 else None


def _files(path: Path, where: str) -> Iterator[tuple[Path, str, str]]:
    """Each file of a list: where it is, what it is called, and whether it lists hosts or urls."""
    if path.is_file():
        yield path, path.name, "hosts"
        return
    below = sorted(p for p in path.rglob("*") if p.is_file())
    known = {"domains": "hosts", "urls": "urls"}
    named = [p for p in below if p.name.removesuffix(".gz") in known]
    if not named:
        msg = f"{where}: {path}: no file called `domains` or `urls` in this folder; name files"
        raise UsageError(msg)
    for each in named:
        kind = known[each.name.removesuffix(".gz")]
        if each.stat().st_size:  # categories without URLs have an empty `urls`
            yield each, each.relative_to(path).as_posix(), kind


def _entries(
    path: Path, where: str, parse: Callable[[str], list[str] | None], what: str, notes: list[str]
) -> Iterator[str]:
    """What a file lists; UsageError when more than one line in `WORST` is not `what`."""
    lines = bad = first = 0
    for number, line in read_lines(path, where):
        lines += 1
        found = parse(line)
        if found is None:
            bad += 1
            first = first or number
        else:
            yield from found
    if bad * WORST > lines:
        msg = f"{where}: {path}:{first}: {bad} of {lines} lines are not {what}"
        raise UsageError(msg)
    if bad:
        notes.append(f"{path.name}: {bad} of {lines} lines are not {what}, first line {first}")


def _keys(found: Iterable[tuple[int, Iterable[int]]], names: list[str]) -> Keys:
    """Keys by list; of a key in several lists the first counts."""
    keys, of = [np.zeros(0, np.uint64)], [np.zeros(0, np.int16)]
    for number, values in found:
        some = np.fromiter(values, np.uint64)
        keys.append(some)
        of.append(np.full(len(some), number, np.int16))
    distinct, first = np.unique(np.concatenate(keys), return_index=True)
    return Keys(distinct, np.concatenate(of)[first], names)


def read_lists(
    name: str,
    domains: tuple[Path, ...],
    urls: tuple[Path, ...],
    hashes: tuple[Path, ...],
    words: tuple[tuple[Path, ...], ...],
) -> Lists:
    """All files, read once as long as their contents stay. `words`: hard, soft and sub-words."""
    every = (*domains, *urls, *hashes, *(p for each in words for p in each))
    return _read(name, domains, urls, hashes, words, tuple(path_digest(p) for p in every))


@lru_cache(maxsize=4)
def _read(
    name: str,
    domains: tuple[Path, ...],
    urls: tuple[Path, ...],
    hashes: tuple[Path, ...],
    words: tuple[tuple[Path, ...], ...],
    _digests: tuple[str, ...],
) -> Lists:
    notes: list[str] = []
    names: dict[str, list[str]] = {"hosts": [], "urls": []}
    found: dict[str, list[tuple[int, Iterable[int]]]] = {"hosts": [], "urls": []}

    def add(kind: str, called: str, values: Iterable[int]) -> None:
        if len(names[kind]) > np.iinfo(np.int16).max:
            raise UsageError(f"{name}: more than {np.iinfo(np.int16).max} lists")
        found[kind].append((len(names[kind]), list(values)))
        names[kind].append(called)

    for field, paths in (("domains", domains), ("urls", urls)):
        for path in paths:
            for file, called, kind in _files(path, f"{name}.{field}"):
                listed = "urls" if field == "urls" else kind
                parse = _url_line if listed == "urls" else _host_line
                what = "hosts" if listed == "hosts" else "URLs with a path"
                entries = _entries(file, f"{name}.{field}", parse, what, notes)
                add(listed, called, map(key_of, entries))
    for path in hashes:
        hexes = _entries(
            path,
            f"{name}.hashes",
            lambda line: [line] if _HEX.fullmatch(line) else ([] if line[0] == "#" else None),
            "16 hex digits",
            notes,
        )
        add("hosts", path.name, (int(line, 16) for line in hexes))
    hard, soft, inside = (
        frozenset(
            word
            for path in paths
            for word in _entries(path, f"{name}.{field}", _word_line, "one word", notes)
        )
        for field, paths in zip(("words", "soft_words", "subwords"), words, strict=True)
    )
    return Lists(
        hosts=_keys(found["hosts"], names["hosts"]),
        urls=_keys(found["urls"], names["urls"]),
        words=hard,
        soft=soft,
        inside=re.compile(_trie(sorted(inside))) if inside else None,
        notes=tuple(notes),
    )


def _trie(words: list[str]) -> str:
    """A pattern that tries the words of a sorted list letter by letter and not one by one."""
    if "" in words:
        return ""
    heads: dict[str, list[str]] = {}
    for word in words:
        heads.setdefault(word[0], []).append(word[1:])
    return "(?:" + "|".join(re.escape(h) + _trie(tails) for h, tails in heads.items()) + ")"
