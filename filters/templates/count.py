"""Round `count`: how many pages of a host, and how many hosts, have a line or an anchor.

Rows of one line meet by the hash of its masked words, so that all its fills are here too; rows of
one anchor by its hash; rows of pages by their host. A giant host so splits over all partitions but
for one row a page. What is counted is distinct URLs: a page crawled ten times counts once.

An anchor that enough pages share names the first of them, by hash of the URL. Pages made from one
template share most anchors, so most of a page's anchors name the same page: that is its family.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from ._kernels_lines import AFTER, BEFORE, NOTICE
from .rows import (
    ANCHOR,
    LINE,
    MANY,
    PAGE,
    SEEN,
    array,
    distinct,
    home,
    places,
    runs,
)

if TYPE_CHECKING:
    from ...documents.exchange import Texts

# Bits of `flag` beside those that `_kernels_lines` reads: a fill-in line; an anchor across hosts
FILL, ACROSS = 2, 8
STRAY = 10  # of a line's pages one in so many, or one, may have another neighbour on a side
LEAST = 3  # pages with a line or an anchor, below which it says nothing
HOSTS = 5  # hosts with an anchor, for a family across hosts
SPREAD = 50  # or pages with it, where hosts are not known


@dataclass(frozen=True, kw_only=True)
class Count:
    """Lines and anchors worth a look, and every page with the size of its host."""

    name: ClassVar[str] = "count"
    notice_hosts: int = 10
    notice_words: int = 40

    def gather(self, rows: pa.Table, texts: Texts) -> pa.Table:
        """ROWS of one partition -> SEEN."""
        kind = array(rows, "kind")
        found = [
            self._pages(rows.filter(pa.array(kind == PAGE))),
            self._lines(rows.filter(pa.array(kind == LINE))),
            *self._anchors(rows.filter(pa.array(kind == ANCHOR))),
        ]
        return pa.concat_tables(found)

    @staticmethod
    def _pages(rows: pa.Table) -> pa.Table:
        host, page = array(rows, "host"), array(rows, "page")
        number, _ = distinct((host,), page)
        number[host == 0] = 0
        return _seen(rows, array(rows, "value"), number, np.zeros(len(host), np.uint8))

    def _lines(self, rows: pa.Table) -> pa.Table:
        key, host, page, exact, words, mark = (
            array(rows, n) for n in ("partition", "host", "page", "value", "words", "mark")
        )
        literals, told = (mark & MANY).astype(np.int64), mark >> 8
        words = words.astype(np.int64)
        # Most lines stand on one page of all: leave those early.
        order = np.argsort(key, kind="stable")
        _, sizes = runs(key[order])
        some = order[np.repeat(sizes >= LEAST, sizes)]
        rows = rows.take(pa.array(some))
        key, host, page, exact, words, literals, told = (
            v[some] for v in (key, host, page, exact, words, literals, told)
        )
        number, _ = distinct((exact, host), page)
        hosts, _ = distinct((exact,), host)
        everywhere, _ = distinct((exact,), page)
        with_mask, _ = distinct((key, host), page)
        fills, _ = distinct((key, host), exact)
        notice = (told > 0) & (hosts >= self.notice_hosts)
        notice &= (words >= 6) & (words <= self.notice_words)
        filled = (2 * fills >= with_mask) & (literals >= 3) & (10 * literals >= 4 * words)
        filled &= (host != 0) & (with_mask >= 5)
        alone = host == 0
        number[alone] = everywhere[alone] * notice[alone]
        flag = filled * FILL + notice * NOTICE
        for name, bit in (("before", BEFORE), ("after", AFTER)):
            same, _ = distinct((exact, host, array(rows, name)), page)
            flag += (number - same <= np.maximum(number // STRAY, 1)) * bit
        keep = (number >= LEAST) | filled | notice
        count = np.where(filled & (number < LEAST), with_mask, number)
        return _seen(rows, exact, count, flag.astype(np.uint8)).filter(pa.array(keep))

    @staticmethod
    def _anchors(rows: pa.Table) -> list[pa.Table]:
        key = array(rows, "partition")
        order = np.argsort(key, kind="stable")
        _, sizes = runs(key[order])
        some = order[np.repeat(sizes >= LEAST, sizes)]
        rows = rows.take(pa.array(some))
        key, host, page = key[some], array(rows, "host"), array(rows, "page")
        number, first = distinct((key, host), page)
        of_all, first_of_all = distinct((key,), page)
        hosts, _ = distinct((key,), host)
        within = (number >= LEAST) & (host != 0)
        across = (hosts >= HOSTS) | ((of_all >= SPREAD) & (host == 0))
        none = np.zeros(len(key), np.uint8)
        return [
            _seen(rows, first, number, none).filter(pa.array(within)),
            _seen(rows, first_of_all, of_all, none + ACROSS).filter(pa.array(across)),
        ]


def _seen(rows: pa.Table, value: np.ndarray, number: np.ndarray, flag: np.ndarray) -> pa.Table:
    columns = {name: rows.column(name) for name in rows.column_names if name in SEEN.names}
    columns |= {
        "partition": pa.array(home(*places(rows))),
        "value": pa.array(value.astype(np.uint64)),
        "pages": pa.array(number.astype(np.uint32)),
        "flag": pa.array(flag.astype(np.uint8)),
    }
    return pa.table({name: columns[name] for name in SEEN.names}, schema=SEEN)
