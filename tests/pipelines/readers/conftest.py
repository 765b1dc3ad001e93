"""Builders of small archives, and one call that reads bytes through a file of no telling name."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import zstandard

from gristmill.documents.records import Loss, Record, Skip
from gristmill.pipelines.readers import Extent, ReadAccount, read_extent

CODECS = ("plain", "gzip", "zstd", "bzip2", "xz")
PAGE = "<html><body><p>{}</p></body></html>"


def pack(data: bytes, codec: str) -> bytes:
    """One member of a codec."""
    if codec == "gzip":
        return gzip.compress(data, mtime=0)
    if codec == "zstd":
        return zstandard.ZstdCompressor(write_checksum=True).compress(data)
    if codec == "bzip2":
        return bz2.compress(data)
    if codec == "xz":
        return lzma.compress(data)
    return data


def warc(
    kind: str, content: bytes, *, length: int | None = None, end: bytes = b"\r\n", **more
) -> bytes:
    """One WARC record; `more` are further headers, underscores for dashes."""
    lines = [b"WARC/1.0", b"WARC-Type: " + kind.encode()]
    lines += [f"{k.replace('_', '-')}: {v}".encode() for k, v in more.items()]
    lines.append(f"Content-Length: {len(content) if length is None else length}".encode())
    return end.join(lines) + end + end + content + end + end


def wet(number: int, text: str | None = None, **more) -> bytes:
    """A conversion record with its own id."""
    content = (f"text of record {number}" if text is None else text).encode()
    return warc(
        "conversion",
        content,
        WARC_Record_ID=f"<urn:{number}>",
        WARC_Target_URI=f"http://h/{number}",
        **more,
    )


def response(number: int, body: bytes, headers: str = "", *, status: str = "200 OK") -> bytes:
    """A response record with an HTML body."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n{headers}\r\n".encode()
    return warc(
        "response",
        head + body,
        Content_Type="application/http; msgtype=response",
        WARC_Record_ID=f"<urn:{number}>",
        WARC_Target_URI=f"http://h/{number}",
        WARC_Date="2024-01-02T03:04:05Z",
    )


ARC_HEAD = b"1 0 test\nURL IP-address Archive-date Content-type Archive-length\n"


def arc(
    number: int,
    body: bytes,
    headers: str = "",
    *,
    status: str = "200 OK",
    length: int | None = None,
    version: int = 1,
    end: bytes = b"\n",
    url: str | None = None,
) -> bytes:
    """One ARC record with an HTML response; number 0 is the version block that comes first."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n{headers}\r\n".encode()
    content = head + body if number else ARC_HEAD
    url = url or (f"http://h/{number}" if number else "filedesc://test.arc")
    size = len(content) if length is None else length
    more = " 200 - - 0 test.arc" if version == 2 else ""
    media = "text/html" if number else "text/plain"
    line = f"{url} 10.0.0.{number % 250} 20140216050221 {media}{more} {size}".encode()
    return line + end + content + b"\n"


def rows(count: int, start: int = 0) -> list[bytes]:
    """JSON lines with distinct texts."""
    return [
        json.dumps({"id": f"r{n}", "text": f"row {n} " + "lorem ipsum " * (n % 7)}).encode() + b"\n"
        for n in range(start, start + count)
    ]


@dataclass
class Read:
    """All that came out of a file."""

    items: list = field(default_factory=list)
    account: ReadAccount = field(default_factory=ReadAccount)
    root: Path = Path()
    file: str = "data"

    @property
    def records(self) -> list[Record]:
        return [i for i in self.items if isinstance(i, Record)]

    @property
    def losses(self) -> list[Loss]:
        return [i for i in self.items if isinstance(i, Loss)]

    @property
    def skips(self) -> list[Skip]:
        return [i for i in self.items if isinstance(i, Skip)]

    @property
    def ids(self) -> list[str | None]:
        return [r.identity for r in self.records]

    @property
    def reasons(self) -> list[str]:
        return [loss.reason for loss in self.losses]


class Make:
    """What the tests build with."""

    CODECS = CODECS
    PAGE = PAGE
    pack = staticmethod(pack)
    warc = staticmethod(warc)
    wet = staticmethod(wet)
    response = staticmethod(response)
    rows = staticmethod(rows)
    arc = staticmethod(arc)

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, data: bytes, name: str = "data", **options) -> Read:
        """Write, read to the end, and check that every byte is in the account."""
        (self.root / name).write_bytes(data)
        result = Read(root=self.root, file=name)
        extent = Extent(name, 0, len(data))
        result.items = list(read_extent(self.root, extent, result.account, **options))
        result.account.check()
        assert result.account.stored_bytes == len(data)
        return result


@pytest.fixture
def make(tmp_path) -> Make:
    return Make(tmp_path)
