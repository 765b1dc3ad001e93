"""Apply: an ordinary stage that looks up a global stage's decisions by shard and id."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

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
    needs_text: ClassVar[bool] = False
    name: str
    reasons: tuple[str, ...]
    decisions: str  # digest of the decision file
    found: pa.Table = field(metadata={"identity": False}, repr=False, compare=False)

    @classmethod
    def load(cls, run: Run, use: GlobalUse, shard: str) -> Lookup:
        """The decisions on one shard's documents, sorted by id."""
        name = run.decisions(use, shard)
        table = pq.read_table(
            run.store.path(name),
            filters=pc.field("shard") == pa.scalar(shard_hash(shard), pa.uint64()),
        )
        return cls(
            name=use.stage.name,
            reasons=use.stage.reasons,
            decisions=run.store.require(name).digest,
            found=table.sort_by("id"),
        )

    def measure(self, batch: pa.RecordBatch) -> Measured:
        """`decision`: the code; `cluster_size`: documents in the cluster, 1 when alone."""
        index = pc.index_in(batch.column("id"), value_set=self.found.column("id").combine_chunks())
        at = index.fill_null(-1).to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(at >= 0)
        code = np.zeros(batch.num_rows, np.uint8)
        size = np.ones(batch.num_rows, np.uint32)
        notes: list[str] = []
        if len(rows):
            taken = self.found.take(pa.array(at[rows]))
            code[rows] = taken.column("code").to_numpy()
            size[rows] = taken.column("cluster_size").to_numpy()
            notes = [_note(r) for r in taken.to_pylist()]
        return Measured(
            {"decision": code, "cluster_size": size},
            evidence=Evidence(rows.astype(np.int64), notes),
        )

    def verdict(self, scores: Mapping[str, np.ndarray]) -> np.ndarray:
        """The decision."""
        return scores["decision"]


def _note(row: dict[str, object]) -> str:
    note: dict[str, object] = {"cluster_size": row["cluster_size"]}
    for key in ("cluster", "witness_id"):
        value = row[key]
        if isinstance(value, bytes):
            note[key] = value.hex()
    if row["witness_id"] is not None:
        note |= {k: row[k] for k in ("witness_in", "shared", "either")}
    return json.dumps(note, sort_keys=True)
