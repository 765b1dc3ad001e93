"""A mixture that reads a token more often than `max_epochs` allows is refused, with its cures."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from ..documents.errors import UsageError
from .changes import Change
from .cures import Cures
from .reads import Reads, Short
from .stages import lanes_of
from .usage import window_counts

CURES = 3  # that a message names


def require_feasible(reads: Reads) -> None:
    """UsageError with the cures when a stage of the mixture, as scheduled, asks too much."""
    short = reads.first_short(reads.spec.stages)
    if short is not None:
        raise UsageError(_told(reads, short))


def _told(reads: Reads, short: Short) -> str:
    """What is short, what there is, what is asked, and what would do."""
    stage = reads.stages[short.stage]
    name = stage.slices[short.slice]
    number = lanes_of(reads.lanes, stage)[short.slice]
    lane, cap = reads.lanes[number], stage.max_epochs[name]
    count = reads.of(stage, "exact")[short.slice]
    before = reads.before(short.stage, number)
    own = window_counts(reads.spec.seed, lane, 0, before + count)
    most = short.most[short.slice]
    others = most - int(own.max())
    also = f", {before:,} windows of it in earlier stages" if before else ""
    also += f", and other slices or lengths read some of it {others} times" if others > 0 else ""
    cures = list(islice(Cures(reads).search(short), CURES))
    single = any(len(changes) == 1 for changes in cures)
    lead = "Any one of these" if single else "No single change was found; any one of these"
    told = "; ".join(_together(short.stage, changes) for changes in cures)
    return (
        f"stage {stage.name!r}: slice {name!r} lacks tokens. It has {lane.tokens:,} in "
        f"{lane.documents:,} documents ({lane.windows:,} windows of "
        f"{lane.sequence_length:,}); the stage asks for {count:,} windows of it{also}. Some "
        f"tokens would be read {most} times; max_epochs is {cap}. "
        f"{lead} would do: {told}."
    )


def _together(k: int, changes: Sequence[Change]) -> str:
    """Changes to be made together; each names its stage when it is not stage `k`."""
    return " and ".join(
        text + (f" in stage {stage.name!r}" if j != k else "") for text, j, stage in changes
    )
