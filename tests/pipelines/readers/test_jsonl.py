"""JSON lines in every codec, and lines that are not."""

from __future__ import annotations

import json
import random
import string

import pytest

from gristmill.documents.errors import UsageError
from gristmill.documents.fingerprint import canonical
from gristmill.pipelines.convert import PlainText
from gristmill.pipelines.readers.jsonl import MAX_DEPTH, TOO_DEEP

EVERY = pytest.mark.parametrize("codec", ["plain", "gzip", "zstd", "bzip2", "xz"])


@EVERY
def test_jsonl_wrong_bytes_in_one_line_cost_one_line(make, codec):
    """Case 01."""
    lines = make.rows(11)
    lines[2] = b'{"text":"\xff\xfe","id":"x"}\n'
    got = make.read(make.pack(b"".join(lines), codec))
    assert got.ids == [f"r{n}" for n in range(11) if n != 2]
    (loss,) = got.losses
    assert (loss.reason, loss.kind, loss.locator.span) == ("invalid_utf8", "fault", len(lines[2]))
    where = len(lines[0]) + len(lines[1])
    assert loss.locator.offset + loss.locator.inner == where


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
@pytest.mark.parametrize("count", [5000, 300])
def test_jsonl_cut_frame_keeps_complete_lines_and_says_where(make, codec, count):
    """Case 02; 300 rows make a frame of one block, of which half may be no line at all."""
    rng = random.Random(2)
    lines = [
        json.dumps({"id": str(n), "text": "".join(rng.choices(string.ascii_letters, k=400))}) + "\n"
        for n in range(count)
    ]
    packed = make.pack("".join(lines).encode(), codec)
    got = make.read(packed[: len(packed) * 6 // 10])
    assert got.ids == [str(n) for n in range(len(got.ids))]
    assert all(len(r.text) == 400 for r in got.records)
    assert got.reasons == ["truncated_stream"]
    assert got.losses[0].locator.offset == 0
    if count == 5000:
        assert 2_500 < len(got.ids) < 3_500
        assert got.losses[0].locator.inner == len("".join(lines[: len(got.ids)]))


@EVERY
def test_jsonl_lone_surrogate_keeps_its_document(make, codec):
    """Case 14: the reader keeps it for the text policy."""
    got = make.read(make.pack(b'{"text":"a\\ud800b"}\n', codec))
    assert [r.text for r in got.records] == ["a\ud800b"]


@EVERY
def test_jsonl_wrong_types_are_bad_schema_and_the_rest_goes_on(make, codec):
    """Case 19."""
    lines = [
        b'{"text":123}',
        b"[1,2]",
        b'{"text":"a","media":null}',
        b'{"txt":"a"}',
        b'{"text":"b"}',
    ]
    got = make.read(make.pack(b"\n".join(lines) + b"\n", codec))
    assert [r.text for r in got.records] == ["a", "b"]
    assert got.reasons == ["bad_schema"] * 3
    assert got.records[0].fields == {"media": None}


@EVERY
def test_jsonl_byte_order_mark_is_no_damage(make, codec):
    """Case 20."""
    got = make.read(make.pack(b"\xef\xbb\xbf" + b"".join(make.rows(3)), codec))
    assert got.ids == ["r0", "r1", "r2"]
    assert got.losses == []


def test_jsonl_shapes_that_differ_between_rows_all_survive(make):
    """Case 21: a field that is null, then a string; that appears later; integer, then float."""
    rows = [{"lic": None, "n": 1}, {"lic": "mit", "n": 1.5}, {"n": "x", "new": [1]}]
    data = "".join(json.dumps({"text": "t", **r}) + "\n" for r in rows).encode()
    assert [r.fields for r in make.read(data).records] == rows


def test_jsonl_fields_become_url_date_identity_and_the_rest(make):
    row = {"id": 7, "text": "t", "url": "http://u", "created": "2024", "n": 1.0, "x": {"y": [None]}}
    (record,) = make.read(json.dumps(row).encode()).records
    assert (record.identity, record.url, record.date) == ("7", "http://u", "2024")
    assert record.fields == {"n": 1.0, "x": {"y": [None]}}


def test_jsonl_options_name_the_fields(make):
    data = b'{"body":"t","key":"k","id":"other"}\n'
    (record,) = make.read(data, text_field="body", id_field="key").records
    assert (record.text, record.identity, record.fields) == ("t", "k", {"id": "other"})


def test_jsonl_without_text_field_gives_rows(make):
    (record,) = make.read(b'{"a":[1],"id":"x"}\n', text_field=None).records
    assert record.text == '{"a":[1],"id":"x"}'
    assert record.fields == {"a": [1]}


def test_jsonl_unknown_option_names_the_nearest(make):
    with pytest.raises(UsageError, match=r"'text_feild'; did you mean 'text_field'"):
        make.read(b"{}", text_feild="x")


def test_jsonl_null_text_is_dropped_not_damaged(make):
    got = make.read(b'{"text":null}\n')
    assert [(x.reason, x.kind) for x in got.losses] == [("null_text", "dropped")]


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_jsonl_numbers_that_json_forbids_become_null(make, value):
    (record,) = make.read(b'{"text":"t","n":' + value.encode() + b"}\n").records
    assert record.fields == {"n": None}


@pytest.mark.parametrize(
    "line",
    [b"{", b'{"text":"a"} x', b"[" * 100_000, b'{"n":' + b"9" * 5000 + b"}", b"{'text':'a'}"],
)
def test_jsonl_lines_that_are_no_json_are_bad_json(make, line):
    got = make.read(b'{"text":"a"}\n' + line + b'\n{"text":"b"}\n')
    assert [r.text for r in got.records] == ["a", "b"]
    assert got.reasons == ["bad_json"]


@pytest.mark.parametrize("codec", ["plain", "gzip", "zstd"])
def test_jsonl_line_above_the_limit_is_one_loss(make, codec):
    big = json.dumps({"text": "x" * 3_000_000}).encode() + b"\n"
    lines = [make.rows(1)[0], big, make.rows(1, 1)[0]]
    got = make.read(make.pack(b"".join(lines), codec), max_record_bytes=100_000)
    assert got.ids == ["r0", "r1"]
    assert [(x.reason, x.locator.span) for x in got.losses] == [("too_large", len(big))]
    assert got.losses[0].detail == (
        f"{len(big)} bytes, more than reader.max_record_bytes (100000 bytes)"
    )


def test_jsonl_last_line_needs_no_newline_and_half_a_line_is_truncated(make):
    whole = b"".join(make.rows(3))
    assert make.read(whole[:-1]).ids == ["r0", "r1", "r2"]
    got = make.read(whole[:-5])
    assert got.ids == ["r0", "r1"]
    assert got.reasons == ["truncated_stream"]


def test_jsonl_blank_lines_are_counted_bytes(make):
    got = make.read(b'\n{"text":"a"}\r\n\r\n \n{"text":"b"}\n\n')
    assert [r.text for r in got.records] == ["a", "b"]
    assert got.losses == []
    assert sum(s.span for s in got.skips) == 1 + 2 + 2 + 1


@pytest.mark.parametrize("codec", ["plain", "gzip", "zstd"])
def test_jsonl_many_faults_in_a_row_give_the_rest_of_the_file_up(make, codec):
    bad = b'{"text":"a"}\n' + b"{oops\n" * 1_000
    rest = b"{oops\n" * 500 + b'{"text":"b"}\n' + b"\n"
    got = make.read(make.pack(bad + rest, codec), name="broken.jsonl")
    assert [r.text for r in got.records] == ["a"]
    assert got.reasons == ["bad_json"] * 1_000 + ["given_up"]
    last = got.losses[-1]
    assert (last.kind, last.locator.span, last.records) == ("fault", len(rest), 501)
    assert "1000 damaged records in a row" in last.detail
    assert "text_field" in last.detail
    assert make.read(make.pack(bad, codec)).reasons == ["bad_json"] * 1_000  # nothing is left
    mixed = (b"{oops\n" * 999 + b'{"text":"a"}\n') * 2
    assert len(make.read(mixed).losses) == 1_998


@pytest.mark.parametrize("codec", ["plain", "gzip", "zstd", "bzip2", "xz"])
@pytest.mark.parametrize("count", [1, 700, 100_000])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_jsonl_nuls_before_a_line_are_booked_and_the_line_is_read(make, codec, count, place):
    """What a file system leaves of a file that was open when its machine went down."""
    lines = make.rows(2)
    lines.insert(place, bytes(count))
    got = make.read(make.pack(b"".join(lines), codec))
    assert got.ids == ["r0", "r1"]
    losses = [(x.reason, x.kind, x.locator.span) for x in got.losses]
    assert losses == [("bad_framing", "fault", count)]


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_jsonl_line_that_reaches_over_members_is_whole(make, codec):
    """Block compressors cut where they like."""
    data = b"".join(make.rows(50))
    pieces = [data[i : i + 333] for i in range(0, len(data), 333)]
    got = make.read(b"".join(make.pack(p, codec) for p in pieces))
    assert got.ids == [f"r{n}" for n in range(50)]
    assert got.losses == []


def test_unknown_bytes_are_one_loss_that_says_what_they_are(make):
    for data, said in (
        (b"PK\x03\x04rest", "ZIP"),
        (b"<html><p>x", "format: html"),
        (b"some prose\nand more", "neither WARC, ARC, JSONL nor Parquet"),
        (bytes(range(1, 256)) * 10, "neither"),
    ):
        got = make.read(data)
        assert got.reasons == ["unknown_format"]
        assert said in got.losses[0].detail
        assert got.losses[0].locator.span == len(data)


@pytest.mark.parametrize("codec", ["plain", "gzip"])
def test_jsonl_line_nested_too_deeply_is_bad_json_alone(make, codec):
    """Python's decoder takes 400 levels; what looks into metadata later would not."""
    kinds = (b"[", b"]"), (b'{"a":', b"}")
    lines = b""
    for depth in (*range(380, 720, 40), 5_000, 100_000):
        for a, b in kinds:
            lines += b'{"text":"deep","m":' + a * depth + b"1" * (a != b"[") + b * depth + b"}\n"
            lines += b'{"text":"next","s":"' + b"{[" * 500 + b'"}\n'  # in a string they are none
    got = make.read(make.pack(lines, codec))
    assert {r.text for r in got.records} == {"next"}
    assert set(got.reasons) == {"bad_json"}
    assert {x.detail for x in got.losses} == {TOO_DEEP}
    assert len(got.losses) == len(got.records) == 22


def test_jsonl_deepest_line_allowed_becomes_a_document(make):
    row = b'{"text":"x","m":' + b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1) + b"}\n"
    got = make.read(row + row.replace(b"[", b"[[", 1).replace(b"]", b"]]", 1))
    assert (len(got.records), got.reasons) == (1, ["bad_json"])
    (draft,) = PlainText()(iter(got.records))
    assert canonical(draft.metadata).count(b"[") == MAX_DEPTH - 1
