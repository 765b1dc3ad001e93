"""Global stages on the exchange: scatter per shard, gather per partition and round, then decide.

Only here does a run wait for all shards: every step of this file refuses to start while a piece is
missing, and names it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..documents.errors import StopError
from ..documents.exchange import CuttingStage, JoiningRound, WholeRound, counts_of
from ..documents.fingerprint import canonical, digest, measure_fingerprint, verdict_fingerprint
from ..documents.identity import shard_hash
from .columns import schema_meta, score_values
from .exchange import STRETCH, Partitions, digest_of, partitions, read_partition, write_run
from .fetch import Fetched, FetchStep
from .lookup import decided_columns
from .passes import Pass, attributes
from .steps import Counts, Facts, ManifestStep, Step
from .texts import ShardTexts, Texts

if TYPE_CHECKING:
    from .recipe import GlobalUse
    from .run import Run

FORMAT = 2


class ScatterStep(Step):
    """`exchange/<stage>/0/<shard>.arrow`: the surveyed scores of the documents that are left."""

    needs_all = True  # partitions follow from the documents of all shards

    def __init__(
        self, use: GlobalUse, after: Pass, through: list[Pass], surveyed: ManifestStep
    ) -> None:
        self.use = use
        self.after = after  # the pass that surveyed
        self.surveyed = surveyed  # and its manifest
        self.through = through  # all passes up to it: their edits make the text
        self.name = f"scatter-{use.stage.name}"
        self._left: dict[str, int] = {}  # documents by the digest of that manifest

    def keys(self, run: Run) -> list[str]:
        """The shards that the stage covers."""
        return run.covered(self.use)

    def outputs(self, run: Run, key: str) -> tuple[str, ...]:
        """One run of the exchange."""
        return (f"exchange/{self.use.stage.name}/0/{key}.arrow",)

    def count(self, run: Run) -> int:
        """Partitions, from the documents that are left in all shards."""
        (name,) = self.surveyed.outputs(run)
        manifest = run.store.require(name).digest
        if manifest not in self._left:  # every key's fingerprint asks
            files = self.surveyed.files(run)
            left = sum(files[attributes(self.after.name, s)][1] for s in run.covered(self.use))
            self._left = {manifest: left}
        return partitions(run, self._left[manifest], self.use.stage.row_bytes)

    def inputs(self, run: Run, key: str) -> dict[str, str]:
        """The attributes of the shard, and those with its quality."""
        names = [attributes(p.name, key) for p in (self.after, *_judging(run, self.through, key))]
        return run.store.digests(*dict.fromkeys(names))

    def fingerprint(self, run: Run, key: str) -> str:
        """Stage, source priority, partitions."""
        stage = self.use.stage
        source = run.recipe.source(run.shards[key].source)
        own = [stage.name, stage.revision, measure_fingerprint(stage.survey)]
        if isinstance(stage, CuttingStage):  # what it scatters hangs on more than its survey
            own.append(measure_fingerprint(stage))
        return digest([FORMAT, own, source.priority, self.count(run), run.versions("pyarrow")])

    def write(self, run: Run, key: str, paths: Mapping[str, Path], facts: Facts) -> Counts:
        """Rows of the documents that are left, a few thousand documents at a time."""
        (name,) = self.outputs(run, key)
        scatter = self.use.stage.scatter
        most = max(1, STRETCH // self.use.stage.row_bytes)  # documents
        texts: ShardTexts | None = None
        if isinstance(self.use.stage, CuttingStage):
            texts = ShardTexts(run, key, [p.name for p in self.through])
        documents = size = 0
        more: Counter[str] = Counter()

        def stretches() -> Iterator[pa.Table]:
            nonlocal documents, size
            groups = surveyed(run, self.use, self.after, self.through, key)
            for number, left in enumerate(groups):
                group = left if texts is None else _with_texts(texts, number, left)
                documents += group.num_rows
                for start in range(0, max(1, group.num_rows), most):
                    rows = scatter(group.slice(start, most))
                    size += rows.nbytes
                    more.update(counts_of(rows))
                    yield rows

        counts = write_run(paths[name], stretches(), self.count(run))
        facts.bytes = size
        facts.text_bytes = texts.bytes_read if texts else 0
        return {name: {"documents": documents, **counts, **more}}


def _with_texts(texts: ShardTexts, group: int, left: pa.Table) -> pa.Table:
    """The documents of a row group with their texts."""
    if not left.num_rows:
        return left.append_column("text", pa.array([], pa.large_string()))
    local = left.column("row").to_numpy().astype(np.int64) - texts.starts()[group]
    return left.append_column("text", texts.some(texts.raw(group), group, local))


def _judging(run: Run, through: list[Pass], shard: str) -> list[Pass]:
    """The pass that judged quality last, if any did."""
    source = run.shards[shard].source
    return [p for p in through if any(s.name == "quality" for s in p.stages[source])][-1:]


def surveyed(
    run: Run, use: GlobalUse, after: Pass, through: list[Pass], shard: str
) -> Iterator[pa.Table]:
    """KEY, RANK and the survey's scores of the documents that are left, by row group."""
    file = pq.ParquetFile(run.store.path(attributes(after.name, shard)))
    about = next(
        s for s in schema_meta(file.schema_arrow)["stages"] if s["name"] == use.stage.survey.name
    )
    columns = ["id", "bytes", *(f"{about['name']}.{s}" for s in about["scores"])]
    judged = [
        pq.ParquetFile(run.store.path(attributes(p.name, shard)))
        for p in _judging(run, through, shard)
    ]
    start = 0
    for group in range(file.num_row_groups):
        table = file.read_row_group(group, columns=columns).combine_chunks()
        quality = np.full(table.num_rows, -1, np.int32)  # the lowest, where no head has judged
        for other in judged:
            bucket = other.read_row_group(group, columns=["quality.bucket"]).column(0)
            quality = bucket.cast(pa.int32()).fill_null(-1).to_numpy()
        yield _left(run, about, table, quality, start, shard)
        start += table.num_rows
    if not file.num_row_groups:
        empty = file.read(columns=columns).combine_chunks()
        yield _left(run, about, empty, np.empty(0, np.int32), 0, shard)


