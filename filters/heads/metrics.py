"""What a score is worth: ranks, calibration, and intervals by bootstrap over sites.

All are plain numpy over whole arrays; ties count half (AUC) or take the mean rank (Spearman).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np


def ranks(values: np.ndarray) -> np.ndarray:
    """Mean ranks float64, from 1."""
    _, back, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return (ends - (counts - 1) / 2)[back]


def auc(good: np.ndarray, score: np.ndarray) -> float:
    """Area under the ROC curve; NaN where one class is missing."""
    n, p = len(good), int(good.sum())
    if p in {0, n}:
        return float("nan")
    return float((ranks(score)[good].sum() - p * (p + 1) / 2) / (p * (n - p)))


def average_precision(good: np.ndarray, score: np.ndarray) -> float:
    """Area under precision by recall, ties taken together."""
    if not good.any():
        return float("nan")
    cuts, back = np.unique(-score, return_inverse=True)
    hits = np.cumsum(np.bincount(back, good, len(cuts)))
    taken = np.cumsum(np.bincount(back, minlength=len(cuts)))
    return float((np.diff(hits, prepend=0) * hits / taken).sum() / hits[-1])


def spearman(truth: np.ndarray, score: np.ndarray) -> float:
    """Spearman's rank correlation; NaN where one side is constant."""
    a, b = ranks(truth), ranks(score)
    a, b = a - a.mean(), b - b.mean()
    size = np.sqrt((a * a).sum() * (b * b).sum())
    return float((a * b).sum() / size) if size else float("nan")


def curve(good: np.ndarray, chance: np.ndarray, bins: int = 15) -> list[tuple[float, float, int]]:
    """Reliability in bins of equal mass: mean probability, share that is good, pages."""
    order = np.argsort(chance, kind="stable")
    parts = [p for p in np.array_split(order, bins) if len(p)]
    return [(float(chance[p].mean()), float(good[p].mean()), len(p)) for p in parts]


def ece(good: np.ndarray, chance: np.ndarray, bins: int = 15) -> float:
    """Expected calibration error over bins of equal mass (Naeini et al. 2015)."""
    found = curve(good, chance, bins)
    return sum(n * abs(p - share) for p, share, n in found) / len(good)


def bootstrap(
    sites: Sequence[str] | np.ndarray,
    measure: Callable[[np.ndarray], float],
    draws: int = 1000,
    seed: int = 0,
) -> tuple[float, float]:
    """The 95 % interval of `measure(rows)` when whole sites are drawn with replacement.

    PCG64 with a fixed seed: the figures of a card come out the same. NaN where no draw has one.
    """
    _, group = np.unique(np.asarray(sites), return_inverse=True)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(group.max() + 2))
    members = [order[a:b] for a, b in itertools.pairwise(starts)]
    generator = np.random.Generator(np.random.PCG64(seed))
    found = [
        measure(np.concatenate([members[g] for g in drawn]))
        for drawn in generator.integers(0, len(members), (draws, len(members)))
    ]
    if np.isnan(found).all():
        return float("nan"), float("nan")
    low, high = np.nanpercentile(found, [2.5, 97.5])
    return float(low), float(high)
