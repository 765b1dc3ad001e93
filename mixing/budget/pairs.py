"""How many query-key pairs a plan's attention meets: what 6 N D leaves out.

Attention costs by the pair: a document of n tokens that sees itself alone has n (n + 1) / 2 of
them, so one window of 128 Ki tokens holds the tokens of 32 windows of 4 Ki, and the pairs of 1,024.
Counted exactly, in integers, from the pieces of the plan and how often each window is read.
"""

from __future__ import annotations

import numpy as np

from ..left_out import LeftOut
from ..plan import Plan
from ..usage import window_counts


def causal_pairs(lengths: np.ndarray, window: int | None = None) -> np.ndarray:
    """Pairs of causal attention inside runs of `lengths` tokens, each: int64, same shape.

    With `window` a query meets its own and the `window - 1` keys before it (sliding attention).
    """
    n = np.asarray(lengths, dtype=np.int64)
    full = n * (n + 1) // 2
    if window is None:
        return full
    return np.where(n <= window, full, window * (window + 1) // 2 + (n - window) * window)


def attention_pairs(plan: Plan, window: int | None = None) -> list[int]:
    """Pairs of each stage of a plan, in order.

    Where a stage masks documents the pairs are those inside its pieces; padding is masked. Where it
    does not, every slot of a window meets all before it, padding too. A skipped window costs
    nothing, a masked document what it did: its place is computed as padding.
    """
    totals = []
    left = LeftOut(plan, plan.positions)
    for k, stage in enumerate(plan.stages):
        total = 0
        for i, lane in enumerate(stage.lanes):
            first = stage.before[i]
            count = int(plan.ledgers[k][-1, i]) * plan.per_position(k, lane)
            read = window_counts(plan.seed, plan.lanes[lane], first, first + count)
            read -= left.skipped(k, lane)
            if stage.mask == "document":
                each = causal_pairs(np.asarray(plan.pieces[lane][:, 2]), window)
                starts = np.asarray(plan.windows[lane][:-1]).astype(np.int64)
                pairs = np.add.reduceat(each, starts)
            else:
                whole = causal_pairs(np.array([plan.lanes[lane].sequence_length]), window)
                pairs = np.repeat(whole, len(read))
            total += sum(int(p) * int(r) for p, r in zip(pairs, read, strict=True) if r)
        totals.append(total)
    return totals
