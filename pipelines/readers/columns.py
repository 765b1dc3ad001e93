"""Parquet: row groups as they stand, rows in bounded batches, sizes looked at before decoding.

A row's span is the UTF-8 and binary bytes of its top-level columns, known before Python sees them;
the account's decoded bytes are the same sum taken by Arrow over whole batches.
String columns are read as dictionaries, so one giant value that a million rows share stays one.
A value of another column than the text that Python cannot hold (nanoseconds, dates out of range, an
unknown time zone, a wrong byte in a URL) becomes a string, or null, and is counted as the repair
`value`: it costs no document. Arrow opens no file whose schema is nested more than 100 deep, so no
row is looked through for that. What is lost without being decoded says how many rows it had.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...documents.records import Locator, Loss, Record
from .account import ReadAccount, ReadOptions, above
from .extents import Extent
from .jsonl import make_record
from .storage import RangeFile, Ranges

MAGIC = b"PAR1"
_BATCH = 8 << 20  # decoded bytes per batch that are aimed at
_BAD = (pa.ArrowException, OSError, ValueError, KeyError, IndexError, OverflowError)


def open_parquet(ranges: Ranges) -> pq.ParquetFile:
    """Open a file with its strings as dictionaries; raises one of `pa.ArrowException`, OSError.

    Storage that fails raises StopError through Arrow, which is none of these: it is no damage.
    """
    with pq.ParquetFile(pa.PythonFile(RangeFile(ranges), "r")) as probe:
        schema = probe.schema_arrow
        metadata = probe.metadata
        names = [f.name for f in schema if _is_text(f.type)]
    return pq.ParquetFile(
        pa.PythonFile(RangeFile(ranges), "r"),
        metadata=metadata,
        read_dictionary=names,
        page_checksum_verification=True,
    )


def _is_text(kind: pa.DataType) -> bool:
    return (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )


def _is_view(kind: pa.DataType) -> bool:
    return pa.types.is_string_view(kind) or pa.types.is_binary_view(kind)


def _without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Views as plain strings: few kernels take them."""
    for index, name in enumerate(batch.schema.names):
        column = batch.column(index)
        if _is_view(column.type):
            binary = pa.types.is_binary_view(column.type)
            plain = column.cast(pa.large_binary() if binary else pa.large_string())
            batch = batch.set_column(index, name, plain)
    return batch


def group_starts(file: pq.ParquetFile) -> list[int]:
    """Where each row group starts in the file, bytes; not ascending in odd files."""
    starts = []
    for index in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(index)
        offsets = []
        for c in range(group.num_columns):
            column = group.column(c)
            offsets.append(column.data_page_offset)
            if column.has_dictionary_page and column.dictionary_page_offset:
                offsets.append(column.dictionary_page_offset)
        starts.append(min(offsets, default=0))
    return starts


def read_parquet(
    ranges: Ranges, extent: Extent, account: ReadAccount, options: ReadOptions
) -> Iterator[Record | Loss]:
    """Rows of the row groups that start within the extent."""
    name, start, end = extent.file, extent.start, extent.end
    try:
        file = open_parquet(ranges)
        starts = group_starts(file)
    except _BAD as error:
        account.damaged += end - start
        cut = ranges.read(max(0, ranges.size - 4), 4) != MAGIC
        reason = "truncated_stream" if cut else "corrupt_member"
        detail = "the footer is missing" if cut else f"Parquet footer: {error}"[:200]
        yield Loss(locator=Locator(name, start), reason=reason, detail=detail)
        return
    account.members += end - start
    with file:
        for index, offset in enumerate(starts):
            if start <= offset < end:
                yield from _group(file, index, Locator(name, offset), account, options)


