"""A fastText classifier is linear: its logits are the mean, over features, of W_out . row.

So the product is made once for each row of the model instead of once for each text: a row of `dim`
floats becomes one of as many as there are logits, exactly (Joulin et al. 2016, "Bag of Tricks",
section 2; softmax, one-vs-all, negative sampling and the inner nodes of a Huffman tree alike).
Where there are more logits than dimensions, the rows stay and the product is made per text.

A softmax does not change when all logits move together: the first label's becomes 0 and needs no
column. Two labels need one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...documents.errors import UsageError
from . import _kernels_linear
from .parse import HIERARCHICAL, SOFTMAX, Parsed

LABEL = b"__label__"
_NONE = np.empty(0, np.int32)


class Scheme(NamedTuple):
    """How texts become features. Models of one scheme share the pass over the text."""

    ngrams: int  # of words
    bucket: int
    minn: int  # characters; no subwords where maxn is 0
    maxn: int
    # Entries that are labels though they do not look so, and words that look like labels: what a
    # text's words are depends on them. Empty in all models but those with a prefix of their own.
    unusual: frozenset[bytes]


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """How the mean of a text's rows becomes probabilities."""

    labels: tuple[str, ...]  # without `__label__`, in the file's order
    loss: int
    product: np.ndarray | None = None  # float64[columns, logits], of models that do not collapse
    children: tuple[np.ndarray, np.ndarray] = (_NONE, _NONE)  # of a Huffman tree's inner nodes


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """What a model comes to: one row of `columns` numbers for each feature."""

    answer: Answer
    scheme: Scheme
    words: tuple[bytes, ...]
    label_entries: tuple[bytes, ...]
    buckets: np.ndarray | None  # int64[m], ascending: those that have a row; None: all
    values: np.ndarray  # float64 (collapsed) or float32[words + buckets, columns]


def linear(model: Parsed) -> Linear:
    """Collapse a model. UsageError where a row is not finite, as those of some trainings are."""
    n_words = len(model.words)
    used = model.ngrams > 1 or model.maxn > 0
    scheme = Scheme(
        ngrams=max(1, model.ngrams),
        bucket=model.bucket if used else 0,
        minn=model.minn if model.maxn > 0 else 0,
        maxn=model.maxn,
        unusual=frozenset(e for e in model.labels if not e.startswith(LABEL))
        | frozenset(w for w in model.words if w.startswith(LABEL)),
    )
    buckets, order = None, None
    rows = n_words + scheme.bucket
    if model.kept is not None:
        kept = model.kept[np.argsort(model.kept[:, 0], kind="stable")]
        buckets = kept[:, 0]
        order = np.concatenate([np.arange(n_words), n_words + kept[:, 1]])
        rows = model.input.rows
    values, product = _values(model, rows)
    answer = Answer(
        labels=tuple(e.removeprefix(LABEL).decode("utf-8", "replace") for e in model.labels),
        loss=model.loss,
        product=product,
        children=_tree(model.label_counts) if model.loss == HIERARCHICAL else (_NONE, _NONE),
    )
    return Linear(
        answer=answer,
        scheme=scheme,
        words=model.words,
        label_entries=model.labels,
        buckets=buckets,
        values=values if order is None else values[order],
    )


def _values(model: Parsed, rows: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows of the table, and what their sums are still to be multiplied with."""
    out = _finite(model, model.output.whole(), 0, "output").astype(np.float64)
    if model.loss == SOFTMAX:
        out = out[1:] - out[0]
    elif model.loss == HIERARCHICAL:
        out = out[:-1]  # the library keeps a row that no inner node has
    matrix = np.ascontiguousarray(out.T)
    if matrix.shape[1] > matrix.shape[0]:
        values = np.empty((rows, matrix.shape[0]), np.float32)
        for first, block in _blocks(model, rows):
            values[first : first + len(block)] = block
        return values, matrix
    values = np.empty((rows, matrix.shape[1]), np.float64)
    for first, block in _blocks(model, rows):
        _kernels_linear.collapse(block, matrix, values[first : first + len(block)])
    return values, None


def _blocks(model: Parsed, rows: int) -> Iterator[tuple[int, np.ndarray]]:
    """The first `rows` rows of the input matrix, in blocks, each looked over."""
    for first, block in model.input.blocks():
        if first < rows:
            yield first, _finite(model, block[: rows - first], first, "input")


def _finite(model: Parsed, block: np.ndarray, first: int, which: str) -> np.ndarray:
    bad = np.flatnonzero(~np.isfinite(block).all(axis=1))
    if len(bad):
        msg = (
            f"{model.name}: row {first + int(bad[0]):,} of the {which} matrix is not finite. Some "
            "distributions of fastText train on memory that they never set; train it again with "
            "fasttext-community"
        )
        raise UsageError(msg)
    return block


def _tree(counts: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Children of the inner nodes of the library's Huffman tree over label counts.

    Labels come by falling count; two pointers run, one down the labels, one up the inner nodes. Of
    a label and an inner node of one count the inner node is taken.
    """
    labels = len(counts)
    weight = [*counts, *([10**15] * (labels - 1))]
    left, right = np.empty(labels - 1, np.int32), np.empty(labels - 1, np.int32)
    leaf, node = labels - 1, labels
    for i in range(labels, 2 * labels - 1):
        pair = []
        for _ in range(2):
            if leaf >= 0 and weight[leaf] < weight[node]:
                pair.append(leaf)
                leaf -= 1
            else:
                pair.append(node)
                node += 1
        left[i - labels], right[i - labels] = pair
        weight[i] = weight[pair[0]] + weight[pair[1]]
    return left, right
