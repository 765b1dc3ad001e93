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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

from ..documents.errors import UsageError, did_you_mean
from .fields import choice, is_number, keys, mapping, parse_tokens, ramp, share, whole

NAMES: Final = ("source", "language", "dump", "license")  # what a document states of itself
#: Attributes without a stage: copies that a document stands for; b of 2^(b-1) < tokens <= 2^b.
OWN: Final = ("cluster_size", "length_bucket")
PACKINGS: Final = ("concat", "best_fit")
MASKS: Final = ("document", "none")
_DERIVED: Final = ("lengths", "by_length")  # of a stage: what `sequence_length` says
EPOCHS: Final = 4  # "up to 4 epochs as good as new": Muennighoff et al. 2023, arXiv 2305.16264


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `min` to `max`, both inclusive; documents without the attribute are outside."""

    min: int | float | None = None
    max: int | float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SliceSpec:
    """Documents that are in every list or range; an attribute that is not named allows all.

    `<stage>.<score>` names any attribute that a stage wrote; it, `cluster_size` and
    `length_bucket` (b of 2^(b-1) < tokens <= 2^b) have a list of values, or `{min, max}`.
    `None` in a list allows documents without the attribute. Token bounds are inclusive and count
    the end-of-document token.
    """

    source: tuple[str | None, ...] | None = None
    language: tuple[str | None, ...] | None = None
    dump: tuple[str | None, ...] | None = None
    license: tuple[str | None, ...] | None = None
    min_tokens: int = 1
    max_tokens: int | None = None
    attributes: Mapping[str, tuple[Any, ...] | Range] = field(
        default_factory=dict, metadata={"as": "<stage>.<score>, cluster_size, length_bucket"}
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class StageSpec:
    """One stage. Tokens are windows x sequence_length, padding included.

    `sequence_length` may be several: a list, by the length of documents, or a mapping, one for each
    slice. Each divides the longest, which is that of a window; a window holds one sequence of it or
    as many shorter ones of one slice as fill it.

    Either `tokens` is the stage's budget and `weights` divide it, or `tokens` states a target for
    each slice and the budget is their sum. A weight may be two, `[0.1, 0.3]`: the share that it
    makes at the stage's start and at its end; between, shares change linearly.

    `at_least` gives slices a share of the stage below which they may not fall, and `max_epochs`
    says how often a token may be read by the stage's end: one number, or one for each slice.
    `packing` is `best_fit` (documents whole where they fit) or `concat` (one behind the other, cut
    at window edges), `mask` is `document` (attention stays inside documents) or `none`.
    """

    name: str
    tokens: int | Mapping[str, int]  # of the stage, or of each slice
    sequence_length: int  # tokens per window: the longest
    # What a list or a mapping in `sequence_length` says; see `lengths`.
    lengths: Mapping[str, int] = field(default_factory=dict, metadata={"as": ""})  # of each slice
    by_length: tuple[int, ...] = field(default=(), metadata={"as": ""})  # ascending
    packing: str = "best_fit"  # or concat
    weights: Mapping[str, tuple[Fraction, Fraction]] = field(default_factory=dict)  # start, end
    at_least: Mapping[str, Fraction] = field(default_factory=dict)  # slice -> share of the stage
    # slice -> times that one token may be read by this stage's end
    max_epochs: Mapping[str, int] = field(metadata={"else": f"`{EPOCHS}`"})
    mask: str = "document"  # attention and targets stay inside documents, or not
    # windows per optimizer step
    global_batch: int = field(metadata={"else": "the mixture's, else `1`"})

    def length_of(self, name: str) -> int:
        """Tokens of a sequence of a slice."""
        return self.lengths.get(name, self.sequence_length)

    @property
    def slices(self) -> list[str]:
        """The stage's slices, sorted."""
        return sorted(self.ramps)

    @property
    def ramps(self) -> Mapping[str, tuple[Fraction, Fraction]]:
        """Weights of each slice, at the start and at the end."""
        if isinstance(self.tokens, Mapping):
            return {name: (Fraction(n), Fraction(n)) for name, n in self.tokens.items()}
        return self.weights

    @property
    def budget(self) -> int:
        """Tokens asked for in all."""
        return self.tokens if isinstance(self.tokens, int) else sum(self.tokens.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class MixSpec:
    """A whole mixture; `MixSpec.parse` reads it from a recipe.

    Beside the fields it may state a `global_batch` for the stages that name none.
    """

    seed: int = 0  # of the order
    block: int = 4096  # windows per ledger block: quotas are exact at block edges
    pad_id: int = 0  # token id of padding; masked out of loss and attention
    slices: Mapping[str, SliceSpec] = field(default_factory=dict)
    stages: tuple[StageSpec, ...] = ()

    @property
    def attributes(self) -> list[str]:
        """Names of the attributes that slices ask for, sorted."""
        return sorted({name for piece in self.slices.values() for name in piece.attributes})

    @staticmethod
    def parse(given: Mapping[str, Any], *, where: str = "mix") -> MixSpec:
        """Read a recipe's mapping; UsageError names the field's path and the nearest known name."""
        top = keys(given, (*_names(MixSpec), "global_batch"), where)
        slices = mapping(top.get("slices"), f"{where}.slices")
        parsed = {str(k): _slice(v, f"{where}.slices.{k}") for k, v in slices.items()}
        if not parsed:
            raise UsageError(f"{where}.slices: found none; expected at least one name: predicate")
        batch = whole(top.get("global_batch", 1), f"{where}.global_batch", 1, 1 << 24)
        stages = top.get("stages")
        if not isinstance(stages, Sequence) or isinstance(stages, str) or not stages:
            raise UsageError(f"{where}.stages: found {stages!r}; expected a list of stages")
        made = tuple(_stage(v, f"{where}.stages[{i}]", parsed, batch) for i, v in enumerate(stages))
        names = [s.name for s in made]
        for i, name in enumerate(names):
            if name in names[:i]:
                raise UsageError(f"{where}.stages[{i}].name: {name!r} is the name of two stages")
        return MixSpec(
            seed=whole(top.get("seed", 0), f"{where}.seed", 0, (1 << 63) - 1),
            block=whole(top.get("block", 4096), f"{where}.block", 1, 1 << 30),
            pad_id=whole(top.get("pad_id", 0), f"{where}.pad_id", 0, (1 << 32) - 1),
            slices=parsed,
            stages=made,
        )


def _names(cls: type) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(cls))


