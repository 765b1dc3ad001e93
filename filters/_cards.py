"""Cards of heads: what a model's labels are worth, and where its buckets are cut, for ever.

A card is `<name>.json` beside the model:

    {"format": 1,
     "labels": ["low", "high"],                 the model's, in any order
     "expectation": {"low": 0, "high": 1},      score = sum of label value x probability
     "cut_points": [.05, ..., .93],             19, increasing, on the score: buckets 0 to 19
     "calibration": [[.0, .01], ..., [1., .97]],  score -> probability, straight lines between
     "reads": 6000,                             bytes of a text, as `_reading` gives them; 0: all,
     "model_sha256": "..."}                     as it stands

Without `expectation` (then also without cut points and calibration) the labels are kinds, not
degrees: the head names the likeliest. Other fields (the figures of the model card) are not read.

Cut points are absolute, so a new crawl moves no old document (Nemotron-CC, Su et al. 2024, ranks
each crawl anew). A score on a cut point is above it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..documents.errors import FormatError, UsageError
from ._reading import LEAST

FORMAT = 1
BUCKETS = 20
MOST = 1e9  # of a card's numbers either way: sums and float32 scores stay finite
LABEL_BYTES = 32  # of a kind: it is an attribute of each document


def card_path(model: Path) -> Path:
    """The card that belongs to a model's file or folder."""
    return model.with_name(f"{model.name if model.is_dir() else model.stem}.json")


def model_sha256(model: Path) -> str:
    """SHA-256 of a file; of a folder, of a line `<name> <sha256>` for each file below it."""
    if model.is_dir():
        below = sorted(p for p in model.rglob("*") if p.is_file())
        lines = "".join(f"{p.relative_to(model).as_posix()} {model_sha256(p)}\n" for p in below)
        return hashlib.sha256(lines.encode()).hexdigest()
    with model.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def expected(probabilities: np.ndarray, values: Sequence[float]) -> np.ndarray:
    """The expected value, float64[rows], of probabilities [rows, labels] of these values.

    Added label by label: a matrix product would add in an order of its own on each CPU.
    """
    total = np.zeros(len(probabilities), np.float64)
    for column, value in enumerate(values):
        total += probabilities[:, column].astype(np.float64) * value
    return total


@dataclass(frozen=True, slots=True, eq=False)
class Card:
    """A card, its labels in the model's order. `values` is None where labels are kinds."""

    labels: tuple[str, ...]
    values: tuple[float, ...] | None
    cut_points: np.ndarray  # float64[19]
    calibration: np.ndarray  # float64[points, 2]: score, probability
    reads: int = 0  # bytes that the model was trained on, as `_reading.read` gives them; 0: all

    def score(self, probabilities: np.ndarray) -> np.ndarray:
        """The expected value, float64[rows], of probabilities float32[rows, labels]."""
        return expected(probabilities, self.values or ())

    def bucket(self, score: np.ndarray) -> np.ndarray:
        """0 to 19, uint8[rows]: how many cut points a score reaches."""
        return np.searchsorted(self.cut_points, score, side="right").astype(np.uint8)

    def calibrated(self, score: np.ndarray) -> np.ndarray:
        """Probability float32[rows] that the card's calibration gives a score; flat outside it.

        One product and one sum at a time, each rounded: `np.interp` is compiled with fused ones on
        some CPUs.
        """
        x, y = self.calibration[:, 0], self.calibration[:, 1]
        at = np.clip(np.searchsorted(x, score, side="right") - 1, 0, len(x) - 2)
        share = np.clip((score - x[at]) / (x[at + 1] - x[at]), 0.0, 1.0)
        rise = share * (y[at + 1] - y[at])
        return (y[at] + rise).astype(np.float32)


