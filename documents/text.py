"""The Arrow-to-Numba seam: a string column as three read-only NumPy arrays, without a copy.

Arrow IPC buffers are read-only to NumPy and Parquet ones are not; Numba would compile a second
version of every kernel for the other kind. All are made read-only here, so there is one version.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

_EMPTY = np.zeros(0, np.uint8)
_EMPTY.flags.writeable = False


class TextView(NamedTuple):
    """`data` uint8[bytes]; `offsets` int64[rows + 1] into it; null rows are empty strings."""

    data: np.ndarray
    offsets: np.ndarray

    @property
    def rows(self) -> int:
        """Number of strings."""
        return len(self.offsets) - 1


def text_view(column: pa.Array | pa.ChunkedArray) -> TextView:
    """View a string, large_string, binary or large_binary column. Slices keep the shared buffer.

    Nulls become empty: their offsets are closed up when a null row spans bytes (Arrow allows it).
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    kind = column.type
    wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    if not (wide or pa.types.is_string(kind) or pa.types.is_binary(kind)):
        msg = f"text_view takes strings or binary, found {kind}"
        raise TypeError(msg)
    rows = len(column)
    _, offsets_buffer, data_buffer = column.buffers()
    if rows == 0 or offsets_buffer is None:
        offsets = np.zeros(rows + 1, np.int64)
        offsets.flags.writeable = False
        return TextView(_EMPTY, offsets)
    width = np.int64 if wide else np.int32
    raw = np.frombuffer(offsets_buffer, width)[column.offset : column.offset + rows + 1]
    offsets = raw.astype(np.int64)
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else _EMPTY
    if column.null_count:
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        if (np.diff(offsets)[~valid] != 0).any():
            return text_view(column.fill_null(b"" if "binary" in str(kind) else ""))
    data = data.view()
    data.flags.writeable = False
    offsets.flags.writeable = False
    return TextView(data, offsets)


def from_buffers(data: np.ndarray, offsets: np.ndarray) -> pa.LargeStringArray:
    """Make a large_string column of UTF-8 `data` uint8[bytes] and `offsets` int64[rows + 1]."""
    return pa.LargeStringArray.from_buffers(
        len(offsets) - 1, pa.py_buffer(offsets.astype(np.int64)), pa.py_buffer(data)
    )
