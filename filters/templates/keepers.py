"""Rounds `keepers` and `kept`: of each boilerplate line one copy stays, on a page that stays.

Which pages stay is known when the families are. So the page that keeps a line is asked for only
then, among those that the stage does not drop: the one with most words in lines that few pages of
the host have, an article rather than a list that names it. What later stages drop is not known
here: where they drop that page, the line goes with it, and the books have it under their names.

Rows are of two kinds: a document with its decision, which passes through `keepers`, and a line of a
document that stays, in the partition of the line on its host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from ...documents.exchange import DECISIONS, KEY
from ._kernels_lines import FIRST, NOTICE
from .count import LEAST
from .gather import FOUND
from .rows import array, document_hash, home, id_order, mix, places, runs

if TYPE_CHECKING:
    from ...documents.exchange import Texts

EXTRA = pa.schema([
    pa.field("words", pa.uint32(), nullable=False),
    pa.field("template_words", pa.uint32(), nullable=False),
    pa.field("own_words", pa.uint32(), nullable=False),
    pa.field("exemplar", pa.bool_(), nullable=False),
    *(FOUND.field(n) for n in ("host_pages", "lone", "filled", "segments")),
])  # fmt: skip
DECIDED = pa.schema([*DECISIONS, *EXTRA])
ASKED = pa.schema([
    pa.field("partition", pa.uint64(), nullable=False),  # of the document, or of line and host
    *KEY,
    pa.field("line", pa.uint64(), nullable=False),  # 0: a document
    pa.field("alone", pa.uint32(), nullable=False),
    pa.field("page", pa.uint64(), nullable=False),
    pa.field("decided", pa.list_(pa.struct(list(DECIDED))), nullable=False),  # one of a document
])  # fmt: skip


def with_lines(decided: pa.Table, about: pa.Table) -> pa.Table:
    """DECIDED, and FOUND of the same documents in the same order -> ASKED."""
    inner = pa.StructArray.from_arrays(
        [_whole(decided, f.name) for f in DECIDED], fields=list(DECIDED)
    )
    one = pa.array(np.arange(decided.num_rows + 1, dtype=np.int32))
    none = np.zeros(decided.num_rows, np.uint64)
    documents = _asked(about, home(*places(decided)), none, pa.ListArray.from_arrays(one, inner))
    stays = pa.array(array(decided, "code") == 0)
    about = about.filter(stays)
    lists = _whole(about, "segments")
    sizes = lists.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
    line, pages, how = (
        lists.flatten().field(n).to_numpy(zero_copy_only=False) for n in ("line", "pages", "how")
    )
    lines = about.take(pa.array(np.repeat(np.arange(about.num_rows), sizes)))
    # Of a notice that few pages of a host have, one page of all hosts keeps it.
    host = np.where((how & NOTICE != 0) & (pages < LEAST), np.uint64(0), array(lines, "host"))
    ends = pa.array(np.zeros(len(line) + 1, np.int32))
    nothing = pa.ListArray.from_arrays(ends, inner.slice(0, 0))
    return pa.concat_tables([documents, _asked(lines, mix(host, line), line, nothing)])


def _asked(table: pa.Table, partition: np.ndarray, line: np.ndarray, decided: pa.Array) -> pa.Table:
    columns = {n: table.column(n) for n in (*KEY.names, "alone", "page")}
    columns |= {
        "partition": pa.array(partition.astype(np.uint64)),
        "line": pa.array(line),
        "decided": decided,
    }
    return pa.table({n: columns[n] for n in ASKED.names}, schema=ASKED)


def _whole(table: pa.Table, name: str) -> pa.Array:
    """A column as one array."""
    column = table.column(name)
    return pa.concat_arrays([*column.chunks, pa.array([], column.type)])


def _parted(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """ASKED -> documents, and lines."""
    line = array(rows, "line")
    return rows.filter(pa.array(line == 0)), rows.filter(pa.array(line != 0))


@dataclass(frozen=True, kw_only=True)
class Keepers:
    """Of each line the document that keeps it; documents with their decisions."""

    name: ClassVar[str] = "keepers"

    def gather(self, rows: pa.Table, texts: Texts) -> pa.Table:
        """ASKED of whole lines -> ASKED, of each line one row, by document."""
        documents, lines = _parted(rows)
        most = np.uint32(0xFFFFFFFF) - array(lines, "alone")
        order = id_order(lines, array(lines, "partition"), most, array(lines, "page"))
        starts, _ = runs(array(lines, "partition")[order])
        kept = lines.take(pa.array(order[starts]))
        own = pa.array(home(*places(kept)))
        return pa.concat_tables([documents, kept.set_column(0, ASKED.field("partition"), own)])


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Decisions that say of each line whether the document keeps it."""

    name: ClassVar[str] = "kept"

    def gather(self, rows: pa.Table, texts: Texts) -> pa.Table:
        """ASKED of whole documents -> DECIDED, in order of shard and id."""
        documents, kept = _parted(rows)
        decided = pa.Table.from_struct_array(_whole(documents, "decided").flatten())
        lists = _whole(decided, "segments")
        flat = lists.flatten()
        sizes = lists.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
        which = np.repeat(document_hash(*places(decided)), sizes)
        digests = flat.field("line").to_numpy(zero_copy_only=False)
        first = np.isin(mix(which, digests), mix(document_hash(*places(kept)), array(kept, "line")))
        how = flat.field("how").to_numpy(zero_copy_only=False) | (first * FIRST).astype(np.uint8)
        fields = [flat.field("line"), flat.field("pages"), pa.array(how)]
        offsets = pa.array(np.append(0, np.cumsum(sizes)).astype(np.int32))
        segments = pa.ListArray.from_arrays(
            offsets, pa.StructArray.from_arrays(fields, fields=list(lists.type.value_type))
        )
        at = decided.column_names.index("segments")
        decided = decided.set_column(at, DECIDED.field("segments"), segments)
        return decided.cast(DECIDED).take(pa.array(id_order(decided, array(decided, "shard"))))
