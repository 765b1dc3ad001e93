"""One policy for text, applied once, where a record becomes a document.

    NUL               -> nothing  some tools stop reading at it
    BOM at the start  -> nothing
    lone surrogates   -> U+FFFD   UTF-8 cannot hold them; pyarrow, xxhash and tokenizers raise
    CRLF, CR          -> LF

In this order, so that cleaning twice changes nothing. Each repair is counted in the document's
`repairs`. Clean text costs four searches and one encoding where it is not ASCII.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")


def clean_text(text: str) -> tuple[str, dict[str, int]]:
    """Text that every later part can hold, and what was changed: counts by kind, only if above 0.

    Kinds: `nul`, `bom`, `surrogate`, `crlf`, `cr`; all counted in characters of the given text.
    """
    repairs: dict[str, int] = {}
    if "\0" in text:
        repairs["nul"] = text.count("\0")
        text = text.replace("\0", "")
    if text.startswith("\ufeff"):
        short = text.lstrip("\ufeff")
        repairs["bom"] = len(text) - len(short)
        text = short
    if not text.isascii() and not _encodes(text):
        text, repairs["surrogate"] = _SURROGATE.subn("\ufffd", text)
    if "\r" in text:
        if pairs := text.count("\r\n"):
            repairs["crlf"] = pairs
            text = text.replace("\r\n", "\n")
        if singles := text.count("\r"):
            repairs["cr"] = singles
            text = text.replace("\r", "\n")
    return text, repairs


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def clean_line(text: str | None) -> str | None:
    """A short value (a URL, a date, an identity): cleaned, None when nothing is left."""
    return clean_text(text)[0].strip() or None if text is not None else None


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
