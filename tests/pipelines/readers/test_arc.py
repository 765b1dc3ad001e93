"""ARC: versions, URLs with spaces, damage, splits."""

from __future__ import annotations

import random

import pytest

from gristmill.pipelines.readers import Extent, ReadAccount, plan_extents, read_extent, reread

PAGE = b"<html><body><p>the page</p></body></html>"


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("codec", ["plain", "gzip", "zstd", "bzip2", "xz"])
def test_arc_records_with_their_url_and_date(make, codec, version):
    parts = [make.arc(n, PAGE, version=version) for n in range(4)]
    got = make.read(b"".join(make.pack(p, codec) for p in parts))
    assert [r.url for r in got.records] == ["http://h/1", "http://h/2", "http://h/3"]
    record = got.records[0]
    assert (record.body, record.charset, record.date) == (PAGE, "utf-8", "2014-02-16T05:02:21Z")
    assert [(s.reason, s.records) for s in got.skips] == [("filedesc", 1)]
    assert got.losses == []
    assert [r.locator.span for r in got.records] == [len(p) for p in parts[1:]]
    assert all(reread(got.root, r.locator) == r for r in got.records)


def test_arc_1_1_with_its_xml_in_the_version_block(make):
    block = (
        b"1 1 InternetArchive\nURL IP-address Archive-date Content-type Archive-length\n<?xml?>\r\n"
    )
    head = f"filedesc://x.arc 0.0.0.0 20080430204825 text/plain {len(block)}\n".encode()
    # Heritrix counts the line end that closes the block in its length or not, by version
    for end in (b"", b"\n", b"\r\n\n"):
        got = make.read(head + block + end + make.arc(1, PAGE))
        assert len(got.records) == 1
        assert got.losses == []


@pytest.mark.parametrize("url", ["http://h/a b c", "https://h/?q=1 2 20140101000000 text/html 5"])
def test_arc_url_with_spaces_is_kept_whole(make, url):
    (record,) = make.read(make.arc(0, b"") + make.arc(1, PAGE, url=url)).records
    assert record.url == url


def test_arc_kinds_of_records_are_counted(make):
    got = make.read(
        make.arc(0, b"")
        + make.arc(1, b"", status="301 Moved", headers="Location: http://h/2\r\n")
        + make.arc(2, b"", status="404 Not Found")
        + make.arc(3, b"", status="503 Busy")
        + make.arc(4, b"", status="204 Empty")
        + make.arc(5, PAGE, url="dns:h")
        + make.arc(6, PAGE)
    )
    assert [(x.reason, x.detail) for x in got.losses] == [
        ("http_redirect", "301 http://h/2"),
        ("http_client_error", "404"),
        ("http_server_error", "503"),
        ("http_status", "204"),
    ]
    assert [s.reason for s in got.skips] == ["filedesc", "dns"]
    assert len(got.records) == 1


@pytest.mark.parametrize("length", ["-1", "abc", ""])
def test_arc_length_that_is_none_resynchronises(make, length):
    bad = make.arc(1, PAGE).replace(b"text/html ", b"text/html %s " % length.encode(), 1)
    line, _, rest = bad.partition(b"\n")
    bad = line.rpartition(b" ")[0] + b"\n" + rest
    got = make.read(make.arc(0, b"") + bad + make.arc(2, PAGE))
    assert [r.url for r in got.records] == ["http://h/2"]
    assert [(x.reason, x.locator.span) for x in got.losses] == [("bad_framing", len(bad))]


@pytest.mark.parametrize("damage", [b"", b"\xff" * 40])
def test_arc_whose_first_header_is_damaged_is_still_one(make, damage):
    first = make.arc(0, b"")
    got = make.read(damage + first[31:] + make.arc(1, PAGE) + make.arc(2, PAGE))
    assert [r.url for r in got.records] == ["http://h/1", "http://h/2"]
    assert got.reasons == ["bad_framing"]


def test_arc_damaged_header_costs_its_record_and_not_the_one_before(make):
    parts = [make.arc(n, PAGE) for n in range(4)]
    for flip in range(len(parts[2].partition(b"\n")[0])):
        bad = bytearray(parts[2])
        bad[flip] ^= 0x80
        got = make.read(b"".join([*parts[:2], bytes(bad), parts[3]]))
        assert {"http://h/1", "http://h/3"} <= {r.url for r in got.records}, flip


@pytest.mark.parametrize("cut", [1, 10, 50, 200])
def test_arc_plain_cut_is_truncated(make, cut):
    whole = make.arc(0, b"") + make.arc(1, PAGE)
    last = make.arc(2, PAGE * 5)
    got = make.read(whole + last[: len(last) - 1 - cut])
    assert [r.url for r in got.records] == ["http://h/1"]
    assert got.reasons == ["truncated_stream"]


@pytest.mark.parametrize("left", [5, 30])
def test_arc_cut_inside_a_header_is_truncated(make, left):
    got = make.read(make.arc(0, b"") + make.arc(1, PAGE) + make.arc(2, PAGE)[:left])
    assert [r.url for r in got.records] == ["http://h/1"]
    assert [(x.reason, x.locator.span) for x in got.losses] == [("truncated_stream", left)]


@pytest.mark.parametrize("container", ["arc", "wet"])
@pytest.mark.parametrize("shift", range(-60, 10, 5))
def test_record_above_the_limit_ends_at_a_header_between_two_pieces(make, container, shift):
    """Stored bytes come 1 MiB at a time; a header is found wherever one of these ends in it."""
    made = {"arc": lambda n: make.arc(n, PAGE), "wet": make.wet}[container]
    long = b"x" * ((2 << 20) + shift) + b"\n"
    first = {
        "arc": lambda: make.arc(1, b"", length=5 << 20),
        "wet": lambda: make.warc("conversion", b"", length=5 << 20),
    }[container]().rstrip(b"\r\n")
    got = make.read(first + long[len(first) :] + made(2) + made(3), max_record_bytes=100_000)
    assert (len(got.records), got.reasons) == (2, ["bad_framing"])
    assert got.losses[0].locator.span == len(long)


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_arc_splits_at_records(make, tmp_path, codec):
    rng = random.Random(5)
    parts = [make.arc(0, b"")]
    parts += [make.arc(n, b"<p>" + rng.randbytes(700).hex().encode()) for n in range(1, 400)]
    members = [make.pack(p, codec) for p in parts]
    (tmp_path / "f").write_bytes(b"".join(members))
    plan = [e for s in plan_extents(tmp_path, ["f"], target_bytes=90_000) for e in s]
    assert len(plan) >= 3

    def read(extents):
        account = ReadAccount()
        items = [i for e in extents for i in read_extent(tmp_path, e, account)]
        account.check()
        return items

    assert read(plan) == read([Extent("f", 0, plan[-1].end)])
