"""Texts of a shard as some passes left them: documents with the recorded edits made.

Row groups of attributes are those of documents, so group i and row r name the same document in all
files of a shard. A group holds at most 8 MiB of text (a longer document stands alone).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..documents.edits import Edits, apply_edits, moved, pick
from ..documents.schema import TURN, TURNS
from .columns import edits_from, schema_meta
from .emptied import close_emptied

if TYPE_CHECKING:
    from .run import Run

NARROW = ["id", "url", "host", "source", "dump", "date", "license", "metadata"]


class ShardTexts:
    """One shard's texts with the edits of `passes` made, by row group."""

    def __init__(self, run: Run, shard: str, passes: list[str]) -> None:
        self._documents = pq.ParquetFile(run.store.path(f"documents/{shard}.parquet"))
        files = [pq.ParquetFile(run.store.path(f"attributes/{p}/{shard}.parquet")) for p in passes]
        self._edits = [
            (file, about)
            for file in files
            for about in schema_meta(file.schema_arrow)["stages"]
            if about["edit_reasons"] is not None
        ]
        self.groups = self._documents.num_row_groups
        self.bytes_read = 0  # text bytes taken from documents
        self._held: tuple[int, int, pa.LargeStringArray] | None = None
        self._narrow: tuple[int, pa.Table] | None = None

    def rows(self, group: int) -> int:
        """Documents in a row group."""
        return int(self._documents.metadata.row_group(group).num_rows)

    def starts(self) -> np.ndarray:
        """First row of each group and the end, int64[groups + 1]."""
        return np.cumsum([0] + [self.rows(g) for g in range(self.groups)])

    def group(self, group: int) -> pa.LargeStringArray:
        """All texts of a row group; dropped rows included."""
        if self._held is None or self._held[:2] != (group, 0):
            text = self.raw(group)
            for edits in self._recorded(group):
                text = apply_edits(text, edits)
            self._held = (group, 0, text)
        return self._held[2]

    def turns(self, group: int, rows: np.ndarray) -> pa.Array:
        """Turns of some rows of a group (`schema.TURNS`), where they stand after the edits."""
        table = self._documents.read_row_group(group, columns=["turns"])
        column = table.column(0).combine_chunks()
        column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
        some = column.take(pa.array(rows))
        if some.null_count == len(some):
            return some
        sizes = some.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        text = np.repeat(np.arange(len(some)), sizes)
        items = some.flatten()
        places = {n: items.field(n).to_numpy().astype(np.int64) for n in ("start", "body", "stop")}
        for edits in self._recorded(group):
            mine = edits_of(edits, rows)
            if len(mine.rows):
                places = {n: moved(mine, text, at) for n, at in places.items()}
        offsets = np.append([0], np.cumsum(sizes)).astype(np.int32)
        said = pc.greater(items.field("stop"), items.field("body")).to_numpy(zero_copy_only=False)
        emptied = said & (places["stop"] == places["body"])
        trained = items.field("trained").to_numpy(zero_copy_only=False).copy()
        for row in np.unique(text[emptied]):
            of = slice(offsets[row], offsets[row + 1])
            roles = items.field("role")[of.start : of.stop].to_pylist()
            close_emptied(roles, {n: p[of] for n, p in places.items()}, trained[of], emptied[of])
        now = {**places, "trained": trained}
        fields = [
            pa.array(now[f.name], f.type) if f.name in now else items.field(f.name) for f in TURN
        ]
        return pa.ListArray.from_arrays(
            offsets,
            pa.StructArray.from_arrays(fields, fields=list(TURN)),
            type=TURNS,
            mask=some.is_null(),
        )

    def raw(self, group: int) -> pa.LargeStringArray:
        """All texts of a row group as they were read."""
        column = self._documents.read_row_group(group, columns=["text"]).column(0)
        text = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        if isinstance(text, pa.ChunkedArray):
            text = pa.concat_arrays(text.chunks) if text.num_chunks else pa.array([], text.type)
        self.bytes_read += text.nbytes
        return text

    def some(self, raw: pa.LargeStringArray, group: int, rows: np.ndarray) -> pa.LargeStringArray:
        """Some rows of a group, ascending and distinct; only these are edited, not all of `raw`."""
        text = raw.take(pa.array(rows))
        for edits in self._recorded(group):
            text = apply_edits(text, edits_of(edits, rows))
        return text

    def _recorded(self, group: int) -> Iterator[Edits]:
        for file, about in self._edits:
            name = f"{about['name']}.edits"
            lists = file.read_row_group(group, columns=[name]).column(0).combine_chunks()
            yield edits_from(lists, about)

    def _edited(self, group: int, pending: list[Edits]) -> pa.LargeStringArray:
        """The group's texts with further edits made one after the other; holds the latest."""
        done = 0
        if self._held is not None and self._held[0] == group and self._held[1] <= len(pending):
            done, text = self._held[1], self._held[2]
        else:
            self._held = None
            text = self.group(group)
        for edits in pending[done:]:
            text = apply_edits(text, edits)
        self._held = (group, len(pending), text)
        return text

    def batch(
        self, group: int, rows: np.ndarray, pending: list[Edits], *, with_text: bool
    ) -> pa.RecordBatch:
        """Some rows of a group as a batch for a stage; without text `text` is empty strings."""
        if self._narrow is None or self._narrow[0] != group:
            self._narrow = (group, self._documents.read_row_group(group, columns=NARROW))
        table = self._narrow[1]
        everything = len(rows) == table.num_rows
        if with_text:
            text: pa.Array = self._edited(group, pending)
            text = text if everything else text.take(pa.array(rows))
        else:
            text = pa.array([""] * len(rows), pa.large_string())
        if not everything:
            table = table.take(pa.array(rows))
        table = table.add_column(1, pa.field("text", pa.large_string(), nullable=False), text)
        batches = table.combine_chunks().to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def edits_of(edits: Edits, rows: np.ndarray) -> Edits:
    """The edits of some rows (ascending, distinct), renumbered by their place in `rows`."""
    place = np.searchsorted(rows, edits.rows)
    inside = place < len(rows)
    inside[inside] = rows[place[inside]] == edits.rows[inside]
    return replace(pick(edits, inside), rows=place[inside])


