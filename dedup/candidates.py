"""Round `candidates`: rows of equal band key -> pairs of documents worth comparing.

A group of up to `group_cap` documents gives all its pairs. A larger one is hot: a template, or one
text copied many times, and all pairs would be quadratic. It gives

- a star: every member with the group's first document (copies all meet in it), and
- by re-banding, the pairs of members that agree in the next band as well (`next` of a row: keys
  of twice the rows): all pairs of such a sub-group up to `group_cap`, else its star.

In groups above `hot_cap` sub-groups give stars alone, so a group of m yields at most 2m pairs, and
m * (1 + (group_cap - 1) / 2) below. What the caps leave out may cost recall, where a pair agrees in
hot groups alone; never proof, since every pair is verified. `counts_of` the result says how much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from ..documents.exchange import with_counts
from .rank import Nodes, column, nodes, pair_keys, runs

if TYPE_CHECKING:
    from ..documents.exchange import Texts


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """Groups of equal band key -> pairs, `a` before `b` in representative order."""

    name: ClassVar[str] = "candidates"
    group_cap: int = 32  # documents
    hot_cap: int = 4096  # documents

    def gather(self, rows: pa.Table, texts: Texts) -> pa.Table:
        """Rows (partition = band key, next, KEY, RANK) -> pairs (partition, a_*, b_*).

        By `partition` of the result the same pair, found by several bands, meets itself in the
        next round. Within this call each pair of rows comes once.
        """
        found = nodes(rows)
        keys = column(rows, "partition")
        order = np.argsort(keys, kind="stable")
        _, sizes = runs(keys[order])
        order = order[np.repeat(sizes > 1, sizes)]  # most keys stand alone: leave early
        found, keys, after = found.take(order), keys[order], column(rows, "next")[order]
        order = found.order(keys)
        found, keys, after = found.take(order), keys[order], after[order]
        starts, sizes = runs(keys)
        large = sizes > self.group_cap
        place = np.arange(len(keys), dtype=np.int64)
        pairs = [_all(starts[~large], sizes[~large], place)]
        pairs += self._hot(starts[large], sizes[large], after)
        left = np.concatenate([a for a, _ in pairs])
        right = np.concatenate([b for _, b in pairs])
        left, right = _distinct(left, right, found)
        return with_counts(
            _pairs(found.take(left), found.take(right)),
            groups=len(starts),
            hot_groups=int(large.sum()),
            hot_rows=int(sizes[large].sum()),
            over_hot_cap_rows=int(sizes[sizes > self.hot_cap].sum()),
            pairs=len(left),
            pairs_unseen=_unseen(sizes, self.group_cap),
        )

    def _hot(
        self, starts: np.ndarray, sizes: np.ndarray, after: np.ndarray
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Star edges, and edges by re-banding, of groups above `group_cap`."""
        if not len(starts):
            return []
        group = np.repeat(np.arange(len(starts)), sizes)
        first = np.repeat(starts, sizes)
        place = first + np.arange(len(first)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        order = np.lexsort((place, after[place], group))
        members = place[order]
        sub, count = runs(group[order], after[members])
        dense = (count <= self.group_cap) & (sizes[group[order][sub]] <= self.hot_cap)
        return [
            _star(first, place),
            _star(np.repeat(members[sub], count), members),
            _all(sub[dense], count[dense], members),
        ]


def _all(
    starts: np.ndarray, sizes: np.ndarray, members: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Every pair (earlier, later) of each run `members[start:start + size]`."""
    later = np.repeat(starts + sizes - 1, sizes)
    place = np.repeat(starts - np.cumsum(sizes) + sizes, sizes) + np.arange(len(later))
    later -= place  # members of the run after each
    left = np.repeat(place, later)
    right = left + 1 + np.arange(len(left)) - np.repeat(np.cumsum(later) - later, later)
    return members[left], members[right]


def _star(first: np.ndarray, members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    some = first != members
    return first[some], members[some]


def _unseen(sizes: np.ndarray, cap: int) -> int:
    """Pairs of hot groups that are not stars: an upper bound of what the caps can lose."""
    hot = sizes[sizes > cap].astype(object)  # Python integers: a group of 2**32 squared fits
    return int(sum(size * (size - 1) // 2 - (size - 1) for size in hot))


def _distinct(left: np.ndarray, right: np.ndarray, found: Nodes) -> tuple[np.ndarray, np.ndarray]:
    """Each pair of rows once, and no document paired with itself."""
    order = np.lexsort((right, left))
    left, right = left[order], right[order]
    fresh = np.ones(len(left), bool)
    fresh[1:] = (left[1:] != left[:-1]) | (right[1:] != right[:-1])
    a, b = found.take(left), found.take(right)
    fresh &= (a.shard != b.shard) | (a.high != b.high) | (a.low != b.low)
    return left[fresh], right[fresh]


def _pairs(a: Nodes, b: Nodes) -> pa.Table:
    columns = {"partition": pa.array(pair_keys(a, b))}
    return pa.table(columns | a.columns("a_") | b.columns("b_"))
