"""What the framers share: bytes given up as one loss, and the way to the next record's header."""

from __future__ import annotations

import re
from typing import NamedTuple

from ...documents.records import Locator, Loss, Record, Skip
from .account import ReadOptions, above
from .stream import Stream

Framed = tuple[int, Record | Loss | Skip]  # (position behind the item, item)
_PIECE = 1 << 20  # bytes of a record above the limit that are held at once


class Header(NamedTuple):
    """How a header is found where no length leads to it."""

    pattern: re.Pattern[bytes]
    reach: int  # bytes in which a match fits
    length: str  # what it calls the length of a record


def lost(stream: Stream, where: Locator, start: int, reason: str, detail: str) -> Framed:
    """The bytes from `start` to the stream's place as one loss.

    `where` is `start` located before any was passed: the stream forgets members behind its window.
    """
    locator = Locator(where.file, where.offset, where.inner, stream.position - start)
    return stream.position, Loss(locator=locator, reason=reason, detail=detail)


def ends_after(stream: Stream, used: int) -> int:
    """How many bytes of line ends follow `used` bytes of the window."""
    ends = 0
    while stream.fill(used + ends + 1) and stream.buf[stream.at + used + ends] in b"\r\n":
        ends += 1
    return ends


def pass_line_ends(stream: Stream) -> None:
    """Go to the next byte that ends no line."""
    while stream.fill(1) and stream.buf[stream.at] in b"\r\n":
        stream.at += 1


def resync(
    stream: Stream, start: int, head: int, detail: str, header: Header, *, cut: bool = False
) -> Framed:
    """Give up the bytes from `start` to the next header after `head` bytes of them.

    `cut`: it is a `truncated_stream` if none comes before the end.
    """
    where = stream.locate(start)
    stream.at += max(1, head)
    found = stream.discard(header.pattern, header.reach)
    reason = "truncated_stream" if cut and not found and stream.ended else "bad_framing"
    return lost(stream, where, start, reason, detail)


def unfinished(stream: Stream, start: int, head: int, detail: str, header: Header) -> Framed | None:
    """A record that the stream cuts, unless its length is wrong and hides another record.

    None leaves the bytes to the fault that cuts them.
    """
    if header.pattern.search(stream.buf, stream.at + head):
        return resync(stream, start, head, detail, header)
    if stream.fault is not None:
        return None
    if not stream.ended:
        return resync(stream, start, head, detail, header)
    where = stream.locate(start)
    stream.at += stream.available
    return lost(stream, where, start, "truncated_stream", detail)


def too_large(
    stream: Stream, start: int, head: int, size: int, header: Header, options: ReadOptions
) -> Framed:
    """Pass a record over without holding it; a header inside it means that its length is wrong.

    So an uncompressed archive stored inside a record above the limit comes out as records.
    """
    where = stream.locate(start)
    stream.at += head
    left = size
    while left:
        if not stream.fill(min(left, _PIECE)) and not stream.available:
            detail = f"{size} bytes, {left} of them missing"
            return lost(stream, where, start, "truncated_stream", detail)
        take = min(left, stream.available)
        if hit := header.pattern.search(stream.buf, stream.at, stream.at + take):
            stream.at = hit.start()
            detail = f"{header.length} {size} reaches over another record"
            return lost(stream, where, start, "bad_framing", detail)
        keep = header.reach if take < left and stream.fill(stream.available + 1) else 0
        step = max(1, take - keep)
        stream.at += step
        left -= step
    pass_line_ends(stream)
    detail = f"{head + size} bytes, {above(options.max_record_bytes)}"
    return lost(stream, where, start, "too_large", detail)
