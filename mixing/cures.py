"""What would mend a mixture that asks too much of a slice: searched, not estimated.

Each cure is the smallest change of its kind with which the plan compiles up to the stage that is
short, tried with the exact ledger; what is certain either way is settled first by targets
(`reads.Counting`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from ..documents.errors import UsageError
from .changes import (
    Change,
    at_least,
    cut,
    entries,
    grid,
    lighter,
    tokens_text,
    weights_text,
)
from .plan import Lane
from .reads import Counting, Reads, Short
from .spec import EPOCHS, StageSpec
from .stages import decimal, lanes_of, stage_windows
from .usage import window_counts


class Cures:
    """The search for one mixture."""

    def __init__(self, reads: Reads) -> None:
        self._reads, self._spec = reads, reads.spec

    def search(self, short: Short) -> Iterator[list[Change]]:
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
        while (short := self._reads.first_short(stages)) is not None:
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
            found = self._reads.first_short(tried, counting)
        except UsageError:
            return frozenset(stage.slices)
        if found is None:
            return frozenset()
        return frozenset(self._reads.named(found, i) for i, most in enumerate(found.most) if most)

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
            lambda n: cut(stage, n * step),
            lambda tried, counting: not self._short_names(stages, k, tried, counting, through),
        )
        return None if made is None else Change(f"tokens: {tokens_text(made)}", k, made)

    def _lighter(
        self, stages: Sequence[StageSpec], short: Short, k: int, through: int
    ) -> Change | None:
        """The short slices with less of stage `k`, the others with more."""
        stage = stages[k]
        limit = self._reads.named(short, short.slice)
        if limit in stage.at_least:
            top, scale = grid(stage.at_least[limit])
            made = self._largest(
                top,
                lambda n: at_least(stage, limit, Fraction(n) / scale),
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
                return Change(weights_text(stage, made, sorted(names)), k, made)
            more = more & set(stage.slices) - names
            if not more:  # short elsewhere, of what this stage has not or has lightened
                return None
            names |= more
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
            top, _ = grid(max(stage.weights[limit]))

        def good(tried: StageSpec, counting: Counting) -> bool:
            return not self._short_names(stages, k, tried, counting, through) & set(names)

        return self._largest(top, lambda n: lighter(stage, limit, names, n), good)

    def _higher_caps(self) -> tuple[list[Change], dict[int, Short]]:
        """Stages with caps as high as their reads, and what is short in each."""
        stages = list(self._spec.stages)
        raised: dict[int, dict[str, int]] = {}
        shorts: dict[int, Short] = {}
        while (found := self._reads.first_short(stages)) is not None:
            k = found.stage
            shorts[k] = found
            caps = raised.setdefault(k, {})
            caps[self._reads.named(found, found.slice)] = found.most[found.slice]
            stages[k] = replace(stages[k], max_epochs={**stages[k].max_epochs, **caps})
        changes = []
        for k, caps in raised.items():
            given = self._spec.stages[k].max_epochs
            # one number for all may stand there: a mapping in its place must say all, as those
            # that it does not name have four
            alike = len(set(given.values())) == 1 and EPOCHS not in given.values()
            stated = {**given, **caps} if alike else caps
            told = {name: str(cap) for name, cap in sorted(stated.items())}
            changes.append(Change(f"max_epochs: {entries(told)}", k, stages[k]))
        return changes, shorts

    def _lacking(self, higher: Sequence[Change], shorts: Mapping[int, Short]) -> str | None:
        """Tokens that the slices lack whose caps `higher` raised, in full windows."""
        told: dict[str, int] = {}
        alike = ""
        for _, k, raised in higher:
            stage, given = self._reads.stages[k], self._spec.stages[k]
            growth: dict[str, Fraction] = {}  # of a slice: windows needed by windows there
            held: dict[str, list[Lane]] = {}
            for i, number in enumerate(lanes_of(self._reads.lanes, stage)):
                name = self._reads.named(shorts[k], i)
                if raised.max_epochs[name] == given.max_epochs[name]:
                    continue
                reads = self._reads.before(k, number) + self._reads.of(stage, "exact")[i]
                room = given.max_epochs[name] - self._others(shorts[k], number, reads)
                if room < 1:
                    return None
                lane = self._reads.lanes[number]
                needed = Fraction(-(-reads // room), lane.windows)
                growth[name] = max(growth.get(name, Fraction(1)), needed)
                held.setdefault(name, []).append(lane)
            # parts share their slice's weight by tokens: all grow alike, or shares would move
            for name, lanes in held.items():
                extra = [-(-lane.windows * (growth[name] - 1) // 1) for lane in lanes]
                tokens = sum(n * lane.sequence_length for n, lane in zip(extra, lanes, strict=True))
                told[name] = max(told.get(name, 0), int(tokens))
                alike = ", of lengths as now" if len(lanes) > 1 else alike
        return entries({name: str(n) for name, n in sorted(told.items())}) + " tokens" + alike

    def _others(self, short: Short, lane: int, reads: int) -> int:
        """How often other lanes read the token of a lane that they read most."""
        own = window_counts(self._spec.seed, self._reads.lanes[lane], 0, reads)
        times = short.times[self._reads.usage.segments[lane]]
        return int((times - self._reads.usage.spread(lane, own)).max())
