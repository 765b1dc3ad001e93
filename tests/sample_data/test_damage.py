from __future__ import annotations

import gzip
import json
import zlib

import pytest


def test_truncated_last_response_breaks_off_and_the_others_survive(sample, gzip_members):
    fact = sample.facts["truncated"]
    data = (sample.root / fact["file"]).read_bytes()
    assert len(data) == fact["bytes"]
    *whole, last = gzip_members(data)
    assert all(content is not None for _, _, content in whole)
    assert last[0] == fact["offset"]
    assert last[2] is None
    with pytest.raises(EOFError):
        gzip.decompress(data)
    begun = zlib.decompressobj(31).decompress(data[fact["offset"] :])
    assert f"WARC-Target-URI: {fact['cut']}\r\n".encode() in begun
    urls = [record.url for record in sample.warc[fact["file"]] if record.kind == "response"]
    assert urls == fact["survive"]


def test_corrupt_member_does_not_inflate_and_mends_when_the_byte_is_flipped_back(
    sample, gzip_members
):
    fact = sample.facts["corrupt"]
    data = bytearray((sample.root / fact["file"]).read_bytes())
    broken = [(at, size) for at, size, content in gzip_members(bytes(data)) if content is None]
    assert broken == [(fact["offset"], fact["length"])]
    data[fact["flipped"]] ^= 0xFF
    mended = gzip.decompress(data[fact["offset"] : fact["offset"] + fact["length"]])
    assert f"WARC-Target-URI: {fact['url']}\r\n".encode() in mended


def test_framing_one_record_claims_more_bytes_than_it_has(sample):
    fact = sample.facts["framing"]
    for name, records in sample.warc.items():
        for record in records:
            claimed = int(record.headers["Content-Length"])
            if (name, record.url) == (fact["file"], fact["url"]):
                assert record.offset == fact["offset"]
                assert (claimed, len(record.body)) == (fact["claimed"], fact["actual"])
                assert record is not records[-1]
            else:
                assert claimed == len(record.body), record.url


def test_lines_hold_the_stated_faults(sample, jsonl_lines):
    facts = {row["kind"]: row for row in sample.facts["lines"]}
    (name,) = {row["file"] for row in facts.values()}
    raw = jsonl_lines(sample.root / name)

    def line(kind: str) -> bytes:
        return raw[facts[kind]["line"] - 1]

    with pytest.raises(json.JSONDecodeError):
        json.loads(line("not_json"))
    assert isinstance(json.loads(line("not_object")), list)
    assert json.loads(line("text_not_string"))["text"] == 123
    assert json.loads(line("text_null"))["text"] is None
    with pytest.raises(UnicodeDecodeError):
        line("invalid_utf8").decode()
    assert json.loads(line("empty_text"))["text"] == ""
    assert "<|endoftext|>" in json.loads(line("control_token"))["text"]
    assert "\0" in json.loads(line("nul"))["text"]
    with pytest.raises(UnicodeEncodeError):
        json.loads(line("lone_surrogate"))["text"].encode()
    odd = {row["line"] for row in facts.values()}
    for number, text in enumerate(raw, start=1):
        if number not in odd:
            assert json.loads(text.decode())["text"].encode()
    found = [row["id"] for row in facts.values() if row["id"]]
    assert all(f'"id": "{item}"'.encode() in b"\n".join(raw) for item in found)
