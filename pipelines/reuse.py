"""What older attributes of a shard still tell: scores that were measured under the same chain."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..documents.edits import Edits, pick
from ..documents.errors import DamagedError
from ..documents.schema import FORMAT
from .columns import edits_from, schema_meta, score_values

if TYPE_CHECKING:
    from .passes import PassStep
    from .run import Run


@dataclass(slots=True)
class Column:
    """What is known of one stage in one row group."""

    scores: dict[str, np.ndarray]
    measured: np.ndarray  # bool[rows]
    edits: Edits | None
    notes: dict[int, str] = field(default_factory=dict)


@dataclass(slots=True)
class Old:
    """An older version of the same attributes: its scores count where the chain is the same."""

    file: pq.ParquetFile
    stages: dict[str, dict[str, Any]]

    @classmethod
    def open(cls, run: Run, step: PassStep, shard: str) -> Old | None:
        """The file as it stands, if it is whole and was made from the same documents."""
        (name,) = step.outputs(run, shard)
        side = run.store.present(name)
        # Documents are compared here; edits of earlier stages and passes are part of each chain.
        documents = f"documents/{shard}.parquet"
        if side is None or side.inputs.get(documents) != run.store.require(documents).digest:
            return None
        try:
            run.store.check_bytes(name)  # scores go into a new file: a flipped bit must not
            file = pq.ParquetFile(run.store.path(name))
            meta = schema_meta(file.schema_arrow)
        except (OSError, pa.ArrowException, ValueError, DamagedError):
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


def merge(old: Edits, new: Edits, rows: np.ndarray) -> Edits:
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