def _slice(value: Any, where: str) -> SliceSpec:
    given = dict(mapping({} if value is None else value, where))
    attributes = {
        str(name): _attribute(given.pop(name), f"{where}.{name}")
        for name in list(given)
        if name in OWN or "." in str(name)
    }
    keys(given, (*NAMES, "min_tokens", "max_tokens", *OWN), where)
    lists = {
        name: _listed(given[name], f"{where}.{name}", (str,)) for name in NAMES if name in given
    }
    low = parse_tokens(given.get("min_tokens", 1), f"{where}.min_tokens")
    high = given.get("max_tokens")
    if high is not None:
        high = parse_tokens(high, f"{where}.max_tokens")
        if high < low:
            raise UsageError(f"{where}: max_tokens {high} is below min_tokens {low}")
    return SliceSpec(**lists, min_tokens=low, max_tokens=high, attributes=attributes)


def _attribute(value: Any, where: str) -> tuple[Any, ...] | Range:
    """A list of values, one value, or a range."""
    if not isinstance(value, Mapping):
        return _listed(value, where, (str, int, float))
    given = keys(value, _names(Range), where)
    bounds = {name: bound for name, bound in given.items() if bound is not None}
    for name, bound in bounds.items():
        if not is_number(bound):
            raise UsageError(f"{where}.{name}: found {bound!r}; expected a number")
    if not bounds:
        raise UsageError(f"{where}: found {dict(value)!r}; expected min, max or both")
    found = Range(**bounds)
    if found.min is not None and found.max is not None and found.max < found.min:
        raise UsageError(f"{where}: max {found.max} is below min {found.min}")
    return found


def _listed(value: Any, where: str, kinds: tuple[type, ...]) -> tuple[Any, ...]:
    """A list of values or null, or one of them; floats are finite."""
    items = [value] if value is None or isinstance(value, kinds) else value
    what = "names" if kinds == (str,) else "names or numbers"
    if not isinstance(items, Sequence) or not items:
        raise UsageError(f"{where}: found {value!r}; expected a list of {what}")
    for item in items:
        if item is not None and not isinstance(item, kinds):
            raise UsageError(f"{where}: found {item!r}; expected {what} or null")
    return tuple(items)


