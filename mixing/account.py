"""The accounts of a plan: every token of every window, by stage, slice and source."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ..documents.errors import ContractError
from .left_out import LeftOut
from .plan import Plan
from .usage import Usage, window_counts

ACCOUNT = pa.schema(
    [
        pa.field("stage", pa.string(), nullable=False),
        pa.field("slice", pa.string(), nullable=False),
        pa.field("source", pa.string()),
        pa.field("sequence_length", pa.int64(), nullable=False),
        pa.field("windows", pa.int64(), nullable=False),  # whose first document is of the source
        pa.field("real_tokens", pa.int64(), nullable=False),
        pa.field("padding_tokens", pa.int64(), nullable=False),  # of those windows
        pa.field("masked_tokens", pa.int64(), nullable=False),  # of removed documents: not read
        pa.field("special_tokens", pa.int64(), nullable=False),  # controls, within real
        pa.field("unique_tokens", pa.int64(), nullable=False),  # read for the first time
        pa.field("repeated_tokens", pa.int64(), nullable=False),  # real - unique
        pa.field("documents", pa.int64(), nullable=False),  # of which some token is read
        pa.field("epochs_mean", pa.float64(), nullable=False),  # real / all of the cell's
        pa.field("epochs_max", pa.int64(), nullable=False),  # most reads of one token by now
    ]
)


def account(plan: Plan) -> pa.Table:
    """One row per stage, slice and source, in that order.

    Every stage and slice reconciles: windows x sequence_length = real + padding + masked, where
    windows come from the ledger less the skipped ones, padding from the windows' fill and real
    tokens from the exact count per token; ContractError with the difference when one is off, or a
    window holds a token twice.
    `epochs_max` counts every read up to the end of the stage, whichever slice or length made it.
    """
    tokens = np.asarray(plan.documents[:, 2]).astype(np.int64)
    usage = Usage(tokens, plan.windows, plan.pieces, plan.by_document)
    sources = len(plan.sources)
    source_of = np.asarray(plan.document_sources)[usage.document].astype(np.int64)
    controls = usage.closes.astype(np.int64) + (usage.opens if plan.content["bos"] else 0)
    for number in range(len(plan.lanes)):
        _check_lane(plan, usage, number)
    left = LeftOut(plan)
    rows: list[dict[str, Any]] = []
    for k, stage in enumerate(plan.stages):
        first_row = len(rows)
        for i, lane in enumerate(stage.lanes):
            length = plan.lanes[lane].sequence_length
            count = int(plan.ledgers[k][-1, i]) * plan.per_position(k, lane)
            begin = stage.before[i]
            read = window_counts(plan.seed, plan.lanes[lane], begin, begin + count)
            read -= left.skipped(k, lane)
            count -= left.windows(k, lane)
            fill = _fill(plan, lane)
            owner = _owner(plan, lane)
            mine = usage.segments[lane]
            source, lengths = source_of[mine], usage.lengths[mine]
            times = usage.spread(lane, read)
            hidden = left.hidden(usage, k, lane)
            masked = _sum(source, hidden * lengths, sources)
            times -= hidden
            real = _sum(source, times * lengths, sources)
            fresh = (usage.times[mine] == 0) & (times > 0)
            unique = _sum(source, fresh * lengths, sources)
            special = _sum(source, times * controls[mine], sources)
            windows = _sum(owner, read, sources)
            padding = _sum(owner, read * (length - fill), sources)
            have = _sum(source, lengths, sources)
            met = np.unique(usage.document[mine[times > 0]])
            documents = np.bincount(plan.document_sources[met], minlength=sources)
            usage.times[mine] += times
            asked = count * length
            found = int(real.sum() + padding.sum() + masked.sum())
            if asked != found or int(windows.sum()) != count:
                raise ContractError(
                    f"plan {plan.id}, stage {stage.name!r}, slice {stage.slices[i]!r}: {count} "
                    f"windows of {length} hold {asked} tokens; real and padding "
                    f"come to {found}, {found - asked:+d}"
                )
            rows.extend(
                {
                    "stage": stage.name,
                    "slice": stage.slices[i],
                    "source": plan.sources[s],
                    "sequence_length": length,
                    "windows": int(windows[s]),
                    "real_tokens": int(real[s]),
                    "padding_tokens": int(padding[s]),
                    "masked_tokens": int(masked[s]),
                    "special_tokens": int(special[s]),
                    "unique_tokens": int(unique[s]),
                    "repeated_tokens": int(real[s] - unique[s]),
                    "documents": int(documents[s]),
                    "epochs_mean": int(real[s]) / int(have[s]),
                    "epochs_max": (i, s),
                }
                for s in np.flatnonzero(have).tolist()
            )
        given = int(plan.ledgers[k][-1].sum())  # skipped ones too
        if given != stage.windows:
            raise ContractError(
                f"plan {plan.id}, stage {stage.name!r}: its ledger gives {given} windows, it has "
                f"{stage.windows} positions"
            )
        for row in rows[first_row:]:  # when all slices of the stage have been counted
            i, s = row["epochs_max"]
            mine = usage.segments[stage.lanes[i]]
            row["epochs_max"] = int(usage.times[mine[source_of[mine] == s]].max())
    return pa.Table.from_pylist(rows, schema=ACCOUNT)


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


def _owner(plan: Plan, lane: int) -> np.ndarray:
    """Source of each window's first document: int64[windows]."""
    heads = np.asarray(plan.pieces[lane])[np.asarray(plan.windows[lane][:-1]).astype(np.int64), 0]
    return np.asarray(plan.document_sources)[heads].astype(np.int64)


def _sum(group: np.ndarray, values: np.ndarray, groups: int) -> np.ndarray:
    """Exact int64 sums by group; `np.bincount` would go through floats."""
    out = np.zeros(groups, dtype=np.int64)
    np.add.at(out, group, values)
    return out
