"""Damage at the start of a file: what follows is found, whatever stands before it."""

from __future__ import annotations

import random

import pytest
import zstandard

NOISE = random.Random(5).randbytes(300_000)
BEFORE = {"nuls": bytes(300_000), "noise": NOISE, "text": b"words and more words\n" * 15_000}


def records(make, container: str) -> bytes:
    if container == "jsonl":
        return b"".join(make.rows(3))
    if container == "arc":
        return b"".join(make.arc(n, b"<p>x</p>") for n in (0, 1, 2, 3))
    return b"".join(make.wet(n) for n in (1, 2, 3))


@pytest.mark.parametrize("codec", ["plain", "gzip", "zstd", "xz"])
@pytest.mark.parametrize("container", ["jsonl", "arc", "wet"])
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("size", [500, 100_000, 300_000])
def test_start_of_a_file_that_is_damaged_is_one_loss(make, codec, container, before, size):
    damage = BEFORE[before][:size].rstrip(b"\n") + b"\n"
    sound = records(make, container)
    got = make.read(make.pack(damage, codec) + make.pack(sound, codec))
    assert len(got.records) == 3
    if size > 64 << 10:  # less is sniffed as a damaged first record
        found = [(x.reason, x.kind) for x in got.losses]
        assert found == [("bad_framing", "fault")]
    assert sum(x.locator.span for x in got.losses) <= len(damage)


@pytest.mark.parametrize("codec", ["plain", "gzip", "zstd"])
@pytest.mark.parametrize("container", ["jsonl", "arc", "wet"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_start_of_blank_lines_is_passed_over(make, codec, container, end):
    data = end * 100_000 + records(make, container)
    got = make.read(make.pack(data, codec))
    assert (len(got.records), got.losses) == (3, [])
    assert sum(s.span for s in got.skips if s.reason == "blank") >= len(end) * 100_000


def test_start_noise_with_an_open_brace_in_it_is_no_jsonl(make):
    noise = NOISE[:30_000] + b"\n{" + NOISE[:1000] + b"\n"
    got = make.read(noise + records(make, "wet"))
    assert (len(got.records), got.reasons) == (3, ["bad_framing"])


@pytest.mark.parametrize("head", [b"PK\x03\x04", b"name".ljust(257, b"\0") + b"ustar"])
@pytest.mark.parametrize("noise", [1_000, 100_000])  # what it holds lies in what is sniffed, or not
@pytest.mark.parametrize("container", ["jsonl", "arc", "wet"])
def test_archive_is_passed_over_whole(make, head, noise, container):
    data = head + NOISE[:noise] + b"\n" + records(make, container)
    got = make.read(data)
    assert (got.records, got.reasons) == ([], ["unknown_format"])
    assert got.losses[0].locator.span == len(data)


@pytest.mark.parametrize("log", [27, 28, 31])
def test_zstd_window_above_the_limit_is_said(make, log):
    lines = make.rows(40)
    compressor = zstandard.ZstdCompressor(write_checksum=True)
    before, after = (compressor.compress(b"".join(p)) for p in (lines[:20], lines[30:]))
    made = compressor.compressobj()
    frame = bytearray(made.compress(b"".join(lines[20:30])) + made.flush())
    assert not frame[4] >> 5 & 1  # its size is not known, so that it states a window
    frame[5] = (log - 10) << 3
    got = make.read(before + bytes(frame) + after)
    if log == 27:
        assert (len(got.records), got.losses) == (40, [])
        return
    assert got.ids == [f"r{n}" for n in (*range(20), *range(30, 40))]
    assert got.reasons == ["window_too_large"]
    assert f"{1 << log - 20} MiB" in got.losses[0].detail
    assert "128 MiB" in got.losses[0].detail
    assert got.account.damaged == len(frame)