def read_card(model: Path, labels: Sequence[str]) -> Card:
    """Read and check the card of a model with these labels; UsageError names what is wrong."""
    path = card_path(model)
    card = _object(path, model)
    if card.get("format") != FORMAT:
        msg = f"{path}: card format {card.get('format')!r}; this version reads {FORMAT}"
        raise FormatError(msg)
    stated = card.get("labels")
    if not isinstance(stated, list) or sorted(map(str, stated)) != sorted(labels):
        msg = (
            f"{path}: labels {_some(stated)} are not those of {model.name}: {_some(list(labels))}. "
            "Card and model must come from one training"
        )
        raise UsageError(msg)
    found = card.get("model_sha256")
    if found != (real := model_sha256(model)):
        msg = f"{path}: made for a model of sha256 {found}, and {model.name} has {real}; "
        msg += f"made anew: gristmill quality calibrate FIGURES {model}, of figures of this model"
        raise UsageError(msg)
    reads = card.get("reads", 0)
    if (
        not isinstance(reads, int)
        or isinstance(reads, bool)
        or not (reads == 0 or LEAST <= reads <= MOST)
    ):
        msg = f"{path}: reads: expected 0 or bytes of a text from {LEAST}, found {reads!r}"
        raise UsageError(msg)
    worth = card.get("expectation")
    if worth is None:
        if odd := [x for x in labels if not x.isascii() or not 0 < len(x) <= LABEL_BYTES]:
            msg = f"{path}: label {odd[0]!r}: a kind is named in 1 to {LABEL_BYTES} ASCII letters"
            raise UsageError(msg)
        return Card(tuple(labels), None, np.empty(0), np.empty((0, 2)), reads)
    if not isinstance(worth, dict) or sorted(worth) != sorted(labels):
        msg = f"{path}: expectation: expected a number for each of {_some(list(labels))}"
        raise UsageError(msg)
    cuts = _numbers(path, card, "cut_points")
    if cuts.shape != (BUCKETS - 1,) or not (np.diff(cuts) > 0).all():
        msg = (
            f"{path}: cut_points: expected {BUCKETS - 1} increasing numbers, found {cuts.tolist()}"
        )
        raise UsageError(msg)
    table = _numbers(path, card, "calibration")
    if (
        table.ndim != 2  # the shapes of a table first: the rest needs them
        or table.shape[1:] != (2,)
        or len(table) < 2
        or not (np.diff(table[:, 0]) > 0).all()
        or not ((table[:, 1] >= 0) & (table[:, 1] <= 1)).all()
    ):
        msg = (
            f"{path}: calibration: expected two or more [score, probability], scores increasing "
            "and probabilities from 0 to 1"
        )
        raise UsageError(msg)
    values = _numbers(path, {"expectation": [worth[k] for k in labels]}, "expectation")
    if values.ndim != 1:
        msg = f"{path}: expectation: expected one number for each label, found {_some([worth])}"
        raise UsageError(msg)
    return Card(tuple(labels), tuple(values.tolist()), cuts, table, reads)


def _some(labels: Any) -> str:
    if not isinstance(labels, list):
        return repr(labels)
    shown = ", ".join(map(str, labels[:8]))
    return f"[{shown}{', ...' if len(labels) > 8 else ''}] ({len(labels)})"


def _object(path: Path, model: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except OSError as error:
        msg = (
            f"{path}: {error.strerror}: {model.name} needs a card beside it, with its labels' "
            "values, cut points and calibration: gristmill quality calibrate FIGURES MODEL"
        )
        raise UsageError(msg) from error
    except (ValueError, RecursionError) as error:
        msg = f"{path}: not a card: {error}"
        raise UsageError(msg) from error
    if not isinstance(found, dict):
        msg = f"{path}: not a card: expected an object, found {type(found).__name__}"
        raise UsageError(msg)
    return found


def _numbers(path: Path, card: dict[str, Any], name: str) -> np.ndarray:
    """A field as float64, of whatever shape."""
    try:
        found = np.array(card[name], np.float64)
    except (KeyError, TypeError, ValueError) as error:
        msg = f"{path}: {name}: expected numbers, found {card.get(name)!r}"
        raise UsageError(msg) from error
    if not (np.abs(found) <= MOST).all():  # nor is what is no number
        msg = f"{path}: {name}: expected numbers from -{MOST:g} to {MOST:g}"
        raise UsageError(msg)
    return found
