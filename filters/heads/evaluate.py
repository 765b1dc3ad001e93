"""`gristmill quality evaluate`: every figure of a model card, from labelled texts.

Models are cross-fitted: a text is judged by a model of the same recipe that saw no text of its
site, vocabulary included, written and quantized and loaded as the shipped one. Cut points and
calibration come from the same scores. Intervals are bootstraps over sites; a gain is paired. The
shipped model itself, which saw all the texts, is asked for canaries and under attacks only, and
for texts that were held back, where there are some.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ...documents.errors import UsageError
from .._cards import BUCKETS, expected, model_sha256
from ..fasttext import load
from . import fit, metrics
from .attacks import ATTACKS
from .baselines import ladder, tfidf
from .card import nulls
from .data import NOMINAL, Labelled, Recipe
from .train import as_read, cross_fit, targets_of

FOLDS = 5  # of the evaluation; each costs a training
_LEARNT = 0.3  # Spearman, or accuracy above the commonest label's, that chance does not give
_LENGTHS = ((0, 2000), (2000, 6000), (6000, 12000), (12000, 1 << 40))  # characters
_CANARIES = Path(__file__).with_name("canaries.jsonl")


def evaluate(
    data: Labelled,
    recipe: Recipe,
    model: Path,
    held: Labelled | None,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """The figures of a card, ready for JSON: None for what cannot be told."""
    if (found := load(model).labels) != data.labels:
        msg = f"{model}: labels {', '.join(found)}; the recipe's: {', '.join(data.labels)}"
        raise UsageError(msg + ". Train it anew: gristmill quality train RECIPE")
    say("cross-fitting by site")
    by_site = _crossed(data, recipe, data.sites, "float", "quantized")
    _hold_to_recipe(data, recipe, model, by_site["quantized"])
    say("cross-fitting by text, for the gap")
    at_random = _crossed(data, recipe, np.array(data.ids), "quantized")
    say("baselines")
    rungs = ladder(data, targets_of(data, recipe), fit.folds(data.sites, FOLDS))
    out: dict[str, Any] = {
        "format": 1,
        "recipe": asdict(recipe),
        "data_sha256": data.digest,
        "model_sha256": model_sha256(model),
        "model_bytes": model.stat().st_size,
        "texts": len(data.ids),
        "sites": len(np.unique(data.sites)),
        "labels": list(data.labels),
        "label_counts": np.bincount(data.truth, minlength=len(data.labels)).tolist(),
        "folds": FOLDS,
    }
    if recipe.kind == NOMINAL:
        return nulls(out | _nominal(data, rungs, by_site, at_random))
    graded = _graded(data, recipe, rungs, by_site, at_random)
    return nulls(out | graded | _asked(data, recipe, model, by_site, held, say))


def scores(probabilities: np.ndarray) -> np.ndarray:
    """Expected grade float64[texts]."""
    return expected(probabilities, range(probabilities.shape[1]))


def cut_points(score: np.ndarray) -> list[float]:
    """19 increasing scores, 5 % of the texts between each two; rounded to 1e-6."""
    cuts = np.quantile(score, np.arange(1, BUCKETS) / BUCKETS, method="higher")
    rising = np.maximum.accumulate(np.round(cuts, 6) + 1e-6 * np.arange(len(cuts)))
    return [round(float(c), 6) for c in rising]


def calibration(score: np.ndarray, good: np.ndarray) -> list[list[float]]:
    """Isotonic regression as `[score, probability]`, scores increasing, both rounded to 1e-6."""
    from sklearn.isotonic import IsotonicRegression

    model = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(score, good)
    found: dict[float, float] = {}
    for x, y in zip(model.X_thresholds_, model.y_thresholds_, strict=True):
        found[round(float(x), 6)] = round(float(y), 6)
    if len(found) < 2:
        only = next(iter(found.values()))
        return [[0.0, only], [float(score.max()) + 1.0, only]]
    return [[x, found[x]] for x in sorted(found)]


def run_time_card(found: dict[str, Any], model: Path) -> dict[str, Any]:
    """The card that `filters.quality` reads, of figures of this very model."""
    if (digest := model_sha256(model)) != found["model_sha256"]:
        msg = f"the figures are of a model of sha256 {found['model_sha256']}, {model} has {digest}"
        msg += f"; figures of it: gristmill quality evaluate RECIPE {model} --out FIGURES"
        raise UsageError(msg)
    card = {
        "format": 1,
        "labels": found["labels"],
        "reads": found["recipe"]["reads"],
        "model_sha256": digest,
    }
    if found["recipe"]["kind"] == NOMINAL:
        return card
    return card | {
        "expectation": {label: float(label) for label in found["labels"]},
        "cut_points": found["cut_points"],
        "calibration": found["calibration"],
    }


def _crossed(
    data: Labelled, recipe: Recipe, groups: np.ndarray, *kinds: str
) -> dict[str, np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        return cross_fit(data, recipe, groups, FOLDS, Path(folder), kinds)


def _hold_to_recipe(data: Labelled, recipe: Recipe, model: Path, unseen: np.ndarray) -> None:
    """UsageError where a model that should have seen these labels knows less than `unseen` does.

    `unseen` float64[texts, labels]: of models that did not see them. The figures would be of the
    recipe, and bear the name of a model of another head whose labels are the same. Where labels can
    hardly be learnt nothing tells the two apart.
    """

    def agrees(found: np.ndarray) -> float:
        if recipe.kind == NOMINAL:
            return float((found.argmax(1) == data.truth).mean())
        return metrics.spearman(data.truth, scores(found))

    ours = agrees(load(model).probabilities(as_read(data.texts, recipe)))
    least = agrees(unseen)
    usual = np.bincount(data.truth).max() / len(data.truth) if recipe.kind == NOMINAL else 0.0
    if ours < least and least > usual + _LEARNT:
        how = "accuracy" if recipe.kind == NOMINAL else "Spearman"
        msg = (
            f"{model}: {how} of {ours:.3f} with the recipe's labels, of which it is made; "
            f"models that did not see them have {least:.3f}. It is of another head, or other "
            "data. Train it anew: gristmill quality train RECIPE"
        )
        raise UsageError(msg)


def _row(name: str, truth: np.ndarray, good: np.ndarray, score: np.ndarray, sites: Any) -> Any:
    return {
        "model": name,
        "auc": metrics.auc(good, score),
        "auc_95": metrics.bootstrap(sites, lambda r: metrics.auc(good[r], score[r])),
        "average_precision": metrics.average_precision(good, score),
        "spearman": metrics.spearman(truth, score),
        "spearman_95": metrics.bootstrap(sites, lambda r: metrics.spearman(truth[r], score[r])),
    }


def _gain(
    truth: np.ndarray, good: np.ndarray, ours: np.ndarray, other: np.ndarray, sites: Any
) -> dict[str, Any]:
    """Paired gain over another score, with its interval."""

    def auc(r: np.ndarray) -> float:
        return metrics.auc(good[r], ours[r]) - metrics.auc(good[r], other[r])

    def rho(r: np.ndarray) -> float:
        return metrics.spearman(truth[r], ours[r]) - metrics.spearman(truth[r], other[r])

    every = np.arange(len(truth))
    return {
        "auc": auc(every),
        "auc_95": metrics.bootstrap(sites, auc),
        "spearman": rho(every),
        "spearman_95": metrics.bootstrap(sites, rho),
    }


def _graded(
    data: Labelled, recipe: Recipe, rungs: Any, by_site: Any, at_random: Any
) -> dict[str, Any]:
    truth, good = data.truth, data.truth >= recipe.positive
    score = {kind: scores(found) for kind, found in by_site.items()}
    ours = score["quantized"]
    chance = by_site["quantized"][:, recipe.positive :].sum(axis=1)
    fold = fit.folds(data.sites, FOLDS)
    isotonic = np.empty(len(ours))
    for k in np.unique(fold):
        table = np.array(calibration(ours[fold != k], good[fold != k]))
        isotonic[fold == k] = np.interp(ours[fold == k], table[:, 0], table[:, 1])
    cuts = cut_points(ours)
    bucket = {kind: np.searchsorted(cuts, s, side="right") for kind, s in score.items()}
    random = scores(at_random["quantized"])
    return {
        "ladder": [
            *(_row(name, truth, good, s[:, 0], data.sites) for name, s in rungs.items()),
            _row("head, float", truth, good, score["float"], data.sites),
            _row("head, quantized", truth, good, ours, data.sites),
        ],
        "gain_over_tfidf": _gain(truth, good, ours, rungs["TF-IDF ridge"][:, 0], data.sites),
        "random_split": {
            "auc": metrics.auc(good, random),
            "spearman": metrics.spearman(truth, random),
        },
        "quantized": {
            "spearman_with_float": metrics.spearman(score["float"], ours),
            "largest_difference": float(np.abs(score["float"] - ours).max()),
            "other_bucket": float((bucket["float"] != bucket["quantized"]).mean()),
            "flipped_at_cut": [float(((score["float"] >= c) != (ours >= c)).mean()) for c in cuts],
        },
        "ece": {"of_the_head": metrics.ece(good, chance), "isotonic": metrics.ece(good, isotonic)},
        "brier": {
            "of_the_head": float(((chance - good) ** 2).mean()),
            "isotonic": float(((isotonic - good) ** 2).mean()),
        },
        "reliability": metrics.curve(good, isotonic),
        "cut_points": cuts,
        "calibration": calibration(ours, good),
        "by_type": _groups(data, good, ours, isotonic, data.types),
        "by_length": _groups(data, good, ours, isotonic, _lengths(data)),
    }


def _groups(data: Labelled, good: Any, ours: Any, chance: Any, names: np.ndarray) -> list[Any]:
    """The same figures of some of the pages; calibration in five bins, for they are few."""
    out = []
    for name in sorted(set(names.tolist())):
        rows = np.flatnonzero(names == name)
        found = _row(str(name), data.truth[rows], good[rows], ours[rows], data.sites[rows])
        del found["model"]
        out.append(
            {
                "group": str(name),
                "texts": len(rows),
                "good": float(good[rows].mean()),
                "predicted": float(chance[rows].mean()),
                "ece": metrics.ece(good[rows], chance[rows], bins=5),
                "reliability": metrics.curve(good[rows], chance[rows], bins=5),
            }
            | found
        )
    return out


def _lengths(data: Labelled) -> np.ndarray:
    sizes = np.array([len(t) for t in data.texts])
    names = [f"{a:>6}+ characters" if b >= 1 << 40 else f"{a:>6} to {b}" for a, b in _LENGTHS]
    return np.array(names)[np.searchsorted([b for _, b in _LENGTHS[:-1]], sizes, side="right")]


def _asked(
    data: Labelled,
    recipe: Recipe,
    model: Path,
    by_site: Any,
    held: Labelled | None,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """What the shipped model says of canaries, of rewritten pages, of pages held back."""
    ask = load(model)
    cuts = cut_points(scores(by_site["quantized"]))

    def says(texts: list[str]) -> np.ndarray:
        return scores(ask.probabilities(as_read(texts, recipe)))

    lines = [json.loads(line) for line in _CANARIES.read_text("utf-8").splitlines()]
    buckets = np.searchsorted(cuts, says([x["text"] for x in lines]), side="right")
    sets: dict[str, list[int]] = {}
    for line, bucket in zip(lines, buckets, strict=True):
        sets.setdefault(line["set"], []).append(int(bucket))
    some = list(data.texts[:: max(1, len(data.texts) // 300)])
    plain = says(some)
    before = np.searchsorted(cuts, plain, side="right")
    attacks = []
    for name, rewrite in ATTACKS.items():
        moved = says([rewrite(t) for t in some])
        after = np.searchsorted(cuts, moved, side="right")
        attacks.append(
            {
                "attack": name,
                "texts": len(some),
                "mean_change": float((moved - plain).mean()),
                "mean_buckets": float((after - before).mean()),
                "into_top_quarter": float(((after >= 15) & (before < 15)).mean()),
                "out_of_top_quarter": float(((after < 15) & (before >= 15)).mean()),
            }
        )
    out: dict[str, Any] = {"canaries": sets, "attacks": attacks}
    if held is not None:
        say("TF-IDF ridge of all labelled pages, for those held back")
        good, score = held.truth >= recipe.positive, says(list(held.texts))
        other = tfidf(data.texts, targets_of(data, recipe), held.texts)[:, 0]
        out["held_back"] = {
            "texts": len(held.ids),
            "sites": len(np.unique(held.sites)),
            "shared_sites": int(np.isin(held.sites, data.sites).sum()),
            "ladder": [
                _row("TF-IDF ridge", held.truth, good, other, held.sites),
                _row("shipped model", held.truth, good, score, held.sites),
            ],
            "gain_over_tfidf": _gain(held.truth, good, score, other, held.sites),
        }
    return out


def _nominal(data: Labelled, rungs: Any, by_site: Any, at_random: Any) -> dict[str, Any]:
    chance = by_site["quantized"]
    hit = chance.argmax(1) == data.truth
    flips = (by_site["float"].argmax(1) != chance.argmax(1)).mean()
    pairs = [*rungs.items(), ("head, float", by_site["float"]), ("head, quantized", chance)]
    return {
        "ladder": [_named(name, data, found.argmax(1)) for name, found in pairs],
        "random_split": _named("", data, at_random["quantized"].argmax(1)),
        "quantized": {"flipped": float(flips)},
        "ece": {"of_the_head": metrics.ece(hit, chance.max(1))},
        "reliability": metrics.curve(hit, chance.max(1)),
        "by_type": [
            {"group": label, **_recall(data.truth == k, chance.argmax(1) == k)}
            for k, label in enumerate(data.labels)
        ],
        "by_length": _sizes(data, hit, chance.max(1)),
    }


def _sizes(data: Labelled, hit: np.ndarray, chance: np.ndarray) -> list[Any]:
    out, names = [], _lengths(data)
    for name in sorted(set(names.tolist())):
        rows = np.flatnonzero(names == name)
        some = hit[rows].astype(float)

        def accuracy(r: np.ndarray, some: np.ndarray = some) -> float:
            return float(some[r].mean())

        out.append(
            {
                "group": str(name),
                "texts": len(rows),
                "accuracy": float(some.mean()),
                "accuracy_95": metrics.bootstrap(data.sites[rows], accuracy),
                "ece": metrics.ece(hit[rows], chance[rows], bins=5),
            }
        )
    return out


def _named(name: str, data: Labelled, found: np.ndarray) -> dict[str, Any]:
    truth, count = data.truth, len(data.labels)

    def accuracy(r: np.ndarray) -> float:
        return float((truth[r] == found[r]).mean())

    f1 = [_recall(truth == k, found == k)["f1"] for k in range(count)]
    return {
        "model": name,
        "accuracy": accuracy(np.arange(len(truth))),
        "accuracy_95": metrics.bootstrap(data.sites, accuracy),
        "macro_f1": float(np.mean(f1)),
    }


def _recall(truth: np.ndarray, found: np.ndarray) -> dict[str, float]:
    both = float((truth & found).sum())
    recall, precision = both / max(1, truth.sum()), both / max(1, found.sum())
    return {
        "texts": int(truth.sum()),
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / (precision + recall) if both else 0.0,
    }
