"""Kernels of best-fit-decreasing packing and of the stretches that edits can change.

Self-contained, because Numba's cache sees one file. Plain-Python twins: tests/naive_mixing.py.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def best_fit(lengths, capacity):
    """Best-fit-decreasing (Ding et al. 2024, "Fewer Truncations", algorithm 1).

    lengths int64[n], each in 1..capacity -> bin of each item int64[n], number of bins.
    Items go longest first, equal ones in the order given (counting sort: stable on any CPU), each
    into the open bin with the least room that suffices; among equals the one filled last; else a
    new bin. O(n log capacity) by a presence tree over room left, with a stack of bins per leaf.
    """
    n = lengths.size
    start = np.zeros(capacity + 2, np.int64)
    for i in range(n):
        start[capacity - lengths[i] + 1] += 1
    for k in range(1, capacity + 2):
        start[k] += start[k - 1]
    order = np.empty(n, np.int64)
    for i in range(n):
        k = capacity - lengths[i]
        order[start[k]] = i
        start[k] += 1

    size = 1
    while size < capacity + 1:
        size *= 2
    tree = np.zeros(2 * size, np.uint8)  # is there an open bin in this range of rooms?
    head = np.full(capacity + 1, -1, np.int64)  # top of the stack of bins with this room
    below = np.full(n, -1, np.int64)
    bins = np.empty(n, np.int64)
    used = 0
    for at in range(n):
        item = order[at]
        length = lengths[item]
        node = size + length
        if tree[node] == 0:
            while node > 1 and (node & 1 == 1 or tree[node + 1] == 0):
                node >>= 1
            if node > 1:
                node += 1
                while node < size:
                    node = 2 * node if tree[2 * node] else 2 * node + 1
        if node > 1:
            room = node - size
            chosen = head[room]
            head[room] = below[chosen]
            if head[room] == -1:
                tree[node] = 0
                while node > 1 and tree[node ^ 1] == 0:
                    node >>= 1
                    tree[node] = 0
            room -= length
        else:
            chosen = used
            used += 1
            room = capacity - length
        bins[item] = chosen
        if room > 0:
            below[chosen] = head[room]
            head[room] = chosen
            node = size + room
            while node >= 1 and tree[node] == 0:
                tree[node] = 1
                node >>= 1
    return bins, used


@njit(cache=True, nogil=True)
def _safe(data, base, at):
    """Whether `at` is a place of `pieces.CUT` before a space; no byte before `base` is looked at.

    Before a space CUT takes visible ASCII, U+00C0 to U+07FF, U+0800 to U+0FFF and U+5000 to U+8FFF.
    Returns the bytes of that character, 0 where the place is not safe.
    """
    if data[at] != 0x20 or at <= base:
        return 0
    b = data[at - 1]
    if b < 0x80:
        return 1 if 0x20 < b < 0x7F else 0
    if b >= 0xC0 or at - 2 < base:
        return 0
    b = data[at - 2]
    if 0xC3 <= b <= 0xDF:
        return 2
    if b < 0x80 or b >= 0xC0 or at - 3 < base:
        return 0
    lead = data[at - 3]
    if 0xE5 <= lead <= 0xE8 or (lead == 0xE0 and b >= 0xA0):
        return 3
    return 0


@njit(cache=True, nogil=True)
def stretches(data, offsets, places, whole, out, ends, moved):
    """Of each edited text, the stretches between safe places that hold its edits, in a row.

    `places`: rows (of `offsets`), starts (in the text), lengths of edits: int64[n], sorted and
    disjoint. A stretch reaches from the last safe place before an edit to the first one after it;
    both characters of a place stand outside of edits. `whole` bool[texts]: take all of this one.
    Fills `out` (room for all edited texts), `ends` int64[edited texts + 1] offsets into it, and
    `moved`: where each edit starts in its stretches. Returns how many texts were edited.
    """
    rows, starts, lengths = places
    write = np.int64(0)
    texts = 0
    k = 0
    while k < len(rows):
        row = rows[k]
        base, end = offsets[row], offsets[row + 1]
        begin = write
        left = base
        if not whole[row]:
            for at in range(base + starts[k] - 1, base, -1):  # its space before the edit
                if _safe(data, base, at):
                    left = at
                    break
        while k < len(rows) and rows[k] == row:
            moved[k] = base + starts[k] - left + write - begin
            after = base + starts[k] + lengths[k]
            k += 1
            last = k == len(rows) or rows[k] != row
            high = end if last else base + starts[k]
            right = end if last else np.int64(-1)
            if not whole[row]:
                for at in range(after + 1, high):  # its character after the edit
                    if _safe(data, after, at):
                        right = at
                        break
            if right >= 0:
                for at in range(left, right):
                    out[write] = data[at]
                    write += 1
                left = right
                if not last:
                    for at in range(high - 1, right, -1):
                        if _safe(data, after, at):
                            left = at
                            break
        texts += 1
        ends[texts] = write
    return texts
