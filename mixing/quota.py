"""Weights to whole windows, exactly: integers /2**32, a ledger with no drift and no lost source.

`weights` become integers that sum to 2**32. The ledger says how many windows of each slice every
block holds. Rounding each block on its own loses rare sources (flooring `w * block` gave 7 of 40
sources nothing on a Dirichlet mixture); largest remainders of the running total can take a window
back. So the counts are scheduled: the k-th window of a slice of weight w may be given in the block
where the running target first passes k-1 and must be given by the one where it reaches k. Earliest
deadline first meets all of them, because giving each slice its exact fraction of each block is a
fractional schedule and unit jobs always have a whole one then (Tijdeman, "The chairman assignment
problem", 1980, at a block's grain). Hence at every block edge |given - target| < 1 for every slice.

Cost: some 50 us per block of 64 slices; all in int64, no float.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from ..documents.errors import ContractError, UsageError

UNIT = 1 << 32


def integer_weights(weights: Mapping[str, int | float], windows: int, where: str) -> dict[str, int]:
    """Shares of `UNIT`, in the order of `weights`; each worth at least one of the stage's windows.

    A slice whose exact share is below one window is raised to one window and the others give in
    proportion. UsageError when there are more slices than windows.
    """
    if len(weights) > windows:
        msg = (
            f"{where}: {len(weights)} slices share {windows} windows, so some would get none. "
            f"Give the stage at least {len(weights)} windows (raise tokens, or lower "
            "sequence_length), or name fewer slices."
        )
        raise UsageError(msg)
    exact = {name: Fraction(str(w)) for name, w in weights.items()}
    least = -(-UNIT // windows)  # the smallest weight that is worth a whole window
    raised: set[str] = set()
    while True:
        free = [name for name in exact if name not in raised]
        room = UNIT - least * len(raised)
        total = sum((exact[name] for name in free), Fraction(0))
        low = {name for name in free if exact[name] * room < least * total}
        if not low or low == set(free):
            break
        raised |= low
    if not free or low:  # everybody is at the floor: windows == slices, or as good as that
        base, extra = divmod(UNIT, len(exact))
        return {name: base + (i < extra) for i, name in enumerate(exact)}
    target = {name: exact[name] * room / total for name in free}
    out = {name: least if name in raised else int(target[name]) for name in exact}
    left = UNIT - sum(out.values())
    by_remainder = sorted(free, key=lambda name: int(target[name]) - target[name])  # stable
    for name in by_remainder[:left]:
        out[name] += 1
    return out


def ledger(weights: list[int], windows: int, block: int) -> np.ndarray:
    """int64[blocks + 1, slices]: windows of each slice before each block edge; row 0 is zeros.

    `weights` sum to UNIT. Blocks have `block` windows, the last one what is left.
    """
    if sum(weights) != UNIT or min(weights) < 1:
        msg = f"weights {weights} must be positive and sum to 2**32"
        raise ContractError(msg)
    w = np.array(weights, dtype=np.int64)
    blocks = -(-windows // block)
    cum = np.zeros((blocks + 1, len(weights)), dtype=np.int64)
    whole = np.zeros_like(w)  # target = whole + part / UNIT
    part = np.zeros_like(w)
    given = np.zeros_like(w)
    for b in range(blocks):
        size = min(block, windows - b * block)
        part = part + w * size  # below 2**63: spec bounds blocks at 2**30 windows
        whole = whole + (part >> 32)
        part = part & (UNIT - 1)
        due = np.maximum(given, whole)
        free = (b * block + size) - int(due.sum())
        if free < 0:
            msg = f"block {b}: {-free} windows more are due than the block holds"
            raise ContractError(msg)
        if free:
            # the slices that may have one more, by the window at which they must have it
            may = np.flatnonzero((due == whole) & (part > 0))
            wait = (UNIT - part[may] + w[may] - 1) // w[may]
            due[may[np.argsort(wait, kind="stable")[:free]]] += 1
        given = due
        cum[b + 1] = given
    return cum
