"""One policy for text, applied once, where a record becomes a document.

    NUL                        -> nothing    some tools stop reading at it
    BOM (U+FEFF) anywhere      -> nothing    left over where files were joined
    lone surrogates            -> U+FFFD     UTF-8 cannot hold them; xxhash and tokenizers raise
    CRLF, CR                   -> LF
    VT, FF, NEL, U+2028/2029   -> LF
    C1 controls                -> the letters of Windows-1252 that they were, as HTML reads them
    other C0 controls, DEL     -> nothing    tabs stay
    Unicode form               -> NFC, by the tables of `unicodedata.unidata_version`

In this order, so that cleaning twice changes nothing. Each repair is counted in the document's
`repairs`. Clean text costs 0.9 ms a MB where it is ASCII and 3.2 where it is not (a third of it the
quick check of its form); a search for all these characters in one expression costs 4.0.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")
_LINES = re.compile("[\x0b\x0c\x85\u2028\u2029]")
_C1 = re.compile("[\x80-\x84\x86-\x9f]")
_CONTROLS = re.compile("[\x01-\x08\x0e-\x1f\x7f\x81\x8d\x8f\x90\x9d]")
_CONTROL_BYTES = bytes({*range(9), *range(11, 32), 127})
_C1_BYTES = re.compile(rb"\xc2[\x80-\x9f]")
_MARKS = ("\u2028", "\u2029", "\ufeff")
_WINDOWS = {
    chr(code): bytes([code]).decode("cp1252")
    for code in {*range(0x80, 0xA0)} - {0x81, 0x85, 0x8D, 0x8F, 0x90, 0x9D}
}


def clean_text(text: str) -> tuple[str, dict[str, int]]:
    """Text that every later part can hold, and what was changed: counts by kind, only if above 0.

    Kinds: `nul`, `bom`, `surrogate`, `crlf`, `cr`, `line` (VT, FF, NEL, U+2028, U+2029), `c1`,
    `control`, counted in characters of the given text; `nfc`, in characters more or fewer, at
    least 1.
    """
    if text.isascii() and text.isprintable():  # a URL, a date, a key: most of what is cleaned
        return text, {}
    repairs: dict[str, int] = {}
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        text, repairs["surrogate"] = _SURROGATE.subn("\ufffd", text)
        raw = text.encode()
    if _suspect(text, raw):
        text = _controls(text, repairs)
    if not text.isascii() and not unicodedata.is_normalized("NFC", text):
        form = unicodedata.normalize("NFC", text)
        repairs["nfc"] = max(1, abs(len(text) - len(form)))
        text = form
    return text, repairs


def parsable(markup: str) -> tuple[str, dict[str, int]]:
    """Markup without what a parser stops at or cannot hold, NULs and lone surrogates; counts."""
    repairs: dict[str, int] = {}
    if nuls := markup.count("\0"):
        markup, repairs["nul"] = markup.replace("\0", ""), nuls
    try:
        markup.encode()
    except UnicodeEncodeError:
        markup, repairs["surrogate"] = _SURROGATE.subn("\ufffd", markup)
    return markup, repairs


def _suspect(text: str, raw: bytes) -> bool:
    """Whether there is anything for `_controls`: each kind where it is found the fastest."""
    if len(raw.translate(None, _CONTROL_BYTES)) != len(raw):
        return True
    return not raw.isascii() and (
        _C1_BYTES.search(raw) is not None or any(mark in text for mark in _MARKS)
    )


def _controls(text: str, repairs: dict[str, int]) -> str:
    """All repairs that look at single characters, but surrogates."""

    def count(kind: str, number: int) -> None:
        if number:
            repairs[kind] = number

    for kind, mark in (("nul", "\0"), ("bom", "\ufeff")):
        count(kind, text.count(mark))
        text = text.replace(mark, "")
    count("crlf", text.count("\r\n"))
    text = text.replace("\r\n", "\n")
    count("cr", text.count("\r"))
    text = text.replace("\r", "\n")
    if not _suspect(text, text.encode()):  # line ends alone, as in most pages
        return text
    text, lines = _LINES.subn("\n", text)
    count("line", lines)
    text, controls = _CONTROLS.subn("", text)
    count("control", controls)
    text, c1 = _C1.subn(lambda found: _WINDOWS[found[0]], text)
    count("c1", c1)
    return text


def clean_line(text: str | None) -> str | None:
    """A short value (a URL, a date, an identity) as it is, but what no UTF-8 column can hold.

    Neither composed nor read as Windows-1252: another form is another address, and what stands
    here must be found in the raw record (a real page has U+0094 in its URL). None when empty.
    """
    if text is None:
        return None
    return _SURROGATE.sub("\ufffd", text).replace("\0", "").strip() or None


def clean_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """What the source gave, as one JSON object can hold it: strings cleaned, no NaN."""
    return {clean_text(str(k))[0]: _clean(v) for k, v in values.items()}


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)[0]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return clean_values(value)
    if isinstance(value, (list, tuple)):
        return [_clean(v) for v in value]
    return value
