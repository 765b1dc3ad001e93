"""Sample: some documents that a stage kept, dropped or cut, for a person to read.

The choice follows from the ids and a seed: the same command shows the same documents, and more of
them when asked for more.
"""

from __future__ import annotations

import hashlib
import heapq
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from ..documents.errors import UsageError, did_you_mean
from .columns import schema_meta
from .families import cutting, sample_families
from .find import Place, row_of
from .passes import attributes
from .why import why_stage

if TYPE_CHECKING:
    from .run import Run

EXCERPT = 500  # characters of text that are shown


def sample(
    run: Run, *, stage: str | None = None, reason: str | None = None, n: int = 5, seed: int = 0
) -> list[dict[str, Any]]:
    """`n` documents that `stage` dropped, cut or flagged (for `reason`), or any of the corpus.

    Of a stage that finds templates: the `n` largest, each with its slots marked.
    """
    _check(run, stage, reason)
    finds = {use.stage.name for use, _ in cutting(run)}
    if stage is not None and stage in finds and reason in {None, "template"}:
        return sample_families(run, stage, n)
    held: list[tuple[int, str, int, Place]] = []
    for shard in run.shards:
        for place, value in _candidates(run, shard, stage, reason):
            key = hashlib.blake2b(value + seed.to_bytes(8, "little"), digest_size=8).digest()
            entry = (-int.from_bytes(key, "little"), shard, -place.row, place)
            if len(held) < n:
                heapq.heappush(held, entry)
            elif held and entry > held[0]:
                heapq.heapreplace(held, entry)
    return [_shown(run, e[3], stage) for e in sorted(held, reverse=True)]


def nothing(run: Run, stage: str | None, reason: str | None) -> str:
    """What an empty sample means, for people."""
    if stage is None:
        return "no document is left in this run"
    seen = 0
    for which in run.passes:
        for shard in run.shards:
            name = attributes(which.name, shard)
            if run.store.present(name) is None:
                continue
            file = pq.ParquetFile(run.store.path(name))
            if f"{stage}.code" in file.schema_arrow.names:
                column = file.read(columns=[f"{stage}.code"]).column(0)
                seen += len(column) - column.null_count
    why = "" if reason is None else f" for {reason}"
    return f"{stage} dropped, cut or flagged none of {seen:,} documents{why}"


def _check(run: Run, stage: str | None, reason: str | None) -> None:
    known: dict[str, list[str]] = {}
    for which in run.passes:
        for shard in run.shards:
            name = attributes(which.name, shard)
            if run.store.present(name) is None:
                continue
            for about in schema_meta(pq.read_schema(run.store.path(name)))["stages"]:
                known[about["name"]] = [*about["reasons"], *(about["edit_reasons"] or [])]
    if stage is not None and stage not in known:
        msg = f"no stage {stage!r} in this run{did_you_mean(stage, known)}"
        raise UsageError(msg)
    if reason is not None and stage is None:
        msg = "--reason goes with --stage"
        raise UsageError(msg)
    if stage is not None and reason is not None and reason not in known[stage]:
        msg = f"stage {stage!r} has no reason {reason!r}{did_you_mean(reason, known[stage])}"
        raise UsageError(msg)


def _candidates(
    run: Run, shard: str, stage: str | None, reason: str | None
) -> list[tuple[Place, bytes]]:
    found: list[tuple[Place, bytes]] = []
    for which in run.passes if stage is not None else run.passes[-1:]:
        name = attributes(which.name, shard)
        if run.store.present(name) is None:
            continue
        file = pq.ParquetFile(run.store.path(name))
        about = [s for s in schema_meta(file.schema_arrow)["stages"] if s["name"] == stage]
        own = which.stages[run.shards[shard].source]
        flag = next((getattr(s, "flag", "") for s in own if s.name == stage), "")
        if stage is not None and not about:
            continue
        row = 0
        for group in range(file.num_row_groups):
            for local, value in _rows(
                file, group, about[0] | {"flag": flag} if about else None, reason
            ):
                found.append((Place(shard=shard, row=row + local, group=group, local=local), value))
            row += file.metadata.row_group(group).num_rows
    return found


def _rows(
    file: pq.ParquetFile, group: int, about: dict[str, Any] | None, reason: str | None
) -> list[tuple[int, bytes]]:
    """Rows of a group that fit, with their ids."""
    if about is None:
        table = file.read_row_group(group, columns=["id", "bytes"]).to_pylist()
        return [(i, r["id"]) for i, r in enumerate(table) if r["bytes"] is not None]
    code, edits, flag = (f"{about['name']}.{c}" for c in ("code", "edits", about["flag"]))
    columns = ["id", code] + ([edits] if about["edit_reasons"] is not None else [])
    columns += [flag] if about["flag"] else []
    found = []
    for i, row in enumerate(file.read_row_group(group, columns=columns).to_pylist()):
        if row[code] is None:
            continue
        told = {about["reasons"][row[code]]}
        told |= {about["edit_reasons"][e["reason"]] for e in row.get(edits) or ()}
        if reason in told or (reason is None and (told != {"keep"} or row.get(flag))):
            found.append((i, row["id"]))
    return found


def _shown(run: Run, place: Place, stage: str | None) -> dict[str, Any]:
    row = row_of(run, f"documents/{place.shard}.parquet", place, ["id", "url", "source", "text"])
    text = row["text"]
    told = {
        "id": row["id"].hex(),
        "url": row["url"],
        "source": row["source"],
        "shard": place.shard,
        "text": text if len(text) <= EXCERPT else text[:EXCERPT] + "…",
        "characters": len(text),
    }
    return told | (why_stage(run, place, stage) if stage is not None else {})
