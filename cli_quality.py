"""`gristmill quality`: the life of a classifier at the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

Recipe = Annotated[Path, typer.Argument(metavar="RECIPE", help="A head's recipe (YAML).")]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model: .bin or .ftz.")]
Figures = Annotated[Path, typer.Argument(metavar="FIGURES", help="Of `evaluate --out`.")]
Data = Annotated[Path, typer.Option(metavar="FOLDER", help="Where the recipe's paths start.")]
Out = Annotated[Path, typer.Option(metavar="FILE", help="Where it goes.")]


def add_commands(app: typer.Typer) -> None:
    """Add the commands to the sub-application `quality`."""
    for command in (annotate, train, quantize, evaluate, calibrate, card):
        app.command()(command)


def annotate(
    documents: Annotated[
        Path, typer.Argument(metavar="TEXTS", help="JSONL with id and text (.gz, .zst).")
    ],
    rubric: Annotated[Path, typer.Option(metavar="FILE", help="The rubric (Markdown).")],
    endpoint: Annotated[str, typer.Option(metavar="URL", help="OpenAI-compatible, up to /v1.")],
    model: Annotated[str, typer.Option(metavar="NAME", help="The model to ask.")],
    out: Out,
    concurrency: Annotated[int, typer.Option(min=1, help="Requests at a time.")] = 8,
    timeout: Annotated[float, typer.Option(help="Seconds without a byte.")] = 120.0,
    price: Annotated[
        tuple[float, float] | None, typer.Option(help="Per million tokens sent and got.")
    ] = None,
    text_field: Annotated[str, typer.Option(help="The field that holds the text.")] = "text",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would cost.")] = False,
) -> None:
    """Have a language model label texts under a rubric; resumes by itself."""
    from .filters.heads import commands

    commands.need_extra()
    asked = commands.asker(endpoint, model, rubric, concurrency, timeout, price)
    tally = commands.annotate(documents, out, asked, text_field, dry_run, _say)
    if tally is not None:
        _emit(tally)
        raise typer.Exit(1 if tally["failed"] else 0)


def train(recipe: Recipe, data: Data, out: Out) -> None:
    """Train a head from its recipe: the same bytes each time."""
    from .filters.heads import commands

    _emit(commands.train(recipe, data, out, _say))


def quantize(model: Model, out: Out) -> None:
    """Quantize a trained head: a byte for each feature and pair of columns."""
    from .filters.heads import commands

    _emit(commands.quantize(model, out))


def evaluate(
    recipe: Recipe,
    model: Model,
    data: Data,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write there too.")] = None,
    held_texts: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Texts that no training saw (JSONL).")
    ] = None,
    held_labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Their labels (CSV).")
    ] = None,
) -> None:
    """Print every figure of the model card: sites held out, baselines, canaries, attacks."""
    from .filters.heads import commands

    found = commands.evaluate(recipe, model, data, commands.pair(held_texts, held_labels), _say)
    if out is not None:
        out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    _emit(found)


def calibrate(figures: Figures, model: Model) -> None:
    """Write a model's cut points and calibration beside it, from its figures."""
    from .filters.heads import commands

    _emit(commands.calibrate(figures, model))


def card(figures: Figures) -> None:
    """Print the model card of evaluated figures, as Markdown."""
    from .filters.heads.card import card_of

    typer.echo(card_of(figures), nl=False)


def _say(line: str) -> None:
    typer.echo(line, err=True)


def _emit(found: dict[str, Any]) -> None:
    typer.echo(json.dumps(found, indent=1))
