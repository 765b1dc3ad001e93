"""Trace: from a training step back to its documents and their raw records."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..documents.errors import UsageError, did_you_mean
from ..documents.fingerprint import digest
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
            "lengths": sorted({opened.lanes[k].sequence_length for k in stage.lanes}),
            "packing": stage.packing,
            "global_batch": stage.global_batch,
            "positions": [stage.first, stage.first + stage.windows],
            "steps": [stage.first_step, stage.first_step + stage.windows // stage.global_batch],
            "tokens": stage.windows * stage.sequence_length,
        }
        for stage in opened.stages
    ]
    return {"plan": opened.id, "stages": stages, "account": account(opened).to_pylist()}


def amend(
    run: Run, plan: str, position: int, skips: Sequence[str], remove: Path | None
) -> dict[str, Any]:
    """Amend a plan; where the new one stands, and the steps that read removed documents before."""
    from ..mixing import Plan
    from ..mixing.amend import amend as amend_plan
    from ..mixing.feed import REMOVED
    from ..mixing.plan import AMENDED
    from .remove import read_lists

    opened = Plan.open(plan_folder(run, plan), verify=True)
    ids = sorted(read_lists(remove, None, None).ids) if remove else []
    if (opened.folder / REMOVED).is_file():
        msg = f"{opened.folder}: documents were removed from it; it has tokens of its own"
        raise UsageError(f"{msg} and cannot be amended. Amend first, then `gristmill remove`")
    with run.store.scratch("plans/amending") as out:
        made = amend_plan(
            opened, position=position, skips=[_range(text) for text in skips], remove=ids, out=out
        )
        inputs = run.store.digests(f"plans/{opened.id}/plan.json")
        for file in sorted(p for p in (out / made.plan).iterdir() if p.is_file()):
            name = f"plans/{made.plan}/{file.name}"
            mark = digest(["amendment", AMENDED])
            run.store.adopt(file, name, inputs=inputs, fingerprint=mark)
    return {
        "plan": made.plan,
        "folder": str(run.store.path(f"plans/{made.plan}")),
        "masked_documents": made.masked,
        "not_in_plan": made.absent,
        "steps_that_read_removed_documents": {
            name: sorted({seen.step for seen in reads}) for name, reads in made.served.items()
        },
    }


def _range(text: str) -> tuple[int, int]:
    low, dots, high = text.partition("..")
    if not (dots and low.isdecimal() and high.isdecimal()):
        msg = f"--skip {text}: expected LOW..HIGH, positions from LOW to before HIGH"
        raise UsageError(msg)
    return int(low), int(high)
