"""An index of crawls: sorted immutable runs, the pairs compared so far, and the decisions.

    index.json          settings, runs in order of arrival, digests; replaced as a whole
    runs/<name>/        `dedup.index_run`
    pairs/<gen>.bin     PAIR[...]: every pair compared, ascending: nothing is compared twice
    decisions/<gen>.parquet, changed/<gen>.parquet

Adding a crawl gives what a batch over all crawls gives: candidates are found anew over the union of
the runs (a merge of sorted keys, no text), by the same round as in a batch; only pairs that are not
known are compared; edges are covered by the same round. So a group that a new crawl makes hot, or
that gets another first document, ends as in a batch. Earlier decisions that changed are listed.
A look at the touched groups alone would read less, but could not take a pair back.
Queries: `dedup.index_query`.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..documents.errors import DamagedError, FormatError, StopError, UsageError
from ..documents.exchange import DECISIONS
from ..documents.fingerprint import canonical, digest, file_digest
from . import _kernels_pairs as kernels
from .candidates import Candidates
from .clusters import Clusters
from .index_pairs import PAIR, changed_decisions, find_pairs, moved
from .index_run import IndexRun, joined_sets, shards_of
from .index_writer import RunWriter, discard, placed, without
from .near import NearDuplicates
from .rank import Nodes, nodes
from .verify import reaches

FORMAT = 2
ROWS = 2_000_000  # band rows looked at together: 200 MB while they are sorted
CHUNK = 20_000  # pairs compared together
_HISTORY = ("decisions", "changed")
SETTINGS = (
    "ngram", "char_ngram", "bands", "rows", "scheme", "threshold", "group_cap", "hot_cap",
    "exemplars", "scope",
)  # fmt: skip


class Index:
    """An index folder, opened; `make` an empty one or `open` one that is there."""

    def __init__(self, folder: Path, about: Mapping[str, Any], *, missing: bool = False) -> None:
        self.folder = folder
        self.about = dict(about)
        self.stage = NearDuplicates(**about["settings"])
        self.runs = []
        for name in about["runs"]:
            try:
                self.runs.append(IndexRun.open(folder / "runs" / name))
            except DamagedError:
                if not missing:
                    raise
        self.starts = np.cumsum([0, *(r.count for r in self.runs)])

    @staticmethod
    def make(folder: Path, stage: NearDuplicates) -> Index:
        """An empty index with the settings of `stage`; UsageError when files are there."""
        if folder.exists() and any(folder.iterdir()):
            msg = f"{folder}: holds files but no index.json; choose an empty or new folder"
            raise UsageError(msg)
        folder.mkdir(parents=True, exist_ok=True)
        settings = {name: getattr(stage, name) for name in SETTINGS}
        index = Index(folder, {"format": FORMAT, "settings": settings, "runs": [], "files": {}})
        index._save([], 0)
        return index

    @staticmethod
    def open(folder: Path, *, missing: bool = False) -> Index:
        """Open an index; UsageError when there is none, DamagedError names a run that is not whole.

        With `missing` runs may be gone or cut short, to be added again.
        """
        path = folder / "index.json"
        try:
            about = json.loads(path.read_bytes())
        except FileNotFoundError:
            msg = f"{folder}: no index in it; `gristmill dedup index {folder} RUN` makes one"
            raise UsageError(msg) from None
        except ValueError as error:
            msg = f"{path}: not JSON ({error}); build the index again from its crawls"
            raise StopError(msg) from error
        if about.get("format") != FORMAT:
            msg = (
                f"{path}: format {about.get('format')}, this version reads {FORMAT}; build the "
                "index again from its crawls"
            )
            raise FormatError(msg)
        if about.pop("digest", None) != digest(about):
            msg = f"{path}: is not what was written; build the index again from its crawls"
            raise DamagedError(msg)
        return Index(folder, about, missing=missing)

    def _save(self, runs: list[str], generation: int) -> None:
        self.about |= {"runs": runs, "generation": generation}
        temporary = self.folder / f".index.{secrets.token_hex(4)}.tmp"
        temporary.write_bytes(canonical(self.about | {"digest": digest(self.about)}))
        os.replace(temporary, self.folder / "index.json")  # noqa: PTH105 - one rename, atomic

    def check_same(self, stage: NearDuplicates) -> None:
        """UsageError when a stage's settings differ from those of the index."""
        for name, value in self.about["settings"].items():
            found = getattr(stage, name)
            if found != value:
                msg = (
                    f"{self.folder}: made with near_duplicates.{name}: {value!r}, the run has "
                    f"{found!r}; use the index's settings, or make another index"
                )
                raise UsageError(msg)

    def writer(self) -> RunWriter:
        """For the documents of a new crawl; hand it to `add`."""
        folder = self.folder / "runs" / f".{secrets.token_hex(8)}.tmp"
        settings = {k: self.about["settings"][k] for k in ("ngram", "char_ngram", "scheme")}
        return RunWriter(folder, settings, self.stage.bands)

    def add(self, writer: RunWriter, covered: Collection[str] = ()) -> pa.Table:
        """Take in a crawl, decide anew, and return the earlier decisions that changed.

        `covered` names the shards of the crawl that gave no document, too. A shard is named after
        the bytes that it was read from: a run of the index all of whose shards are in this crawl
        is an earlier state of it, and gives way. UsageError when only some of them are.

        Columns: shard, id, code and witness before and after. A crawl that is in already changes
        nothing.
        """
        shards, replaced = {*writer.shards, *covered}, []
        for name in self.about["runs"]:
            known = shards_of(self.folder / "runs" / name)
            if both := sorted(known & shards):
                if other := sorted(known - shards):
                    writer.abandon()
                    msg = (
                        f"shard {both[0]} is in run {name} of the index already, and so "
                        f"is {other[0]}, which this run does not have; index a run over all of "
                        "them, or make another index"
                    )
                    raise UsageError(msg)
                replaced.append(name)
        name = placed(writer)
        if name in self.about["runs"]:
            if damaged := [p for p, _ in self.damaged_books()]:
                self.about["files"] = {k: v for k, v in self.about["files"].items()
                                       if k not in damaged}  # fmt: skip
                self._decide(self.about["runs"], [name])
            return changed_decisions(DECISIONS.empty_table(), DECISIONS.empty_table(), set())
        names = [n for n in self.about["runs"] if n not in replaced]
        if not replaced:
            return self._decide([*names, name], [name])
        now = [IndexRun.open(self.folder / "runs" / n) for n in (*names, name)]
        then = [r for r in self.runs if r.folder.name in replaced]
        empty = pa.array([], pa.binary(16))
        was, left = (pa.concat_arrays([empty, *(r.ids() for r in rs)]) for rs in (then, now))
        gone = was.filter(pc.invert(pc.is_in(was, value_set=left)))
        changed = self._decide([*names, name], [name], frozenset(gone.to_pylist()))
        self._sweep()
        return changed

    def register(self, name: str) -> None:
        """Take a run in without deciding: enough for queries."""
        self._save([*self.about["runs"], name], self.about["generation"])

    def holds(self, ids: Collection[bytes]) -> set[bytes]:
        """Those of some ids (16 bytes) that documents of the index have."""
        for run in self.runs:
            run.check("documents")
        wanted = pa.array(sorted(ids), pa.binary(16))
        found = (r.ids().filter(pc.is_in(r.ids(), value_set=wanted)) for r in self.runs)
        return {i for some in found for i in some.to_pylist()}

    def drop(self, ids: Collection[bytes]) -> int:
        """Take documents out of every run (their sets, ids, keys), and decide anew; how many.

        What earlier generations decided goes too, since it names them. After a kill the same call
        goes on: runs that were written stand, and those that gave way go.
        """
        names, gone = [], 0
        wanted = pa.array(sorted(ids), pa.binary(16))
        for run in self.runs:
            run.check()
            hit = pc.is_in(run.ids(), value_set=wanted).to_numpy(zero_copy_only=False)
            gone += int(hit.sum())
            names.append(without(run, ~hit, self.writer()) if hit.any() else run.folder.name)
        if gone:  # all that are left without a document are one run: a name stands for contents
            self._decide(list(dict.fromkeys(names)), names, frozenset(ids))
        self._sweep()
        return gone

    def _sweep(self) -> None:
        """Delete runs that are not of the index (last, so that a kill shows), and what names them.

        These are what gave way, and what a killed build left.
        """
        known = set(self.about["runs"])
        if left := [p for p in (self.folder / "runs").glob("*") if p.name not in known]:
            number = f"{self.about['generation']:06d}"
            files = {k: v for k, v in self.about["files"].items() if Path(k).stem == number}
            self.about["files"] = files
            self._save(self.about["runs"], self.about["generation"])
            self._forget("decisions", "changed")
            for folder in left:
                discard(folder)

    def decisions(self) -> pa.Table:
        """DECISIONS of the newest generation; `row` is the ordinal in the run."""
        path = self._book("decisions", "parquet")
        return pq.read_table(path) if path else DECISIONS.empty_table()

    def damaged_books(self) -> Iterator[tuple[str, str]]:
        """Pairs, decisions and lists of changes that are not as index.json says: name, what."""
        for name in self.about["files"]:
            if wrong := self._wrong(name):
                yield name, wrong

    def _wrong(self, name: str) -> str:
        """How a file of the books differs from index.json; empty when it does not."""
        path = self.folder / name
        found = file_digest(path) if path.is_file() else None
        if found == self.about["files"][name]:
            return ""
        what = "is not what index.json says" if found else "is missing"
        return f"{what}; give `gristmill dedup index` a crawl of the index again"

    def _book(self, kind: str, ending: str) -> Path | None:
        """A file of the newest generation, if it has one; DamagedError when it is not whole."""
        name = f"{kind}/{self.about['generation']:06d}.{ending}"
        if name not in self.about["files"]:
            return None
        if wrong := self._wrong(name):
            msg = f"{self.folder / name}: {wrong}"
            raise DamagedError(msg)
        return self.folder / name

    def _decide(
        self, names: list[str], checked: Collection[str], gone: frozenset[bytes] = frozenset()
    ) -> pa.Table:
        """Make a generation of some runs; `checked` are those that were hashed just now."""
        before, generation = self.decisions(), self.about["generation"]
        earlier = {h for r in self.runs for h in r.shard_hashes.tolist()}
        old, old_starts = self._pairs(), self.starts
        old_names = list(self.about["runs"])
        self.about["runs"] = names
        self.runs = [IndexRun.open(self.folder / "runs" / n) for n in names]
        for run in self.runs:
            if run.folder.name not in checked:
                run.check("documents", "keys", "owners", "nexts")  # sets: the pages that are read
        self.starts = np.cumsum([0, *(r.count for r in self.runs)])
        old = moved(old, old_names, old_starts, names, self.starts)
        pairs = self._verified(self._candidates(), old)
        made = Clusters(exemplars=self.stage.exemplars).gather(self._edges(pairs), _no_texts)
        after = made.sort_by([("shard", "ascending"), ("id", "ascending")])
        changed = changed_decisions(before, after, earlier, gone)
        for folder in ("pairs", "decisions", "changed"):
            (self.folder / folder).mkdir(exist_ok=True)
        number = f"{generation + 1:06d}"
        pairs.tofile(self.folder / "pairs" / f"{number}.bin")
        pq.write_table(after, self.folder / "decisions" / f"{number}.parquet", compression="zstd")
        pq.write_table(changed, self.folder / "changed" / f"{number}.parquet", compression="zstd")
        files = {k: v for k, v in self.about["files"].items() if not k.startswith("pairs/")}
        made_now = [f"pairs/{number}.bin", *(f"{f}/{number}.parquet" for f in _HISTORY)]
        self.about["files"] = files | {n: file_digest(self.folder / n) for n in made_now}
        self._save(names, generation + 1)
        self._forget("pairs")
        return changed

    def _forget(self, *folders: str) -> None:
        """Delete what earlier generations left in some folders."""
        for path in (p for f in folders for p in (self.folder / f).glob("*")):
            if path.stem != f"{self.about['generation']:06d}":
                path.unlink()

    def _pairs(self) -> np.ndarray:
        path = self._book("pairs", "bin")
        return np.fromfile(path, PAIR) if path else np.empty(0, PAIR)

    def _candidates(self) -> np.ndarray:
        """Pairs over all runs, uint64[n, 2] of ordinals in the index, each once, ascending."""
        total = sum(len(r.keys) for r in self.runs)
        parts = max(1, -(-total // ROWS))
        edges = [(p << 64) // parts for p in range(parts)]
        bounds = [
            np.append(np.searchsorted(r.keys, np.array(edges, np.uint64)), len(r.keys))
            for r in self.runs
        ]
        step = Candidates(group_cap=self.stage.group_cap, hot_cap=self.stage.hot_cap)
        found = [np.empty((0, 2), np.uint64)]
        for part in range(parts):
            rows = [self._rows(r, *bounds[i][part : part + 2]) for i, r in enumerate(self.runs)]
            made = step.gather(pa.concat_tables(rows), _no_texts)
            found.append(self._places(nodes(made, "a_"), nodes(made, "b_")))
        return np.unique(np.concatenate(found), axis=0)

    def _rows(self, run: IndexRun, low: int, high: int) -> pa.Table:
        owners = np.asarray(run.owners[low:high])
        columns = {
            "partition": pa.array(np.asarray(run.keys[low:high])),
            "next": pa.array(np.asarray(run.nexts[low:high])),
        }
        return pa.table(columns | run.nodes(owners).columns())

    def _places(self, a: Nodes, b: Nodes) -> np.ndarray:
        """Ordinals in the index of both sides, in representative order."""
        starts: dict[int, int] = {}
        for number, run in enumerate(self.runs):
            starts |= dict.fromkeys(run.shard_hashes.tolist(), int(self.starts[number]))
        keys = np.array(sorted(starts), np.uint64)
        values = np.array([starts[k] for k in keys.tolist()], np.uint64)
        both = [values[np.searchsorted(keys, n.shard)] + n.row for n in (a, b)] if len(keys) else []
        return np.stack(both, axis=1) if both else np.empty((0, 2), np.uint64)

    def _verified(self, wanted: np.ndarray, known: np.ndarray) -> np.ndarray:
        """PAIR of each wanted pair; those that are known are not compared again."""
        pairs = np.zeros(len(wanted), PAIR)
        pairs["a"], pairs["b"] = wanted[:, 0], wanted[:, 1]
        at = find_pairs(known, wanted)
        have = at >= 0
        for name in ("shared", "either"):
            pairs[name][have] = known[name][at[have]]
        new = np.flatnonzero(~have)
        for start in range(0, len(new), CHUNK):
            some = new[start : start + CHUNK]
            need, local = np.unique(wanted[some], return_inverse=True)
            local = local.reshape(-1, 2)
            values, offsets = self._sets(need)
            shared, either = np.zeros(len(some), np.int64), np.zeros(len(some), np.int64)
            first, second = np.ascontiguousarray(local[:, 0]), np.ascontiguousarray(local[:, 1])
            kernels.intersections(values, offsets[:-1], offsets[1:], first, second, shared, either)
            pairs["shared"][some], pairs["either"][some] = shared, either
        return pairs

    def _sets(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sets of documents by ordinal in the index: (values, offsets)."""
        pieces = []
        numbers = np.searchsorted(self.starts, places, side="right") - 1
        local = places.astype(np.int64) - self.starts[numbers]
        for number, run in enumerate(self.runs):
            run.sound_sets(local[numbers == number])
        for number, place in zip(numbers.tolist(), local.tolist(), strict=True):
            pieces.append(self.runs[number].set_of(place))
        return joined_sets(pieces)

    def _edges(self, pairs: np.ndarray) -> pa.Table:
        shared, either = pairs["shared"].astype(np.int64), pairs["either"].astype(np.int64)
        pairs = pairs[reaches(self.stage.threshold, shared, either)]
        columns = self._nodes(pairs["a"]).columns("a_") | self._nodes(pairs["b"]).columns("b_")
        columns["shared"] = pa.array(pairs["shared"].astype(np.uint32))
        columns["either"] = pa.array(pairs["either"].astype(np.uint32))
        return pa.table(columns)

    def _nodes(self, places: np.ndarray) -> Nodes:
        number = np.searchsorted(self.starts, places, side="right") - 1
        parts = [np.flatnonzero(number == n) for n in range(len(self.runs))]
        empty = np.zeros(0, np.int64)
        each = [
            r.nodes((places[p] - np.uint64(self.starts[n])).astype(np.int64))
            for n, (r, p) in enumerate(zip(self.runs, parts, strict=True))
        ]
        order = np.argsort(np.concatenate([*parts, empty]), kind="stable")
        return Nodes(*(np.concatenate(values)[order] for values in zip(*each, strict=True)))


def _no_texts(*_: np.ndarray) -> pa.LargeStringArray:
    msg = "these rounds read no texts"
    raise StopError(msg)
