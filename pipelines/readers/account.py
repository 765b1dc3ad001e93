"""What one read cost and gave: stored bytes, decoded bytes, and records by kind, as one sum.

The two sides of every balance are counted in different places: stored and decoded bytes where the
codec works, spans where an item leaves the reader. `check` compares them to the last byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from ...documents.errors import ContractError, UsageError, did_you_mean
from ...documents.records import Loss, Record, Skip

FORMATS = (None, "text", "html")


def above(limit: int) -> str:
    """What every `too_large` loss says: the limit, and which key of the recipe raises it."""
    return f"more than reader.max_record_bytes ({limit} bytes)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How rows become records, and the limits of reading. All sizes are bytes."""

    format: str | None = None  # None: by its bytes; `text`, `html`: each file is one document
    text_field: str | None = "text"  # None: the raw row is the text, all its values are fields
    id_field: str = "id"  # of a row: the source's own id
    url_field: str = "url"  # of a row: its address
    date_fields: tuple[str, ...] = ("date", "created")  # the first one present
    max_record_bytes: int = 64 << 20  # decoded; a larger record is a `too_large` loss
    max_faults: int = 1_000  # damaged records in a row after which a file is given up
    # Of one compressed member above 256 KiB whose checksum fails: keep the records that lie more
    # than 4 MiB before the first visible fault (they may hold wrong letters), or none.
    salvage: bool = True  # keep records before a fault in one large member

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Build from recipe options; UsageError names an unknown one."""
        known = {f.name for f in fields(cls)}
        for name in given:
            if name not in known:
                msg = f"reader: no option {name!r}{did_you_mean(name, known)}"
                raise UsageError(msg)
        for name in ("max_record_bytes", "max_faults"):
            value = given.get(name, 1)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                msg = f"reader.{name}: expected a whole number above 0, found {value!r}"
                raise UsageError(msg)
        if not isinstance(given.get("salvage", True), bool):
            msg = f"reader.salvage: expected true or false, found {given['salvage']!r}"
            raise UsageError(msg)
        if given.get("format") not in FORMATS:
            msg = (
                f"reader.format: expected text or html, found {given['format']!r}; all other "
                "formats are found by their bytes, without this option"
            )
            raise UsageError(msg)
        dates = given.get("date_fields", ())
        names = [given.get(n, "") for n in ("id_field", "url_field")]
        names += [given.get("text_field") or "", *([dates] if isinstance(dates, str) else dates)]
        if bad := [n for n in names if not isinstance(n, str)]:
            msg = f"reader: field names are strings, found {bad[0]!r}"
            raise UsageError(msg)
        values = dict(given)
        if dates:
            values["date_fields"] = (dates,) if isinstance(dates, str) else tuple(dates)
        return cls(**values)


@dataclass(slots=True)
class ReadAccount:
    """Sums over all extents read with it. Bytes unless said otherwise."""

    stored_bytes: int = 0  # of the extents given
    members: int = 0  # stored bytes that a codec took (plain and Parquet: all of them)
    padding: int = 0  # stored NULs between members, skippable frames
    damaged: int = 0  # stored bytes that no codec could take
    decoded_bytes: int = 0
    record_bytes: int = 0  # decoded bytes covered by records, losses and skips
    loss_bytes: int = 0
    skip_bytes: int = 0
    records: int = 0  # rows
    losses: Counter[str] = field(default_factory=Counter)  # rows by reason, faults and dropped
    skips: Counter[str] = field(default_factory=Counter)  # records by reason

    def book(self, item: Record | Loss | Skip) -> None:
        """Count an item as it leaves the reader."""
        if isinstance(item, Record):
            self.records += 1
            self.record_bytes += item.locator.span
        elif isinstance(item, Loss):
            self.losses[item.reason] += 1
            self.loss_bytes += item.locator.span
        else:
            self.skips[item.reason] += item.records
            self.skip_bytes += item.span

    def check(self) -> None:
        """ContractError when a byte is missing or counted twice; only after a complete read."""
        covered = self.record_bytes + self.loss_bytes + self.skip_bytes
        if covered != self.decoded_bytes:
            msg = (
                f"readers: {self.decoded_bytes} bytes decoded, {covered} in records, losses, skips"
            )
            raise ContractError(msg)
        taken = self.members + self.padding + self.damaged
        if taken != self.stored_bytes:
            msg = (
                f"readers: {self.stored_bytes} stored bytes, {taken} in members, padding and damage"
            )
            raise ContractError(msg)
