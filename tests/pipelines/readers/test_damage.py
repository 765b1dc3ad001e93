"""Random damage from fixed seeds: no crash, every byte booked, the neighbours unhurt, no lies."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.pipelines.readers import read, stored, stream

SEEDS = range(40)
WORDS = [
    f"{a}{b}{c}" for a in "bdfg" for b in ("a", "ei", "ost", "un") for c in ("r", "mel", "", "n")
]


def damage(data: bytes, rng: random.Random) -> tuple[bytes, int, int]:
    """Cut the end, flip a bit, blank a stretch, drop or double one. Returns (bytes, from, to)."""
    at = rng.randrange(len(data))
    size = rng.randint(1, 40)
    kind = rng.choice(["cut", "flip", "flip", "flip", "blank", "drop", "double"])
    if kind == "cut":
        return data[:at], at, len(data)
    if kind == "flip":
        return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :], at, at + 1
    end = min(len(data), at + size)
    if kind == "blank":
        return data[:at] + bytes(end - at) + data[end:], at, end
    if kind == "drop":
        return data[:at] + data[end:], at, end
    return data[:end] + data[at:end] + data[end:], at, end


def build(make, kind: str, codec: str) -> list[tuple[bytes, list[str]]]:
    """Members, each with the ids of its records."""
    rng = random.Random(f"{kind} {codec}")
    out = []
    for n in range(12):
        if kind == "warc":
            words = " ".join(str(rng.random()) for _ in range(rng.randint(1, 60)))
            record = (
                make.wet(n, words) if n % 3 else make.response(n, make.PAGE.format(words).encode())
            )
            out.append((make.pack(record, codec), [f"<urn:{n}>"]))
        else:
            start, count = n * 10, rng.randint(1, 8)
            out.append(
                (
                    make.pack(b"".join(make.rows(count, start)), codec),
                    [f"r{i}" for i in range(start, start + count)],
                )
            )
    return out


@pytest.mark.parametrize("codec", ["gzip", "zstd", "bzip2", "xz"])
@pytest.mark.parametrize("kind", ["warc", "jsonl"])
def test_damage_to_a_member_hurts_that_member_alone(make, kind, codec):
    parts = build(make, kind, codec)
    whole = b"".join(p for p, _ in parts)
    good = {r.identity: (r.text, r.body) for r in make.read(whole).records}
    assert list(good) == [i for _, ids in parts for i in ids]
    bounds = [0]
    for part, _ in parts:
        bounds.append(bounds[-1] + len(part))
    for seed in SEEDS:
        data, start, end = damage(whole, random.Random(seed))
        got = make.read(data)
        hurt = [n for n in range(len(parts)) if bounds[n] < end and bounds[n + 1] > start]
        expected = [i for n, (_, ids) in enumerate(parts) if n not in hurt for i in ids]
        assert [i for i in got.ids if i in expected] == expected, seed
        # What a checksum covers is never handed on altered.
        assert all((r.text, r.body) == good.get(r.identity) for r in got.records), seed
        if set(got.ids) != set(good):
            assert got.losses, seed


@pytest.mark.parametrize("kind", ["warc", "jsonl"])
def test_damage_to_a_plain_file_spares_distant_records(make, kind):
    parts = build(make, kind, "plain")
    whole = b"".join(p for p, _ in parts)
    bounds = [0]
    for part, _ in parts:
        bounds.append(bounds[-1] + len(part))
    for seed in SEEDS:
        data, start, end = damage(whole, random.Random(seed))
        got = make.read(data)
        hurt = [n for n in range(len(parts)) if bounds[n] < end and bounds[n + 1] > start]
        # A broken header, length or newline may hide where the record before it or after it ends.
        near = {n + d for n in hurt for d in (-1, 0, 1)}
        for n, (_, ids) in enumerate(parts):
            if n not in near:
                assert set(ids) <= set(got.ids), (seed, n)


@pytest.mark.parametrize("codec", ["gzip", "zstd", "bzip2", "xz"])
def test_damage_in_one_large_member_keeps_what_is_far_before_it_or_none(make, monkeypatch, codec):
    for module in (read, stream):  # a sixteenth, for members of a sixteenth of the usual size
        monkeypatch.setattr(module, "REACH", 256 << 10)
    rng = random.Random(4)
    lines = [
        b'{"id":"r%d","text":"%s"}\n' % (n, " ".join(rng.choices(WORDS, k=12)).encode())
        for n in range(25_000)
    ]
    packed = make.pack(b"".join(lines), codec)
    good = {r.identity: r.text for r in make.read(packed).records}
    assert len(good) == 25_000
    for seed in range(4):
        at = len(packed) * (5 + seed % 4) // 10
        data = packed[:at] + bytes([packed[at] ^ 0xFF]) * 8 + packed[at + 8 :]
        data += make.pack(make.rows(1, 70_000)[0], codec)
        got = make.read(data)
        assert got.reasons == ["corrupt_member"]
        assert got.ids == [f"r{n}" for n in range(len(got.ids) - 1)] + ["r70000"]
        if codec in {"gzip", "zstd"}:
            assert len(got.ids) > 5_000
            right = sum(good.get(r.identity) == r.text for r in got.records)
            assert right > 5_000
        strict = make.read(data, salvage=False)
        assert strict.reasons == ["corrupt_member"]
        assert strict.ids == ["r70000"]


def test_damage_that_the_checksum_alone_shows_is_booked(make):
    packed = make.pack(b"".join(make.rows(10_000)), "gzip")
    data = packed[:-6] + b"\0" + packed[-5:]
    assert make.read(data).reasons == ["corrupt_member"]
    strict = make.read(data, salvage=False)
    assert (strict.reasons, strict.ids) == (["corrupt_member"], [])
    assert strict.losses[0].locator.span == strict.account.decoded_bytes


def parquet(path, groups: int) -> None:
    table = pa.table(
        {
            "id": [f"r{n}" for n in range(groups * 20)],
            "text": [f"row {n} " + "lorem " * (n % 9) for n in range(groups * 20)],
        }
    )
    pq.write_table(table, path, row_group_size=20, write_page_checksum=True, compression="zstd")


def test_damage_to_a_row_group_spares_the_others(make, tmp_path):
    parquet(tmp_path / "x", 6)
    whole = (tmp_path / "x").read_bytes()
    meta = pq.read_metadata(tmp_path / "x")
    starts = [meta.row_group(g).column(0).dictionary_page_offset for g in range(6)]
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    bounds = [*starts, footer]
    good = {r.identity: r.text for r in make.read(whole).records}
    assert len(good) == 120
    for seed in SEEDS:
        rng = random.Random(seed)
        at = rng.randrange(4, footer) if seed % 2 else rng.randrange(len(whole))
        data = whole[:at] + bytes([whole[at] ^ 1 << rng.randrange(8)]) + whole[at + 1 :]
        got = make.read(data)
        if 4 <= at < starts[-1]:
            hurt = max(g for g in range(6) if bounds[g] <= at)
            for row in range(120):
                if row // 20 != hurt:
                    assert f"r{row}" in got.ids, (seed, at)
        cut = make.read(whole[: rng.randrange(4, len(whole))])
        assert cut.reasons == ["truncated_stream"]
        assert cut.records == []


@pytest.mark.parametrize("kind", ["warc", "jsonl"])
@pytest.mark.parametrize("codec", ["plain", "gzip", "zstd"])
def test_items_do_not_depend_on_how_bytes_arrive(make, monkeypatch, kind, codec):
    """Windows of a few bytes give what windows of a megabyte give, damage included."""
    whole = b"".join(p for p, _ in build(make, kind, codec))
    inputs = [whole] + [damage(whole, random.Random(s))[0] for s in range(10)]
    expected = [make.read(data).items for data in inputs]
    monkeypatch.setattr(stream, "_WINDOW", 37)
    monkeypatch.setattr(stored, "_CACHE", 29)
    monkeypatch.setattr(stored, "CHUNK", 43)
    for data, items in zip(inputs, expected, strict=True):
        got = make.read(data).items
        assert [(type(i), getattr(i, "reason", None)) for i in got] == [
            (type(i), getattr(i, "reason", None)) for i in items
        ]
        assert got == items
