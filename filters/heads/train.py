"""From a recipe and labelled texts to a model: `gristmill quality train`, and its cross-fitting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ...documents.errors import UsageError
from .._reading import read
from . import fit
from .data import NOMINAL, Labelled, Recipe
from .features import Space, Tokens, matrix, space
from .write import Head


@dataclass(frozen=True, slots=True)
class Read:
    """Texts as token numbers, made once for all the models that are fitted on parts of them."""

    tokens: Tokens
    rows: tuple[np.ndarray, ...]


def as_read(texts: Sequence[str], recipe: Recipe) -> pa.Array:
    """The texts as a head of this recipe reads them, large_string[texts]."""
    column = pa.array(texts, pa.large_string())
    return read(column, recipe.reads) if recipe.reads else column


def read_tokens(texts: tuple[str, ...], recipe: Recipe) -> Read:
    """Read all texts."""
    tokens = Tokens()
    return Read(tokens, tuple(tokens.read(t) for t in as_read(texts, recipe).to_pylist()))


def train(data: Labelled, recipe: Recipe, known: Read | None = None) -> Head:
    """The head that a recipe makes of labelled texts; `known` holds the texts of all of them."""
    known = known or read_tokens(data.texts, recipe)
    least = recipe.at_least, recipe.pairs_at_least
    hold_to_folds(data, data.sites, recipe.folds)
    found = space(known.tokens, known.rows, recipe.bucket, *least)
    if found.columns < 2:  # every text has its end
        msg = (
            f"{recipe.head}: no word stands in {recipe.at_least} of {len(data.ids)} texts: nothing "
            "to learn from; label more texts, or lower at_least in the recipe"
        )
        raise UsageError(msg)
    means = matrix(known.tokens, known.rows, found)
    with _one_thread():
        return _fit(data, recipe, found, means)


def hold_to_folds(data: Labelled, groups: np.ndarray, count: int) -> None:
    """UsageError where the texts of all folds but one lack a second label, for any of them."""
    fold = fit.folds(groups, count)
    for k in np.unique(fold):
        seen = np.unique(data.truth[fold != k])
        if len(seen) < 2:
            left = f"the label {data.labels[seen[0]]} alone" if len(seen) else "no text"
            msg = (
                f"{len(data.ids)} texts of {len(np.unique(groups))} sites: without one of {count} "
                f"folds of sites {left} is left to learn from; label more texts, of more sites and "
                "of each label some"
            )
            raise UsageError(msg)


def _fit(data: Labelled, recipe: Recipe, found: Space, means: Any) -> Head:
    scaled = fit.scaled(means, found, recipe)
    kernel, size = fit.gram(scaled.matrix)
    targets = np.concatenate([targets_of(data, recipe), data.beside], axis=1)
    held = fit.unseen(kernel, targets, recipe.ridge, fit.folds(data.sites, recipe.folds))
    into, out_of, bias = fit.classes(held, data.truth, len(data.labels), recipe.columns)
    dual, mean = fit.solve(kernel, targets, recipe.ridge)
    # The kernel is centred, so the dual weights of a column count from their mean.
    dual = (dual - dual.mean(axis=0)) @ into / size
    weights = scaled.matrix.T @ dual
    bias = bias + out_of @ (mean @ into - scaled.centre @ weights)
    weights = weights * scaled.scale[:, None]
    unit = np.abs(weights).max(axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    rows = np.concatenate([weights / unit, np.ones((found.columns, 1))], axis=1)
    return Head(
        words=tuple(w.encode("utf-8", "replace") for w in found.words),
        bucket=found.bucket,
        kept=found.kept,
        labels=data.labels,
        label_counts=tuple(np.bincount(data.truth, minlength=len(data.labels)).tolist()),
        rows=rows.astype(np.float32),
        output=np.concatenate([out_of * unit, bias[:, None]], axis=1).astype(np.float32),
    )


def targets_of(data: Labelled, recipe: Recipe) -> np.ndarray:
    """float64[texts, scores]: the grade and the steps up to `positive`, or one of n kinds."""
    if recipe.kind == NOMINAL:
        return np.eye(len(data.labels))[data.truth]
    steps = np.arange(1, recipe.positive + 1)
    return np.concatenate([data.truth[:, None], data.truth[:, None] >= steps], axis=1).astype(float)


def cross_fit(
    data: Labelled,
    recipe: Recipe,
    groups: np.ndarray,
    count: int,
    where: Path,
    kinds: tuple[str, ...] = ("float", "quantized"),
) -> dict[str, np.ndarray]:
    """Probabilities float64[texts, labels] of models that have not seen the text's group.

    `float` and `quantized`: each of `count` models is written to `where` and loaded as users do.
    """
    from ..fasttext import load
    from .write import write

    hold_to_folds(data, groups, count)
    known = read_tokens(data.texts, recipe)
    fold = fit.folds(groups, count)
    out = {kind: np.zeros((len(data.texts), len(data.labels))) for kind in kinds}
    for k in range(count):
        seen, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        if not len(test):
            continue
        part = Read(known.tokens, tuple(known.rows[r] for r in seen))
        head = train(data.take(seen), recipe, part)
        texts = as_read([data.texts[r] for r in test], recipe)
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
