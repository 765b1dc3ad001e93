"""Kernel of best-fit-decreasing packing; self-contained, because Numba's cache sees one file.

Plain-Python twin: tests/naive_mixing.py.
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
