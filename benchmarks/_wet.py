"""WET shards for the benchmarks: real texts, with planted copies for the dedup stages to find.

`texts(data)` gives English and other texts in one shuffled order, the same each time, so that the
first megabytes are a fair sample of all. Every 20th text comes again some way on with about 1% of
its words changed (Jaccard of word 5-grams about 0.9), every 50th as it is. Beyond one round over
the data, texts come again with a quarter of their words changed: new documents to every stage.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import zlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

SETS = (
    "a-warc-built/*.wet.gz",
    "c-encyclopedia-enwiki/*.jsonl.gz",
    "c-textbooks-openstax/*.jsonl.gz",
    "c-register-web/*.jsonl.gz",
    "c-lecture-notes/*.jsonl.gz",
    "c-spam-spamassassin/*.jsonl.gz",
)
DATE = "2026-01-01T00:00:00Z"
SEED = 13


def real_texts(data: Path) -> list[str]:
    """All texts of the sets, shuffled."""
    found: list[str] = []
    for pattern in SETS:
        for path in sorted(data.glob(pattern)):
            with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
                found += _wet(file.read()) if path.name.endswith("wet.gz") else _jsonl(file)
    found = [t for t in (_clean(t) for t in found) if t.strip()]
    random.Random(SEED).shuffle(found)
    return found


def sample_texts(folder: Path) -> list[str]:
    """The texts of the sample data that ships with the project, for want of real ones."""
    found: list[str] = []
    for path in sorted(folder.glob("encyclopedia/*.parquet")):
        found += pq.read_table(path, columns=["text"]).column("text").to_pylist()
    for path in sorted(folder.glob("wet/*.wet.gz")):
        found += _wet(gzip.decompress(path.read_bytes()).decode("utf-8", "replace"))
    random.Random(SEED).shuffle(found)
    return [t for t in (_clean(t or "") for t in found) if t.strip()]


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _wet(text: str) -> list[str]:
    records = text.split("WARC/1.0\r\n")[1:]
    return [r.split("\r\n\r\n", 1)[1].strip() for r in records if "\nWARC-Type: conversion" in r]


def _jsonl(lines: io.TextIOBase) -> list[str]:
    found = []
    for line in lines:
        try:
            text = json.loads(line).get("text")
        except (ValueError, AttributeError):
            continue
        if isinstance(text, str):
            found.append(text)
    return found


def changed(text: str, share: float, seed: int, words: list[str]) -> str:
    """The text with `share` of its words replaced by words of the whole; line breaks stay."""
    dice = random.Random(seed)
    pieces = text.split(" ")
    for _ in range(max(1, int(len(pieces) * share))):
        at = dice.randrange(len(pieces))
        if "\n" not in pieces[at]:
            pieces[at] = words[dice.randrange(len(words))]
    return " ".join(pieces)


def stream(base: list[str]) -> Iterator[str]:
    """Texts without end, copies among them; see the head of this file."""
    words = [w for t in base[:200] for w in t.split() if w.isalpha()]
    waiting: list[tuple[int, str]] = []
    number = 0
    for lap in range(1 << 30):
        for text in base:
            fresh = changed(text, 0.25, number, words) if lap else text
            yield fresh
            if number % 20 == 0:
                waiting.append((number + 50, changed(fresh, 0.01, number, words)))
            if number % 50 == 1:
                waiting.append((number + 70, fresh))
            number += 1
            while waiting and waiting[0][0] < number:
                yield waiting.pop(0)[1]


def write_wet(folder: Path, base: list[str], text_bytes: int, file_bytes: int = 64 << 20) -> int:
    """Write WET files, one gzip member a record, until `text_bytes` are in; returns text bytes."""
    if not base:
        raise SystemExit("no texts: set GRISTMILL_DATA, or make the sample data")
    folder.mkdir(parents=True)
    total = held = number = 0
    file = (folder / "part-00000.wet.gz").open("wb")
    for text in stream(base):
        body = text.encode()
        if total + len(body) > text_bytes and total:
            break
        if held > file_bytes:
            file.close()
            number, held = number + 1, 0
            file = (folder / f"part-{number:05d}.wet.gz").open("wb")
        file.write(_record(body, total))
        total, held = total + len(body), held + len(body)
    file.close()
    return total


def _record(body: bytes, at: int) -> bytes:
    head = (
        "WARC/1.0\r\nWARC-Type: conversion\r\n"
        f"WARC-Target-URI: https://site-{at % 997}.example/page-{at}\r\n"
        f"WARC-Date: {DATE}\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{at:012x}>\r\n"
        f"Content-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return packer.compress(head.encode() + body + b"\r\n\r\n") + packer.flush()


def copy_warc(folder: Path, target: Path, copies: int) -> None:
    """WARC files again and again, each copy under record ids of its own: input for speed alone."""
    target.mkdir(parents=True)
    for path in sorted(folder.glob("*.warc.gz")):
        left = path.read_bytes()
        members = []
        while left:
            one = zlib.decompressobj(31)
            members.append(one.decompress(left))
            left = one.unused_data
        for copy in range(copies):
            with (target / f"copy-{copy}-{path.name}").open("wb") as file:
                for member in members:
                    named = member.replace(b"<urn:uuid:", b"<urn:uuid:%d" % copy, 1)
                    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
                    file.write(packer.compress(named) + packer.flush())
