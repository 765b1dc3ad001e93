"""Trace: from a training step back to its documents and their raw records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..documents.errors import UsageError, did_you_mean
from .find import corpus_rows

if TYPE_CHECKING:
    from .run import Run


def current_plan(run: Run) -> Path | None:
    """Folder of the plan that the recipe's mixture compiled to; None when there is none."""
    pointer = run.store.path("plans/current.json")
    if not pointer.is_file():
        return None
    return run.store.path(f"plans/{json.loads(pointer.read_bytes())['plan']}")


def plan_folder(run: Run, plan: str | None) -> Path:
    """Folder of a plan by id, or of the current one; UsageError when there is none."""
    found = current_plan(run) if plan is None else run.store.path(f"plans/{plan}")
    if found is None:
        msg = f"{run.store.root}: no plan; state a `mixture` in the recipe and run it"
        raise UsageError(msg)
    if not found.is_dir():
        known = [p.name for p in run.store.path("plans").glob("*") if p.is_dir()]
        msg = f"{run.store.root}: no plan {plan!r}{did_you_mean(str(plan), known)}"
        raise UsageError(msg)
    return found


def trace(run: Run, plan: str | None, step: int) -> list[dict[str, Any]]:
    """The documents of a training step, in the order of its positions, with their raw records."""
    from ..mixing import Plan
    from ..mixing import trace as trace_plan

    rows = [t._asdict() for t in trace_plan(Plan.open(plan_folder(run, plan)), step)]
    for shard in {r["shard"] for r in rows}:
        mine = [r for r in rows if r["shard"] == shard]
        ordinals = [r["doc"] for r in mine]
        final = corpus_rows(run, shard, ordinals)
        documents = pq.read_table(
            run.store.path(f"documents/{shard}.parquet"), columns=["id", "locator"]
        ).take(pa.array(final.column("row").to_pylist(), pa.int64()))
        for row, told, raw in zip(mine, final.to_pylist(), documents.to_pylist(), strict=True):
            row |= {k: told[k] for k in ("url", "source", "language")}
            row["id"] = raw["id"].hex()
            row["raw_record"] = run.shards[shard].place(raw["locator"])
    return rows


def show(run: Run, plan: str | None) -> dict[str, Any]:
    """Stages of a plan with their positions, steps and tokens, and the account of each slice."""
    from ..mixing import Plan
    from ..mixing.account import account

    opened = Plan.open(plan_folder(run, plan))
    stages = [
        {
            "stage": stage.name,
            "sequence_length": stage.sequence_length,
            "packing": stage.packing,
            "global_batch": stage.global_batch,
            "positions": [stage.first, stage.first + stage.windows],
            "steps": [stage.first_step, stage.first_step + stage.windows // stage.global_batch],
            "tokens": stage.windows * stage.sequence_length,
        }
        for stage in opened.stages
    ]
    return {"plan": opened.id, "stages": stages, "account": account(opened).to_pylist()}
