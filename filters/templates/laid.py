"""Texts as arrays of words, laid over a template, and their lines cut: seams to the kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ...documents.text import TextView, text_view
from . import _kernels as kernels
from . import _kernels_laid as laid
from . import _kernels_lines as lines
from .words import common


class Words(NamedTuple):
    """Words of some texts one after another; see `_kernels_laid`."""

    view: TextView
    words: np.ndarray  # uint64[words]
    masks: np.ndarray  # uint8[words]
    places: np.ndarray  # int64[words, 3]: first byte, byte after, line
    ends: np.ndarray  # int64[rows]


class Template(NamedTuple):
    """What the pages of a family share, as tables of hashes (see `table_of`)."""

    shared: np.ndarray  # n-grams
    usual: np.ndarray  # words


def words_of(texts: pa.Array) -> Words:
    """Scan some texts."""
    view = text_view(texts)
    room = int(view.offsets[-1] - view.offsets[0]) // 2 + view.rows + 1
    words, masks = np.empty(room, np.uint64), np.empty(room, np.uint8)
    places, ends = np.empty((room, 3), np.int64), np.empty(view.rows, np.int64)
    kernels.words_of(view.data, view.offsets, common(), words, masks, places, ends)
    size = int(ends[-1]) if view.rows else 0
    return Words(view, words[:size], masks[:size], places[:size], ends)


def grams(of: Words, n: int) -> list[np.ndarray]:
    """n-grams of each text, with repeats: of masked items and of words."""
    rows = of.view.rows
    starts = np.zeros(rows + 1, np.int64)
    np.cumsum(2 * np.diff(of.ends, prepend=0), out=starts[1:])
    out, stops = np.empty(int(starts[-1]), np.uint64), np.empty(rows, np.int64)
    laid.grams(of.words, of.masks, of.ends, n, starts, out, stops)
    return [out[a:b] for a, b in zip(starts[:-1].tolist(), stops.tolist(), strict=True)]


def table_of(shared: np.ndarray) -> np.ndarray:
    """Distinct n-grams as a table for `cover`."""
    table = np.zeros(1 << (2 * len(shared) + 1).bit_length(), np.uint64)
    laid.table_of(shared, table)
    return table


def cover(of: Words, n: int, known: Template) -> np.ndarray:
    """State of each word, uint8: 0 own, 1 literal of the template, 2 fill."""
    state = np.empty(len(of.words), np.uint8)
    laid.cover(of.words, of.masks, of.places, of.ends, n, *known, state)
    return state


def weigh(of: Words, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights int32[rows, 5] and hashes of fills uint64[rows]; see the kernel."""
    out = np.empty((of.view.rows, 5), np.int32)
    fills = np.empty(of.view.rows, np.uint64)
    laid.weigh(of.words, of.places, of.ends, state, out, fills)
    return out, fills


def strip(
    of: Words,
    gone: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    marked: tuple[np.ndarray, np.ndarray],
) -> tuple[list[np.ndarray], np.ndarray]:
    """Cuts (rows, starts, lengths, least pages), fill-in lines int64[rows, 4]; see the kernel."""
    used = of.view.data[of.view.offsets[0] : of.view.offsets[-1]]
    room = int(np.count_nonzero(used == 10)) + of.view.rows
    rows, starts, lengths, least = (np.empty(room, np.int64) for _ in range(4))
    fills = np.empty((of.view.rows, 4), np.int64)
    number = lines.strip(
        of.view.data, of.view.offsets, of.words, of.places, of.ends, *gone, *marked,
        rows, starts, lengths, least, fills,
    )  # fmt: skip
    return [values[:number] for values in (rows, starts, lengths, least)], fills


def in_code(of: Words) -> np.ndarray:
    """Whether each word stands in a line of code, bool[words]."""
    out = np.empty(len(of.words), bool)
    lines.code(of.view.data, of.view.offsets, of.words, of.places, of.ends, out)
    return out
