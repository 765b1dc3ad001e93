"""What a document is: the columns that are written once and never change.

One row per document. `text` is UTF-8 (large_string: 64-bit offsets); bytes are counted in it.
`id` is 16 raw bytes (`documents.identity`), hex at the command line. `locator` leads back to the
raw record: `extent` the shard's stretch of a stored file (the manifest knows the file, which may
move), `offset` the byte in that stretch where decoding starts (a gzip member, a zstd frame, a plain
record, a Parquet row group), `inner` the byte in the decoded stream from there (Parquet: the row in
the group), `span` decoded bytes. `turns` says where the turns of a conversation stand in the text,
in order and apart; null for any other document.
"""

from __future__ import annotations

import pyarrow as pa

FORMAT = 1  # of every Parquet file of a run; an unknown number is an error

LOCATOR = pa.struct(
    [
        pa.field("extent", pa.int32(), nullable=False),  # ordinal in the shard
        pa.field("offset", pa.int64(), nullable=False),  # bytes, in the stored extent
        pa.field("inner", pa.int64(), nullable=False),  # bytes (Parquet: rows) after decoding
        pa.field("span", pa.int64(), nullable=False),  # decoded bytes that the record covers
    ]
)

TURN = pa.struct(
    [
        pa.field("role", pa.string(), nullable=False),  # of `documents.records.Turn`
        pa.field("start", pa.uint32(), nullable=False),  # byte of the text where its heading begins
        pa.field("body", pa.uint32(), nullable=False),  # what was said begins, the heading ends
        pa.field("stop", pa.uint32(), nullable=False),  # what was said ends
        pa.field("trained", pa.bool_(), nullable=False),  # a model is to learn to say it
    ]
)
TURNS = pa.list_(pa.field("item", TURN, nullable=False))

DOCUMENTS = pa.schema(
    [
        pa.field("id", pa.binary(16), nullable=False),
        pa.field("text", pa.large_string(), nullable=False),
        pa.field("url", pa.string()),
        pa.field("host", pa.string()),
        pa.field("source", pa.string(), nullable=False),
        pa.field("dump", pa.string()),
        pa.field("date", pa.string()),
        pa.field("license", pa.string()),
        pa.field("metadata", pa.string(), nullable=False),  # one JSON object
        pa.field("turns", TURNS),
        pa.field("locator", LOCATOR, nullable=False),
    ]
)

LOSSES = pa.schema(
    [
        pa.field("extent", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("inner", pa.int64(), nullable=False),
        pa.field("span", pa.int64(), nullable=False),  # decoded bytes that did not become text
        pa.field("kind", pa.string(), nullable=False),  # fault: damage; dropped: a rule
        pa.field("reason", pa.string(), nullable=False),
        pa.field("detail", pa.string(), nullable=False),
        pa.field("url", pa.string()),
    ]
)
