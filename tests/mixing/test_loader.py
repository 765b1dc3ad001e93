from __future__ import annotations

import json
import pickle
import threading
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.documents.errors import FormatError, StopError, UsageError
from gristmill.mixing import FeedLoader, TokenFeed, carry_state


def served(feed, *, batch, world, micro=1, state=None, stop=None):
    """[(position, input_ids), ...] per step over all ranks, and the state afterwards."""
    loaders = [
        FeedLoader(feed, global_batch=batch, rank=r, world=world, micro_batch=micro)
        for r in range(world)
    ]
    for loader in loaders:
        if state is not None:
            loader.load_state_dict(state)
    steps = []
    for parts in zip(*loaders, strict=True):
        spans = {part["positions"] for part in parts}
        assert len(spans) == 1  # ranks keep step
        assert len({part["last"] for part in parts}) == 1
        rows = [
            (int(where[0]), ids.tolist())
            for part in parts
            for where, ids in zip(part["provenance"], part["input_ids"], strict=True)
            if where[0] >= 0
        ]
        if not steps or steps[-1][0] != spans:
            steps.append((spans, []))
        steps[-1][1].extend(rows)
        if parts[0]["last"] and stop is not None and parts[0]["positions"][1] >= stop:
            break
    states = [loader.state_dict() for loader in loaders]
    assert all(s == states[0] for s in states)
    return [sorted(rows) for _, rows in steps], states[0]


@pytest.mark.parametrize("batch", [None, 2, 30])
def test_order_same_for_every_world_and_micro_batch(feed, batch):
    reference, _ = served(feed, batch=batch, world=1)
    flat = [row for step in reference for row in step]
    assert [p for p, _ in flat] == list(range(len(feed)))
    assert all(ids == feed[p]["input_ids"].tolist() for p, ids in flat)
    for world, micro in ((1, 3), (2, 1), (3, 2), (8, 1), (8, 5)):
        assert served(feed, batch=batch, world=world, micro=micro)[0] == reference


@settings(max_examples=25)
@given(data=st.data())
def test_order_same_after_resume_anywhere_in_another_world(feed, data):
    batch = data.draw(st.sampled_from([None, 2, 6, 30]))
    reference = [row for step in served(feed, batch=batch, world=1)[0] for row in step]
    got, state = [], None
    for stop in sorted(data.draw(st.lists(st.integers(1, len(feed)), max_size=3))):
        if state is not None and state["position"] >= len(feed):
            break
        world, micro = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 3))
        steps, state = served(feed, batch=batch, world=world, micro=micro, state=state, stop=stop)
        state = json.loads(json.dumps(state))  # what a checkpoint does to it
        got += [row for step in steps for row in step]
    if state is None or state["position"] < len(feed):
        got += [row for step in served(feed, batch=batch, world=2, state=state)[0] for row in step]
    assert got == reference


def test_state_is_small_plain_and_counts_whole_steps(feed):
    loader = FeedLoader(feed, global_batch=6, rank=1, world=2, micro_batch=1)
    assert loader.state_dict()["position"] == 0
    seen = []
    for batch in loader:
        seen.append((loader.state_dict()["position"], batch["last"]))
        if len(seen) == 7:
            break
    # three micro-batches per step and rank: only the third moves the state
    assert seen == [
        (0, False),
        (0, False),
        (6, True),
        (6, False),
        (6, False),
        (12, True),
        (12, False),
    ]
    state = loader.state_dict()
    assert set(state) == {"format", "plan", "position", "digest"}
    assert {type(v) for v in state.values()} == {int, str}
    assert len(json.dumps(state)) < 150
    again = FeedLoader(feed, global_batch=6, world=3)
    again.load_state_dict(pickle.loads(pickle.dumps(state)))
    assert next(iter(again))["positions"] == (12, 18)


@pytest.mark.parametrize("ahead", [1, 5, 1000])
def test_prefetch_changes_nothing(feed, ahead):
    plain, early = FeedLoader(feed, micro_batch=2), FeedLoader(feed, micro_batch=2, prefetch=ahead)
    for one, two in zip(plain, early, strict=True):
        assert plain.position == early.position  # what was handed out, not what was read
        assert {k: getattr(v, "tolist", lambda v=v: v)() for k, v in one.items()} == {
            k: getattr(v, "tolist", lambda v=v: v)() for k, v in two.items()
        }


