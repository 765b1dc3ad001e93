"""Web pages to their main text, by Resiliparse.

Options were looked at on pages with tables, code and lists: with `preserve_formatting` tables come
as one line a row with tabs between cells, `<pre>` keeps its line breaks and indentation, headings
and list items their own lines; `alt_texts` and `links` add words that no reader of the page sees
in its text, so they are off.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

from ...documents.records import Draft, Loss, Record, Skip
from .charsets import decode
from .cleaning import clean_line, clean_text, clean_values
from .depth import deeper_than
from .plain import convert_text, make_draft

_TITLE = 1_000  # characters kept of a title


@dataclass(frozen=True, slots=True, kw_only=True)
class MainText:
    """One document per page; records with text go the way of `plain`.

    Losses: `no_text` (`dropped`: a page without main text), `extract_error` (a fault of the
    library, with its message). A page nested deeper than `max_depth` is extracted whole, without
    the search for its main part, and says so: `depth_limit` in its metadata.
    """

    name: ClassVar[str] = "main_text"
    revision: ClassVar[int] = 1

    max_depth: int = 5_000  # elements in each other; the search costs 0.4 s at this depth

    def __call__(self, items: Iterator[Record | Loss | Skip]) -> Iterator[Draft | Loss | Skip]:
        """Losses and skips of the reader pass through."""
        for item in items:
            if not isinstance(item, Record):
                yield item
            elif item.body is None:
                yield convert_text(item)
            else:
                yield self._page(item, item.body)

    def _page(self, record: Record, body: bytes) -> Draft | Loss:
        html, encoding, undecoded = decode(body, record.charset)
        html, repairs = clean_text(html)
        for kind in ("crlf", "cr"):  # line ends of markup are not the text's
            repairs.pop(kind, None)
        if undecoded:
            repairs["undecoded"] = undecoded
        metadata: dict[str, Any] = clean_values(record.fields)
        metadata["charset"] = encoding
        try:
            tree = HTMLTree.parse(html)
            deep = deeper_than(tree, html, self.max_depth)
            raw = extract_plain_text(
                tree, main_content=not deep, preserve_formatting=True, alt_texts=False
            )
            title = clean_line(tree.title)
        except Exception as error:  # noqa: BLE001 - whatever the library raises is a row in the books
            detail = f"{type(error).__name__}: {error}"[:300]
            return Loss(locator=record.locator, reason="extract_error", detail=detail)
        text, more = clean_text(raw)  # `&#13;` and the like come to life in parsing
        text = text.strip("\n")
        if not text.strip():
            return Loss(locator=record.locator, reason="no_text", kind="dropped")
        if title:
            metadata["title"] = title[:_TITLE]
        if deep:
            metadata["depth_limit"] = self.max_depth
        return make_draft(record, text, metadata, {**repairs, **more})
