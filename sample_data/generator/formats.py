"""Files as readers meet them: WARC records in gzip members, zstd frames, Parquet.

gzip members are deflated through zlib with time 0. Two zlib builds may deflate differently, so
whoever compares two makings of the sample data compares what the members decode to.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from generator.grammar import Dice

SOFTWARE = "gristmill sample_data/make.py"


def gzip_member(data: bytes) -> bytes:
    """One gzip member: level 9, no name, time 0."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = deflate.compress(data) + deflate.flush()
    tail = zlib.crc32(data).to_bytes(4, "little") + (len(data) % 2**32).to_bytes(4, "little")
    return b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff" + body + tail


def flip_byte(member: bytes) -> tuple[bytes, int]:
    """Flip one byte in the middle of a member so that inflating fails; gives its offset in it."""
    for at in range(len(member) // 2, len(member) - 8):
        broken = member[:at] + bytes([member[at] ^ 0xFF]) + member[at + 1 :]
        try:
            zlib.decompress(broken, 31)
        except zlib.error as error:
            if "incorrect" not in str(error):  # a broken stream, not only a wrong check sum
                return broken, at
    raise ValueError("no byte of the member breaks it")


@dataclass
class Warc:
    """A WARC or WET file in the making: one gzip member per record."""

    dice: Dice
    date: str
    members: list[bytes] = field(default_factory=list)
    kinds: dict[str, int] = field(default_factory=dict)

    @property
    def offset(self) -> int:
        """Where the next member will start, in bytes of the file."""
        return sum(map(len, self.members))

    def add(
        self, kind: str, headers: dict[str, str], body: bytes, *, claim: int | None = None
    ) -> str:
        """Append a record and give its id. `claim` is a Content-Length that is not true."""
        number = f"{self.dice.below(2**64):016x}{self.dice.below(2**64):016x}"
        parts = number[:8], number[8:12], "4" + number[13:16], "a" + number[17:20], number[20:]
        record_id = f"<urn:uuid:{'-'.join(parts)}>"
        digest = base64.b32encode(hashlib.sha1(body, usedforsecurity=False).digest()).decode()
        lines = {
            "WARC-Type": kind,
            "WARC-Date": self.date,
            "WARC-Record-ID": record_id,
            "Content-Length": str(len(body) if claim is None else claim),
            **headers,
            "WARC-Block-Digest": f"sha1:{digest}",
        }
        head = "WARC/1.0\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self.members.append(gzip_member(head.encode() + b"\r\n" + body + b"\r\n\r\n"))
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        return record_id

    def info(self, name: str) -> None:
        """Append the record that opens a file."""
        body = (
            f"software: {SOFTWARE}\r\nformat: WARC File Format 1.0\r\nisPartOf: SAMPLE-2024-33\r\n"
        )
        self.add(
            "warcinfo",
            {"WARC-Filename": name, "Content-Type": "application/warc-fields"},
            body.encode(),
        )

    def exchange(self, url: str, response: bytes, *, seconds: int) -> int:
        """Append request, response and metadata; gives the index of the response's member."""
        host, _, path = url.removeprefix("https://").partition("/")
        request = (
            f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: samplebot/1.0\r\n"
            "Accept: text/html\r\nAccept-Encoding: gzip, br\r\nConnection: close\r\n\r\n"
        )
        target = {"WARC-Target-URI": url, "WARC-IP-Address": "192.0.2.80"}
        self.add(
            "request",
            {"Content-Type": "application/http; msgtype=request", **target},
            request.encode(),
        )
        index = len(self.members)
        response_id = self.add(
            "response", {"Content-Type": "application/http; msgtype=response", **target}, response
        )
        self.add(
            "metadata",
            {
                "Content-Type": "application/warc-fields",
                "WARC-Target-URI": url,
                "WARC-Concurrent-To": response_id,
            },
            f"fetchTimeMs: {seconds}\r\n".encode(),
        )
        return index


def http(
    body: bytes,
    *,
    content_type: str = "text/html; charset=utf-8",
    status: str = "200 OK",
    extra: tuple[str, ...] = (),
) -> bytes:
    """An HTTP response as it came over the wire."""
    lines = [
        f"HTTP/1.1 {status}",
        "Date: Wed, 14 Aug 2024 09:30:00 GMT",
        "Server: millpond/2.4",
        f"Content-Type: {content_type}",
        *extra,
    ]
    if not any(line.startswith("Transfer-Encoding") for line in extra):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chunked(body: bytes, size: int = 700) -> bytes:
    """The body in HTTP/1.1 chunks."""
    out = bytearray()
    for at in range(0, len(body), size):
        part = body[at : at + size]
        out += f"{len(part):x}\r\n".encode() + part + b"\r\n"
    return bytes(out + b"0\r\n\r\n")


def json_line(row: object) -> bytes:
    """One JSON line in UTF-8."""
    return json.dumps(row, ensure_ascii=False).encode() + b"\n"


def write_zstd(path: Path, lines: list[bytes], frame: int = 200_000) -> None:
    """Write lines as zstd frames of at least `frame` decoded bytes each."""
    pack = zstandard.ZstdCompressor(level=12, write_checksum=True)
    out, waiting = bytearray(), b""
    for line in lines:
        waiting += line
        if len(waiting) >= frame:
            out += pack.compress(waiting)
            waiting = b""
    path.write_bytes(bytes(out) + (pack.compress(waiting) if waiting else b""))


def write_parquet(path: Path, rows: list[dict[str, str]]) -> None:
    """Write rows of strings, 64 a row group, zstd."""
    names = list(rows[0])
    schema = pa.schema([pa.field(name, pa.string()) for name in names])
    table = pa.Table.from_pylist(rows, schema=schema)
    pq.write_table(table, path, row_group_size=64, compression="zstd")
