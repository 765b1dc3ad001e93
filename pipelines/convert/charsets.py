"""Bytes of a page to text: byte order mark, what the transport said, what the page says, detection.

A mark is certain, so it goes first (WHATWG, "BOM sniff"). Then the labels in the order of WHATWG:
the header's, that of a `<meta>` outside comments, that of an XML declaration. Three rules differ,
because an archive has no reader who would notice:

    few wrong places     a label is believed when all but a few places fit (a page cut in the middle
                         of a character, one pasted line), and these become U+FFFD, which is counted
    many wrong places    it is not: the next label has its turn, then detection, then Windows-1252
    header against page  where the page says UTF-8 and is UTF-8, with at least one letter beyond
                         ASCII, so it is read, whatever the header says: servers state a default,
                         and text in another charset is next to never valid UTF-8

Labels mean what they mean on the web, which is more than Python's codecs of the same names:
Shift_JIS is Windows-31J, EUC-KR is UHC, GB2312 and GBK are GB 18030, Big5 has Hong Kong's letters,
EUC-JP those of NEC and IBM; 80 to 9F that a Windows code page leaves undefined are C1 controls.
"""

from __future__ import annotations

import codecs
import re

from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5

_META = re.compile(
    rb"<meta[^>]{0,300}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:+-]{1,40})", re.IGNORECASE
)
_XML = re.compile(
    rb"\s*<\?xml[^>]{0,200}?\sencoding\s*=\s*[\"']([A-Za-z0-9_.:+-]{1,40})", re.IGNORECASE
)
_COMMENT = re.compile(rb"<!--(?:-?>|.*?(?:--!?>|\Z))", re.DOTALL)
_PRESCAN = 4096  # bytes in which a <meta> counts; browsers take 1024, real pages need more
_TOLERATED = 500  # a page may have one wrong place in this many bytes
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_MORE = {"x-mac-cyrillic": "mac-cyrillic", "x-mac-ukrainian": "mac-cyrillic"}
_WIDER = {
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "gbk": "gb18030",
    "gb2312": "gb18030",
}
_MENDED = frozenset({"euc_jp", "gb18030", "big5hkscs"})
# What JIS X 0208 has in common with Shift_JIS and Python's euc_jp maps otherwise than WHATWG.
_JIS = str.maketrans("\u301c\u2016\u2212\xa2\xa3\xac", "\uff5e\u2225\uff0d\uffe0\uffe1\uffe2")
_UNUSED = re.compile("[\uf8f0-\uf8f3]")  # cp932 makes these of A0 and FD to FF, which mean nothing


def decode(body: bytes, charset: str) -> tuple[str, str, int]:
    """Text, the encoding used, and how many places could not be decoded (U+FFFD now)."""
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            body = body[len(mark) :]
            text, bad = _replacing(body, encoding)
            if encoding != "utf-8" or _fits(text, bad, encoding, len(body)):
                return text, encoding, bad
    labels = _labels(body, charset)
    if "utf-8" in labels[1:] and not body.isascii():
        try:
            return body.decode(), "utf-8", 0
        except UnicodeDecodeError:
            pass
    for encoding in labels:
        text, bad = _replacing(body, encoding)
        if _fits(text, bad, encoding, len(body)):
            return text, encoding, bad
    return _detected(body)


def decode_plain(body: bytes, charset: str = "") -> tuple[str, str, int]:
    """`decode` for a text: mark, the charset if one is stated, UTF-8, then detection.

    Detection alone takes ASCII for Windows-1252 and short Windows-1252 for UTF-8.
    """
    if body.startswith(tuple(mark for mark, _ in _MARKS)):
        text, encoding, bad = decode(body, "")
        return f"\ufeff{text}", encoding, bad  # for the text policy to take off, and to count
    for encoding in filter(None, (_codec(charset), "utf-8")):
        text, bad = _replacing(body, encoding)
        if _fits(text, bad, encoding, len(body)) if charset else bad <= len(body) // _TOLERATED:
            return text, encoding, bad
    return _detected(body)


