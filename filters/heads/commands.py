"""What `gristmill quality` does, for the command line and for scripts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...documents.errors import UsageError
from .data import Labelled, Recipe, read_labelled, read_recipe

Say = Callable[[str], None]


def need_extra() -> None:
    """UsageError where the `quality` extra is not installed."""
    try:
        import requests  # noqa: F401
        import scipy  # noqa: F401
        import sklearn  # noqa: F401
    except ImportError as error:
        msg = f"{error.name} is missing; pip install 'gristmill[quality]'"
        raise UsageError(msg) from error


def read(recipe: Path, data: Path) -> tuple[Recipe, Labelled]:
    """A recipe and the texts that it names."""
    need_extra()
    found = read_recipe(recipe)
    return found, read_labelled(data / found.texts, data / found.labels, found)


def _tell(plan: Recipe, texts: Labelled, say: Say) -> None:
    """What there is to learn from, and what was left out."""
    say(f"{plan.head}: {len(texts.ids)} texts of {len(set(texts.sites))} sites")
    if texts.unlabelled:
        say(f"left out: {texts.unlabelled} texts without a label; `annotate` asks for them again")


def train(recipe: Path, data: Path, out: Path, say: Say) -> dict[str, Any]:
    """Train a head and write it dense."""
    from .train import train as fit
    from .write import write

    plan, texts = read(recipe, data)
    _tell(plan, texts, say)
    write(fit(texts, plan), out, quantized=False)
    return described(out)


def quantize(model: Path, out: Path) -> dict[str, Any]:
    """Quantize a head that `train` wrote."""
    need_extra()
    from .write import read_dense, write

    write(read_dense(model), out, quantized=True)
    return described(out)


def calibrate(figures: Path, model: Path) -> dict[str, Any]:
    """Write the card that the quality stage reads beside the model that the figures are of."""
    from .._cards import card_path
    from .card import of_figures, read_figures
    from .evaluate import run_time_card

    found = read_figures(figures)
    with of_figures(figures):
        card = run_time_card(found, model)
    text = json.dumps(card, indent=1, ensure_ascii=False)
    card_path(model).write_text(text + "\n", encoding="utf-8")
    return {"card": str(card_path(model)), "model_sha256": card["model_sha256"]}


def evaluate(
    recipe: Path, model: Path, data: Path, held: tuple[Path, Path] | None, say: Say
) -> dict[str, Any]:
    """Every figure of the card."""
    from .evaluate import evaluate as judge

    plan, texts = read(recipe, data)
    _tell(plan, texts, say)
    back = read_labelled(*held, plan) if held else None
    return judge(texts, plan, model, back, say)


def annotate(documents: Path, out: Path, asker: Any, text_field: str, dry: bool, say: Say) -> Any:
    """Ask for labels; the tally, or None where nothing was to be sent."""
    from . import annotate as asking

    texts = list(asking.read_documents(documents, text_field))
    rest, done = asking.pending(texts, out, asker)
    sent, got, cost = asking.estimate(rest, asker)
    price = "price unknown: give --price" if cost is None else f"about {cost:.2f}"
    say(
        f"{len(rest)} texts to label, {done} done; about {sent:,} tokens to send and {got:,} to "
        f"get "
        f"(estimate), {price}"
    )
    if dry:
        return None
    tally = asking.annotate(rest, out, asker, say)
    tally.reused = done
    return asdict(tally)


def described(path: Path) -> dict[str, Any]:
    """A model's path, size and digest."""
    from .._cards import model_sha256

    return {"model": str(path), "bytes": path.stat().st_size, "sha256": model_sha256(path)}


def asker(
    endpoint: str,
    model: str,
    rubric: Path,
    concurrency: int,
    timeout: float,
    price: tuple[float, float] | None,
) -> Any:
    """Whom to ask, as the command line says."""
    from .annotate import Asker
    from .rubric import read_rubric

    return Asker(
        endpoint=endpoint,
        model=model,
        rubric=read_rubric(rubric),
        concurrency=concurrency,
        timeout=timeout,
        price_in=price[0] if price else None,
        price_out=price[1] if price else None,
    )


def pair(texts: Path | None, labels: Path | None) -> tuple[Path, Path] | None:
    """Texts and labels that were held back: both or neither."""
    if (texts is None) != (labels is None):
        msg = "--held-texts and --held-labels belong together; one of them is missing"
        raise UsageError(msg)
    return (texts, labels) if texts and labels else None
