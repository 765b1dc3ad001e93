"""Does a plan read a token more often than `max_epochs` allows, and if so, what would mend it.

Reads are counted by token over all slices, lengths and stages (`usage`), so a document that `base`
reads four times and `long_context` once more is seen. When a stage asks for too much, its cures are
searched, not estimated: each is the smallest change of its kind with which the plan compiles up to
that stage, tried with the exact ledger. The exact ledger of a long stage takes minutes to lay out
often, so what is certain either way is settled first by targets: whatever the ledger does, a slice
gets its target rounded down or up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from typing import Literal, NamedTuple

import numpy as np

from ..documents.errors import UsageError
from .lengths import Parts, by_parts
from .plan import Lane
from .quota import Targets, ledger
from .spec import EPOCHS, MixSpec, StageSpec
from .stages import decimal, lanes_of, per_window, stage_shares, stage_windows, weight_text
from .usage import Usage, window_counts

DIGITS = 6  # of a weight that a cure states
CURES = 3  # that a message names

#: How many windows a slice gets: as the ledger has it, or at most or at least that.
Counting = Literal["exact", "most", "least"]


class Change(NamedTuple):
    """Another stage in place of one of the mixture's, as a recipe states it."""

    text: str
    at: int  # number of the stage
    stage: StageSpec


class Short(NamedTuple):
    """A stage that reads tokens too often."""

    stage: int
    slice: int  # of the stage's, divided by length: the one that asks most for its cap
    most: list[int]  # by slice: reads of its most read token of those read too often; 0: none
    times: np.ndarray  # reads of each segment by the stage's end


