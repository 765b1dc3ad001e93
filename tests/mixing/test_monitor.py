from __future__ import annotations

import json

import numpy as np
import pytest

from gristmill.mixing import FeedLoader, TokenFeed
from gristmill.mixing.monitor import Monitor, running_median

SHARDS = 12


@pytest.fixture(scope="module", name="feed")
def feed_fixture(naive, tmp_path_factory):
    tools, folder = naive("naive_mixing"), tmp_path_factory.mktemp("monitor")
    documents = [d | {"tokens": 20 + d["tokens"] % 60} for d in tools.mixed_documents(1200)]
    mix = {
        "slices": {"all": {}},
        "global_batch": 4,
        "stages": [
            {"name": "base", "tokens": 60_000, "sequence_length": 128, "weights": {"all": 1}}
        ],
    }
    plan = tools.make_plan(folder, mix, documents, shards=SHARDS)
    return TokenFeed(plan, folder / "tokens")


def shares(feed, position, shard):
    """Share of the tokens of a sample that are the shard's."""
    (slot,) = feed.plan.locate(position)
    pieces = feed.plan.window_pieces(slot.lane, slot.window).astype(np.int64)
    mine = feed.plan.documents[pieces[:, 0], 0] == shard
    return pieces[mine, 2].sum() / pieces[:, 2].sum()


def watched(feed, seed, bad=None, by=0.0, norms=False):
    """A monitor that saw a falling loss with noise, `by` higher where the shard `bad` stands."""
    rng, monitor = np.random.default_rng(seed), Monitor(feed.plan)
    for batch in FeedLoader(feed, micro_batch=4):
        places = batch["provenance"][:, 0]
        losses = 9 - 6 * places / len(feed) + rng.normal(0, 0.3, len(places))
        if bad is not None:
            losses += by * np.array([shares(feed, p, bad) for p in places.tolist()])
        monitor.add(batch, losses, losses**2 if norms else None)
    return monitor


@pytest.mark.parametrize("seed", range(5))
def test_suspects_all_well_names_none(feed, seed):
    assert watched(feed, seed).suspects() == []


@pytest.mark.parametrize("bad", [0, 7])
def test_suspects_bad_shard_is_named_with_documents(feed, bad):
    first, *others = watched(feed, bad, bad=bad, by=2.0, norms=True).suspects()
    assert first.shard == feed.plan.shards[bad]
    assert first.score > 5
    assert {o.shard for o in others} <= {first.shard}  # its gradient norms
    for name, position, _ in first.documents:
        (slot,) = feed.plan.locate(position)
        pieces = feed.plan.window_pieces(slot.lane, slot.window)
        rows = [r for r in pieces[:, 0].tolist() if feed.plan.ids[r].tobytes().hex() == name]
        assert {int(feed.plan.documents[r, 0]) for r in rows} == {bad}


def test_suspects_too_low_has_a_negative_score(feed):
    (first, *_) = watched(feed, 1, bad=3, by=-2.0).suspects()
    assert first.shard == feed.plan.shards[3]
    assert first.score < -5


def test_suspects_one_spike_is_not_a_shard(feed):
    monitor = watched(feed, 2)
    monitor._losses[5][0] = 1e9
    monitor._losses[6][0] = np.nan
    assert monitor.suspects() == []


def test_suspects_order_of_batches_does_not_matter(feed):
    one, two = (watched(feed, 3, bad=4, by=2.0) for _ in range(2))
    for name in ("_positions", "_losses", "_norms"):
        getattr(two, name).reverse()
    assert one.suspects() == two.suspects()


def test_state_goes_on_in_another_monitor(feed):
    one = watched(feed, 3, bad=4, by=2.0, norms=True)
    two = Monitor(feed.plan)
    two.load_state_dict(json.loads(json.dumps(one.state_dict())))
    assert one.suspects() == two.suspects() != []
    two.load_state_dict(Monitor(feed.plan).state_dict())
    assert two.suspects() == []


def test_suspects_nothing_seen():
    assert Monitor(None).suspects() == []


def test_padding_samples_are_passed_over(feed):
    monitor = Monitor(feed.plan)
    for batch in FeedLoader(feed, world=3, rank=2, micro_batch=2):
        monitor.add(batch, np.where(batch["provenance"][:, 0] < 0, np.nan, 1.0))
    assert np.isfinite(np.concatenate(monitor._losses)).all()


def test_running_median_by_hand():
    values = np.array([5.0, 1, 9, 2, 8, 3])
    assert running_median(values, 3).tolist() == [5, 5, 2, 8, 3, 3]
    assert running_median(values[:2], 3).tolist() == [3, 3]
    assert running_median(values[:0], 3).tolist() == []
