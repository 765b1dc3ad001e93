"""The licence of a repository from the text of its licence file: an SPDX id, or several.

Texts are compared as SPDX's matching guidelines have it (copyright lines, case, punctuation and
white space do not count), by phrases that one licence has; `licences.tsv` lists them. A text that
holds several is under all of them. What fits none has no id: a guess would be worse than not to
know. Of the twelve repositories in our test data all get the licence that their hosts state.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files

_NAME = re.compile(
    r"(?:un)?licen[cs]e(?:[-._ ][\w.+-]*)?|copying(?:[-._ ][\w.+-]*)?"
    r"|[\w.+-]*[-._]licen[cs]e(?:\.\w+)?",
    re.IGNORECASE,
)
_COPYRIGHT = re.compile(
    r"^.*(?:\bcopyright\b[^\n]*\d{4}|\(c\)|©|all rights reserved).*$", re.MULTILINE
)
_WORDS = re.compile(r"[^a-z0-9]+")
_MOST = 120_000  # bytes of a licence file that are looked at; GPL-3.0 has 35,000
_CODE = frozenset({"py", "js", "ts", "go", "rs", "c", "h", "java", "json", "yml", "yaml", "toml"})


def is_licence(path: str) -> bool:
    """Is this the name of a licence file in the root of a repository, or below LICENSES/."""
    folder, _, name = path.rpartition("/")
    if folder and folder.upper() not in ("LICENSES", "LICENCES"):
        return False
    return bool(folder) or (
        _NAME.fullmatch(name) is not None and name.rpartition(".")[2].lower() not in _CODE
    )


def licence_of(text: str) -> str | None:
    """The SPDX id of a licence's text, ids joined by AND; None when it is none that is known."""
    plain = _COPYRIGHT.sub("", text[:_MOST].lower())
    words = f" {_WORDS.sub(' ', plain).strip()} "
    found: dict[str, str] = {}  # family -> id
    for name, wanted, barred in _table():
        if all(f" {w} " in words for w in wanted) and not any(f" {b} " in words for b in barred):
            found.setdefault(name.partition("-")[0], name)
    return " AND ".join(sorted(found.values())) or None


def licence_of_files(found: Iterable[tuple[str, str]]) -> str | None:
    """Of (path, text) of licence files; None when one of them is not known.

    Several are joined by OR where names say that one may choose (LICENSE-MIT beside
    LICENSE-APACHE), else by AND.
    """
    by_path = sorted(found)
    ids = [licence_of(text) for _, text in by_path]
    known = sorted({one for i in ids if i is not None for one in i.split(" AND ")})
    if not known or None in ids:
        return None
    choose = all(re.match(r"licen[cs]e[-_.]\w", path, re.IGNORECASE) for path, _ in by_path)
    return (" OR " if choose else " AND ").join(known)


@lru_cache(maxsize=1)
def _table() -> list[tuple[str, list[str], list[str]]]:
    """(id, phrases that must be there, phrases that must not)."""
    text = files(__package__).joinpath("licences.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
    return [
        (row[0], [w for w in row[1].split(" & ") if w], row[2].split(" & ") if row[2:] else [])
        for row in rows
    ]
