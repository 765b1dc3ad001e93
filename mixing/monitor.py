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

from .plan import Plan

WINDOW: Final = 256  # samples of the running median
LIMIT: Final = 5.0  # standard deviations: one false shard in 3.5 million


class Suspect(NamedTuple):
    """A shard out of line; `documents` are (id, position, value) of its furthest samples."""

    shard: str
    measure: str  # "loss" or "gradient norm"
    score: float  # standard deviations; above 0 where values are too high
    samples: int
    documents: list[tuple[str, int, float]]


class Monitor:
    """Feed it every batch; ask for `suspects` now and then. Memory: 32 bytes a sample."""

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

    def suspects(self, limit: float = LIMIT, examples: int = 5) -> list[Suspect]:
        """Shards beyond `limit` standard deviations, the furthest first."""
        if not self._positions:
            return []
        positions = np.concatenate(self._positions)
        order = np.argsort(positions, kind="stable")
        positions = positions[order]
        owner, shard, weight = self._shares(positions)
        found = []
        for measure, values in (("loss", self._losses), ("gradient norm", self._norms)):
            raw = np.concatenate(values)[order]
            if np.isnan(raw).all() and measure != "loss":
                continue  # none was given
            value = np.where(np.isfinite(raw), raw, np.finfo(np.float64).max)
            deviation = self._deviations(positions, value)
            found += self._score(measure, positions, value, deviation, owner, shard, weight, limit)
        chosen = sorted(found, key=lambda s: (-abs(s.score), s.shard, s.measure))
        return [s._replace(documents=s.documents[:examples]) for s in chosen]

    def _shares(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(sample, shard, share of the sample's tokens) for every sample and shard that meet."""
        owner, shard, weight = [], [], []
        for n, position in enumerate(positions.tolist()):
            slot = self.plan.locate(position)
            pieces = np.asarray(self.plan.window_pieces(slot.lane, slot.window)).astype(np.int64)
            shards = np.asarray(self.plan.documents[pieces[:, 0], 0]).astype(np.int64)
            tokens = np.bincount(shards, pieces[:, 2])
            for k in np.flatnonzero(tokens).tolist():
                owner.append(n)
                shard.append(k)
                weight.append(tokens[k] / tokens.sum())
        return np.array(owner), np.array(shard), np.array(weight)

    def _deviations(self, positions: np.ndarray, value: np.ndarray) -> np.ndarray:
        """Of each sample among those of its stage and slice: mean 0, variance 1, by rank."""
        out = np.zeros(len(value))
        rows = np.array([self.plan.locate(p)[1:3] for p in positions.tolist()]).reshape(-1, 2)
        for stage, part in np.unique(rows, axis=0).tolist():
            mine = np.flatnonzero((rows == (stage, part)).all(axis=1))
            rest = value[mine] - running_median(value[mine], WINDOW)
            ranks = np.argsort(np.argsort(rest, kind="stable"), kind="stable") + 0.5
            out[mine] = (ranks / len(mine) - 0.5) * np.sqrt(12)
        return out

    def _score(
        self,
        measure: str,
        positions: np.ndarray,
        value: np.ndarray,
        deviation: np.ndarray,
        owner: np.ndarray,
        shard: np.ndarray,
        weight: np.ndarray,
        limit: float,
    ) -> list[Suspect]:
        found = []
        for k in np.unique(shard).tolist():
            mine = shard == k
            samples, share = owner[mine], weight[mine]
            score = float((share * deviation[samples]).sum() / np.sqrt((share**2).sum()))
            if abs(score) < limit:
                continue
            worst = samples[np.argsort(-np.sign(score) * share * deviation[samples], kind="stable")]
            documents = [self._document(int(positions[n]), k, float(value[n])) for n in worst[:50]]
            found.append(Suspect(self.plan.shards[k], measure, score, len(samples), documents))
        return found

    def _document(self, position: int, shard: int, value: float) -> tuple[str, int, float]:
        """The document of the shard with most tokens in the sample at `position`."""
        slot = self.plan.locate(position)
        pieces = np.asarray(self.plan.window_pieces(slot.lane, slot.window)).astype(np.int64)
        mine = pieces[np.asarray(self.plan.documents[pieces[:, 0], 0]) == shard]
        row = int(mine[np.argmax(mine[:, 2]), 0])
        return self.plan.ids[row].tobytes().hex(), position, value


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
