"""Tokens of conversations that are no targets: from shards to plans, labels and accounts."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gristmill.mixing import MixSpec, Plan, TokenFeed, compile_plan
from gristmill.mixing.account import account
from gristmill.mixing.sequence import IGNORE
from gristmill.mixing.spoken import Spoken


def entries(rng, documents):
    """Stretches and control tokens of every second document of a shard, by document."""
    spans, controls = [], []
    for number, tokens in enumerate(documents):
        if number % 2:
            continue
        edges = sorted(rng.sample(range(tokens + 1), min(tokens + 1, 2 * rng.randint(0, 4))))
        spans += [[number, *pair] for pair in zip(edges[::2], edges[1::2], strict=False)]
        controls += [[number, t] for t in sorted(rng.sample(range(tokens), min(tokens, 3)))]
    return Spoken(
        np.array(spans, np.int64).reshape(-1, 3), np.array(controls, np.int64).reshape(-1, 2)
    )


@pytest.fixture(name="plans", scope="module")
def plans_fixture(naive, tmp_path_factory):
    """A plan without conversations, the same with them, their tokens, and what was said of them."""
    tools = naive("naive_mixing")
    folder = tmp_path_factory.mktemp("spoken")
    catalog, digests = tools.make_corpus(folder / "tokens", tools.mixed_documents())
    rng = random.Random(7)
    lengths = {
        name: [r["tokens"] for r in catalog.to_pylist() if r["shard"] == name] for name in digests
    }
    spoken = {name: entries(rng, mine) for name, mine in lengths.items()}
    spec = MixSpec.parse(tools.THREE_STAGES)
    options = {"tokens_digests": digests, "tokenizer_digest": tools.TOKENIZER, "out": folder}
    names = [compile_plan(catalog, spec, **options, spoken=s) for s in (None, spoken)]
    rows = catalog.to_pylist()
    unlearnt = {
        (row, t)
        for row, about in enumerate(rows)
        for number, a, b in spoken[about["shard"]].unlearnt.tolist()
        if number == about["doc"]
        for t in range(a, b)
    }
    controls = {
        (row, t)
        for row, about in enumerate(rows)
        for number, t in spoken[about["shard"]].controls.tolist()
        if number == about["doc"]
    }
    plain, said = (Plan.open(folder / name, verify=True) for name in names)
    return plain, said, folder / "tokens", unlearnt, controls


def targets(plan, position):
    """The token (row, place) that each label of a position stands for, None where there is none."""
    out = []
    for slot in plan.locate(position):
        inside = plan.stages[slot.stage].mask == "document"
        pieces = plan.window_pieces(slot.lane, slot.window).tolist()
        mine = []
        for n, (row, start, length) in enumerate(pieces):
            size = int(plan.documents[row, 2])
            mine += [(row, t + 1) for t in range(start, start + length)]
            if start + length == size:
                runs_on = not inside and n + 1 < len(pieces)
                mine[-1] = tuple(pieces[n + 1][:2]) if runs_on else None
        out += mine + [None] * (plan.lanes[slot.lane].sequence_length - len(mine))
    return out


def test_feed_gives_no_label_to_what_is_not_learnt_and_every_other(plans):
    plain, said, tokens, unlearnt, _ = plans
    before, after = TokenFeed(plain.folder, tokens), TokenFeed(said.folder, tokens)
    assert {stage.mask for stage in said.stages} == {"document", "none"}
    masked = 0
    for position in range(said.positions):
        one, two = before[position], after[position]
        gone = np.array([t in unlearnt for t in targets(said, position)])
        assert np.array_equal(two["labels"], np.where(gone, IGNORE, one["labels"]))
        assert np.array_equal(two["loss_mask"], two["labels"] != IGNORE)
        assert np.array_equal(two["input_ids"], one["input_ids"])
        masked += int((gone & one["loss_mask"]).sum())
    assert masked > 1000


def test_batches_have_the_labels_of_samples(plans):
    _, said, tokens, *_ = plans
    feed = TokenFeed(said.folder, tokens)
    stage = said.stages[0]
    positions = range(stage.first, stage.first + stage.windows)
    batch = feed.batch(positions, positions.stop)
    for i, position in enumerate(positions):
        assert np.array_equal(batch["labels"][i], feed[position]["labels"])


def test_plan_with_conversations_has_a_format_and_a_prefix_of_its_own(plans):
    plain, said, *_ = plans
    assert (plain.content["format"], said.content["format"]) == (1, 4)
    assert not plain.turns
    assert said.turns
    assert plain.prefix_digest(8) != said.prefix_digest(8)
    assert plain.prefix_digest(0) == said.prefix_digest(0)


def test_turns_lie_in_one_row_of_tokens(plans):
    _, said, _, unlearnt, controls = plans
    tokens = np.asarray(said.documents[:, 2]).astype(np.int64)
    base = np.cumsum(tokens) - tokens
    flat = {int(base[row]) + t for row, t in unlearnt}
    assert flat == {t for a, b in said.turns.spans(base).tolist() for t in range(a, b)}
    places = said.turns.places(base).tolist()
    assert set(places) == {int(base[row]) + t for row, t in controls}


def test_account_of_targets_and_controls_is_what_the_feed_serves(plans):
    _, said, tokens, _, controls = plans
    feed = TokenFeed(said.folder, tokens)
    last = {(row, int(n) - 1) for row, n in enumerate(said.documents[:, 2])}
    books = account(said).to_pylist()
    for stage in said.stages:
        served = placed = 0
        for position in range(stage.first, stage.first + stage.windows):
            served += int(feed[position]["loss_mask"].sum())
            for slot in said.locate(position):
                for row, start, length in said.window_pieces(slot.lane, slot.window).tolist():
                    own = {(row, t) for t in range(start, start + length)}
                    placed += len(own & (controls | last))
        mine = [row for row in books if row["stage"] == stage.name]
        assert sum(row["loss_tokens"] for row in mine) == served
        assert sum(row["special_tokens"] for row in mine) == placed
