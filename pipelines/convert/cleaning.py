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
`repairs`. Most texts need none of it, and a kernel over their bytes says so: of 5 MB of web
texts, 6% of them to be changed, the policy takes 10 ms (3.1 for these 6%) where it took 21.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from . import _kernels as k

_SURROGATE = re.compile("[\ud800-\udfff]")
_C1 = re.compile(rb"\xc2[\x80-\x9f]")
_BOM = "\ufeff".encode()
_LINES = tuple(mark.encode() for mark in "\x0b\x0c\x85\u2028\u2029")
_CONTROLS = bytes({*range(1, 9), *range(14, 32), 127})
_WINDOWS = {
    chr(code).encode(): bytes([code]).decode("cp1252", "ignore").encode()
    for code in range(0x80, 0xA0)
}


def clean_text(text: str, utf8: bytes | None = None) -> tuple[str, dict[str, int]]:
    """Text that every later part can hold, and what was changed: counts by kind, only if above 0.

    Kinds: `nul`, `bom`, `surrogate`, `crlf`, `cr`, `line` (VT, FF, NEL, U+2028, U+2029), `c1`,
    `control`, counted in characters of the given text; `nfc`, in characters more or fewer, at
    least 1. `utf8`: the text's bytes where they are known; the text as given comes back, the same
    object, when nothing was changed.
    """
    if text.isascii() and text.isprintable():  # a URL, a date, a key: most of what is cleaned
        return text, {}
    repairs: dict[str, int] = {}
    try:
        raw = text.encode() if utf8 is None else utf8
    except UnicodeEncodeError:
        text, repairs["surrogate"] = _SURROGATE.subn("\ufffd", text)
        raw = text.encode()
    found = _look(raw)
    if found & ~k.FORM:
        raw = _mend(raw, found, repairs)
        text = raw.decode()
        found = _look(raw)  # what stood between two marks may be gone
    if found and not unicodedata.is_normalized("NFC", text):
        form = unicodedata.normalize("NFC", text)
        repairs["nfc"] = max(1, abs(len(text) - len(form)))
        text = form
    return text, repairs


def _look(raw: bytes) -> int:
    data = np.frombuffer(raw, np.uint8)
    return int(k.look(data, np.frombuffer(raw, np.uint64, len(raw) >> 3), _classes()))


@cache
def _classes() -> np.ndarray:
    """What `look` needs to know of code points, uint8 each, by the tables of `unicodedata`.

    Left out are stretches that every version of Unicode has unchanged by NFC and no mark in: CJK
    ideographs, all syllables of Hangul but those that name each of its letters once, private use,
    and what lies above the last ideographs for compatibility. 40 ms, once in a process.
    """
    stretches = ((0x80, 0x3400), (0xA000, 0xAE4C), (0xD7A4, 0xD800), (0xF900, 0x20000))
    points = [p for a, b in (*stretches, (0x2F800, 0x2FA20)) for p in range(a, b)]
    chars = [*map(chr, points)]
    lines = "\n".join(chars)
    composed = unicodedata.normalize("NFC", lines).split("\n")
    apart = unicodedata.normalize("NFD", lines).split("\n")
    classes = np.zeros(0x2FA20, np.uint8)
    classes[points] = [*map(unicodedata.combining, chars)]
    changed = [p for p, c, n in zip(points, chars, composed, strict=True) if c != n]
    joining = {ord(c) for parts in apart for c in parts[1:]}  # may join the character before it
    classes[[*changed, *joining]] = k.CLASS_FORM
    classes[0x80:0xA0] = k.CLASS_C1
    classes[[0x85, 0x2028, 0x2029]] = k.CLASS_LINE
    classes[0xFEFF] = k.CLASS_BOM
    classes.flags.writeable = False
    return classes


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


def _mend(raw: bytes, found: int, repairs: dict[str, int]) -> bytes:
    """All repairs of UTF-8 that were `found`, but that of its form."""
    for kind, flag, mark, instead in (
        ("nul", k.NUL, b"\0", b""),
        ("bom", k.BOM, _BOM, b""),
        ("crlf", k.CR, b"\r\n", b"\n"),
        ("cr", k.CR, b"\r", b"\n"),
    ):
        if found & flag and (number := raw.count(mark)):
            repairs[kind] = number
            raw = raw.replace(mark, instead)
    if found & (k.VERTICAL | k.LINE):
        repairs["line"] = sum(map(raw.count, _LINES))
        for mark in _LINES:
            raw = raw.replace(mark, b"\n")
    kept = raw.translate(None, _CONTROLS) if found & k.CONTROL else raw
    letters = [_WINDOWS[c1] for c1 in _C1.findall(kept)] if found & k.C1 else []
    nothing = letters.count(b"")
    if controls := len(raw) - len(kept) + nothing:
        repairs["control"] = controls
    if len(letters) > nothing:
        repairs["c1"] = len(letters) - nothing
    return _C1.sub(lambda c1: _WINDOWS[c1[0]], kept) if letters else kept


def clean_line(text: str | None) -> str | None:
    """A short value (a URL, a date, an identity) as it is, but what no UTF-8 column can hold.

    Neither composed nor read as Windows-1252: another form is another address, and what stands
    here must be found in the raw record (a real page has U+0094 in its URL). None when empty.
    """
    if text is None:
        return None
    if text.isascii() and text.isprintable():
        return text.strip() or None
    return _SURROGATE.sub("\ufffd", text).replace("\0", "").strip() or None


def clean_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """What the source gave, as one JSON object can hold it: strings cleaned, no NaN."""
    return {_clean(str(k)): _clean(v) for k, v in values.items()}


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() and value.isprintable() else clean_text(value)[0]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return clean_values(value)
    if isinstance(value, (list, tuple)):
        return [_clean(v) for v in value]
    return value
