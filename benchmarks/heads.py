"""What the choices in a head's recipe are worth, on folds inside the training sites.

    python benchmarks/heads.py edu        or know; some variants alone: "the recipe" behind it
    python benchmarks/heads.py lengths    tokens of the labelled pages, as a head reads them

Sites of the first fold of `gristmill quality evaluate` are left out; the others are divided anew
into five folds (by another hash), and each variant of the recipe is cross-fitted, quantized and
loaded as users do, beside TF-IDF ridge on the same folds. Gains are paired, with 95 % intervals by
bootstrap over sites.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
from _texts import DATA

from gristmill.filters import _reading
from gristmill.filters.heads import commands, fit, metrics
from gristmill.filters.heads.baselines import tfidf
from gristmill.filters.heads.evaluate import FOLDS, scores
from gristmill.filters.heads.train import cross_fit, targets_of
from gristmill.filters.quality import SHIPPED

# Keys of a recipe, and in capitals what `_reading` has
VARIANTS: dict[str, dict[str, float]] = {
    "the recipe": {},
    "whole texts, plain words": {"reads": 1_000_000_000},
    "texts as they stand": {"reads": 0},
    "no length": {"length_share": 0.0},
    "first words not marked": {"FRONT": 0},
    "first 400 bytes marked": {"FRONT": 400},
    "8 words said once": {"WINDOW": 8},
}


def main(head: str = "edu", *names: str) -> None:
    recipe, data = commands.read(SHIPPED / f"{head}.yaml", DATA)
    data = data.take(np.flatnonzero(fit.folds(data.sites, FOLDS) != 0))
    groups = np.array([f"inner {site}" for site in data.sites])
    fold = fit.folds(groups, FOLDS)
    good, other = data.truth >= recipe.positive, np.empty(len(data.ids))
    targets = targets_of(data, recipe)
    for k in range(FOLDS):
        seen, rest = ([data.texts[r] for r in np.flatnonzero(w)] for w in (fold != k, fold == k))
        other[fold == k] = tfidf(seen, targets[fold != k], rest)[:, 0]
    print(f"{head}: {len(data.ids):,} pages of {len(np.unique(data.sites)):,} sites")
    print(f"{'':<26}    AUC  Spearman  gain of AUC over TF-IDF ridge, of Spearman")
    auc, rho = metrics.auc(good, other), metrics.spearman(data.truth, other)
    print(f"{'TF-IDF ridge':<26} {auc:6.3f} {rho:9.3f}")
    for name in names or VARIANTS:
        change = VARIANTS[name]
        reading = {key: value for key, value in change.items() if key.isupper()}
        with (
            tempfile.TemporaryDirectory() as folder,
            mock.patch.dict(vars(_reading), reading),
        ):
            kinds = ("quantized",)
            plan = replace(recipe, **{k: v for k, v in change.items() if k not in reading})
            found = cross_fit(data, plan, groups, FOLDS, Path(folder), kinds)
        ours = scores(found["quantized"])
        row = [metrics.auc(good, ours), metrics.spearman(data.truth, ours)]
        gains = []
        for measure, truth in ((metrics.auc, good), (metrics.spearman, data.truth)):

            def gain(r, measure=measure, truth=truth, ours=ours):
                return measure(truth[r], ours[r]) - measure(truth[r], other[r])

            low, high = metrics.bootstrap(data.sites, gain)
            gains.append(f"{gain(np.arange(len(ours))):+.3f} ({low:+.3f} to {high:+.3f})")
        print(f"{name:<26} {row[0]:6.3f} {row[1]:9.3f}  {', '.join(gains)}", flush=True)


def lengths() -> None:
    """Quantiles of the tokens of the labelled pages, short ones as they are."""
    _, data = commands.read(SHIPPED / "edu.yaml", DATA)
    with mock.patch.object(_reading, "LEAST_WORDS", 0):
        found = _reading.read(pa.array(data.texts, pa.large_string()), 6000).to_pylist()
    sizes = np.array([len(text.split()) for text in found])
    for share in (0.01, 0.025, 0.05, 0.1, 0.5, 0.95):
        print(f"{share:6.1%} quantile {np.quantile(sizes, share):6.0f} tokens")


if __name__ == "__main__":
    lengths() if sys.argv[1:] == ["lengths"] else main(*sys.argv[1:])
