"""WARC and WET: framing, damage, records that are no pages."""

from __future__ import annotations

import pytest

from gristmill.pipelines.convert import PlainText

HTML = b"<html><body><p>the page</p></body></html>"


@pytest.mark.parametrize("codec", ["plain", "gzip", "zstd", "bzip2", "xz"])
@pytest.mark.parametrize("each", [True, False])
def test_warc_members_per_record_or_per_file_all_read(make, codec, each):
    """Case 09: a whole archive in one member holds as many records as one with five members."""
    parts = [make.warc("warcinfo", b"software: x\r\n"), *(make.wet(n) for n in range(4))]
    data = (
        b"".join(make.pack(p, codec) for p in parts) if each else make.pack(b"".join(parts), codec)
    )
    got = make.read(data)
    assert [r.text for r in got.records] == [f"text of record {n}" for n in range(4)]
    assert got.records[2].url == "http://h/2"
    assert got.ids == [f"<urn:{n}>" for n in range(4)]
    assert [(s.reason, s.records) for s in got.skips] == [("warcinfo", 1)]
    assert got.losses == []
    assert sum(r.locator.span for r in got.records) == sum(map(len, parts[1:]))


@pytest.mark.parametrize("codec", ["gzip", "zstd", "bzip2", "xz"])
def test_warc_empty_member_in_the_middle_skips_nothing(make, codec):
    """Case 06."""
    members = [make.pack(x, codec) for x in (make.wet(0), make.wet(1), b"", make.wet(2))]
    got = make.read(b"".join(members))
    assert got.ids == ["<urn:0>", "<urn:1>", "<urn:2>"]
    assert got.losses == []


@pytest.mark.parametrize("codec", ["gzip", "zstd", "bzip2", "xz"])
def test_warc_nuls_between_members_are_padding(make, codec):
    """Case 13."""
    first, second = make.pack(make.wet(0), codec), make.pack(make.wet(1), codec)
    got = make.read(first + bytes(64) + second + bytes(7))
    assert got.ids == ["<urn:0>", "<urn:1>"]
    assert got.account.padding == 71
    assert got.records[1].locator.offset == len(first) + 64


@pytest.mark.parametrize("codec", ["gzip", "zstd", "bzip2", "xz"])
@pytest.mark.parametrize("cut", [1, 4, 20, 60])
def test_warc_last_member_cut_is_flagged_not_emitted_short(make, codec, cut):
    """Case 08. A cut that takes the checksum alone may leave the record whole, never shortened."""
    texts = [f"record {n}: " + " ".join(f"w{i * n}" for i in range(300)) for n in (3, 5)]
    last = make.pack(make.wet(1, texts[1]), codec)
    got = make.read(make.pack(make.wet(0, texts[0]), codec) + last[:-cut])
    assert got.ids[0] == "<urn:0>"
    assert {r.text for r in got.records} <= set(texts)
    assert got.reasons == ["truncated_stream"]
    if cut >= (60 if codec == "xz" else 20):  # xz has an index of its own behind the data
        assert got.ids == ["<urn:0>"]


@pytest.mark.parametrize("codec", ["plain", "gzip", "zstd"])
@pytest.mark.parametrize("each", [True, False])
@pytest.mark.parametrize("length", [5000, 3, 10**9, 10**17])
def test_warc_wrong_content_length_next_record_survives(make, codec, each, length):
    """Case 10, for lengths too long, too short and absurd."""
    bad = make.warc("conversion", b"0123456789", length=length, WARC_Record_ID="<urn:bad>")
    parts = [bad, make.wet(1), make.wet(2)]
    data = (
        b"".join(make.pack(p, codec) for p in parts) if each else make.pack(b"".join(parts), codec)
    )
    got = make.read(data)
    assert got.ids == ["<urn:1>", "<urn:2>"]
    assert got.reasons == ["bad_framing"]
    assert got.losses[0].locator.span == len(bad)