def _group(
    file: pq.ParquetFile, index: int, at: Locator, account: ReadAccount, options: ReadOptions
) -> Iterator[Record | Loss]:
    rows = file.metadata.row_group(index).num_rows
    wrong = _schema_fault(file, options)
    if wrong:
        yield Loss(locator=at, reason="bad_schema", detail=f"{rows} rows: {wrong}", records=rows)
        return
    size = _decoded_size(file, index)
    if rows and size // rows > options.max_record_bytes:
        limit = above(options.max_record_bytes)
        detail = f"{rows} rows of {size // rows} bytes on average, {limit}; not decoded"
        yield Loss(locator=at, reason="too_large", detail=detail, records=rows)
        return
    batch_rows = max(1, min(1024, _BATCH * rows // max(1, size)))
    done = 0
    try:
        for batch in file.iter_batches(batch_size=batch_rows, row_groups=[index]):
            batch = _without_views(batch)  # noqa: PLW2901
            spans, total = _spans(batch)
            account.decoded_bytes += total
            for row, span in enumerate(spans):
                locator = Locator(at.file, at.offset, done + row, span)
                yield _row(batch, row, locator, options)
            done += batch.num_rows
    except _BAD as error:
        detail = f"{rows - done} of {rows} rows: {error}"[:300]
    else:
        if done == rows:
            return
        detail = f"the footer states {rows} rows, {done} were there"
    yield Loss(
        locator=Locator(at.file, at.offset, done, 0),
        reason="corrupt_member",
        detail=detail,
        records=max(1, rows - done),
    )


def _decoded_size(file: pq.ParquetFile, index: int) -> int:
    """Uncompressed bytes of the row group, as its footer states them."""
    group = file.metadata.row_group(index)
    return sum(max(0, group.column(c).total_uncompressed_size) for c in range(group.num_columns))


def _schema_fault(file: pq.ParquetFile, options: ReadOptions) -> str:
    if options.text_field is None:
        return ""
    schema = file.schema_arrow
    names = schema.names
    if names.count(options.text_field) != 1:
        found = ", ".join(names)[:200]
        return f"expected one column {options.text_field!r}, found columns {found}"
    kind = schema.field(options.text_field).type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if not (_is_text(kind) or _is_view(kind) or pa.types.is_null(kind)):
        return f"column {options.text_field!r}: expected strings, found {kind}"
    return ""


def _spans(batch: pa.RecordBatch) -> tuple[list[int], int]:
    """String and binary bytes of each row, and their sum over the batch."""
    spans = np.zeros(batch.num_rows, np.int64)
    total = 0
    for column in batch.columns:
        if pa.types.is_dictionary(column.type):
            if not _is_text(column.dictionary.type):
                continue
            sizes = pc.binary_length(column.dictionary)
            sizes = pc.take(sizes, column.indices)
        elif _is_text(column.type):
            sizes = pc.binary_length(column)
        else:
            continue
        total += pc.sum(sizes).as_py() or 0
        spans += pc.fill_null(sizes, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return spans.tolist(), total


def _row(batch: pa.RecordBatch, row: int, locator: Locator, options: ReadOptions) -> Record | Loss:
    if locator.span > options.max_record_bytes:
        detail = f"{locator.span} bytes, {above(options.max_record_bytes)}"
        return Loss(locator=locator, reason="too_large", detail=detail)
    values: dict[str, Any] = {}
    changed = 0
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            values[name] = plain_value(_known(column[row]), binary=name != options.text_field)
        except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
            if name == options.text_field:
                reason = "invalid_utf8" if isinstance(error, UnicodeDecodeError) else "bad_schema"
                detail = f"column {name!r}: {error}"[:200]
                return Loss(locator=locator, reason=reason, detail=detail)
            values[name] = _described(column[row])
            changed += 1
    return make_record(values, "", locator, options, {"value": changed} if changed else None)


def _known(scalar: pa.Scalar) -> Any:
    """The value as Python has it; raises when it has none.

    Nanoseconds never come as they are: with pandas installed they would be another type.
    """
    kind = scalar.type
    if getattr(kind, "unit", "") == "ns" and scalar.is_valid:
        if scalar.value % 1000:
            raise ValueError("nanoseconds")
        zone = getattr(kind, "tz", None)
        scalar = scalar.cast(
            pa.timestamp("us", zone)
            if pa.types.is_timestamp(kind)
            else pa.time64("us")
            if pa.types.is_time(kind)
            else pa.duration("us")
        )
    return scalar.as_py()


def _described(scalar: pa.Scalar) -> str | None:
    """A value that Python cannot hold as a string, or None."""
    if pa.types.is_dictionary(scalar.type):
        scalar = scalar.value
    kind = scalar.type
    if _is_text(kind):
        return str(scalar.as_buffer().to_pybytes(), "utf-8", "replace")
    if not pa.types.is_temporal(kind) or not hasattr(scalar, "value"):
        return None
    zone = getattr(kind, "tz", None)
    try:
        bare = scalar.cast(pa.timestamp(kind.unit)) if zone else scalar
        text = str(bare.cast(pa.string()).as_py())
    except pa.ArrowException:
        return f"{scalar.value} {kind}"
    if pa.types.is_duration(kind) or "out of range" in text:
        return f"{scalar.value} {kind}"
    return text.replace(" ", "T") + ("+00:00" if zone else "")


def plain_value(value: Any, *, binary: bool = True) -> Any:
    """A value as JSON can hold it. Bytes become text: hex, or UTF-8 for the text column."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bytes):
        return value.hex() if binary else value.decode()
    if isinstance(value, dict):
        return {str(k): plain_value(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_value(v) for v in value]
    if isinstance(value, (dt.datetime, dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return str(value)
    return str(value)


def reread_row(ranges: Ranges, locator: Locator, options: ReadOptions) -> Record | None:
    """The row that `locator` names, or None."""
    try:
        with open_parquet(ranges) as file:
            index = group_starts(file).index(locator.offset)
            left = locator.inner
            for batch in file.iter_batches(batch_size=64, row_groups=[index]):
                if left < batch.num_rows:
                    item = _row(_without_views(batch), left, locator, options)
                    return item if isinstance(item, Record) else None
                left -= batch.num_rows
    except _BAD:
        return None
    return None
