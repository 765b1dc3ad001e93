"""Made-up hosts for the template stage, and the whole stage over them."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from gristmill.documents.edits import apply_edits
from gristmill.documents.identity import shard_hash
from gristmill.documents.stage import checked_measure
from gristmill.filters.templates import Templates

STAGE = Templates()
CONSONANTS, VOWELS = "bcdfghjklmnprstvz", "aeiou"
TEMPLATE = """Weather in {town} on {day}
Today the sky over {town} is {sky} and the wind comes from the {wind} with {speed} km an hour.
The highest temperature is {high} degrees and the lowest temperature is {low} degrees in the night.
You should take a {thing} with you when you leave the house, because the weather may change.
The forecast is made four times a day from the figures of the nearest station of the service.
If you find a mistake on this page, please write to the office and name the date and the place."""


@dataclass(frozen=True)
class Doc:
    text: str
    url: str | None
    host: str | None


def word(draw):
    return "".join(draw.choice(CONSONANTS) + draw.choice(VOWELS) for _ in range(3))


COMMON = """
the of and to in is was for that with as on by at from are this have not which one had his they
time year people first city state world life part house water church school system number group
history family music river company university government small large early later between under
during found called made used known many several great other after before where while there more
""".split()  # noqa: SIM905


def prose(draw, words):
    """Sentences that no other page has."""
    found = (draw.choice(COMMON) + ("." if i % 9 == 8 else "") for i in range(words))
    return " ".join(found).capitalize()


def filled(draw, number, host="a.example", own=0, url=None):
    """A page of the template with `own` words of its own."""
    fills = {k: draw.randrange(99) for k in ("speed", "high", "low")}
    names = {k: word(draw) for k in ("sky", "wind", "thing")}
    text = TEMPLATE.format(town=word(draw).capitalize(), day=number, **fills, **names)
    more = f"\n{prose(draw, own)}" if own else ""
    return Doc(text + more, url or f"https://{host}/{number}", host)


def decide(docs, stage=STAGE, *, shards=2, partitions=1, seed=None):
    """Decisions by document, and the texts that are left (None: dropped)."""
    order = list(range(len(docs)))
    if seed is not None:
        random.Random(seed).shuffle(order)
    by_shard = [
        sorted(order[s::shards]) if seed is None else order[s::shards] for s in range(shards)
    ]
    names = {shard_hash(f"s{s}"): s for s in range(shards)}

    def batch(rows):
        return pa.record_batch({
            "text": pa.array([docs[i].text for i in rows], pa.large_string()),
            "url": pa.array([docs[i].url for i in rows], pa.string()),
            "host": pa.array([docs[i].host for i in rows], pa.string()),
        })  # fmt: skip

    def texts(shard, row):
        found = [
            docs[by_shard[names[s]][r]].text
            for s, r in zip(shard.tolist(), row.tolist(), strict=False)
        ]
        return pa.array(found, pa.large_string())

    tables = []
    for name, s in names.items():
        rows = by_shard[s]
        columns = {
            "shard": pa.array([name] * len(rows), pa.uint64()),
            "id": pa.array([i.to_bytes(16, "big") for i in rows], pa.binary(16)),
            "row": pa.array(range(len(rows)), pa.uint32()),
            "priority": pa.array([0] * len(rows), pa.uint16()),
            "quality": pa.array([-1] * len(rows), pa.int32()),
            "bytes": pa.array([len(docs[i].text.encode()) for i in rows], pa.uint32()),
            "text": batch(rows).column("text"),
        }
        scores = checked_measure(stage.survey, batch(rows)).scores
        tables.append(
            stage.scatter(pa.table(columns | {k: pa.array(v) for k, v in scores.items()}))
        )
    for step in stage.rounds:
        rows = pa.concat_tables(tables)
        part = rows.column("partition").to_numpy() % np.uint64(partitions)
        tables = [step.gather(rows.filter(pa.array(part == p)), texts) for p in range(partitions)]
    table = pa.concat_tables(tables).sort_by("id")
    assert table.schema == stage.decided
    at = np.array([int.from_bytes(i, "big") for i in table.column("id").to_pylist()], np.int64)
    whole = batch(range(len(docs)))
    measured = stage.cut(whole, table, at)
    measured.edits.check(whole.column("text"), "templates")
    left = apply_edits(whole.column("text"), measured.edits).to_pylist()
    found = dict(zip(at.tolist(), table.to_pylist(), strict=True))
    for i in np.flatnonzero(measured.scores["decision"]):
        left[i] = None
    return found, left, measured


def host_of(pages, host="a.example"):
    return [Doc(text, f"https://{host}/{i}", host) for i, text in enumerate(pages)]
