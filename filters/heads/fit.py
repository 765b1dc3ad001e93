"""Fit a linear classifier on means of hashed words and bigrams, and give it calibrated classes.

Ridge in the dual: a text's features are means, scaled by 1/sqrt(mean of the feature), words and
bigrams in the shares of the recipe; with n texts the system is n x n, however many the columns.
Graded labels get one score s and the adjacent-category model (Agresti 2010, section 4.1):
logit of grade k = a k s + b_k, so that the expected grade rises with s. Nominal labels get a score
each, one against the rest, and one temperature for all. Both are fitted on scores of texts whose
site the ridge has not seen.

One thread, fixed folds, no random start: the same bytes on the same machine and versions.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from .features import Space


@dataclass(frozen=True, slots=True)
class Scaled:
    """Means scaled so that the ridge is right for rare and common features alike."""

    scale: np.ndarray  # float64[columns]; 0 where no text has the feature
    matrix: Any  # CSR float64[texts, columns], already scaled
    centre: np.ndarray  # float64[columns]: mean of the scaled rows


def scaled(means: Any, space: Space, word_share: float, power: float) -> Scaled:
    """Scale each column by its mean to the power `-power`, words and bigrams by their shares."""
    from scipy import sparse

    mean = np.asarray(means.mean(axis=0)).ravel()
    with np.errstate(divide="ignore"):
        scale = np.where(mean > 0, mean**-power, 0.0)
    words = np.arange(space.columns) < len(space.words)
    for part, share in ((words, word_share), (~words, 1 - word_share)):
        block = means.multiply(np.where(part, scale, 0.0)).tocsr()
        size = np.sqrt(block.multiply(block).sum() / means.shape[0])
        scale = np.where(part, scale * np.sqrt(share) / (size or 1.0), scale)
    rows = (means @ sparse.diags(scale)).tocsr()
    return Scaled(scale=scale, matrix=rows, centre=np.asarray(rows.mean(axis=0)).ravel())


def gram(rows: Any) -> tuple[np.ndarray, float]:
    """float64[texts, texts], centred, with a mean diagonal of 1; and what it was divided by."""
    product = np.asarray((rows @ rows.T).todense())
    mean = product.mean(axis=0)
    centred = product - mean[None] - mean[:, None] + mean.mean()
    size = float(np.trace(centred)) / len(centred) or 1.0
    return centred / size, size


def folds(groups: np.ndarray, count: int) -> np.ndarray:
    """int64[texts]: the fold of each text; a group is never split, folds are about even.

    A group's fold comes from the SHA-256 of its name: it stays when other texts come or go.
    """
    names, back = np.unique(groups, return_inverse=True)
    digests = [hashlib.sha256(str(n).encode()).digest() for n in names]
    return np.array([int.from_bytes(d[:8], "big") % count for d in digests])[back]


def solve(kernel: np.ndarray, targets: np.ndarray, ridge: float) -> tuple[np.ndarray, np.ndarray]:
    """Dual weights float64[texts, targets] and the targets' means."""
    from scipy.linalg import cho_factor, cho_solve

    mean = targets.mean(axis=0)
    factor = cho_factor(kernel + ridge * np.eye(len(kernel)))
    return cho_solve(factor, targets - mean), mean


def unseen(kernel: np.ndarray, targets: np.ndarray, ridge: float, fold: np.ndarray) -> np.ndarray:
    """float64[texts, targets]: what a ridge of the other folds says of each text."""
    out = np.empty_like(targets)
    for k in np.unique(fold):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        dual, mean = solve(kernel[np.ix_(train, train)], targets[train], ridge)
        out[test] = kernel[np.ix_(test, train)] @ dual + mean
    return out


def grades(score: np.ndarray, grade: np.ndarray, count: int) -> tuple[float, np.ndarray]:
    """Slope a and intercepts b of the adjacent-category model, by maximum likelihood.

    Half a text is added to each grade at its mean score, so that a grade without texts has a
    finite intercept.
    """
    from scipy.optimize import minimize

    steps = np.arange(count)
    centre = np.concatenate([score, np.full(count, score.mean())])
    which = np.concatenate([grade, steps])
    weight = np.concatenate([np.ones(len(score)), np.full(count, 0.5)])

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        logits = theta[0] * np.outer(centre, steps) + np.concatenate([[0.0], theta[1:]])
        logits -= logits.max(axis=1, keepdims=True)
        chance = np.exp(logits)
        chance /= chance.sum(axis=1, keepdims=True)
        log = np.log(np.maximum(chance[np.arange(len(which)), which], 1e-300))
        slip = chance * weight[:, None]
        slip[np.arange(len(which)), which] -= weight
        gradient = np.concatenate([[(slip * np.outer(centre, steps)).sum()], slip.sum(0)[1:]])
        return float(-(weight * log).sum()), gradient

    found = minimize(loss, np.concatenate([[1.0], np.zeros(count - 1)]), jac=True, method="BFGS")
    return float(found.x[0]), np.concatenate([[0.0], found.x[1:]])


def temperature(score: np.ndarray, kind: np.ndarray) -> tuple[float, np.ndarray]:
    """One slope for all labels and a bias for each, by maximum likelihood (nominal labels)."""
    from scipy.optimize import minimize

    rows = np.arange(len(kind))

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        logits = theta[0] * score + theta[1:]
        logits -= logits.max(axis=1, keepdims=True)
        chance = np.exp(logits)
        chance /= chance.sum(axis=1, keepdims=True)
        log = np.log(np.maximum(chance[rows, kind], 1e-300))
        slip = chance
        slip[rows, kind] -= 1
        penalty = 1e-3 * (theta[1:] ** 2).sum()
        gradient = np.concatenate([[(slip * score).sum()], slip.sum(0) + 2e-3 * theta[1:]])
        return float(-log.sum() + penalty), gradient

    start = np.concatenate([[3.0], np.zeros(score.shape[1])])
    found = minimize(loss, start, jac=True, method="BFGS")
    return float(found.x[0]), found.x[1:]
