"""Stored bytes to records, with every byte accounted for."""

from .account import ReadAccount, ReadOptions
from .extents import Extent, group_extents, plan_extents
from .inputs import expand
from .read import read_extent, reread

__all__ = [
    "Extent",
    "ReadAccount",
    "ReadOptions",
    "expand",
    "group_extents",
    "plan_extents",
    "read_extent",
    "reread",
]
