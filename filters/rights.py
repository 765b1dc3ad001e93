"""What a page's owner asks and grants: opt-out signals and licences, with the recipe's policy.

Read from the document's `license` and from `metadata`, where reader and converter put what the page
states: HTTP headers (`x-robots-tag`, `tdm-reservation`), <meta> of the same kinds, the address of
rel=license (`license_link`) and a Creative Commons link anywhere (`license_hint`, which may be that
of a picture and therefore counts only where `trust_links` says so).

Signals: `noai` and `noimageai` (DeviantArt's directives, 2022), `tdm` (a reservation under the TDM
Reservation Protocol, W3C community report 2024: value 1), `noindex` (or `none`), `noarchive`.
A directive for one named robot (`otherbot: noindex`) counts when it is about AI, and not otherwise.
Nothing stated is no signal: robots.txt is the crawler's affair and does not reach a document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ..documents.errors import UsageError, did_you_mean
from ..documents.stage import Evidence, Measured
from ._exact import check_flags, check_names, first_true
from ._licences import WIDTH, folded, granted, licence_name

SIGNALS = ("noai", "noimageai", "tdm", "noindex", "noarchive")
_KNOWN = re.compile(r"[a-z0-9][a-z0-9.+-]*")
# `noai: 1`, `noai=true`: no robot's name; `noai: 0` takes it back
_VALUED = re.compile(
    r"(?<![\w-])(noai|noimageai|noindex|noarchive) *[:=] *"
    r"(?:(1|0|true|false|yes|no|on|off)(?![\w-]))?"
)
_OFF = ("0", "false", "no", "off")


def directives(value: str) -> set[str]:
    """Signals in the value of a robots header or <meta>; see the module for named robots."""
    found = set()
    robot = False
    text = _VALUED.sub(lambda m: " " if m[2] in _OFF else f" {m[1]} ", folded(value))
    for part in re.split(r"[,;|/\n]", text):
        head, colon, tail = part.strip().partition(":")
        if colon:  # `otherbot: noindex, noai`: what follows is that robot's; or `max-snippet: 5`
            robot = not head.strip().startswith(("max-", "unavailable"))
        for word in (tail if colon else head).split():
            name = word.strip("\"'`.()[]{}<>")
            if name in {"noai", "noimageai"} or (name in SIGNALS and name != "tdm" and not robot):
                found.add(name)
            elif name == "none" and not robot:
                found.add("noindex")
    return found


def _key(name: str) -> str:
    return name.strip().lower().replace("_", "-")


def signals(metadata: Mapping[str, Any]) -> set[str]:
    """All signals in a document's metadata."""
    found = set()
    for key, stated in metadata.items():
        for value in stated if isinstance(stated, list) else [stated]:
            if _key(key) in ("robots", "x-robots-tag") and isinstance(value, str):
                found |= directives(value)
            elif _key(key) == "tdm-reservation" and _RESERVED.match(folded(str(value)).strip()):
                found.add("tdm")
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class Rights:
    """Drop documents that opt out of training, or whose licence is not among those asked for.

    Scores: one bool for each of `SIGNALS`; `licence` S32 (empty: none stated) and `origin` uint8
    (0 none, 1 the document's own, 2 rel=license, 3 a Creative Commons link somewhere).
    """

    opt_out: str = "drop"  # or "keep": signals are attributes alone
    signals: tuple[str, ...] = ("noai", "tdm")  # those that opt a text out
    licences: tuple[str, ...] = ()  # `cc-by`: any version of that; `cc-*`: all
    unlicensed: str = "drop"  # or "keep": what to do without a licence when `licences` are given
    trust_links: bool = False  # take a Creative Commons link without rel=license for the licence

    name: ClassVar[str] = "rights"
    revision: ClassVar[int] = 6
    reasons: ClassVar[tuple[str, ...]] = ("keep", "opt_out", "unlicensed", "other_licence")
    verdict_fields: ClassVar[frozenset[str]] = frozenset(
        {"opt_out", "signals", "licences", "unlicensed", "trust_links"}
    )
    needs_text: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the fields; UsageError names the one that is wrong."""
        for name in ("opt_out", "unlicensed"):
            if getattr(self, name) not in ("drop", "keep"):
                msg = f"{self.name}.{name}: found {getattr(self, name)!r}, expected drop or keep"
                raise UsageError(msg)
        check_names(self, ("signals", "licences"))
        check_flags(self, ("trust_links",))
        for signal in self.signals:
            if signal not in SIGNALS:
                msg = f"{self.name}.signals: no signal {signal!r}{did_you_mean(signal, SIGNALS)}"
                raise UsageError(msg)
        for pattern in self.licences:
            if not _KNOWN.fullmatch(pattern.replace("*", "x")):
                msg = (
                    f"{self.name}.licences: found {pattern!r}, expected a name like cc-by-4.0, "
                    "cc-by (any version of just that; so is cc-by-*) or cc-* (all that begin so)"
                )
                raise UsageError(msg)

    def measure(self, batch: pa.RecordBatch) -> Measured:
        """Read what is stated."""
        rows = batch.num_rows
        found = {name: np.zeros(rows, bool) for name in SIGNALS}
        licence = np.zeros(rows, f"S{WIDTH}")
        origin = np.zeros(rows, np.uint8)
        notes: dict[int, str] = {}
        columns = batch.schema.names
        blank = [None] * rows
        own = batch.column("license").to_pylist() if "license" in columns else blank
        stated = batch.column("metadata").to_pylist() if "metadata" in columns else blank
        for row, (mine, text) in enumerate(zip(own, stated, strict=True)):
            metadata = _metadata(text)
            for signal in signals(metadata):
                found[signal][row] = True
                notes[row] = json.dumps(
                    {k: v for k, v in metadata.items() if _key(k) in _SHOWN}, sort_keys=True
                )
            claims = (mine, metadata.get("license_link"), metadata.get("license_hint"))
            for at, claim in enumerate(claims, 1):
                if isinstance(claim, str) and (name := licence_name(claim)):
                    licence[row], origin[row] = name.encode("ascii", "replace"), at
                    break
        seen = sorted(notes)
        told = Evidence(np.array(seen, np.int64), [notes[row] for row in seen])
        return Measured({**found, "licence": licence, "origin": origin}, evidence=told)

    def verdict(self, scores: Mapping[str, np.ndarray]) -> np.ndarray:
        """The policy: opt-outs first, then licences."""
        rows = len(scores["origin"])
        out = np.zeros(rows, bool)
        for signal in self.signals if self.opt_out == "drop" else ():
            out |= scores[signal]
        without = (scores["origin"] == 0) | ((scores["origin"] == 3) & (not self.trust_links))
        names, which = np.unique(scores["licence"], return_inverse=True)
        good = np.array([any(granted(n.decode(), p) for p in self.licences) for n in names], bool)
        right = good[which] if rows else np.zeros(0, bool)
        asked = bool(self.licences)
        rules = (
            out,
            without & asked & (self.unlicensed == "drop"),
            ~without & ~right & asked,
        )
        return first_true(dict(enumerate(rules, 1)), rows)


_RESERVED = re.compile(
    r"[\"']?(?:\d+\s*,\s*)*(?:1(?:\.0)?|true)\s*(?:[,;\"']|$)", re.IGNORECASE
)  # headers join
_SHOWN = ("robots", "x-robots-tag", "tdm-reservation", "tdm-policy")
_HINTS = re.compile("robots|tdm[-_]|license_", re.IGNORECASE)


def _metadata(text: str | None) -> dict[str, Any]:
    """The metadata, or nothing where it states nothing of the kind: parsing is most of the work."""
    if not text or not _HINTS.search(text):
        return {}
    found = json.loads(text)
    return found if isinstance(found, dict) else {}
