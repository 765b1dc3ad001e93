"""Sequences as rows of Parquet, with what the flat formats leave out: masks and provenance."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..feed import PROVENANCE
from .writers import Block


class ParquetWriter:
    """Columns: position, input_ids, segments (lengths), loss_mask, and those of `PROVENANCE`."""

    def __init__(self, folder: Path, dtype: np.dtype, length: int, masked: bool) -> None:
        del masked  # the labels that are there stand in a column either way
        ids = pa.list_(pa.from_numpy_dtype(dtype), length)
        self.schema = pa.schema(
            [
                pa.field("input_ids", ids, nullable=False),
                pa.field("segments", pa.list_(pa.int64()), nullable=False),
                pa.field("loss_mask", pa.list_(pa.bool_(), length), nullable=False),
                *(pa.field(name, pa.int64(), nullable=False) for name in PROVENANCE),
            ]
        )
        self.length = length
        self.windows = 0
        self._file = pq.ParquetWriter(folder / "sequences.parquet", self.schema, compression="zstd")

    def add(self, block: Block) -> None:
        """Write the block as a row group."""
        self.windows += len(block.ids)
        ends = np.cumsum([0, *(len(s) for s in block.segments)]).astype(np.int32)
        columns = [
            pa.FixedSizeListArray.from_arrays(pa.array(block.ids.reshape(-1)), self.length),
            pa.ListArray.from_arrays(pa.array(ends), pa.array(np.concatenate(block.segments))),
            pa.FixedSizeListArray.from_arrays(pa.array(block.mask.reshape(-1)), self.length),
            *(pa.array(block.provenance[:, i]) for i in range(len(PROVENANCE))),
        ]
        self._file.write_batch(pa.record_batch(columns, schema=self.schema))

    def close(self) -> None:
        """Write the footer."""
        self._file.close()
