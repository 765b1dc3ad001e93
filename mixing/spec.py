"""What a mixture is: slices as predicates, stages as budgets and weights. Standard library alone.

A slice is a predicate over documents, independent of stages; slices may overlap, within a stage
and across stages (`long_context` picks long documents that `base` also reads). A document belongs
to every slice that matches it, and repetition is counted by *token*, over all slices, lengths and
stages: `max_epochs: 4` means that no token of the slice is read more than four times up to the
end of that stage, by whichever slice it was read. A token in several slices of a stage may be read
as often as the largest of their caps allows, so `{all: 4, code: 8}` says what it seems to say.

A stage has whole optimizer steps: its budget is rounded down to a multiple of `global_batch`
windows of `sequence_length` tokens, and is one step at least. A batch so never mixes lengths.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ..documents.errors import UsageError, did_you_mean

ATTRIBUTES: Final = ("source", "language", "dump", "license")
PACKINGS: Final = ("concat", "best_fit")
MASKS: Final = ("document", "none")
_SUFFIX: Final = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9, "t": 10**12}
_BINARY: Final = {"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40}


@dataclass(frozen=True, kw_only=True, slots=True)
class SliceSpec:
    """Documents whose attributes stand in the lists; an attribute that is not named allows all.

    `None` in a list allows documents without the attribute. Token bounds are inclusive and count
    the end-of-document token.
    """

    source: tuple[str | None, ...] | None = None
    language: tuple[str | None, ...] | None = None
    dump: tuple[str | None, ...] | None = None
    license: tuple[str | None, ...] | None = None
    min_tokens: int = 1
    max_tokens: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class StageSpec:
    """One stage. `tokens` counts windows x sequence_length, padding included."""

    name: str
    tokens: int
    sequence_length: int  # tokens per window
    packing: str = "best_fit"
    weights: Mapping[str, int | float]  # slice -> share of windows; any positive scale
    max_epochs: Mapping[str, int]  # slice -> times that one token may be read by this stage's end
    mask: str = "document"  # attention and targets stay inside documents, or not
    global_batch: int  # windows per optimizer step


@dataclass(frozen=True, kw_only=True, slots=True)
class MixSpec:
    """A whole mixture; `MixSpec.parse` reads it from a recipe."""

    seed: int = 0
    block: int = 4096  # windows per ledger block: quotas are exact at block edges
    pad_id: int = 0  # token id of padding; masked out of loss and attention
    slices: Mapping[str, SliceSpec] = field(default_factory=dict)
    stages: tuple[StageSpec, ...] = ()

    @staticmethod
    def parse(mapping: Mapping[str, Any], *, where: str = "mix") -> MixSpec:
        """Read a recipe's mapping; UsageError names the field's path and the nearest known name."""
        top = _keys(mapping, (*_names(MixSpec), "global_batch"), where)
        slices = _mapping(top.get("slices"), f"{where}.slices")
        parsed = {str(k): _slice(v, f"{where}.slices.{k}") for k, v in slices.items()}
        if not parsed:
            raise UsageError(f"{where}.slices: found none; expected at least one name: predicate")
        batch = _whole(top.get("global_batch", 1), f"{where}.global_batch", 1, 1 << 24)
        given = top.get("stages")
        if not isinstance(given, Sequence) or isinstance(given, str) or not given:
            raise UsageError(f"{where}.stages: found {given!r}; expected a list of stages")
        stages = tuple(
            _stage(v, f"{where}.stages[{i}]", parsed, batch) for i, v in enumerate(given)
        )
        names = [s.name for s in stages]
        for i, name in enumerate(names):
            if name in names[:i]:
                raise UsageError(f"{where}.stages[{i}].name: {name!r} is the name of two stages")
        return MixSpec(
            seed=_whole(top.get("seed", 0), f"{where}.seed", 0, (1 << 63) - 1),
            block=_whole(top.get("block", 4096), f"{where}.block", 1, 1 << 30),
            pad_id=_whole(top.get("pad_id", 0), f"{where}.pad_id", 0, (1 << 32) - 1),
            slices=parsed,
            stages=stages,
        )


def _names(cls: type) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(cls))


def _mapping(value: Any, where: str) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise UsageError(f"{where}: found {value!r}; expected a mapping")
    return value


def _keys(value: Any, known: Sequence[str], where: str) -> Mapping[str, Any]:
    mapping = _mapping(value, where)
    for key in mapping:
        if key not in known:
            raise UsageError(f"{where}.{key}: unknown field{did_you_mean(str(key), known)}")
    return mapping


def _whole(value: Any, where: str, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise UsageError(f"{where}: found {value!r}; expected a whole number from {low} to {high}")
    return value


def parse_tokens(value: Any, where: str) -> int:
    """`4000000`, `"4M"`, `"1.5B"`, `"64Ki"`: a whole positive number of tokens."""
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d[\d_]*)(?:\.(\d+))?\s*([kmgbt]i?)?\s*", value, re.IGNORECASE)
        unit = (match[3] or "").lower() if match else ""
        scale = _SUFFIX.get(unit) or _BINARY.get(unit)
        if match and scale:
            digits = match[2] or ""
            number = int(match[1] + digits) * scale
            if number % 10 ** len(digits) == 0:
                value = number // 10 ** len(digits)
    if isinstance(value, float) and value.is_integer():  # YAML reads 4e9 as a float
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 1 << 62:
        raise UsageError(
            f"{where}: found {value!r}; expected a number of tokens such as 4000000, '4M', '1.5B'"
        )
    return value


def _slice(value: Any, where: str) -> SliceSpec:
    mapping = _keys({} if value is None else value, _names(SliceSpec), where)
    lists: dict[str, tuple[str | None, ...]] = {}
    for name in ATTRIBUTES:
        if name not in mapping:
            continue
        found = mapping[name]
        items = [found] if found is None or isinstance(found, str) else found
        if not isinstance(items, Sequence) or not items:
            raise UsageError(f"{where}.{name}: found {found!r}; expected a list of names")
        for item in items:
            if item is not None and not isinstance(item, str):
                raise UsageError(f"{where}.{name}: found {item!r}; expected names or null")
        lists[name] = tuple(items)
    low = parse_tokens(mapping.get("min_tokens", 1), f"{where}.min_tokens")
    high = mapping.get("max_tokens")
    if high is not None:
        high = parse_tokens(high, f"{where}.max_tokens")
        if high < low:
            raise UsageError(f"{where}: max_tokens {high} is below min_tokens {low}")
    return SliceSpec(**lists, min_tokens=low, max_tokens=high)


def _stage(value: Any, where: str, slices: Mapping[str, SliceSpec], batch: int) -> StageSpec:
    mapping = _keys(value, _names(StageSpec), where)
    for name in ("name", "tokens", "sequence_length", "weights"):
        if name not in mapping:
            raise UsageError(f"{where}.{name}: is missing")
    weights = _mapping(mapping["weights"], f"{where}.weights")
    if not weights:
        raise UsageError(f"{where}.weights: found none; expected slice: weight")
    for name, weight in weights.items():
        if name not in slices:
            hint = did_you_mean(str(name), slices)
            raise UsageError(f"{where}.weights.{name}: no slice of that name{hint}")
        number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
        if not number or not 0 < weight < float("inf"):
            raise UsageError(
                f"{where}.weights.{name}: found {weight!r}; expected a number above 0 "
                "(leave a slice out to give it nothing)"
            )
    caps = mapping.get("max_epochs", 4)
    if isinstance(caps, Mapping):
        for name in caps:
            if name not in weights:
                hint = did_you_mean(str(name), weights)
                raise UsageError(f"{where}.max_epochs.{name}: not a slice of the stage{hint}")
    epochs = {
        name: _whole(
            caps.get(name, 4) if isinstance(caps, Mapping) else caps,
            f"{where}.max_epochs" + (f".{name}" if isinstance(caps, Mapping) else ""),
            1,
            1 << 20,
        )
        for name in weights
    }
    name = mapping["name"]
    if not isinstance(name, str) or not name:
        raise UsageError(f"{where}.name: found {name!r}; expected a name")
    return StageSpec(
        name=name,
        tokens=parse_tokens(mapping["tokens"], f"{where}.tokens"),
        sequence_length=_whole(mapping["sequence_length"], f"{where}.sequence_length", 2, 1 << 24),
        packing=_choice(mapping.get("packing", "best_fit"), PACKINGS, f"{where}.packing"),
        weights=dict(weights),
        max_epochs=epochs,
        mask=_choice(mapping.get("mask", "document"), MASKS, f"{where}.mask"),
        global_batch=_whole(
            mapping.get("global_batch", batch), f"{where}.global_batch", 1, 1 << 24
        ),
    )


def _choice(value: Any, known: tuple[str, ...], where: str) -> str:
    if value not in known:
        hint = did_you_mean(str(value), known)
        raise UsageError(f"{where}: found {value!r}; expected one of {', '.join(known)}{hint}")
    return str(value)
