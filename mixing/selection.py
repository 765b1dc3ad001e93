"""The catalogue as arrays, and slices as predicates over it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..documents.errors import ContractError, UsageError, did_you_mean
from .spec import NAMES, Range, SliceSpec

COLUMNS = pa.schema(
    [
        pa.field("shard", pa.string(), nullable=False),
        pa.field("doc", pa.uint32(), nullable=False),  # ordinal in the token shard
        pa.field("id", pa.binary(16), nullable=False),
        pa.field("tokens", pa.uint32(), nullable=False),  # end-of-document token included
        *(pa.field(name, pa.string()) for name in NAMES),
    ]
)
#: What the books tell tokens apart by -> the catalogue's column; absent ones are not known.
DIMENSIONS: Final = {
    **{name: name for name in NAMES},
    "page_format": "quality.format",
    "quality_bucket": "quality.bucket",
    "length_bucket": "length_bucket",
}


class Catalogue:
    """Columns of the catalogue as numpy arrays; names as codes of sorted names.

    `attributes`: columns beside `COLUMNS`, names or numbers. ContractError when a column is
    missing, null where it must not be, or rows are not sorted.
    """

    def __init__(self, table: pa.Table, attributes: Sequence[str] = ()) -> None:
        held = {name for name in DIMENSIONS.values() if name in table.column_names}
        extra = sorted({*attributes, *held} - {*NAMES, "length_bucket"})
        wanted = [*COLUMNS.names, *extra]
        missing = [name for name in wanted if name not in table.column_names]
        if missing:
            raise ContractError(f"catalogue: columns {missing} are missing")
        if not table.num_rows:
            raise UsageError("catalogue: found no documents; expected at least one to mix")
        own = table.select(COLUMNS.names).cast(COLUMNS)
        for field in COLUMNS:
            if not field.nullable and own[field.name].null_count:
                raise ContractError(f"catalogue: column {field.name!r} has nulls")
        self.shards, self.shard = _codes(own["shard"])
        self.doc = own["doc"].to_numpy()
        self.tokens = own["tokens"].to_numpy().astype(np.int64)
        self._columns = {name: _Column(name, own[name]) for name in NAMES}
        self._columns |= {name: _Column(name, table[name]) for name in extra}
        self.sources = self._columns["source"].names
        ids = own["id"].combine_chunks()
        raw = np.frombuffer(ids.buffers()[1], dtype=np.uint8)[16 * ids.offset :]
        self.ids = raw[: 16 * len(ids)].reshape(-1, 16)
        step, later = np.diff(self.shard.astype(np.int64)), np.diff(self.doc.astype(np.int64))
        wrong = np.flatnonzero((step < 0) | ((step == 0) & (later <= 0)))
        if wrong.size:
            raise ContractError(
                f"catalogue: row {int(wrong[0]) + 1} is not after the row before it; expected rows "
                "sorted by (shard, doc) without repeats"
            )
        if (self.tokens < 1).any():
            row = int(np.flatnonzero(self.tokens < 1)[0])
            raise ContractError(f"catalogue: row {row} has 0 tokens; each document ends with one")
        buckets = pa.chunked_array([pa.array(length_bucket(self.tokens))])
        self._columns["length_bucket"] = _Column("length_bucket", buckets)

    def select(self, spec: SliceSpec) -> np.ndarray:
        """int64 rows of the documents of a slice, ascending."""
        keep = self.tokens >= spec.min_tokens
        if spec.max_tokens is not None:
            keep &= self.tokens <= spec.max_tokens
        for name, wanted in _wanted(spec).items():
            keep &= self._columns[name].matches(wanted)
        return np.flatnonzero(keep)

    def unmatched(self, spec: SliceSpec) -> dict[str, Any]:
        """Listed values that no document of the catalogue has; kept in the plan to be seen."""
        out = {}
        for name, wanted in _wanted(spec).items():
            if isinstance(wanted, tuple):
                absent = [v for v in wanted if not self._columns[name].matches((v,)).any()]
                if absent:
                    out[name] = absent
        return out

    def why_empty(self, spec: SliceSpec) -> str:
        """What to look at when a slice has no document."""
        for name, wanted in _wanted(spec).items():
            column = self._columns[name]
            if isinstance(wanted, Range) and not column.matches(wanted).any():
                return f"documents have {name} {column.span()}"
        for name, absent in self.unmatched(spec).items():
            known = [str(value) for value in self._columns[name].names if value is not None]
            return f"no document has {name} {absent[0]!r}{did_you_mean(str(absent[0]), known)}"
        low, high = int(self.tokens.min()), int(self.tokens.max())
        bounds = f"min_tokens {spec.min_tokens}, max_tokens {spec.max_tokens}"
        return f"its lists and {bounds} leave none; documents have {low} to {high} tokens"

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays that a plan keeps: see `mixing.plan`."""
        columns = [self.shard, self.doc, self.tokens]
        cells, cell = self._cells()
        return {
            "documents": np.stack(columns, axis=1).astype(np.uint32),
            "ids": self.ids,
            "sources": self._columns["source"].codes.astype(np.uint32),
            "cell": cell,
            "cells": cells,
        }

    def dimensions(self) -> dict[str, list[Any]]:
        """By name what `cells` has codes of: sorted values, null last; [null] where not known."""
        return {
            name: self._columns[column].names if column in self._columns else [None]
            for name, column in DIMENSIONS.items()
        }

    def _cells(self) -> tuple[np.ndarray, np.ndarray]:
        """Distinct codes of the dimensions uint32[c, dimensions], and uint32[d] which one."""
        key, size = np.zeros(len(self.tokens), dtype=np.int64), 1
        codes = []
        for name in DIMENSIONS.values():
            column = self._columns.get(name)
            codes.append(column.codes if column else np.zeros(len(key), np.int64))
            values = len(column.names) if column else 1
            if size * values >= 1 << 62:
                key, size = _numbered(key, size)
            key, size = key * values + codes[-1], size * values
        cell, number = _numbered(key, size)
        first = np.zeros(number, dtype=np.int64)
        first[cell[::-1]] = np.arange(len(cell))[::-1]  # of equal places the last written stays
        return np.stack([c[first] for c in codes], axis=1).astype(np.uint32), cell.astype(np.uint32)


