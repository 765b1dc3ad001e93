"""Global stages on the exchange: scatter per shard, gather per partition and round, then decide.

Only here does a run wait for all shards: every step of this file refuses to start while a piece is
missing, and names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..documents.errors import StopError
from ..documents.exchange import DECISIONS, CuttingStage
from ..documents.fingerprint import canonical, digest, measure_fingerprint, verdict_fingerprint
from ..documents.identity import shard_hash
from .columns import schema_meta, score_values
from .exchange import partitions, read_partition, write_run
from .passes import Pass, attributes
from .run import GROUP
from .steps import Counts, Facts, ManifestStep, Step
from .texts import ShardTexts, Texts

if TYPE_CHECKING:
    from .recipe import GlobalUse
    from .run import Run

FORMAT = 1


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

    def keys(self, run: Run) -> list[str]:
        """The shards that the stage covers."""
        return run.covered(self.use)

    def outputs(self, run: Run, key: str) -> tuple[str, ...]:
        """One run of the exchange."""
        return (f"exchange/{self.use.stage.name}/0/{key}.arrow",)

    def count(self, run: Run) -> int:
        """Partitions, from the documents that are left in all shards."""
        files = self.surveyed.files(run)
        left = sum(files[attributes(self.after.name, s)][1] for s in run.covered(self.use))
        return partitions(run, left)

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
        """Rows of the documents that are left."""
        (name,) = self.outputs(run, key)
        documents = _surveyed(run, self.use, self.after, self.through, key)
        if isinstance(self.use.stage, CuttingStage):
            rows = self._with_texts(run, key, documents, facts)
        else:
            rows = self.use.stage.scatter(documents)
        write_run(paths[name], rows, self.count(run))
        facts.bytes = rows.nbytes
        return {name: {"documents": documents.num_rows, "rows": rows.num_rows}}

    def _with_texts(self, run: Run, key: str, documents: pa.Table, facts: Facts) -> pa.Table:
        """Scatter row group by row group, each with its texts."""
        texts = ShardTexts(run, key, [p.name for p in self.through])
        starts = texts.starts()
        row = documents.column("row").to_numpy()
        found = []
        for group in range(texts.groups):
            first, last = np.searchsorted(row, starts[group : group + 2])
            some = documents.slice(first, last - first)
            local = pa.array(row[first:last] - starts[group])
            found.append(
                self.use.stage.scatter(some.append_column("text", texts.group(group).take(local)))
            )
        if not found:
            empty = documents.append_column("text", pa.array([], pa.large_string()))
            found = [self.use.stage.scatter(empty)]
        facts.text_bytes = texts.bytes_read
        return pa.concat_tables(found)


def _judging(run: Run, through: list[Pass], shard: str) -> list[Pass]:
    """The pass that judged quality last, if any did."""
    source = run.shards[shard].source
    return [p for p in through if any(s.name == "quality" for s in p.stages[source])][-1:]


def _quality(run: Run, through: list[Pass], shard: str, rows: np.ndarray) -> np.ndarray:
    """Frozen bucket of each row, int32; -1, the lowest, where no head has judged."""
    for judged in _judging(run, through, shard):
        path = run.store.path(attributes(judged.name, shard))
        bucket = pq.read_table(path, columns=["quality.bucket"]).column(0).combine_chunks()
        return bucket.cast(pa.int32()).fill_null(-1).to_numpy()[rows]
    return np.full(len(rows), -1, np.int32)


def _surveyed(run: Run, use: GlobalUse, after: Pass, through: list[Pass], shard: str) -> pa.Table:
    """KEY, RANK and the survey's scores of the documents that are left after a pass."""
    file = pq.ParquetFile(run.store.path(attributes(after.name, shard)))
    about = next(
        s for s in schema_meta(file.schema_arrow)["stages"] if s["name"] == use.stage.survey.name
    )
    columns = [f"{about['name']}.{s}" for s in about["scores"]]
    table = file.read(columns=["id", "bytes", *columns]).combine_chunks()
    left = np.flatnonzero(table.column("bytes").is_valid().to_numpy())
    rows = table.take(pa.array(left))
    number = len(left)
    priority = run.recipe.source(run.shards[shard].source).priority
    out: dict[str, pa.Array | pa.ChunkedArray] = {
        "shard": pa.array(np.full(number, shard_hash(shard), np.uint64)),
        "id": rows.column("id"),
        "row": pa.array(left.astype(np.uint32)),
        "priority": pa.array(np.full(number, priority, np.uint16)),
        "quality": pa.array(_quality(run, through, shard, left)),
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
        self.before = before  # manifest of the runs that it gathers
        self.name = f"round-{self.use.stage.name}-{self.use.stage.rounds[number].name}"

    def keys(self, run: Run) -> list[str]:
        """The partitions."""
        return [f"{p:04d}" for p in range(self.scatter.count(run))]

    def outputs(self, run: Run, key: str) -> tuple[str, ...]:
        """One run for the next round."""
        return (f"exchange/{self.use.stage.name}/{self.number + 1}/{key}.arrow",)

    def _before(self, run: Run) -> list[str]:
        if self.number == 0:
            return [f"exchange/{self.use.stage.name}/0/{s}.arrow" for s in run.covered(self.use)]
        return [f"exchange/{self.use.stage.name}/{self.number}/{k}.arrow" for k in self.keys(run)]

    def inputs(self, run: Run, key: str) -> dict[str, str]:
        """All runs of the round before, by their manifest."""
        return run.store.digests(*self.before.outputs(run))

    def fingerprint(self, run: Run, key: str) -> str:
        """The whole stage, partitions included."""
        return digest(
            [FORMAT, verdict_fingerprint(self.use.stage), self.number, len(self.keys(run)), key]
        )

    def write(self, run: Run, key: str, paths: Mapping[str, Path], facts: Facts) -> Counts:
        """Gather one partition; texts are fetched for candidates alone."""
        (name,) = self.outputs(run, key)
        rows = read_partition(run, self._before(run), int(key))
        texts = Texts(run, [p.name for p in self.scatter.through])
        made = self.use.stage.rounds[self.number].gather(rows, texts)
        facts.bytes = rows.nbytes
        facts.text_bytes = texts.bytes_read
        last = self.number == len(self.use.stage.rounds) - 1
        if last:
            stage = self.use.stage
            schema = stage.decided if isinstance(stage, CuttingStage) else DECISIONS
            made = made.select(schema.names).cast(schema)
            made = made.append_column("partition", pa.array(np.zeros(made.num_rows, np.uint64)))
        write_run(paths[name], made, 1 if last else len(self.keys(run)))
        return {name: {"rows": made.num_rows}}


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
        return [f"{g:05d}" for g in range(-(-len(run.covered(self.use)) // GROUP))]

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
        decided = read_partition(run, self._runs(run), 0).drop_columns(["partition"])
        check_caps(run, self.last.scatter, decided)
        group = run.covered(self.use)[int(key) * GROUP : (int(key) + 1) * GROUP]
        names = {shard_hash(s): s for s in run.shards}
        mine = np.isin(decided.column("shard").to_numpy(), [shard_hash(s) for s in group])
        table = decided.filter(pa.array(mine)).sort_by(
            [("shard", "ascending"), ("id", "ascending")]
        )
        witness = [
            names.get(w) if w is not None else None
            for w in table.column("witness_shard").to_pylist()
        ]
        table = table.append_column("witness_in", pa.array(witness, pa.string()))
        about = {"format": FORMAT, "reasons": list(self.use.stage.reasons)}
        table = table.replace_schema_metadata({b"gristmill": canonical(about)})
        pq.write_table(table, paths[name], compression="zstd")
        facts.bytes = decided.nbytes
        removed = int((table.column("code").to_numpy() != 0).sum())
        return {name: {"rows": table.num_rows, "removed": removed}}


def check_caps(run: Run, scatter: ScatterStep, decided: pa.Table) -> None:
    """StopError when a stage would remove more of a source than its `removal_cap`."""
    removed = (
        decided.filter(pa.array(decided.column("code").to_numpy() != 0)).column("shard").to_numpy()
    )
    gone: dict[str, int] = {}
    left: dict[str, int] = {}
    for shard in run.covered(scatter.use):
        source = run.shards[shard].source
        (name,) = scatter.outputs(run, shard)
        left[source] = left.get(source, 0) + run.store.require(name).counts["documents"]
        gone[source] = gone.get(source, 0) + int((removed == np.uint64(shard_hash(shard))).sum())
    for source, total in left.items():
        cap = run.recipe.source(source).removal_cap
        if gone[source] > cap * total:
            msg = (
                f"{scatter.use.stage.name} would remove {gone[source]} of {total} documents of "
                f"source {source!r}; its removal_cap is {cap}. If it is meant to be a copy, state "
                f"`removal_cap: 1` in sources.{source}; if not, look at `gristmill sample`"
            )
            raise StopError(msg)
