"""Verify: hash everything again, follow every chain of digests, count everything a second time.

(a) bytes: each file against its sidecar, each sidecar against itself, no file without one
(b) chain: what each output says it was made from is what stands there now
(c) books: sums made again from the files (`pipelines.recount`) equal those in the sidecars, the
    accounts of the ledger balance (`ledger.balance`), and the ledger is what the sidecars say
(d) decisions: each removed document has a kept witness that is as near as the recipe asks

A part whose files are damaged is named under (a) and left out of the parts after it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from ..documents.errors import GristmillError, UsageError
from ..documents.fingerprint import canonical, file_digest
from ..ledger.balance import imbalances
from ..ledger.writer import connect, fill
from . import proof, recount, witness
from .books import LEDGER, REPORT, books_digest, collect
from .corpus import CUBE
from .planned import current_plan
from .run import FAILED, PLACE, RECIPE, Run
from .steps import Step
from .store import Sidecar, Store
from .tasks import steps_of

if TYPE_CHECKING:
    from .passes import Pass

LOOSE = {PLACE, FAILED, "inputs.seen"}  # the driver's own notes: they bear on no result
_SAME = (
    "sources",
    "shards",
    "reads",
    "flow",
    "tokens",
    "clusters",
    "templates",
    "slices",
    "cube",
    "plan",
    "served",
    "plan_stages",
)
# What a file that is not what it should be makes readers raise.
_BROKEN = (
    GristmillError, OSError, EOFError, ValueError, KeyError, TypeError, IndexError,
    pa.ArrowException, duckdb.Error,
)  # fmt: skip


class Problem(NamedTuple):
    """Something that is not as the books say; `file` is relative to the run."""

    file: str
    what: str

    def __str__(self) -> str:
        return f"{self.file}: {self.what}"


def _quiet(_: str) -> None:
    pass


def verify_folder(folder: Path, say: Callable[[str], None] = _quiet) -> list[Problem]:
    """Verify the run in `folder`, whatever state it is in; UsageError when it is no run.

    A run whose recipe or manifest cannot even be read is hashed, and what is wrong is named.
    """
    if not (folder / PLACE).is_file():
        msg = f"{folder}: not a run folder (no {PLACE}); `gristmill run RECIPE --out` makes one"
        raise UsageError(msg)
    damaged = check_bytes(Store(folder), say)
    try:
        run = Run(folder)
    except _BROKEN as error:
        if damaged:
            return damaged
        return [Problem(PLACE, f"the run cannot be opened: {error}")]
    return damaged + _beyond_bytes(run, {p.file for p in damaged}, say)


def verify(run: Run, say: Callable[[str], None] = _quiet) -> list[Problem]:
    """Everything that is wrong with a run; an empty list when all is well. `say` hears progress."""
    damaged = check_bytes(run.store, say)
    return damaged + _beyond_bytes(run, {p.file for p in damaged}, say)


def _beyond_bytes(run: Run, damaged: set[str], say: Callable[[str], None]) -> list[Problem]:
    say("following the chain of digests")
    broken = list(check_chain(run, damaged))
    # What is stale can be counted all the same; what is damaged or missing cannot.
    bad = damaged | {p.file for p in broken if not p.what.startswith("stale")}
    found = [*broken, *check_books(run, bad, say), *check_decisions(run, bad)]
    if LEDGER not in bad:
        say("comparing the ledger")
        found += check_ledger(run, bad)
    return list(dict.fromkeys(found))


def check_bytes(store: Store, say: Callable[[str], None] = _quiet) -> list[Problem]:
    """Hash every file of the folder again; files without a sidecar are named."""
    found: list[Problem] = []
    there = _files(store.root)
    names = sorted(n for n in there if not _is_side(n, there))
    for number, name in enumerate(names):
        say(f"hashing {number + 1} of {len(names)}: {name}")
        if name in LOOSE:
            continue
        wrong = _file(store, name, there)
        if wrong:
            found.append(Problem(name, wrong))
    gone = [n[:-5] for n in there if _orphan(store, n, there)]
    found += [Problem(n, "the file is missing, its sidecar is there; run again") for n in gone]
    return sorted(found)


def _files(root: Path) -> set[str]:
    """All files of a run; leftovers of a killed writer (dot names) are nobody's output."""
    every = (p.relative_to(root) for p in root.rglob("*") if p.is_file())
    return {p.as_posix() for p in every if not any(part.startswith(".") for part in p.parts)}


def _is_side(name: str, there: set[str]) -> bool:
    """Whether `name` is a sidecar or facts of a file that is there."""
    if name.endswith(".run.json") and name != PLACE:
        return True
    return name.endswith(".json") and name[:-5] in there