class Texts:
    """Fetch texts by (shard hash, row) from anywhere in the run: `documents.exchange.Texts`.

    Candidates are fetched row group by row group; the last few groups are kept.
    """

    KEEP = 4  # row groups, at most about 8 MiB of text each

    def __init__(self, run: Run, passes: list[str]) -> None:
        self._run = run
        self._passes = passes
        self._shards: dict[int, tuple[ShardTexts, np.ndarray]] = {}
        self._groups: OrderedDict[tuple[int, int], pa.LargeStringArray] = OrderedDict()

    def __call__(self, shard: np.ndarray, row: np.ndarray) -> pa.LargeStringArray:
        """Texts in the order asked; uint64[n] shard hashes, uint32[n] rows."""
        order = np.lexsort((row, shard))
        pieces: list[pa.Array] = []
        i = 0
        while i < len(order):
            number = int(shard[order[i]])
            texts, starts = self._shard(number)
            group = int(np.searchsorted(starts, row[order[i]], side="right")) - 1
            j = i
            while (
                j < len(order) and shard[order[j]] == number and row[order[j]] < starts[group + 1]
            ):
                j += 1
            local = row[order[i:j]].astype(np.int64) - starts[group]
            distinct, place = np.unique(local, return_inverse=True)
            found = texts.some(self._group(number, texts, group), group, distinct)
            pieces.append(found.take(pa.array(place)))
            i = j
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        joined = pa.concat_arrays(pieces) if pieces else pa.array([], pa.large_string())
        return joined.take(pa.array(back))

    @property
    def bytes_read(self) -> int:
        """Text bytes taken from documents so far."""
        return sum(t.bytes_read for t, _ in self._shards.values())

    def _shard(self, number: int) -> tuple[ShardTexts, np.ndarray]:
        if number not in self._shards:
            texts = ShardTexts(self._run, self._run.shard_of(number), self._passes)
            self._shards[number] = (texts, texts.starts())
        return self._shards[number]

    def _group(self, number: int, texts: ShardTexts, group: int) -> pa.LargeStringArray:
        at = (number, group)
        if at not in self._groups:
            self._groups[at] = texts.raw(group)
            while len(self._groups) > self.KEEP:
                self._groups.popitem(last=False)
        self._groups.move_to_end(at)
        return self._groups[at]
