from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gristmill.documents.errors import UsageError
from gristmill.mixing.quota import UNIT, integer_weights, ledger

weight = st.one_of(
    st.integers(1, 10**6), st.floats(1e-9, 1e3, allow_nan=False), st.sampled_from([2.9e-5, 0.5, 1])
)


@settings(max_examples=200)
@given(
    weights=st.lists(weight, min_size=1, max_size=30),
    windows=st.integers(1, 3000),
    block=st.integers(1, 400),
)
@example(weights=[1, 1, 1], windows=3, block=1)
@example(weights=[1e-9] * 29 + [1e3], windows=30, block=7)
@example(weights=[0.971, 0.0227, 2.9e-5], windows=40_000, block=4096)
def test_ledger_random_weights_within_one_window_at_every_edge(weights, windows, block):
    named = {f"s{i:02d}": w for i, w in enumerate(weights)}
    if len(weights) > windows:
        with pytest.raises(UsageError, match="slices share"):
            integer_weights(named, windows, "stage")
        return
    shares = list(integer_weights(named, windows, "stage").values())
    assert sum(shares) == UNIT
    table = ledger(shares, windows, block)
    edges = [min(b * block, windows) for b in range(len(table))]
    assert table.sum(axis=1).tolist() == edges  # whole blocks, exactly
    assert (np.diff(table, axis=0) >= 0).all()  # nothing is taken back
    for edge, row in zip(edges, table.tolist(), strict=True):
        for share, given_ in zip(shares, row, strict=True):
            assert abs(Fraction(share * edge, UNIT) - given_) < 1
    assert table[-1].min() >= 1  # no source rounded to nothing


@given(weights=st.lists(st.integers(1, 1000), min_size=1, max_size=12))
def test_integer_weights_enough_windows_keep_asked_shares(weights):
    named = {str(i): w for i, w in enumerate(weights)}
    shares = integer_weights(named, 1 << 22, "stage")
    for name, w in named.items():
        assert abs(shares[name] - Fraction(w * UNIT, sum(weights))) < 1


def test_integer_weights_order_of_keys_does_not_matter():
    a = integer_weights({"x": 0.1, "y": 0.2, "z": 0.3}, 1000, "s")
    b = integer_weights({"z": 0.3, "x": 0.1, "y": 0.2}, 1000, "s")
    assert {k: a[k] for k in "xyz"} == {k: b[k] for k in "xyz"}


def test_ledger_61_sources_of_a_published_recipe_all_served():
    # 61 sources, 12 below 1/2048, least 2.9e-5: flooring per block of 2,048 starves twelve
    weights = [2.9e-5 * (1 + i) for i in range(12)] + [0.02 + i / 3000 for i in range(49)]
    named = {f"s{i:02d}": w for i, w in enumerate(weights)}
    table = ledger(list(integer_weights(named, 200_000, "s").values()), 200_000, 2048)
    assert table[-1].min() == int(200_000 * 2.9e-5 / sum(weights))  # 4 windows


def test_ledger_longer_stage_keeps_whole_blocks():
    shares = list(integer_weights({"a": 0.7, "b": 0.2, "c": 0.1}, 10_000, "s").values())
    short, long = ledger(shares, 1000, 64), ledger(shares, 5000, 64)
    assert (short[:15] == long[:15]).all()
