"""Figures against scikit-learn and scipy, ties included."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score, roc_auc_score

from gristmill.filters.heads import metrics


@pytest.fixture(params=range(5))
def sample(request):
    draw = np.random.default_rng(request.param)
    truth = draw.integers(0, 6, 200)
    return truth, np.round(truth + draw.normal(0, 2, 200), request.param % 2)


def test_ranks_agree_with_libraries(sample):
    truth, score = sample
    good = truth >= 3
    assert metrics.auc(good, score) == pytest.approx(roc_auc_score(good, score))
    assert metrics.average_precision(good, score) == pytest.approx(
        average_precision_score(good, score)
    )
    assert metrics.spearman(truth, score) == pytest.approx(spearmanr(truth, score)[0])


def test_ranks_of_one_class_are_nan():
    alone = np.ones(4, bool)
    assert np.isnan(metrics.auc(alone, np.arange(4.0)))
    assert np.isnan(metrics.spearman(np.ones(4), np.arange(4.0)))
    assert np.isnan(metrics.average_precision(~alone, np.arange(4.0)))


def test_ece_of_honest_probabilities_is_small_and_of_bold_ones_large():
    draw = np.random.default_rng(0)
    chance = draw.random(20_000)
    good = draw.random(20_000) < chance
    assert metrics.ece(good, chance) < 0.02
    assert metrics.ece(good, np.where(chance > 0.5, 1.0, 0.0)) > 0.2


def test_bootstrap_draws_whole_sites():
    sites = np.repeat(["a", "b"], 10)
    values = np.repeat([0.0, 1.0], 10)

    def mean(rows):
        return float(values[rows].mean())

    assert metrics.bootstrap(sites, mean, draws=500) == (0, 1)  # by pages about 0.3 to 0.7
    assert metrics.bootstrap(sites, mean, draws=500) == metrics.bootstrap(sites, mean, draws=500)


def test_bootstrap_of_what_no_draw_has_is_nan():
    alone = np.ones(4, bool)
    found = metrics.bootstrap(np.arange(4).astype(str), lambda r: metrics.auc(alone[r], r), draws=9)
    assert np.isnan(found).all()
