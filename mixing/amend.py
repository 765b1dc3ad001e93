"""An amended plan: the same positions, some passed over, some documents left out from here on.

Nothing is renumbered. After a loss spike the batches that made it are skipped: their positions
stay, and every loader steps over them. A document that must go is masked at every position from
`position` on: its tokens are padding without targets. So every earlier position, and every other
token of a later one, is byte for byte what it was, states of the old plan carry over
(`carry_state`), and the accounts say what was served and what was left out.

New or other later stages go by another mixture: `gristmill mix plan --mixture` (which says up to
where the plans are the same) or `gristmill run` with the changed recipe.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..documents.errors import UsageError
from .compiler import write_plan
from .plan import AMENDED, Plan
from .trace import Seen, steps_of_document


class Amendment(NamedTuple):
    """What an amendment made: the new plan's id; documents left out; where they had been read."""

    plan: str
    masked: int  # documents of the plan that are masked from the position on
    absent: list[str]  # ids that no document of the plan has
    served: dict[str, list[Seen]]  # id -> reads before the position, which nothing undoes


def amend(
    plan: Plan,
    *,
    position: int,
    skips: Sequence[tuple[int, int]] = (),
    remove: Sequence[str] = (),
    out: Path,
) -> Amendment:
    """Write the amended plan below `out`; `position` is the first that has not been trained on.

    `skips` are ranges [low, high) of whole steps from `position` on, `remove` document ids (32 hex
    digits). UsageError names what does not fit; the plan itself never changes.
    """
    if not 0 <= position <= plan.positions:
        raise UsageError(f"position {position}: expected 0 to {plan.positions}")
    if not skips and not remove:
        raise UsageError("nothing to amend: state a range to skip or documents to remove")
    for skip in skips:
        _check_skip(plan, position, skip)
    rows, absent = _rows(plan, remove)
    content: dict[str, Any] = {
        **plan.content,
        "format": max(AMENDED, plan.content["format"]),
        "amends": plan.id,
        "skips": _joined([*plan.skips, *skips]),
    }
    known = set(plan.masks[:, 0].tolist())
    fresh = [[row, position] for row in rows if row not in known]
    masks = sorted([*plan.masks.tolist(), *fresh])
    arrays = {
        name: np.load(plan.folder / f"{name}.npy", mmap_mode="r") for name in content["arrays"]
    }
    arrays["masks"] = np.array(masks, dtype=np.int64).reshape(-1, 2)
    served: dict[str, list[Seen]] = {}
    for row in rows:
        shard, document, _ = plan.documents[row].tolist()
        reads = steps_of_document(plan, plan.shards[shard], document)
        before = [seen for seen in reads if seen.position < position]
        if before:
            served.setdefault(plan.ids[row].tobytes().hex(), []).extend(before)
    return Amendment(write_plan(out, content, arrays), len(fresh), absent, served)


def _check_skip(plan: Plan, position: int, skip: tuple[int, int]) -> None:
    low, high = skip
    if not position <= low < high <= plan.positions:
        raise UsageError(
            f"skip {low}..{high}: expected a range of positions within {position}..{plan.positions}"
            "; what has been trained on cannot be skipped"
        )
    for edge in (low, high):
        if edge == plan.positions:
            continue
        stage = plan.stages[plan.stage_at(edge)]
        into = (edge - stage.first) % stage.global_batch
        if into:
            raise UsageError(
                f"skip {low}..{high}: {edge} lies within a step of stage {stage.name!r}; the "
                f"nearest edges of steps are {edge - into} and {edge - into + stage.global_batch}"
            )


def _joined(ranges: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Ascending ranges that do not touch."""
    out: list[list[int]] = []
    for low, high in sorted(ranges):
        if out and low <= out[-1][1]:
            out[-1][1] = max(out[-1][1], high)
        else:
            out.append([low, high])
    return out


def _rows(plan: Plan, ids: Sequence[str]) -> tuple[list[int], list[str]]:
    """Rows of `documents` with one of the ids, and the ids that have none."""
    wanted: dict[bytes, str] = {}
    for name in ids:
        try:
            raw = bytes.fromhex(name)
        except ValueError:
            raw = b""
        if len(raw) != 16:
            raise UsageError(f"document {name!r}: expected an id of 32 hex digits")
        wanted[raw] = name
    heads = np.ascontiguousarray(plan.ids).view("<u8").reshape(-1, 2)[:, 0]
    near = np.isin(heads, np.array([int.from_bytes(r[:8], "little") for r in wanted], np.uint64))
    rows = [r for r in np.flatnonzero(near).tolist() if plan.ids[r].tobytes() in wanted]
    found = {plan.ids[row].tobytes() for row in rows}
    return rows, sorted(name for raw, name in wanted.items() if raw not in found)
