"""Which token shards are out of line, from the losses and gradient norms that training reports.

A shard whose tokens were spoilt before they were hashed passes every checksum, and its documents
are read a few at a time over weeks, so no single step stands out. But each of its samples is a
little off in the same direction: the monitor takes from each sample's value what its neighbours of
the same stage and slice had (the running median over `WINDOW` of them, which follows the loss as it
falls), and adds the rest up by shard, weighted by the share of the sample's tokens that are the
shard's. A sum of n deviations grows with n where the shard is bad and with sqrt(n) where it is not.

Deviations are ranks, so that a spike counts once and not by its size: the score of a shard is a
standard normal variable where all is well, whatever losses look like. Numpy and the standard
library alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from .plan import Plan, Slot

WINDOW: Final = 256  # samples of the running median
LIMIT: Final = 5.0  # standard deviations; a normal variable is beyond them once in 1.7 million


class Suspect(NamedTuple):
    """A shard out of line; `documents` are (id, position, value) of its furthest samples."""

    shard: str
    measure: str  # "loss" or "gradient norm"
    score: float  # standard deviations; above 0 where values are too high
    samples: int
    documents: list[tuple[str, int, float]]


class Monitor:
    """Feed it every batch; ask for `suspects` now and then. Memory: 24 bytes a sample."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._positions: list[np.ndarray] = []
        self._losses: list[np.ndarray] = []
        self._norms: list[np.ndarray] = []

    def add(
        self, batch: Mapping[str, Any], losses: np.ndarray, norms: np.ndarray | None = None
    ) -> None:
        """Take the per-sample losses (and gradient norms) of a batch of the feed: float[m] each.

        Padding samples are passed over. A value that is not finite counts as the highest.
        """
        places = np.asarray(batch["provenance"])[:, 0].astype(np.int64)
        real = places >= 0
        self._positions.append(places[real])
        self._losses.append(np.asarray(losses, dtype=np.float64)[real])
        given = np.full(len(places), np.nan) if norms is None else np.asarray(norms, np.float64)
        self._norms.append(given[real])

    def state_dict(self) -> dict[str, list[float]]:
        """What it was told, as plain lists: goes with the feed's state into a checkpoint."""
        told = (("positions", self._positions), ("losses", self._losses), ("norms", self._norms))
        return {name: [float(x) for part in parts for x in part] for name, parts in told}

    def load_state_dict(self, state: Mapping[str, list[float]]) -> None:
        """Take what another monitor was told, instead of what this one was."""
        self._positions = [np.array(state["positions"], dtype=np.int64)]
        self._losses = [np.array(state["losses"], dtype=np.float64)]
        self._norms = [np.array(state["norms"], dtype=np.float64)]

    def suspects(self, limit: float = LIMIT, examples: int = 5) -> list[Suspect]:
        """Shards beyond `limit` standard deviations, the furthest first."""
        if not sum(map(len, self._positions)):
            return []
        positions = np.concatenate(self._positions)
        order = np.argsort(positions, kind="stable")
        slots = [self.plan.locate(p) for p in positions[order].tolist()]
        shares = self._shares(slots)
        found: list[Suspect] = []
        for measure, values in (("loss", self._losses), ("gradient norm", self._norms)):
            raw = np.concatenate(values)[order]
            if np.isnan(raw).all() and measure != "loss":
                continue  # none was given
            value = np.where(np.isfinite(raw), raw, np.finfo(np.float64).max)
            deviation = _deviations(slots, value)
            for shard, (samples, share) in shares.items():
                score = float((share * deviation[samples]).sum() / np.sqrt((share**2).sum()))
                if abs(score) < limit:
                    continue
                furthest = np.argsort(-np.sign(score) * share * deviation[samples], kind="stable")
                documents = [
                    (self._document(slots[n], shard), slots[n][0].position, float(value[n]))
                    for n in samples[furthest[:examples]].tolist()
                ]
                name = self.plan.shards[shard]
                found.append(Suspect(name, measure, score, len(samples), documents))
        return sorted(found, key=lambda s: (-abs(s.score), s.shard, s.measure))

    def _shares(self, slots: list[list[Slot]]) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """Shard -> the samples that hold tokens of it, and its share of each one's tokens."""
        rows: dict[int, tuple[list[int], list[float]]] = {}
        for n, slot in enumerate(slots):
            pieces, shards = self._pieces(slot)
            tokens = np.bincount(shards, pieces[:, 2])
            for k in np.flatnonzero(tokens).tolist():
                samples, share = rows.setdefault(k, ([], []))
                samples.append(n)
                share.append(tokens[k] / tokens.sum())
        return {k: (np.array(rows[k][0]), np.array(rows[k][1])) for k in sorted(rows)}

    def _document(self, slot: list[Slot], shard: int) -> str:
        """The document of the shard with most tokens in the sample."""
        pieces, shards = self._pieces(slot)
        mine = pieces[shards == shard]
        return self.plan.ids[int(mine[np.argmax(mine[:, 2]), 0])].tobytes().hex()

    def _pieces(self, slot: list[Slot]) -> tuple[np.ndarray, np.ndarray]:
        """Pieces of a sample, int64[k, 3], and the shard of each."""
        found = [self.plan.window_pieces(one.lane, one.window) for one in slot]
        pieces = np.concatenate(found).astype(np.int64)
        return pieces, np.asarray(self.plan.documents[pieces[:, 0], 0]).astype(np.int64)


def _deviations(slots: list[list[Slot]], value: np.ndarray) -> np.ndarray:
    """Of each sample among those of its stage and slice: mean 0, variance 1, by rank."""
    out = np.zeros(len(value))
    cells = np.array([(slot[0].stage, slot[0].slice) for slot in slots])
    for cell in np.unique(cells, axis=0).tolist():
        mine = np.flatnonzero((cells == cell).all(axis=1))
        rest = value[mine] - running_median(value[mine], WINDOW)
        ranks = np.argsort(np.argsort(rest, kind="stable"), kind="stable") + 0.5
        out[mine] = (ranks / len(mine) - 0.5) * np.sqrt(12)
    return out


def running_median(values: np.ndarray, window: int) -> np.ndarray:
    """Median of the up to `window` values around each one: float64, same shape."""
    n = len(values)
    if n <= window:
        return np.full(n, np.median(values)) if n else values
    views = np.lib.stride_tricks.sliding_window_view(values, window)
    middle = np.median(views, axis=1)
    left = window // 2
    return np.concatenate(
        [np.full(left, middle[0]), middle, np.full(window - 1 - left, middle[-1])]
    )
