"""Take-downs: documents out of everything that a run keeps of them.

    lists -> ids -> near duplicates by policy -> removals.json -> plans masked -> the run made again

The read step leaves the documents out (booked `taken_down`, without a URL), so that documents,
stored scores and evidence, exchange, corpus and tokens are made again without them: only the shards
that held one are read. A duplicate that had gone for the sake of a removed one takes its place,
unless the policy takes it down too; the report names what entered.
Plans are masked first (`mixing.removal`): a trainer on an old plan goes on with the same positions.
What a trainer has open stays open until it starts again from its checkpoint.

Ids are hashes of content: a document that comes again, in whatever shard, stays out.
`removals.json` keeps ids alone. By them an index loses all that the run ever lost, so it may be
named later, and after a kill.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..dedup.urls import plain_urls
from ..documents.errors import UsageError, did_you_mean
from ..documents.fingerprint import canonical, digest
from .driver import complete
from .joined import Before, Found, join_duplicates
from .run import REMOVALS, Run, put

if TYPE_CHECKING:
    from .executors import Executor

POLICIES = {
    "none": "only what the lists name",
    "proven": "also what decisions join to them, hop by hop, each at the threshold or above",
    "cluster": "also all of their clusters, and the clusters of these in other stages",
}
FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What to take down: ids (hex, or their beginnings of 6 or more digits), URLs, hosts."""

    ids: frozenset[str] = frozenset()
    urls: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()  # their sub-domains too


@dataclass(frozen=True, kw_only=True)
class Asked:
    """How: the policy on near duplicates, steps of each plan behind the trainer, an index."""

    near: str = "proven"
    served: int = 0
    index: Path | None = None

    def __post_init__(self) -> None:
        if self.near not in POLICIES:
            msg = f"--near {self.near}: no such policy{did_you_mean(self.near, POLICIES)}"
            raise UsageError(msg)


@dataclass(kw_only=True)
class Report:
    """What a removal came to."""

    named: int = 0  # documents that the lists name
    near: int = 0  # and near duplicates of them
    unknown: list[str] = field(default_factory=list)  # entries that name no document
    plans: dict[str, Any] = field(default_factory=dict)
    entered: list[dict[str, Any]] = field(default_factory=list)  # see `Before.entered`
    index: int | None = None  # documents taken out of an index


def read_lists(ids: Path | None, urls: Path | None, hosts: Path | None) -> Wanted:
    """The lists, one entry a line; blank lines and lines that begin with # are passed over."""
    given = {"ids": ids, "urls": urls, "hosts": hosts}
    if not any(given.values()):
        msg = "remove: nothing to remove; state --ids, --urls or --hosts FILE"
        raise UsageError(msg)
    found = {}
    for name, path in given.items():
        try:
            lines = path.read_text(encoding="utf-8").splitlines() if path else []
        except (OSError, UnicodeDecodeError) as error:
            msg = f"--{name} {path}: cannot be read as a list: {error}"
            raise UsageError(msg) from error
        entries = (line.strip() for line in lines)
        found[name] = frozenset(e for e in entries if e and not e.startswith("#"))
    wanted = Wanted(**found)
    for entry in sorted(wanted.ids):
        if len(entry) != 32 or set(entry.lower()) - set("0123456789abcdef"):
            msg = (
                f"--ids: {entry!r} is no id; expected 32 hex digits, as `gristmill why` shows them"
            )
            raise UsageError(msg)
    return wanted


def remove(
    run: Run,
    wanted: Wanted,
    asked: Asked,
    *,
    executor: Executor,
    say: Callable[[str], None] = lambda _: None,
) -> Report:
    """Take documents down, and make the run again without them."""
    report = Report()
    found, matched = _matching(run, wanted)
    report.named = _size(found)
    if asked.near != "none":
        join_duplicates(run, found, whole=asked.near == "cluster")
    report.near = _size(found) - report.named
    before = Before(run) if found else None
    if found:
        _mask_plans(run, found, asked.served, report)
        known = {s: set(ids) for s, ids in run.removals.items()}
        for shard, ids in found.items():
            known.setdefault(shard, set()).update(ids)
        body = {s: sorted(i.hex() for i in ids) for s, ids in sorted(known.items())}
        put(run.store, REMOVALS, canonical({"format": FORMAT, "shards": body}))
    gone = set().union(*found.values(), *run.removals.values())
    if gone:  # if nothing was found, for the sake of a removal that was killed
        again = Run(run.store.root)
        complete(again, executor, say)
        report.entered = before.entered(again) if before else []
    named = {i for i in wanted.ids if bytes.fromhex(i) in gone}
    if asked.index is not None:
        named |= _drop(asked.index, wanted, gone, report)
    places = (wanted.urls | wanted.hosts) - matched
    report.unknown = sorted(places | wanted.ids - matched - named)
    if asked.index is not None and places:
        say(
            f"{asked.index}: {len(places)} URLs and hosts could not be looked up: they name no "
            "document that the run has now, and an index holds ids alone. Documents taken out of "
            "this run earlier are out of the index too; for those of other runs, "
            "`gristmill remove` there, or give --ids"
        )
    return report


