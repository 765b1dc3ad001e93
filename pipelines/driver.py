"""The driver: one command that makes what is missing, in order, and says what it could not.

    prepare -> manifest -> for each step: which keys are not done -> executor -> look again -> books

A shard that fails is reported and left out of the shard-wise steps that follow; the next step that
needs all shards stops the run (exit 3), unless the shard is named by `--without`, which books it.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..documents.errors import StopError, UsageError, did_you_mean
from ..documents.fingerprint import canonical
from ..mixing.spec import MixSpec
from .catalog import check_attributes
from .manifest import find_inputs, make_manifest
from .prune import prune
from .recipe import Recipe, load_recipe
from .run import FAILED, PLACE, RECIPE, Run, prepare, put
from .steps import Step
from .store import sweep, write_whole
from .tasks import steps_of

if TYPE_CHECKING:
    from .executors import Executor, Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a `run` command came to."""

    made: dict[str, int] = field(default_factory=dict)  # step -> keys made by this command
    kept: dict[str, int] = field(default_factory=dict)  # step -> keys that were valid already
    damage: list[str] = field(default_factory=list)  # sources over their `max_loss`
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """0, or 1 when a source lost more than the recipe declares."""
        return 1 if self.damage else 0


def run_recipe(
    recipe_path: Path,
    out: Path,
    *,
    executor: Executor,
    root: Path | None = None,
    fresh: bool = False,
    without: list[str] | None = None,
    say: Callable[[str], None] = lambda line: print(line, file=sys.stderr),  # noqa: T201 - talk
) -> Outcome:
    """Make everything that the recipe asks for and that is not there yet."""
    started = time.perf_counter()
    recipe = load_recipe(recipe_path, root=root)
    inputs = find_inputs(recipe, say)  # a wrong path shows before anything is written, or deleted
    _load_files(recipe, say)
    if recipe.mixture:
        check_attributes(recipe, MixSpec.parse(recipe.mixture, where="mixture"))
    _check_turns(recipe)
    if fresh:
        _start_over(out)
    run = prepare(recipe, recipe_path.parent, out, without=without or [])
    sweep(out)
    run = _with_manifest(run, recipe, inputs, recipe_path.parent, without or [])
    return complete(run, executor, say, started)


def complete(
    run: Run, executor: Executor, say: Callable[[str], None], started: float | None = None
) -> Outcome:
    """Make what a prepared run lacks, and its books."""
    started = time.perf_counter() if started is None else started
    lock(run)
    made: dict[str, int] = {}
    kept: dict[str, int] = {}
    for step in steps_of(run):
        _one_step(run, step, executor, made, kept, say)
    if run.failed:
        raise StopError(_missing(run))
    run.store.path(FAILED).unlink(missing_ok=True)
    prune(run)
    from .books import build_ledger, over_limit

    build_ledger(run)
    return Outcome(
        made=made, kept=kept, damage=over_limit(run), seconds=time.perf_counter() - started
    )


def _load_files(recipe: Recipe, say: Callable[[str], None]) -> None:
    """Read the lists that stages name; UsageError for one that is garbled."""
    stages = [stage for source in recipe.sources for stage in source.stages]
    said: set[str] = set()
    for stage in [*stages, *recipe.shared]:
        for note in getattr(stage, "load", tuple)():
            line = f"{stage.name}: {note}"
            if line not in said:
                say(line)
            said.add(line)


def _check_turns(recipe: Recipe) -> None:
    """UsageError for a control token that the tokenizer does not have, before any work."""
    if recipe.turns is not None:
        from ..mixing.encoder import load_encoder
        from ..mixing.layout import Layout

        Layout(load_encoder(recipe.tokenizer, **recipe.tokenizer_options), recipe.turns)


def _start_over(out: Path) -> None:
    """Delete a run folder; UsageError when it is not one."""
    if out.exists():
        if not out.is_dir():
            msg = f"--fresh: {out} is a file; expected a run folder"
            raise UsageError(msg)
        if not (out / PLACE).is_file() and any(out.iterdir()):
            msg = f"--fresh: {out} holds files but no run; delete it by hand if that is meant"
            raise UsageError(msg)
        shutil.rmtree(out)


