"""Apply: an ordinary stage that looks up a global stage's decisions by shard and id."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..documents.exchange import DECISIONS, CuttingStage
from ..documents.identity import shard_hash
from ..documents.stage import Evidence, Measured

if TYPE_CHECKING:
    from .recipe import GlobalUse
    from .run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """Codes and evidence from a decision file; documents that it does not name are kept."""

    revision: ClassVar[int] = 1
    verdict_fields: ClassVar[frozenset[str]] = frozenset()
    name: str
    reasons: tuple[str, ...]
    decisions: str  # digest of the decisions on the shard
    applied: int  # revision of the global stage, which may say itself what is cut
    # Read when a document is looked up: later passes ask an earlier one's name and edits alone.
    found: Callable[[], pa.Table] = field(metadata={"identity": False}, repr=False, compare=False)
    stage: Any = field(metadata={"identity": False}, repr=False, compare=False)

    @classmethod
    def load(cls, run: Run, use: GlobalUse, shard: str) -> Lookup:
        """The decisions on one shard's documents, sorted by id."""
        (decided,) = run.decided(use, shard).values()
        return cls(
            name=use.stage.name,
            reasons=use.stage.reasons,
            decisions=decided,
            applied=use.stage.revision,
            stage=use.stage,
            found=cache(partial(_read, run.store.path(run.decisions(use, shard)), shard)),
        )

    @property
    def needs_text(self) -> bool:
        """Whether anything is cut."""
        return isinstance(self.stage, CuttingStage)

    def measure(self, batch: pa.RecordBatch) -> Measured:
        """`decision`: the code; `cluster_size`: documents in the cluster, 1 when alone."""
        found = self.found() if batch.num_rows else _none(self.stage)
        index = pc.index_in(batch.column("id"), value_set=found.column("id").combine_chunks())
        at = index.fill_null(-1).to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(at >= 0)
        code = np.zeros(batch.num_rows, np.uint8)
        size = np.ones(batch.num_rows, np.uint32)
        taken = found.take(pa.array(at[rows]))
        code[rows] = taken.column("code").to_numpy()
        size[rows] = taken.column("cluster_size").to_numpy()
        scores = {"decision": code, "cluster_size": size}
        notes = [_note(r) for r in taken.select(NOTED).to_pylist()]
        edits = None
        if isinstance(self.stage, CuttingStage):
            more = self.stage.cut(batch, taken, rows)
            scores |= more.scores
            edits = more.edits
            for i, more_told in zip(*_places(rows, more.evidence), strict=True):
                notes[i] |= json.loads(more_told)
        told = [json.dumps(note, sort_keys=True) for note in notes]
        return Measured(scores, edits, Evidence(rows.astype(np.int64), told))

    def verdict(self, scores: Mapping[str, np.ndarray]) -> np.ndarray:
        """The decision."""
        return scores["decision"]


def decided_columns(stage: Any) -> pa.Schema:
    """What the last round of a global stage says of a document."""
    return stage.decided if isinstance(stage, CuttingStage) else DECISIONS


def _read(path: Path, shard: str) -> pa.Table:
    own = pc.field("shard") == pa.scalar(shard_hash(shard), pa.uint64())
    return pq.read_table(path, filters=own).sort_by("id")


def _none(stage: Any) -> pa.Table:
    return decided_columns(stage).append(pa.field("witness_in", pa.string())).empty_table()


NOTED = ["cluster_size", "cluster", "witness_id", "witness_in", "shared", "either"]


def _places(rows: np.ndarray, evidence: Evidence | None) -> tuple[list[int], list[str]]:
    if evidence is None:
        return [], []
    return np.searchsorted(rows, evidence.rows).tolist(), evidence.notes


def _note(row: dict[str, Any]) -> dict[str, Any]:
    note: dict[str, Any] = {"cluster_size": row["cluster_size"]}
    for key in ("cluster", "witness_id"):
        value = row[key]
        if isinstance(value, bytes):
            note[key] = value.hex()
    if row["witness_id"] is not None:
        note |= {k: row[k] for k in ("witness_in", "shared", "either")}
    return note
