"""`gristmill budget`: the budget of a plan, or of stated tokens, as tables or for scripts."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..documents.errors import UsageError
from ..mixing import Plan
from ..mixing.budget import Budget, Constants, budget, plan_stages, stated_stages
from .display import UNKNOWN, run_and_plan, table
from .trace import plan_folder


def budget_of(plan: Path | None, tokens: Sequence[str], constants: Constants) -> Budget:
    """The budget of a plan folder, of a run's current plan, or of stated tokens."""
    if (plan is None) == (not tokens):
        found = "both" if tokens else "neither"
        msg = f"budget: found {found} of PLAN and --tokens; expected one of them"
        raise UsageError(msg)
    if plan is None:
        return budget(stated_stages(tokens, constants), constants)
    run, name = run_and_plan(plan)
    return budget(plan_stages(Plan.open(plan_folder(run, name)), constants), constants)


def to_dict(found: Budget) -> dict[str, Any]:
    """The budget for scripts."""
    return dataclasses.asdict(found)


def render(found: Budget) -> str:
    """Stages, totals and constants as three tables."""
    stages = [dataclasses.asdict(s) for s in found.stages]
    parts = [
        table(
            list(stages[0]),
            [
                [s["stage"], *(_number(s[k], exact=not k.endswith("flop")) for k in list(s)[1:])]
                for s in stages
            ],
        ),
        table(
            ["quantity", "value", "unit", "how"],
            [[r["quantity"], _bounds(r), r["unit"], r["how"]] for r in found.totals],
        ),
        table(
            ["constant", "value", "unit", "basis", "source"],
            [
                [r["constant"], _bounds(r), r["unit"], r["basis"], _source(r)]
                for r in found.constants
            ],
        ),
    ]
    return "\n\n".join(parts)


def _number(value: float | None, *, exact: bool = False) -> str:
    if value is None:
        return UNKNOWN
    return f"{value:,}" if exact else f"{value:.4g}"


def _bounds(row: dict[str, Any]) -> str:
    low, high = _number(row["low"]), _number(row["high"])
    return low if low == high else f"{low}..{high}"


def _source(row: dict[str, Any]) -> str:
    return row["source"] if row["date"] is None else f"{row['source']}, {row['date']}"
