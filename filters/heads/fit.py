"""Fit a linear classifier on means of hashed words and bigrams, and give it calibrated classes.

Ridge in the dual: a text's features are means, scaled as `scaled` says; with n texts the system is
n x n, however many the columns.
Ridge gives several latent scores: the grade, whether it reaches 1, 2 and 3 (or one for each
kind), and what else the pages are labelled with. A softmax over them, fitted on scores of texts
whose site the ridge has not seen, makes probabilities of the labels: linear in the features still,
but the expected grade is not. docs/heads.md says what was tried. The recipe's defaults
(shares, power, burst) were chosen with document frequencies counted over all pages.

One thread, fixed folds, no random start: the same bytes on the same machine and versions.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from .data import Recipe
from .features import Space

_LOOSE = 0.1  # C of the logistic regression over standardised latent scores


@dataclass(frozen=True, slots=True)
class Scaled:
    """Means scaled so that the ridge is right for rare and common features alike."""

    scale: np.ndarray  # float64[columns]; 0 where no text has the feature
    matrix: Any  # CSR float64[texts, columns], already scaled
    centre: np.ndarray  # float64[columns]: mean of the scaled rows


def scaled(means: Any, space: Space, recipe: Recipe) -> Scaled:
    """Scale the columns of a matrix of means.

    By a power of the mean, for a ridge that is right for rare and common features alike, and by one
    of how often a feature stands in a text that has it at all: what comes in bursts says less. Then
    words and bigrams get their shares of the variance, and `</s>`, whose mean is one over the
    length, its own: with it the score knows the length of a text.
    """
    from scipy import sparse

    words = len(space.words)
    unit = _least(means)
    blocks = (
        (means[:, :1], recipe.length_share),
        (means[:, 1:words], recipe.word_share),
        (means[:, words:], 1 - recipe.word_share),
    )
    scale = np.concatenate([_weigh(b.tocsr(), unit, recipe, share) for b, share in blocks])
    rows = (means @ sparse.diags(scale)).tocsr()
    return Scaled(scale, rows, np.asarray(rows.mean(axis=0)).ravel())


def _weigh(block: Any, unit: np.ndarray, recipe: Recipe, share: float) -> np.ndarray:
    """Scales float64[columns] of a block of means, for a variance of `share`."""
    from scipy import sparse

    mean = np.asarray(block.mean(axis=0)).ravel()
    texts = np.maximum(1, np.bincount(block.indices, minlength=block.shape[1]))
    times = np.asarray((sparse.diags(1 / unit) @ block).sum(axis=0)).ravel() / texts
    with np.errstate(divide="ignore"):
        scale = np.where(mean > 0, mean**-recipe.power, 0.0)
    scale *= np.maximum(1.0, times) ** -recipe.burst
    rows = block @ sparse.diags(scale)
    centre = np.asarray(rows.mean(axis=0)).ravel()
    square = rows.multiply(rows).sum() / block.shape[0]
    spread = square - centre @ centre
    # texts of one length: what rounding leaves is no variance
    return scale * np.sqrt(share / (spread if spread > 1e-9 * square else 1.0))


def _least(means: Any) -> np.ndarray:
    """float64[texts]: the mean of a feature that stands once, 1/n."""
    return np.minimum.reduceat(means.data, means.indptr[:-1])


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


def classes(
    latent: np.ndarray, truth: np.ndarray, count: int, columns: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A softmax over latent scores, of rank `columns` at most.

    Returns float64[latents, columns] into the columns, float64[labels, columns] out of them, and
    float64[labels] biases. A label without texts gets its neighbour's row and next to no chance.
    """
    from sklearn.linear_model import LogisticRegression

    mean, spread = latent.mean(axis=0), latent.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    model = LogisticRegression(C=_LOOSE, max_iter=2000).fit((latent - mean) / spread, truth)
    present = model.classes_
    coef, intercept = model.coef_, model.intercept_
    if len(present) == 2:  # the library keeps one row for two labels
        coef, intercept = np.concatenate([-coef, coef]) / 2, np.repeat(intercept, 2) * [-0.5, 0.5]
    near = np.array([int(np.abs(present - k).argmin()) for k in range(count)])
    absent = ~np.isin(np.arange(count), present)
    weight = coef[near] / spread
    bias = intercept[near] - weight @ mean - 12.0 * absent
    weight, bias = weight - weight.mean(axis=0), bias - bias.mean()
    left, size, right = np.linalg.svd(weight * spread, full_matrices=False)
    rank = min(columns, int((size > 1e-9 * size[0]).sum()))
    sign = np.sign(left[np.abs(left[:, :rank]).argmax(axis=0), np.arange(rank)])
    into = (right[:rank] / spread).T * sign
    return into, left[:, :rank] * size[:rank] * sign, bias
