"""Repositories that are held out, because a benchmark asks about them.

A benchmark of issues is solved by code that stands in the repository a few commits later, so the
whole repository stays away, not the items alone. `benchmarks.tsv` has lists that ship, one line a
repository; raise the revisions of the converters that read it when it changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from ...documents.errors import UsageError, did_you_mean
from ...documents.files import read_lines

# owner__name, as SWE-bench's ids (-number) and SWE-smith's (.commit and what was changed) have it.
_INSTANCE = re.compile(r"([\w.-]+?)__([\w.-]+?)(?:-\d+|\.[0-9a-f]{3,40}(?:\..*)?)?", re.IGNORECASE)
_ADDRESS = re.compile(
    r"[a-z][a-z0-9+.-]*://(?:[^/@]+@)?[\w.-]+(?::\d+)?[/:]+"  # https://, git+https://, ssh://git@
    r"|[\w.-]+@[\w.-]+[:/]+"  # git@github.com:
    r"|[\w-]+(?:\.[\w-]+)+(?::\d+)?[/:](?=[^/]+/[^/])"  # github.com/ before two names
    r"|(?:github|gitlab):",
    re.IGNORECASE,
)
_API = re.compile(r"(?:api/v\d+/)?repos/", re.IGNORECASE)


class HeldOut:
    """A set of repositories by `owner/name`."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names

    @staticmethod
    def check(benchmarks: tuple[str, ...]) -> None:
        """UsageError for a list that does not ship."""
        known = sorted({name for name, _ in _shipped()})
        for name in benchmarks:
            if name not in known:
                hint = did_you_mean(name, known)
                msg = f"benchmarks: no list {name!r}{hint}; known: {', '.join(known)}"
                raise UsageError(msg)

    @classmethod
    def of(cls, benchmarks: tuple[str, ...], paths: tuple[Path, ...]) -> HeldOut:
        """Lists that ship, by name, and files with a repository a line; `#` begins a comment."""
        names = {repo for name, repo in _shipped() if name in benchmarks}
        for path in paths:
            for _, line in read_lines(path, f"held_out {path}"):
                if not line.startswith("#"):
                    names.add(repository_of(line))
        return cls(frozenset(names))

    def found(self, values: Iterable[Any]) -> str:
        """The first repository of the set that one of the values names, or ""."""
        for value in values:
            if isinstance(value, str) and (name := repository_of(value)) in self.names:
                return name
        return ""


def repository_of(value: str) -> str:
    """`owner/name` in small letters, from that, an address, or the id of an instance.

    What follows the name is left out: a folder, `.git`, `@branch`, `?query`, `#fragment`.
    """
    plain = re.split(r"[?#]", value.strip(), maxsplit=1)[0]
    if match := _ADDRESS.match(plain):
        plain = plain[match.end() :]
        if "api" in match[0].lower():
            plain = _API.sub("", plain, count=1)
    names = [re.split(r"[@:]", name, maxsplit=1)[0] for name in plain.split("/") if name][:2]
    if names and (match := _INSTANCE.fullmatch(names[-1])):  # alone, or below a mirror's owner
        names = [match[1], match[2]]
    return "/".join(names).lower().removesuffix(".git")


@lru_cache(maxsize=1)
def _shipped() -> tuple[tuple[str, str], ...]:
    """(list, repository) of the lists that ship."""
    text = files(__package__).joinpath("benchmarks.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines() if line and not line.startswith("#"))
    return tuple((name, repo.lower()) for name, repo in rows)