def _orphan(store: Store, name: str, there: set[str]) -> bool:
    """Whether `name` is the sidecar of a file that is not there."""
    if not name.endswith(".json") or name[:-5] in there or f"{name}.json" in there:
        return False
    return not name.endswith(".run.json") and store.sidecar(name[:-5]) is not None


def _file(store: Store, name: str, there: set[str]) -> str | None:
    if f"{name}.json" not in there:
        if _orphan(store, name, there):
            return None  # named as the file that is missing
        return "no sidecar; nothing in a run stands without one: delete it, or run again"
    try:
        side = store.sidecar(name)
    except GristmillError as error:
        return str(error)
    if side is None or not _as_written(store.path(f"{name}.json")):
        return f"its sidecar {name}.json is damaged; run again to make it anew"
    if side.file != name:
        return f"its sidecar is that of {side.file}"
    size = store.path(name).stat().st_size
    digest = file_digest(store.path(name))
    if digest != side.digest or size != side.size:
        return (
            f"{size:,} bytes with digest {digest}, its sidecar says {side.size:,} with "
            f"{side.digest}; delete it and run again"
        )
    return None


def _as_written(path: Path) -> bool:
    """Whether JSON stands in the one form in which we write it: another spelling is damage too."""
    data = path.read_bytes()
    return canonical(json.loads(data)) == data


def check_chain(run: Run, damaged: Iterable[str] = ()) -> Iterator[Problem]:
    """Whether each output was made from what stands there now, under the recipe as it stands."""
    skip = set(damaged)
    same = not other_libraries(run.store)
    for step in steps_of(run):
        try:
            keys = step.keys(run)
        except _BROKEN as error:
            yield Problem(step.name, f"its parts are not known: {error}")
            continue
        for key in keys:
            yield from _made_from(run, step, key, skip, same=same)
    yield from _drivers(run, skip)


def other_libraries(store: Store) -> list[str]:
    """Libraries of `lock.json` that have other versions here.

    Then fingerprints differ and say nothing of the files: they are left out of the chain, and a
    run of last year can be verified with the libraries of this year.
    """
    try:
        held = json.loads(store.path("lock.json").read_bytes())["libraries"]
        pairs = [(line, Run.versions(line.rpartition(" ")[0])[0]) for line in held]
    except (*_BROKEN, ImportError):  # named under bytes; a library that is gone is another version
        return []
    return [f"{then} in lock.json, {now} here" for then, now in pairs if then != now]


def notes(folder: Path) -> list[str]:
    """What a reader of the verdict should know; no fault of the run."""
    return [
        f"note: {line}; fingerprints were not compared" for line in other_libraries(Store(folder))
    ]


def _made_from(run: Run, step: Step, key: str, skip: set[str], *, same: bool) -> Iterator[Problem]:
    outputs = step.outputs(run, key)
    try:
        inputs, fingerprint = step.inputs(run, key), step.fingerprint(run, key)
    except _BROKEN as error:
        yield from (Problem(o, f"cannot be checked: {error}") for o in outputs if o not in skip)
        return
    names = list(outputs)
    if step.name == "mix" and not skip & {"plans/current.json"}:
        try:
            plan = current_plan(run) if run.store.present("plans/current.json") else None
        except _BROKEN as error:
            yield Problem("plans/current.json", f"its plan cannot be opened: {error}")
            plan = None
        if plan is not None:
            names += [f"plans/{plan.id}/{p}" for p in ("plan.json", CUBE, *_arrays(plan))]
    for name in names:
        if name not in skip:
            wrong = _stale(run.store.sidecar(name), inputs, fingerprint if same else None)
            if wrong:
                yield Problem(name, wrong)


def _arrays(plan: Any) -> list[str]:
    return [f"{name}.npy" for name in sorted(plan.content["arrays"])]


def _stale(side: Sidecar | None, inputs: dict[str, str], fingerprint: str | None) -> str | None:
    if side is None:
        return "missing; give the same `run` command again"
    for name in sorted(set(inputs) | set(side.inputs)):
        now, then = inputs.get(name, "nothing"), side.inputs.get(name, "nothing")
        if now != then:
            return f"stale: made from {name} with digest {then}, now it is {now}; run again"
    if fingerprint is not None and side.fingerprint != fingerprint:
        return "stale: made under another configuration or by another version of a stage; run again"
    return None


