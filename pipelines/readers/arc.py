"""ARC 1.0, 1.1 and 2.0, what WARC was before it was WARC: one header line, then so many bytes.

    URL IP-address date content-type length                                     version 1
    URL IP-address date content-type status checksum location offset file length   version 2

The first record is `filedesc://...`; its content says which version follows, but the last word of
a line is the length in each. URLs hold spaces in the wild, so a line is read from its end. There
is no mark like `WARC/`: a record counts as framed when its content is followed by a line end and
then by a line that resembles this shape or by nothing; otherwise it is `bad_framing` up to the next
line of exactly this shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...documents.records import Locator, Loss, Record, Skip
from .account import ReadOptions
from .stream import Stream
from .warc import Framed
from .warcrecord import make_page

_LINE = (
    rb"([A-Za-z][A-Za-z0-9+.-]{1,15}:[^\r\n]{0,8000}?) "
    rb"((?:\d{1,3}\.){3}\d{1,3}|[0-9A-Fa-f:]{2,45}|-) (\d{8,17}) "
    rb"(?:([^\r\n]{0,9000}?) )?(\d{1,18})\r*\n"
)
HEADER = re.compile(_LINE)
AFTER = re.compile(rb"\n(?=" + _LINE + rb")")  # ten times as fast as NEXT where nothing is found
NEXT = re.compile(rb"(?<=\n)" + _LINE)
_ADDRESS = re.compile(rb"(?:\d{1,3}\.){3}\d{1,3}")
_DATE = re.compile(rb"\d{12,17}")
LONGEST = 17_200  # bytes of a header line
_PIECE = 1 << 20


def starts(head: bytes) -> bool:
    """Whether a header line stands at the start of `head`."""
    return HEADER.match(head) is not None


def _resembles(data: bytes, at: int) -> bool:
    """Whether a header line stands at `at`, be it damaged in some of its words.

    Three of five will do: else damage to one header would cost the sound record before it too.
    """
    if HEADER.match(data, at):
        return True
    end = data.find(b"\n", at, at + LONGEST)
    words = data[at : end if end >= 0 else at + LONGEST].split()
    return (
        len(words) >= 3
        and sum(
            (
                b":" in words[0] and not words[0].endswith(b":"),
                any(_ADDRESS.fullmatch(w) for w in words[1:]),
                any(_DATE.fullmatch(w) for w in words[1:]),
                any(b"/" in w for w in words[1:]),
                words[-1].isdigit(),
            )
        )
        >= 3
    )


def frame_arc(stream: Stream, options: ReadOptions) -> Iterator[Framed]:
    """Records of the stream up to the next fault or the end; the caller takes the fault."""
    while stream.fill(1):
        start = stream.position
        if stream.buf[stream.at] in b"\r\n":
            while stream.fill(1) and stream.buf[stream.at] in b"\r\n":
                stream.at += 1
            yield stream.position, Skip(reason="blank", span=stream.position - start, records=0)
            continue
        stream.fill(LONGEST)
        head = HEADER.match(stream.buf, stream.at)
        item = _record(stream, start, head, options) if head else _headless(stream, start)
        if item is None:
            return
        yield item


def _record(
    stream: Stream, start: int, line: re.Match[bytes], options: ReadOptions
) -> Framed | None:
    """Frame the record at the window's start; None leaves the remainder to the fault."""
    head = line.end() - line.start()
    url, _, date, media, digits = line.groups()
    size = int(digits)
    if head + size > options.max_record_bytes:
        return _too_large(stream, start, head, size)
    if not stream.fill(head + size):
        return _unfinished(stream, start, head, f"length {size}, but the stream ends")
    ends = 0
    while stream.fill(head + size + ends + 1) and stream.buf[stream.at + head + size + ends] in (
        b"\r\n"
    ):
        ends += 1
    stream.fill(head + size + ends + LONGEST)
    after = stream.at + head + size + ends
    # Some writers count the line end that closes a record in its length.
    follows = ends or stream.buf[after - 1 : after] == b"\n"
    next_stands = (
        stream.member_at(stream.base + after)
        or _resembles(stream.buf, after)
        or stream.buf.find(b"\n", after) < 0  # a line that the stream cuts
    )
    if after < len(stream.buf) and not (follows and next_stands):
        return _resync(stream, start, head, f"length {size} is not followed by a record")
    if stream.fault is not None and not follows and after == len(stream.buf):
        return _unfinished(stream, start, head, "the line end after the record is cut")
    begin = stream.at + head
    item = _item(
        url.decode("utf-8", "replace"),
        date.decode(),
        (media or b"").partition(b" ")[0].decode("utf-8", "replace"),
        stream.buf,
        (begin, begin + size),
        stream.locate(start, head + size + ends),
        options,
    )
    stream.at += head + size + ends
    return stream.position, item


