"""`gristmill quality card`: the model card as Markdown, every figure from `quality evaluate`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from ...documents.errors import UsageError

_WARNINGS = """\
- {labels} The head imitates that judgement, its tastes and its errors included.
- AUC and rank correlation say how well the head imitates the labels. They are **not** training
  value: whether a corpus chosen by it trains a better model, nothing here measures.
- {texts}: see the canaries.
- Short pages are graded low; below 128 tokens a text's length no longer counts against it.
- It is linear in words and pairs of words. Whoever knows it can please it: see the rewritings.
"""
_LABELS = "Who gave the labels is not stated."
_TEXTS = "Of what kind the texts are is not stated; what is unlike them is out of its sight"
_BRIEF = 160  # characters said of an error
_READS = (
    "Of a text the model reads {reads:,} bytes, two thirds from the beginning and one from the "
    "middle, as plain words with repeated ones thinned and the first ones marked "
    "(`filters/_reading.py`); the `quality` "
    "stage and every figure here do so. Asked of a text as it stands, the model judges worse."
)


def read_figures(path: Path) -> dict[str, Any]:
    """What `quality evaluate --out` wrote; UsageError for anything else."""
    with of_figures(path):
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError as error:  # its message would hold the whole file
            msg = "bytes that are no text; a model, whose figures `evaluate` writes to --out?"
            raise ValueError(msg) from error
        found = json.loads(text)
        if not isinstance(found, dict) or found["format"] != 1:
            msg = "no figures of format 1"
            raise ValueError(msg)
        if not found["ladder"] or not found["recipe"]["head"]:
            msg = "no ladder or no name of a head"
            raise ValueError(msg)
        return found


@contextmanager
def of_figures(path: Path) -> Iterator[None]:
    """Where figures are used: what they lack, or have of a wrong type, is a UsageError."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError,
            ValueError) as error:  # fmt: skip
        lacks = isinstance(error, KeyError)
        what = f"no {error}" if lacks else f"{type(error).__name__}: {error}"[:_BRIEF]
        msg = f"{path}: expected the JSON of `gristmill quality evaluate --out`, found {what}"
        raise UsageError(msg) from error


def nulls(found: Any) -> Any:
    """Figures as JSON has them: null for what cannot be told (an AUC where all pages are good)."""
    return _each(found, lambda x: None if isinstance(x, float) and math.isnan(x) else x)


