"""What the ledger says of plans: the cube, its sums by source, and what a trainer was served.

The ledger holds the plan of the run's recipe, and each plan for which a trainer's position was
recorded (`gristmill mix account PLAN --position N --record`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..documents.errors import StopError
from ..documents.fingerprint import canonical, digest
from ..mixing.account import DIMENSIONS, account, rolled, schema
from ..mixing.plan import Plan

if TYPE_CHECKING:
    from .run import Run

FORMAT = 1
SERVED = "served.json"  # beside a plan: the position at which a trainer stands


def current_plan(run: Run) -> Plan | None:
    """The compiled plan of the run's recipe, opened; None when the recipe states no mixture."""
    if not run.recipe.mixture:
        return None
    run.store.require("plans/current.json")
    pointer = json.loads(run.store.path("plans/current.json").read_bytes())
    return Plan.open(run.store.path(f"plans/{pointer['plan']}"))


def recorded(run: Run) -> dict[str, int]:
    """Positions that trainers stand at, by plan."""
    found = {}
    for path in sorted(run.store.path("plans").glob(f"*/{SERVED}")):
        try:
            content = json.loads(path.read_bytes())
            found[path.parent.name] = int(content["position"])
        except (ValueError, KeyError, TypeError) as error:
            msg = f"{path}: torn ({error}); record the position again: gristmill mix account"
            raise StopError(msg) from error
    return found


def record(run: Run, plan: Plan, position: int) -> None:
    """Note where a trainer stands in a plan."""
    name = f"plans/{plan.id}/{SERVED}"
    inputs = run.store.digests(f"plans/{plan.id}/plan.json")
    with run.store.writing(name) as temporary:
        temporary.write_bytes(canonical({"format": FORMAT, "position": position}))
        run.store.commit(temporary, name, inputs=inputs, fingerprint=digest(["served", FORMAT]))


def plan_tables(run: Run) -> dict[str, pa.Table | list[Any]]:
    """Rows of `cube`, `plan`, `served` and `plan_stages`."""
    current = current_plan(run)
    plans = {current.id: current} if current is not None else {}
    served = recorded(run)
    plans |= {name: Plan.open(run.store.path(f"plans/{name}")) for name in sorted(served)}
    cubes, sums, stages = [], [], []
    for plan in plans.values():
        cube = account(plan, by=list(DIMENSIONS))
        cubes.append(_named(cube, plan))
        sums.append(_named(rolled(cube, ["source"]), plan))
        stages += [
            (plan.id, i, s.name, plan.served(i), s.sequence_length, s.asked_tokens)
            for i, s in enumerate(plan.stages)
        ]
    parts = []
    for name, position in served.items():
        table = _named(account(plans[name], end=position), plans[name])
        where = pa.array([position] * table.num_rows, pa.int64())
        parts.append(table.append_column("position", where))
    return {
        "cube": _joined(cubes, list(DIMENSIONS)),
        "plan": _joined(sums, ["source"]),
        "served": _joined(parts, ["source"], ["position"]),
        "plan_stages": stages,
    }


def _named(table: pa.Table, plan: Plan) -> pa.Table:
    """An account with the plan's id and each stage's place."""
    place = {stage.name: i for i, stage in enumerate(plan.stages)}
    at = [place[name] for name in table.column("stage").to_pylist()]
    table = table.append_column("stage_position", pa.array(at, pa.int32()))
    return table.append_column("plan", pa.array([plan.id] * table.num_rows, pa.string()))


def _joined(tables: list[pa.Table], by: list[str], more: list[str] | None = None) -> pa.Table:
    if tables:
        return pa.concat_tables(tables)
    extra = [("stage_position", pa.int32()), ("plan", pa.string())]
    extra += [(name, pa.int64()) for name in more or []]
    return pa.schema([*schema(by), *(pa.field(*pair) for pair in extra)]).empty_table()
