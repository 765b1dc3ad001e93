"""Folders of texts and pages: one file, one document; only where the recipe says so."""

from __future__ import annotations

import pytest

from gristmill.documents.errors import UsageError
from gristmill.documents.records import Draft
from gristmill.pipelines.convert import MainText, PlainText
from gristmill.pipelines.readers import (
    Extent,
    ReadAccount,
    ReadOptions,
    group_extents,
    read_extent,
    reread,
)


@pytest.mark.parametrize("codec", ["plain", "gzip", "zstd", "bzip2", "xz"])
def test_whole_file_is_one_document_named_by_its_path(make, codec):
    text = "{ not JSON,\nWARC/1.0 not an archive\n" * 40_000
    raw = text.encode()
    data = make.pack(raw[:100], codec) + make.pack(raw[100:], codec)
    (make.root / "sub").mkdir()
    got = make.read(data, "sub/a.txt", format="text")
    (record,) = got.records
    assert (record.identity, record.media_type) == ("sub/a.txt", "text/plain")
    assert record.body == raw
    assert record.locator.span == len(raw)
    assert reread(make.root, record.locator, format="text") == record
    (draft,) = PlainText()(iter([record]))
    assert (draft.text, draft.identity) == (text, "sub/a.txt")
    assert draft.metadata["charset"] == "utf-8"


def test_whole_page_goes_through_extraction(make):
    got = make.read(b"<html><title>T</title><body><p>some words</p></body>", format="html")
    (draft,) = MainText()(iter(got.items))
    assert isinstance(draft, Draft)
    assert (draft.text, draft.metadata["title"]) == ("some words", "T")


def test_whole_file_of_another_encoding_is_decoded(make):
    text = "Größe und Länge, naïveté, façade. " * 9
    for encoding in ("utf-8", "utf-16", "windows-1252"):
        (draft,) = PlainText()(iter(make.read(text.encode(encoding), format="text").items))
        assert draft.text == text


def test_whole_file_is_never_split(make):
    (make.root / "f").write_bytes(b'{"text":"a"}\n' * 10_000)
    plan = group_extents(make.root, ["f"], target_bytes=10_000, split=False)
    assert plan == [[Extent("f", 0, 130_000)]]
    assert len(group_extents(make.root, ["f"], target_bytes=10_000)) > 10


def test_whole_file_of_any_other_format_has_to_be_asked_for(make):
    for data, said in ((b"<!doctype html><p>x", "format: html"), (b"prose", "format: text")):
        got = make.read(data)
        assert got.reasons == ["unknown_format"]
        assert said in got.losses[0].detail
    with pytest.raises(UsageError, match=r"reader\.format: expected text or html, found 'csv'"):
        ReadOptions.of({"format": "csv"})


def test_whole_files_that_are_parquet_or_empty(make):
    got = make.read(b"PAR1 is how this text starts", format="text")
    assert len(got.records) == 1
    (loss,) = read_extent(make.root, Extent("data", 0, 0), ReadAccount(), format="text")
    assert (loss.reason, loss.kind) == ("empty_file", "dropped")


@pytest.mark.parametrize("data", [bytes(range(256)) * 4, b"\x89PNG\r\n\x1a\n" + bytes(99)])
def test_whole_file_of_binary_is_a_fault_and_no_text(make, data):
    got = make.read(data, format="text")
    assert (got.records, got.reasons) == ([], ["not_text"])
    assert got.losses[0].kind == "fault"
