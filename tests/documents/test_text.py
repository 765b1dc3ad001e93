"""The Arrow-to-Numba seam: whatever the column, the view gives the same strings."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.documents.text import from_buffers, text_view

KINDS = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]


def strings_of(view):
    data = view.data.tobytes()
    return [data[a:b] for a, b in zip(view.offsets[:-1], view.offsets[1:], strict=True)]


@given(
    st.lists(st.one_of(st.none(), st.text())),
    st.sampled_from(KINDS),
    st.integers(0, 5),
    st.integers(0, 5),
)
def test_text_view_any_slice_gives_the_bytes_of_each_row(texts, kind, skip, take):
    raw = [None if t is None else t.encode("utf-8", "replace") for t in texts]
    column = pa.array(raw, pa.large_binary()).cast(kind, safe=False)
    view = text_view(column.slice(skip, take))
    assert strings_of(view) == [r or b"" for r in raw[skip : skip + take]]
    assert not view.data.flags.writeable
    assert not view.offsets.flags.writeable


def test_text_view_null_row_over_bytes_is_empty():
    offsets = pa.py_buffer(np.array([0, 2, 4, 6], np.int32))
    column = pa.Array.from_buffers(
        pa.string(), 3, [pa.py_buffer(bytes([0b101])), offsets, pa.py_buffer(b"aabbcc")]
    )
    assert strings_of(text_view(column)) == [b"aa", b"", b"cc"]


def test_text_view_ipc_and_parquet_buffers_have_one_kind():
    column = pa.array(["ab", "c"])
    batch = pa.record_batch({"t": column})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    read = pa.ipc.open_stream(sink.getvalue()).read_next_batch().column(0)
    for view in (text_view(column), text_view(read)):
        assert not view.data.flags.writeable


def test_text_view_numbers_are_refused():
    with pytest.raises(TypeError, match="strings or binary"):
        text_view(pa.array([1]))


def test_from_buffers_round_trip():
    view = text_view(pa.array(["x", "", "äö"]))
    assert from_buffers(view.data, view.offsets).to_pylist() == ["x", "", "äö"]