def _stage(value: Any, where: str, slices: Mapping[str, SliceSpec], batch: int) -> StageSpec:
    given = keys(value, [n for n in _names(StageSpec) if n not in _DERIVED], where)
    for name in ("name", "tokens", "sequence_length"):
        if name not in given:
            raise UsageError(f"{where}.{name}: is missing")
    tokens, weights = _budget(given, where, slices)
    known = tokens if isinstance(tokens, Mapping) else weights
    minimum = mapping(given.get("at_least", {}), f"{where}.at_least")
    _of_stage(minimum, known, f"{where}.at_least")
    at_least = {str(n): share(v, f"{where}.at_least.{n}") for n, v in minimum.items()}
    if sum(at_least.values()) > 1:
        total = float(sum(at_least.values()))
        raise UsageError(f"{where}.at_least: comes to {total:g}; expected at most 1 in all")
    caps = given.get("max_epochs", EPOCHS)
    if isinstance(caps, Mapping):
        _of_stage(caps, known, f"{where}.max_epochs")
    epochs = {
        name: whole(
            caps.get(name, EPOCHS) if isinstance(caps, Mapping) else caps,
            f"{where}.max_epochs" + (f".{name}" if isinstance(caps, Mapping) else ""),
            1,
            1 << 20,
        )
        for name in known
    }
    name = given["name"]
    if not isinstance(name, str) or not name:
        raise UsageError(f"{where}.name: found {name!r}; expected a name")
    return StageSpec(
        name=name,
        tokens=tokens,
        **_lengths(given["sequence_length"], known, f"{where}.sequence_length"),
        packing=choice(given.get("packing", "best_fit"), PACKINGS, f"{where}.packing"),
        weights=weights,
        at_least=at_least,
        max_epochs=epochs,
        mask=choice(given.get("mask", "document"), MASKS, f"{where}.mask"),
        global_batch=whole(given.get("global_batch", batch), f"{where}.global_batch", 1, 1 << 24),
    )


def _budget(
    given: Mapping[str, Any], where: str, slices: Mapping[str, SliceSpec]
) -> tuple[int | dict[str, int], dict[str, tuple[Fraction, Fraction]]]:
    """Tokens and weights of a stage: a number and weights, or targets by slice and no weights."""
    tokens = given["tokens"]
    by_slice = isinstance(tokens, Mapping)
    field_, what = ("tokens", "tokens") if by_slice else ("weights", "weight")
    if by_slice and "weights" in given:
        raise UsageError(
            f"{where}.weights: `tokens` has a target for each slice already; state one of the two"
        )
    if not by_slice and "weights" not in given:
        raise UsageError(f"{where}.weights: is missing")
    entries = mapping(given[field_], f"{where}.{field_}")
    if not entries:
        raise UsageError(f"{where}.{field_}: found none; expected slice: {what}")
    for name in entries:
        if name not in slices:
            hint = did_you_mean(str(name), slices)
            raise UsageError(f"{where}.{field_}.{name}: no slice of that name{hint}")
    if by_slice:
        targets = {n: parse_tokens(v, f"{where}.tokens.{n}") for n, v in entries.items()}
        parse_tokens(sum(targets.values()), f"{where}.tokens")
        return targets, {}
    weights = {n: ramp(v, f"{where}.weights.{n}") for n, v in entries.items()}
    for end, word in ((0, "start"), (1, "end")):
        if not any(weight[end] for weight in weights.values()):
            raise UsageError(f"{where}.weights: all are 0 at the stage's {word}")
    return parse_tokens(tokens, f"{where}.tokens"), weights


def _lengths(value: Any, slices: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The fields of a stage that a length, a list of lengths or one by slice gives."""
    if isinstance(value, Mapping):
        _of_stage(value, slices, where)
        if missing := [name for name in slices if name not in value]:
            raise UsageError(f"{where}: slice {missing[0]!r} of the stage has no length")
        lengths = {str(n): whole(v, f"{where}.{n}", 2, 1 << 24) for n, v in value.items()}
        by_length: tuple[int, ...] = ()
        longest = max(lengths.values())
        several = sorted(set(lengths.values()))
    elif isinstance(value, list | tuple):
        several = sorted({whole(v, f"{where}[{i}]", 2, 1 << 24) for i, v in enumerate(value)})
        if not several:
            raise UsageError(f"{where}: found none; expected at least one length")
        lengths, longest = {}, several[-1]
        by_length = tuple(several) if len(several) > 1 else ()
    else:
        return {"sequence_length": whole(value, where, 2, 1 << 24)}
    for length in several:
        if longest % length:
            raise UsageError(
                f"{where}: {length} does not divide the longest, {longest}; a window of {longest} "
                "tokens is one sequence, or as many shorter ones as fill it"
            )
    if len(several) == 1:
        return {"sequence_length": longest}
    return {"sequence_length": longest, "lengths": lengths, "by_length": by_length}


def _of_stage(entries: Mapping[Any, Any], known: Mapping[str, Any], where: str) -> None:
    for name in entries:
        if name not in known:
            hint = did_you_mean(str(name), known)
            raise UsageError(f"{where}.{name}: not a slice of the stage{hint}")
