"""The accounts of a plan: every token of every window, by stage, slice and what one asks for.

`account(plan)` goes by source; `account(plan, by=DIMENSIONS)` is the whole cube: source, dump,
language, licence, page format, quality bucket and length bucket of the documents. With `end` it
counts what a trainer that stands at that position has been served.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from ..documents.errors import ContractError, UsageError, did_you_mean
from .left_out import LeftOut
from .plan import Plan
from .usage import Usage, window_counts

#: What tokens can be told apart by, with the types of the accounts' columns.
DIMENSIONS: Final = {
    "source": pa.string(),
    "dump": pa.string(),
    "language": pa.string(),
    "license": pa.string(),
    "page_format": pa.string(),
    "quality_bucket": pa.int32(),
    "length_bucket": pa.int32(),
}
MEASURES: Final = [
    pa.field("sequence_length", pa.int64(), nullable=False),
    pa.field("windows", pa.int64(), nullable=False),  # whose first document is of the cell
    pa.field("real_tokens", pa.int64(), nullable=False),
    pa.field("padding_tokens", pa.int64(), nullable=False),  # of those windows
    pa.field("masked_tokens", pa.int64(), nullable=False),  # of removed documents: not read
    pa.field("special_tokens", pa.int64(), nullable=False),  # control tokens, in real
    pa.field("loss_tokens", pa.int64()),  # targets; null: not known, see `_targets`
    pa.field("unique_tokens", pa.int64(), nullable=False),  # read for the first time
    pa.field("repeated_tokens", pa.int64(), nullable=False),  # real - unique
    pa.field("held_tokens", pa.int64(), nullable=False),  # of the cell in the slice, each once
    pa.field("documents", pa.int64(), nullable=False),  # of which some token is read
    pa.field("fragments", pa.int64(), nullable=False),  # runs of a document's tokens that are read
    pa.field("epochs_mean", pa.float64(), nullable=False),  # real / held
    pa.field("epochs_max", pa.int64(), nullable=False),  # most reads of one token by now
]


def schema(by: Sequence[str]) -> pa.Schema:
    """Columns of an account."""
    first = [pa.field(name, pa.string(), nullable=False) for name in ("stage", "slice")]
    return pa.schema([*first, *(pa.field(name, DIMENSIONS[name]) for name in by), *MEASURES])


class _Cells(NamedTuple):
    """Documents by what the account tells apart."""

    values: list[tuple[Any, ...]]  # by cell, one for each dimension
    of: np.ndarray  # cell of each document


def account(plan: Plan, by: Sequence[str] = ("source",), end: int | None = None) -> pa.Table:
    """One row per stage, slice, length and cell that the slice has tokens of, in that order.

    Every stage and slice reconciles: windows x sequence_length = real + padding + masked, where
    windows come from the ledger less the skipped ones, padding from the windows' fill and real
    tokens from the exact count per token; ContractError with the difference when one is off, or a
    window holds a token twice. No lane loses a token: each is in one of its windows.
    `epochs_max` counts every read up to the end of the stage, whichever slice or length made it.
    `end`: count the positions before it alone.
    """
    end = plan.positions if end is None else end
    if not 0 <= end <= plan.positions:
        raise UsageError(f"position {end} is outside plan {plan.id}: 0 to {plan.positions}")
    tokens = np.asarray(plan.documents[:, 2]).astype(np.int64)
    usage = Usage(tokens, plan.windows, plan.pieces, plan.by_document)
    cells = _cells(plan, by)
    for number in range(len(plan.lanes)):
        _check_lane(plan, usage, number)
    left = LeftOut(plan, end)
    rows: list[dict[str, Any]] = []
    for k, stage in enumerate(plan.stages):
        given = int(plan.ledgers[k][-1].sum())  # skipped ones too
        if given != stage.windows:
            raise ContractError(
                f"plan {plan.id}, stage {stage.name!r}: its ledger gives {given} windows, it has "
                f"{stage.windows} positions"
            )
        found = _stage_rows(plan, usage, left, cells, k, end)
        most = {lane: _most(usage, cells, lane) for lane in stage.lanes}
        for row in found:  # when all slices of the stage have been counted
            lane, c = row["epochs_max"]
            row["epochs_max"] = most[lane][c]
            row.update(zip(by, cells.values[c], strict=True))
        rows += found
    return pa.Table.from_pylist(rows, schema=schema(by))


def rolled(table: pa.Table, by: Sequence[str]) -> pa.Table:
    """An account by fewer dimensions, from one by more."""
    key = ["stage", "slice", "sequence_length", *by]
    sums: dict[tuple[Any, ...], dict[str, Any]] = {}
    summed = [f.name for f in MEASURES if f.name not in ("sequence_length", "epochs_mean")]
    for row in table.to_pylist():
        name = tuple(row[n] for n in key)
        if name not in sums:
            sums[name] = dict(row)
            continue
        into = sums[name]
        for measure in summed:
            a, b = into[measure], row[measure]
            most = measure == "epochs_max"
            into[measure] = None if a is None or b is None else max(a, b) if most else a + b
    for row in sums.values():
        row["epochs_mean"] = row["real_tokens"] / row["held_tokens"]
    return pa.Table.from_pylist(list(sums.values()), schema=schema(by))


def _cells(plan: Plan, by: Sequence[str]) -> _Cells:
    """The cells of some dimensions, sorted by value, null last."""
    names = dict(plan.content["dimensions"])
    for name in by:
        if name not in names:
            raise UsageError(f"no dimension {name!r}{did_you_mean(name, names)}")
    if not by:
        return _Cells([()], np.zeros(len(plan.documents), np.int64))
    columns = [list(names).index(name) for name in by]
    codes = np.asarray(plan.cells)[:, columns]
    distinct, place = np.unique(codes, axis=0, return_inverse=True)
    values = [tuple(names[n][c] for n, c in zip(by, row, strict=True)) for row in distinct.tolist()]
    return _Cells(values, place.reshape(-1).astype(np.int64)[np.asarray(plan.cell)])


def _stage_rows(
    plan: Plan, usage: Usage, left: LeftOut, cells: _Cells, k: int, end: int
) -> list[dict[str, Any]]:
    """Rows of a stage; adds its reads to `usage.times`. `epochs_max` is (lane, cell) for now."""
    stage = plan.stages[k]
    rows: list[dict[str, Any]] = []
    number = len(cells.values)
    cell_of = cells.of[usage.document]
    controls = usage.closes.astype(np.int64) + (usage.opens if plan.content["bos"] else 0)
    places = plan.turns.places(usage.base)
    turns = np.stack([places, places + 1], axis=1)
    for i, lane in enumerate(stage.lanes):
        length = plan.lanes[lane].sequence_length
        read, count = _read(plan, k, i, end)
        read -= left.skipped(k, lane)
        count -= left.windows(k, lane)
        fill, owner = _fill(plan, lane), cells.of[_heads(plan, lane)]
        mine = usage.segments[lane]
        placed = controls[mine] + usage.inside(lane, turns, 0, usage.closes[mine])
        cell, lengths = cell_of[mine], usage.lengths[mine]
        times = usage.spread(lane, read)
        hidden = left.hidden(usage, k, lane)
        masked = _sum(cell, hidden * lengths, number)
        times -= hidden
        real = _sum(cell, times * lengths, number)
        fresh = (usage.times[mine] == 0) & (times > 0)
        unique = _sum(cell, fresh * lengths, number)
        windows = _sum(owner, read, number)
        padding = _sum(owner, read * (length - fill), number)
        have = _sum(cell, lengths, number)
        met = np.unique(usage.document[mine[times > 0]])
        usage.times[mine] += times
        asked = count * length
        found = int(real.sum() + padding.sum() + masked.sum())
        if asked != found or int(windows.sum()) != count:
            raise ContractError(
                f"plan {plan.id}, stage {stage.name!r}, slice {plan.lanes[lane].slice!r}: {count} "
                f"windows of {length} hold {asked} tokens; real and padding come to {found}, "
                f"{found - asked:+d}"
            )
        columns = {
            "windows": windows,
            "real_tokens": real,
            "padding_tokens": padding,
            "masked_tokens": masked,
            "special_tokens": _sum(cell, times * placed, number),
            "loss_tokens": _sum(cell, times * _targets(plan, usage, k, lane), number),
            "unique_tokens": unique,
            "repeated_tokens": real - unique,
            "held_tokens": have,
            "documents": np.bincount(cells.of[met], minlength=number),
            "fragments": _sum(cell, times * usage.heads(lane), number),
        }
        for c in np.flatnonzero(have).tolist():
            row = {name: int(values[c]) for name, values in columns.items()}
            if stage.mask != "document" and len(plan.masks):
                row["loss_tokens"] = None  # type: ignore[assignment]
            head = {"stage": stage.name, "slice": plan.lanes[lane].slice}
            mean = row["real_tokens"] / row["held_tokens"]
            about = {"sequence_length": length, "epochs_mean": mean, "epochs_max": (lane, c)}
            rows.append({**head, **about, **row})
    return rows


def _read(plan: Plan, k: int, i: int, end: int) -> tuple[np.ndarray, int]:
    """How often a stage reads each window of its i-th lane before position `end`, and how many."""
    stage = plan.stages[k]
    lane = stage.lanes[i]
    each = plan.per_position(k, lane)
    served = min(max(end - stage.first, 0), stage.windows)
    blocks = served // plan.block if served < stage.windows else -(-served // plan.block)
    whole = int(plan.ledgers[k][blocks, i]) * each
    before = stage.before[i]
    read = window_counts(plan.seed, plan.lanes[lane], before, before + whole)
    rows = plan.rows(stage.first + min(blocks * plan.block, served), stage.first + served)
    part = rows[rows[:, 3] == lane, 5]
    return read + np.bincount(part, minlength=plan.lanes[lane].windows), whole + len(part)


def _most(usage: Usage, cells: _Cells, lane: int) -> list[int]:
    """By cell the reads of the lane's most read token so far."""
    mine = usage.segments[lane]
    out = np.zeros(len(cells.values), dtype=np.int64)
    np.maximum.at(out, cells.of[usage.document[mine]], usage.times[mine])
    return out.tolist()


