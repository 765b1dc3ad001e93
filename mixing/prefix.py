"""How far two plans serve the same: compared as compiled, without walking over positions."""

from __future__ import annotations

import numpy as np

from .plan import Plan, Stage


def same_until(one: Plan, other: Plan) -> int:
    """Positions from the start that both plans certainly serve alike, byte for byte.

    Whole stages, then whole blocks of the first stage that differs. What it counts as the same is
    the same (`Plan.prefix_digest`); positions after it may be the same by chance.
    """
    same = [one.content[key] == other.content[key] for key in ("seed", "block", "tokenizer")]
    same += [one.content[key] == other.content[key] for key in ("shards", "order", "pad_id")]
    if not all(same) or _digest(one, "documents") != _digest(other, "documents"):
        return 0
    # amendments count from their first position on
    end = min(_first_change(one), _first_change(other))
    if (one.skips, one.masks.tolist()) == (other.skips, other.masks.tolist()):
        end = min(one.positions, other.positions)
    total = 0
    for k, (a, b) in enumerate(zip(one.stages, other.stages, strict=False)):
        if not _same_lanes(one, a, other, b):
            break
        tables = [np.asarray(plan.ledgers[k]) for plan in (one, other)]
        blocks = min(len(table) for table in tables) - 1
        differs = np.flatnonzero((tables[0][: blocks + 1] != tables[1][: blocks + 1]).any(axis=1))
        whole = blocks if not differs.size else int(differs[0]) - 1
        total = a.first + min(whole * one.block, a.windows, b.windows)
        if a.windows != b.windows or total < a.first + a.windows:
            # a block that is cut short in one of them is permuted otherwise
            total = a.first + min(whole, a.windows // one.block, b.windows // one.block) * one.block
            break
    return min(total, end)


def _first_change(plan: Plan) -> int:
    starts = [low for low, _ in plan.skips] + plan.masks[:, 1].tolist()
    return min(starts, default=plan.positions)


def _same_lanes(one: Plan, a: Stage, other: Plan, b: Stage) -> bool:
    """Whether two stages read the same windows in the same order, as far as ledgers agree."""
    told = [(s.name, s.first, s.sequence_length, s.packing, s.mask, s.before) for s in (a, b)]
    if told[0] != told[1] or a.global_batch != b.global_batch or len(a.lanes) != len(b.lanes):
        return False
    return all(
        one.lanes[i] == other.lanes[j]
        and all(
            _digest(one, f"lane-{i}.{kind}") == _digest(other, f"lane-{j}.{kind}")
            for kind in ("windows", "pieces")
        )
        for i, j in zip(a.lanes, b.lanes, strict=True)
    )


def _digest(plan: Plan, array: str) -> str:
    return str(plan.content["arrays"][array]["digest"])
