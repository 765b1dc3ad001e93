"""Parquet: types, nulls, sizes, bad bytes."""

from __future__ import annotations

import datetime as dt
import decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.documents.fingerprint import canonical
from gristmill.pipelines.convert import PlainText
from gristmill.pipelines.readers import reread


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
    assert "reader.max_record_bytes (1000000 bytes); not decoded" in got.losses[0].detail
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
    assert "more than reader.max_record_bytes (1000000 bytes)" in got.losses[0].detail


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


def test_parquet_lost_group_says_how_many_rows_it_had(make, table):
    got = make.read(table({"txt": ["a"] * 300}, row_group_size=200))
    assert [(x.reason, x.records) for x in got.losses] == [("bad_schema", 200), ("bad_schema", 100)]
    texts = [f"{n:04}" * 500 for n in range(300)]
    got = make.read(table({"text": texts}), max_record_bytes=1000)
    assert [(x.reason, x.records) for x in got.losses] == [("too_large", 300)]


NOON = 1_704_164_645_123_456_789  # 2024-01-02T03:04:05, ns
ODD = {
    "timestamp": (pa.array([NOON], pa.timestamp("ns")), "2024-01-02T03:04:05.123456789"),
    "zoned": (
        pa.array([NOON], pa.timestamp("ns", "Europe/Berlin")),
        "2024-01-02T03:04:05.123456789+00:00",
    ),
    "unknown zone": (
        pa.array([NOON // 1000], pa.timestamp("us", "No/Zone")),
        "2024-01-02T03:04:05.123456+00:00",
    ),
    "time": (pa.array([3_723_000_000_001], pa.time64("ns")), "01:02:03.000000001"),
    "duration": (pa.array([1001], pa.duration("ns")), "1001 duration[ns]"),
    "far": (pa.array([10**17], pa.timestamp("ms")), f"{10**17} timestamp[ms]"),
    "date": (pa.array([10**8], pa.int32()).cast(pa.date32()), f"{10**8} date32[day]"),
    "long": (pa.array([2**62], pa.duration("s")), f"{2**62} duration[s]"),
    "nested": (pa.array([[NOON]], pa.list_(pa.timestamp("ns"))), None),
}


@pytest.mark.parametrize("name", ODD)
def test_parquet_value_of_another_column_costs_no_document(make, table, name):
    column, wanted = ODD[name]
    columns = {"text": ["a text"], "odd": column, "none": pa.array([None], column.type)}
    got = make.read(table(columns))
    assert [r.fields for r in got.records] == [{"odd": wanted, "none": None}]
    assert got.records[0].repairs == {"value": 1}
    (draft,) = PlainText()(iter(got.records))
    assert draft.repairs == {"value": 1}
    again = reread(got.root, got.records[0].locator)
    assert again == got.records[0]


def test_parquet_whole_microseconds_in_nanoseconds_are_as_they_are(make, table):
    """What pandas writes."""
    when = pa.array([NOON // 1000 * 1000], pa.timestamp("ns", "UTC"))
    (record,) = make.read(table({"text": ["a"], "when": when})).records
    assert record.fields == {"when": "2024-01-02T03:04:05.123456+00:00"}
    assert record.repairs == {}


def test_parquet_wrong_byte_in_a_url_costs_no_document(make, table):
    raw = pa.array([b"http://h/\xff", b"http://h/2"], pa.binary())
    url = pa.StringArray.from_buffers(2, raw.buffers()[1], raw.buffers()[2])
    got = make.read(table({"text": ["a", "b"], "url": url}))
    assert [r.url for r in got.records] == ["http://h/\ufffd", "http://h/2"]
    assert [r.repairs for r in got.records] == [{"value": 1}, {}]


def _nested(depth: int, kind: str) -> pa.Array:
    column = pa.array([1], pa.int64())
    for _ in range(depth):
        if kind == "struct":
            column = pa.StructArray.from_arrays([column], ["a"])
        else:
            column = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), column)
    return column


@pytest.mark.parametrize(("kind", "depth"), [("struct", 99), ("list", 50), ("list", 600)])
def test_parquet_nested_too_deeply_is_a_row(make, table, kind, depth):
    """Arrow's own limit, which is below that of JSON lines: were it raised, this says so."""
    got = make.read(table({"text": ["a"], "deep": _nested(depth, kind)}))
    assert (got.records, len(got.losses)) == ([], 1)
    assert (got.losses[0].kind, got.losses[0].reason) == ("fault", "corrupt_member")
    assert "too deeply nested" in got.losses[0].detail


@pytest.mark.parametrize(("kind", "depth"), [("struct", 98), ("list", 49)])
def test_parquet_deepest_row_that_opens_becomes_a_document(make, table, kind, depth):
    got = make.read(table({"text": ["a"], "deep": _nested(depth, kind)}))
    (draft,) = PlainText()(iter(got.records))
    assert canonical(draft.metadata).count(b"{" if kind == "struct" else b"[") >= depth