def _labels(body: bytes, charset: str) -> list[str]:
    """The codecs of the labels that are known, in the order in which they are believed."""
    start = body[:_PRESCAN]
    if b"<!--" in start:
        start = _COMMENT.sub(b"", start)
    said = [charset, *(m[1].decode("ascii") for m in (_META.search(start), _XML.match(start)) if m)]
    found: list[str] = []
    for label in said:
        encoding = _codec(label)
        # A label that could be read as ASCII cannot be in UTF-16.
        if encoding.startswith("utf-16") and b"\0" not in body[:_PRESCAN]:
            encoding = "utf-8"
        if encoding and encoding not in found:
            found.append(encoding)
    return found


def _codec(label: str) -> str:
    """Python's codec for what a label means on the web, or ""."""
    known = map_encoding_to_html5(label, fallback_utf8=False) if label else None
    known = (known or _MORE.get(label.strip().lower(), "")).lower()
    return _WIDER.get(known, known)


def _fits(text: str, bad: int, encoding: str, size: int) -> bool:
    """Whether a label is believed. All but UTF-8 take wrong bytes for letters, so more is asked.

    Of a page in ASCII with some accents of Windows-1252, a multi-byte codec loses each of them.
    """
    if bad == 0:
        return True
    if bad > 1 + size // _TOLERATED:
        return False
    return encoding == "utf-8" or _letters(text) > 3 * bad


def _letters(text: str) -> int:
    """Characters that are not ASCII."""
    return len(text) - len(text.encode("ascii", "ignore"))


def _detected(body: bytes) -> tuple[str, str, int]:
    """What the bytes look like; Windows-1252, which has all but five bytes, where that fails."""
    encoding = _codec(detect_encoding(body) or "utf-8") or "utf-8"
    text, bad = _replacing(body, encoding)
    if bad and _letters(text) <= 3 * bad:
        encoding = "cp1252"
        text, bad = _replacing(body, encoding)
    return text, encoding, bad


def _replacing(body: bytes, encoding: str) -> tuple[str, int]:
    """Text, and how many places of it are U+FFFD for bytes that mean nothing in the encoding."""
    bad = 0
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError:
        mended = encoding in _MENDED or encoding.startswith("cp125")
        text = body.decode(encoding, "gristmill-web" if mended else "replace")
        bad = text.count("\ufffd")
        bad -= body.count(b"\xef\xbf\xbd") if encoding == "utf-8" else 0  # stood there before
    if encoding == "cp932":
        text, unused = _UNUSED.subn("\ufffd", text)
        bad += unused
    return text.translate(_JIS) if encoding == "euc_jp" else text, bad


def _web(error: UnicodeError) -> tuple[str, int]:
    """What WHATWG's tables have where Python's codec has nothing."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    at = error.start
    pair = error.object[at : at + 2]
    if error.encoding == "charmap" and pair[0] < 0xA0:  # so are all code pages named
        return chr(pair[0]), at + 1
    if error.encoding == "gb18030" and pair[:1] == b"\x80":
        return "€", at + 1
    if error.encoding == "big5hkscs" and pair == b"\xa3\xe1":
        return "€", at + 2
    if error.encoding == "euc_jp" and len(pair) == 2 and min(pair) > 0xA0 and max(pair) < 0xFF:
        row, cell = pair[0] - 0xA1, pair[1] - 0xA1  # of JIS X 0208, with the rows of NEC and IBM
        lead = (0x81 if row < 62 else 0xC1) + row // 2
        trail = cell + 0x9F if row % 2 else cell + 0x40 + (cell >= 63)
        try:
            return bytes((lead, trail)).decode("cp932"), at + 2
        except UnicodeDecodeError:
            pass
    return "\ufffd", error.end


codecs.register_error("gristmill-web", _web)