def _left(
    run: Run, about: dict[str, Any], table: pa.Table, quality: np.ndarray, start: int, shard: str
) -> pa.Table:
    left = np.flatnonzero(table.column("bytes").is_valid().to_numpy())
    rows = table.take(pa.array(left)).combine_chunks()
    number = len(left)
    priority = run.recipe.source(run.shards[shard].source).priority
    out: dict[str, pa.Array | pa.ChunkedArray] = {
        "shard": pa.array(np.full(number, shard_hash(shard), np.uint64)),
        "id": rows.column("id"),
        "row": pa.array((left + start).astype(np.uint32)),
        "priority": pa.array(np.full(number, priority, np.uint16)),
        "quality": pa.array(quality[left]),
        "bytes": pa.array(rows.column("bytes").to_numpy().astype(np.uint32)),
    }
    for name, (dtype, shape) in about["scores"].items():
        column = rows.column(f"{about['name']}.{name}").combine_chunks()
        values, _ = score_values(column, dtype, shape)
        out[name] = _plain(values)
    return pa.table(out)


def _plain(values: np.ndarray) -> pa.Array:
    """A score as the exchange takes it: [rows, k] becomes a fixed-size list."""
    if values.ndim == 2:
        return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])
    return pa.array(values.astype(str)) if values.dtype.kind == "S" else pa.array(values)


