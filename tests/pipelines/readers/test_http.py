"""HTTP answers inside records: codings, types, statuses, bodies that cannot be had."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from types import SimpleNamespace

import brotli
import pytest
import zstandard

from gristmill.pipelines.readers import http

HTML = b"<html><body><p>the page</p></body></html>"


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
    if reason == "too_large":
        assert "body is more than reader.max_record_bytes (1000000 bytes)" in got.losses[0].detail


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
