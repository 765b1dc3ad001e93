from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.documents.errors import StopError
from gristmill.mixing.order import (
    Permutation,
    check_vectors,
    forward_each,
    keys_of,
    mix64,
    test_vectors,
)

VECTORS_100_AND_2 = [[2, 1, 0], [100, 0, 45], [100, 33, 25]]
VECTORS_LARGE = [
    [4294967311, 0, 1807937410],
    [4294967311, 1431655770, 533520384],
    [4294967311, 4294967310, 262634704],
]
POWERS = [2**k + d for k in range(8, 15) for d in (-1, 0, 1)]


@pytest.mark.parametrize("n", [*range(1, 301), *POWERS])
def test_permutation_exhaustive_is_bijection_with_inverse(n):
    order = Permutation(n, "test", n)
    index = np.arange(n)
    image = order.forward(index)
    assert sorted(image.tolist()) == index.tolist()
    assert (order.inverse(image) == index).all()


@given(n=st.integers(1, 2**40), seed=st.integers(0, 2**63), data=st.data())
def test_permutation_one_index_equals_array_and_inverts(n, seed, data):
    order = Permutation(n, seed)
    index = data.draw(st.integers(0, n - 1))
    image = order.forward(index)
    assert type(image) is int
    assert 0 <= image < n
    assert order.inverse(image) == index
    assert order.forward(np.array([index])).tolist() == [image]
    assert order.inverse(np.array([image])).tolist() == [index]


@pytest.mark.parametrize("index", [-1, 10, 1000])
def test_permutation_index_outside_raises(index):
    with pytest.raises(IndexError, match="of 10"):
        Permutation(10, "x").forward(index)


def test_mix64_reference_values():
    # splitmix64 seeded with 0: its first outputs, as published with the Java and C references
    golden = 0x9E3779B97F4A7C15
    assert mix64(golden) == 0xE220A8397B1DCDAF
    assert mix64(2 * golden % 2**64) == 0x6E789E6AA1B965F4
    assert mix64(np.array([golden], dtype=np.uint64)).tolist() == [0xE220A8397B1DCDAF]


def test_keys_additive_seeds_do_not_collide():
    # in a loader that adds them, (seed 7, epoch 1) and (seed 8, epoch 0) are one order
    seen = {keys_of(seed, "epoch", epoch) for seed in range(20) for epoch in range(20)}
    assert len(seen) == 400
    assert keys_of("a", 12) != keys_of("a1", 2)


def test_vectors_are_what_they_were_when_published():
    # these must never change under the name in `order.NAME`
    assert test_vectors()[2:5] == VECTORS_100_AND_2
    assert test_vectors()[-3:] == VECTORS_LARGE


def test_check_vectors_other_order_stops():
    check_vectors(test_vectors(), "plan.json")
    changed = test_vectors()
    changed[4][2] += 1
    with pytest.raises(StopError, match=r"plan\.json: element .* is .* here"):
        check_vectors(changed, "plan.json")


@pytest.mark.parametrize("n", [2**20, 10**6 + 3, 10**7 + 19])
def test_permutation_neighbours_are_uncorrelated_and_parity_is_fair(n):
    # what 4 rounds (lag-1 correlation 0.48) and a linear round function (all odd or all even in
    # blocks of 1,024) fail; bounds are about 5 standard deviations of a true shuffle
    size = 1 << 17
    image = Permutation(n, "statistics").forward(np.arange(size)).astype(np.float64)
    lag = np.corrcoef(image[:-1], image[1:])[0, 1]
    assert abs(lag) < 5 / size**0.5
    odd = (image.astype(np.int64) & 1).reshape(-1, 1024).sum(axis=1)
    assert abs(odd - 512).max() < 6 * 16
    assert 0.5 < odd.var() / 256 < 1.6
    top = np.bincount((image * 64 / n).astype(int), minlength=64)  # chi-square, 63 degrees
    expected = size / 64
    assert ((top - expected) ** 2 / expected).sum() < 63 + 6 * (2 * 63) ** 0.5


def test_permutation_small_tables_are_fair():
    # all 6 orders of 3 elements, by 6,000 keys: chi-square with 5 degrees below 30 (p = 1e-5)
    counts = Counter(tuple(Permutation(3, k).forward(np.arange(3)).tolist()) for k in range(6000))
    assert len(counts) == 6
    assert sum((c - 1000) ** 2 / 1000 for c in counts.values()) < 30


@given(
    sizes=st.lists(st.integers(1, 2**34), min_size=1, max_size=6),
    seed=st.integers(0, 2**63),
    data=st.data(),
)
def test_forward_each_equals_each_order_by_itself(sizes, seed, data):
    orders = [Permutation(n, seed, k) for k, n in enumerate(sizes)]
    asked = data.draw(
        st.lists(
            st.integers(0, len(sizes) - 1).flatmap(
                lambda k: st.tuples(st.just(k), st.integers(0, sizes[k] - 1))
            ),
            max_size=30,
        )
    )
    which = np.array([k for k, _ in asked], dtype=np.int64)
    index = np.array([i for _, i in asked], dtype=np.int64)
    assert forward_each(orders, which, index).tolist() == [orders[k].forward(i) for k, i in asked]
