"""Status: what is done and what is left of each step, from sidecars alone.

It reads no data file and works while a run is going on, or after it was cut off. What failed stands
in `failed.json`, which the driver writes and the next command that goes well removes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..documents.errors import GristmillError
from .books import speed_rows
from .display import UNKNOWN, table
from .run import FAILED
from .tasks import steps_of

if TYPE_CHECKING:
    from .run import Run
    from .steps import Step


def status(run: Run) -> dict[str, Any]:
    """Per step: keys done and left, documents, seconds, MB/s, peak memory; and what failed.

    A number that cannot be known yet (the partitions of a round before its rows are there) is None.
    """
    steps: list[dict[str, Any]] = []
    stages: list[dict[str, Any]] = []
    for step in steps_of(run):
        done, left = _keys(run, step)
        facts = [run.store.run_facts(step.outputs(run, key)[0]) for key in done]
        rows = speed_rows(step.name, [f for f in facts if f])
        whole = rows[0] if rows else None
        steps.append(
            {
                "step": step.name,
                "done": len(done),
                "left": None if left is None else len(left),
                "documents": _documents(run, step, done),
                "seconds": whole[3] if whole else None,
                "mb_per_second": _rate(whole),
                "text_bytes_read": whole[6] if whole else None,
                "peak_rss_bytes": whole[7] if whole else None,
            }
        )
        stages += [
            {"step": r[0], "stage": r[1], "seconds": r[3], "bytes": r[5], "mb_per_second": _rate(r)}
            for r in rows[1:]
        ]
    return {
        "run": str(run.store.root),
        "recipe": run.recipe.name,
        "shards": len(run.shards),
        "without": sorted(run.without),
        "duplicate_inputs": sum(s.duplicate_of is not None for s in run.manifest),
        "complete": all(s["left"] == 0 for s in steps),
        "failed": failures(run.store.root),
        "steps": steps,
        "stages": stages,
    }


def _keys(run: Run, step: Step) -> tuple[list[str], list[str] | None]:
    """Keys whose outputs are made from what is there now, and the others (None: unknown)."""
    try:
        keys = step.keys(run)
    except GristmillError:  # it depends on a step that is not done
        return [], None
    done = [key for key in keys if _there(run, step, key)]
    return done, [key for key in keys if key not in set(done)]


def _there(run: Run, step: Step, key: str) -> bool:
    try:
        inputs = step.inputs(run, key)
    except GristmillError:
        return False
    sides = [run.store.present(o) for o in step.outputs(run, key)]
    return all(s is not None and dict(s.inputs) == dict(inputs) for s in sides)


def _documents(run: Run, step: Step, done: list[str]) -> int | None:
    """Documents that came out of a step, where its counts say."""
    sides = [run.store.present(step.outputs(run, key)[0]) for key in done]
    known = [s.counts["documents"] for s in sides if s is not None and "documents" in s.counts]
    return sum(known) if known else None


def _rate(row: tuple[Any, ...] | None) -> float | None:
    """MB per second of one worker; None for what took no time or no bytes."""
    if row is None or not row[3] or not row[5]:
        return None
    return float(row[5] / row[3] / 1e6)


def failures(root: Path) -> list[dict[str, Any]]:
    """What failed in the last command: step, key, attempts, error."""
    try:
        found = json.loads((root / FAILED).read_bytes())
    except (OSError, ValueError):
        return []
    return found if isinstance(found, list) else []


def render(found: dict[str, Any]) -> str:
    """The status for people."""
    state = "complete" if found["complete"] else "not complete"
    lines = [f"{found['run']}: recipe {found['recipe']}, {found['shards']} shards, {state}"]
    if found["without"]:
        lines.append(f"without: {', '.join(found['without'])}")
    if found["duplicate_inputs"]:
        lines.append(f"repeated inputs, booked and not read: {found['duplicate_inputs']}")
    lines += [
        f"failed: {f['key']} at {f['step']}, {f['attempts']} attempts: {f['error']}"
        for f in found["failed"]
    ]
    columns = ["step", "done", "left", "documents", "seconds", "MB/s", "peak MB"]
    rows = [
        [s["step"], s["done"], s["left"], s["documents"] if s["documents"] is not None else "",
         _or_blank(s["seconds"]), _or_blank(s["mb_per_second"]), _mega(s["peak_rss_bytes"])]
        for s in found["steps"]
    ]  # fmt: skip
    lines += ["", table(columns, rows)]
    if found["stages"]:
        stage_rows = [
            [s["step"], s["stage"], s["seconds"], s["bytes"] / 1e6, _or_blank(s["mb_per_second"])]
            for s in found["stages"]
        ]
        lines += ["", table(["step", "stage", "seconds", "MB", "MB/s"], stage_rows)]
    return "\n".join(lines)


def _or_blank(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}"


def _mega(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value / 1e6:,.0f}"
