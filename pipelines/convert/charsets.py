"""Bytes of a page to text: byte order mark, what the transport said, `<meta>`, then detection.

A mark is certain, so it goes first (WHATWG, "BOM sniff"). A label that does not fit the bytes is
not believed, with one exception: a page that says UTF-8 and is UTF-8 but for a few bytes (cut in
the middle of a character, one pasted line) keeps its text with U+FFFD in those places; falling
back to Windows-1252, as decoders usually do, would turn every accent of the page to mojibake.
"""

from __future__ import annotations

import re

from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5

_META = re.compile(
    rb"<meta[^>]{0,300}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:+-]{1,40})", re.IGNORECASE
)
_PRESCAN = 4096  # bytes in which a <meta> counts; browsers take 1024, real pages need more
_TOLERATED = 500  # a UTF-8 page may have one wrong place in this many bytes
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


def decode(body: bytes, charset: str) -> tuple[str, str, int]:
    """Text, the encoding used, and how many places could not be decoded (U+FFFD now)."""
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            text, bad = _replacing(body[len(mark) :], encoding)
            return text, encoding, bad
    tried: set[str] = set()
    meta = _META.search(body[:_PRESCAN])
    for label in (charset, meta[1].decode("ascii") if meta else ""):
        known = map_encoding_to_html5(label, fallback_utf8=False) if label else None
        if not known or known in tried:
            continue
        encoding = known
        tried.add(encoding)
        # A <meta> that could be read as ASCII cannot be in UTF-16.
        if encoding.lower().startswith("utf-16") and b"\0" not in body[:_PRESCAN]:
            encoding = "utf-8"
        text, bad = _replacing(body, encoding)
        if bad == 0 or (encoding.lower() == "utf-8" and bad <= 1 + len(body) // _TOLERATED):
            return text, encoding.lower(), bad
    encoding = detect_encoding(body) or "utf-8"
    text, bad = _replacing(body, encoding)
    return text, encoding.lower(), bad


def decode_plain(body: bytes) -> tuple[str, str, int]:
    """`decode` for a text, which states no charset: mark, UTF-8, then detection.

    Detection alone takes ASCII for Windows-1252 and short Windows-1252 for UTF-8.
    """
    if body.startswith(tuple(mark for mark, _ in _MARKS)):
        text, encoding, bad = decode(body, "")
        return f"\ufeff{text}", encoding, bad  # for the text policy to take off, and to count
    text, bad = _replacing(body, "utf-8")
    if bad <= len(body) // _TOLERATED:
        return text, "utf-8", bad
    encoding = (detect_encoding(body) or "utf-8").lower()
    if encoding in {"utf-8", "utf8"}:
        encoding = "cp1252"
    text, bad = _replacing(body, encoding)
    return text, encoding, bad


def _replacing(body: bytes, encoding: str) -> tuple[str, int]:
    try:
        return body.decode(encoding), 0
    except UnicodeDecodeError:
        text = body.decode(encoding, "replace")
        return text, max(1, text.count("\ufffd"))
    except LookupError:
        text = body.decode("utf-8", "replace")
        return text, max(1, text.count("\ufffd"))
