"""Mutated shards, fixed seeds: no crash, no hang, every byte booked, the undamaged survive.

`nightly`: 5,000 inputs a format; `make test` runs 200 of them. A mutation is a bit flip, a cut, a
splice of another place, a doubled, blanked or dropped stretch, up to three at a time. A record far
from all damage (in another member, or more than a record away in plain files) comes out as it was.
"""

from __future__ import annotations

import io
import json
import random
import signal
import time
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.documents.records import Draft, Record
from gristmill.pipelines.convert import PlainText

COUNT = 14  # records in a file
SLOWEST = 5  # seconds that one input of a few KB may take


@dataclass
class Seed:
    """A file and where its records stand: (from, to, id, content) of stored bytes."""

    data: bytes
    spans: list[tuple[int, int, str, object]]
    members: bool  # damage stays within a member
    options: dict


def words(rng: random.Random) -> str:
    return " ".join(str(rng.random())[2:] for _ in range(rng.randint(1, 40)))


def record(make, kind: str, n: int, rng: random.Random) -> tuple[bytes, str]:
    text = words(rng)
    if kind == "jsonl":
        return json.dumps({"id": f"r{n}", "text": text}).encode() + b"\n", f"r{n}"
    if kind == "wet":
        return make.wet(n, text), f"<urn:{n}>"
    if kind == "warc":
        return make.response(n, make.PAGE.format(text).encode()), f"<urn:{n}>"
    return make.arc(n, make.PAGE.format(text).encode()), f"http://h/{n}"


def key(item: Record) -> str | None:
    return item.identity or item.url


