"""Kernels over paragraphs, sets of shingles, pairs of documents, clusters; integers only.

Plain-Python twins: tests/naive_dedup.py.
"""

from __future__ import annotations

import numpy as np
from numba import njit

FULL = np.uint64(0xFFFFFFFFFFFFFFFF)


@njit(cache=True, nogil=True)
def drop_repeats(values, starts, ends):
    """Close up equal neighbours in each sorted `values[starts[i]:ends[i]]`, and the gaps between.

    Moves `starts` and `ends`, which must be ascending.
    """
    write = 0
    for i in range(len(starts)):
        begin = write
        for read in range(starts[i], ends[i]):
            if write == begin or values[read] != values[write - 1]:
                values[write] = values[read]
                write += 1
        starts[i] = begin
        ends[i] = write


@njit(cache=True, nogil=True)
def intersections(values, starts, ends, first, second, shared, either):
    """Exact sizes of intersection and union for pairs of sorted sets: int64[pairs] each."""
    for p in range(len(first)):
        i = starts[first[p]]
        j = starts[second[p]]
        i_end = ends[first[p]]
        j_end = ends[second[p]]
        either[p] = i_end - i + j_end - j
        both = 0
        while i < i_end and j < j_end:
            a = values[i]
            b = values[j]
            both += a == b
            i += a <= b  # no branch on data: a mispredict costs more than both comparisons
            j += b <= a
        shared[p] = both
        either[p] -= both


@njit(cache=True, nogil=True)
def chunk_ends(first, second, sizes, budget, ends):
    """Cut pairs into chunks whose distinct documents hold at most `budget` bytes.

    A pair that is larger alone makes a chunk alone. Writes `ends`, returns how many.
    """
    seen = np.full(len(sizes), -1, np.int64)
    count = 0
    total = 0
    for p in range(len(first)):
        a = first[p]
        b = second[p]
        add = (sizes[a] if seen[a] != count else 0) + (sizes[b] if seen[b] != count else 0)
        if total > 0 and total + add > budget:
            ends[count] = p
            count += 1
            total = 0
            add = sizes[a] + sizes[b]
        seen[a] = count
        seen[b] = count
        total += add
    ends[count] = len(first)
    return count + 1


@njit(cache=True, nogil=True)
def unite(first, second, root):
    """Union-find with path halving: `root` int64[nodes], parents that are smaller than their nodes.

    Begin with every node its own parent; `settle` ends it.
    """
    for e in range(len(first)):
        a = first[e]
        b = second[e]
        while root[a] != a:
            root[a] = root[root[a]]
            a = root[a]
        while root[b] != b:
            root[b] = root[root[b]]
            b = root[b]
        if a < b:
            root[b] = a
        else:
            root[a] = b


@njit(cache=True, nogil=True)
def settle(root):
    """Make `root` of each node the least node of its component."""
    for i in range(len(root)):
        root[i] = root[root[i]]  # parents are smaller than their children, and done before


@njit(cache=True, nogil=True)
def cover(first, second, shared, either, witness, proof):
    """Greedy cover in node order; edges sorted by (second, first), first < second.

    A node goes if an edge leads to a kept node before it. `witness` int64[nodes] is -1 for kept
    nodes, else the kept neighbour of the highest shared / either (ties: the lowest node), which
    may stand later in the order; `proof` is the edge to it.
    """
    witness[:] = -1
    for e in range(len(first)):
        if witness[first[e]] == -1:
            witness[second[e]] = -2  # goes; who proves it is settled below
    for e in range(len(first)):
        for side in range(2):
            kept = first[e] if side == 0 else second[e]
            gone = second[e] if side == 0 else first[e]
            if witness[kept] != -1 or witness[gone] == -1:
                continue
            best = proof[gone]
            if witness[gone] == -2:
                better = True
            else:
                here = np.uint64(shared[e]) * np.uint64(either[best])
                there = np.uint64(shared[best]) * np.uint64(either[e])
                better = here > there or (here == there and kept < witness[gone])
            if better:
                witness[gone] = kept
                proof[gone] = e


@njit(cache=True, nogil=True)
def spare(root, exemplars, witness):
    """Keep the first removed nodes of each component, until `exemplars` of it are kept."""
    kept = np.zeros(len(root), np.int64)
    for i in range(len(root)):
        kept[root[i]] += witness[i] == -1
    for i in range(len(root)):
        if witness[i] != -1 and kept[root[i]] < exemplars:
            witness[i] = -1
            kept[root[i]] += 1


@njit(cache=True, nogil=True)
def _place(keys, x, at):
    """First place of ascending `keys` that holds `x` or more, looked for around place `at`."""
    size = len(keys)
    at = min(max(at, 0), size)
    step = 32
    if at < size and keys[at] < x:
        low = at + 1
        high = min(low + step, size)
        while high < size and keys[high] < x:
            low = high + 1
            step *= 2
            high = min(low + step, size)
    else:
        high = at
        low = max(high - step, 0)
        while low > 0 and keys[low - 1] >= x:
            high = low - 1
            step *= 2
            low = max(high - step, 0)
    while low < high:
        middle = (low + high) // 2
        if keys[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def find_keys(keys, wanted, around, low, high):
    """Where each wanted key stands in ascending `keys`: places int64[wanted], `low` to `high`.

    Each is looked for around a guess int64, at distances that double; any guess will do.
    """
    for i in range(len(wanted)):
        low[i] = _place(keys, wanted[i], around[i])
        high[i] = len(keys) if wanted[i] == FULL else _place(keys, wanted[i] + np.uint64(1), low[i])


@njit(cache=True, nogil=True)
def paragraph_ends(data, offsets, blank, ends, counts):
    """Where the paragraphs of each text end; returns how many there are.

    A paragraph ends after `blank` or more line ends in a row (white space between them does not
    count), or with its text: 1 gives lines, 2 what blank lines part. Paragraphs of a text cover it.
    """
    total = 0
    for row in range(len(offsets) - 1):
        begin = offsets[row]
        end = offsets[row + 1]
        lines = 0
        content = False
        mark = begin  # the byte after the last line end
        first = total
        for at in range(begin, end):
            c = data[at]
            if c == 10:
                lines += 1
                mark = at + 1
            elif not (c == 32 or c == 9 or c == 13):  # noqa: PLR1714 - a set is slow in Numba
                if content and lines >= blank:
                    ends[total] = mark
                    total += 1
                content = True
                lines = 0
        if end > begin:
            ends[total] = end
            total += 1
        counts[row] = total - first
    return total
