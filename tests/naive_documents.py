"""Plain-Python twins of documents/_kernels.py."""

from __future__ import annotations


def splice(
    data: bytes, read: int, end: int, cuts: list[tuple[int, int, int]], fills: list[bytes]
) -> bytes:
    """`cuts` are (start, length, which fill), sorted and disjoint."""
    kept = []
    for start, length, which in cuts:
        kept += [data[read:start], fills[which]]
        read = start + length
    return b"".join([*kept, data[read:end]])
