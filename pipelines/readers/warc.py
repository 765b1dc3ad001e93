"""WARC framing: `WARC/1.x` header, Content-Length bytes, two line ends, the next header.

A record whose content is not followed by line ends, the next header or the end has a wrong length
(case 10): it is a `bad_framing` loss up to the next thing that looks like a header, searched from
its own first byte, so what it would have swallowed is read. Line ends between records belong to
the record before them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...documents.records import Skip
from .account import ReadOptions
from .framing import (
    Framed,
    Header,
    ends_after,
    pass_line_ends,
    resync,
    too_large,
    unfinished,
)
from .http import head_end, headers_of
from .stream import Stream
from .warcrecord import make_item

HEADER = re.compile(rb"WARC/\d\.\d+[ \t]*\r*\n[A-Za-z][A-Za-z-]*:")
_NEXT = Header(HEADER, 96, "Content-Length")
_HEAD = 1 << 20  # largest header block, bytes
_DIGITS = re.compile(r"[0-9]{1,18}")


def frame_warc(stream: Stream, options: ReadOptions) -> Iterator[Framed]:
    """Records of the stream up to the next fault or the end; the caller takes the fault."""
    while stream.fill(1):
        start = stream.position
        if not stream.buf.startswith(b"WARC/", stream.at):
            if stream.buf[stream.at] in b"\r\n":
                pass_line_ends(stream)
                yield stream.position, Skip(reason="blank", span=stream.position - start, records=0)
                continue
            stream.fill(_NEXT.reach)
        if not stream.buf.startswith(b"WARC/", stream.at):
            if b"WARC/".startswith(stream.buf[stream.at : stream.at + 5]):
                cut = unfinished(stream, start, 1, "cut inside the first word of a header", _NEXT)
                if cut is None:
                    return
                yield cut
            else:
                yield resync(stream, start, 0, "no WARC header where a record should start", _NEXT)
            continue
        item = _record(stream, start, options)
        if item is None:
            return
        yield item


def _record(stream: Stream, start: int, options: ReadOptions) -> Framed | None:
    """Frame the record at the window's start; None leaves the remainder to the fault."""
    end, body = head_end(stream.buf, stream.at, _HEAD)
    while end < 0 and stream.available < _HEAD and stream.fill(2 * stream.available):
        end, body = head_end(stream.buf, stream.at, _HEAD)
    if end < 0:  # what there is may be less than twice what there was
        end, body = head_end(stream.buf, stream.at, _HEAD)
    if end < 0:
        return unfinished(stream, start, 1, "the header block has no end", _NEXT)
    head = body - stream.at  # bytes
    headers = headers_of(stream.buf[stream.at : end])
    length = headers.get("content-length", "")
    if not _DIGITS.fullmatch(length):
        return resync(stream, start, 1, f"Content-Length is {length[:40]!r}", _NEXT)
    size = int(length)
    if head + size > options.max_record_bytes:
        return too_large(stream, start, head, size, _NEXT, options)
    if not stream.fill(head + size):
        return unfinished(stream, start, head, f"Content-Length {size}, but the stream ends", _NEXT)
    ends, framed = _ending(stream, head + size)
    if not framed:
        if stream.available > head + size + ends or not (stream.fault or stream.ended):
            detail = f"Content-Length {size} is not followed by a record"
            return resync(stream, start, head, detail, _NEXT)
        if stream.fault:
            return unfinished(stream, start, head, "the line ends after the record are cut", _NEXT)
    begin = stream.at + head
    item = make_item(
        headers,
        stream.buf,
        begin,
        begin + size,
        stream.locate(start, head + size + ends),
        options.max_record_bytes,
    )
    stream.at += head + size + ends
    return stream.position, item


def _ending(stream: Stream, used: int) -> tuple[int, bool]:
    """Line-end bytes after `used` bytes, and whether they or a header close the record well."""
    if stream.buf.startswith(b"\r\n\r\nWARC/", stream.at + used):  # nearly every record
        return 4, True
    ends = ends_after(stream, used)
    begin = stream.at + used
    if stream.buf.count(b"\n", begin, begin + ends) > 1:
        return ends, True
    stream.fill(used + ends + 5)
    return ends, stream.buf.startswith(b"WARC/", stream.at + used + ends)
