"""Parquet: types, nulls, sizes, bad bytes."""

from __future__ import annotations

import datetime as dt
import decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.fixture
def table(tmp_path):
    def write(columns, **options) -> bytes:
        made = columns if isinstance(columns, pa.Table) else pa.table(columns)
        pq.write_table(made, tmp_path / "made", **options)
        return (tmp_path / "made").read_bytes()

    return write


@pytest.mark.parametrize("compression", ["none", "zstd", "gzip", "snappy"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.string_view()])
def test_parquet_rows_come_in_order_with_row_numbers(make, table, compression, kind):
    texts = [f"text {n} é" for n in range(25)]
    column = pa.array([t.encode() for t in texts]).cast(pa.binary())
    column = pa.array(texts, kind) if kind != pa.binary() else column
    got = make.read(
        table({"text": column, "id": range(25)}, row_group_size=10, compression=compression)
    )
    assert [r.text for r in got.records] == texts
    assert got.ids == [str(n) for n in range(25)]
    assert [r.locator.inner for r in got.records] == [*range(10), *range(10), *range(5)]
    assert len({r.locator.offset for r in got.records}) == 3
    assert [r.locator.span for r in got.records] == [len(t.encode()) for t in texts]


def test_parquet_nul_survives_as_text(make, table):
    """Case 15: the reader hands it on; the text policy strips it."""
    assert make.read(table({"text": ["a\0b"]})).records[0].text == "a\0b"


def test_parquet_null_text_is_dropped_and_wrong_type_is_bad_schema(make, table):
    """Case 19."""
    got = make.read(table({"text": ["a", None, "b"]}))
    assert [r.text for r in got.records] == ["a", "b"]
    assert [(x.reason, x.kind, x.locator.inner) for x in got.losses] == [
        ("null_text", "dropped", 1)
    ]
    got = make.read(table({"text": [1, 2]}))
    assert got.reasons == ["bad_schema"]
    assert "int64" in got.losses[0].detail
    got = make.read(table({"txt": ["a"]}))
    assert got.reasons == ["bad_schema"]
    assert "txt" in got.losses[0].detail


def test_parquet_null_licence_column_then_strings(make, table):
    """Case 21, as files: one whose column is all null, one with strings."""
    nulls = make.read(table({"text": ["a"], "lic": pa.array([None], pa.null())}))
    given = make.read(table({"text": ["a"], "lic": ["mit"]}))
    assert [r.fields for r in nulls.records + given.records] == [{"lic": None}, {"lic": "mit"}]


def test_parquet_values_become_plain_json(make, table):
    columns = {
        "text": ["t"],
        "when": [dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC)],
        "price": [decimal.Decimal("1.10")],
        "nan": [float("nan")],
        "raw": [b"\xff\x00"],
        "nested": [{"a": [1, None], "b": dt.date(2024, 1, 2)}],
    }
    assert make.read(table(columns)).records[0].fields == {
        "when": "2024-01-02T03:04:05+00:00",
        "price": "1.10",
        "nan": None,
        "raw": "ff00",
        "nested": {"a": [1, None], "b": "2024-01-02"},
    }


def test_parquet_bad_utf8_costs_one_row(make, table):
    raw = pa.array([b"ok", b"\xff\xfe", b"fine"], pa.binary())
    text = pa.StringArray.from_buffers(3, raw.buffers()[1], raw.buffers()[2])
    got = make.read(table({"text": text}))
    assert [r.text for r in got.records] == ["ok", "fine"]
    assert [(x.reason, x.locator.inner) for x in got.losses] == [("invalid_utf8", 1)]


def test_parquet_group_of_giant_rows_is_refused_undecoded(make, table):
    """Case 23, a hundredth of its size: four rows of one repeated byte, compressed to nothing."""
    columns = {"text": [c * 4_000_000 for c in "abcd"]}
    data = table(columns, compression="zstd")
    assert len(data) < 100_000
    got = make.read(data, max_record_bytes=1_000_000)
    assert got.reasons == ["too_large"]
    assert "4 rows" in got.losses[0].detail
    assert got.account.decoded_bytes == 0
    assert make.read(table({"text": ["small"]}), max_record_bytes=1_000_000).ids == [None]


def test_parquet_one_giant_row_among_small_ones_is_lost_alone(make, table):
    texts = [f"small {n}" for n in range(40)]
    texts[7] = "x" * 3_000_000
    got = make.read(table({"text": texts}), max_record_bytes=1_000_000)
    assert len(got.records) == 39
    assert [(x.reason, x.locator.inner, x.locator.span) for x in got.losses] == [
        ("too_large", 7, 3_000_000)
    ]


def test_parquet_giant_value_shared_by_many_rows_is_not_copied(make, table):
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 2_000, pa.int32()), ["y" * 2_000_000])
    before = pa.total_allocated_bytes()
    peak = 0
    data = table({"text": column})
    got = make.read(data, max_record_bytes=1_000_000, max_faults=10_000)
    peak = pa.default_memory_pool().max_memory() - before
    assert got.reasons == ["too_large"] * 2_000
    assert peak < 500_000_000  # expanded they are 4 GB


def test_parquet_empty_table_and_no_groups_are_a_row_and_no_fault(make, table):
    got = make.read(table({"text": pa.array([], pa.string())}))
    assert (got.records, got.reasons, got.losses[0].kind) == ([], ["empty_file"], "dropped")
