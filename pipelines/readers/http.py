"""An HTTP response as archived: status, headers, and the body freed of its codings.

All codings are undone within `limit` bytes, so a page that inflates without end is a loss of its
own and not the worker's end. Archives often keep a coding's header after undoing it (Common Crawl
renames it, others do not): a body that does not look like the coding is taken as it is.
"""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Mapping

import brotli
import zstandard

_STATUS = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]+(\d{3})\b")
_CHUNK = re.compile(rb"[ \t]*([0-9a-fA-F]{1,16})[ \t]*(?:;[^\r\n]*)?\r?\n")
_ODD = re.compile(rb"\n\r{2,8}\n")
_PIECE = 64 << 10


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
                found[name.strip().lower()] = value.strip()
        return found
    last = ""
    for line in text.split("\n"):
        if line[:1] in {" ", "\t"} and last:
            found[last] += " " + line.strip()
            continue
        name, colon, value = line.partition(":")
        if colon:
            last = name.strip().lower()
            again = last == "x-robots-tag" and last in found  # each line adds what it forbids
            found[last] = f"{found[last]}, {value.strip()}" if again else value.strip()
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

    Header names are in lower case, the last of equal ones wins (X-Robots-Tag: all).
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
    codings = [c.strip().lower() for c in headers.get("transfer-encoding", "").split(",")]
    if "chunked" in codings:
        body = _unchunk(body)
    codings = [c.strip().lower() for c in headers.get("content-encoding", "").split(",")]
    for coding in reversed(codings):
        body = _decode(body, coding, limit)
    return body


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
            if not parts:  # `12\n` may as well be how a text starts
                return body
            raise HttpError("truncated_body", f"a chunk of {size} bytes has {len(body) - at}")
        parts.append(body[at : at + size])
        at += size
        at += 2 if body[at : at + 2] == b"\r\n" else body[at : at + 1] == b"\n"
    if not parts:
        return body
    if at >= len(body):
        raise HttpError("truncated_body", "the last chunk is missing")
    raise HttpError("bad_coding", f"no chunk size at byte {at} of the body")


def _decode(body: bytes, coding: str, limit: int) -> bytes:
    """Undo one content coding. Empty and unknown bodies pass."""
    if not body:
        return body
    if coding in {"gzip", "x-gzip"}:
        return _inflate(body, 31, coding, limit) if body[:2] == b"\x1f\x8b" else body
    if coding == "deflate":  # servers send zlib and raw deflate under this name
        if body[0] & 0x0F == 8 and int.from_bytes(body[:2], "big") % 31 == 0:
            return _inflate(body, 15, coding, limit)
        return body if _is_text(body) else _inflate(body, -15, coding, limit)
    if coding == "br":
        return body if _is_text(body) else _brotli(body, limit)
    if coding == "zstd":
        return _zstd(body, limit) if body[:4] == b"\x28\xb5\x2f\xfd" else body
    return body


def _is_text(body: bytes) -> bool:
    """Whether a body that should be compressed is plainly markup."""
    return body[:64].lstrip().startswith((b"<!", b"<html", b"<HTML", b"<head", b"<?xml"))


def _inflate(body: bytes, window: int, coding: str, limit: int) -> bytes:
    decoder = zlib.decompressobj(window)
    try:
        out = decoder.decompress(body, limit + 1)
    except zlib.error as error:
        raise HttpError("bad_coding", f"{coding}: {error}") from error
    return _whole(out, decoder.eof, coding, limit)


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


def _zstd(body: bytes, limit: int) -> bytes:
    source = zstandard.ZstdDecompressor(max_window_size=128 << 20).stream_reader(
        io.BytesIO(body), read_across_frames=True
    )
    try:
        out = source.read(limit + 1)
    except zstandard.ZstdError as error:
        raise HttpError("bad_coding", f"zstd: {error}") from error
    return _whole(out, finished=True, coding="zstd", limit=limit)


def _whole(out: bytes, finished: bool, coding: str, limit: int) -> bytes:
    if len(out) > limit:
        raise HttpError("too_large", f"the {coding} body is larger than {limit} bytes")
    if not finished:
        raise HttpError("truncated_body", f"the {coding} body has no end")
    return out
