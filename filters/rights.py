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
from fnmatch import fnmatchcase
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ..documents.errors import UsageError, did_you_mean
from ..documents.stage import Evidence, Measured
from ._exact import first_true

SIGNALS = ("noai", "noimageai", "tdm", "noindex", "noarchive")
_WIDTH = 32  # bytes of a licence's name
# A restriction in any spelling: one that is passed over would make a licence freer than it is
_LIMITS = {
    "nc": r"nc|non[-_ ]?commercial",
    "nd": r"nd|no[-_ ]?deriv(?:ative)?s?(?:[-_ ]works)?",
    "sa": r"sa|share[-_ ]?alike",
}
_LIMIT = "|".join(_LIMITS.values())
_CC = re.compile(
    r"(?:creativecommons\.org/licenses/|\bcc[- _]?)by(?:[- _]attribution)?"
    rf"(?P<limits>(?:[-_ ]*(?:{_LIMIT}))*+)(?![a-z])(?:[/\-_ ]v?(?P<version>\d\.\d))?",
    re.IGNORECASE,
)
_DOMAIN = re.compile(
    r"publicdomain/(?P<kind>zero|mark)(?:/(?P<version>\d\.\d))?"
    r"|\bcc[- _]?0(?:[- _](?P<zero>\d\.\d))?",
    re.IGNORECASE,
)
# A pattern that names a whole Creative Commons licence before its `*`
_WHOLE = re.compile(r"(cc-(?:by(?:-(?:nc|nd|sa))*|0|mark))-?\*")
_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)*")
_KNOWN = re.compile(r"[a-z0-9][a-z0-9.+-]*")


def licence_name(stated: str) -> str:
    """One name for a licence: `cc-by-sa-4.0`, `cc-0-1.0`, `cc-mark-1.0`, else as stated, dashed."""
    if match := _CC.search(stated):
        said = match["limits"]
        found = (name for name, form in _LIMITS.items() if re.search(form, said, re.IGNORECASE))
        kind = "-".join(("cc-by", *found))
        return f"{kind}-{match['version']}" if match["version"] else kind
    if match := _DOMAIN.search(stated):
        kind = "mark" if (match["kind"] or "").lower() == "mark" else "0"
        version = match["version"] or match["zero"]
        return f"cc-{kind}-{version}" if version else f"cc-{kind}"
    name = re.sub(r"[^a-z0-9.+]+", "-", stated.lower()).strip("-")[:_WIDTH].strip("-")
    return name or ("other" if stated.strip() else "")


def granted(name: str, pattern: str) -> bool:
    """Whether a licence's name fits: itself, with any version after it, or what `*` stands for.

    After the name of a whole licence `*` stands for its versions: what takes `cc-by-*` has not
    agreed to `cc-by-nc-nd`. Elsewhere it stands for anything: `cc-*`, `gpl-*`, `*-4.0`.
    """
    pattern = _WHOLE.sub(r"\1", pattern)
    version = name.removeprefix(f"{pattern}-")
    return fnmatchcase(name, pattern) or (version != name and bool(_VERSION.fullmatch(version)))


def directives(value: str) -> set[str]:
    """Signals in the value of a robots header or <meta>; see the module for named robots."""
    found = set()
    robot = False
    for part in re.split(r"[,;\n]", value.lower()):
        head, colon, tail = part.strip().partition(":")
        if colon:  # `otherbot: noindex, noai`: what follows is that robot's; or `max-snippet: 5`
            robot = not head.strip().startswith(("max-", "unavailable"))
        for name in (tail if colon else head).split():
            if name in {"noai", "noimageai"} or (name in SIGNALS and name != "tdm" and not robot):
                found.add(name)
            elif name == "none" and not robot:
                found.add("noindex")
    return found


def signals(metadata: Mapping[str, Any]) -> set[str]:
    """All signals in a document's metadata."""
    found = set()
    for key, stated in metadata.items():
        for value in stated if isinstance(stated, list) else [stated]:
            if key.lower() in ("robots", "x-robots-tag") and isinstance(value, str):
                found |= directives(value)
            elif key.lower() == "tdm-reservation" and _RESERVED.match(str(value).strip()):
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
    revision: ClassVar[int] = 3
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
        for name in ("signals", "licences"):
            given = getattr(self, name)
            values = (given,) if isinstance(given, str) else tuple(given)
            object.__setattr__(self, name, values)
        for signal in self.signals:
            if signal not in SIGNALS:
                msg = f"{self.name}.signals: no signal {signal!r}{did_you_mean(signal, SIGNALS)}"
                raise UsageError(msg)
        for pattern in self.licences:
            if not isinstance(pattern, str) or not _KNOWN.fullmatch(pattern.replace("*", "x")):
                msg = (
                    f"{self.name}.licences: found {pattern!r}, expected a name like cc-by-4.0, "
                    "cc-by (any version of just that; so is cc-by-*) or cc-* (all that begin so)"
                )
                raise UsageError(msg)

    def measure(self, batch: pa.RecordBatch) -> Measured:
        """Read what is stated."""
        rows = batch.num_rows
        found = {name: np.zeros(rows, bool) for name in SIGNALS}
        licence = np.zeros(rows, f"S{_WIDTH}")
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
                    {k: v for k, v in metadata.items() if k.lower() in _SHOWN}, sort_keys=True
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


_RESERVED = re.compile(r"(?:\d+\s*,\s*)*(?:1|true)\s*(?:,|$)", re.IGNORECASE)  # headers join
_SHOWN = ("robots", "x-robots-tag", "tdm-reservation", "tdm-policy")
_HINTS = re.compile("robots|tdm-|license_", re.IGNORECASE)


def _metadata(text: str | None) -> dict[str, Any]:
    """The metadata, or nothing where it states nothing of the kind: parsing is most of the work."""
    if not text or not _HINTS.search(text):
        return {}
    found = json.loads(text)
    return found if isinstance(found, dict) else {}
