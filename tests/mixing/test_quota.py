from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gristmill.documents.errors import UsageError
from gristmill.mixing.quota import UNIT, integer_shares, ledger

weight = st.one_of(
    st.integers(1, 10**6), st.floats(1e-9, 1e3, allow_nan=False), st.sampled_from([2.9e-5, 0.5, 1])
)


def flat(weights, windows, at_least=None):
    """Shares of weights that stay as they are all through a stage."""
    ramps = {name: (Fraction(str(w)),) * 2 for name, w in weights.items()}
    shares = integer_shares(ramps, at_least or {}, windows, "stage")
    assert all(first == last for first, last in shares.values())
    return shares


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
            flat(named, windows)
        return
    check_ledger(list(flat(named, windows).values()), windows, block)


def check_ledger(shares, windows, block):
    """Whole blocks, nothing taken back, within one window of the target at every edge."""
    assert [sum(share[end] for share in shares) for end in (0, 1)] == [UNIT, UNIT]
    table = ledger(shares, windows, block)
    edges = [min(b * block, windows) for b in range(len(table))]
    assert table.sum(axis=1).tolist() == edges  # whole blocks, exactly
    assert (np.diff(table, axis=0) >= 0).all()  # nothing is taken back
    for edge, row in zip(edges, table.tolist(), strict=True):
        for (first, last), given_ in zip(shares, row, strict=True):
            target = Fraction(first * edge) + Fraction((last - first) * edge**2, 2 * windows)
            assert abs(target / UNIT - given_) < 1
    assert table[-1].min() >= 1  # no source rounded to nothing


@settings(max_examples=200)
@given(
    ramps=st.lists(st.tuples(st.integers(0, 999), st.integers(0, 999)), min_size=1, max_size=20),
    minimum=st.lists(st.integers(0, 40), max_size=20),
    windows=st.integers(20, 3000),
    block=st.integers(1, 400),
)
@example(ramps=[(0, 1), (1, 0)], minimum=[], windows=20, block=3)
@example(ramps=[*[(0, 1)] * 19, (1, 0)], minimum=[1], windows=20, block=1)
@example(ramps=[*[(0, 1)] * 19, (1, 0)], minimum=[40] * 20, windows=21, block=1)
@example(ramps=[(0, 1), (0, 1), (999, 1)], minimum=[40, 40], windows=2000, block=64)
def test_ledger_random_ramps_and_minimum_shares_within_one_window(ramps, minimum, windows, block):
    named = {f"s{i:02d}": (Fraction(a), Fraction(b)) for i, (a, b) in enumerate(ramps) if a + b}
    if not all(any(w[end] for w in named.values()) for end in (0, 1)):
        return
    low = {n: Fraction(m, 1000) for n, m in zip(named, minimum, strict=False) if m}
    shares = integer_shares(named, low, windows, "stage")
    check_ledger(list(shares.values()), windows, block)
    for name, least in low.items():
        assert min(shares[name]) >= least * UNIT


def test_ledger_ramp_rises_block_by_block_as_its_line():
    shares = integer_shares({"a": (Fraction(1), Fraction(1)), "b": (Fraction(0), Fraction(1))},
                            {}, 10_000, "stage")  # fmt: skip
    assert shares == {"a": (UNIT, UNIT // 2), "b": (0, UNIT // 2)}
    table = ledger(list(shares.values()), 10_000, 1000)
    # from 0 to 1/2 over ten blocks of 1,000: 25, 75, ... 475 of each
    assert np.diff(table[:, 1]).tolist() == [25 + 50 * i for i in range(10)]


def test_integer_shares_minimum_is_met_and_the_others_give_in_proportion():
    weights = {"a": 6, "b": 3, "c": 1}
    shares = flat(weights, 1000, {"c": Fraction(1, 4)})
    assert shares["c"][0] == UNIT // 4
    assert abs(shares["a"][0] - 2 * shares["b"][0]) <= 2
    assert flat(weights, 1000, {"c": Fraction(1, 20)}) == flat(weights, 1000)


def test_integer_shares_minimum_that_leaves_no_window_to_another_is_refused():
    with pytest.raises(UsageError, match=r"at_least gives 1 of the stage to 1 of its 2 slices"):
        flat({"a": 1, "b": 1}, 100, {"a": Fraction(1)})


@pytest.mark.parametrize("minimum", [{}, {"c": Fraction(1, 3)}])
def test_ledger_of_many_windows_is_that_of_exact_fractions(minimum):
    # above 2**30 windows 64 bits would overflow: the same counts as of the small stage, times 2**12
    ramps = {n: (Fraction(w), Fraction(w)) for n, w in {"a": 5, "b": 2, "c": 1}.items()}
    small, large = 1 << 22, 1 << 34
    shares = list(integer_shares(ramps, minimum, large, "s").values())
    tables = [ledger(shares, windows, windows // 8) for windows in (small, large)]
    assert (abs(tables[1] // (large // small) - tables[0]) <= 1).all()
    check_ledger(shares, large, large // 8)


@given(weights=st.lists(st.integers(1, 1000), min_size=1, max_size=12))
def test_integer_shares_enough_windows_keep_asked_shares(weights):
    named = {str(i): w for i, w in enumerate(weights)}
    shares = flat(named, 1 << 22)
    for name, w in named.items():
        assert abs(shares[name][0] - Fraction(w * UNIT, sum(weights))) < 1


def test_integer_shares_order_of_keys_does_not_matter():
    a = flat({"x": 0.1, "y": 0.2, "z": 0.3}, 1000)
    b = flat({"z": 0.3, "x": 0.1, "y": 0.2}, 1000)
    assert {k: a[k] for k in "xyz"} == {k: b[k] for k in "xyz"}


def test_ledger_61_sources_of_a_published_recipe_all_served():
    # 61 sources, 12 below 1/2048, least 2.9e-5: flooring per block of 2,048 starves twelve
    weights = [2.9e-5 * (1 + i) for i in range(12)] + [0.02 + i / 3000 for i in range(49)]
    named = {f"s{i:02d}": w for i, w in enumerate(weights)}
    table = ledger(list(flat(named, 200_000).values()), 200_000, 2048)
    assert table[-1].min() == int(200_000 * 2.9e-5 / sum(weights))  # 4 windows


def test_ledger_longer_stage_keeps_whole_blocks():
    shares = list(flat({"a": 0.7, "b": 0.2, "c": 0.1}, 10_000).values())
    short, long = ledger(shares, 1000, 64), ledger(shares, 5000, 64)
    assert (short[:15] == long[:15]).all()
