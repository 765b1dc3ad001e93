"""Several sequence lengths in one stage: `sequence_length: [4096, 32768]`, or one for each slice.

A position of such a stage has the tokens of the longest length, and holds one sequence of it or as
many of a shorter one as fill it; so steps and ranks stay equal in work, and lengths mix within a
batch. Why: a stage of long windows alone hurt short benchmarks in Nemotron 3 Nano, which went over
to 512k and 4k together; OLMo 3 gives long documents 34 % and replays midtraining for the rest.

With a list, each slice is divided by its documents' lengths: `web@1-4096` has those that 4,096
tokens hold whole, `web@4097+` the longer ones. They share the slice's weight (or target, or
minimum) by their tokens, so the mixture over slices is what was asked, and no length starves.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from fractions import Fraction
from math import lcm
from typing import Any

from ..documents.errors import UsageError
from .quota import UNIT
from .selection import Catalogue
from .spec import MixSpec, SliceSpec, StageSpec

Parts = dict[str, list[tuple[str, int, int]]]  # slice -> its parts: name, length, tokens


def divided(spec: MixSpec, documents: Catalogue) -> tuple[MixSpec, list[Parts]]:
    """The mixture with every stage's list of lengths replaced by slices of one length each.

    And the parts of each stage, with which `by_parts` divides a changed stage; none without a list.
    """
    slices = dict(spec.slices)
    every: list[Parts] = []
    for stage in spec.stages:
        parts: Parts = {name: [] for name in stage.slices} if stage.by_length else {}
        every.append(parts)
        for name in parts:
            low = 1
            for length in stage.by_length:
                last = length == stage.by_length[-1]
                part = _between(spec.slices[name], low, None if last else length)
                part_name = f"{name}@{low}" + ("+" if last else f"-{length}")
                low = length + 1
                rows = documents.select(part) if part is not None else ()
                if part is None or not len(rows):
                    continue
                parts[name].append((part_name, length, int(documents.tokens[rows].sum())))
                if slices.get(part_name, part) != part:
                    raise UsageError(
                        f"slice {part_name!r}: the name is that of a part of {name!r} by length in "
                        f"stage {stage.name!r}; call the slice otherwise"
                    )
                slices[part_name] = part
    stages = tuple(map(by_parts, spec.stages, every))
    return dataclasses.replace(spec, slices=slices, stages=stages), every


def _between(spec: SliceSpec, low: int, high: int | None) -> SliceSpec | None:
    """The documents of a slice with `low` to `high` tokens; None where there can be none."""
    least = max(spec.min_tokens, low)
    bounds = [bound for bound in (spec.max_tokens, high) if bound is not None]
    most = min(bounds) if bounds else None
    if most is not None and most < least:
        return None
    return dataclasses.replace(spec, min_tokens=least, max_tokens=most)


def by_parts(stage: StageSpec, parts: Parts) -> StageSpec:
    """A stage as a recipe states it to one whose slices are the parts; itself without parts."""
    if not parts:
        return stage
    every: list[tuple[str, str, int, Fraction]] = []
    for name, found in parts.items():
        total = sum(tokens for *_, tokens in found)
        every += [(name, part, length, Fraction(some, total)) for part, length, some in found]
        if not found:  # a slice without a document stays as it is: the compiler says so
            every.append((name, name, stage.by_length[-1], Fraction(1)))
    # weights are on any scale: whole numbers keep them exact in the plan
    scale = lcm(*(share.denominator for *_, share in every))
    changed: dict[str, Any] = {
        "lengths": {part: length for _, part, length, _ in every},
        "by_length": (),
        "max_epochs": {part: stage.max_epochs[name] for name, part, *_ in every},
        "at_least": {
            part: Fraction(int(stage.at_least[name] * share * UNIT), UNIT)
            for name, part, _, share in every
            if name in stage.at_least
        },
    }
    if isinstance(stage.tokens, Mapping):
        changed["tokens"] = {
            part: max(1, int(stage.tokens[name] * share)) for name, part, _, share in every
        }
    else:
        changed["weights"] = {
            part: (
                stage.weights[name][0] * share * scale,
                stage.weights[name][1] * share * scale,
            )
            for name, part, _, share in every
        }
    return dataclasses.replace(stage, **changed)
