"""Annotate one shard: every stage of a pass over every row group of its documents.

Scores of an older version of the same file count for every row that they cover (`reuse`), so that a
changed threshold reads no text, except of rows that an earlier cut had kept from being measured.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..documents.edits import Edits, pick
from ..documents.errors import StopError
from ..documents.fingerprint import digest, measure_fingerprint
from ..documents.schema import DOCUMENTS, FORMAT
from ..documents.stage import Measured, Stage, checked_measure, checked_verdict
from .columns import edits_column, score_column
from .passes import PassStep, attributes
from .reuse import Column, Old, merge
from .steps import Facts
from .texts import ShardTexts

if TYPE_CHECKING:
    from .run import Run


def prototypes(stages: Sequence[Stage]) -> list[Measured]:
    """Each stage's scores for no rows: their names, types and shapes, whatever the shard holds."""
    empty = pa.RecordBatch.from_pylist([], schema=DOCUMENTS)
    return [checked_measure(stage, empty) for stage in stages]


def chains(
    run: Run, step: PassStep, shard: str, stages: tuple[Stage, ...], protos: list[Measured]
) -> list[str]:
    """What each stage's scores depend on: itself, and all stages before it that edit the text."""
    editing: list[str] = []
    for earlier in step.earlier:
        before = run.stages(earlier, shard)
        each = zip(before, prototypes(before), strict=True)
        editing += [measure_fingerprint(s) for s, p in each if p.edits is not None]
    found: list[str] = []
    for stage, proto in zip(stages, protos, strict=True):
        own = measure_fingerprint(stage)
        found.append(digest([own, editing, run.versions("pyarrow", "resiliparse")]))
        if proto.edits is not None:
            editing.append(own)
    return found


def _describe(
    stages: tuple[Stage, ...], protos: list[Measured], each_chain: list[str]
) -> list[dict[str, Any]]:
    return [
        {
            "name": s.name,
            "chain": chain,
            "reasons": list(s.reasons),
            "scores": {n: [v.dtype.str, list(v.shape[1:])] for n, v in p.scores.items()},
            "edit_reasons": list(p.edits.reason_names) if p.edits is not None else None,
            "replacements": [r.hex() for r in p.edits.replacements]
            if p.edits is not None
            else None,
        }
        for s, p, chain in zip(stages, protos, each_chain, strict=True)
    ]


def annotate(run: Run, step: PassStep, shard: str, out: Path, facts: Facts) -> dict[str, Any]:
    """Annotate every row group of a shard's documents; returns counts for the sidecar."""
    stages = run.stages(step.which, shard)
    protos = prototypes(stages)
    described = _describe(stages, protos, chains(run, step, shard, stages, protos))
    texts = ShardTexts(run, shard, [p.name for p in step.earlier])
    before = pq.ParquetFile(run.store.path(attributes(_previous(step), shard)))
    old = Old.open(run, step, shard)
    writer: pq.ParquetWriter | None = None
    survivors = 0
    dropped = [0] * len(stages)
    try:
        for group in range(texts.groups):
            table = before.read_row_group(group, columns=["id", "bytes"])
            columns, codes = _annotate_group(
                stages, protos, described, texts, group, table, old, facts
            )
            batch = pa.table(
                columns,
                metadata={
                    b"gristmill": json.dumps({"format": FORMAT, "stages": described}).encode()
                },
            )
            if writer is None:
                writer = pq.ParquetWriter(out, batch.schema, compression="zstd")
            writer.write_table(batch, row_group_size=max(1, batch.num_rows))
            survivors += int((codes == 0).sum())
            for i in range(len(stages)):
                dropped[i] += int((codes == i + 1).sum())
    finally:
        if writer is not None:
            writer.close()
    facts.text_bytes = texts.bytes_read
    facts.bytes = texts.bytes_read
    return {
        "documents": survivors,
        "dropped": {s.name: n for s, n in zip(stages, dropped, strict=True)},
    }


def _previous(step: PassStep) -> str:
    return step.earlier[-1].name if step.earlier else "read"


