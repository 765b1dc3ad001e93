"""The ladder that a head must climb: constant, length, surface features, TF-IDF ridge.

Each is fitted on the texts of other groups and scores the rest, vocabulary included. The TF-IDF
ridge takes words and punctuation, 1-2-grams that stand in two texts or more, sublinear counts,
ridge 0.1: one setting, not the best of a search.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import fit
from .data import Labelled

_SENTENCE = re.compile(r"[.!?]\s")
_STOP = frozenset(("the", "of", "and", "to", "in", "is", "are", "that", "by", "which", "as", "for"))
_SELF = frozenset(("you", "your", "we", "our", "us", "i", "my", "me"))
_SIGNS = '?!$(:,"=%/|'


def surface(text: str) -> list[float]:
    """What shows without knowing a word: lengths, shares of signs, capitals, digits, stop words."""
    words = text.split() or [""]
    lengths = np.array([len(w) for w in words])
    sentences = np.array([len(s.split()) for s in _SENTENCE.split(text) if s.strip()] or [0])
    lines = np.array([len(line.split()) for line in text.splitlines() if line.strip()] or [0])
    lower = [w.lower() for w in words]
    count, size = len(words), max(1, len(text))
    return [
        float(np.log(count)),
        float(lengths.mean()),
        float(lengths.std()),
        float(np.log1p(sentences.mean())),
        float(np.log1p(np.median(sentences))),
        float(np.log1p(len(lines))),
        float(np.log1p(lines.mean())),
        float((lines > 20).mean()),
        sum(c.isdigit() for c in text) / size,
        sum(c.isupper() for c in text) / size,
        len(set(lower[:300])) / min(count, 300),
        sum(w in _STOP for w in lower) / count,
        sum(w in _SELF for w in lower) / count,
        *(text.count(sign) / count for sign in _SIGNS),
    ]


def ladder(data: Labelled, targets: np.ndarray, fold: np.ndarray) -> dict[str, np.ndarray]:
    """Scores float64[texts, targets] of each baseline for texts whose fold it has not seen."""
    length = np.array([[np.log1p(len(t))] for t in data.texts])
    kernels = {
        "length": _kernel(np.concatenate([length, length**2], axis=1)),
        "surface features": _kernel(np.array([surface(t) for t in data.texts])),
    }
    out = {"constant": _constant(targets, fold)}
    for name, kernel in kernels.items():
        out[name] = fit.unseen(kernel, targets, 0.1, fold)
    out["TF-IDF ridge"] = _tfidf(data, targets, fold)
    return out


def _kernel(features: np.ndarray) -> np.ndarray:
    spread = features.std(axis=0)
    scaled = (features - features.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return scaled @ scaled.T / features.shape[1]


def _constant(targets: np.ndarray, fold: np.ndarray) -> np.ndarray:
    return np.array([targets[fold != k].mean(axis=0) for k in fold])


def _tfidf(data: Labelled, targets: np.ndarray, fold: np.ndarray) -> np.ndarray:
    out = np.empty_like(targets)
    for k in np.unique(fold):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        seen, rest = ([data.texts[r] for r in rows] for rows in (train, test))
        out[test] = tfidf(seen, targets[train], rest)
    return out


def tfidf(seen: Sequence[str], targets: np.ndarray, rest: Sequence[str]) -> np.ndarray:
    """Scores float64[rest, targets] of a TF-IDF ridge fitted on `seen`."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    model: Any = TfidfVectorizer(
        token_pattern=r"\w+|[^\w\s]",  # noqa: S106 - a pattern, no password
        ngram_range=(1, 2),
        min_df=2,
        sublinear_tf=True,
    )
    known = model.fit_transform(seen)
    dual, mean = fit.solve(np.asarray((known @ known.T).todense()), targets, 0.1)
    return np.asarray((model.transform(rest) @ known.T).todense()) @ dual + mean
