"""What the choices in a head's recipe are worth, on folds inside the training sites.

    python benchmarks/heads.py edu        or know

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

import numpy as np
from _texts import DATA

from gristmill.filters.heads import commands, fit, metrics
from gristmill.filters.heads.baselines import tfidf
from gristmill.filters.heads.evaluate import FOLDS, scores
from gristmill.filters.heads.train import cross_fit, targets_of
from gristmill.filters.quality import SHIPPED

VARIANTS = {
    "the recipe": {},
    "whole texts, plain words": {"reads": 1_000_000_000},
    "texts as they stand": {"reads": 0},
    "no length": {"length_share": 0.0},
}


def main(head: str) -> None:
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
    for name, change in VARIANTS.items():
        with tempfile.TemporaryDirectory() as folder:
            kinds = ("quantized",)
            plan = replace(recipe, **change)
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


if __name__ == "__main__":
    main(*sys.argv[1:])
