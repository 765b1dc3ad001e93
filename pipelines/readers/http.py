"""An HTTP response as archived: status, headers, and the body freed of its codings.

All codings are undone within `limit` bytes, so a page that inflates without end is a loss of its
own and not the worker's end. How each case is caught:

    coding undone before       the header stayed (Common Crawl renames it, others do not): a body
                               that reads as text is taken as it is, whatever the coding
    several members, frames    gzip, zstd: all of them; bytes after them that start none are left
    cut body                   the coding has no end, a chunk is short: `truncated_body`
    coding unknown or wrong    over a text nothing was done; over binary bytes `bad_coding`
    coding without a header    `warcrecord.make_page`: what is binary in the end is `not_text`
    header given twice         the lines of a list are one list (RFC 9110, 5.3)
"""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Mapping
from typing import NamedTuple

import brotli
import zstandard

from .account import above
from .binary import binary, plain
from .frames import MAGIC, WINDOW, frame_end

_STATUS = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]+(\d{3})\b")
_CHUNK = re.compile(rb"[ \t]*([0-9a-fA-F]{1,16})[ \t]*(?:;[^\r\n]*)?\r?\n")
_ODD = re.compile(rb"\n\r{2,8}\n")
_SIZE_LINE = 20  # bytes of a chunk's first line, but for extensions
_PIECE = 64 << 10  # bytes out of brotli at once
_FED = 16 << 10  # bytes into zlib at once: what it copies where a member ends
_LISTS = frozenset({"content-encoding", "transfer-encoding", "x-robots-tag"})
_GZIP = b"\x1f\x8b"
_PASSED = frozenset({"", "identity", "chunked"})


class HttpError(Exception):
    """`args` are a loss reason and its detail."""


def headers_of(block: bytes) -> dict[str, str]:
    """Header lines to a dictionary; folded lines are joined, lines without a colon are skipped."""
    found: dict[str, str] = {}
    text = block.decode("utf-8", "replace")
    if "\n " not in text and "\n\t" not in text:  # no folded lines, as in nearly every record
        for line in text.split("\n"):
            name, colon, value = line.partition(":")
            if colon:
                name, value = name.strip().lower(), value.strip()
                if name in found and name in _LISTS:
                    value = f"{found[name]}, {value}"
                found[name] = value
        return found
    last = ""
    for line in text.split("\n"):
        if line[:1] in {" ", "\t"} and last:
            found[last] += " " + line.strip()
            continue
        name, colon, value = line.partition(":")
        if colon:
            last = name.strip().lower()
            listed = last in found and last in _LISTS
            found[last] = f"{found[last]}, {value.strip()}" if listed else value.strip()
    return found


def head_end(data: bytes, at: int, limit: int) -> tuple[int, int]:
    """End of the header block that starts at `at` and start of what follows; (-1, -1) if none.

    Lines may end in CRLF, in LF alone, or in CRCRLF: what a transfer as text makes of CRLF.
    """
    crlf = data.find(b"\n\r\n", at, at + limit)
    lf = data.find(b"\n\n", at, crlf + 1 if crlf >= 0 else at + limit)
    end, body = (lf, lf + 2) if lf >= 0 else (crlf, crlf + 3)
    odd = data.find(b"\n\r\r", at, end if end >= 0 else at + limit)
    if odd >= 0 and (match := _ODD.search(data, odd, end if end >= 0 else at + limit)):
        end, body = match.span()
    return (end, body) if end >= 0 else (-1, -1)


def parse_head(data: bytes, begin: int, stop: int) -> tuple[int, dict[str, str], int]:
    """Of the response data[begin:stop]: status, headers, and where its body starts in `data`.

    Header names are in lower case, the last of equal ones wins; lists (codings,
    X-Robots-Tag) are joined.
    HttpError(`bad_http`, detail) when there is no status line.
    """
    status = _STATUS.match(data, begin, stop)
    if not status:
        raise HttpError("bad_http", f"no status line but {data[begin : min(stop, begin + 40)]!r}")
    end, start = head_end(data, begin, stop - begin)
    if end < 0:
        end = start = stop
    first = data.find(b"\n", begin, end) + 1
    return int(status[1]), headers_of(data[first:end]) if first else {}, start


def decode_body(headers: Mapping[str, str], body: bytes, limit: int) -> bytes:
    """Undo the codings. HttpError(`bad_coding`, `truncated_body` or `too_large`, detail)."""
    if "chunked" in (transfer := _codings(headers, "transfer-encoding")):
        body = _unchunk(body)
    for coding in reversed(_codings(headers, "content-encoding") + transfer):
        if coding not in _PASSED:
            body = _decode(body, coding, limit)
    return body


