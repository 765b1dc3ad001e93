"""A task is three short strings: run folder, step, key. Executors hand out nothing else."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from ..documents.errors import UsageError, did_you_mean
from ..documents.exchange import FetchingRound
from .accounts import PassAccountStep, ReadAccountStep
from .corpus import CorpusStep, MixStep, TokensStep
from .fetch import FetchStep, WantedStep
from .passes import Pass, PassStep
from .read import ReadStep
from .rounds import DecideStep, GatherStep, ScatterStep
from .run import PLACE, RECIPE, REMOVALS, Run
from .steps import ManifestStep, Step


def steps_of(run: Run) -> list[Step]:
    """All steps of a run in order."""
    found: list[Step] = [ReadStep(), ReadAccountStep()]
    earlier: list[Pass] = []
    for which in run.passes:
        one = PassStep(which, list(earlier))
        found += [one, PassAccountStep(which, list(earlier))]
        earlier.append(which)
        if which.surveys is not None:
            found += _global(which, list(earlier), ManifestStep(one))
    return [*found, CorpusStep(), TokensStep(), MixStep()]


def _global(which: Pass, through: list[Pass], surveyed: ManifestStep) -> list[Step]:
    """The steps of the global stage that a pass surveyed for."""
    use = which.surveys
    if use is None:
        return []
    scatter = ScatterStep(use, which, through, surveyed)
    before = ManifestStep(scatter)
    found: list[Step] = [surveyed, scatter, before]
    earlier: list[tuple[GatherStep, ManifestStep]] = []
    for number in range(len(use.stage.rounds)):
        one = GatherStep(scatter, number, before)
        one.earlier = list(earlier)
        if isinstance(one.step, FetchingRound):
            wanted = WantedStep(one)
            asked = ManifestStep(wanted)
            one.fetch = FetchStep(wanted, asked, through)
            one.fetched = ManifestStep(one.fetch)
            found += [wanted, asked, one.fetch, one.fetched]
        before = ManifestStep(one)
        earlier.append((one, before))
        found += [one, before]
    return [*found, DecideStep(one, before)]


def perform(run_dir: str, step: str, key: str) -> None:
    """Do one task, in whatever process; its outputs are committed or nothing is."""
    run = _opened(run_dir, *_stamps(Path(run_dir)))
    steps = {s.name: s for s in steps_of(run)}
    if step not in steps:
        msg = f"no step {step!r} in {run_dir}{did_you_mean(step, steps)}"
        raise UsageError(msg)
    steps[step].make(run, key)


def _stamps(folder: Path) -> tuple[int, ...]:
    """When recipe, place, manifest, removals last changed: a worker outlives a change of them."""
    names = (RECIPE, PLACE, "manifest.jsonl")
    removed = folder / REMOVALS
    stamp = removed.stat().st_mtime_ns if removed.is_file() else 0
    return (*((folder / n).stat().st_mtime_ns for n in names), stamp)


@lru_cache(maxsize=2)
def _opened(run_dir: str, *stamps: int) -> Run:
    del stamps
    return Run(Path(run_dir))