def _annotate_group(
    stages: tuple[Stage, ...],
    protos: list[Measured],
    described: list[dict[str, Any]],
    texts: ShardTexts,
    group: int,
    before: pa.Table,
    old: Old | None,
    facts: Facts,
) -> tuple[dict[str, pa.Array], np.ndarray]:
    """Columns of one row group, and codes: 0 survives, i + 1 dropped by stage i, 255 not here."""
    rows = before.num_rows
    size = before.column("bytes").fill_null(0).to_numpy().astype(np.int64)
    entered = before.column("bytes").is_valid().to_numpy()
    alive = entered.copy()
    by = np.where(entered, 0, 255).astype(np.uint8)
    columns: dict[str, pa.Array] = {"id": before.column("id").combine_chunks()}
    late: dict[str, pa.Array] = {}
    pending: list[Edits] = []
    for i, (stage, proto, about) in enumerate(zip(stages, protos, described, strict=True)):
        known = old.column(about, group, rows) if old else None
        if known is None:
            known = _blank(proto, rows)
        need = alive & ~known.measured
        if need.any():
            start = time.perf_counter()
            work = _measure_rows(stage, texts, group, np.flatnonzero(need), pending, known, proto)
            facts.book(stage.name, time.perf_counter() - start, work)
        judged = np.zeros(rows, np.uint8)
        scores = {n: v[alive] for n, v in known.scores.items()}
        judged[alive] = checked_verdict(stage, scores, int(alive.sum()))
        late[f"{stage.name}.code"] = pa.array(judged, mask=~alive)
        for name, values in known.scores.items():
            late[f"{stage.name}.{name}"] = score_column(values, alive)
        if known.edits is not None:
            edits = _only(known.edits, alive)
            pending.append(edits)
            late[f"{stage.name}.edits"] = edits_column(edits, rows, alive)
            size = size.copy()  # Arrow took the one before as it is, without a copy
            np.add.at(size, edits.rows, edits.inserted() - edits.lengths)
            late[f"{stage.name}.bytes"] = pa.array(size, mask=~alive)
        notes: list[str | None] = [None] * rows
        for row, note in known.notes.items():
            notes[row] = note if alive[row] else None
        late[f"{stage.name}.evidence"] = pa.array(notes, pa.string())
        cut = alive & (judged != 0)
        by[cut] = i + 1
        alive &= ~cut
    columns["bytes"] = pa.array(size, mask=~alive)
    columns["dropped_by"] = pa.array(by, mask=~entered)
    return columns | late, by


def _blank(proto: Measured, rows: int) -> Column:
    scores = {n: np.zeros((rows, *v.shape[1:]), v.dtype) for n, v in proto.scores.items()}
    return Column(scores, np.zeros(rows, bool), proto.edits)


def _only(edits: Edits, alive: np.ndarray) -> Edits:
    """The edits of rows that are alive."""
    return pick(edits, alive[edits.rows])


def _measure_rows(
    stage: Stage,
    texts: ShardTexts,
    group: int,
    rows: np.ndarray,
    pending: list[Edits],
    known: Column,
    proto: Measured,
) -> int:
    """Measure some rows of a group and merge what was seen into `known`; returns text bytes."""
    batch = texts.batch(group, rows, pending, with_text=getattr(stage, "needs_text", True))
    seen = checked_measure(stage, batch)
    _check_same_kind(stage, seen, proto)
    for name, values in seen.scores.items():
        known.scores[name][rows] = values
    if seen.edits is not None and known.edits is not None:
        known.edits = merge(known.edits, seen.edits, rows)
    if seen.evidence is not None:
        at = rows[seen.evidence.rows]
        known.notes.update(zip(at.tolist(), seen.evidence.notes, strict=True))
    known.measured[rows] = True
    return batch.column("text").nbytes


def _check_same_kind(stage: Stage, seen: Measured, proto: Measured) -> None:
    found = {n: (v.dtype, v.shape[1:]) for n, v in seen.scores.items()}
    expected = {n: (v.dtype, v.shape[1:]) for n, v in proto.scores.items()}
    if found != expected or (seen.edits is None) != (proto.edits is None):
        msg = (
            f"{stage.name}: scores of a full batch {found} differ in kind from those of an empty "
            f"one {expected}; a stage gives the same names, types and edits for any batch"
        )
        raise StopError(msg)
