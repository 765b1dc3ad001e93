"""From a step to its documents, and from a document to its steps: two ways of one bijection."""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

import numpy as np

from ..documents.errors import UsageError, did_you_mean
from .plan import Lane, Plan


class Traced(NamedTuple):
    """A run of one document's tokens that a training step reads."""

    step: int
    position: int
    shard: str
    doc: int  # ordinal in the token shard
    id: str  # 32 hex digits
    start: int  # first token, in the document
    length: int  # tokens
    stage: str
    slice: str
    epoch: int
    window: int  # of the slice at the length of the sequence
    offset: int  # first token, in the sample


class Seen(NamedTuple):
    """A place where a document is read: `length` tokens from its token `start`."""

    step: int
    position: int
    window: int
    start: int
    length: int


def trace(plan: Plan, step: int, global_batch: int | None = None) -> list[Traced]:
    """The documents of a step, in the order of its positions; `global_batch` as trained with.

    Without it the steps are the plan's own. UsageError for a step outside the plan. What an
    amendment skips or masks is not named: nobody reads it.
    """
    low, high = plan.step_span(step, global_batch)
    out = []
    at, base = -1, 0
    for position, stage, _, lane, epoch, window in plan.rows(low, high).tolist():
        if plan.skipped(position):
            continue
        base = base + plan.lanes[lane].sequence_length if position == at else 0
        at, offset = position, base
        for row, start, length in plan.window_pieces(lane, window).tolist():
            if plan.masked(row, position):
                offset += length
                continue
            shard, document, _ = plan.documents[row].tolist()
            out.append(
                Traced(
                    step,
                    position,
                    plan.shards[shard],
                    document,
                    plan.ids[row].tobytes().hex(),
                    start,
                    length,
                    plan.stages[stage].name,
                    plan.lanes[lane].slice,
                    epoch,
                    window,
                    offset,
                )
            )
            offset += length
    return out


def steps_of_document(
    plan: Plan, shard: str, document: int, global_batch: int | None = None
) -> list[Seen]:
    """Everywhere that `document` (ordinal in token shard `shard`) is read, by position.

    Empty when no stage takes it or it was not in the catalogue. UsageError for an unknown shard.
    """
    if shard not in plan.shards:
        hint = did_you_mean(shard, plan.shards)
        raise UsageError(f"plan {plan.id}: no token shard {shard!r}{hint}")
    row = _row(plan, plan.shards.index(shard), document)
    out: list[Seen] = []
    if row is None:
        return out
    for number, lane in enumerate(plan.lanes):
        pieces, by = plan.pieces[number], plan.by_document[number]
        at = bisect_left(range(len(by)), row, key=lambda i: int(pieces[by[i], 0]))
        while at < len(by) and pieces[by[at], 0] == row:
            piece = int(by[at])
            _, start, length = pieces[piece].tolist()
            window = int(np.searchsorted(plan.windows[number], piece, side="right")) - 1
            out.extend(
                Seen(plan.step_of(position, global_batch), position, window, start, length)
                for position in positions_of_window(plan, number, lane, window)
                if not plan.skipped(position) and not plan.masked(row, position)
            )
            at += 1
    return sorted(out, key=lambda seen: (seen.position, seen.start))


def _row(plan: Plan, shard: int, document: int) -> int | None:
    """Row of `documents`, which is sorted by (shard, document)."""
    table = plan.documents
    key = (shard, document)
    at = bisect_left(range(len(table)), key, key=lambda i: (int(table[i, 0]), int(table[i, 1])))
    return at if at < len(table) and (table[at, :2] == key).all() else None


def positions_of_window(plan: Plan, number: int, lane: Lane, window: int) -> list[int]:
    """The positions that read a window of lane `number`, ascending."""
    out = []
    for k, stage in enumerate(plan.stages):
        if number not in stage.lanes:
            continue
        i = stage.lanes.index(number)
        given = plan.ledgers[k][:, i]
        each = plan.per_position(k, number)
        first, end = stage.before[i], stage.before[i] + int(given[-1]) * each
        for epoch in range(first // lane.windows, -(-end // lane.windows)):
            ordinal = epoch * lane.windows + lane.order(plan.seed, epoch).inverse(window)
            if not first <= ordinal < end:
                continue
            local = (ordinal - first) // each
            block = int(np.searchsorted(given, local, side="right")) - 1
            edge, counts = plan.block_counts(k, block)
            j = int(counts[:i].sum()) + local - int(edge[i])
            slot = plan.block_order(k, block).inverse(j)
            out.append(stage.first + block * plan.block + slot)
    return sorted(out)
