"""`gristmill mix plan` and `mix account`: further plans over a run's tokens, and their books."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..documents.errors import UsageError
from ..ledger.funnel import Answer
from ..mixing.account import account
from ..mixing.plan import Plan
from ..mixing.prefix import same_until
from ..mixing.spec import MixSpec
from .books import build_ledger
from .catalog import check_attributes
from .corpus import MixStep, compile_into, plan_fingerprint
from .loading import load_yaml
from .planned import current_plan, record

if TYPE_CHECKING:
    from .run import Run

_SHOWN = ("windows", "real_tokens", "padding_tokens", "loss_tokens", "unique_tokens", "epochs_max")


def further_plan(run: Run, mixture: Path | None) -> dict[str, Any]:
    """Compile a mixture over the tokens that a run has; what the plan is and where it stands.

    `mixture`: a file with a mixture, or a recipe that states one; None: the run's own. The run's
    current plan stays what its recipe says.
    """
    given: Any = run.recipe.mixture
    if mixture is not None:
        if not mixture.is_file():
            raise UsageError(f"--mixture {mixture}: no such file; expected a mixture, or a recipe")
        given = load_yaml(mixture.read_text(encoding="utf-8"), mixture.name)
        given = given.get("mixture", given) if isinstance(given, Mapping) else given
    if not given:
        raise UsageError(f"{run.store.root}: its recipe states no mixture; give one by --mixture")
    spec = MixSpec.parse(given, where="mixture")
    check_attributes(run.recipe, spec)
    step = MixStep()
    inputs = step.inputs_of(run, spec)
    name, files = compile_into(run, spec, inputs, plan_fingerprint(given))
    plan, current = Plan.open(run.store.path(f"plans/{name}")), _current(run)
    return {
        "plan": name,
        "folder": str(plan.folder),
        "files": len(files),
        "positions": plan.positions,
        "steps": plan.steps(),
        "tokens": sum(s.windows * s.sequence_length for s in plan.stages),
        "current_plan": current.id if current else None,
        "same_as_current_until": same_until(current, plan) if current else None,
    }


def _current(run: Run) -> Plan | None:
    present = run.store.present("plans/current.json") is not None
    return current_plan(run) if present else None


def account_of(
    run: Run, name: str, by: Sequence[str], position: int | None, *, keep: bool
) -> Answer:
    """Planned and, up to `position`, served, by stage, slice and dimensions; `keep` records it."""
    plan = Plan.open(run.store.path(f"plans/{name}"))
    if keep and position is None:
        raise UsageError("--record: needs --position, the first that has not been trained on")
    planned = account(plan, by=by).to_pylist()
    key = ("stage", "slice", *by, "sequence_length")
    if position is None:
        columns = [*key, *_SHOWN, "masked_tokens", "special_tokens", "epochs_mean"]
        return Answer(columns, [tuple(row[c] for c in columns) for row in planned])
    served = {tuple(r[c] for c in key): r for r in account(plan, by=by, end=position).to_pylist()}
    if keep and position is not None:
        record(run, plan, position)
        build_ledger(run)
    columns = [f"{side}_{name}" for name in _SHOWN for side in ("planned", "served")]
    rows = [
        (
            *(row[c] for c in key),
            *(r[m] for m in _SHOWN for r in (row, served[tuple(row[c] for c in key)])),
        )
        for row in planned
    ]
    return Answer([*key, *columns], rows)
