"""Components over partitions: the same as union-find over all edges at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from gristmill.dedup.components import Components, Label
from gristmill.dedup.rank import Nodes, document_keys, nodes

EDGES = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 30)).filter(lambda e: e[0] < e[1]), max_size=40
)


def documents(which):
    ids = np.array(which, np.uint64)
    zero = np.zeros(len(ids), np.uint32)
    return Nodes(
        ids % np.uint64(3), ids, ids * ids, ids.astype(np.uint32), zero.astype(np.uint16),
        zero.astype(np.int32), zero,
    )  # fmt: skip


def table(edges):
    a, b = documents([e[0] for e in edges]), documents([e[1] for e in edges])
    columns = {"partition": pa.array(document_keys(a))} | a.columns("a_") | b.columns("b_")
    return pa.table(columns)


@given(EDGES, st.integers(1, 4))
def test_components_over_partitions_equal_all_at_once(naive, edges, parts):
    everything = table(edges)
    keys = everything["partition"].to_numpy()
    pieces = [everything.filter(pa.array(keys % np.uint64(parts) == p)) for p in range(parts)]
    found = Components().whole(pieces)
    labelled = [
        Label().join(
            found.filter(pa.array(found["partition"].to_numpy() % np.uint64(parts) == p)), piece
        )
        for p, piece in enumerate(pieces)
    ]
    rows = pa.concat_tables(labelled)
    assert rows.drop_columns(["partition"]).equals(
        pa.concat_tables(pieces).drop_columns(["partition"])
    )
    root = naive.components(31, edges)
    by_root: dict[int, set[int]] = {}
    for where, node in zip(
        rows["partition"].to_pylist(), nodes(rows, "a_").high.tolist(), strict=True
    ):
        by_root.setdefault(root[node], set()).add(where)
    assert all(len(found) == 1 for found in by_root.values())
    assert len(set().union(*by_root.values())) == len(by_root)  # and no two components meet
    assert found.num_rows == len({n for e in edges for n in e})
