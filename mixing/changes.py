"""Changes of a stage that a recipe can state: other tokens, weights, minimum shares."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from .spec import StageSpec
from .stages import weight_text

DIGITS = 6  # of a weight that a cure states


class Change(NamedTuple):
    """Another stage in place of one of the mixture's, as a recipe states it."""

    text: str
    at: int  # number of the stage
    stage: StageSpec


def at_least(stage: StageSpec, name: str, share: Fraction) -> StageSpec:
    """The stage with another minimum share of a slice."""
    return replace(stage, at_least={**stage.at_least, name: share})


def lighter(stage: StageSpec, limit: str, names: Collection[str], n: int) -> StageSpec:
    """The stage with the weight of `limit` at `n` of its grid, and `names` in proportion."""
    rest = {name: low for name, low in stage.at_least.items() if name not in names}
    if isinstance(stage.tokens, Mapping):
        whole = stage.tokens[limit]
        scaled = {m: max(1, stage.tokens[m] * n // whole) for m in names}
        return replace(stage, tokens={**stage.tokens, **scaled}, at_least=rest)
    heaviest = max(stage.weights[limit])
    factor = Fraction(n) / grid(heaviest)[1] / heaviest
    weights = dict(stage.weights)
    for name in names:
        first, last = stage.weights[name]
        weights[name] = (_down(first * factor), _down(last * factor))
    return replace(stage, weights=weights, at_least=rest)


def weights_text(stage: StageSpec, made: StageSpec, names: list[str]) -> str:
    """What `lighter` made of a stage, as a recipe states it."""
    if isinstance(made.tokens, Mapping):
        return f"tokens: {entries({n: str(made.tokens[n]) for n in names})}"
    free = [name for name in names if name in stage.at_least]
    also = f" without at_least for {', '.join(free)}" if free else ""
    return f"weights: {entries({n: weight_text(made.weights[n]) for n in names})}{also}"


def cut(stage: StageSpec, tokens: int) -> StageSpec:
    """The stage with a budget of `tokens`; targets of slices in proportion."""
    if isinstance(stage.tokens, int):
        return replace(stage, tokens=tokens)
    total = stage.budget
    scaled = {name: max(1, n * tokens // total) for name, n in stage.tokens.items()}
    largest = max(scaled, key=lambda name: scaled[name])
    scaled[largest] += max(0, tokens - sum(scaled.values()))
    return replace(stage, tokens=scaled)


def grid(weight: Fraction) -> tuple[int, Fraction]:
    """How many numbers of six digits are below a weight at its scale, and that scale."""
    scale = Fraction(1)
    while weight * scale < 10 ** (DIGITS - 1):
        scale *= 10
    while weight * scale >= 10**DIGITS:
        scale /= 10
    return -int(-weight * scale // 1) - 1, scale


def _down(weight: Fraction) -> Fraction:
    """A weight with six digits, rounded down."""
    if not weight:
        return weight
    _, scale = grid(weight)
    return int(weight * scale) / scale


def entries(values: Mapping[str, str]) -> str:
    """A mapping as YAML writes it on one line."""
    return "{" + ", ".join(f"{name}: {text}" for name, text in values.items()) + "}"


def tokens_text(stage: StageSpec) -> str:
    """The budget of a stage, as a recipe states it."""
    if isinstance(stage.tokens, int):
        return str(stage.tokens)
    return entries({name: str(n) for name, n in sorted(stage.tokens.items())})
