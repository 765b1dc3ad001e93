"""Passes: the recipe cut at each global stage. A pass runs shard by shard, streaming.

    read | base: the source's stages, shared ..., survey of g1 | g1: apply g1, shared ... | g2 ...

One function annotates one shard: `annotate`. It reuses the scores of an older version of the same
file for every row that they cover, so that a changed threshold reads no text, except of rows that
an earlier cut had kept from being measured.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..documents.edits import Edits, pick
from ..documents.errors import StopError
from ..documents.fingerprint import digest, measure_fingerprint, verdict_fingerprint
from ..documents.schema import DOCUMENTS, FORMAT
from ..documents.stage import Measured, Stage, checked_measure, checked_verdict
from .columns import edits_column, edits_from, schema_meta, score_column, score_values
from .steps import Counts, Facts, Step
from .texts import ShardTexts

if TYPE_CHECKING:
    from .recipe import GlobalUse
    from .run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One pass: what it applies first, its stages by source, what it surveys for last."""

    name: str
    applies: GlobalUse | None
    stages: Mapping[str, tuple[Stage, ...]]  # by source
    surveys: GlobalUse | None


@dataclass(slots=True)
class Column:
    """What is known of one stage in one row group."""

    scores: dict[str, np.ndarray]
    measured: np.ndarray  # bool[rows]
    edits: Edits | None
    notes: dict[int, str] = field(default_factory=dict)


class PassStep(Step):
    """`attributes/<pass>/<shard>.parquet`: codes, scores, edits and evidence of every stage."""

    def __init__(self, which: Pass, earlier: list[Pass]) -> None:
        self.which = which
        self.earlier = earlier
        self.name = f"pass-{which.name}"

    def outputs(self, run: Run, key: str) -> tuple[str, ...]:
        """The attributes of the shard."""
        return (attributes(self.which.name, key),)

    def inputs(self, run: Run, key: str) -> dict[str, str]:
        """Documents, all earlier attributes, and the decisions that this pass applies."""
        names = [f"documents/{key}.parquet", attributes("read", key)]
        names += [attributes(p.name, key) for p in self.earlier]
        if self.which.applies and run.covers(self.which.applies, key):
            names.append(run.decisions(self.which.applies, key))
        return run.store.digests(*names)

    def fingerprint(self, run: Run, key: str) -> str:
        """All fields of all stages, in order."""
        # Decisions count as an input; loading them for every shard to see what is done takes long.
        own = self.which.stages[run.shards[key].source]
        each = [(measure_fingerprint(s), verdict_fingerprint(s)) for s in own]
        applied = self.which.applies.stage.reasons if self.which.applies else ()
        return digest([FORMAT, run.versions("pyarrow", "resiliparse"), applied, each])

    def write(self, run: Run, key: str, paths: Mapping[str, Path], facts: Facts) -> Counts:
        """Annotate the shard."""
        (name,) = self.outputs(run, key)
        counts = annotate(run, self, key, paths[name], facts)
        return {name: counts}


def attributes(pass_name: str, shard: str) -> str:
    """Name of the attributes that a pass wrote for a shard."""
    return f"attributes/{pass_name}/{shard}.parquet"


def prototypes(stages: tuple[Stage, ...]) -> list[Measured]:
    """Each stage's scores for no rows: their names, types and shapes, whatever the shard holds."""
    empty = pa.RecordBatch.from_pylist([], schema=DOCUMENTS)
    return [checked_measure(stage, empty) for stage in stages]


def chains(run: Run, step: PassStep, shard: str) -> list[str]:
    """What each stage's scores depend on: itself, and all stages before it that edit the text."""
    editing: list[str] = []
    for earlier in step.earlier:
        stages = run.stages(earlier, shard)
        each = zip(stages, prototypes(stages), strict=True)
        editing += [measure_fingerprint(s) for s, p in each if p.edits is not None]
    found: list[str] = []
    stages = run.stages(step.which, shard)
    for stage, proto in zip(stages, prototypes(stages), strict=True):
        own = measure_fingerprint(stage)
        found.append(digest([own, editing, run.versions("pyarrow", "resiliparse")]))
        if proto.edits is not None:
            editing.append(own)
    return found