def _codings(headers: Mapping[str, str], name: str) -> list[str]:
    """In the order in which they were applied, as far as the header says so."""
    return [c.partition(";")[0].strip(" \t\"'").lower() for c in headers.get(name, "").split(",")]


def _unchunk(body: bytes) -> bytes:
    """Join the chunks; a body whose first line is no chunk size was joined before."""
    parts: list[bytes] = []
    at = 0
    while match := _CHUNK.match(body, at):
        size = int(match[1], 16)
        if size == 0:
            return b"".join(parts)
        at = match.end()
        if at + size > len(body):
            if not parts and not match[0].endswith(b"\r\n"):  # so may a text start: `12\n`
                return body
            raise HttpError("truncated_body", f"a chunk of {size} bytes has {len(body) - at}")
        parts.append(body[at : at + size])
        at += size
        at += 2 if body[at : at + 2] == b"\r\n" else body[at : at + 1] == b"\n"
    if not parts:
        return body
    if len(body) - at <= _SIZE_LINE and b"\n" not in body[at:]:
        raise HttpError("truncated_body", "the last chunk is missing")
    raise HttpError("bad_coding", f"no chunk size at byte {at} of the body")


def _decode(body: bytes, coding: str, limit: int) -> bytes:
    """Undo one coding. What is text needs nothing undone."""
    if not body or (plain(body) and not body.startswith(MAGIC)):
        return body
    if coding in {"gzip", "x-gzip"} and body.startswith(_GZIP):
        return _inflate(body, 31, coding, limit)
    if coding == "deflate":  # servers send zlib and raw deflate under this name
        zlib_header = body[0] & 0x0F == 8 and int.from_bytes(body[:2], "big") % 31 == 0
        return _inflate(body, 15 if zlib_header else -15, coding, limit)
    if coding == "br":
        return _brotli(body, limit)
    if coding == "zstd" and body.startswith(MAGIC):
        return _zstd(body, limit)
    if binary(body[:_FED]):
        raise HttpError("bad_coding", f"{coding[:40]!r} does not start with {body[:8]!r}")
    return body


def _inflate(body: bytes, window: int, coding: str, limit: int) -> bytes:
    """All members of gzip, the one stream of zlib or raw deflate; what follows is left."""
    parts: list[bytes] = []
    size = at = 0
    decoder = zlib.decompressobj(window)
    try:
        while at < len(body) and size <= limit:
            if decoder.eof:
                if window != 31 or not body.startswith(_GZIP, at):
                    break
                decoder = zlib.decompressobj(window)
            piece = body[at : at + _FED]
            parts.append(decoder.decompress(piece, limit + 1 - size))
            size += len(parts[-1])
            at += len(piece) - len(decoder.unused_data)
    except zlib.error as error:
        raise HttpError("bad_coding", f"{coding}: {error}") from error
    return _whole(b"".join(parts), decoder.eof, coding, limit)


def _brotli(body: bytes, limit: int) -> bytes:
    decoder = brotli.Decompressor()
    parts: list[bytes] = []
    size = 0
    try:
        data = body
        while size <= limit:
            out = decoder.process(data, output_buffer_limit=_PIECE)
            data = b""
            parts.append(out)
            size += len(out)
            if decoder.is_finished() or (not out and decoder.can_accept_more_data()):
                break
    except brotli.error as error:
        raise HttpError("bad_coding", f"br: {error}") from error
    return _whole(b"".join(parts), decoder.is_finished(), "br", limit)


class _Body(NamedTuple):
    """A body as what `frame_end` walks."""

    data: bytes
    end: int

    def view(self, at: int, size: int) -> memoryview:
        return memoryview(self.data)[at : at + size]


def _zstd(body: bytes, limit: int) -> bytes:
    """All frames. The library reads a cut one as if it were whole, so they are walked first."""
    at = 0
    while body.startswith(MAGIC, at):
        at, fault = frame_end(_Body(body, len(body)), at)
        if fault == "truncated_stream":
            raise HttpError("truncated_body", "the zstd body has no end")
        if fault:
            break  # the library says what it is
    source = zstandard.ZstdDecompressor(max_window_size=WINDOW).stream_reader(
        io.BytesIO(body), read_across_frames=True
    )
    try:
        out = source.read(limit + 1)
    except zstandard.ZstdError as error:
        raise HttpError("bad_coding", f"zstd: {error}") from error
    return _whole(out, finished=True, coding="zstd", limit=limit)


def _whole(out: bytes, finished: bool, coding: str, limit: int) -> bytes:
    if len(out) > limit:
        raise HttpError("too_large", f"the {coding} body is {above(limit)}")
    if not finished:
        raise HttpError("truncated_body", f"the {coding} body has no end")
    return out