class GatherStep(Step):
    """`exchange/<stage>/<round + 1>/<partition>.arrow`: one round over one partition."""

    needs_all = True

    def __init__(self, scatter: ScatterStep, number: int, before: ManifestStep) -> None:
        self.scatter = scatter
        self.use = scatter.use
        self.number = number
        self.step = self.use.stage.rounds[number]
        self.before = before  # manifest of the runs that it gathers
        self.fetch: FetchStep | None = None  # what fetches its texts, and the manifest of that
        self.fetched: ManifestStep | None = None
        self.earlier: list[tuple[GatherStep, ManifestStep]] = []  # the rounds before
        self.name = f"round-{self.use.stage.name}-{self.step.name}"

    def keys(self, run: Run) -> list[str]:
        """The partitions, or one key for a round that takes them all."""
        return ["all"] if isinstance(self.step, WholeRound) else self.partitions(run)

    def partitions(self, run: Run) -> list[str]:
        """The partitions of the exchange."""
        return [f"{p:04d}" for p in range(self.scatter.count(run))]

    def outputs(self, run: Run, key: str) -> tuple[str, ...]:
        """One run for the next round."""
        return (f"exchange/{self.use.stage.name}/{self.number + 1}/{key}.arrow",)

    def sources(self, run: Run) -> list[str]:
        """The runs of the round before."""
        if not self.earlier:
            return [n for s in self.scatter.keys(run) for n in self.scatter.outputs(run, s)]
        step, _ = self.earlier[-1]
        return [n for k in step.keys(run) for n in step.outputs(run, k)]

    def _beside(self) -> tuple[GatherStep, ManifestStep] | None:
        """The other round that a joining round takes."""
        if not isinstance(self.step, JoiningRound):
            return None
        return next(e for e in self.earlier if e[0].step.name == self.step.beside)

    def inputs(self, run: Run, key: str) -> dict[str, str]:
        """The pieces of its partition, in the rounds that it gathers and of fetched texts."""
        if isinstance(self.step, WholeRound):
            return run.store.digests(*self.before.outputs(run))
        beside = self._beside()
        manifests = [self.before, *([beside[1]] if beside else [])]
        manifests += [self.fetched] if self.fetched else []
        return {k: v for m in manifests for k, v in m.piece(run, int(key)).items()}

    def fingerprint(self, run: Run, key: str) -> str:
        """The whole stage, partitions included; the last round deals by groups of shards."""
        groups = len(run.decision_files(self.use)) if self.last else 0
        stage = verdict_fingerprint(self.use.stage)
        return digest([FORMAT, stage, self.number, self.scatter.count(run), key, groups])

    @property
    def last(self) -> bool:
        """Whether it gives decisions."""
        return self.number == len(self.use.stage.rounds) - 1

    def write(self, run: Run, key: str, paths: Mapping[str, Path], facts: Facts) -> Counts:
        """Gather one partition; texts are fetched for candidates alone."""
        (name,) = self.outputs(run, key)
        made = self._gather(run, key, facts)
        counts: dict[str, Any] = counts_of(made)
        count = self.scatter.count(run)
        if self.last:
            count = len(run.decision_files(self.use))
            made, counts["removed"] = _dealt(run, self.use, made)
        return {name: counts | write_run(paths[name], [made], count)}

    def _gather(self, run: Run, key: str, facts: Facts) -> pa.Table:
        names, count = self.sources(run), self.scatter.count(run)
        if isinstance(self.step, WholeRound):
            return self.step.whole(Partitions(run, names, count))
        rows = read_partition(run, names, int(key), count)
        facts.bytes = rows.nbytes
        if isinstance(self.step, JoiningRound):
            beside = self._beside()
            others = beside[0] if beside else self
            runs = [n for k in others.keys(run) for n in others.outputs(run, k)]
            return self.step.join(rows, read_partition(run, runs, int(key), count))
        if self.fetch is not None:
            return self.step.gather(rows, Fetched(run, self.fetch, int(key), count))
        texts = Texts(run, [p.name for p in self.scatter.through])
        made = self.step.gather(rows, texts)
        facts.text_bytes = texts.bytes_read
        return made


def _dealt(run: Run, use: GlobalUse, made: pa.Table) -> tuple[pa.Table, dict[str, int]]:
    """Decisions with their shard as partition (`Run.decisions`); removals by source."""
    schema = decided_columns(use.stage)
    made = made.select(schema.names).cast(schema)
    removed = dict.fromkeys(use.sources, 0)
    gone = made.column("shard").to_numpy()[made.column("code").to_numpy() != 0]
    for shard, size in zip(*(v.tolist() for v in np.unique(gone, return_counts=True)), strict=True):
        removed[run.shards[run.shard_of(shard)].source] += size
    return made.append_column("partition", made.column("shard")), removed


