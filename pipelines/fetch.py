"""Texts for a round (`documents.exchange.FetchingRound`): asked for by partition, read by shard.

    wanted   per partition: the documents that its `gather` will ask for, sorted by shard and row
    fetched  per shard: what the round keeps of each wanted text, a batch for each partition

Each row group with a wanted document is read once, whatever asks for it, so reading is linear in
the corpus and not in documents times partitions. What is kept (sets of shingles: 1.3 bytes for one
of text) is written once for each partition that wants it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ..documents.errors import StopError
from ..documents.exchange import FetchingRound
from ..documents.fingerprint import digest, verdict_fingerprint
from ..documents.identity import shard_hash
from .exchange import (
    STRETCH,
    batches_of,
    hash_of,
    part_of_shard,
    power_of_two,
    read_partition,
    write_run,
)
from .passes import Pass, attributes
from .steps import Counts, Facts, ManifestStep, Step
from .texts import ShardTexts

if TYPE_CHECKING:
    from .rounds import GatherStep
    from .run import Run

FORMAT = 2


class WantedStep(Step):
    """`exchange/<stage>/<n>-wanted/<partition>.arrow`: documents whose texts round n will need.

    Its pieces are for some shards each, one where there are at most `MOST`: a shard of which the
    same is wanted as before is not read again.
    """

    needs_all = True

    def __init__(self, of: GatherStep) -> None:
        self.of = of
        self.name = f"wanted-{of.use.stage.name}-{of.step.name}"

    def keys(self, run: Run) -> list[str]:
        """The partitions."""
        return self.of.keys(run)

    def outputs(self, run: Run, key: str) -> tuple[str, ...]:
        """One run of the exchange, each piece sorted by shard and row."""
        return (f"exchange/{self.of.use.stage.name}/{self.of.number}-wanted/{key}.arrow",)

    def inputs(self, run: Run, key: str) -> dict[str, str]:
        """The rows that the round gathers."""
        return self.of.before.piece(run, int(key))

    def fingerprint(self, run: Run, key: str) -> str:
        """The whole stage, partitions included."""
        stage = verdict_fingerprint(self.of.use.stage)
        return digest([FORMAT, stage, len(self.keys(run)), key, self.pieces(run)])

    def pieces(self, run: Run) -> int:
        """Of how many pieces each file is."""
        return power_of_two(len(run.covered(self.of.use)), 1)

    def piece_of(self, run: Run, shard: str) -> int:
        """The piece for a shard."""
        return part_of_shard(shard, self.pieces(run))

    def write(self, run: Run, key: str, paths: Mapping[str, Path], facts: Facts) -> Counts:
        """Ask the round."""
        (name,) = self.outputs(run, key)
        rows = read_partition(run, self.of.sources(run), int(key), len(self.keys(run)))
        wanted = fetching(self.of).needs(rows).combine_chunks()
        wanted = wanted.sort_by([("shard", "ascending"), ("row", "ascending")])
        wanted = wanted.append_column("partition", wanted.column("shard"))
        facts.bytes = rows.nbytes
        return {name: write_run(paths[name], [wanted], self.pieces(run))}


class FetchStep(Step):
    """`exchange/<stage>/<n>-fetched/<shard>.arrow`: what round n keeps of a shard's texts."""

    needs_all = True

    def __init__(self, wanted: WantedStep, before: ManifestStep, through: list[Pass]) -> None:
        self.wanted = wanted
        self.before = before  # manifest of what is wanted
        self.through = through  # passes whose edits make the text
        self.name = f"fetch-{wanted.of.use.stage.name}-{wanted.of.step.name}"

    def keys(self, run: Run) -> list[str]:
        """The shards that the stage covers."""
        return run.covered(self.wanted.of.use)

    def outputs(self, run: Run, key: str) -> tuple[str, ...]:
        """One run of the exchange."""
        of = self.wanted.of
        return (f"exchange/{of.use.stage.name}/{of.number}-fetched/{key}.arrow",)

    def inputs(self, run: Run, key: str) -> dict[str, str]:
        """What is wanted of the shard, and what makes the texts."""
        names = [attributes(p.name, key) for p in self.through]
        wanted = self.before.piece(run, self.wanted.piece_of(run, key))
        return run.store.digests(f"documents/{key}.parquet", *names) | wanted

    def fingerprint(self, run: Run, key: str) -> str:
        """The whole stage, partitions included."""
        stage = self.wanted.of.use.stage
        versions = run.versions("pyarrow")
        return digest([FORMAT, verdict_fingerprint(stage), len(self.wanted.keys(run)), versions])

    def write(self, run: Run, key: str, paths: Mapping[str, Path], facts: Facts) -> Counts:
        """Read the row groups that hold wanted texts."""
        (name,) = self.outputs(run, key)
        row, part = self._asked(run, key)
        texts = ShardTexts(run, key, [p.name for p in self.through])
        count = len(self.wanted.keys(run))
        counts = write_run(paths[name], self._stretches(texts, row, hash_of(part, count)), count)
        facts.bytes = facts.text_bytes = texts.bytes_read
        return {name: {**counts, "documents": len(np.unique(row))}}

    def _asked(self, run: Run, shard: str) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the shard that are wanted, ascending, and by which partition."""
        number = np.uint64(shard_hash(shard))
        rows, parts = [], []
        piece, pieces = self.wanted.piece_of(run, shard), self.wanted.pieces(run)
        for key in self.wanted.keys(run):
            (name,) = self.wanted.outputs(run, key)
            (table,) = batches_of(run.store.path(name), piece, pieces)
            shards = table.column("shard").to_numpy()
            first, last = np.searchsorted(shards, number), np.searchsorted(shards, number, "right")
            found = table.column("row").slice(first, last - first).to_numpy()
            rows.append(found)
            parts.append(np.full(len(found), int(key), np.uint32))
        row, part = np.concatenate(rows), np.concatenate(parts)
        order = np.lexsort((part, row))
        return row[order], part[order]

    def _stretches(
        self, texts: ShardTexts, row: np.ndarray, where: np.ndarray
    ) -> Iterator[pa.Table]:
        """What the round keeps of the texts of some row groups, once for each that wants it."""
        keep = fetching(self.wanted.of).prepare
        starts = texts.starts()
        held: list[pa.Table] = [_kept(where[:0], row[:0], keep(pa.array([], pa.large_string())))]
        size = 0
        for group in range(texts.groups):
            first, last = np.searchsorted(row, starts[group : group + 2])
            if first == last:
                continue
            distinct, place = np.unique(row[first:last], return_inverse=True)
            local = distinct.astype(np.int64) - starts[group]
            values = keep(texts.some(texts.raw(group), group, local))
            held.append(_kept(where[first:last], row[first:last], values.take(pa.array(place))))
            size += held[-1].nbytes
            if size > 2 * STRETCH:
                yield pa.concat_tables(held)
                held, size = [held[0].slice(0, 0)], 0
        yield pa.concat_tables(held)


def _kept(where: np.ndarray, row: np.ndarray, values: pa.Array) -> pa.Table:
    return pa.table({"partition": pa.array(where), "row": pa.array(row), "value": values})


def fetching(of: GatherStep) -> FetchingRound:
    """The round as one that fetches."""
    if not isinstance(of.step, FetchingRound):
        msg = f"round {of.step.name!r} fetches no texts"
        raise StopError(msg)
    return of.step


class Fetched:
    """What was kept of texts, by (shard hash, row), for one partition; mapped from the runs."""

    def __init__(self, run: Run, fetch: FetchStep, partition: int, count: int) -> None:
        self._batches: list[pa.Array] = []
        shards, rows, places = [], [], []
        for shard in fetch.keys(run):
            (name,) = fetch.outputs(run, shard)
            for batch in batches_of(run.store.path(name), partition, count):
                if batch.num_rows or not self._batches:
                    shards.append(np.full(batch.num_rows, shard_hash(shard), np.uint64))
                    rows.append(batch.column("row").to_numpy())
                    places.append(np.full(batch.num_rows, len(self._batches), np.int64))
                    self._batches.append(batch.column("value"))
        shard_of, row, place = map(np.concatenate, (shards, rows, places))
        within = np.arange(len(row)) - np.searchsorted(place, place)
        order = np.lexsort((row, shard_of))
        self._shard, self._row = shard_of[order], row[order].astype(np.int64)
        self._place, self._within = place[order], within[order]

    def __call__(self, shard: np.ndarray, row: np.ndarray) -> pa.Array:
        """Values in the order asked; StopError when one was not fetched."""
        at = np.empty(len(row), np.int64)
        for number in np.unique(shard):  # shards are few beside rows
            mine = np.flatnonzero(shard == number)
            first = np.searchsorted(self._shard, number)
            last = np.searchsorted(self._shard, number, "right")
            found = np.searchsorted(self._row[first:last], row[mine]) + first
            if (found >= last).any() or (self._row[found] != row[mine]).any():
                msg = "a round asked for a text that it did not name before; its `needs` is wrong"
                raise StopError(msg)
            at[mine] = found
        place, within = self._place[at], self._within[at]
        order = np.argsort(place, kind="stable")
        ends = np.flatnonzero(np.diff(place[order], append=-1)) + 1
        pieces, start = [], 0
        for end in ends.tolist():
            some = order[start:end]
            pieces.append(self._batches[place[some[0]]].take(pa.array(within[some])))
            start = end
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        joined = pa.concat_arrays(pieces) if pieces else self._batches[0].slice(0, 0)
        return joined.take(pa.array(back))
