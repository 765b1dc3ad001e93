"""The catalogue of a run: one row per final document, and what stages wrote of it, by name.

An attribute is called `<stage>.<score>`, as its column is. A document whose source does not meet
the stage has none. Buckets, labels and scores so divide the tokens anew without a token written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..documents.errors import UsageError, did_you_mean
from ..mixing.spec import NAMES, OWN, MixSpec
from .annotate import prototypes
from .passes import attributes

if TYPE_CHECKING:
    from .recipe import Recipe
    from .run import Run

#: What the books tell apart when the recipe has the stage (`mixing.selection.DIMENSIONS`).
QUALITY = ("quality.format", "quality.bucket")


def wanted(run: Run, spec: MixSpec) -> list[str]:
    """Attributes that a plan asks for: those of its slices, and those that the books need."""
    found = set(spec.attributes) - {"length_bucket"}
    if any("quality" in _stages(run, shard) for shard in run.shards):
        found |= set(QUALITY)
    return sorted(found)


def check_attributes(recipe: Recipe, spec: MixSpec) -> None:
    """UsageError for an attribute that no stage which a source meets writes.

    Of global stages the name alone is looked at: what they write is known when they have run.
    """
    own = [stage for source in recipe.sources for stage in source.stages]
    met: set[str] = set()
    for entry in recipe.shared:
        stage = getattr(entry, "stage", entry)
        if hasattr(stage, "survey"):
            met |= {stage.name, stage.survey.name}
        else:
            own.append(stage)
    met |= {stage.name for stage in own}
    written: dict[str, set[str]] = {}
    for name, piece in spec.slices.items():
        for attribute in piece.attributes:
            stage_name = attribute.partition(".")[0]
            if attribute not in OWN and stage_name not in met:
                raise UsageError(
                    f"mixture.slices.{name}.{attribute}: no source meets a stage {stage_name!r}"
                    f"{did_you_mean(stage_name, met)}"
                )
            if attribute in (*OWN, *QUALITY):  # those of quality are none where others are asked
                continue
            if stage_name not in written:
                scores = prototypes([stage for stage in own if stage.name == stage_name])
                names = {n for found in scores for n in ("code", *found.scores)}
                written[stage_name] = {f"{stage_name}.{n}" for n in names}
            known = written[stage_name]
            if known and attribute not in known:
                hint = did_you_mean(attribute, known) or f"; there are {sorted(known)}"
                raise UsageError(f"mixture.slices.{name}: no attribute {attribute!r}{hint}")


def _stages(run: Run, shard: str) -> Mapping[str, str]:
    """Stage -> the pass that ran it on a shard."""
    found: dict[str, str] = {}
    for which in run.passes:
        if which.applies is not None and run.covers(which.applies, shard):
            found[which.applies.stage.name] = which.name
        found |= {stage.name: which.name for stage in which.stages[run.shards[shard].source]}
    return found


def files_of(run: Run, shard: str, names: Iterable[str]) -> list[str]:
    """The attribute files of a shard that hold some of the names."""
    by_stage = _stages(run, shard)
    stages = {name.partition(".")[0] for name in names if name not in OWN}
    return sorted({attributes(by_stage[s], shard) for s in stages if s in by_stage})


def catalog(run: Run, names: Iterable[str] = ()) -> pa.Table:
    """One row per final document, sorted by shard and place: what a mixture chooses from."""
    names = sorted(names)
    tables = []
    for shard in run.shards:
        table = final_columns(run, shard, ["id", *NAMES], names)
        ends = np.load(run.store.path(f"tokens/{shard}.ends.npy")).astype(np.int64)
        number = table.num_rows
        table = table.add_column(0, "shard", pa.array([shard] * number, pa.string()))
        table = table.add_column(1, "doc", pa.array(np.arange(number, dtype=np.uint32)))
        size = np.diff(ends, prepend=0).astype(np.uint32)
        tables.append(table.add_column(3, "tokens", pa.array(size)))
    # a shard without the attribute has a column of nulls, of no type
    return pa.concat_tables(tables, promote_options="default")


def final_columns(run: Run, shard: str, own: list[str], names: Iterable[str]) -> pa.Table:
    """Columns of a shard's final documents: `own` of the corpus file, and attributes by name."""
    corpus = run.store.path(f"corpus/{shard}.parquet")
    beside = [name for name in names if name in OWN]
    table = pq.read_table(corpus, columns=[*own, *beside, "row"]).replace_schema_metadata(None)
    rows = table.column("row")
    table = table.drop_columns(["row"])
    by_stage = _stages(run, shard)
    for name in names:
        if name in OWN:
            continue
        stage = by_stage.get(name.partition(".")[0])
        if stage is None:
            table = table.append_column(name, pa.nulls(table.num_rows))
            continue
        path = run.store.path(attributes(stage, shard))
        known = pq.read_schema(path).names
        if name not in known and name in QUALITY:  # the recipe asks other heads
            table = table.append_column(name, pa.nulls(table.num_rows))
            continue
        if name not in known:
            mine = [n for n in known if n.partition(".")[0] == name.partition(".")[0]]
            hint = did_you_mean(name, mine) or f"; there are {', '.join(mine)}"
            raise UsageError(f"mixture: no attribute {name!r}{hint}")
        table = table.append_column(name, pq.read_table(path, columns=[name])[name].take(rows))
    return table
