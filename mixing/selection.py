"""The catalogue as arrays, and slices as predicates over it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..documents.errors import ContractError, UsageError, did_you_mean
from .spec import ATTRIBUTES, SliceSpec

COLUMNS = pa.schema(
    [
        pa.field("shard", pa.string(), nullable=False),
        pa.field("doc", pa.uint32(), nullable=False),  # ordinal in the token shard
        pa.field("id", pa.binary(16), nullable=False),
        pa.field("tokens", pa.uint32(), nullable=False),  # end-of-document token included
        *(pa.field(name, pa.string()) for name in ATTRIBUTES),
    ]
)


class Catalogue:
    """Columns of the catalogue as numpy arrays; strings as codes of sorted names.

    ContractError when a column is missing, null where it must not be, or rows are not sorted.
    """

    def __init__(self, table: pa.Table) -> None:
        missing = [name for name in COLUMNS.names if name not in table.column_names]
        if missing:
            raise ContractError(f"catalogue: columns {missing} are missing")
        table = table.select(COLUMNS.names).cast(COLUMNS).combine_chunks()
        if not table.num_rows:
            raise UsageError("catalogue: found no documents; expected at least one to mix")
        for field in COLUMNS:
            if not field.nullable and table[field.name].null_count:
                raise ContractError(f"catalogue: column {field.name!r} has nulls")
        self.shards, self.shard = _codes(table["shard"])
        self.doc = table["doc"].to_numpy()
        self.tokens = table["tokens"].to_numpy().astype(np.int64)
        self._names: dict[str, list[str | None]] = {}
        self._codes: dict[str, np.ndarray] = {}
        for name in ATTRIBUTES:
            self._names[name], self._codes[name] = _codes(table[name])
        self.sources = self._names["source"]
        ids = table["id"].combine_chunks()
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

    def select(self, name: str, spec: SliceSpec) -> np.ndarray:
        """int64 rows of the documents of a slice, ascending."""
        keep = self.tokens >= spec.min_tokens
        if spec.max_tokens is not None:
            keep &= self.tokens <= spec.max_tokens
        for attribute in ATTRIBUTES:
            wanted = getattr(spec, attribute)
            if wanted is not None:
                known = self._names[attribute]
                allowed = np.array([value in wanted for value in known])
                keep &= allowed[self._codes[attribute]]
        return np.flatnonzero(keep)

    def unmatched(self, spec: SliceSpec) -> dict[str, Any]:
        """Listed values that no document of the catalogue has; kept in the plan to be seen."""
        out = {}
        for attribute in ATTRIBUTES:
            wanted = getattr(spec, attribute) or ()
            absent = [value for value in wanted if value not in self._names[attribute]]
            if absent:
                out[attribute] = absent
        return out

    def why_empty(self, spec: SliceSpec) -> str:
        """What to look at when a slice has no document."""
        for attribute, absent in self.unmatched(spec).items():
            known = [str(value) for value in self._names[attribute] if value is not None]
            return f"no document has {attribute} {absent[0]!r}{did_you_mean(str(absent[0]), known)}"
        low, high = int(self.tokens.min()), int(self.tokens.max())
        bounds = f"min_tokens {spec.min_tokens}, max_tokens {spec.max_tokens}"
        return f"its lists and {bounds} leave none; documents have {low} to {high} tokens"

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays that a plan keeps: see `mixing.plan`."""
        columns = [self.shard, self.doc, self.tokens]
        return {
            "documents": np.stack(columns, axis=1).astype(np.uint32),
            "ids": self.ids,
            "sources": self._codes["source"].astype(np.uint32),
        }


def _codes(column: pa.ChunkedArray) -> tuple[list[Any], np.ndarray]:
    """Distinct values in order (null last), and each row's place among them."""
    names = sorted(value for value in pc.unique(column).to_pylist() if value is not None)
    if column.null_count:
        names.append(None)
    values = pa.array(names, type=column.type)
    codes = pc.index_in(column, value_set=values, skip_nulls=False)
    return names, codes.to_numpy().astype(np.int64)
