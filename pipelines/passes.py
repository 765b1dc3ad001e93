"""Passes: the recipe cut at each global stage. A pass runs shard by shard, streaming.

read | base: the source's stages, shared ..., survey of g1 | g1: apply g1, shared ... | g2 ...
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..documents.fingerprint import digest, measure_fingerprint, verdict_fingerprint
from ..documents.schema import FORMAT
from ..documents.stage import Stage
from .steps import Counts, Facts, Step

if TYPE_CHECKING:
    from .recipe import GlobalUse
    from .run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One pass: what it applies first, its stages by source, what it surveys for last."""

    name: str
    applies: GlobalUse | None
    stages: Mapping[str, tuple[Stage, ...]]  # by source
    surveys: GlobalUse | None


class PassStep(Step):
    """`attributes/<pass>/<shard>.parquet`: codes, scores, edits and evidence of every stage."""

    def __init__(self, which: Pass, earlier: list[Pass]) -> None:
        self.which = which
        self.earlier = earlier
        self.name = f"pass-{which.name}"

    def outputs(self, run: Run, key: str) -> tuple[str, ...]:
        """The attributes of the shard."""
        return (attributes(self.which.name, key),)

    def inputs(self, run: Run, key: str) -> dict[str, str]:
        """Documents, all earlier attributes, and the decisions on the shard that this pass applies.

        Not the file of the decisions: most of those on other shards change with every crawl.
        """
        names = [f"documents/{key}.parquet", attributes("read", key)]
        names += [attributes(p.name, key) for p in self.earlier]
        found = run.store.digests(*names)
        if self.which.applies and run.covers(self.which.applies, key):
            found |= run.decided(self.which.applies, key)
        return found

    def fingerprint(self, run: Run, key: str) -> str:
        """All fields of all stages, in order."""
        # Decisions count as an input; loading them for every shard to see what is done takes long.
        own = self.which.stages[run.shards[key].source]
        each = [(measure_fingerprint(s), verdict_fingerprint(s)) for s in own]
        which = self.which.applies
        applied = [*which.stage.reasons, which.stage.revision] if which else []
        return digest([FORMAT, run.versions("pyarrow", "resiliparse"), applied, each])

    def write(self, run: Run, key: str, paths: Mapping[str, Path], facts: Facts) -> Counts:
        """Annotate the shard."""
        (name,) = self.outputs(run, key)
        from .annotate import annotate

        counts = annotate(run, self, key, paths[name], facts)
        return {name: counts}


def attributes(pass_name: str, shard: str) -> str:
    """Name of the attributes that a pass wrote for a shard."""
    return f"attributes/{pass_name}/{shard}.parquet"
