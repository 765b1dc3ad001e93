"""Does a plan read a token more often than `max_epochs` allows: asked of any stages.

Reads are counted by token over all slices, lengths and stages (`usage`), so a document that `base`
reads four times and `long_context` once more is seen. The exact ledger of a stage is
laid out block by block, too slow to do at every step of a search; whatever it does, a slice gets
its target rounded down or up, so targets alone say what is read at most and at least.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np

from .lengths import Parts, by_parts
from .plan import Lane
from .quota import Targets, ledger
from .spec import MixSpec, StageSpec
from .stages import lanes_of, per_window, stage_shares, stage_windows
from .usage import Usage, window_counts

#: How many windows a slice gets: as the ledger has it, or at most or at least that.
Counting = Literal["exact", "most", "least"]


class Short(NamedTuple):
    """A stage that reads tokens too often."""

    stage: int
    slice: int  # of the stage's, divided by length: the one that asks most for its cap
    most: list[int]  # by slice: reads of its most read token of those read too often; 0: none
    times: np.ndarray  # reads of each segment by the stage's end


class Reads:
    """The question for one mixture, and for changes of it.

    Changes are made to stages as a recipe states them, so that each can be written there; what
    they read is asked of stages divided by length (`lengths`), with `parts` of each stage.
    `ledgers`: those of the mixture as it is scheduled, which are known already.
    """

    def __init__(
        self,
        asked: MixSpec,
        parts: Sequence[Parts],
        lanes: Sequence[Lane],
        usage: Usage,
        ledgers: Sequence[np.ndarray],
    ) -> None:
        self.spec, self._parts, self.lanes, self.usage = asked, parts, lanes, usage
        self.stages = list(map(by_parts, asked.stages, parts))  # divided by length
        self._whole = [  # of each stage: part -> the slice that a recipe names
            {part: name for name, found in of.items() for part, *_ in found} for of in parts
        ]
        self._counts: dict[Hashable, list[int]] = {
            _key(stage, "exact"): table[-1].tolist()
            for stage, table in zip(self.stages, ledgers, strict=True)
        }

    def first_short(
        self, stages: Sequence[StageSpec], counting: Counting = "exact"
    ) -> Short | None:
        """The first of the stages that reads a token too often."""
        usage = self.usage
        times = np.zeros_like(usage.times)
        given = [0] * len(self.lanes)
        for k, stage in enumerate(map(by_parts, stages, self._parts)):
            mine = lanes_of(self.lanes, stage)
            counts = self.of(stage, counting)
            for lane, count in zip(mine, counts, strict=True):
                first, end = given[lane], given[lane] + count
                read = window_counts(self.spec.seed, self.lanes[lane], first, end)
                times[usage.segments[lane]] += usage.spread(lane, read)
                given[lane] = end
            caps = [stage.max_epochs[name] for name in stage.slices]
            # a token in several slices of the stage may be read as often as the largest cap allows
            allowed = np.zeros_like(times)
            for cap, lane in zip(caps, mine, strict=True):
                of = usage.segments[lane]
                allowed[of] = np.maximum(allowed[of], cap)
            over = np.where(times > allowed, times, 0)
            most = [int(over[usage.segments[lane]].max(initial=0)) for lane in mine]
            if any(most):
                asked = [
                    Fraction(given[lane], self.lanes[lane].windows * cap) if bad else -1
                    for lane, cap, bad in zip(mine, caps, most, strict=True)
                ]
                return Short(k, asked.index(max(asked)), most, times)
        return None

    def of(self, stage: StageSpec, counting: Counting) -> list[int]:
        """Sequences of each slice that a stage reads."""
        pairs = zip(self._windows(stage, counting), per_window(stage), strict=True)
        return [count * each for count, each in pairs]

    def _windows(self, stage: StageSpec, counting: Counting) -> list[int]:
        """Windows of each slice of a stage."""
        key = _key(stage, counting)
        if key not in self._counts:
            windows, shares = stage_windows(stage), stage_shares(stage)
            if counting == "exact":
                counts = ledger(shares, windows, self.spec.block)[-1]
            else:
                whole, part = Targets(shares, windows).at(windows)
                counts = whole + part if counting == "most" else whole
            self._counts[key] = counts.tolist()
        return self._counts[key]

    def named(self, short: Short, part: int) -> str:
        """The slice of a short stage as a recipe names it."""
        name = self.stages[short.stage].slices[part]
        return self._whole[short.stage].get(name, name)

    def before(self, stage: int, lane: int) -> int:
        """Windows of a lane that the stages before read."""
        return sum(
            count
            for earlier in self.stages[:stage]
            for i, count in zip(
                lanes_of(self.lanes, earlier), self.of(earlier, "exact"), strict=True
            )
            if i == lane
        )


def _key(stage: StageSpec, counting: Counting) -> Hashable:
    """What the windows of a stage's slices depend on."""
    ramps = tuple(stage.ramps[name] for name in stage.slices)
    return counting, stage_windows(stage), ramps, tuple(sorted(stage.at_least.items()))