def _each(found: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(found, dict):
        return {k: _each(v, change) for k, v in found.items()}
    return [_each(v, change) for v in found] if isinstance(found, (list, tuple)) else change(found)


def card_of(path: Path) -> str:
    """The card of a file of figures; UsageError where they are no figures, or not all of them."""
    found = read_figures(path)
    with of_figures(path):
        return render(found)


def render(found: dict[str, Any]) -> str:
    """The card."""
    found = _each(found, lambda x: math.nan if x is None else x)
    recipe = found["recipe"]
    head = recipe["head"]
    by, kind = recipe.get("labelled_by"), recipe.get("texts_are")
    warnings = _WARNINGS.format(
        labels=f"The labels were given by {by}." if by else _LABELS, texts=kind or _TEXTS
    )
    parts = [
        f"# The head `{head}`\n\n"
        f"Written by `gristmill quality card` from the figures of `gristmill quality evaluate`. "
        f"A fastText "
        f"model of {found['model_bytes']:,} bytes, sha256 `{found['model_sha256'][:16]}`, "
        f"trained by "
        f"`gristmill quality train` on {found['texts']:,} pages of "
        f"{found['sites']:,} sites (data `{found['data_sha256'][:16]}`). Classes: "
        + ", ".join(
            f"{k} ({n})" for k, n in zip(found["labels"], found["label_counts"], strict=True)
        )
        + f".\n\n{warnings}",
        _READS.format(reads=recipe["reads"]) if recipe["reads"] else "",
        (
            f"Figures below are of {found['folds']} models of the same recipe, each judging "
            f"pages of "
            "sites that it has not seen; intervals are 95 %, by bootstrap over sites."
        ),
    ]
    parts += _nominal(found) if "macro_f1" in found["ladder"][0] else _graded(found)
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def table(names: list[str], rows: list[list[Any]]) -> str:
    """A Markdown table; floats to three places."""
    lines = [names, ["---"] * len(names), *([_cell(c) for c in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.3f}"
    if isinstance(value, (list, tuple)):
        return " to ".join(_cell(v) for v in value)
    return str(value)


def _fifths(row: dict[str, Any]) -> list[str]:
    cells = [f"{chance:.2f}, {share:.2f}" for chance, share, _ in row["reliability"]]
    return cells + ["-"] * (5 - len(cells))


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"


def _graded(found: dict[str, Any]) -> list[str]:
    keys = ["model", "auc", "auc_95", "average_precision", "spearman", "spearman_95"]
    names = ["model", "AUC at >= 3", "95 %", "average precision", "Spearman", "95 %"]
    names[1] = f"AUC at >= {found['recipe']['positive']}"
    last, gain, random = found["ladder"][-1], found["gain_over_tfidf"], found["random_split"]
    flips = found["quantized"]
    parts = [
        "## Against baselines",
        table(names, [[row[k] for k in keys] for row in found["ladder"]]),
        (
            f"Gain of the quantized head over TF-IDF ridge, paired: AUC {gain['auc']:+.3f} "
            f"({_cell(gain['auc_95'])}), Spearman {gain['spearman']:+.3f} "
            f"({_cell(gain['spearman_95'])})."
        ),
        (
            f"With pages of one site on both sides (a random split): AUC {random['auc']:.3f}, "
            f"Spearman "
            f"{random['spearman']:.3f}; the gap to unseen sites is "
            f"{random['auc'] - last['auc']:+.3f} and "
            f"{random['spearman'] - last['spearman']:+.3f}."
        ),
        (
            f"Quantization: Spearman with the float model {flips['spearman_with_float']:.5f}, "
            f"largest "
            f"difference of score {flips['largest_difference']:.4f}, "
            f"{_share(flips['other_bucket'])} "
            f"of pages "
            f"in another bucket; decisions flipped at a cut point, the worst of 19: "
            f"{_share(max(flips['flipped_at_cut']))}, mean "
            f"{_share(sum(flips['flipped_at_cut']) / len(flips['flipped_at_cut']))}."
        ),
    ]
    if "held_back" in found:
        back = found["held_back"]
        gain = back["gain_over_tfidf"]
        parts += [
            (
                f"The shipped model and a TF-IDF ridge of all labelled pages on {back['texts']} "
                f"pages of {back['sites']} sites held back ({back['shared_sites']} pages of sites "
                "seen in training):"
            ),
            table(names, [[row[k] for k in keys] for row in back["ladder"]]),
            (
                f"Gain, paired: AUC {gain['auc']:+.3f} ({_cell(gain['auc_95'])}), Spearman "
                f"{gain['spearman']:+.3f} ({_cell(gain['spearman_95'])})."
            ),
        ]
    ece, brier = found["ece"], found["brier"]
    groups = ["group", "texts", "good", "predicted", "ece", "auc", "auc_95"]
    groups += ["average_precision", "spearman", "spearman_95"]
    titles = ["group", "texts", "good", "predicted", "ECE", "AUC", "95 %"]
    titles += ["average precision", "Spearman", "95 %"]
    parted = ("by_type", "by_length")
    return [
        *parts,
        "## Calibration",
        (
            f"Probability of a grade of {found['recipe']['positive']} or more. Expected "
            f"calibration error "
            f"over 15 bins of equal mass: {ece['of_the_head']:.3f} by the head's own classes, "
            f"{ece['isotonic']:.3f} by isotonic regression fitted on other sites; Brier "
            f"{brier['of_the_head']:.3f} and {brier['isotonic']:.3f}."
        ),
        table(["predicted", "found", "pages"], [list(r) for r in found["reliability"]]),
        "## By page type and length",
        "ECE over five bins. Fewer than 200 pages: read with care.",
        *(table(titles, [[row[k] for k in groups] for row in found[by]]) for by in parted),
        "Calibration of each, in fifths by predicted probability: predicted, found.",
        table(
            ["group", *(f"fifth {n}" for n in range(1, 6))],
            [[row["group"], *_fifths(row)] for by in parted for row in found[by]],
        ),
        "## Buckets",
        (
            "20 buckets by cut points on the expected grade, frozen: bucket = number of cut "
            "points that a "
            "score reaches. They are 5 % quantiles of the labelled pages."
        ),
        "`" + " ".join(f"{c:.4f}" for c in found["cut_points"]) + "`",
        "## Canaries",
        (
            "Buckets that the shipped model gives texts written to be put in their place "
            "(`filters/heads/canaries.jsonl`)."
        ),
        table(
            ["set", "texts", "median bucket", "buckets"],
            [
                [name, len(b), str(median(b)), " ".join(map(str, sorted(b)))]
                for name, b in found["canaries"].items()
            ],
        ),
        "## Rewritings",
        (
            f"{found['attacks'][0]['texts']} of the labelled pages, rewritten without adding "
            f"knowledge; the "
            "shipped model. Top quarter: bucket 15 and above."
        ),
        table(
            ["rewriting", "mean change of score", "of bucket", "into top quarter", "out of it"],
            [
                [
                    row["attack"],
                    f"{row['mean_change']:+.3f}",
                    f"{row['mean_buckets']:+.2f}",
                    _share(row["into_top_quarter"]),
                    _share(row["out_of_top_quarter"]),
                ]
                for row in found["attacks"]
            ],
        ),
    ]


def _nominal(found: dict[str, Any]) -> list[str]:
    keys = ["model", "accuracy", "accuracy_95", "macro_f1"]
    groups = ["group", "texts", "precision", "recall", "f1"]
    last, random = found["ladder"][-1], found["random_split"]
    return [
        "## Against baselines",
        table(
            ["model", "accuracy", "95 %", "macro-F1"],
            [[r[k] for k in keys] for r in found["ladder"]],
        ),
        (
            f"With pages of one site on both sides (a random split): accuracy "
            f"{random['accuracy']:.3f}, "
            f"macro-F1 {random['macro_f1']:.3f}; the gap is "
            f"{random['accuracy'] - last['accuracy']:+.3f} and "
            f"{random['macro_f1'] - last['macro_f1']:+.3f}. Quantization changes the likeliest "
            f"label "
            f"of "
            f"{_share(found['quantized']['flipped'])} of pages."
        ),
        "## By label",
        table(groups, [[row[k] for k in groups] for row in found["by_type"]]),
        "## By length",
        table(
            ["group", "texts", "accuracy", "95 %", "ECE"],
            [
                [row[k] for k in ("group", "texts", "accuracy", "accuracy_95", "ece")]
                for row in found["by_length"]
            ],
        ),
        "## Calibration",
        (
            f"Probability of the likeliest label; expected calibration error "
            f"{found['ece']['of_the_head']:.3f}."
        ),
        table(["predicted", "found", "pages"], [list(r) for r in found["reliability"]]),
    ]