def _drop(folder: Path, wanted: Wanted, gone: set[bytes], report: Report) -> set[str]:
    """Take all that the run was ever told to out of an index; the entries that it knows.

    Ids that the lists state go in any case: they may be of other runs.
    """
    from ..dedup.index import Index

    index = Index.open(folder)
    stated = {bytes.fromhex(i): i for i in wanted.ids}
    known = {stated[i] for i in index.holds(stated)}
    report.index = index.drop(gone | set(stated))
    return known


def _size(found: Found) -> int:
    return sum(map(len, found.values()))


def _matching(run: Run, wanted: Wanted) -> tuple[Found, set[str]]:
    """Documents that the lists name, and the entries that named any."""
    ids = {bytes.fromhex(i): i for i in wanted.ids}
    urls = dict(zip(_plain(wanted.urls), sorted(wanted.urls), strict=True))
    hosts = {h.lower().strip("."): h for h in wanted.hosts}
    found: Found = {}
    matched: set[str] = set()
    for shard in run.shards:
        path = run.store.path(f"documents/{shard}.parquet")
        file = pq.ParquetFile(path)
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, columns=["id", "url", "host"])
            hits = np.zeros(table.num_rows, bool)
            for column, known in (
                (table.column("id"), ids),
                (plain_urls(table.column("url").combine_chunks()), urls),
            ):
                if known:
                    values = pa.array(list(known), column.type)
                    at = pc.index_in(column, value_set=values)
                    hits |= at.is_valid().to_numpy(zero_copy_only=False)
                    names = list(known.values())
                    matched |= {names[i] for i in pc.unique(at.drop_null()).to_pylist()}
            if hosts:
                hits |= _of_hosts(table.column("host"), hosts, matched)
            if hits.any():
                rows = table.column("id").filter(pa.array(hits)).to_pylist()
                found.setdefault(shard, set()).update(rows)
    return found, matched


def _plain(urls: Iterable[str]) -> list[str]:
    return list(plain_urls(pa.array(sorted(urls), pa.string())).to_pylist())


def _of_hosts(column: pa.ChunkedArray, hosts: dict[str, str], matched: set[str]) -> np.ndarray:
    coded = column.combine_chunks().fill_null("").dictionary_encode()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
    good = []
    for name in coded.dictionary.to_pylist():
        labels = name.split(".")
        ends = [".".join(labels[i:]) for i in range(len(labels))]
        named = [hosts[e] for e in ends if e in hosts]
        matched.update(named)
        good.append(bool(named))
    return np.array(good, bool)[coded.indices.to_numpy(zero_copy_only=False)]


def _mask_plans(run: Run, found: Found, served: int, report: Report) -> None:
    """Mask the documents in every plan, and say which steps have seen them."""
    from ..mixing import Plan, steps_of_document
    from ..mixing.feed import REMOVED, read_removed
    from ..mixing.removal import mask_plan

    for folder in sorted(p.parent for p in run.store.path("plans").glob("*/plan.json")):
        plan = Plan.open(folder)
        own = read_removed(folder) is not None
        tokens = folder / "tokens" if own else run.store.path("tokens")
        gone: dict[str, set[int]] = {}
        seen: dict[str, list[int]] = {}
        masked = 0
        for shard, ids in found.items():
            if shard not in plan.shards:
                continue
            raw = np.load(tokens / f"{shard}.ids.npy")
            for ordinal in np.flatnonzero([bytes(r) in ids for r in raw]).tolist():
                gone.setdefault(shard, set()).add(ordinal)
                steps = steps_of_document(plan, shard, ordinal)
                masked += len({s.position for s in steps if s.step >= served})
                if behind := sorted({s.step for s in steps if s.step < served}):
                    seen[bytes(raw[ordinal]).hex()] = behind
        if gone:
            with run.store.scratch("plans/masking") as out:
                mask_plan(folder, tokens, list(plan.shards), gone, out)
                files = (p for p in out.rglob("*") if p.is_file())
                for file in sorted(files, key=lambda p: (p.name == REMOVED, p)):
                    name = f"plans/{folder.name}/{file.relative_to(out)}"
                    mark = digest(["removal", FORMAT])
                    run.store.adopt(file, name, inputs={}, fingerprint=mark)
        told = {"documents": sum(map(len, gone.values())), "positions_masked": masked}
        report.plans[plan.id] = told | {"served": served, "steps_that_saw": seen}


def told(report: Report) -> str:
    """The report as JSON."""
    return json.dumps(report.__dict__, indent=2)
