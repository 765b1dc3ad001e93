"""The sample data read with plain tools: zlib, zstandard, pyarrow, json, html.parser."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import brotli
import pyarrow.parquet as pq
import pytest
import zstandard

SAMPLE = Path(__file__).resolve().parents[2] / "sample_data"
BLOCKS = {"h1", "h2", "p", "li", "pre"}


class Article(HTMLParser):
    """The blocks inside <article>, but for the line that the host puts there; other text apart."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[str] = []
        self.lines: list[str] = []
        self.inside = self.open = self.silent = False

    def handle_starttag(self, tag, attrs):
        self.inside |= tag == "article"
        self.silent = tag in {"script", "style", "title"}
        if self.inside and tag in BLOCKS and ("class", "hint") not in attrs:
            self.open = True
            self.blocks.append("")

    def handle_endtag(self, tag):
        self.silent = False
        self.inside &= tag != "article"
        self.open &= tag not in BLOCKS

    def handle_data(self, data):
        if self.silent:
            return
        if self.open:
            self.blocks[-1] += data
        elif data.strip():
            self.lines.append(data.strip())


@dataclass
class Record:
    """A WARC record: `offset` and `length` of its gzip member in the file."""

    kind: str
    headers: dict[str, str]
    body: bytes
    offset: int
    length: int

    @property
    def url(self) -> str:
        return self.headers.get("WARC-Target-URI", "")


def members(data: bytes) -> list[tuple[int, int, bytes | None]]:
    """Offset, length and content of each gzip member; None where it does not inflate whole.

    After a broken member the next one is looked for by its first ten bytes.
    """
    out, at = [], 0
    while at < len(data):
        inflate = zlib.decompressobj(31)
        try:
            content: bytes | None = inflate.decompress(data[at:])
            end = len(data) - len(inflate.unused_data)
            content = content if inflate.eof else None
        except zlib.error:
            content = None
            end = data.find(data[:10], at + 10)
            end = len(data) if end < 0 else end
        out.append((at, end - at, content))
        at = end
    return out


def parse(offset: int, length: int, content: bytes) -> Record:
    head, _, body = content.partition(b"\r\n\r\n")
    version, *lines = head.decode().split("\r\n")
    assert version == "WARC/1.0"
    headers = dict(line.split(": ", 1) for line in lines)
    assert body.endswith(b"\r\n\r\n")
    return Record(headers["WARC-Type"], headers, body[:-4], offset, length)


def records(path: Path) -> list[Record]:
    return [parse(*row) for row in members(path.read_bytes()) if row[2] is not None]


def response(record: Record) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of an HTTP response, its codings undone."""
    head, _, body = record.body.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    if headers.get("Transfer-Encoding") == "chunked":
        source, body = io.BytesIO(body), b""
        while size := int(source.readline(), 16):
            body += source.read(size)
            assert source.read(2) == b"\r\n"
    else:
        assert int(headers["Content-Length"]) == len(body)
    undo = {"gzip": gzip.decompress, "br": brotli.decompress}
    body = undo.get(headers.get("Content-Encoding", ""), bytes)(body)
    return int(status.split()[1]), headers, body


def lines(path: Path) -> list[bytes]:
    data = path.read_bytes()
    if path.suffix == ".zst":
        with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as stream:
            data = stream.read()
    elif path.suffix == ".gz":
        data = gzip.decompress(data)
    assert data.endswith(b"\n")
    return data.split(b"\n")[:-1]


@dataclass
class Sample:
    """Texts by (file, id), the file of web pages being `web` whichever of them it is."""

    root: Path
    facts: dict
    texts: dict[tuple[str, str], str] = field(default_factory=dict)
    pages: dict[str, Article] = field(default_factory=dict)
    warc: dict[str, list[Record]] = field(default_factory=dict)
    rows: dict[str, list[dict]] = field(default_factory=dict)

    def text(self, ref: dict) -> str:
        return self.texts[ref["file"], ref["id"]]


def load(root: Path) -> Sample:
    sample = Sample(root, json.loads((root / "facts.json").read_text(encoding="utf-8")))
    charset = {row["url"]: row["charset"] for row in sample.facts["encodings"]}
    for name in sample.facts["files"]:
        path = root / name
        if name.startswith(("web/", "wet/")):
            sample.warc[name] = records(path)
            for record in sample.warc[name]:
                if record.kind == "conversion":
                    sample.texts[name, record.url] = record.body.decode().rstrip("\n")
                elif record.kind == "response":
                    status, headers, body = response(record)
                    if status == 200 and headers["Content-Type"].startswith("text/html"):
                        page = Article()
                        page.feed(body.decode(charset.get(record.url, "utf-8")))
                        sample.pages[record.url] = page
                        sample.texts["web", record.url] = "\n\n".join(page.blocks)
        elif name.endswith(".parquet"):
            sample.rows[name] = pq.read_table(path).to_pylist()
        elif not name.endswith("notes.jsonl.zst"):
            sample.rows[name] = [json.loads(line) for line in lines(path)]
        else:
            good = []
            for line in lines(path):
                try:
                    row = json.loads(line)
                except ValueError:
                    continue
                if isinstance(row, dict) and isinstance(row["text"], str):
                    good.append(row)
            sample.rows[name] = good
    for name, rows in sample.rows.items():
        sample.texts |= {(name, row["id"]): row["text"] for row in rows if "text" in row}
    return sample


@pytest.fixture(scope="session")
def sample() -> Sample:
    return load(SAMPLE)


@pytest.fixture(scope="session", name="load_sample")
def load_fixture():
    """`load_sample(folder)` reads another making of the sample data."""
    return load


@pytest.fixture(scope="session", name="gzip_members")
def members_fixture():
    return members


@pytest.fixture(scope="session", name="jsonl_lines")
def lines_fixture():
    return lines
