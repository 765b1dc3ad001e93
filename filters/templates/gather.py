"""Round `pages`: what all that was counted says of one document.

A line is boilerplate where at least `line_share` of its host's pages (and `line_pages`) have it
word for word, or where it is a notice; which page keeps it is asked when it is known which pages
stay (`templates.keepers`). The page's family is the page that most of its anchors name. A host of
fewer than `line_pages` pages is lone: no line of it can be counted, and its pages are named only
where something else is done with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from ...documents.exchange import KEY, RANK
from ._kernels_lines import AFTER, BEFORE, NEARLY, NOTICE, OFTEN
from .count import ACROSS, FILL, LEAST
from .rows import (
    ANCHOR,
    DOCUMENT,
    LINE,
    array,
    fraction,
    group_of,
    home,
    mix,
    places,
    runs,
)

if TYPE_CHECKING:
    from ...documents.exchange import Texts

# A line that may go: its digest; pages of the host that have it, hosts for a notice; how it stands
# (`FIRST`: this page keeps it; `BEFORE`, `AFTER`: it has the neighbour that nearly all have here;
# `NOTICE`: it goes at an end of the page; `OFTEN`, `NEARLY`: half, 9 in 10 of the pages have it).
SEGMENT = pa.struct([
    pa.field("line", pa.uint64(), nullable=False),
    pa.field("pages", pa.uint32(), nullable=False),
    pa.field("how", pa.uint8(), nullable=False),
])  # fmt: skip
VOTES = 5  # a page is of a family that one in so many of its anchors names; prose has anchors too
FOUND = pa.schema([
    pa.field("partition", pa.uint64(), nullable=False),
    *KEY,
    *RANK,
    pa.field("page", pa.uint64(), nullable=False),
    pa.field("text", pa.uint64(), nullable=False),
    pa.field("family", pa.uint64(), nullable=False),  # 0: none
    pa.field("host", pa.uint64(), nullable=False),
    pa.field("host_pages", pa.uint32(), nullable=False),  # distinct URLs of it
    pa.field("alone", pa.uint32(), nullable=False),  # words in lines that few pages have
    pa.field("lone", pa.bool_(), nullable=False),  # see `Templates.lone`
    pa.field("filled", pa.list_(pa.uint64()), nullable=False),
    pa.field("segments", pa.list_(SEGMENT), nullable=False),
])  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Gather:
    """One row for every document with boilerplate, fill-in lines or a family, or of a lone host."""

    name: ClassVar[str] = "pages"
    line_pages: int = 5
    line_share: str = "0.25"  # of the host's pages
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
        often = known & (2 * number.astype(np.int64) >= host_pages[document])
        nearly = known & (10 * number.astype(np.int64) >= 9 * host_pages[document].astype(np.int64))
        flag = flag | (often * OFTEN + nearly * NEARLY).astype(np.uint8)
        strip = line & (known | ((flag & NOTICE) != 0))
        strip &= (flag & (BEFORE | AFTER | NOTICE | OFTEN)) != 0
        filled = line & ((flag & FILL) != 0)
        filled &= 50 * number.astype(np.int64) >= host_pages[document]
        family = self._families(document, kind, values, number, flag, anchors)
        lone = (array(heads, "host") != 0) & (host_pages < self.line_pages) & self.lone
        segments, chosen, how = _lists(document, values, flag, strip & ~filled, len(starts))
        inside = [values[chosen], number[chosen], how & (NOTICE | OFTEN | NEARLY | BEFORE | AFTER)]
        ends, chosen, _ = _lists(document, values, flag, filled, len(starts))
        fills = pa.ListArray.from_arrays(ends, pa.array(values[chosen]))
        words = array(rows, "words")[order].astype(np.int64)
        others = np.bincount(document[line], words[line], len(starts)).astype(np.int64)
        alone = np.maximum(array(heads, "words").astype(np.int64) - others, 0)
        own = home(shard[starts], row[starts])
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
            "host": heads.column("host"),
            "host_pages": pa.array(host_pages.astype(np.uint32)),
            "alone": pa.array(alone.astype(np.uint32)),
            "lone": pa.array(lone),
            "filled": fills,
            "segments": pa.ListArray.from_arrays(
                segments,
                pa.StructArray.from_arrays([pa.array(v) for v in inside], fields=list(SEGMENT)),
            ),
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
        good = (size >= self.min_pages) & (votes >= LEAST) & (VOTES * votes >= anchors[of])
        of, across, label, votes, size = (v[good] for v in (of, across, label, votes, size))
        # Most votes; a host's own family before one across hosts; then the lesser hash.
        order = np.lexsort((label, across, -votes, of))
        starts, _ = runs(of[order])
        family = np.zeros(len(anchors), np.uint64)
        family[of[order[starts]]] = label[order[starts]]
        return family


def _lists(
    document: np.ndarray, values: np.ndarray, flag: np.ndarray, which: np.ndarray, rows: int
) -> tuple[pa.Array, np.ndarray, np.ndarray]:
    """Distinct values of each document, ascending: offsets of lists, positions, flags together."""
    some = np.flatnonzero(which)
    some = some[np.lexsort((values[some], document[some]))]
    starts, _ = runs(document[some], values[some])
    how = np.bitwise_or.reduceat(flag[some], starts) if len(starts) else flag[:0]
    chosen = some[starts]
    offsets = np.zeros(rows + 1, np.int32)
    np.cumsum(np.bincount(document[chosen], minlength=rows), out=offsets[1:])
    return pa.array(offsets), chosen, how
