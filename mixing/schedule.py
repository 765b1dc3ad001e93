"""Micro-batches of one rank by number: which positions each holds, found without a walk.

Step s reads positions in order; rank r of W takes the r-th, (r + W)-th, ... of them, `micro` at a
time. Steps of equal size form *runs* (one per stage, and one more where a resumed position lies
within a step or a range is skipped), so the n-th micro-batch is found in O(stages), however far
into the plan it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .plan import Plan


class Micro(NamedTuple):
    """One micro-batch: `wanted` positions of the rank, those from `limit` on are filled up."""

    low: int  # first position of its step
    limit: int  # end of its step
    wanted: range
    last: bool  # it ends the step


class _Run(NamedTuple):
    low: int
    end: int
    batch: int  # positions of a step
    steps: int
    micros: int  # micro-batches of a step, the same on every rank


class Schedule:
    """The micro-batches of one rank from `position` to the plan's end, numbered from 0."""

    def __init__(
        self,
        plan: Plan,
        position: int,
        *,
        global_batch: int | None,
        rank: int,
        world: int,
        micro_batch: int,
    ) -> None:
        self.rank, self.world, self.micro_batch = rank, world, micro_batch
        spans = [(position, global_batch, plan.positions)] if global_batch else []
        for stage in [] if global_batch else plan.stages:
            end = stage.first + stage.windows
            at = max(position, stage.first)
            into = (at - stage.first) % stage.global_batch
            if into and at < end:  # a position within one of the plan's own steps: first to its end
                rest = min(stage.global_batch - into, end - at)
                spans.append((at, rest, at + rest))
                at += rest
            spans.append((at, stage.global_batch, end))
        self.runs = [
            _Run(low, end, batch, -(-(end - low) // batch), -(-batch // (world * micro_batch)))
            for whole, batch, limit in spans
            for low, end in _without(plan.skips, whole, limit)
        ]
        self.micros = sum(run.steps * run.micros for run in self.runs)

    def __len__(self) -> int:
        return self.micros

    def at(self, number: int) -> Micro:
        """The micro-batch of that number; IndexError outside."""
        left = number
        for run in self.runs:
            if 0 <= left < run.steps * run.micros:
                step, m = divmod(left, run.micros)
                low = run.low + step * run.batch
                first = low + self.rank + m * self.micro_batch * self.world
                wanted = range(first, first + self.micro_batch * self.world, self.world)
                limit = min(low + run.batch, run.end)
                return Micro(low, limit, wanted, m == run.micros - 1)
            left -= run.steps * run.micros
        msg = f"micro-batch {number} of {self.micros}"
        raise IndexError(msg)

    def every(self, nth: int, of: int) -> Iterator[Micro]:
        """Micro-batches nth, nth + of, ...: one worker's share."""
        for number in range(nth, self.micros, of):
            yield self.at(number)


def _without(skips: Sequence[tuple[int, int]], low: int, high: int) -> Iterator[tuple[int, int]]:
    """What is left of [low, high) between the skipped ranges."""
    for begin, end in skips:
        if begin < high and end > low:
            if low < begin:
                yield low, begin
            low = end
    if low < high:
        yield low, high
