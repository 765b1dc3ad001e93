"""What a global stage is: survey, rounds over a partitioned exchange, apply.

A global stage (exact or near duplicates, templates) needs the whole corpus. It is written as plain
functions over tables; `pipelines` moves the rows:

    survey   an ordinary stage; its scores per document are stored beside the others
    scatter  scores of the surviving documents of one shard -> rows, each with a `partition` hash
    gather   (per round) all rows of one hash partition -> rows for the next round, or decisions

A round may want more: texts fetched before it, shard by shard (`FetchingRound`), the rows of an
earlier round beside its own (`JoiningRound`), or all partitions in one call (`WholeRound`).

Nothing may depend on the order of rows, shards or partitions, nor on how many partitions there are:
rows with equal `partition` values meet in the same call; a round sorts by what it needs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
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

# Key of a table's schema metadata: a JSON object of integers that a round counted.
COUNTS = b"gristmill.counts"


def with_counts(table: pa.Table, **counts: int) -> pa.Table:
    """Attach counts of what a round did to its result (deterministic; not part of the data)."""
    return table.replace_schema_metadata({COUNTS: json.dumps(counts, sort_keys=True).encode()})


def counts_of(table: pa.Table) -> dict[str, int]:
    """Return what `with_counts` attached, or nothing."""
    found = (table.schema.metadata or {}).get(COUNTS)
    return dict(json.loads(found)) if found else {}


# Fetch texts: (shard uint64[n], row uint32[n]) -> large_string[n], as the survey saw them.
Texts = Callable[[np.ndarray, np.ndarray], pa.LargeStringArray]


class Round(Protocol):
    """One round over hash partitions of the exchange."""

    name: ClassVar[str]

    def gather(self, rows: pa.Table, texts: Texts) -> pa.Table:
        """All rows of one partition -> rows with `partition`, or DECISIONS (last round)."""
        ...


@runtime_checkable
class FetchingRound(Round, Protocol):
    """A round that needs many texts: each shard is read once, for all partitions.

    Fetching a text where it is needed lets every partition touch every row group: with n documents
    there are n partitions of n row groups. Here each shard answers all partitions in one reading,
    and `gather` finds what `prepare` made of a text where it asked for the text.
    """

    def needs(self, rows: pa.Table) -> pa.Table:
        """Rows of a partition -> `shard`, `row` of the texts that `gather` will ask for."""
        ...

    def prepare(self, texts: pa.LargeStringArray) -> pa.Array:
        """What the round needs of each text, such as its set of shingles."""
        ...


@runtime_checkable
class JoiningRound(Protocol):
    """A round that takes the rows of two earlier rounds; equal `partition` values meet."""

    name: ClassVar[str]
    beside: ClassVar[str]  # name of the other round

    def join(self, rows: pa.Table, others: pa.Table) -> pa.Table:
        """Rows of the round before and of `beside`, of one partition -> rows."""
        ...


@runtime_checkable
class WholeRound(Protocol):
    """A round in one call, for what cannot be cut: it streams, and keeps a few bytes a row."""

    name: ClassVar[str]

    def whole(self, parts: Iterable[pa.Table]) -> pa.Table:
        """All rows of the round before, partition by partition, as often as asked -> rows."""
        ...


AnyRound = Round | JoiningRound | WholeRound


class Survey:
    """Base of the stages that measure what an exchange needs: they keep every row."""

    reasons: ClassVar[tuple[str, ...]] = ("keep",)
    verdict_fields: ClassVar[frozenset[str]] = frozenset()

    def verdict(self, scores: Mapping[str, np.ndarray]) -> np.ndarray:
        """Keep every row: the rounds decide."""
        return np.zeros(len(next(iter(scores.values()))), np.uint8)


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
    def rounds(self) -> Sequence[AnyRound]:
        """The rounds in order; the last one returns DECISIONS."""
        ...

    @property
    def row_bytes(self) -> int:
        """Bytes of a document's rows in the largest round; partitions follow from them."""
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

        `found` holds `decided` (and `witness_in`) for the rows `rows` int64[n], ascending. A score
        `decision` uint8[rows] stands for the codes of `found`: a text that is cut away goes.
        """
        ...