class Feasibility:
    """The question for one mixture, and for changes of it.

    Changes are made to stages as a recipe states them, so that each can be written there; what
    they read is asked of stages divided by length (`lengths`), with `parts` of each stage.
    """

    def __init__(
        self, asked: MixSpec, parts: Sequence[Parts], lanes: Sequence[Lane], usage: Usage
    ) -> None:
        self._spec, self._parts, self._lanes, self._usage = asked, parts, lanes, usage
        self._stages = list(map(by_parts, asked.stages, parts))
        self._whole = [  # of each stage: part -> the slice that a recipe names
            {part: name for name, found in of.items() for part, *_ in found} for of in parts
        ]
        self._counts: dict[Hashable, list[int]] = {}

    def require(self, ledgers: Sequence[np.ndarray]) -> None:
        """UsageError with the cures when a stage of the mixture, as scheduled, asks too much."""
        for stage, table in zip(self._stages, ledgers, strict=True):
            self._counts[_key(stage, "exact")] = table[-1].tolist()
        short = self._first_short(self._spec.stages)
        if short is not None:
            raise UsageError(self._told(short))

    def _named(self, short: Short, part: int) -> str:
        """The slice of a short stage as a recipe names it."""
        name = self._stages[short.stage].slices[part]
        return self._whole[short.stage].get(name, name)

    def _first_short(
        self, stages: Sequence[StageSpec], counting: Counting = "exact"
    ) -> Short | None:
        """The first of the stages that reads a token too often."""
        usage = self._usage
        times = np.zeros_like(usage.times)
        given = [0] * len(self._lanes)
        for k, stage in enumerate(map(by_parts, stages, self._parts)):
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
        stage = self._stages[short.stage]
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
        cures = list(islice(self._cures(short), CURES))
        single = any(len(changes) == 1 for changes in cures)
        lead = "Any one of these" if single else "No single change was found; any one of these"
        told = "; ".join(self._together(short.stage, changes) for changes in cures)
        return (
            f"stage {stage.name!r}: slice {name!r} lacks tokens. It has {lane.tokens:,} in "
            f"{lane.documents:,} documents ({lane.windows:,} windows of "
            f"{lane.sequence_length:,}); the stage asks for {count:,} windows of it{also}. Some "
            f"tokens would be read {short.most[short.slice]} times; max_epochs is {cap}. "
            f"{lead} would do: {told}."
        )

    def _together(self, k: int, changes: Sequence[Change]) -> str:
        """Changes to be made together; each names its stage when it is not stage `k`."""
        return " and ".join(
            text + (f" in stage {stage.name!r}" if j != k else "") for text, j, stage in changes
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
            for earlier in self._stages[:stage]
            for i, count in zip(
                lanes_of(self._lanes, earlier), self._reads(earlier, "exact"), strict=True
            )
            if i == lane
        )

    def _cures(self, short: Short) -> Iterator[list[Change]]:
        """Changes with which the whole plan compiles: single ones first, then such together."""
        k, last = short.stage, len(self._spec.stages) - 1
        kinds = (self._fewer_tokens, self._lighter)
        alone = [kind(self._spec.stages, short, k, last) for kind in kinds]
        yield from ([change] for change in alone if change is not None)
        higher, shorts = self._higher_caps()
        if len(higher) == 1:
            yield higher
        for j in range(k - 1, -1, -1):
            change = self._fewer_tokens(self._spec.stages, short, j, last)
            if change is not None:
                yield [change]
        lacking = self._lacking(higher, shorts)
        if lacking is not None:
            yield [Change(f"more documents: {lacking}", k, self._spec.stages[k])]
        if len(higher) > 1:
            yield higher
        for kind, change in zip(kinds, alone, strict=True):
            together = self._one_by_one(kind) if change is None else []
            if len(together) > 1:
                yield together

    def _one_by_one(self, kind: Callable[..., Change | None]) -> list[Change]:
        """A change for each stage that is short after those before; none when one has none."""
        stages, changes = list(self._spec.stages), list[Change]()
        while (short := self._first_short(stages)) is not None:
            change = kind(stages, short, short.stage, short.stage)
            if change is None:
                return []
            stages[short.stage] = change.stage
            changes.append(change)
        return changes

    def _short_names(
        self,
        stages: Sequence[StageSpec],
        k: int,
        stage: StageSpec,
        counting: Counting,
        through: int,
    ) -> frozenset[str]:
        """Slices that are short in the first short stage up to `through`, with another stage `k`.

        All of stage `k` when it cannot be laid out: more slices than windows, or minimum shares.
        """
        tried = [*stages[:k], stage, *stages[k + 1 : through + 1]]
        try:
            found = self._first_short(tried, counting)
        except UsageError:
            return frozenset(stage.slices)
        if found is None:
            return frozenset()
        return frozenset(self._named(found, i) for i, most in enumerate(found.most) if most)

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

    def _fewer_tokens(
        self, stages: Sequence[StageSpec], _: Short, k: int, through: int
    ) -> Change | None:
        """Stage `k` with the largest budget, in whole steps, at which all up to `through` fit."""
        stage = stages[k]
        step = stage.sequence_length * stage.global_batch
        steps = stage_windows(stage) // stage.global_batch
        made = self._largest(
            steps - 1,
            lambda n: _cut(stage, n * step),
            lambda tried, counting: not self._short_names(stages, k, tried, counting, through),
        )
        return None if made is None else Change(f"tokens: {_tokens_text(made)}", k, made)

    def _lighter(
        self, stages: Sequence[StageSpec], short: Short, k: int, through: int
    ) -> Change | None:
        """The short slices with less of stage `k`, the others with more."""
        stage = stages[k]
        limit = self._named(short, short.slice)
        if limit in stage.at_least:
            top, scale = _grid(stage.at_least[limit])
            made = self._largest(
                top,
                lambda n: _at_least(stage, limit, Fraction(n) / scale),
                lambda tried, counting: not self._short_names(stages, k, tried, counting, through),
            )
            if made is not None:
                share = decimal(made.at_least[limit])
                return Change(f"at_least: {{{limit}: {share}}}", k, made)
        names = {limit}
        while len(names) < len(stage.slices):
            made = self._scaled(stages, k, limit, names, through)
            if made is None:
                return None
            more = self._short_names(stages, k, made, "exact", through)
            if not more:
                return Change(_weights_text(stage, made, sorted(names)), k, made)
            if not more & set(stage.slices):  # short in a later stage, of what this one has not
                return None
            names |= more & set(stage.slices)
        return None

    def _scaled(
        self,
        stages: Sequence[StageSpec],
        k: int,
        limit: str,
        names: Collection[str],
        through: int,
    ) -> StageSpec | None:
        """Stage `k` with the largest weights of `names`, in proportion, that leave none short."""
        stage = stages[k]
        if isinstance(stage.tokens, Mapping):
            top = stage.tokens[limit] - 1
        else:
            top, _ = _grid(max(stage.weights[limit]))

        def good(tried: StageSpec, counting: Counting) -> bool:
            return not self._short_names(stages, k, tried, counting, through) & set(names)

        return self._largest(top, lambda n: _lighter(stage, limit, names, n), good)

    def _higher_caps(self) -> tuple[list[Change], dict[int, Short]]:
        """Stages with caps as high as their reads, and what is short in each."""
        stages = list(self._spec.stages)
        raised: dict[int, dict[str, int]] = {}
        shorts: dict[int, Short] = {}
        while (found := self._first_short(stages)) is not None:
            k = found.stage
            shorts[k] = found
            caps = raised.setdefault(k, {})
            caps[self._named(found, found.slice)] = found.most[found.slice]
            stages[k] = replace(stages[k], max_epochs={**stages[k].max_epochs, **caps})
        changes = []
        for k, caps in raised.items():
            given = self._spec.stages[k].max_epochs
            # one number for all may stand there: a mapping in its place must say all, as those
            # that it does not name have four
            alike = len(set(given.values())) == 1 and EPOCHS not in given.values()
            stated = {**given, **caps} if alike else caps
            told = {name: str(cap) for name, cap in sorted(stated.items())}
            changes.append(Change(f"max_epochs: {_entries(told)}", k, stages[k]))
        return changes, shorts

    def _lacking(self, higher: Sequence[Change], shorts: Mapping[int, Short]) -> str | None:
        """Tokens that the slices lack whose caps `higher` raised, in full windows."""
        told: dict[str, int] = {}
        alike = ""
        for _, k, raised in higher:
            stage, given = self._stages[k], self._spec.stages[k]
            growth: dict[str, Fraction] = {}  # of a slice: windows needed by windows there
            held: dict[str, list[Lane]] = {}
            for i, number in enumerate(lanes_of(self._lanes, stage)):
                name = self._named(shorts[k], i)
                if raised.max_epochs[name] == given.max_epochs[name]:
                    continue
                reads = self._before(k, number) + self._reads(stage, "exact")[i]
                room = given.max_epochs[name] - self._others(shorts[k], number, reads)
                if room < 1:
                    return None
                lane = self._lanes[number]
                needed = Fraction(-(-reads // room), lane.windows)
                growth[name] = max(growth.get(name, Fraction(1)), needed)
                held.setdefault(name, []).append(lane)
            # parts share their slice's weight by tokens: all grow alike, or shares would move
            for name, lanes in held.items():
                extra = [-(-lane.windows * (growth[name] - 1) // 1) for lane in lanes]
                tokens = sum(n * lane.sequence_length for n, lane in zip(extra, lanes, strict=True))
                told[name] = max(told.get(name, 0), int(tokens))
                alike = ", of lengths as now" if len(lanes) > 1 else alike
        return _entries({name: str(n) for name, n in sorted(told.items())}) + " tokens" + alike


def _key(stage: StageSpec, counting: Counting) -> Hashable:
    """What the windows of a stage's slices depend on."""
    ramps = tuple(stage.ramps[name] for name in stage.slices)
    return counting, stage_windows(stage), ramps, tuple(sorted(stage.at_least.items()))


def _at_least(stage: StageSpec, name: str, share: Fraction) -> StageSpec:
    return replace(stage, at_least={**stage.at_least, name: share})


def _lighter(stage: StageSpec, limit: str, names: Collection[str], n: int) -> StageSpec:
    """The stage with the weight of `limit` at `n` of its grid, and `names` in proportion."""
    rest = {name: low for name, low in stage.at_least.items() if name not in names}
    if isinstance(stage.tokens, Mapping):
        whole = stage.tokens[limit]
        scaled = {m: max(1, stage.tokens[m] * n // whole) for m in names}
        return replace(stage, tokens={**stage.tokens, **scaled}, at_least=rest)
    heaviest = max(stage.weights[limit])
    factor = Fraction(n) / _grid(heaviest)[1] / heaviest
    weights = dict(stage.weights)
    for name in names:
        first, last = stage.weights[name]
        weights[name] = (_down(first * factor), _down(last * factor))
    return replace(stage, weights=weights, at_least=rest)


def _weights_text(stage: StageSpec, made: StageSpec, names: list[str]) -> str:
    if isinstance(made.tokens, Mapping):
        return f"tokens: {_entries({n: str(made.tokens[n]) for n in names})}"
    free = [name for name in names if name in stage.at_least]
    also = f" without at_least for {', '.join(free)}" if free else ""
    return f"weights: {_entries({n: weight_text(made.weights[n]) for n in names})}{also}"


def _cut(stage: StageSpec, tokens: int) -> StageSpec:
    """The stage with a budget of `tokens`; targets of slices in proportion."""
    if isinstance(stage.tokens, int):
        return replace(stage, tokens=tokens)
    total = stage.budget
    scaled = {name: max(1, n * tokens // total) for name, n in stage.tokens.items()}
    largest = max(scaled, key=lambda name: scaled[name])
    scaled[largest] += max(0, tokens - sum(scaled.values()))
    return replace(stage, tokens=scaled)


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