@pytest.mark.parametrize("header", [b"Content-Length: many", b"X: y"])
def test_warc_no_usable_content_length_resynchronises(make, header):
    bad = b"WARC/1.0\r\nWARC-Type: conversion\r\n" + header + b"\r\n\r\nbody\r\n\r\n"
    got = make.read(make.wet(0) + bad + make.wet(1))
    assert got.ids == ["<urn:0>", "<urn:1>"]
    assert [(x.reason, x.locator.span) for x in got.losses] == [("bad_framing", len(bad))]


@pytest.mark.parametrize("codec", ["plain", "gzip", "zstd"])
def test_warc_lf_only_headers_both_records(make, codec):
    """Case 12."""
    parts = [
        make.warc("conversion", f"body {n}".encode(), end=b"\n", WARC_Record_ID=f"<urn:{n}>")
        for n in range(2)
    ]
    got = make.read(make.pack(b"".join(parts), codec))
    assert [r.text for r in got.records] == ["body 0", "body 1"]
    assert got.losses == []


def test_warc_garbage_between_records_costs_no_record(make):
    got = make.read(make.wet(0) + b"XARC/1.0 garbage\r\n" * 9 + make.wet(1))
    assert got.ids == ["<urn:0>", "<urn:1>"]
    assert [(x.reason, x.locator.span) for x in got.losses] == [("bad_framing", 18 * 9)]


def test_warc_plain_cut_in_body_or_header_is_truncated(make):
    whole = make.wet(0)
    second = make.wet(1)
    for cut in (1, 3, 30, len(second) - 6):
        got = make.read(whole + second[:cut])
        assert got.ids == ["<urn:0>"]
        assert [(x.reason, x.locator.span) for x in got.losses] == [("truncated_stream", cut)]


def test_warc_without_final_line_ends_is_whole(make):
    got = make.read(make.wet(0).removesuffix(b"\r\n\r\n"))
    assert [r.text for r in got.records] == ["text of record 0"]
    assert got.losses == []


@pytest.mark.parametrize("codec", ["plain", "gzip", "zstd"])
def test_warc_record_above_the_limit_is_one_loss(make, codec):
    big = make.wet(1, "x" * 300_000)
    data = make.pack(make.wet(0) + big + make.wet(2), codec)
    got = make.read(data, max_record_bytes=200_000)
    assert got.ids == ["<urn:0>", "<urn:2>"]
    assert [(x.reason, x.locator.span) for x in got.losses] == [("too_large", len(big))]
    assert "more than reader.max_record_bytes (200000 bytes)" in got.losses[0].detail


def test_warc_wrong_bytes_in_conversion_are_invalid_utf8(make):
    got = make.read(make.warc("conversion", b"a\xff\xfeb") + make.wet(1))
    assert got.reasons == ["invalid_utf8"]
    assert got.ids == ["<urn:1>"]


@pytest.mark.parametrize("text", ["Größe", "日本語", "a 😀"])
def test_warc_conversion_cut_inside_a_letter_loses_that_letter_alone(make, text):
    content = text.encode()[:-2] if text == "Größe" else text.encode()[:-1]
    got = make.read(make.warc("conversion", content, WARC_Target_URI="http://h/1") + make.wet(2))
    assert got.losses == []
    (draft, _) = PlainText()(iter(got.records))
    kept = content.decode("utf-8", "ignore")
    assert (draft.text, draft.repairs, draft.url) == (
        kept + "\ufffd",
        {"undecoded": 1},
        "http://h/1",
    )


@pytest.mark.parametrize("content", ["Größe".encode("latin-1"), b"\xe6\x97", b"a\xffb\xc3"])
def test_warc_conversion_wrong_elsewhere_is_a_loss_with_its_url(make, content):
    got = make.read(make.warc("conversion", content, WARC_Target_URI="<http://h/1>"))
    assert [(x.reason, x.url) for x in got.losses] == [("invalid_utf8", "http://h/1")]


