"""Weights to whole windows, exactly: integers /2**32, a ledger with no drift and no lost source.

`weights` become integers that sum to 2**32, at the start of a stage and at its end; between, a
share changes linearly. The ledger says how many windows of each slice every block holds. Rounding
each block on its own loses rare sources (flooring `w * block` starves twelve of the 61 sources in
tests/mixing/test_quota.py); largest remainders of the running total can take a window back. So the
counts are scheduled: the k-th window of a slice may be given in the block where its running target
(the exact integral of its share) first passes k-1 and must be given by the one where it reaches k.
Earliest deadline first meets all of them, because giving each slice its exact fraction of each
block is a fractional schedule and unit jobs always have a whole one then (Tijdeman, "The chairman
assignment problem", 1980, at a block's grain; a target only needs to grow, not to be a line).
Hence at every block edge |given - target| < 1 for every slice.

With a ramp, targets are of the size windows**2 * 2**32: Python's integers where 64 bits are few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import isqrt
from typing import TypeAlias

import numpy as np

from ..documents.errors import ContractError, UsageError

UNIT = 1 << 32
Share: TypeAlias = tuple[int, int]  # of UNIT: at the start of a stage, at its end
Ramp: TypeAlias = tuple[Fraction, Fraction]  # weights on any positive scale, at start and end


def integer_shares(
    weights: Mapping[str, Ramp], at_least: Mapping[str, Fraction], windows: int, where: str
) -> dict[str, Share]:
    """Shares of `UNIT` in the order of `weights`, both ends summing to it.

    Proportional to the weights of each end, but no share below `at_least` and none worth less than
    one of the stage's windows (such a slice has one window, and no ramp); what that takes, the
    others give in proportion. UsageError when there are more slices than windows, or when minimum
    shares leave less than that to the others.
    """
    if len(weights) > windows:
        msg = (
            f"{where}: {len(weights)} slices share {windows} windows, so some would get none. "
            f"Give the stage at least {len(weights)} windows (raise tokens, or lower "
            "sequence_length), or name fewer slices."
        )
        raise UsageError(msg)
    least = -(-UNIT // windows)  # the smallest share that is worth a whole window
    low = {name: -int(-share * UNIT // 1) for name, share in at_least.items()}
    floors = {name: max(least, low.get(name, 0)) for name in weights}
    # rounded down: as many slices as windows are no more than the stage
    bare = {name: max(UNIT // windows, low.get(name, 0)) for name in weights}
    if sum(bare.values()) > UNIT and low:
        asked = sum(at_least.values())
        msg = (
            f"{where}: at_least gives {float(asked):.6g} of the stage to {len(low)} of its "
            f"{len(weights)} slices, and each other must have one of its {windows} windows: more "
            "than the stage holds. Lower at_least, or raise tokens."
        )
        raise UsageError(msg)
    pinned: dict[str, int] = {}
    while len(pinned) < len(weights):
        free = {name: weight for name, weight in weights.items() if name not in pinned}
        room = UNIT - sum(pinned.values())
        starts, ends = (
            _proportional({n: w[end] for n, w in free.items()}, low, room) for end in (0, 1)
        )
        # a ramp that is rounded down at both ends loses up to two units
        tiny = [
            n for n in free if starts[n] + ends[n] < 2 * least + (0 if starts[n] == ends[n] else 2)
        ]
        if not tiny:
            first, last = (_rounded(exact, low, room) for exact in (starts, ends))
            return {n: (pinned[n],) * 2 if n in pinned else (first[n], last[n]) for n in weights}
        pinned |= {name: floors[name] for name in tiny}
    # everybody is at the floor: windows == slices, or as good as that
    base, extra = divmod(UNIT - sum(bare.values()), len(weights))
    each = {n: bare[n] + base + (i < extra) for i, n in enumerate(weights)}
    return {name: (share, share) for name, share in each.items()}


def _proportional(
    weights: Mapping[str, Fraction], low: Mapping[str, int], room: int
) -> dict[str, Fraction]:
    """Exact shares of `room`, none below `low`; equal ones where all weigh nothing."""
    raised: set[str] = set()
    while True:
        free = {n: w for n, w in weights.items() if n not in raised}
        left = room - sum(low[n] for n in raised)
        total = sum(free.values(), Fraction(0))
        if total:
            out = {n: w * left / total for n, w in free.items()}
        else:
            out = {n: Fraction(left, len(free)) for n in free}
        short = {n for n, share in out.items() if share < low.get(n, 0)}
        if not short:
            return {n: out[n] if n in free else Fraction(low[n]) for n in weights}
        raised |= short


def _rounded(exact: Mapping[str, Fraction], low: Mapping[str, int], room: int) -> dict[str, int]:
    """Whole numbers that sum to `room`, by largest remainder; a raised share is one already."""
    out = {n: int(share) for n, share in exact.items()}
    by_remainder = sorted(
        (n for n in exact if exact[n] != low.get(n)), key=lambda n: out[n] - exact[n]
    )  # stable
    for name in by_remainder[: room - sum(out.values())]:
        out[name] += 1
    return out


def ledger(shares: Sequence[Share], windows: int, block: int) -> np.ndarray:
    """int64[blocks + 1, slices]: windows of each slice before each block edge; row 0 is zeros.

    Both ends of `shares` sum to UNIT. Blocks have `block` windows, the last one what is left.
    """
    sums = [sum(share[end] for share in shares) for end in (0, 1)]
    if sums != [UNIT, UNIT] or min(map(sum, shares)) < 1 or min(map(min, shares)) < 0:
        msg = f"shares {shares} must be positive and both ends sum to 2**32"
        raise ContractError(msg)
    targets = Targets(shares, windows)
    blocks = -(-windows // block)
    cum = np.zeros((blocks + 1, len(shares)), dtype=np.int64)
    given = cum[0]
    for b in range(blocks):
        edge = min((b + 1) * block, windows)
        whole, part = targets.at(edge)
        due = np.maximum(given, whole)
        free = edge - int(due.sum())
        if free < 0:
            msg = f"block {b}: {-free} windows more are due than the block holds"
            raise ContractError(msg)
        if free:
            # the slices that may have one more, by the window at which they must have it
            due[targets.first(np.flatnonzero((due == whole) & part), whole, free)] += 1
        given = cum[b + 1] = due
    return cum


class Targets:
    """Windows that each slice should have had after n of a stage: the integral of its share."""

    def __init__(self, shares: Sequence[Share], windows: int) -> None:
        self._shares, self._windows = shares, windows
        self._ramped = any(first != last for first, last in shares)
        # target = (first * n + (last - first) * n**2 / (2 * windows)) / UNIT
        self._unit = UNIT * (2 * windows if self._ramped else 1)
        kind: type = np.int64 if self._unit * windows < 1 << 62 else object  # Python's integers
        scale = self._unit // UNIT
        self._line: np.ndarray = np.array([first * scale for first, _ in shares], dtype=kind)
        self._bend: np.ndarray = np.array([last - first for first, last in shares], dtype=kind)

    def at(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Whole windows int64[slices], and bool[slices] whether a part of one is due as well."""
        target = self._line * n
        if self._ramped:
            target = target + self._bend * (n * n)
        whole = target // self._unit
        return whole.astype(np.int64), (target != whole * self._unit).astype(bool)

    def first(self, may: np.ndarray, whole: np.ndarray, count: int) -> np.ndarray:
        """Of the slices `may`, the `count` whose target is the first to reach `whole` + 1."""
        if self._ramped:
            places = [self._reaches(i, int(whole[i]) + 1) for i in may.tolist()]
            order = np.array(sorted(range(len(places)), key=places.__getitem__), dtype=np.int64)
        else:
            line = self._line[may]
            order = np.argsort(-(-(whole[may] + 1) * self._unit // line), kind="stable")
        return may[order[:count]]

    def _reaches(self, i: int, windows: int) -> int:
        """The first n at which the target of a slice is `windows`; beyond the stage if never."""
        first, last = self._shares[i]
        bend = last - first
        if not bend:
            return -(-windows * UNIT // first)
        line, goal = first * 2 * self._windows, windows * self._unit
        inside = line * line + 4 * bend * goal  # bend n**2 + line n = goal
        if inside < 0:
            return 2 * self._windows + 1
        n = max(0, (isqrt(inside) - line) // (2 * bend))
        while n * (line + bend * n) >= goal and n:
            n -= 1
        while n * (line + bend * n) < goal and n <= 2 * self._windows:
            n += 1
        return n