def test_prefetch_error_comes_with_its_batch_and_the_thread_ends(feed, monkeypatch):
    expected = [b["positions"] for b in FeedLoader(feed) if b["positions"][0] < 4]
    loader = FeedLoader(feed, prefetch=3)
    batch_of = feed.batch

    def failing(positions, *more):
        if positions.start >= 4:
            raise StopError("planted")
        return batch_of(positions, *more)

    monkeypatch.setattr(feed, "batch", failing)
    got = []
    with pytest.raises(StopError, match="planted"):
        got.extend(batch["positions"] for batch in loader)
    assert got == expected
    assert not [t for t in threading.enumerate() if t.name.startswith("gristmill-feed")]


def test_dummies_fill_up_where_the_world_does_not_divide(feed):
    loaders = [FeedLoader(feed, global_batch=2, rank=r, world=3) for r in range(3)]
    parts = [next(iter(loader)) for loader in loaders]
    assert [p["provenance"][0, 0].item() for p in parts] == [0, 1, -1]
    dummy = parts[2]
    assert not dummy["loss_mask"].any()
    assert (dummy["labels"] == -100).all()
    assert dummy["input_ids"].shape == parts[0]["input_ids"].shape
    assert dummy["cu_seqlens"].tolist() == [0, 64]


def test_micro_batch_cu_seqlens_run_over_its_windows(feed):
    loader = FeedLoader(feed, global_batch=2, micro_batch=2)
    loader.load_state_dict(state_at(feed, 120))
    batch = next(iter(loader))
    edges = batch["cu_seqlens"].tolist()
    assert edges[0] == 0
    assert edges[-1] == 512
    assert 256 in edges
    assert all(a < b for a, b in pairwise(edges))
    flat = batch["position_ids"].reshape(-1)
    assert (flat[batch["cu_seqlens"][:-1]] == 0).all()


def state_at(feed, position):
    loader = FeedLoader(feed)
    loader._position = position
    return loader.state_dict()


def test_batch_that_would_mix_lengths_is_refused(feed):
    with pytest.raises(
        UsageError, match=r"64 and 256 tokens in one step at position 120.*divisor of 120"
    ):
        next(iter(FeedLoader(feed, global_batch=7)))
    past = FeedLoader(feed, global_batch=4)  # 30 windows of 256 are not whole steps of 4
    with pytest.raises(UsageError, match="position 150, where stage 'agentic' begins"):
        next(iter(past))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"rank": 2, "world": 2}, "rank: found 2; expected 0 to 1"),
        ({"rank": -1}, "rank: found -1"),
        ({"world": 0}, "world: found 0"),
        ({"micro_batch": 0}, "micro_batch: found 0"),
        ({"global_batch": 0}, "global_batch: found 0"),
    ],
)
def test_loader_wrong_arguments_are_named(feed, arguments, words):
    with pytest.raises(UsageError, match=words):
        FeedLoader(feed, **arguments)


def test_state_of_another_plan_or_format_or_order_is_refused(feed):
    loader = FeedLoader(feed)
    state = loader.state_dict()
    for change, error, words in (
        ({"plan": "0" * 16}, UsageError, "it is of plan '0000000000000000'"),
        ({"format": 2}, FormatError, "format 2; expected 1"),
        ({"position": 12}, StopError, "windows around position 12"),
        ({"position": 10**9}, UsageError, "expected 0 to 190"),
        ({"position": "3"}, UsageError, "whole number"),
        ({"digest": None}, UsageError, "feed state"),
    ):
        with pytest.raises(error, match=words):
            loader.load_state_dict({**state, **change})
    assert loader.position == 0


def test_carry_state_to_an_amended_plan(world, feed, tmp_path):
    tools, catalog, digests, folder = world
    mapping = json.loads(json.dumps(tools.THREE_STAGES))
    mapping["stages"][2]["weights"] = {"code": 1, "web": 9}
    new = TokenFeed(tools.compiled((tools, catalog, digests, tmp_path), mapping), folder / "tokens")
    state = state_at(feed, 148)
    moved = carry_state(state, feed.plan, new.plan)
    loader = FeedLoader(new)
    loader.load_state_dict(moved)
    assert next(iter(loader))["provenance"][0, 0] == 148
    with pytest.raises(StopError, match=r"differs from .* before position 160"):
        carry_state(state_at(feed, 160), feed.plan, new.plan)
