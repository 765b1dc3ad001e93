"""WARC and WET: framing, damage, HTTP bodies."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from types import SimpleNamespace

import brotli
import pytest
import zstandard

from gristmill.pipelines.convert import PlainText
from gristmill.pipelines.readers import http

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
    got = make.read(make.warc("conversion", NOISE, Content_Type=media) + make.wet(1))
    assert [s.reason for s in got.skips] == [f"mime:{media.partition(';')[0].lower()}"]
    assert (got.ids, got.losses) == (["<urn:1>"], [])


def test_warc_truncated_member_within_an_intact_file_is_corrupt(make):
    """A member without its end, followed by a sound one, was not cut by the end of the file."""
    first, second = make.pack(make.wet(0), "gzip"), make.pack(make.wet(1), "gzip")
    got = make.read(first[:-30] + second)
    assert got.ids == ["<urn:1>"]
    assert got.reasons == ["corrupt_member"]


def chunked(body: bytes, size: int = 7) -> bytes:
    parts = [body[i : i + size] for i in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in parts) + b"0\r\n\r\n"


NOISE = b"".join(hashlib.sha256(b"%d" % n).digest() for n in range(60))  # compresses to itself
RAW_DEFLATE = zlib.compressobj(9, zlib.DEFLATED, -15)
CODINGS = {
    "none": ("", HTML),
    "br": ("Content-Encoding: br\r\n", brotli.compress(HTML)),
    "gzip": ("Content-Encoding: gzip\r\n", gzip.compress(HTML, mtime=0)),
    "x-gzip": ("Content-Encoding: X-GZIP\r\n", gzip.compress(HTML, mtime=0)),
    "zlib": ("Content-Encoding: deflate\r\n", zlib.compress(HTML)),
    "deflate": (
        "Content-Encoding: deflate\r\n",
        RAW_DEFLATE.compress(HTML) + RAW_DEFLATE.flush(),
    ),
    "zstd": ("Content-Encoding: zstd\r\n", zstandard.ZstdCompressor().compress(HTML)),
    "twice": ("Content-Encoding: gzip, br\r\n", brotli.compress(gzip.compress(HTML, mtime=0))),
    "chunked": ("Transfer-Encoding: chunked\r\n", chunked(HTML)),
    "chunked gzip": (
        "Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n",
        chunked(gzip.compress(HTML, mtime=0)),
    ),
    "gzip undone": ("Content-Encoding: gzip\r\n", HTML),
    "br undone": ("Content-Encoding: br\r\n", HTML),
    "chunks joined": ("Transfer-Encoding: chunked\r\n", HTML),
    "gzip members": (
        "Content-Encoding: gzip\r\n",
        gzip.compress(HTML[:9], mtime=0) + gzip.compress(HTML[9:], mtime=0),
    ),
    "gzip and a tail": ("Content-Encoding: gzip\r\n", gzip.compress(HTML, mtime=0) + b"xx"),
    "zstd frames": (
        "Content-Encoding: zstd\r\n",
        zstandard.compress(HTML[:9]) + zstandard.compress(HTML[9:]),
    ),
    "transfer gzip": (
        "Transfer-Encoding: gzip, chunked\r\n",
        chunked(gzip.compress(HTML, mtime=0)),
    ),
    "two lines": (
        "Content-Encoding: deflate\r\nContent-Encoding: gzip\r\n",
        gzip.compress(zlib.compress(HTML), mtime=0),
    ),
    "the same line twice": (
        "Content-Encoding: br\r\nContent-Encoding: br\r\n",
        brotli.compress(HTML),
    ),
    "quoted": ('Content-Encoding: "gzip"\r\n', gzip.compress(HTML, mtime=0)),
    "unknown but text": ("Content-Encoding: utf-8\r\n", HTML),
    "chunk sizes with LF": (
        "Transfer-Encoding: chunked\r\n",
        b"%x\n%s\n0\n\n" % (len(HTML), HTML),
    ),
}


@pytest.mark.parametrize("coding", CODINGS)
def test_http_coding_is_undone(make, coding):
    """Case 04 and its kin."""
    headers, body = CODINGS[coding]
    got = make.read(make.pack(make.response(1, body, headers), "gzip"))
    (record,) = got.records
    assert record.body == HTML
    assert record.text is None
    assert (record.media_type, record.charset) == ("text/html", "utf-8")
    assert (record.url, record.date) == ("http://h/1", "2024-01-02T03:04:05Z")
    assert record.fields["status"] == 200


@pytest.mark.parametrize(
    ("headers", "body", "reason"),
    [
        ("Content-Encoding: gzip\r\n", gzip.compress(HTML, mtime=0)[:-9], "truncated_body"),
        ("Content-Encoding: br\r\n", brotli.compress(HTML)[:-9], "truncated_body"),
        ("Content-Encoding: br\r\n", b"\xff" * 50, "bad_coding"),
        ("Content-Encoding: zstd\r\n", zstandard.compress(NOISE)[:-900], "truncated_body"),
        ("Content-Encoding: zstd\r\n", zstandard.compress(HTML)[:9], "truncated_body"),
        (
            "Content-Encoding: zstd\r\n",
            zstandard.compress(HTML) + zstandard.compress(HTML)[:-3],
            "truncated_body",
        ),
        (
            "Content-Encoding: gzip\r\n",
            gzip.compress(HTML, mtime=0) + gzip.compress(HTML, mtime=0)[:-9],
            "truncated_body",
        ),
        (
            "Content-Encoding: gzip\r\n",
            gzip.compress(HTML, mtime=0) + gzip.compress(bytes(3_000_000), mtime=0),
            "too_large",
        ),
        ("Transfer-Encoding: chunked\r\n", chunked(HTML, 999)[:-20], "truncated_body"),
        ("Transfer-Encoding: chunked\r\n", chunked(HTML, 999)[:-5] + b"1f", "truncated_body"),
        (
            "Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n",
            chunked(gzip.compress(HTML, mtime=0), 999)[:-20],
            "truncated_body",
        ),
        ("Content-Encoding: gzip\r\n", zlib.compress(NOISE), "bad_coding"),
        ("Content-Encoding: deflate\r\n", gzip.compress(HTML, mtime=0), "bad_coding"),
        ("Content-Encoding: dcb\r\n", NOISE, "bad_coding"),
        ("Content-Encoding: compress\r\n", b"\x1f\x9d\x90" + NOISE, "bad_coding"),
        ("Transfer-Encoding: xpress, chunked\r\n", chunked(NOISE), "bad_coding"),
        ("Transfer-Encoding: chunked\r\n", chunked(HTML)[:-12], "truncated_body"),
        ("Content-Encoding: gzip\r\n", gzip.compress(bytes(3_000_000), mtime=0), "too_large"),
        ("Content-Encoding: br\r\n", brotli.compress(bytes(3_000_000)), "too_large"),
        ("Content-Encoding: zstd\r\n", zstandard.compress(bytes(3_000_000)), "too_large"),
    ],
)
def test_http_body_that_cannot_be_had_whole_is_a_fault(make, headers, body, reason):
    got = make.read(make.response(1, body, headers) + make.wet(2), max_record_bytes=1_000_000)
    assert [(x.reason, x.kind) for x in got.losses] == [(reason, "fault")]
    assert got.ids == ["<urn:2>"]


PLAIN = {
    "paragraph": b"<p>" + "Größe und Übermut".encode() + b"</p>",
    "mark": b"\xef\xbb\xbf" + HTML,
    "comment": b"\n <!-- x -->" + HTML,
    "words": "Größe und Übermut".encode(),
    "latin": b"Gr\xf6\xdfe " * 60,
    "a control": b"<p>one\x0btwo</p>",
    "utf-16": "\ufeff<p>one</p>".encode("utf-16-le"),
}


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "compress"])
@pytest.mark.parametrize("kind", PLAIN)
def test_http_body_that_reads_as_text_was_decoded_before(make, coding, kind):
    got = make.read(make.response(1, PLAIN[kind], f"Content-Encoding: {coding}\r\n"))
    assert [r.body for r in got.records] == [PLAIN[kind]]


@pytest.mark.parametrize(
    "body",
    [
        NOISE,
        NOISE[:130],
        NOISE[:90],  # 7 controls, which a text may have: no UTF-8 says it
        gzip.compress(HTML, mtime=0),
        brotli.compress(NOISE),
        zstandard.compress(NOISE),
        b"%PDF-1.7\n1 0 obj << /Type /Catalog >> endobj",
        b"\x89PNG\r\n\x1a\n" + NOISE,
    ],
)
@pytest.mark.parametrize("charset", ["utf-8", "windows-1251", "utf-16"])
def test_http_binary_body_sent_as_a_page_is_a_row(make, body, charset):
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset={charset}\r\n\r\n".encode()
    more = {"Content_Type": "application/http", "WARC_Target_URI": "http://h/1"}
    got = make.read(make.warc("response", head + body, **more) + make.wet(2))
    assert [(x.reason, x.kind, x.url) for x in got.losses] == [
        ("not_text", "dropped", "http://h/1")
    ]
    assert got.ids == ["<urn:2>"]


def test_http_page_in_utf16_without_a_mark_is_no_binary(make):
    body = HTML.decode().encode("utf-16-le")
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-16le\r\n\r\n"
    got = make.read(make.warc("response", head + body, Content_Type="application/http"))
    assert [r.body for r in got.records] == [body]


def test_http_many_tiny_members_take_time_in_proportion(make, monkeypatch):
    """A body of 40,000 members of no bytes each; copying what is left of it at each is 16 GB."""
    given = []

    def decompressobj(window):
        inner = zlib.decompressobj(window)

        class Watched:
            eof = property(lambda _: inner.eof)
            unused_data = property(lambda _: inner.unused_data)

            def decompress(self, data, limit):
                given.append(len(data))
                return inner.decompress(data, limit)

        return Watched()

    watched = SimpleNamespace(decompressobj=decompressobj, error=zlib.error)
    monkeypatch.setattr(http, "zlib", watched)
    body = gzip.compress(b"", 1, mtime=0) * 40_000 + gzip.compress(HTML, mtime=0)
    got = make.read(make.response(1, body, "Content-Encoding: gzip\r\n"))
    assert got.records[0].body == HTML
    assert len(given) == 40_001
    assert max(given) <= 16 << 10


@pytest.mark.parametrize("body", [b"999\n" + HTML, b"12 bottles\n" + HTML])
def test_http_chunks_joined_before_of_a_text_that_starts_with_a_number(make, body):
    got = make.read(make.response(1, body, "Transfer-Encoding: chunked\r\n"))
    assert [r.body for r in got.records] == [body]


def test_http_lists_are_joined_from_their_lines(make):
    headers = "X-Robots-Tag: noai\r\nX-Robots-Tag: noindex\r\n"
    got = make.read(make.response(1, HTML, headers))
    assert got.records[0].fields["x-robots-tag"] == "noai, noindex"


def typed(make, media: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {media}\r\n\r\n".encode()
    return make.warc("response", head + body, Content_Type="application/http")


@pytest.mark.parametrize(
    "media",
    [
        "text/html charset=utf-8",
        "text/html,charset=utf-8",
        "text/html, text/html; charset=utf-8",
        '"text/html"; charset="utf-8"',
        "'text/html';charset=utf-8",
        " ; text/html; charset=utf-8",
        "TEXT/HTML;charset=UTF-8",
        "html; charset=utf-8",
        "application/html; charset=utf-8",
        "text/xml; charset=utf-8",
        "application/xml; charset=utf-8",
        "application/octet-stream; charset=utf-8",
    ],
)
def test_http_type_that_means_a_page_is_read_as_one(make, media):
    body = b"<?xml version='1.0'?><!-- <rss> --><!DOCTYPE html>" + HTML
    (record,) = make.read(typed(make, media, body)).records
    assert (record.media_type, record.charset.lower(), record.body) == ("text/html", "utf-8", body)


@pytest.mark.parametrize(
    ("media", "body", "named"),
    [
        ("text/xml", b"<?xml version='1.0'?><rss><title>x</title></rss>", "text/xml"),
        ("application/xml", b"<title>x</title>", "application/xml"),
        ("application/html", b"{}", "application/html"),
        ("application/octet-stream", b"<xhtml>", "application/octet-stream"),
        ("html", b"words", "invalid"),
        ("", b"<svg><p>", "none"),
        ("text/html2", HTML, "text/html2"),
        ("application/json, text/html", HTML, "application/json"),
    ],
)
def test_http_type_that_means_no_page_is_skipped_by_name(make, media, body, named):
    got = make.read(typed(make, media, body))
    assert [s.reason for s in got.skips] == [f"mime:{named}"]
    assert got.records == got.losses == []


@pytest.mark.parametrize("tag", ["article", "h2 id=a", "span", "META charset=utf-8", "br/", "ul"])
def test_http_untyped_body_that_starts_with_any_tag_is_a_page(make, tag):
    body = f"\ufeff\n<!-- a --> <!-- b --><{tag}>words".encode()
    assert [r.body for r in make.read(typed(make, "", body)).records] == [body]


def test_http_many_comments_before_no_tag_are_passed_once(make):
    """Comments that a pattern may take together or apart are 2^n ways to fail."""
    got = make.read(typed(make, "", b"<!---->" * 500 + b"words"))
    assert [s.reason for s in got.skips] == ["mime:none"]


@pytest.mark.parametrize("status", ["100 Continue", "103 Early Hints\r\nLink: </a>"])
@pytest.mark.parametrize("times", [1, 3])
def test_http_interim_answers_before_the_page_are_passed_over(make, status, times):
    page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + HTML
    content = f"HTTP/1.1 {status}\r\n\r\n".encode() * times + page
    (record,) = make.read(make.warc("response", content, Content_Type="application/http")).records
    assert (record.body, record.fields["status"], "link" in record.fields) == (HTML, 200, False)


def test_http_interim_answer_alone_is_dropped_by_its_status(make):
    content = b"HTTP/1.1 100 Continue\r\n\r\n"
    got = make.read(make.warc("response", content, Content_Type="application/http"))
    assert [(x.reason, x.detail, x.kind) for x in got.losses] == [("http_status", "100", "dropped")]


def test_http_status_and_type_decide_before_the_body_is_decoded(make):
    broken = ("Content-Encoding: gzip\r\n", gzip.compress(HTML, mtime=0)[:-9])
    image = make.warc(
        "response",
        b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Encoding: gzip\r\n\r\n" + broken[1],
        Content_Type="application/http",
    )
    got = make.read(make.response(1, broken[1], broken[0], status="404 Not Found") + image)
    assert [(x.reason, x.detail, x.kind) for x in got.losses] == [
        ("http_client_error", "404", "dropped")
    ]
    assert [s.reason for s in got.skips] == ["mime:image/png"]


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
