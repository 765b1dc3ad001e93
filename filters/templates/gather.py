"""Round `pages`: what all that was counted says of one document.

A line is boilerplate where at least `line_share` of its host's pages (and `line_pages`) have it
word for word, or where it is a notice; the first page that has it keeps it. The page's family is
the page that most of its anchors name. A host of fewer than `line_pages` pages is lone: no line of
it can be counted, and its pages are named only where something else is done with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from ...documents.exchange import KEY, RANK
from .count import ACROSS, FILL, FIRST, LEAST, NOTICE
from .rows import (
    ANCHOR,
    DOCUMENT,
    LINE,
    array,
    document_hash,
    fraction,
    group_of,
    mix,
    places,
    runs,
)

if TYPE_CHECKING:
    from ...documents.exchange import Texts

FOUND = pa.schema([
    pa.field("partition", pa.uint64(), nullable=False),
    *KEY,
    *RANK,
    pa.field("page", pa.uint64(), nullable=False),
    pa.field("text", pa.uint64(), nullable=False),
    pa.field("family", pa.uint64(), nullable=False),  # 0: none
    pa.field("lone", pa.bool_(), nullable=False),  # see `Templates.lone`
    pa.field("filled", pa.list_(pa.uint64()), nullable=False),
    pa.field("segments", pa.list_(pa.uint64()), nullable=False),
])  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Gather:
    """One row for every document with boilerplate, fill-in lines or a family, or of a lone host."""

    name: ClassVar[str] = "pages"
    line_pages: int = 5
    line_share: str = "0.05"  # of the host's pages
    min_pages: int = 10
    lone: bool = False  # pages of lone hosts are named too

    def gather(self, rows: pa.Table, texts: Texts) -> pa.Table:
        """SEEN of whole documents -> FOUND."""
        shard, row = places(rows)
        kind = array(rows, "kind")
        order = np.lexsort((kind, row, shard))
        shard, row, kind = shard[order], row[order], kind[order]
        starts, sizes = runs(shard, row)
        document = group_of(starts, sizes)
        heads = rows.take(pa.array(order[starts]))  # page rows: kind 0 comes first
        values, number, flag, host = (
            array(rows, n)[order] for n in ("value", "pages", "flag", "host")
        )
        host_pages, anchors = array(heads, "pages"), array(heads, "mark")
        line = kind == LINE
        share = fraction(self.line_share)
        often = -(-host_pages.astype(np.int64) * share.numerator // share.denominator)
        least = np.maximum(self.line_pages, often)
        known = (number >= least[document]) & (host != 0) & ((flag & FILL) == 0)
        strip = line & (known | ((flag & NOTICE) != 0)) & ((flag & FIRST) == 0)
        filled = line & ((flag & FILL) != 0)
        filled &= 50 * number.astype(np.int64) >= host_pages[document]
        family = self._families(document, kind, values, number, flag, anchors)
        lone = (array(heads, "host") != 0) & (host_pages < self.line_pages) & self.lone
        segments = _lists(document, values, strip & ~filled, len(starts))
        fills = _lists(document, values, filled, len(starts))
        own = document_hash(shard[starts], row[starts])
        who = heads.column("document").combine_chunks()
        inner = (
            pa.concat_arrays([c.flatten() for c in who.chunks])
            if isinstance(who, pa.ChunkedArray)
            else who.flatten()
        )
        columns = {n: heads.column(n) for n in ("shard", "row", "page")}
        columns |= {f.name: inner.field(i) for i, f in enumerate(DOCUMENT)}
        columns |= {
            "partition": pa.array(np.where(family != 0, mix(family), own)),
            "text": heads.column("value"),
            "family": pa.array(family),
            "lone": pa.array(lone),
            "filled": fills,
            "segments": segments,
        }
        table = pa.table({n: columns[n] for n in FOUND.names}, schema=FOUND)
        some = np.bincount(document, strip | filled, minlength=len(starts)) > 0
        return table.filter(pa.array(some | (family != 0) | lone))

    def _families(
        self,
        document: np.ndarray,
        kind: np.ndarray,
        values: np.ndarray,
        number: np.ndarray,
        flag: np.ndarray,
        anchors: np.ndarray,
    ) -> np.ndarray:
        """For each document the page that most of its anchors name, uint64; 0: none."""
        anchor = np.flatnonzero(kind == ANCHOR)
        across = (flag[anchor] & ACROSS) != 0
        label, of, pages_ = values[anchor], document[anchor], number[anchor].astype(np.int64)
        order = np.lexsort((label, across, of))
        starts, votes = runs(of[order], across[order], label[order])
        if not len(starts):
            return np.zeros(len(anchors), np.uint64)
        first = order[starts]
        of, across, label = of[first], across[first], label[first]
        size = np.maximum.reduceat(pages_[order], starts)
        good = (size >= self.min_pages) & (votes >= LEAST) & (4 * votes >= anchors[of])
        of, across, label, votes, size = (v[good] for v in (of, across, label, votes, size))
        # Most votes; a host's own family before one across hosts; then the lesser hash.
        order = np.lexsort((label, across, -votes, of))
        starts, _ = runs(of[order])
        family = np.zeros(len(anchors), np.uint64)
        family[of[order[starts]]] = label[order[starts]]
        return family


def _lists(document: np.ndarray, values: np.ndarray, which: np.ndarray, rows: int) -> pa.Array:
    """Distinct values of each document, ascending, as lists."""
    of, values = document[which], values[which]
    order = np.lexsort((values, of))
    starts, _ = runs(of[order], values[order])
    chosen = order[starts]
    offsets = np.zeros(rows + 1, np.int32)
    np.cumsum(np.bincount(of[chosen], minlength=rows), out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values[chosen]))
