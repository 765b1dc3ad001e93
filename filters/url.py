"""Drop pages by their address: listed hosts and URLs, and words in the URL.

The rules are those of RefinedWeb (Penedo et al. 2023, appendix G.1) and FineWeb (2024, section
3.2): a listed domain takes its sub-domains with it; one `words` entry that is a word of the URL, or
one `subwords` entry anywhere in its letters and digits, drops it; of `soft_words` it takes
`soft_limit` different ones. Lists are files (`_lists`); none ship with the project.

A URL is looked at, never the text: each distinct host of a batch is parsed and hashed once, with
the domains above it. Figures of benchmarks/guards.py stand in benchmarks/README.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ..documents.errors import UsageError
from ..documents.files import as_paths, files_field
from ..documents.stage import Evidence, Measured
from ._exact import check_counts, first_true
from ._hosts import hosts, key_of, parents
from ._lists import Lists, read_lists, url_keys, words_of

_FILES = ("domains", "urls", "hashes", "words", "soft_words", "subwords")


@dataclass(frozen=True, kw_only=True, slots=True)
class Url:
    """Drop documents whose URL is listed or holds listed words; all lists are files.

    Scores: `host` and `url` int16 (1 + the place of the list that has it, 0: none), `words`,
    `soft_words`, `subwords` int16 (different ones; sub-words: 1 or 0), `known` bool (has a URL).
    """

    domains: tuple[Path, ...] = files_field()  # hosts files, or folders of `domains` and `urls`
    urls: tuple[Path, ...] = files_field()  # `host/path` a line; what is below it counts too
    hashes: tuple[Path, ...] = files_field()  # BLAKE2b-64 of a host in hex, one a line
    words: tuple[Path, ...] = files_field()  # a URL with one of these words goes
    soft_words: tuple[Path, ...] = files_field()  # with `soft_limit` of these
    subwords: tuple[Path, ...] = files_field()  # with one of these anywhere, inside words too
    soft_limit: int = 2  # different soft words that drop a URL
    need_url: bool = False  # drop documents without a URL

    name: ClassVar[str] = "url"
    revision: ClassVar[int] = 2
    reasons: ClassVar[tuple[str, ...]] = (
        "keep",
        "no_url",
        "listed_domain",
        "listed_url",
        "word",
        "soft_words",
        "subword",
    )
    verdict_fields: ClassVar[frozenset[str]] = frozenset({"soft_limit", "need_url"})
    needs_text: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the fields; UsageError names the one that is wrong."""
        check_counts(self, ("soft_limit",))
        if not self.soft_limit:
            msg = f"{self.name}.soft_limit: found 0, expected at least 1"
            raise UsageError(msg)
        for name in _FILES:
            object.__setattr__(self, name, as_paths(getattr(self, name), f"{self.name}.{name}"))

    def _lists(self) -> Lists:
        words = (self.words, self.soft_words, self.subwords)
        return read_lists(self.name, self.domains, self.urls, self.hashes, words)

    def load(self) -> tuple[str, ...]:
        """Read the lists; UsageError for a garbled one; lines that were passed over."""
        found = self._lists()
        size = f"{len(found.hosts.keys):,} hosts, {len(found.urls.keys):,} URLs"
        return (*found.notes, size)

    def measure(self, batch: pa.RecordBatch) -> Measured:
        """Look each URL up."""
        lists = self._lists()
        which, names = hosts(batch)
        listed, above = _listed_hosts(lists, names)
        known = np.array([bool(n) for n in names], bool)
        rows = batch.num_rows
        scores = {
            "host": (listed[which] + 1).astype(np.int16),
            "url": np.zeros(rows, np.int16),
            "words": np.zeros(rows, np.int16),
            "soft_words": np.zeros(rows, np.int16),
            "subwords": np.zeros(rows, np.int16),
            "known": known[which] if len(names) else np.zeros(rows, bool),
        }
        notes: dict[int, dict[str, Any]] = {}
        for row in np.flatnonzero(scores["host"]).tolist():
            host = which[row]
            notes[row] = {"domain": above[host], "list": lists.hosts.names[listed[host]]}
        wordy = bool(lists.words or lists.soft or lists.inside)
        if (wordy or len(lists.urls.keys)) and "url" in batch.schema.names:
            for row, url in enumerate(batch.column("url").to_pylist()):
                if url:
                    _look(lists, url, row, scores, notes)
        at = np.array(sorted(notes), np.int64)
        told = [json.dumps(notes[row], sort_keys=True, ensure_ascii=False) for row in at.tolist()]
        return Measured(scores, evidence=Evidence(at, told))

    def verdict(self, scores: Mapping[str, np.ndarray]) -> np.ndarray:
        """Judge by the first rule that holds, in the order of `reasons`."""
        rules = (
            ~scores["known"] & self.need_url,
            scores["host"] > 0,
            scores["url"] > 0,
            scores["words"] > 0,
            scores["soft_words"] >= self.soft_limit,
            scores["subwords"] > 0,
        )
        return first_true(dict(enumerate(rules, 1)), len(scores["host"]))


def _listed_hosts(lists: Lists, names: list[str]) -> tuple[np.ndarray, list[str]]:
    """Of each host the list that has it or a domain above it, int64[hosts] or -1; and which."""
    listed = np.full(max(1, len(names)), -1, np.int64)
    above = [""] * len(names)
    if not len(lists.hosts.keys):
        return listed, above
    domains = [(at, domain) for at, host in enumerate(names) if host for domain in parents(host)]
    found = lists.hosts.find(np.array([key_of(d) for _, d in domains], np.uint64))
    for (at, domain), hit in zip(domains, found.tolist(), strict=True):
        if hit >= 0 and listed[at] < 0:
            listed[at], above[at] = hit, domain
    return listed, above


def _look(
    lists: Lists,
    url: str,
    row: int,
    scores: dict[str, np.ndarray],
    notes: dict[int, dict[str, Any]],
) -> None:
    """One URL's path and words."""
    if len(lists.urls.keys):
        tried = url_keys(url)
        found = lists.urls.find(np.array([key_of(t) for t in tried], np.uint64))
        hit = np.flatnonzero(found >= 0)
        if len(hit):
            scores["url"][row] = found[hit[0]] + 1
            of = lists.urls.names[found[hit[0]]]
            notes.setdefault(row, {}).update(url=tried[hit[0]], url_list=of)
    words = words_of(url)
    seen = set(words)
    for name, listed in (("words", lists.words), ("soft_words", lists.soft)):
        if listed and (some := listed & seen):
            scores[name][row] = min(len(some), 32767)
            notes.setdefault(row, {})[name] = sorted(some)[:5]
    if lists.inside and (match := lists.inside.search("".join(words))):
        scores["subwords"][row] = 1
        notes.setdefault(row, {})["subword"] = match.group()