def _item(
    url: str,
    date: str,
    media: str,
    data: bytes,
    span: tuple[int, int],
    locator: Locator,
    options: ReadOptions,
) -> Record | Loss | Skip:
    scheme = url.partition(":")[0].lower()
    if scheme == "filedesc":
        return Skip(reason="filedesc", span=locator.span)
    if scheme not in {"http", "https"}:
        return Skip(reason="dns" if scheme == "dns" else "not_http", span=locator.span)
    return make_page(
        data,
        *span,
        locator=locator,
        limit=options.max_record_bytes,
        url=url,
        date=_iso(date),
        identity=None,
        stated=media,
        fields={"arc": True},
        archived=True,
    )


def _iso(date: str) -> str:
    """`20140216050221` as `2014-02-16T05:02:21Z`; what is no such date stays as it is."""
    d = re.fullmatch(r"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)\d*", date)
    return f"{d[1]}-{d[2]}-{d[3]}T{d[4]}:{d[5]}:{d[6]}Z" if d else date


def _headless(stream: Stream, start: int) -> Framed | None:
    line = stream.buf.find(b"\n", stream.at) < 0
    if line and stream.fault is not None:
        return None
    return _resync(stream, start, 0, "no ARC header where a record should start", cut=line)


def _unfinished(stream: Stream, start: int, head: int, detail: str) -> Framed | None:
    """A record that the stream cuts, unless its length is wrong and hides another record."""
    if NEXT.search(stream.buf, stream.at + head):
        return _resync(stream, start, head, detail)
    if stream.fault is not None:
        return None
    if not stream.ended:
        return _resync(stream, start, head, detail)
    stream.at += stream.available
    span = stream.position - start
    loss = Loss(locator=stream.locate(start, span), reason="truncated_stream", detail=detail)
    return stream.position, loss


def _resync(stream: Stream, start: int, head: int, detail: str, *, cut: bool = False) -> Framed:
    """Give up the bytes from `start` to the next header line after `head` bytes of them."""
    where = stream.locate(start)
    stream.at += max(1, head)
    found = stream.discard(NEXT, LONGEST)
    span = stream.position - start
    locator = Locator(where.file, where.offset, where.inner, span)
    reason = "truncated_stream" if cut and not found and stream.ended else "bad_framing"
    return stream.position, Loss(locator=locator, reason=reason, detail=detail)


def _too_large(stream: Stream, start: int, head: int, size: int) -> Framed:
    """Pass a record over without holding it; a header line inside it means a wrong length."""
    where = stream.locate(start)
    stream.at += head
    left = size
    reason, detail = "too_large", f"{size} bytes"
    while left:
        if not stream.fill(min(left, _PIECE)) and not stream.available:
            reason, detail = "truncated_stream", f"{size} bytes, {left} of them missing"
            break
        take = min(left, stream.available)
        if hit := NEXT.search(stream.buf, stream.at, stream.at + take):
            stream.at = hit.start()
            reason, detail = "bad_framing", f"length {size} reaches over another record"
            break
        keep = LONGEST if take < left and stream.fill(stream.available + 1) else 0
        step = max(1, min(take, stream.available) - keep)
        stream.at += step
        left -= step
    if reason == "too_large":
        while stream.fill(1) and stream.buf[stream.at] in b"\r\n":
            stream.at += 1
    span = stream.position - start
    locator = Locator(where.file, where.offset, where.inner, span)
    return stream.position, Loss(locator=locator, reason=reason, detail=detail)
