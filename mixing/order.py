"""Order without state: keyed bijections on {0..n-1}, forward and back, in O(1) memory and time.

A shuffle that must be resumed at any position, on any number of ranks, cannot be a list: it is a
function. Here it is a Feistel network of 8 rounds on ceil(log2 n) bits whose halves differ by at
most one bit, round function = the high bits of splitmix64's finaliser (Steele, Lea & Flood,
OOPSLA 2014), cycle-walked into range (fewer than two evaluations expected). Below 256 elements a
Fisher-Yates table takes its place: a few bits are too few for a Feistel network to mix.

Why not less: 4 rounds leave a lag-1 correlation of 0.48 at a million elements, and a multiplicative
round function is linear in its lowest bit, so that blocks of 1,024 are all odd or all even (both
seen in shipping loaders). Keys are BLAKE2b of what the order is *for*, never seed + index: (seed 7,
epoch 1) and (seed 8, epoch 0) must not be one order. No numpy RNG: its streams may change.

Cost: benchmarks/feed.py, of many elements at a time and of single ones.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from ..documents.errors import StopError

NAME: Final = "feistel8-splitmix64-1"  # written into plans; another algorithm needs another name
ROUNDS: Final = 8
TABLE: Final = 256  # n below this is shuffled by a table
_MASK: Final = (1 << 64) - 1
_GOLDEN: Final = 0x9E3779B97F4A7C15


def mix64(x):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN201
    """splitmix64's finaliser; takes an int or a uint64 array and returns the same kind."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def keys_of(*purpose: str | int) -> tuple[int, ...]:
    """Eight 64-bit keys: BLAKE2b-512 of the canonical JSON list of `purpose`."""
    name = json.dumps(purpose, separators=(",", ":")).encode()
    return struct.unpack("<8Q", hashlib.blake2b(name, digest_size=64).digest())


class Permutation:
    """A bijection on {0..n-1} chosen by `purpose`; an int or an array goes in."""

    __slots__ = ("_back", "_keys", "_left", "_right", "_table", "n")

    def __init__(self, n: int, *purpose: str | int) -> None:
        if n < 1:
            msg = f"a permutation of {n} elements; expected at least 1"
            raise ValueError(msg)
        self.n = n
        self._keys = keys_of(*purpose)
        bits = (n - 1).bit_length()
        self._right = bits // 2
        self._left = bits - self._right
        self._table: np.ndarray | None = None
        if n < TABLE:
            self._table = _fisher_yates(n, self._keys)
            self._back = np.argsort(self._table)  # of distinct values: no ties

    @property
    def keys(self) -> tuple[int, ...]:
        """Eight 64-bit keys, one a round."""
        return self._keys

    @property
    def widths(self) -> tuple[int, int]:
        """Bits of the left and of the right half."""
        return self._left, self._right

    def forward(self, index):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN201
        """Image of `index`: int -> int, int64[k] -> int64[k]; every index in 0..n-1."""
        return self._walk(index, self._table, self._encrypt)

    def inverse(self, image):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN201
        """The index whose `forward` is `image`; same shapes."""
        return self._walk(image, self._table if self._table is None else self._back, self._decrypt)

    def _walk(self, x, table, step):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        if isinstance(x, np.ndarray):
            if table is not None:
                return table[x]
            y = step(x.astype(np.uint64))
            while (out := np.flatnonzero(y >= self.n)).size:
                y[out] = step(y[out])
            return y.astype(np.int64)
        if not 0 <= x < self.n:
            msg = f"index {x} of a permutation of {self.n}"
            raise IndexError(msg)
        if table is not None:
            return int(table[x])
        y = step(int(x))
        while y >= self.n:
            y = step(y)
        return y

    def _encrypt(self, x):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        left, right = x >> self._right, x & ((1 << self._right) - 1)
        for i in range(0, ROUNDS, 2):
            left = left ^ self._round(right, i, self._left)
            right = right ^ self._round(left, i + 1, self._right)
        return (left << self._right) | right

    def _decrypt(self, x):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        left, right = x >> self._right, x & ((1 << self._right) - 1)
        for i in range(ROUNDS - 2, -1, -2):
            right = right ^ self._round(left, i + 1, self._right)
            left = left ^ self._round(right, i, self._left)
        return (left << self._right) | right

    def _round(self, half, i: int, bits: int):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        return mix64((half + self._keys[i]) & _MASK) >> (64 - bits)


