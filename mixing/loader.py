"""Batches for one rank of any world, resumed in O(1) from a state of four plain values.

Step s reads its positions in order; rank r of W takes the r-th, (r+W)-th, ... of them, so the set
of a step is the same for any W and any micro-batch. Where W or the micro-batch does not divide,
all-padding samples without targets fill up: every rank makes equally many equal-sized micro-batches
and nothing is refused. Weigh losses by targets, not by samples, then the dummies do not count.

The state is `{format, plan, position, digest}`, the same on every rank. `position` counts what the
trainer has *been handed in whole steps*: a checkpoint within a step resumes at the step's start.
There is nothing to replay: opening a plan, resuming and the first sample took 40 to 120 ms at any
position of a 267 M token plan (benchmarks/feed.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice, pairwise
from typing import Any, Final

import numpy as np

from ..documents.errors import FormatError, StopError, UsageError
from .feed import TokenFeed
from .plan import Plan, same_order_or_stop, state_digest
from .schedule import Micro, Schedule

STATE_FORMAT: Final = 1
AHEAD: Final = 1024  # positions whose places in the plan are looked up at a time
THREADS: Final = 8  # that read ahead: a store answers many requests at once


class FeedLoader:
    """Iterate over the micro-batches of one rank, from the current position to the plan's end.

    `prefetch`: micro-batches that threads read ahead, for stores that answer late.
    `global_batch`: windows per optimizer step; without it the plan's own, stage by stage. A batch
    never mixes sequence lengths: UsageError at the first `iter` when one would, naming the place.
    Each micro-batch is a dict: input_ids, labels, position_ids int64[m, S], loss_mask bool[m, S],
    provenance int64[m, 9], cu_seqlens int32 over the m samples laid end to end, positions (low,
    high) of the whole step, last (bool: this micro-batch ends the step, on every rank alike).
    """

    def __init__(
        self,
        feed: TokenFeed,
        *,
        global_batch: int | None = None,
        rank: int = 0,
        world: int = 1,
        micro_batch: int = 1,
        prefetch: int = 0,
    ) -> None:
        for name, value, least in (
            ("world", world, 1),
            ("micro_batch", micro_batch, 1),
            ("prefetch", prefetch, 0),
        ):
            if value < least:
                raise UsageError(f"{name}: found {value}; expected at least {least}")
        if global_batch is not None and global_batch < 1:
            raise UsageError(f"global_batch: found {global_batch}; expected at least 1")
        if not 0 <= rank < world:
            raise UsageError(f"rank: found {rank}; expected 0 to {world - 1} in a world of {world}")
        self.feed = feed
        self.global_batch = global_batch
        self.rank, self.world, self.micro_batch = rank, world, micro_batch
        self.prefetch = prefetch
        self._position = 0

    @property
    def position(self) -> int:
        """Windows of whole steps that have been handed out."""
        return self._position

    def state_dict(self) -> dict[str, Any]:
        """`{format, plan, position, digest}`: ints and strings, equal on all ranks."""
        plan = self.feed.plan
        digest = state_digest(plan, self._position)
        return {
            "format": STATE_FORMAT,
            "plan": plan.id,
            "position": self._position,
            "digest": digest,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken, with any world, rank and micro-batch.

        UsageError for the state of another plan (`carry_state` moves it to a plan that begins in
        the same way), FormatError, StopError when the order around the position differs.
        """
        plan = self.feed.plan
        position = _checked(state, plan)
        same_order_or_stop(plan, position, state["digest"])
        self._position = position

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.batches(self.schedule().every(0, 1), self.prefetch):
            self.hand_out(batch)
            yield batch

    def batches(self, micros: Iterator[Micro], prefetch: int = 0) -> Iterator[dict[str, Any]]:
        """The micro-batches, read in order; changes nothing, so workers may share them out."""
        return _read_ahead(self._read, self._located(micros), prefetch)

    def _located(self, micros: Iterator[Micro]) -> Iterator[tuple[Micro, np.ndarray]]:
        """Each micro-batch with its rows of the plan: looking up many at a time costs as one."""
        some = 1  # the first is wanted at once
        while chunk := list(islice(micros, some)):
            positions = [[p for p in micro.wanted if p < micro.limit] for micro in chunk]
            flat = np.array([p for mine in positions for p in mine], dtype=np.int64)
            rows = self.feed.plan.rows_at(flat)
            counts = np.cumsum([0] + [len(mine) for mine in positions])
            first = np.append(np.searchsorted(rows[:, 0], flat), len(rows))  # of each position
            for micro, (low, high) in zip(chunk, pairwise(first[counts].tolist()), strict=True):
                yield micro, rows[low:high]
            some = max(1, AHEAD // self.micro_batch)

    def schedule(self) -> Schedule:
        """The micro-batches from the current position on: for those who read them themselves."""
        schedule = Schedule(
            self.feed.plan,
            self._position,
            global_batch=self.global_batch,
            rank=self.rank,
            world=self.world,
            micro_batch=self.micro_batch,
        )
        self._check_batches(schedule)
        return schedule

    def _read(self, located: tuple[Micro, np.ndarray]) -> dict[str, Any]:
        micro, rows = located
        batch = self.feed.batch(micro.wanted, micro.limit, rows)
        batch["last"] = micro.last
        batch["positions"] = (micro.low, micro.limit)
        return batch

    def hand_out(self, batch: Mapping[str, Any]) -> None:
        """Count a batch as the trainer's: the position moves when it ends its step."""
        if batch["last"]:
            self._position = int(batch["positions"][1])

    def _check_batches(self, schedule: Schedule) -> None:
        if self.global_batch is None:
            return
        for before, after in pairwise(self.feed.plan.stages):
            if before.sequence_length == after.sequence_length:
                continue
            for run in schedule.runs:
                edge = after.first - run.low
                if run.low < after.first < run.end and edge % self.global_batch:
                    raise UsageError(
                        f"global_batch {self.global_batch} from position {run.low} on would put "
                        f"windows of {before.sequence_length} and {after.sequence_length} tokens "
                        f"in one step at position {after.first}, where stage {after.name!r} "
                        f"begins. Use a divisor of {edge}, or none: the plan's own batches are "
                        f"{before.global_batch} and then {after.global_batch}"
                    )


def carry_state(state: Mapping[str, Any], old: Plan, new: Plan) -> dict[str, Any]:
    """The state for `new`, a plan that begins as `old` does up to the state's position.

    StopError when any window before it differs in any document. O(position), once per amendment.
    """
    position = _checked(state, old)
    same_order_or_stop(old, position, state["digest"])
    if position > new.positions or old.prefix_digest(position) != new.prefix_digest(position):
        raise StopError(
            f"plan {new.id} differs from {old.id} before position {position}, which has been "
            "trained; change only stages that begin later"
        )
    return {**state, "plan": new.id, "digest": state_digest(new, position)}


def _checked(state: Mapping[str, Any], plan: Plan) -> int:
    if state.get("format") != STATE_FORMAT:
        raise FormatError(f"feed state: format {state.get('format')!r}; expected {STATE_FORMAT}")
    if state.get("plan") != plan.id:
        raise UsageError(
            f"feed state: it is of plan {state.get('plan')!r}, this feed reads plan {plan.id!r}. "
            "Open that plan, or move the state with `carry_state` if this one begins as it does"
        )
    position = state.get("position")
    if isinstance(position, bool) or not isinstance(position, int):
        raise UsageError(f"feed state: position {position!r}; expected a whole number")
    if not 0 <= position <= plan.positions or not isinstance(state.get("digest"), str):
        raise UsageError(f"feed state: position {position}, expected 0 to {plan.positions}")
    return position


_Found = tuple[Micro, np.ndarray]


def _read_ahead(
    read: Callable[[_Found], dict[str, Any]], micros: Iterator[_Found], ahead: int
) -> Iterator[dict[str, Any]]:
    """Batches in order, up to `ahead` of them being read while the trainer computes."""
    if not ahead:
        yield from map(read, micros)
        return
    waiting: deque[Future[dict[str, Any]]] = deque()
    pool = ThreadPoolExecutor(min(ahead, THREADS), thread_name_prefix="gristmill-feed")
    try:
        for micro in micros:
            waiting.append(pool.submit(read, micro))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