def _targets(plan: Plan, usage: Usage, k: int, lane: int) -> np.ndarray:
    """Targets in each segment of a lane: int64[k].

    Inside documents every token has the next as its label, the last of the document none. Where
    text runs on (`mask: none`) that one has the next document's first, but at the window's end, and
    unless that first is no target. Whether a plan masks that document is not known here.
    """
    mine = usage.segments[lane]
    closes, none = usage.closes[mine], usage.closes[mine]
    spans = plan.turns.spans(usage.base)
    if plan.stages[k].mask != "document":
        pieces = np.asarray(plan.pieces[lane]).astype(np.int64)
        mute = np.zeros(len(pieces), dtype=bool)
        mute[:-1] = _within(spans, usage.base[pieces[1:, 0]] + pieces[1:, 1])
        mute[np.asarray(plan.windows[lane][1:]).astype(np.int64) - 1] = True
        none = none & usage.tails(lane, pieces[mute])
    return usage.lengths[mine] - none - usage.inside(lane, spans, 1, closes)


def _within(spans: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Which places lie in ascending stretches int64[n, 2]: bool[k]."""
    if not len(spans):
        return np.zeros(len(places), dtype=bool)
    at = np.searchsorted(spans[:, 0], places, side="right") - 1
    return (at >= 0) & (places < spans[at, 1])


def _check_lane(plan: Plan, usage: Usage, lane: int) -> None:
    """ContractError unless the pieces of a lane hold each of its tokens once."""
    expected = plan.lanes[lane].tokens
    tokens = int(plan.pieces[lane][:, 2].sum(dtype=np.int64))
    cover = int(usage.lengths[usage.segments[lane]].sum())
    twice = int((np.diff(usage.segments[lane]) <= 0).sum())
    if twice or not cover == tokens == expected:
        raise ContractError(
            f"plan {plan.id}, lane {lane} (slice {plan.lanes[lane].slice!r}): its windows hold "
            f"{tokens} tokens, {twice} runs of them twice; its documents have {expected}"
        )


def _fill(plan: Plan, lane: int) -> np.ndarray:
    """Real tokens of each window of a lane: int64[windows]."""
    lengths = np.asarray(plan.pieces[lane][:, 2]).astype(np.int64)
    return np.add.reduceat(lengths, np.asarray(plan.windows[lane][:-1]).astype(np.int64))


def _heads(plan: Plan, lane: int) -> np.ndarray:
    """Row of each window's first document: int64[windows]."""
    firsts = np.asarray(plan.windows[lane][:-1]).astype(np.int64)
    return np.asarray(plan.pieces[lane])[firsts, 0].astype(np.int64)


def _sum(group: np.ndarray, values: np.ndarray, groups: int) -> np.ndarray:
    """Exact int64 sums by group; `np.bincount` would go through floats."""
    out = np.zeros(groups, dtype=np.int64)
    np.add.at(out, group, values)
    return out
