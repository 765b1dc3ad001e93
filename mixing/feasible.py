"""Does a plan read a token more often than `max_epochs` allows, and if so, what would mend it.

Reads are counted by token over all slices, lengths and stages (`usage`), so a document that `base`
reads four times and `long_context` once more is seen. When a stage asks for too much, its cures are
searched, not estimated: each is the smallest change of its kind with which the plan compiles up to
that stage, tried with the exact ledger. The exact ledger of a long stage takes minutes to lay out
often, so what is certain either way is settled first by targets: whatever the ledger does, a slice
gets its target rounded down or up.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np

from ..documents.errors import UsageError
from .plan import Lane
from .quota import Targets, ledger
from .spec import MixSpec, StageSpec
from .stages import decimal, lanes_of, per_window, stage_shares, stage_windows, weight_text
from .usage import Usage, window_counts

DIGITS = 6  # of a weight that a cure states
CURES = 3  # that a message names

#: How many windows a slice gets: as the ledger has it, or at most or at least that.
Counting = Literal["exact", "most", "least"]


class Short(NamedTuple):
    """A stage that reads tokens too often."""

    stage: int
    slice: int  # of the stage's: the one that asks most for its cap
    most: list[int]  # by slice: reads of its most read token of those read too often; 0: none
    times: np.ndarray  # reads of each segment by the stage's end


class Feasibility:
    """The question for one mixture, and for changes of it."""

    def __init__(self, spec: MixSpec, lanes: Sequence[Lane], usage: Usage) -> None:
        self._spec, self._lanes, self._usage = spec, lanes, usage
        self._counts: dict[Hashable, list[int]] = {}

    def require(self, ledgers: Sequence[np.ndarray]) -> None:
        """UsageError with the cures when a stage of the mixture, as scheduled, asks too much."""
        for stage, table in zip(self._spec.stages, ledgers, strict=True):
            self._counts[_key(stage, "exact")] = table[-1].tolist()
        short = self._first_short(self._spec.stages)
        if short is not None:
            raise UsageError(self._told(short))

    def _first_short(
        self, stages: Sequence[StageSpec], counting: Counting = "exact"
    ) -> Short | None:
        """The first of the stages that reads a token too often."""
        usage = self._usage
        times = np.zeros_like(usage.times)
        given = [0] * len(self._lanes)
        for k, stage in enumerate(stages):
            mine = lanes_of(self._lanes, stage)
            counts = self._reads(stage, counting)
            for lane, count in zip(mine, counts, strict=True):
                first, end = given[lane], given[lane] + count
                read = window_counts(self._spec.seed, self._lanes[lane], first, end)
                times[usage.segments[lane]] += usage.spread(lane, read)
                given[lane] = end
            caps = [stage.max_epochs[name] for name in stage.slices]
            # a token in several slices of the stage may be read as often as the largest cap allows
            allowed = np.zeros_like(times)
            for cap, lane in zip(caps, mine, strict=True):
                of = usage.segments[lane]
                allowed[of] = np.maximum(allowed[of], cap)
            over = np.where(times > allowed, times, 0)
            most = [int(over[usage.segments[lane]].max(initial=0)) for lane in mine]
            if any(most):
                asked = [
                    Fraction(given[lane], self._lanes[lane].windows * cap) if bad else -1
                    for lane, cap, bad in zip(mine, caps, most, strict=True)
                ]
                return Short(k, asked.index(max(asked)), most, times)
        return None

    def _reads(self, stage: StageSpec, counting: Counting) -> list[int]:
        """Sequences of each slice that a stage reads."""
        pairs = zip(self._windows(stage, counting), per_window(stage), strict=True)
        return [count * each for count, each in pairs]

    def _windows(self, stage: StageSpec, counting: Counting) -> list[int]:
        """Windows of each slice of a stage."""
        key = _key(stage, counting)
        if key not in self._counts:
            windows, shares = stage_windows(stage), stage_shares(stage)
            if counting == "exact":
                counts = ledger(shares, windows, self._spec.block)[-1]
            else:
                whole, part = Targets(shares, windows).at(windows)
                counts = whole + part if counting == "most" else whole
            self._counts[key] = counts.tolist()
        return self._counts[key]

    def _told(self, short: Short) -> str:
        """What is short, what there is, what is asked, and what would do."""
        stage = self._spec.stages[short.stage]
        name = stage.slices[short.slice]
        number = lanes_of(self._lanes, stage)[short.slice]
        lane, cap = self._lanes[number], stage.max_epochs[name]
        count = self._reads(stage, "exact")[short.slice]
        before = self._before(short.stage, number)
        own = window_counts(self._spec.seed, lane, 0, before + count)
        most = short.most[short.slice]
        others = most - int(own.max())
        also = f", {before:,} windows of it in earlier stages" if before else ""
        also += (
            f", and other slices or lengths read some of it {others} times" if others > 0 else ""
        )
        cures = []
        for text, stages in self._cures(short):
            later = self._first_short(stages)
            too = f" (stage {stages[later.stage].name!r} is short then)" if later else ""
            cures.append(text + too)
            if len(cures) == CURES:
                break
        return (
            f"stage {stage.name!r}: slice {name!r} lacks tokens. It has {lane.tokens:,} in "
            f"{lane.documents:,} documents ({lane.windows:,} windows of "
            f"{lane.sequence_length:,}); the stage asks for {count:,} windows of it{also}. Some "
            f"tokens would be read {short.most[short.slice]} times; max_epochs is {cap}. "
            f"Any one of these would do: {'; '.join(cures)}."
        )

    def _others(self, short: Short, lane: int, reads: int) -> int:
        """How often other lanes read the token of a lane that they read most."""
        own = window_counts(self._spec.seed, self._lanes[lane], 0, reads)
        times = short.times[self._usage.segments[lane]]
        return int((times - self._usage.spread(lane, own)).max())

    def _before(self, stage: int, lane: int) -> int:
        """Windows of a lane that the stages before read."""
        return sum(
            count
            for earlier in self._spec.stages[:stage]
            for i, count in zip(
                lanes_of(self._lanes, earlier), self._reads(earlier, "exact"), strict=True
            )
            if i == lane
        )

    def _cures(self, short: Short) -> Iterator[tuple[str, list[StageSpec]]]:
        """Changes with which the plan compiles up to the short stage, each with its stages."""
        k = short.stage
        cure = self._fewer_tokens(k, k)
        if cure is not None:
            yield f"tokens: {_tokens_text(cure)}", self._with(k, cure)
        lighter = self._lighter(short)
        if lighter is not None:
            yield lighter[0], self._with(k, lighter[1])
        higher, caps = self._higher_caps(short)
        yield f"max_epochs: {{{caps}}}", self._with(k, higher)
        for j in range(k - 1, -1, -1):
            cure = self._fewer_tokens(j, k)
            if cure is not None:
                earlier = self._spec.stages[j].name
                yield f"tokens: {_tokens_text(cure)} in stage {earlier!r}", self._with(j, cure)
        lacking = self._lacking(k, higher)
        if lacking is not None:
            yield f"more documents: {lacking} tokens", list(self._spec.stages[:k])

    def _with(self, k: int, stage: StageSpec) -> list[StageSpec]:
        stages = list(self._spec.stages)
        stages[k] = stage
        return stages

    def _short_names(
        self, k: int, stage: StageSpec, counting: Counting, through: int
    ) -> frozenset[str]:
        """Slices that are short in the first short stage up to `through`, with another stage `k`.

        All of stage `k` when it cannot be laid out: more slices than windows, or minimum shares.
        """
        stages = self._with(k, stage)[: through + 1]
        try:
            found = self._first_short(stages, counting)
        except UsageError:
            return frozenset(stage.slices)
        if found is None:
            return frozenset()
        names = stages[found.stage].slices
        return frozenset(n for n, most in zip(names, found.most, strict=True) if most)

    @staticmethod
    def _largest(
        most: int, make: Callable[[int], StageSpec], good: Callable[[StageSpec, Counting], bool]
    ) -> StageSpec | None:
        """The stage of the largest number in 1..most that is good; None when there is none."""

        def search(low: int, high: int, counting: Counting) -> int:
            """Largest good number in low..high; `low` is taken to be good."""
            while low < high:
                middle = (low + high + 1) // 2
                if good(make(middle), counting):
                    low = middle
                else:
                    high = middle - 1
            return low

        surely = search(0, most, "most")
        perhaps = search(surely, most, "least")
        best = search(surely, perhaps, "exact")
        return make(best) if best else None

    def _fewer_tokens(self, k: int, through: int) -> StageSpec | None:
        """Stage `k` with the largest budget, in whole steps, at which all up to `through` fit."""
        stage = self._spec.stages[k]
        step = stage.sequence_length * stage.global_batch
        steps = stage_windows(stage) // stage.global_batch
        return self._largest(
            steps - 1,
            lambda n: _cut(stage, n * step),
            lambda tried, counting: not self._short_names(k, tried, counting, through),
        )

    def _lighter(self, short: Short) -> tuple[str, StageSpec] | None:
        """The short slices with less of the stage, the others with more."""
        k = short.stage
        stage = self._spec.stages[k]
        limit = stage.slices[short.slice]
        if limit in stage.at_least:
            top, scale = _grid(stage.at_least[limit])
            made = self._largest(
                top,
                lambda n: _at_least(stage, limit, Fraction(n) / scale),
                lambda tried, counting: not self._short_names(k, tried, counting, k),
            )
            if made is not None:
                return f"at_least: {{{limit}: {decimal(made.at_least[limit])}}}", made
        names = {limit}
        while len(names) < len(stage.slices):
            made = self._scaled(k, limit, names)
            if made is None:
                return None
            more = self._short_names(k, made, "exact", k)
            if not more:
                return _weights_text(stage, made, sorted(names)), made
            names |= more
        return None

    def _scaled(self, k: int, limit: str, names: Collection[str]) -> StageSpec | None:
        """Stage `k` with the largest weights of `names`, in proportion, that leave none short."""
        stage = self._spec.stages[k]
        if isinstance(stage.tokens, Mapping):
            top = stage.tokens[limit] - 1
        else:
            top, _ = _grid(max(stage.weights[limit]))
        return self._largest(
            top,
            lambda n: _lighter(stage, limit, names, n),
            lambda tried, counting: not self._short_names(k, tried, counting, k) & set(names),
        )

    def _higher_caps(self, short: Short) -> tuple[StageSpec, str]:
        """The stage with caps as high as its reads, and these caps."""
        k = short.stage
        stage = self._spec.stages[k]
        raised: dict[str, int] = {}
        found: Short | None = short
        while found is not None:
            raised[stage.slices[found.slice]] = found.most[found.slice]
            stage = dataclasses.replace(stage, max_epochs={**stage.max_epochs, **raised})
            found = self._first_short(self._with(k, stage)[: k + 1])
        return stage, ", ".join(f"{n}: {cap}" for n, cap in sorted(raised.items()))

    def _lacking(self, k: int, higher: StageSpec) -> str | None:
        """Tokens that the slices of stage `k` lack whose caps `higher` raised, in full windows."""
        stage = self._spec.stages[k]
        short = self._first_short(self._spec.stages)
        told: dict[str, str] = {}
        for i, number in enumerate(lanes_of(self._lanes, stage)):
            name = stage.slices[i]
            if short is None or higher.max_epochs[name] == stage.max_epochs[name]:
                continue
            reads = self._before(k, number) + self._reads(stage, "exact")[i]
            room = stage.max_epochs[name] - self._others(short, number, reads)
            if room < 1:
                return None
            windows = -(-reads // room) - self._lanes[number].windows
            told[name] = str(windows * stage.length_of(name))
        return _entries(told)


def _key(stage: StageSpec, counting: Counting) -> Hashable:
    """What the windows of a stage's slices depend on."""
    ramps = tuple(stage.ramps[name] for name in stage.slices)
    return counting, stage_windows(stage), ramps, tuple(sorted(stage.at_least.items()))


