"""What a global stage is: survey, rounds over a partitioned exchange, apply.

A global stage (exact or near duplicates, templates) needs the whole corpus. It is written as plain
functions over tables; `pipelines` moves the rows:

    survey   an ordinary stage; its scores per document are stored beside the others
    scatter  scores of the surviving documents of one shard -> rows, each with a `partition` hash
    gather   (per round) all rows of one hash partition -> rows for the next round, or decisions

Nothing may depend on the order of rows, shards or partitions, nor on how many partitions there are:
rows with equal `partition` values meet in the same call; a round sorts by what it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from .stage import Measured, Stage

# `scatter` gets one row per surviving document: KEY and RANK, then the survey's scores.
KEY = pa.schema(
    [
        pa.field("shard", pa.uint64(), nullable=False),  # hash of the shard's name
        pa.field("id", pa.binary(16), nullable=False),
        pa.field("row", pa.uint32(), nullable=False),  # position in the shard: to fetch text only
    ]
)
# The representative order: lower priority number, then higher quality, longer, lower id.
RANK = pa.schema(
    [
        pa.field("priority", pa.uint16(), nullable=False),  # of the source; 0 is kept first
        pa.field("quality", pa.int32(), nullable=False),  # frozen bucket; absent = -1
        pa.field("bytes", pa.uint32(), nullable=False),  # of the text as the survey saw it
    ]
)
DECISIONS = pa.schema(
    [
        *KEY,
        pa.field("code", pa.uint8(), nullable=False),  # 0 keep, k = reasons[k]
        pa.field("witness_shard", pa.uint64()),  # a kept document that proves the removal
        pa.field("witness_id", pa.binary(16)),
        pa.field("shared", pa.uint32()),  # |A and B| of the shingle sets, exact
        pa.field("either", pa.uint32()),  # |A or B|
        pa.field("cluster", pa.binary(16)),  # id of the cluster's first document
        pa.field("cluster_size", pa.uint32(), nullable=False),
    ]
)

# Fetch texts: (shard uint64[n], row uint32[n]) -> large_string[n], as the survey saw them.
Texts = Callable[[np.ndarray, np.ndarray], pa.LargeStringArray]


class Round(Protocol):
    """One round over hash partitions of the exchange."""

    name: ClassVar[str]

    def gather(self, rows: pa.Table, texts: Texts) -> pa.Table:
        """All rows of one partition -> rows with `partition`, or DECISIONS (last round)."""
        ...


class GlobalStage(Protocol):
    """A frozen keyword-only dataclass like a stage; `reasons[0] == "keep"`."""

    name: ClassVar[str]
    revision: ClassVar[int]
    reasons: ClassVar[tuple[str, ...]]
    verdict_fields: ClassVar[frozenset[str]]  # fields that the survey does not depend on

    @property
    def survey(self) -> Stage:
        """The ordinary stage that measures what the exchange needs; its verdict always keeps."""
        ...

    @property
    def rounds(self) -> Sequence[Round]:
        """The rounds in order; the last one returns DECISIONS."""
        ...

    def scatter(self, documents: pa.Table) -> pa.Table:
        """Columns KEY, RANK and the survey's scores -> rows of round 0, with `partition` uint64."""
        ...


@runtime_checkable
class CuttingStage(GlobalStage, Protocol):
    """A global stage that cuts text out of the documents that it keeps.

    Its `scatter` sees the texts: a column `text` beside KEY, RANK and scores, called for a row
    group of a shard at a time. Its decisions have columns of its own beside DECISIONS, and it says
    itself what they mean for a text: by digests of what goes, never by offsets, so that a decision
    file needs no text and stays small.
    """

    decided: ClassVar[pa.Schema]  # DECISIONS and further columns

    def cut(self, batch: pa.RecordBatch, found: pa.Table, rows: np.ndarray) -> Measured:
        """Scores for all rows of `batch`, edits, and evidence (JSON objects) for some of them.

        `found` holds `decided` (and `witness_in`) for the rows `rows` int64[n], ascending.
        """
        ...
