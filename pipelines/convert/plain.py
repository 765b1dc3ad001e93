"""Text that is text already: WET conversions, JSONL and Parquet rows, files of text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from ...documents.records import Draft, Loss, Record, Skip
from .charsets import decode_plain
from .cleaning import clean_line, clean_text, clean_values


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainText:
    """One document per record that has text. Losses (`dropped`): `no_text`, `not_text`."""

    name: ClassVar[str] = "plain"
    revision: ClassVar[int] = 3

    license_field: str = "license"  # a string of this name becomes the document's licence

    def __call__(self, items: Iterator[Record | Loss | Skip]) -> Iterator[Draft | Loss | Skip]:
        """Losses and skips of the reader pass through."""
        for item in items:
            yield convert_text(item, self.license_field) if isinstance(item, Record) else item


def convert_text(record: Record, license_field: str = "license") -> Draft | Loss:
    """The document of a record with text."""
    raw = record.text
    charset: dict[str, Any] = {}
    undecoded = 0
    if raw is None and record.media_type == "text/plain" and record.body is not None:
        raw, charset["charset"], undecoded = decode_plain(record.body, record.charset)
    if raw is None:
        detail = f"a {record.media_type or 'binary'} body; use the converter main_text"
        return Loss(
            locator=record.locator, reason="not_text", detail=detail, kind="dropped", url=record.url
        )
    text, repairs = clean_text(raw, record.utf8)
    if undecoded:
        repairs["undecoded"] = undecoded
    if not text or text.isspace():
        return Loss(locator=record.locator, reason="no_text", kind="dropped", url=record.url)
    metadata = clean_values(record.fields)
    if charset:
        metadata |= charset
    stated = metadata.get(license_field)
    return make_draft(record, text, metadata, repairs, stated if isinstance(stated, str) else None)


def make_draft(
    record: Record,
    text: str,
    metadata: dict[str, Any],
    repairs: dict[str, int],
    license_: str | None = None,
) -> Draft:
    """A draft of one record with its own URL, date and identity."""
    return Draft(
        locator=record.locator,
        text=text,
        utf8=record.utf8 if text is record.text else None,
        url=clean_line(record.url),
        date=clean_line(record.date),
        license=license_ or None,
        identity=clean_line(record.identity),
        metadata=metadata,
        repairs={**record.repairs, **repairs},
    )
