"""An amended plan: earlier positions byte for byte, later ones without what was to go."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gristmill.documents.errors import UsageError
from gristmill.mixing import (
    FeedLoader,
    Plan,
    TokenFeed,
    carry_state,
    steps_of_document,
    trace,
)
from gristmill.mixing.account import account
from gristmill.mixing.amend import amend
from gristmill.mixing.budget import attention_pairs

FROM = 60


@pytest.fixture(scope="module", name="world")
def world_fixture(naive, tmp_path_factory):
    """(folder, plan): three stages; the last without document masks."""
    tools, folder = naive("naive_mixing"), tmp_path_factory.mktemp("amend")
    mapping = json.loads(json.dumps(tools.THREE_STAGES))
    mapping["stages"][-1]["mask"] = "none"
    return folder, Plan.open(tools.make_plan(folder, mapping))


def amended(world, plan=None, **asked):
    folder, first = world
    made = amend(plan or first, position=FROM, out=folder / "plans", **asked)
    return made, TokenFeed(folder / "plans" / made.plan, folder / "tokens")


def some_ids(plan, count=6):
    """Ids of documents that are read at positions before and after FROM."""
    picked = {}
    for position in range(len(range(plan.positions))):
        (slot,) = plan.locate(position)
        for row in plan.window_pieces(slot.lane, slot.window)[:, 0].tolist():
            picked.setdefault(row, [False, False])[position >= FROM] = True
    both = [row for row, seen in sorted(picked.items()) if all(seen)]
    return [plan.ids[row].tobytes().hex() for row in both[:count]], both[:count]


def edge(plan, stage, steps):
    return plan.stages[stage].first + steps * plan.stages[stage].global_batch


def test_removed_documents_are_padding_from_the_position_on(world):
    folder, plan = world
    ids, rows = some_ids(plan)
    made, feed = amended(world, remove=ids)
    assert made.masked == len(rows)
    assert made.absent == []
    old = TokenFeed(plan.folder, folder / "tokens")
    for position in range(plan.positions):
        before, after = old[position], feed[position]
        if position < FROM:
            for key in before:
                assert before[key].tobytes() == after[key].tobytes()
            continue
        (slot,) = plan.locate(position)
        at = real = 0
        gone = np.zeros(len(before["input_ids"]), dtype=bool)
        for row, _, length in plan.window_pieces(slot.lane, slot.window).tolist():
            gone[at : at + length] = row in rows
            real += 0 if row in rows else length
            at += length
        assert (after["input_ids"][gone] == feed.pad_id).all()
        assert (after["labels"][gone] == -100).all()
        assert (after["input_ids"][~gone] == before["input_ids"][~gone]).all()
        into_gone = np.append(gone[1:], False)
        kept = ~gone & ~into_gone
        assert (after["labels"][kept] == before["labels"][kept]).all()
        if plan.stages[slot.stage].mask == "none":  # no target leads into what is gone
            assert (after["labels"][~gone & into_gone] == -100).all()
        assert after["provenance"][7] == real
        assert (after["position_ids"] == before["position_ids"]).all()


def test_served_names_the_reads_that_nothing_undoes(world):
    _, plan = world
    ids, rows = some_ids(plan)
    made, feed = amended(world, remove=ids)
    for name, row in zip(ids, rows, strict=True):
        shard, document, _ = plan.documents[row].tolist()
        reads = steps_of_document(plan, plan.shards[shard], document)
        assert made.served[name] == [r for r in reads if r.position < FROM]
        left = steps_of_document(feed.plan, plan.shards[shard], document)
        assert left == made.served[name]
    steps = {r.step for reads in made.served.values() for r in reads}
    for step in range(feed.plan.steps()):
        met = {t.id for t in trace(feed.plan, step)} & set(ids)
        assert bool(met) == (step in steps)


@pytest.mark.parametrize("batch", [None, 1, 3])
def test_skipped_positions_are_passed_over_in_any_world(world, batch):
    _, plan = world
    skips = [(edge(plan, 0, 16), edge(plan, 0, 18)), (edge(plan, 1, 1), plan.stages[2].first)]
    _, feed = amended(world, skips=skips)
    expected = [p for p in range(plan.positions) if not any(a <= p < b for a, b in skips)]
    for world_size in (1, 3):
        got = []
        for rank in range(world_size):
            loader = FeedLoader(feed, global_batch=batch, rank=rank, world=world_size)
            got += [int(w[0]) for b in loader for w in b["provenance"] if w[0] >= 0]
        assert sorted(got) == expected
    for low, _ in skips:
        assert trace(feed.plan, feed.plan.step_of(low)) == []


def test_state_of_the_old_plan_goes_on_in_the_amended_one(world):
    folder, plan = world
    loader = FeedLoader(TokenFeed(plan.folder, folder / "tokens"))
    for batch in loader:
        if batch["last"] and batch["positions"][1] >= FROM:
            break
    state = loader.state_dict()
    low = edge(plan, 0, -(-FROM // plan.stages[0].global_batch))
    assert state["position"] == low
    made = amend(plan, position=low, skips=[(low, edge(plan, 0, 20))], out=folder / "plans")
    new = TokenFeed(folder / "plans" / made.plan, folder / "tokens")
    going = FeedLoader(new)
    going.load_state_dict(carry_state(state, plan, new.plan))
    assert next(iter(going))["positions"][0] == edge(plan, 0, 20)


def test_account_counts_what_the_feed_gives(world):
    _, plan = world
    ids, _ = some_ids(plan)
    skips = [(edge(plan, 0, 17), edge(plan, 0, 20))]
    _, feed = amended(world, remove=ids, skips=skips)
    rows = account(feed.plan).to_pylist()
    for k, stage in enumerate(plan.stages):
        mine = [r for r in rows if r["stage"] == stage.name]
        places = [
            p for p in range(stage.first, stage.first + stage.windows) if not feed.plan.skipped(p)
        ]
        real = sum(int(feed[p]["provenance"][7]) for p in places)
        assert sum(r["real_tokens"] for r in mine) == real
        assert sum(r["windows"] for r in mine) == len(places) == feed.plan.served(k)
        slots = sum(r["real_tokens"] + r["padding_tokens"] + r["masked_tokens"] for r in mine)
        assert slots == len(places) * stage.sequence_length
    assert sum(r["masked_tokens"] for r in rows) > 0
    assert sum(attention_pairs(feed.plan)) < sum(attention_pairs(plan))


def test_amended_again_keeps_both(world):
    _, plan = world
    ids, rows = some_ids(plan)
    first, feed = amended(world, remove=ids[:2], skips=[(edge(plan, 0, 17), edge(plan, 0, 18))])
    second, again = amended(
        world, feed.plan, remove=ids[1:4], skips=[(edge(plan, 0, 18), edge(plan, 0, 19))]
    )
    assert second.masked == 2
    assert again.plan.masks[:, 0].tolist() == sorted(rows[:4])
    assert again.plan.skips == [(edge(plan, 0, 17), edge(plan, 0, 19))]
    assert again.plan.content["amends"] == first.plan
    assert (
        amended(world, remove=ids[:2], skips=[(edge(plan, 0, 17), edge(plan, 0, 18))])[0] == first
    )


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({}, "nothing to amend"),
        ({"skips": [(0, 5)]}, "what has been trained on"),
        ({"skips": [(FROM, FROM)]}, "expected a range"),
        ({"skips": [(FROM, 10**9)]}, "expected a range"),
        ({"remove": ["xyz"]}, "32 hex digits"),
        ({"remove": ["00"]}, "32 hex digits"),
    ],
)
def test_amend_wrong_use_is_named(world, asked, message):
    with pytest.raises(UsageError, match=message):
        amended(world, **asked)


def test_skip_within_a_step_names_the_nearest_edges(world):
    _, plan = world
    stage = next(s for s in plan.stages if s.global_batch > 1)
    low = stage.first + stage.global_batch * (1 + max(0, FROM - stage.first) // stage.global_batch)
    with pytest.raises(UsageError, match=f"nearest edges of steps are {low} and"):
        amended(world, skips=[(low + 1, low + 1 + stage.global_batch)])
