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
from .framing import (
    Framed,
    Header,
    ends_after,
    pass_line_ends,
    resync,
    too_large,
    unfinished,
)
from .stream import Stream
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
_NEXT = Header(NEXT, LONGEST, "length")


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
            pass_line_ends(stream)
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
        return too_large(stream, start, head, size, _NEXT, options)
    if not stream.fill(head + size):
        return unfinished(stream, start, head, f"length {size}, but the stream ends", _NEXT)
    ends = ends_after(stream, head + size)
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
        return resync(stream, start, head, f"length {size} is not followed by a record", _NEXT)
    if stream.fault is not None and not follows and after == len(stream.buf):
        return unfinished(stream, start, head, "the line end after the record is cut", _NEXT)
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
    return resync(stream, start, 0, "no ARC header where a record should start", _NEXT, cut=line)