def _describe(run: Run, step: PassStep, shard: str) -> list[dict[str, Any]]:
    stages = run.stages(step.which, shard)
    protos = prototypes(stages)
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
        for s, p, chain in zip(stages, protos, chains(run, step, shard), strict=True)
    ]


def annotate(run: Run, step: PassStep, shard: str, out: Path, facts: Facts) -> dict[str, Any]:
    """Annotate every row group of a shard's documents; returns counts for the sidecar."""
    stages = run.stages(step.which, shard)
    protos = prototypes(stages)
    described = _describe(run, step, shard)
    texts = ShardTexts(run, shard, [p.name for p in step.earlier])
    before = pq.ParquetFile(run.store.path(attributes(_previous(step), shard)))
    old = _Old.open(run, step, shard)
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
    old: _Old | None,
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
        known.edits = _merge(known.edits, seen.edits, rows)
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


def _merge(old: Edits, new: Edits, rows: np.ndarray) -> Edits:
    """Edits of rows measured before and now, sorted by row; `new` counts within `rows`."""
    kept = pick(old, ~np.isin(old.rows, rows))
    all_rows = np.concatenate([kept.rows, rows[new.rows]])
    order = np.argsort(all_rows, kind="stable")

    def both(a: np.ndarray | None, b: np.ndarray | None) -> np.ndarray:
        first = np.zeros(len(kept.rows), np.uint8) if a is None else a
        second = np.zeros(len(new.rows), np.uint8) if b is None else b
        return np.concatenate([first, second])[order]

    return Edits(
        rows=all_rows[order],
        starts=both(kept.starts, new.starts),
        lengths=both(kept.lengths, new.lengths),
        reasons=both(kept.reasons, new.reasons),
        reason_names=new.reason_names,
        replacements=new.replacements,
        replacement=both(kept.replacement, new.replacement),
    )


@dataclass(slots=True)
class _Old:
    """An older version of the same attributes: its scores count where the chain is the same."""

    file: pq.ParquetFile
    stages: dict[str, dict[str, Any]]

    @classmethod
    def open(cls, run: Run, step: PassStep, shard: str) -> _Old | None:
        """The file as it stands, if it is whole and was made from the same documents."""
        (name,) = step.outputs(run, shard)
        side = run.store.present(name)
        # Documents are compared here; edits of earlier stages and passes are part of each chain.
        documents = f"documents/{shard}.parquet"
        if side is None or side.inputs.get(documents) != run.store.require(documents).digest:
            return None
        try:
            file = pq.ParquetFile(run.store.path(name))
            meta = schema_meta(file.schema_arrow)
        except (OSError, pa.ArrowException, ValueError):
            return None
        if meta.get("format") != FORMAT:
            return None
        return cls(file, {s["name"]: s for s in meta["stages"]})

    def column(self, about: dict[str, Any], group: int, rows: int) -> Column | None:
        """What was measured of a stage, if under the same chain."""
        mine = self.stages.get(about["name"])
        if mine is None or any(mine[k] != about[k] for k in ("chain", "scores", "edit_reasons")):
            return None
        prefix = f"{about['name']}."
        names = [n for n in self.file.schema_arrow.names if n.startswith(prefix)]
        table = self.file.read_row_group(group, columns=names).combine_chunks()
        if table.num_rows != rows:
            return None
        scores = {}
        measured = table.column(prefix + "code").is_valid().to_numpy()
        for name, (dtype, shape) in about["scores"].items():
            scores[name], _ = score_values(
                table.column(prefix + name).combine_chunks(), dtype, shape
            )
        edits = None
        if about["edit_reasons"] is not None:
            edits = edits_from(table.column(prefix + "edits").combine_chunks(), about)
        notes = table.column(prefix + "evidence").to_pylist()
        return Column(scores, measured, edits, {i: n for i, n in enumerate(notes) if n is not None})
