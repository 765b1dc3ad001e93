"""Web pages to their main text: `page.py` says how and at what cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from ...documents.records import Draft, Loss, Record, Skip
from .charsets import decode
from .cleaning import clean_text, clean_values, parsable
from .page import read_page
from .plain import convert_text, make_draft

MAX_TAGS = 1_000_000  # `<` in a page
MAX_BYTES = 64 << 20  # of a page


@dataclass(frozen=True, slots=True, kw_only=True)
class MainText:
    """One document per page; records with text, and bodies of plain text, go the way of `plain`.

    Losses: `no_text` (`dropped`: a page without main text), `extract_error` (a fault of the
    library's), `too_many_nodes` (more than MAX_TAGS `<` or MAX_BYTES bytes: a page of nothing but
    tags becomes a tree of many times its own size).
    """

    name: ClassVar[str] = "main_text"
    revision: ClassVar[int] = 9

    markdown: bool = True  # marks for headings, lists, tables and code; False: plain lines

    def __call__(self, items: Iterator[Record | Loss | Skip]) -> Iterator[Draft | Loss | Skip]:
        """Losses and skips of the reader pass through."""
        for item in items:
            if not isinstance(item, Record):
                yield item
            elif item.body is None or item.media_type == "text/plain":
                yield convert_text(item)
            else:
                yield self._page(item, item.body)

    def _page(self, record: Record, body: bytes) -> Draft | Loss:
        if len(body) > MAX_BYTES or body.count(b"<") > MAX_TAGS:
            detail = (
                f"{len(body)} bytes with {body.count(b'<')} tags; at most {MAX_BYTES} bytes with "
                f"{MAX_TAGS} tags are parsed"
            )
            return Loss(
                locator=record.locator, reason="too_many_nodes", detail=detail, url=record.url
            )
        html, encoding, undecoded = decode(body, record.charset)
        html, repairs = parsable(html)  # the rest of the policy is the text's, not the markup's
        if undecoded:
            repairs["undecoded"] = undecoded
        metadata: dict[str, Any] = clean_values(record.fields)
        metadata["charset"] = encoding
        try:
            page = read_page(html, markdown=self.markdown)
        except Exception as error:  # noqa: BLE001 - whatever the library raises is a row in the books
            detail = f"{type(error).__name__}: {error}"[:300]
            return Loss(
                locator=record.locator, reason="extract_error", detail=detail, url=record.url
            )
        text, more = clean_text(page.text)  # `&#13;` and the like come to life in parsing
        text = text.strip("\n")
        if not text or text.isspace():
            return Loss(locator=record.locator, reason="no_text", kind="dropped", url=record.url)
        metadata.update(clean_values(page.stated))
        if page.formulas:
            metadata["formulas"] = page.formulas
        if page.cut:
            metadata["cut"] = page.cut
        return make_draft(record, text, metadata, {**repairs, **more})
