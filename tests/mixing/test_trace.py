from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from gristmill.documents.errors import UsageError
from gristmill.mixing import MixSpec, Plan, TokenFeed, compile_plan, steps_of_document, trace


@pytest.fixture(scope="module", name="world")
def world_fixture(naive, tmp_path_factory):
    """(tools, plan, tokens folder, catalogue rows)."""
    tools = naive("naive_mixing")
    folder = tmp_path_factory.mktemp("trace")
    catalog, digests = tools.make_corpus(folder / "tokens", tools.mixed_documents())
    spec = MixSpec.parse(tools.THREE_STAGES)
    name = compile_plan(
        catalog, spec, tokens_digests=digests, tokenizer_digest=tools.TOKENIZER, out=folder
    )
    return tools, Plan.open(folder / name), folder / "tokens", catalog.to_pylist()


@pytest.mark.parametrize("batch", [None, 4, 7])
def test_trace_and_steps_of_document_are_inverse_on_every_position(world, batch):
    _, plan, _, rows = world
    forward = defaultdict(list)
    for step in range(plan.steps(batch)):
        for t in trace(plan, step, batch):
            assert t.step == step
            forward[t.shard, t.doc].append((t.step, t.position, t.window, t.start, t.length))
    met = 0
    for row in rows:
        key = row["shard"], row["doc"]
        back = steps_of_document(plan, *key, batch)
        assert [tuple(seen) for seen in back] == sorted(forward[key], key=lambda f: (f[1], f[3])), (
            key
        )
        assert back == plan.steps_of_document(*key, batch)
        met += bool(back)
    assert met == sum(map(bool, forward.values())) > 100
    assert sum(map(len, forward.values())) > plan.positions


def test_trace_names_the_tokens_that_the_feed_gives(world):
    # hop by hop against bytes: step -> document -> its tokens -> the sample
    tools, plan, tokens, rows = world
    feed = TokenFeed(plan.folder, tokens)
    by_id = {row["id"].hex(): number for number, row in enumerate(rows)}
    covered = defaultdict(int)
    for step in range(plan.steps()):
        for t in trace(plan, step):
            number = by_id[t.id]
            row = rows[number]
            assert (row["shard"], row["doc"]) == (t.shard, t.doc)
            expected = tools.document_tokens(number, row["tokens"])[t.start : t.start + t.length]
            ids = feed[t.position]["input_ids"]
            assert ids[t.offset : t.offset + t.length].tolist() == expected
            covered[t.position] += t.length
    for position in range(plan.positions):
        assert feed[position]["provenance"][7] == covered[position]


def test_trace_stage_slice_and_epoch_are_those_of_the_plan(world):
    _, plan, _, _ = world
    assert {t.stage for t in trace(plan, 0)} == {"base"}
    assert {t.stage for t in trace(plan, plan.steps() - 1)} == {"agentic"}
    for t in trace(plan, 31):
        (slot,) = plan.locate(t.position)
        assert (t.slice, t.epoch, t.window) == (plan.slices[slot.slice], slot.epoch, slot.window)


def test_steps_of_document_unused_is_empty_and_unknown_shard_is_named(world, tmp_path):
    tools, plan, _, _ = world
    with pytest.raises(UsageError, match="no token shard 'part-00'; did you mean 'part-00"):
        steps_of_document(plan, "part-00", 3)
    assert steps_of_document(plan, "part-000", 10_000) == []
    catalog, digests = tools.make_corpus(tmp_path, tools.mixed_documents(24))
    spec = MixSpec.parse(
        {
            "slices": {"code": {"source": "code"}},
            "stages": [{"name": "s", "tokens": 64, "sequence_length": 8, "weights": {"code": 1}}],
        }
    )
    name = compile_plan(
        catalog, spec, tokens_digests=digests, tokenizer_digest=tools.TOKENIZER, out=tmp_path
    )
    small = Plan.open(tmp_path / name)
    assert steps_of_document(small, "part-000", 0) == []  # of the web
    met = [d for d in range(12) if steps_of_document(small, "part-000", d)]
    assert met
    assert all(d % 4 == 2 for d in met)


def test_trace_step_outside_the_plan_is_named(world):
    plan = world[1]
    with pytest.raises(UsageError, match=f"step {plan.steps()} is outside plan {plan.id}"):
        trace(plan, plan.steps())
    with pytest.raises(UsageError, match="step -1"):
        trace(plan, -1, 8)


def test_document_of_many_windows_is_followed_through_all_of_them(world):
    _, plan, _, rows = world
    longest = max(rows, key=lambda row: row["tokens"])
    seen = steps_of_document(plan, longest["shard"], longest["doc"])
    lane = 3  # long at 256: parts of one document stand in several windows
    pieces = plan.pieces[lane]
    number = rows.index(longest)
    parts = pieces[pieces[:, 0] == number]
    assert len(parts) == 2
    assert np.sort(parts[:, 2])[::-1].tolist() == [256, longest["tokens"] - 256]
    assert {s.position for s in seen} == {
        p
        for p in range(plan.positions)
        for piece in plan.window_pieces(*plan.locate(p)[0][3::2]).tolist()
        if piece[0] == number
    }
