"""Runs of the exchange, and texts fetched by shard."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.documents.exchange import with_counts
from gristmill.pipelines.exchange import (
    NONE,
    batches_of,
    digest_of,
    digests_by_partition,
    hash_of,
    part_of,
    power_of_two,
    write_run,
)


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
    assert write_run(tmp_path / "run", stretches, 5)["rows"] == 57
    found = [pa.Table.from_batches(list(batches_of(tmp_path / "run", p, 5))) for p in range(5)]
    for p, table in enumerate(found):
        assert set(part_of(table["partition"].to_numpy(), 5).tolist()) <= {p}
    rows = pa.concat_tables(found).sort_by("partition")
    assert rows.equals(pa.concat_tables(stretches).sort_by("partition"))


def rows_of(parts, count, values):
    """A row for each partition named."""
    where = hash_of(np.array(parts, np.uint32), count)
    return pa.table({"partition": pa.array(where), "n": pa.array(values, pa.int64())})


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 3)), max_size=12), st.integers(0, 7))
def test_piece_has_a_digest_of_its_own_rows_alone(tmp_path_factory, rows, more):
    path = tmp_path_factory.mktemp("pieces") / "run"
    parts, values = [p for p, _ in rows], [n for _, n in rows]

    def pieces(*stretches):
        found = write_run(path, stretches, 8)["pieces"]
        return [found[i : i + len(NONE)] for i in range(0, len(found), len(NONE))]

    before = pieces(rows_of(parts, 8, values))
    assert [d == NONE for d in before] == [p not in parts for p in range(8)]
    after = pieces(rows_of([*parts, more], 8, [*values, 9]))
    assert [p for p in range(8) if before[p] != after[p]] == [more]
    # a stretch without rows is no row
    assert pieces(rows_of(parts, 8, values), rows_of([], 8, [])) == before


def test_partition_does_not_know_of_files_without_rows_for_it(tmp_path):
    one = write_run(tmp_path / "one", [rows_of([0, 2], 4, [1, 2])], 4)["pieces"]
    other = write_run(tmp_path / "other", [rows_of([2], 4, [3])], 4)["pieces"]
    alone = digests_by_partition([("one", one)])
    both = digests_by_partition([("one", one), ("other", other)])
    assert [a == b for a, b in zip(alone, both, strict=True)] == [True, True, False, True]
    assert digests_by_partition([("other", other), ("one", one)])[2] != alone[2]
    assert digests_by_partition([]) == []


def test_run_does_not_hand_on_what_a_round_counted(tmp_path):
    rows = rows_of([0, 1], 4, [1, 2])
    write_run(tmp_path / "plain", [rows], 4)
    write_run(tmp_path / "counted", [with_counts(rows, pairs=2)], 4)
    assert (tmp_path / "counted").read_bytes() == (tmp_path / "plain").read_bytes()


def test_digest_does_not_hang_on_chunks():
    rows = rows_of([0, 1, 2], 4, [1, 2, 3])
    again = pa.concat_tables([rows.slice(0, 1), rows.slice(1, 0), rows.slice(1)])
    assert digest_of(again) == digest_of(rows) == digest_of(pa.concat_tables([rows, rows])[3:])
    assert digest_of(rows[:2]) != digest_of(rows)


@pytest.mark.parametrize(
    ("number", "least", "found"), [(0, 1, 1), (1, 4, 4), (5, 4, 8), (64, 4, 64), (10**6, 4, 1024)]
)
def test_power_of_two_is_the_next_within_bounds(number, least, found):
    assert power_of_two(number, least) == found


def test_run_without_a_stretch_is_refused(tmp_path):
    with pytest.raises(ValueError, match="needs the columns"):
        write_run(tmp_path / "run", [], 4)