def _drivers(run: Run, skip: set[str]) -> Iterator[Problem]:
    """The driver's files: there, and made from what stands there."""
    for name in (RECIPE, "lock.json", "manifest.jsonl", LEDGER, REPORT):
        side = run.store.sidecar(name)
        if name in skip:
            continue
        if side is None:
            yield Problem(name, "missing; give the same `run` command again")
            continue
        try:
            now = books_digest(run) if name == LEDGER else None
        except GristmillError:
            continue  # the missing piece was named above
        for given, then in side.inputs.items():
            if given != "books":
                other = run.store.sidecar(given)
                now = other.digest if other is not None else None
            if now is not None and now != then:
                yield Problem(
                    name, f"stale: made from {given} with digest {then}, now {now}; run again"
                )


def check_books(run: Run, bad: set[str], say: Callable[[str], None] = _quiet) -> Iterator[Problem]:
    """Sums of each shard made again from its files; see `pipelines.recount`."""
    con = connect()
    passes: list[tuple[Pass | None, str]] = [(None, "read")]
    before = "read"
    for which in run.passes:
        passes.append((which, before))
        before = which.name
    for number, shard in enumerate(run.shards):
        say(f"counting shard {number + 1} of {len(run.shards)}: {shard}")
        if any(shard in name for name in bad):
            continue
        counts: list[Iterator[recount.Told]] = [recount.check_read(run, con, shard)]
        counts += [recount.check_flow(run, con, which, was, shard) for which, was in passes]
        counts.append(recount.check_corpus(run, con, shard))
        for count in counts:
            yield from _told(count, shard)
    con.close()


def _told(found: Iterator[recount.Told], where: str) -> Iterator[Problem]:
    """What a count found; a file that cannot be read as what it should be is a finding too."""
    try:
        yield from (Problem(*told) for told in found)
    except _BROKEN as error:
        yield Problem(where, f"cannot be counted: {error}")


def check_decisions(run: Run, bad: set[str]) -> Iterator[Problem]:
    """Each global stage's decisions; see `pipelines.witness`."""
    con = connect()
    for number, which in enumerate(run.passes):
        use = which.surveys
        if use is None or any(
            n.startswith((f"decisions/{use.stage.name}/", "attributes/")) for n in bad
        ):
            continue
        applying = run.passes[number + 1].name
        found = witness.check_decisions(run, con, use, which.name, applying)
        yield from _told(found, f"decisions/{use.stage.name}")
        if not any(n.startswith("documents/") for n in bad):
            through = [p.name for p in run.passes[: number + 1]]
            yield from _told(proof.check_texts(run, use, through), f"decisions/{use.stage.name}")
    con.close()


def check_ledger(run: Run, bad: set[str]) -> Iterator[Problem]:
    """Balances of the accounts as the sidecars have them, and whether the ledger has the same."""
    yield from _told(_plan_problems(run), "plans/current.json")
    try:
        tables = collect(run)
        fresh = connect()
        fill(fresh, tables)
        yield from (Problem(LEDGER, str(row)) for row in imbalances(fresh))
        held = run.store.path(LEDGER)
        if held.is_file():
            fresh.execute(f"ATTACH '{str(held).replace(chr(39), chr(39) * 2)}' AS held (READ_ONLY)")
            for table in _SAME:
                differ = fresh.execute(
                    f"SELECT count(*) FROM ((FROM {table} EXCEPT ALL FROM held.{table}) "  # noqa: S608
                    f"UNION ALL (FROM held.{table} EXCEPT ALL FROM {table}))"
                ).fetchall()[0]
                if differ and differ[0]:
                    yield Problem(
                        LEDGER, f"table {table}: {differ[0]:,} rows are not those of the sidecars"
                    )
        fresh.close()
    except _BROKEN as error:
        if not bad:  # else the cause has been named
            yield Problem(LEDGER, f"the books cannot be made: {error}")


def _plan_problems(run: Run) -> Iterator[recount.Told]:
    """The plan's catalogue against the token shards that it was compiled from."""
    plan = current_plan(run)
    if plan is None:
        return
    where = f"plans/{plan.id}/plan.json"
    rows = np.asarray(plan.documents)
    held = {s["name"]: s["digest"] for s in plan.content["shards"]}
    for shard in run.shards:
        side = run.store.require(f"tokens/{shard}.bin")
        mine = rows[rows[:, 0] == plan.shards.index(shard)] if shard in plan.shards else rows[:0]
        tokens = int(mine[:, 2].sum(dtype=np.int64))
        told = side.counts["text_tokens"] + side.counts["special_tokens"]
        if tokens != told:
            off = f"{tokens:,} tokens to choose from, {told:,} in the token shard"
            yield where, f"shard {shard}: {off} ({tokens - told:+,})"
        if shard in held and held[shard] != side.digest:
            yield (where, f"shard {shard}: compiled from other tokens than stand there now")