def _with_manifest(
    run: Run, recipe: Recipe, inputs: Mapping[str, list[str]], folder: Path, without: list[str]
) -> Run:
    shards = make_manifest(recipe, run.store, inputs)
    names = [s.name for s in shards]
    for name in without:
        if name not in names:
            msg = f"--without {name}: no such shard{did_you_mean(name, names)}"
            raise UsageError(msg)
    return prepare(recipe, folder, run.store.root, without=without)


def lock(run: Run) -> None:
    """`lock.json`: everything resolved that bears on the result."""
    names = [
        "gristmill",
        "pyarrow",
        "numpy",
        "numba",
        "resiliparse",
        "fastokens",
        "tokenizers",
        "zstandard",
    ]
    body = {
        "format": 1,
        "recipe": run.recipe.identity,
        "libraries": run.versions(*names),
        "tokenizer": run.tokenizer_identity,
        "passes": [
            {"name": p.name, "stages": {k: [_label(s) for s in v] for k, v in p.stages.items()}}
            for p in run.passes
        ],
    }
    inputs = run.store.digests(RECIPE)
    side = run.store.sidecar("lock.json")
    if not run.store.same("lock.json", canonical(body)) or side is None or side.inputs != inputs:
        put(run.store, "lock.json", canonical(body), inputs)


def _label(stage: object) -> list[object]:
    from ..documents.fingerprint import measure_fingerprint, verdict_fingerprint

    return [stage.name, stage.revision, measure_fingerprint(stage), verdict_fingerprint(stage)]  # type: ignore[attr-defined,arg-type]


def _one_step(
    run: Run,
    step: Step,
    executor: Executor,
    made: dict[str, int],
    kept: dict[str, int],
    say: Callable[[str], None],
) -> None:
    if step.needs_all and run.failed:
        raise StopError(_missing(run))
    keys = [k for k in step.keys(run) if k not in run.failed]
    todo = [k for k in keys if not step.is_done(run, k)]
    kept[step.name] = len(keys) - len(todo)
    made[step.name] = 0
    if not todo:
        return
    if step.local:
        for key in todo:
            step.make(run, key)
        made[step.name] = len(todo)
        return
    started = time.perf_counter()
    failures = executor.run(run.store.root, step.name, todo, progress=_Progress(step.name, todo))
    seconds = time.perf_counter() - started
    still = [k for k in todo if not step.is_done(run, k)]
    made[step.name] = len(todo) - len(still)
    say(f"{step.name}: {made[step.name]} made, {kept[step.name]} kept, {seconds:.1f} s")
    if still:
        _book_failures(run, step, still, {f.key: f for f in failures}, say)


class _Progress:
    """A line that counts up, on terminals only."""

    def __init__(self, step: str, keys: list[str]) -> None:
        self._step = step
        self._left = len(keys)
        self._all = len(keys)

    def __call__(self, _key: str) -> None:
        self._left -= 1
        if sys.stderr.isatty():
            end = "\r" if self._left else "\r\033[K"
            sys.stderr.write(f"{self._step}: {self._all - self._left} of {self._all}{end}")
            sys.stderr.flush()


def _book_failures(
    run: Run, step: Step, still: list[str], failures: dict[str, Failure], say: Callable[[str], None]
) -> None:
    for key in still:
        failure = failures.get(key)
        attempts, error = (failure.attempts, failure.error) if failure else (0, "no output")
        say(f"{step.name}: {key} failed after {attempts} attempts: {error}")
        run.troubles.append({"step": step.name, "key": key, "attempts": attempts, "error": error})
    with suppress(OSError):  # a full disk: what failed was said
        write_whole(run.store.path(FAILED), canonical(run.troubles))
    shardwise = all(k in run.shards for k in still)
    if not shardwise:
        first = failures.get(still[0])
        msg = f"{step.name}: {len(still)} of its parts failed: {first.error if first else still}"
        raise StopError(msg)
    run.failed.update(still)


def _missing(run: Run) -> str:
    names = ", ".join(sorted(run.failed))
    first = min(run.failed)
    return (
        f"{len(run.failed)} of {len(run.shards)} shards failed ({names}); what follows needs all; "
        f"mend the cause and give the same command again, or go on with `--without {first}`, "
        "which books the loss"
    )
