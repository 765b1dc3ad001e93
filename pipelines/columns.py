"""How attributes stand in Parquet: one wide row per document, columns `<stage>.<score>`.

Null means "not measured": an earlier cut had taken the row. A score of shape [rows, k] is one
fixed-size binary per row; its dtype and shape stand in the schema's metadata, as do reasons and
edit reasons, so that a file explains itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from ..documents.edits import Edits

EDIT = pa.struct(
    [
        pa.field("start", pa.uint32(), nullable=False),  # bytes
        pa.field("length", pa.uint32(), nullable=False),  # bytes
        pa.field("reason", pa.uint8(), nullable=False),
        pa.field("replacement", pa.uint8(), nullable=False),
    ]
)
EDITS = pa.list_(pa.field("item", EDIT, nullable=False))


def score_type(values: np.ndarray) -> pa.DataType:
    """The Arrow type of a score array."""
    if values.ndim == 2:
        return pa.binary(values.shape[1] * values.dtype.itemsize)
    if values.dtype.kind == "S":
        return pa.string()
    return pa.from_numpy_dtype(values.dtype)


def score_column(values: np.ndarray, measured: np.ndarray) -> pa.Array:
    """Scores of all rows as a column; rows that are not `measured` (bool[rows]) become null."""
    kind = score_type(values)
    if values.ndim == 2:
        flat = np.where(measured[:, None], values, np.zeros((), values.dtype))
        width = values.shape[1] * values.dtype.itemsize
        raw = np.ascontiguousarray(flat).view(np.uint8).reshape(-1)
        nulls = None
        if not measured.all():
            nulls = pa.py_buffer(np.packbits(measured, bitorder="little"))
        return pa.Array.from_buffers(pa.binary(width), len(values), [nulls, pa.py_buffer(raw)])
    if values.dtype.kind == "S":
        return pa.array(
            [v.decode("ascii") if m else None for v, m in zip(values, measured, strict=True)], kind
        )
    return pa.array(values, kind, mask=~measured)


def score_values(column: pa.Array, dtype: str, shape: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Back from a column: values (null rows are zero) and bool[rows] measured."""
    measured = column.is_valid().to_numpy(zero_copy_only=False)
    kind = np.dtype(dtype)
    if shape:
        width = shape[0] * kind.itemsize
        raw = np.frombuffer(column.buffers()[1] or b"", np.uint8)
        raw = raw[column.offset * width : (column.offset + len(column)) * width]
        values = raw.view(kind).reshape(len(column), shape[0]).copy()
        values[~measured] = 0
        return values, measured
    if kind.kind == "S":
        plain = column.fill_null("").to_pylist()
        return np.array([p.encode("ascii") for p in plain], kind).reshape(len(column)), measured
    zero = False if kind.kind == "b" else 0
    return column.fill_null(zero).to_numpy(zero_copy_only=False).astype(kind), measured


def edits_column(edits: Edits, rows: int, measured: np.ndarray) -> pa.Array:
    """Edits of a row group as lists, one per row; null where not measured."""
    keep = measured[edits.rows]
    sizes = np.bincount(edits.rows[keep], minlength=rows)
    offsets = np.zeros(rows + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    which = edits.replacement
    filled = np.zeros(len(edits.rows), np.uint8) if which is None else which
    items = pa.StructArray.from_arrays(
        [
            pa.array(edits.starts[keep].astype(np.uint32)),
            pa.array(edits.lengths[keep].astype(np.uint32)),
            pa.array(edits.reasons[keep].astype(np.uint8)),
            pa.array(filled[keep].astype(np.uint8)),
        ],
        fields=list(EDIT),
    )
    return pa.ListArray.from_arrays(offsets, items, type=EDITS, mask=pa.array(~measured))


def edits_from(column: pa.Array, meta: Mapping[str, Any]) -> Edits:
    """Back from a column of lists (nulls are no edits)."""
    sizes = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    items = column.flatten()
    parts = [items.field(i).to_numpy(zero_copy_only=False) for i in range(4)]
    return Edits(
        rows=np.repeat(np.arange(len(column)), sizes),
        starts=parts[0].astype(np.int64),
        lengths=parts[1].astype(np.int64),
        reasons=parts[2],
        replacement=parts[3],
        reason_names=tuple(meta["edit_reasons"]),
        replacements=tuple(bytes.fromhex(r) for r in meta["replacements"]),
    )


def schema_meta(schema: pa.Schema) -> dict[str, Any]:
    """What the file says of itself."""
    return json.loads((schema.metadata or {}).get(b"gristmill", b"{}"))
