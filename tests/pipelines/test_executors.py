"""How keys are dealt to the ranks of one array."""

from __future__ import annotations

import pytest

from gristmill.pipelines.executors import ranks_for

MAX_ARRAY_SIZE = 1001  # Slurm's default: indices 0..1000


@pytest.mark.parametrize(
    ("keys", "ranks"),
    [(0, 0), (1, 1), (999, 999), (1000, 1000), (1001, 1001), (1002, 501), (2000, 1000)],
)
def test_ranks_around_the_array_limit_fit_one_array(keys, ranks):
    """datatrove#238: with two arrays a dependant waits for the wrong one. We never have two."""
    assert ranks_for(keys, MAX_ARRAY_SIZE) == ranks


@pytest.mark.parametrize("limit", [1, 2, 7, 1001])
def test_ranks_any_count_deals_every_key_once_and_evenly(limit):
    for count in [*range(1, 40), 999, 1000, 1001, 2000, 5005, 10_000]:
        keys = list(range(count))
        ranks = ranks_for(count, limit)
        shares = [keys[rank::ranks] for rank in range(ranks)]
        assert ranks <= limit
        assert sorted(key for share in shares for key in share) == keys
        assert max(map(len, shares)) == -(-count // limit)  # no more per rank than there must be
        assert min(map(len, shares)) >= 1
