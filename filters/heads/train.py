"""From a recipe and labelled texts to a model: `gristmill quality train`, and its cross-fitting."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import fit
from .data import NOMINAL, Labelled, Recipe
from .features import Space, Tokens, matrix, vocabulary
from .write import Head


@dataclass(frozen=True, slots=True)
class Read:
    """Texts as token numbers, made once for all the models that are fitted on parts of them."""

    tokens: Tokens
    rows: tuple[np.ndarray, ...]


def read_tokens(texts: tuple[str, ...]) -> Read:
    """Read all texts."""
    tokens = Tokens()
    return Read(tokens, tuple(tokens.read(text) for text in texts))


def train(data: Labelled, recipe: Recipe, read: Read | None = None) -> Head:
    """The head that a recipe makes of labelled texts; `read` holds the texts of all of them."""
    read = read or read_tokens(data.texts)
    words = vocabulary(read.tokens, read.rows, recipe.at_least)
    space = Space(words, recipe.bucket)
    means = matrix(read.tokens, read.rows, space)
    with _one_thread():
        return _fit(data, recipe, space, means)


def _fit(data: Labelled, recipe: Recipe, space: Space, means: Any) -> Head:
    scaled = fit.scaled(means, space, recipe.word_share, recipe.power)
    kernel, size = fit.gram(scaled.matrix)
    targets = targets_of(data, recipe)
    fold = fit.folds(data.sites, recipe.folds)
    held = fit.unseen(kernel, targets, recipe.ridge, fold)
    dual, mean = fit.solve(kernel, targets, recipe.ridge)
    # Centred dual weights sum to 0 over texts only up to the ridge; take the centre off by hand.
    dual = (dual - dual.mean(axis=0)) / size
    scaled_weights = scaled.matrix.T @ dual
    weights = scaled.scale[:, None] * scaled_weights
    bias = mean - scaled.centre @ scaled_weights
    unit = np.abs(weights).max() or 1.0
    rows = np.concatenate([weights / unit, np.ones((space.columns, 1))], axis=1)
    return Head(
        words=tuple(w.encode("utf-8", "replace") for w in space.words),
        bucket=space.bucket,
        labels=data.labels,
        label_counts=tuple(np.bincount(data.truth, minlength=len(data.labels)).tolist()),
        rows=rows.astype(np.float32),
        output=_output(data, recipe, held, unit, bias),
    )


def _output(
    data: Labelled, recipe: Recipe, held: np.ndarray, unit: float, bias: np.ndarray
) -> np.ndarray:
    """float32[labels, scores + 1]: from scores and a one to the logits of the labels."""
    count = len(data.labels)
    if recipe.kind == NOMINAL:
        slope, extra = fit.temperature(held, data.truth)
        return np.concatenate(
            [slope * unit * np.eye(count), (slope * bias + extra)[:, None]], axis=1
        ).astype(np.float32)
    slope, extra = fit.grades(held[:, 0], data.truth, count)
    steps = slope * np.arange(count)
    return np.stack([steps * unit, steps * bias[0] + extra], axis=1).astype(np.float32)


def targets_of(data: Labelled, recipe: Recipe) -> np.ndarray:
    """float64[texts, scores]: the grade, or one column for each name."""
    if recipe.kind == NOMINAL:
        return np.eye(len(data.labels))[data.truth]
    return data.truth[:, None].astype(np.float64)


def cross_fit(
    data: Labelled, recipe: Recipe, groups: np.ndarray, count: int, where: Path
) -> dict[str, np.ndarray]:
    """Probabilities float64[texts, labels] of models that have not seen the text's group.

    `float` and `quantized`: each of `count` models is written to `where` and loaded as users do.
    """
    import pyarrow as pa

    from ..fasttext import load
    from .write import write

    read = read_tokens(data.texts)
    fold = fit.folds(groups, count)
    out = {kind: np.zeros((len(data.texts), len(data.labels))) for kind in ("float", "quantized")}
    for k in range(count):
        seen, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        if not len(test):
            continue
        part = Read(read.tokens, tuple(read.rows[r] for r in seen))
        head = train(data.take(seen), recipe, part)
        texts = pa.array([data.texts[r] for r in test], pa.large_string())
        for kind, chances in out.items():
            path = where / f"{k}.{kind}"
            write(head, path, quantized=kind == "quantized")
            chances[test] = load(path).probabilities(texts)
            path.unlink()
    return out


def _one_thread() -> Any:
    """BLAS on one thread: sums in one order. threadpoolctl comes with scikit-learn."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)
