"""Find documents of a run by id, URL or a beginning of the id, and follow attributes by row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..documents.errors import UsageError, did_you_mean
from .run import REMOVALS

if TYPE_CHECKING:
    from .run import Run

_SHORTEST = 6  # hex digits: 16 million beginnings


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a document stands: its shard and row, and the row group that holds it."""

    shard: str
    row: int
    group: int
    local: int  # row within the group


def find(run: Run, document: str) -> list[Place]:
    """Every document of this URL, id (32 hex digits) or beginning of an id, in order of shards.

    UsageError when there is none says why, as far as the run knows.
    """
    by_id = re.fullmatch(rf"[0-9a-f]{{{_SHORTEST},32}}", document.lower())
    found = list(_by_id(run, document.lower())) if by_id else []
    found = found or list(_by_url(run, document))
    if not found:
        raise UsageError(_absent(run, document, by_id=by_id is not None))
    return found


def _absent(run: Run, document: str, *, by_id: bool) -> str:
    """What to say of it: removed, lost when read, or asked by a name that is none."""
    removed = sorted({i.hex() for ids in run.removals.values() for i in ids})
    day = ""
    if removed:
        stamp = run.store.path(REMOVALS).stat().st_mtime
        day = datetime.fromtimestamp(stamp, UTC).strftime("%Y-%m-%d")
    mine = [i for i in removed if by_id and i.startswith(document.lower())]
    if mine:
        inside = sorted(s for s, ids in run.removals.items() if {i.hex() for i in ids} & {*mine})
        return (
            f"no document {document!r} in {run.store.root} any more: {', '.join(mine)} removed by "
            f"`gristmill remove` on {day} or before ({REMOVALS}; shard {', '.join(inside)})"
        )
    msg = f"no document with URL or id {document!r} in {run.store.root}"
    if lost := _lost(run, document):
        return msg + lost
    if "://" not in document:  # to find a source's own id, every shard would have to be read again
        msg += "; ids are 32 hex digits, or their first 6 or more, as `sample` shows them. What the"
        msg += " source itself calls a document (`id` of a row, WARC-Record-ID) is hashed into them"
        msg += " and not kept"
    if removed and not by_id:
        return (
            f"{msg}; `gristmill remove` took out {len(removed):,} on {day} or before, maybe this "
            f"one too: {REMOVALS} keeps ids and no URLs"
        )
    return msg + (did_you_mean(document, _some_urls(run)) if "://" in document else "")


def _lost(run: Run, url: str) -> str:
    """What became of records of this URL that are no documents; empty when there is none."""
    told = []
    for shard, about in run.shards.items():
        name = f"losses/{shard}.parquet"
        if run.store.present(name) is None:
            continue
        table = pq.read_table(run.store.path(name), filters=pc.field("url") == url)
        for row in table.to_pylist():
            at = about.place(row)
            told.append(f"{row['reason']} ({row['detail']}) at {at['file']}, byte {at['offset']}")
    return f"; its record became none: {'; '.join(told)}" if told else ""


def _by_id(run: Run, beginning: str) -> Iterator[Place]:
    low = bytes.fromhex(beginning.ljust(32, "0"))
    high = bytes.fromhex(beginning.ljust(32, "f"))
    for shard, file in _documents(run):
        for group in range(file.num_row_groups):
            ids = file.read_row_group(group, columns=["id"]).column(0).to_pylist()
            for local, value in enumerate(ids):
                if low <= value <= high:
                    yield _place(file, shard, group, local)


def _by_url(run: Run, url: str) -> Iterator[Place]:
    for shard, file in _documents(run):
        for group in range(file.num_row_groups):
            column = file.read_row_group(group, columns=["url"]).column(0)
            rows = pc.indices_nonzero(pc.fill_null(pc.equal(column, url), fill_value=False))
            for local in rows.to_pylist():
                yield _place(file, shard, group, local)


def _place(file: pq.ParquetFile, shard: str, group: int, local: int) -> Place:
    before = sum(file.metadata.row_group(g).num_rows for g in range(group))
    return Place(shard=shard, row=before + local, group=group, local=local)


def _documents(run: Run) -> Iterator[tuple[str, pq.ParquetFile]]:
    for shard in run.shards:
        name = f"documents/{shard}.parquet"
        if run.store.present(name) is not None:
            yield shard, pq.ParquetFile(run.store.path(name))


def _some_urls(run: Run) -> list[str]:
    urls: list[str] = []
    for _, file in _documents(run):
        if file.num_row_groups:
            column = file.read_row_group(0, columns=["url"]).column(0)
            urls += [u for u in column.slice(0, 1000).to_pylist() if u]
    return urls


def row_of(run: Run, name: str, place: Place, columns: list[str] | None = None) -> dict[str, Any]:
    """One row of a file whose row groups are those of the documents."""
    file = pq.ParquetFile(run.store.path(name))
    table = file.read_row_group(place.group, columns=columns).slice(place.local, 1)
    return dict(table.to_pylist()[0])


def corpus_ordinal(run: Run, place: Place) -> int | None:
    """Which document of the shard's corpus, and so of its tokens, this row became; or None."""
    name = f"corpus/{place.shard}.parquet"
    if run.store.present(name) is None:
        return None
    rows = pq.read_table(run.store.path(name), columns=["row"]).column(0).to_numpy()
    at = int(np.searchsorted(rows, place.row))
    return at if at < len(rows) and rows[at] == place.row else None


def corpus_rows(run: Run, shard: str, ordinals: list[int]) -> pa.Table:
    """Final documents of a shard by their ordinals, without their text."""
    columns = ["id", "url", "source", "language", "row"]
    table = pq.read_table(run.store.path(f"corpus/{shard}.parquet"), columns=columns)
    return table.take(pa.array(ordinals, pa.int64()))
