from __future__ import annotations

import numpy as np
import pytest

from gristmill.documents.errors import UsageError
from gristmill.mixing import FeedLoader, TokenFeed
from gristmill.mixing.context import CUT, context_slice


@pytest.fixture(scope="module", name="feed")
def feed_fixture(naive, tmp_path_factory):
    folder = tmp_path_factory.mktemp("context")
    return TokenFeed(naive("naive_mixing").make_plan(folder), folder / "tokens")


@pytest.mark.parametrize("world", [1, 2, 4])
def test_slices_of_all_ranks_are_the_batch(feed, world):
    for batch in FeedLoader(feed, micro_batch=2):
        parts = [context_slice(batch, rank, world) for rank in range(world)]
        places = np.concatenate([part["places"] for part in parts])
        assert sorted(places.tolist()) == list(range(batch["input_ids"].shape[1]))
        for name in CUT:
            whole = np.concatenate([part[name] for part in parts], axis=1)
            assert np.array_equal(whole, batch[name][:, places])
        for part in parts:
            assert part["cu_seqlens"] is batch["cu_seqlens"]
            assert part["provenance"] is batch["provenance"]


def test_every_rank_meets_as_many_earlier_tokens(feed):
    batch = next(iter(FeedLoader(feed)))
    sums = {int(context_slice(batch, rank, 4)["places"].sum()) for rank in range(4)}
    assert len(sums) == 1


@pytest.mark.parametrize(
    ("rank", "world", "words"), [(2, 2, "0 to 1"), (0, 3, "6 chunks do not divide 64 tokens")]
)
def test_wrong_groups_are_named(feed, rank, world, words):
    with pytest.raises(UsageError, match=words):
        context_slice(next(iter(FeedLoader(feed))), rank, world)
