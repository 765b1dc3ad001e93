"""From a locator back to the record."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.documents.records import Locator
from gristmill.pipelines.readers import reread


@pytest.mark.parametrize("codec", ["plain", "gzip", "zstd", "bzip2", "xz"])
@pytest.mark.parametrize("each", [True, False])
def test_reread_gives_the_same_warc_record(make, codec, each):
    parts = [make.wet(0), make.response(1, make.PAGE.format("x").encode()), make.wet(2)]
    data = (
        b"".join(make.pack(p, codec) for p in parts) if each else make.pack(b"".join(parts), codec)
    )
    got = make.read(data)
    assert len(got.records) == 3
    for record in got.records:
        assert reread(got.root, record.locator) == record
    inner = [r.locator.inner for r in got.records]
    assert (inner == [0, 0, 0]) == (each or codec == "plain")


@pytest.mark.parametrize("codec", ["plain", "gzip", "zstd", "bzip2", "xz"])
def test_reread_gives_the_same_line(make, codec):
    lines = make.rows(40)
    data = b"".join(make.pack(b"".join(lines[n : n + 9]), codec) for n in range(0, 40, 9))
    got = make.read(data)
    assert len(got.records) == 40
    for record in got.records:
        assert reread(got.root, record.locator) == record


def test_reread_uses_the_same_options(make):
    got = make.read(b'{"body":"a"}\n{"body":"b"}\n', text_field="body")
    assert reread(got.root, got.records[1].locator, text_field="body") == got.records[1]


def test_reread_of_a_span_of_lines_gives_the_first(make):
    got = make.read(b"".join(make.rows(3)))
    first = got.records[0].locator
    wide = Locator(first.file, first.offset, first.inner, sum(r.locator.span for r in got.records))
    again = reread(got.root, wide)
    assert (again.identity, again.text) == (got.records[0].identity, got.records[0].text)


def test_reread_gives_the_same_row(make, tmp_path):
    pq.write_table(
        pa.table({"text": [f"row {n}" for n in range(200)]}), tmp_path / "t", row_group_size=90
    )
    got = make.read((tmp_path / "t").read_bytes())
    for record in got.records:
        assert reread(got.root, record.locator) == record


def test_reread_of_what_is_no_record_is_none(make):
    got = make.read(make.pack(make.warc("warcinfo", b"x") + make.wet(0), "gzip"))
    size = len(make.warc("warcinfo", b"x"))
    assert reread(got.root, Locator(got.file, 0, 0, size)) is None
    assert reread(got.root, Locator(got.file, 10**9, 0, 5)) is None
    assert reread(got.root, Locator(got.file, 0, 10**6, 5)) is None
