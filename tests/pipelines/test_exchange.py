"""Runs of the exchange, and texts fetched by shard."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.pipelines.exchange import batches_of, hash_of, part_of, write_run


@given(st.integers(1, 1024))
def test_hash_of_leads_to_its_partition(count):
    parts = np.arange(count, dtype=np.uint32)
    assert part_of(hash_of(parts, count), count).tolist() == parts.tolist()


def test_run_of_several_stretches_gives_every_row_once(tmp_path):
    draw = np.random.default_rng(1)
    stretches = [
        pa.table(
            {
                "partition": pa.array(draw.integers(0, 2**64, n, np.uint64)),
                "n": pa.array(range(n), pa.int64()),
            }
        )
        for n in (50, 0, 7)
    ]
    assert write_run(tmp_path / "run", stretches, 5) == 57
    found = [pa.Table.from_batches(list(batches_of(tmp_path / "run", p, 5))) for p in range(5)]
    for p, table in enumerate(found):
        assert set(part_of(table["partition"].to_numpy(), 5).tolist()) <= {p}
    rows = pa.concat_tables(found).sort_by("partition")
    assert rows.equals(pa.concat_tables(stretches).sort_by("partition"))


def test_run_without_a_stretch_is_refused(tmp_path):
    with pytest.raises(ValueError, match="needs the columns"):
        write_run(tmp_path / "run", [], 4)