def _numbered(key: np.ndarray, size: int) -> tuple[np.ndarray, int]:
    """Each key's place among the distinct ones, and how many there are; keys are below `size`."""
    if size > 1 << 24:
        distinct, place = np.unique(key, return_inverse=True)
        return place.astype(np.int64), len(distinct)
    found = np.zeros(size, dtype=bool)
    found[key] = True
    return (np.cumsum(found) - 1)[key], int(found.sum())


def _wanted(spec: SliceSpec) -> dict[str, tuple[Any, ...] | Range]:
    lists = {name: getattr(spec, name) for name in NAMES}
    return {**{n: v for n, v in lists.items() if v is not None}, **spec.attributes}


class _Column:
    """One attribute of all documents: names as codes, numbers as they are."""

    def __init__(self, name: str, column: pa.ChunkedArray) -> None:
        self.name = name
        kind = column.type
        self._numbers: np.ndarray | None = None
        self._known = column.is_valid().to_numpy()
        if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
            zero = pa.scalar(0).cast(kind)
            self._numbers = column.fill_null(zero).to_numpy()
        elif not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            if not pa.types.is_null(kind):
                raise UsageError(f"attribute {name!r} holds {kind}; expected names or numbers")
            column = column.cast(pa.string())
        self._column = column
        self._coded: tuple[list[Any], np.ndarray] | None = None

    @property
    def names(self) -> list[Any]:
        """Distinct values in order, null last."""
        return self._code()[0]

    @property
    def codes(self) -> np.ndarray:
        """Each document's place among `names`, int64[d]."""
        return self._code()[1]

    def _code(self) -> tuple[list[Any], np.ndarray]:
        if self._coded is None:
            self._coded = _codes(self._column)
        return self._coded

    def matches(self, wanted: tuple[Any, ...] | Range) -> np.ndarray:
        """bool[d]: whose value stands in a list or a range; UsageError for one of another kind."""
        numbers = self._numbers
        if isinstance(wanted, Range):
            if numbers is None:
                raise UsageError(
                    f"slices: {self.name} is one of {self._shown()}; it has no min or max"
                )
            return self._known & _within(numbers, wanted)
        given = [value for value in wanted if value is not None]
        for value in given:
            if isinstance(value, str) != (numbers is None):
                kind = "numbers" if numbers is not None else f"one of {self._shown()}"
                raise UsageError(f"slices: {self.name}: found {value!r}; documents have {kind}")
        if numbers is None:
            allowed = np.array([value in given for value in self.names])
            found = self._known & allowed[self.codes]
        else:
            found = np.zeros(len(numbers), bool)
            for value in given:
                found |= self._known & _within(numbers, Range(value, value))
        return found | ~self._known if None in wanted else found

    def span(self) -> str:
        """The least and the most, for a message."""
        if self._numbers is None or not self._known.any():
            return "nowhere"
        held = self._numbers[self._known]
        return f"{held.min()} to {held.max()}"

    def _shown(self) -> str:
        names = [str(name) for name in self.names if name is not None]
        return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


def _within(numbers: np.ndarray, wanted: Range) -> np.ndarray:
    """bool[d], exactly: whole numbers against whole bounds, others as doubles."""
    if numbers.dtype.kind == "f":
        numbers = numbers.astype(np.float64)
        low, high = wanted.min, wanted.max
    else:
        low = None if wanted.min is None else math.ceil(wanted.min)
        high = None if wanted.max is None else math.floor(wanted.max)
    keep = np.ones(len(numbers), bool)
    if low is not None:
        keep &= numbers >= low
    if high is not None:
        keep &= numbers <= high
    return keep


def length_bucket(tokens: np.ndarray) -> np.ndarray:
    """int32[d], b of 2**(b-1) < tokens <= 2**b; exact, and never below 0."""
    return np.searchsorted(1 << np.arange(62, dtype=np.int64), tokens).astype(np.int32)


def _codes(column: pa.ChunkedArray) -> tuple[list[Any], np.ndarray]:
    """Distinct values in order (null last), and each row's place among them."""
    names = sorted(value for value in pc.unique(column).to_pylist() if value is not None)
    if column.null_count:
        names.append(None)
    values = pa.array(names, type=column.type)
    codes = pc.index_in(column, value_set=values, skip_nulls=False)
    return names, codes.to_numpy().astype(np.int64)