def build(make, name: str) -> Seed:
    kind, _, codec = name.partition(".")
    rng = random.Random(name)
    if kind == "parquet":
        out = io.BytesIO()
        columns = {"id": [f"r{n}" for n in range(60)], "text": [words(rng) for _ in range(60)]}
        pq.write_table(
            pa.table(columns), out, row_group_size=20, write_page_checksum=True, compression="zstd"
        )
        meta = pq.read_metadata(io.BytesIO(out.getvalue()))
        starts = [meta.row_group(g).column(0).dictionary_page_offset for g in range(3)]
        ends = [*starts[1:], len(out.getvalue())]
        spans = [(starts[n // 20], ends[n // 20], f"r{n}", columns["text"][n]) for n in range(60)]
        return Seed(out.getvalue(), spans, members=True, options={})
    if kind == "text":
        data = make.pack((words(rng) * 20).encode(), codec)
        return Seed(data, [], members=True, options={"format": "text"})
    parts = [record(make, kind, n, rng) for n in range(1, COUNT)]
    if kind == "arc":
        parts.insert(0, (make.arc(0, b""), ""))
    data, spans = b"", []
    for raw, name_ in parts:
        member = make.pack(raw, codec)
        if name_:
            spans.append((len(data), len(data) + len(member), name_, None))
        data += member
    return Seed(data, spans, members=codec != "plain", options={})


def mutate(data: bytes, rng: random.Random) -> tuple[bytes, list[tuple[int, int]]]:
    """The mutant and the stretches of the original that were touched."""
    touched: list[tuple[int, int]] = []
    # From the end, so that places of the original stay where they were.
    for at in sorted(rng.randrange(len(data)) for _ in range(rng.choice((1, 1, 1, 2, 3))))[::-1]:
        end = min(len(data), at + rng.randint(1, 60))
        if touched:
            end = max(at + 1, min(end, touched[-1][0]))
        kind = rng.choice(("flip", "flip", "flip", "cut", "splice", "double", "blank", "drop"))
        if kind == "flip":
            end = at + 1
            data = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[end:]
        elif kind == "cut":
            end = 1 << 60
            data = data[:at] or b"\0"
        elif kind == "splice":
            other = rng.randrange(len(data))
            data = data[:at] + data[other : other + end - at] + data[at:]
            end = at + 1
        elif kind == "double":
            data = data[:end] + data[at:end] + data[end:]
        elif kind == "blank":
            data = data[:at] + bytes(end - at) + data[end:]
        else:
            data = data[:at] + data[end:] or b"\0"
        touched.append((at, end))
    return data, touched


FORMATS = (
    *("warc.gzip", "warc.plain", "warc.zstd", "wet.gzip", "wet.bzip2", "arc.plain", "arc.gzip"),
    *("jsonl.plain", "jsonl.gzip", "jsonl.zstd", "jsonl.xz", "parquet.", "text.gzip"),
)


def run(make, name: str, numbers: range) -> None:
    seed = build(make, name)
    clean = make.read(seed.data, **seed.options)
    good = {key(r): (r.body, r.text) for r in clean.records}
    if seed.spans:
        assert list(good) == [s[2] for s in seed.spans]
    plain = PlainText()
    for number in numbers:
        data, touched = mutate(seed.data, random.Random(f"{name} {number}"))
        start = time.process_time()
        signal.alarm(120)  # a hang ends the test with its number on the stack, never a verdict
        got = make.read(data, **seed.options)  # checks that stored and decoded bytes balance
        signal.alarm(0)
        assert time.process_time() - start < SLOWEST, (name, number)
        found = [(key(r), (r.body, r.text)) for r in got.records]
        made = [d for d in plain(iter(got.items)) if isinstance(d, Draft)]
        assert all(d.text.encode() for d in made), (name, number)
        if name.startswith("parquet"):
            expected = parquet_survivors(seed, data, touched)
        else:
            expected = survivors(seed, touched)
        for one in expected:
            assert (one, good[one]) in found, (name, number, one)
        # (Of a few bytes that are left of a file nobody can say that they are no text.)
        if (
            seed.members and len(data) > 8
        ):  # nothing altered, but where the checksum that would say so is cut off
            cut = {x.locator.offset for x in got.losses if x.reason == "truncated_stream"}
            sound = [key(r) for r in got.records if r.locator.offset not in cut]
            assert all(good.get(k) == v for k, v in found if k in sound), (name, number)
            # What is missing has a row in the books; a cut between two members leaves no trace.
            # (In plain files two lines may merge into one, or a record turn into another type.)
            clean_cut = any(a in {s[0] for s in seed.spans} and b > 1 << 50 for a, b in touched)
            missing = set(good) - {k for k, _ in found}
            assert got.losses or clean_cut or not missing, (name, number)


def survivors(seed: Seed, touched: list[tuple[int, int]]) -> list[str]:
    """Ids that no damage is near: not in their member, in plain files not in the next record."""
    hurt = {
        n
        for n, (start, end, *_) in enumerate(seed.spans)
        for a, b in touched
        if start < b + 1 and end > a - 1
    }
    if not seed.members:
        hurt |= {n + d for n in hurt for d in (-1, 1)}
    first = seed.spans[0][0] if seed.spans else 0
    if not seed.members and any(a < first for a, _ in touched):
        hurt.add(0)
    return [s[2] for n, s in enumerate(seed.spans) if n not in hurt]


def parquet_survivors(seed: Seed, data: bytes, touched: list[tuple[int, int]]) -> list[str]:
    """Rows of groups without damage, when the footer and all places in it are still right."""
    footer = len(seed.data) - 8 - int.from_bytes(seed.data[-8:-4], "little")
    if len(data) != len(seed.data) or any(a >= footer or b > footer for a, b in touched):
        return []
    if any(a < 4 for a, _ in touched):
        return []
    ends = [*sorted({s[0] for s in seed.spans})[1:], footer]
    hurt = {g for g, end in enumerate(ends) for a, b in touched if a < end and b > ([4, *ends][g])}
    return [s[2] for n, s in enumerate(seed.spans) if n // 20 not in hurt]


@pytest.mark.parametrize("name", FORMATS)
def test_fuzz_200_mutants(make, name):
    run(make, name, range(200))


@pytest.mark.nightly
@pytest.mark.parametrize("name", FORMATS)
def test_fuzz_5000_mutants(make, name):
    run(make, name, range(200, 5_000))
