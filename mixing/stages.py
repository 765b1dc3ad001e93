"""Stages as asked to stages as compiled: whole steps, integer shares, and the ledger of each."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from .plan import Lane, Stage
from .quota import Share, integer_shares, ledger
from .spec import MixSpec, StageSpec


def stage_windows(stage: StageSpec) -> int:
    """Windows of a stage: the whole steps within its budget, one at least."""
    step = stage.sequence_length * stage.global_batch
    return max(1, stage.budget // step) * stage.global_batch


def stage_shares(stage: StageSpec) -> list[Share]:
    """Integer shares of a stage's slices, in the order of their names; see `quota`."""
    ramps = {name: stage.ramps[name] for name in stage.slices}
    shares = integer_shares(ramps, stage.at_least, stage_windows(stage), f"stage {stage.name!r}")
    return list(shares.values())


def lane_of(lanes: Sequence[Lane], name: str, stage: StageSpec) -> int | None:
    """Number of the lane of a slice in a stage; None when it is not packed yet."""
    key = (name, stage.length_of(name), stage.packing)
    found = [(lane.slice, lane.sequence_length, lane.packing) for lane in lanes]
    return found.index(key) if key in found else None


def lanes_of(lanes: Sequence[Lane], stage: StageSpec) -> list[int]:
    """Lanes of a stage, in the order of its slices' names."""
    return [i for name in stage.slices if (i := lane_of(lanes, name, stage)) is not None]


def per_window(stage: StageSpec) -> list[int]:
    """Sequences in a window of a stage, in the order of its slices' names."""
    return [stage.sequence_length // stage.length_of(name) for name in stage.slices]


def schedule(spec: MixSpec, lanes: Sequence[Lane]) -> tuple[list[Stage], list[np.ndarray]]:
    """Stages one after the other, and the ledger of each; see `plan`."""
    stages: list[Stage] = []
    ledgers: list[np.ndarray] = []
    given = [0] * len(lanes)
    position = step = 0
    for asked in spec.stages:
        windows, shares = stage_windows(asked), stage_shares(asked)
        table = ledger(shares, windows, spec.block)
        names, mine = asked.slices, lanes_of(lanes, asked)
        stages.append(
            Stage(
                name=asked.name,
                first=position,
                windows=windows,
                sequence_length=asked.sequence_length,
                packing=asked.packing,
                mask=asked.mask,
                global_batch=asked.global_batch,
                first_step=step,
                asked_tokens=asked.budget,
                slices=names,
                weights=[weight_text(asked.ramps[name]) for name in names],
                shares=[first for first, _ in shares],
                end_shares=[last for _, last in shares],
                lanes=mine,
                before=[given[i] for i in mine],
                max_epochs=[asked.max_epochs[name] for name in names],
            )
        )
        ledgers.append(table)
        for lane, count, each in zip(mine, table[-1].tolist(), per_window(asked), strict=True):
            given[lane] += count * each
        position += windows
        step += windows // asked.global_batch
    return stages, ledgers


def weight_text(ramp: tuple[Fraction, Fraction]) -> str:
    """A weight as a recipe would state it: `0.1`, or `[0.1, 0.3]`."""
    first, last = map(decimal, ramp)
    return first if first == last else f"[{first}, {last}]"


def decimal(number: Fraction) -> str:
    """A fraction whose decimals end, with all of them."""
    places = 0
    while (number * 10**places).denominator != 1:
        places += 1
    digits = str(int(number * 10**places)).rjust(places + 1, "0")
    return f"{digits[:-places]}.{digits[-places:]}" if places else digits