@pytest.mark.parametrize(
    "stated",
    [{"Number": "1"}, {"Number": "2"}, {"Number": "2", "Total_Length": "9"}, {"Total_Length": "9"}],
)
def test_warc_segment_is_a_loss_with_its_url(make, stated):
    """The first states 1 when others follow (WARC 1.1, 5.20): part of a page, as they are."""
    more = {f"WARC_Segment_{k}": v for k, v in stated.items()} | {"WARC_Target_URI": "http://h/1"}
    got = make.read(make.warc("response", b"HTTP/1.1 200 OK\r\n\r\n" + HTML, **more))
    assert [(x.reason, x.url) for x in got.losses] == [("segmented", "http://h/1")]


@pytest.mark.parametrize("media", ["image/png", "application/pdf", "Image/PNG; a=b"])
def test_warc_conversion_to_no_text_is_skipped_by_type(make, media):
    got = make.read(make.warc("conversion", bytes(range(256)), Content_Type=media) + make.wet(1))
    assert [s.reason for s in got.skips] == [f"mime:{media.partition(';')[0].lower()}"]
    assert (got.ids, got.losses) == (["<urn:1>"], [])


def test_warc_truncated_member_within_an_intact_file_is_corrupt(make):
    """A member without its end, followed by a sound one, was not cut by the end of the file."""
    first, second = make.pack(make.wet(0), "gzip"), make.pack(make.wet(1), "gzip")
    got = make.read(first[:-30] + second)
    assert got.ids == ["<urn:1>"]
    assert got.reasons == ["corrupt_member"]


@pytest.mark.parametrize(
    ("kind", "headers", "content", "reason"),
    [
        ("request", {}, b"GET / HTTP/1.1\r\n\r\n", "request"),
        ("metadata", {}, b"a: b", "metadata"),
        ("revisit", {}, b"", "revisit"),
        ("novel", {}, b"", "type:novel"),
        ("response", {"WARC_Target_URI": "dns:h"}, b"20240101 h", "dns"),
        ("resource", {"Content_Type": "text/plain"}, b"x", "mime:text/plain"),
        ("resource", {"Content_Type": "<bad type>"}, b"x", "mime:invalid"),
        ("resource", {}, b"no markup", "mime:none"),
    ],
)
def test_warc_records_that_are_no_pages_are_skipped_by_reason(make, kind, headers, content, reason):
    data = make.warc(kind, content, **headers)
    got = make.read(data)
    assert [(s.reason, s.span, s.records) for s in got.skips] == [(reason, len(data), 1)]
    assert got.records == got.losses == []


def test_warc_untyped_body_that_is_a_page_is_read(make):
    got = make.read(make.warc("resource", b"\n<!DOCTYPE html><p>x"))
    assert got.records[0].media_type == "text/html"
    assert got.records[0].body == b"\n<!DOCTYPE html><p>x"


def test_warc_record_without_a_type_is_damage(make):
    broken = make.wet(2).replace(b"WARC-Type: conversion\r\n", b"")
    misspelt = make.wet(3).replace(b"WARC-Type", b"WARC-Typf")
    got = make.read(make.wet(1) + broken + misspelt + make.wet(4))
    assert got.ids == ["<urn:1>", "<urn:4>"]
    assert [(x.reason, x.kind) for x in got.losses] == [("no_type", "fault")] * 2
    odd = make.read(make.wet(1).replace(b": conversion", b": <bad type>"))
    assert [s.reason for s in odd.skips] == ["type:invalid"]


def test_warc_first_segment_is_never_a_whole_document(make):
    """Only the last segment says how long all of them are."""
    first = make.wet(2, "the first half", WARC_Segment_Number=1)
    last = make.warc(
        "continuation", b"the rest", WARC_Segment_Number=2, WARC_Segment_Total_Length=22
    )
    got = make.read(make.wet(1) + first + last + make.wet(3))
    assert got.ids == ["<urn:1>", "<urn:3>"]
    assert [(x.reason, x.kind, x.url) for x in got.losses] == [("segmented", "fault", "http://h/2")]
    assert [s.reason for s in got.skips] == ["continuation"]
