"""WARC framing: `WARC/1.x` header, Content-Length bytes, two line ends, the next header.

A record whose content is not followed by line ends, the next header or the end has a wrong length
(case 10): it is a `bad_framing` loss up to the next thing that looks like a header, searched from
its own first byte, so what it would have swallowed is read. Line ends between records belong to
the record before them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...documents.records import Loss, Record, Skip
from .account import ReadOptions
from .http import head_end, headers_of
from .stream import Stream
from .warcrecord import make_item

HEADER = re.compile(rb"WARC/\d\.\d+[ \t]*\r*\n[A-Za-z][A-Za-z-]*:")
_OVERLAP = 96  # bytes in which a match of HEADER fits
_HEAD = 1 << 20  # largest header block, bytes
_DIGITS = re.compile(r"[0-9]{1,18}")

Framed = tuple[int, Record | Loss | Skip]  # (position behind the item, item)


def frame_warc(stream: Stream, options: ReadOptions) -> Iterator[Framed]:
    """Records of the stream up to the next fault or the end; the caller takes the fault."""
    while stream.fill(1):
        start = stream.position
        if not stream.buf.startswith(b"WARC/", stream.at):
            if stream.buf[stream.at] in b"\r\n":
                _line_ends(stream)
                yield stream.position, Skip(reason="blank", span=stream.position - start, records=0)
                continue
            stream.fill(_OVERLAP)
        if not stream.buf.startswith(b"WARC/", stream.at):
            if b"WARC/".startswith(stream.buf[stream.at : stream.at + 5]):
                cut = _unfinished(stream, start, 1, "cut inside the first word of a header")
                if cut is None:
                    return
                yield cut
            else:
                yield _resync(stream, start, 0, "no WARC header where a record should start")
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
        return _unfinished(stream, start, 1, "the header block has no end")
    head = body - stream.at  # bytes
    headers = headers_of(stream.buf[stream.at : end])
    length = headers.get("content-length", "")
    if not _DIGITS.fullmatch(length):
        return _resync(stream, start, 1, f"Content-Length is {length[:40]!r}")
    size = int(length)
    if head + size > options.max_record_bytes:
        return _too_large(stream, start, head, size)
    if not stream.fill(head + size):
        return _unfinished(stream, start, head, f"Content-Length {size}, but the stream ends")
    ends, framed = _ending(stream, head + size)
    if not framed:
        if stream.available > head + size + ends or not (stream.fault or stream.ended):
            detail = f"Content-Length {size} is not followed by a record"
            return _resync(stream, start, head, detail)
        if stream.fault:
            return _unfinished(stream, start, head, "the line ends after the record are cut")
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
    ends = 0
    while stream.fill(used + ends + 1) and stream.buf[stream.at + used + ends] in b"\r\n":
        ends += 1
    begin = stream.at + used
    if stream.buf.count(b"\n", begin, begin + ends) > 1:
        return ends, True
    stream.fill(used + ends + 5)
    return ends, stream.buf.startswith(b"WARC/", stream.at + used + ends)


def _line_ends(stream: Stream) -> None:
    while stream.fill(1) and stream.buf[stream.at] in b"\r\n":
        stream.at += 1


def _unfinished(stream: Stream, start: int, head: int, detail: str) -> Framed | None:
    """A record that the stream cuts, unless its length is wrong and hides another record."""
    if HEADER.search(stream.buf, stream.at + head):
        return _resync(stream, start, head, detail)
    if stream.fault is not None:
        return None
    if stream.available >= _HEAD and not stream.ended:
        return _resync(stream, start, head, detail)
    stream.at += stream.available
    span = stream.position - start
    return stream.position, Loss(
        locator=stream.locate(start, span), reason="truncated_stream", detail=detail
    )


def _resync(stream: Stream, start: int, head: int, detail: str) -> Framed:
    """Give up the bytes from `start` to the next header after `head` bytes of them."""
    where = stream.locate(start)
    stream.at += head
    stream.discard(HEADER, _OVERLAP)
    span = stream.position - start
    locator = type(where)(where.file, where.offset, where.inner, span)
    return stream.position, Loss(locator=locator, reason="bad_framing", detail=detail)


def _too_large(stream: Stream, start: int, head: int, size: int) -> Framed:
    """Pass a record over without holding it; a header inside it means that its length is wrong.

    So an uncompressed archive stored inside a record above the limit comes out as records.
    """
    where = stream.locate(start)
    stream.at += head
    left = size
    reason, detail = "too_large", f"{size} bytes"
    while left:
        if not stream.fill(min(left, _HEAD)) and not stream.available:
            reason, detail = "truncated_stream", f"{size} bytes, {left} of them missing"
            break
        take = min(left, stream.available)
        hit = HEADER.search(stream.buf, stream.at, stream.at + take)
        if hit:
            stream.at = hit.start()
            reason, detail = "bad_framing", f"Content-Length {size} reaches over another record"
            break
        keep = _OVERLAP if take < left and stream.fill(stream.available + 1) else 0
        stream.at += max(1, take - keep)
        left -= max(1, take - keep)
    if reason == "too_large":
        _line_ends(stream)
    span = stream.position - start
    locator = type(where)(where.file, where.offset, where.inner, span)
    return stream.position, Loss(locator=locator, reason=reason, detail=detail)
