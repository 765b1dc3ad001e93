"""Whether bytes are a text in some charset, judged without knowing which."""

from __future__ import annotations

CONTROLS = bytes({*range(32), 127} - {9, 10, 12, 13, 27})
_MARKS = (b"\xff\xfe", b"\xfe\xff")
_NO_TEXT = (b"%PDF-1.", b"\x89PNG\r\n", b"\xff\xd8\xff", b"\x1f\x8b\x08", b"PK\x03\x04")
_SHORT = 512  # bytes below which a share of controls says less than broken UTF-8 does
_SEEN = 1 << 10  # bytes that say whether a body is coded
_SURE = 256  # bytes without a control that no coding makes


def binary(body: bytes) -> str:
    """Why these bytes are no text of any charset, or "". UTF-16 needs its mark to be one.

    Controls are a tenth of compressed bytes, and of texts next to none: more than 8 and one in a
    hundred are too many, or one in twenty of a short body that is not UTF-8.
    """
    if body.startswith(_MARKS):
        return ""
    controls = len(body) - len(body.translate(None, CONTROLS))
    few = controls <= 8 + len(body) // 100
    if few and controls > 1 + len(body) // 20 and len(body) < _SHORT:
        try:
            body.decode()
        except UnicodeDecodeError:
            few = False
    if few and not body.startswith(_NO_TEXT):
        return ""
    return f"{controls} of {len(body)} bytes are controls; it starts with {body[:16]!r}"


def plain(body: bytes) -> bool:
    """Whether a body is not compressed: of what is, one byte in ten is a control.

    A short one must be UTF-8 as well: 30 compressed bytes are without a control 1 time in 20.
    """
    start = body[:_SEEN]
    if start.startswith(_MARKS):
        return True
    if start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<"):
        return not binary(start)
    if len(start.translate(None, CONTROLS)) < len(start):
        return False
    try:
        start.decode()
    except UnicodeDecodeError:
        return len(body) > _SURE
    return True