def _at_least(stage: StageSpec, name: str, share: Fraction) -> StageSpec:
    return dataclasses.replace(stage, at_least={**stage.at_least, name: share})


def _lighter(stage: StageSpec, limit: str, names: Collection[str], n: int) -> StageSpec:
    """The stage with the weight of `limit` at `n` of its grid, and `names` in proportion."""
    rest = {name: low for name, low in stage.at_least.items() if name not in names}
    if isinstance(stage.tokens, Mapping):
        whole = stage.tokens[limit]
        scaled = {m: max(1, stage.tokens[m] * n // whole) for m in names}
        return dataclasses.replace(stage, tokens={**stage.tokens, **scaled}, at_least=rest)
    heaviest = max(stage.weights[limit])
    factor = Fraction(n) / _grid(heaviest)[1] / heaviest
    weights = dict(stage.weights)
    for name in names:
        first, last = stage.weights[name]
        weights[name] = (_down(first * factor), _down(last * factor))
    return dataclasses.replace(stage, weights=weights, at_least=rest)


def _weights_text(stage: StageSpec, made: StageSpec, names: list[str]) -> str:
    if isinstance(made.tokens, Mapping):
        return f"tokens: {_entries({n: str(made.tokens[n]) for n in names})}"
    free = [name for name in names if name in stage.at_least]
    also = f" without at_least for {', '.join(free)}" if free else ""
    return f"weights: {_entries({n: weight_text(made.weights[n]) for n in names})}{also}"


def _cut(stage: StageSpec, tokens: int) -> StageSpec:
    """The stage with a budget of `tokens`; targets of slices in proportion."""
    if isinstance(stage.tokens, int):
        return dataclasses.replace(stage, tokens=tokens)
    total = stage.budget
    scaled = {name: max(1, n * tokens // total) for name, n in stage.tokens.items()}
    largest = max(scaled, key=lambda name: scaled[name])
    scaled[largest] += max(0, tokens - sum(scaled.values()))
    return dataclasses.replace(stage, tokens=scaled)


def _grid(weight: Fraction) -> tuple[int, Fraction]:
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
    _, scale = _grid(weight)
    return int(weight * scale) / scale


def _entries(values: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{name}: {text}" for name, text in values.items()) + "}"


def _tokens_text(stage: StageSpec) -> str:
    if isinstance(stage.tokens, int):
        return str(stage.tokens)
    return _entries({name: str(n) for name, n in sorted(stage.tokens.items())})
