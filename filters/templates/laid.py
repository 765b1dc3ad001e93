"""Texts as arrays of words, laid over a template, and their lines cut: seams to the kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ...documents.text import TextView, text_view
from . import _kernels as kernels
from . import _kernels_laid as laid
from . import _kernels_lines as lines
from . import _kernels_marks as marks
from .words import common


class Words(NamedTuple):
    """Words of some texts one after another; see `_kernels_laid`."""

    view: TextView
    words: np.ndarray  # uint64[words]
    masks: np.ndarray  # uint8[words]
    places: np.ndarray  # int64[words, 3]: first byte, byte after, line
    ends: np.ndarray  # int64[rows]


class Lines(NamedTuple):
    """Lines of some texts one after another; see `_kernels.lines_of`."""

    view: TextView
    digests: np.ndarray  # uint64[lines]
    lines: np.ndarray  # int64[lines, 3]: first byte, byte after, words
    marks: np.ndarray  # uint32[lines]: what each may be, as of `_kernels_marks`
    ends: np.ndarray  # int64[rows]


class Template(NamedTuple):
    """What the pages of a family share, as tables of hashes (see `table_of`)."""

    shared: np.ndarray  # n-grams
    usual: np.ndarray  # words
    heard: np.ndarray  # rare words that come again


def words_of(texts: pa.Array) -> Words:
    """Scan some texts."""
    view = text_view(texts)
    room = int(view.offsets[-1] - view.offsets[0]) // 2 + view.rows + 1
    words, masks = np.empty(room, np.uint64), np.empty(room, np.uint8)
    places, ends = np.empty((room, 3), np.int64), np.empty(view.rows, np.int64)
    kernels.words_of(view.data, view.offsets, common(), words, masks, places, ends)
    size = int(ends[-1]) if view.rows else 0
    return Words(view, words[:size], masks[:size], places[:size], ends)


def lines_of(texts: pa.Array) -> Lines:
    """Digests of the lines of some texts, as the survey has them."""
    view = text_view(texts)
    used = view.data[view.offsets[0] : view.offsets[-1]]
    room = int(np.count_nonzero(used == 10)) + view.rows
    digests, found = np.empty(room, np.uint64), np.empty((room, 3), np.int64)
    ends = np.empty(view.rows, np.int64)
    kernels.lines_of(view.data, view.offsets, digests, found, ends)
    size = int(ends[-1]) if view.rows else 0
    marked = np.empty(size, np.uint32)
    marks.marks(view.data, found[:size], marked)
    return Lines(view, digests[:size], found[:size], marked, ends)


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
    laid.weigh(of.words, of.masks, of.places, of.ends, state, out, fills)
    return out, fills


def strip(
    of: Lines,
    gone: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    marked: tuple[np.ndarray, np.ndarray],
) -> tuple[list[np.ndarray], np.ndarray]:
    """Cuts (rows, starts, lengths, least pages), fill-in lines int64[rows, 4]; see the kernel."""
    rows, starts, lengths, least = (np.empty(len(of.lines), np.int64) for _ in range(4))
    fills = np.empty((of.view.rows, 4), np.int64)
    number = lines.strip(*of[1:], *gone, *marked, rows, starts, lengths, least, fills)
    return [values[:number] for values in (rows, starts, lengths, least)], fills


def emptied(of: Lines, rows: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Texts of which cuts of whole lines, in their order, leave no word, bool[rows]."""
    said = np.append(0, np.cumsum(of.lines[:, 2] > 0))
    begins, at = of.lines[:, 0], of.view.offsets[rows] + starts
    cut = said[np.searchsorted(begins, at + lengths)] - said[np.searchsorted(begins, at)]
    had = np.diff(said[of.ends], prepend=0)
    return (had > 0) & (np.bincount(rows, cut, of.view.rows) == had)


def in_code(of: Lines) -> np.ndarray:
    """Whether each line is one of code, bool[lines]."""
    out = np.empty(len(of.lines), bool)
    lines.code(of.lines, of.marks, of.ends, out)
    return out