def forward_each(orders: Sequence[Permutation], which: np.ndarray, index: np.ndarray) -> np.ndarray:
    """int64[k]: the image of `index[i]` (int64[k]) under `orders[which[i]]`.

    One pass over the elements, however many orders there are.
    """
    out = np.empty(len(index), dtype=np.int64)
    tables = np.array([order.n < TABLE for order in orders], dtype=bool)
    for number in np.unique(which[tables[which]]).tolist():
        mine = which == number
        out[mine] = orders[number].forward(index[mine])
    todo = np.flatnonzero(~tables[which])
    n = np.array([order.n for order in orders], dtype=np.int64)[which]
    many = _Many(orders, which)
    x = index.astype(np.uint64)
    while todo.size:  # the walk back into range
        x[todo] = many.encrypt(x[todo], todo)
        inside = x[todo] < n[todo]
        out[todo[inside]] = x[todo[inside]]
        todo = todo[~inside]
    return out


class _Many:
    """Feistel networks side by side: keys and widths by element."""

    def __init__(self, orders: Sequence[Permutation], which: np.ndarray) -> None:
        keys = np.array([order.keys for order in orders], dtype=np.uint64)
        self._keys = keys[which].T
        widths = np.array([order.widths for order in orders], dtype=np.uint64)
        self._left, self._right = widths[which].T

    def encrypt(self, x: np.ndarray, at: np.ndarray) -> np.ndarray:
        """One evaluation of the networks `at`, as `Permutation` does it."""
        left_bits, right_bits, keys = self._left[at], self._right[at], self._keys[:, at]
        left, right = x >> right_bits, x & ((np.uint64(1) << right_bits) - np.uint64(1))
        for i in range(0, ROUNDS, 2):
            left = left ^ (mix64(right + keys[i]) >> (64 - left_bits))
            right = right ^ (mix64(left + keys[i + 1]) >> (64 - right_bits))
        return (left << right_bits) | right


def _fisher_yates(n: int, keys: tuple[int, ...]) -> np.ndarray:
    table = list(range(n))
    for i in range(n - 1, 0, -1):
        # the high 64 bits of draw * (i + 1): a bias below 2**-56 for n < 256
        j = (mix64((keys[0] + i * _GOLDEN) & _MASK) * (i + 1)) >> 64
        table[i], table[j] = table[j], table[i]
    return np.array(table, dtype=np.int64)


@lru_cache(maxsize=4096)
def permutation(n: int, *purpose: str | int) -> Permutation:
    """`Permutation(n, *purpose)`, remembered: a feed asks for the same few again and again."""
    return Permutation(n, *purpose)


def test_vectors() -> list[list[int]]:
    """[n, index, image] triples of a fixed purpose; stored in plans, checked at opening."""
    return [
        [n, index, Permutation(n, "vector", n).forward(index)]
        for n in (1, 2, 100, 255, 256, 257, 4095, 4096, 4097, 1_000_003, (1 << 32) + 15)
        for index in sorted({0, n // 3, n - 1})
    ]


test_vectors.__test__ = False  # type: ignore[attr-defined] # not a test, whatever pytest thinks


def check_vectors(stored: list[list[int]], where: str) -> None:
    """StopError when this version would give another order than the one that wrote `stored`."""
    for (n, index, image), (m, at, now) in zip(stored, test_vectors(), strict=True):
        if (n, index, image) != (m, at, now):
            msg = (
                f"{where}: element {index} of a permutation of {n} was {image} when the plan was "
                f"compiled and is {now} here. The order would differ from the run so far: use the "
                "version of gristmill that compiled the plan, or compile a new plan."
            )
            raise StopError(msg)