class DecideStep(Step):
    """`decisions/<stage>/<group>.parquet`: what becomes of the documents of about 1,000 shards."""

    needs_all = True

    def __init__(self, last: GatherStep, before: ManifestStep) -> None:
        self.last = last
        self.before = before  # manifest of the last round
        self.use = last.use
        self.name = f"decide-{self.use.stage.name}"

    def keys(self, run: Run) -> list[str]:
        """The groups of shards."""
        return [Path(name).stem for name in run.decision_files(self.use)]

    def outputs(self, run: Run, key: str) -> tuple[str, ...]:
        """One decision file."""
        return (f"decisions/{self.use.stage.name}/{key}.parquet",)

    def _runs(self, run: Run) -> list[str]:
        return [self.last.outputs(run, k)[0] for k in self.last.keys(run)]

    def inputs(self, run: Run, key: str) -> dict[str, str]:
        """All runs of the last round, by their manifest."""
        return run.store.digests(*self.before.outputs(run))

    def fingerprint(self, run: Run, key: str) -> str:
        """The shards of the group, and the caps."""
        caps = {s.name: s.removal_cap for s in run.recipe.sources}
        return digest([FORMAT, run.covered(self.use), caps, run.versions("pyarrow")])

    def write(self, run: Run, key: str, paths: Mapping[str, Path], facts: Facts) -> Counts:
        """Decisions of the group's shards, sorted by shard and id, after the caps were checked."""
        (name,) = self.outputs(run, key)
        check_caps(run, self.last)
        runs, groups = self._runs(run), len(self.keys(run))
        table = read_partition(run, runs, int(key), groups).drop_columns(["partition"])
        names = {shard_hash(s): s for s in run.shards}
        table = table.sort_by([("shard", "ascending"), ("id", "ascending")])
        witness = [
            names.get(w) if w is not None else None
            for w in table.column("witness_shard").to_pylist()
        ]
        table = table.append_column("witness_in", pa.array(witness, pa.string()))
        about = {"format": FORMAT, "reasons": list(self.use.stage.reasons)}
        table = table.replace_schema_metadata({b"gristmill": canonical(about)})
        pq.write_table(table, paths[name], compression="zstd")
        facts.bytes = table.nbytes
        removed = int((table.column("code").to_numpy() != 0).sum())
        shards, starts = np.unique(table.column("shard").to_numpy(), return_index=True)
        each = {
            names[shard]: digest_of(table.slice(start, end - start))
            for shard, (start, end) in zip(
                shards.tolist(), pairwise([*starts.tolist(), table.num_rows]), strict=True
            )
        }
        return {name: {"rows": table.num_rows, "removed": removed, "shards": each}}


def check_caps(run: Run, last: GatherStep) -> None:
    """StopError when a stage would remove more of a source than its `removal_cap`."""
    gone: dict[str, int] = {}
    left: dict[str, int] = {}
    for key in last.keys(run):
        counts = run.store.require(last.outputs(run, key)[0]).counts["removed"]
        for source, number in counts.items():
            gone[source] = gone.get(source, 0) + number
    for shard in last.scatter.keys(run):
        source = run.shards[shard].source
        (name,) = last.scatter.outputs(run, shard)
        left[source] = left.get(source, 0) + run.store.require(name).counts["documents"]
    for source, total in left.items():
        cap = run.recipe.source(source).removal_cap
        if gone[source] > cap * total:
            msg = (
                f"{last.use.stage.name} would remove {gone[source]} of {total} documents of "
                f"source {source!r}; its removal_cap is {cap}. If it is meant to be a copy, state "
                f"`removal_cap: 1` in sources.{source}; if not, look at `gristmill sample`"
            )
            raise StopError(msg)
