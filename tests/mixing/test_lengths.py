"""Stages of several sequence lengths, from the recipe's words to tokens, accounts and exports."""

from __future__ import annotations

import copy
import re
from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.documents.errors import UsageError
from gristmill.mixing import FeedLoader, MixSpec, Plan, TokenFeed, trace
from gristmill.mixing.account import account
from gristmill.mixing.budget.pairs import attention_pairs
from gristmill.mixing.export import export

LISTED = [32, 64, 256]
BY_SLICE = {"long": 256, "web": 64}


def mixture(tools, lengths, **more):
    made = copy.deepcopy(tools.THREE_STAGES)
    made["stages"][1] |= {"sequence_length": lengths, "max_epochs": 12, **more}
    return made


@pytest.fixture(scope="module", name="worlds")
def worlds_fixture(naive, tmp_path_factory):
    tools = naive("naive_mixing")
    out = []
    for lengths, more in ((LISTED, {}), (BY_SLICE, {"mask": "none"}), (BY_SLICE, {})):
        folder = tmp_path_factory.mktemp("lengths")
        plan = tools.make_plan(folder, mixture(tools, lengths, **more))
        out.append(TokenFeed(plan, folder / "tokens"))
    return out


def test_list_divides_slices_by_the_length_of_documents(worlds):
    plan = worlds[0].plan
    stage = plan.stages[1]
    assert stage.sequence_length == 256
    assert stage.slices == ["long@65+", "web@1-32", "web@33-64", "web@65+"]
    tokens = np.asarray(plan.documents[:, 2])
    bounds = {32: (1, 32), 64: (33, 64), 256: (65, 10**9)}
    for lane in (plan.lanes[k] for k in stage.lanes):
        name = lane.slice.partition("@")[0]
        low, high = bounds[lane.sequence_length]
        low = max(low, 100) if name == "long" else low
        web = np.asarray(plan.document_sources) == plan.sources.index("web")
        chosen = (tokens >= low) & (tokens <= high) & (web | (name == "long"))
        assert lane.tokens == tokens[chosen].sum()


def test_parts_share_the_weight_of_their_slice_by_tokens(worlds):
    stage = worlds[0].plan.stages[1]
    share = dict(zip(stage.slices, stage.shares, strict=True))
    web = {name: n for name, n in share.items() if name.startswith("web@")}
    assert sum(web.values()) == pytest.approx(sum(share.values()) / 3, abs=4)
    lanes = {worlds[0].plan.lanes[k].slice: worlds[0].plan.lanes[k] for k in stage.lanes}
    total = sum(lanes[name].tokens for name in web)
    for name, n in web.items():
        assert n / sum(web.values()) == pytest.approx(lanes[name].tokens / total, abs=1e-6)


def test_every_position_is_filled_by_sequences_of_one_length(worlds):
    for feed in worlds:
        plan = feed.plan
        stage = plan.stages[1]
        seen = Counter()
        for position in range(stage.first, stage.first + stage.windows):
            slots = plan.locate(position)
            assert len({slot.lane for slot in slots}) == 1
            size = plan.lanes[slots[0].lane].sequence_length
            assert len(slots) * size == 256
            assert [tuple(row) for row in plan.rows(position, position + 1).tolist()] == [*slots]
            sample = feed[position]
            assert sample["provenance"][8] == size
            assert len(sample["input_ids"]) == 256
            assert set(range(0, 257, size)) <= set(sample["cu_seqlens"].tolist())
            for low, high in zip(sample["cu_seqlens"][:-1], sample["cu_seqlens"][1:], strict=True):
                assert sample["position_ids"][low:high].tolist() == list(range(high - low))
            seen[size] += 1
        assert len(seen) > 1


def test_labels_never_cross_the_edge_of_a_sequence_but_within_its_document(worlds):
    feed = worlds[1]  # no mask: text runs on, but not from one sequence into the next
    plan, stage = feed.plan, feed.plan.stages[1]
    for position in range(stage.first, stage.first + stage.windows):
        sample = feed[position]
        size = int(sample["provenance"][8])
        for n, slot in enumerate(plan.locate(position)):
            pieces = plan.window_pieces(slot.lane, slot.window).tolist()
            row, start, length = pieces[-1]
            last = n * size + sum(p[2] for p in pieces) - 1
            shard, document, tokens = plan.documents[row].tolist()
            if start + length == tokens:
                assert sample["labels"][last] == -100
            else:
                more = feed._shard(shard)
                at = more.span(document)[0] + start + length
                assert sample["labels"][last] == more.tokens(at, at + 1)[0]


def test_each_lane_reads_epochs_without_gaps_or_repeats(worlds):
    for feed in worlds:
        plan = feed.plan
        read = defaultdict(list)
        for _, _, _, lane, epoch, window in plan.rows(0, plan.positions).tolist():
            read[lane, epoch].append(window)
        for (lane, epoch), windows in read.items():
            assert len(set(windows)) == len(windows)
            if (lane, epoch + 1) in read:
                assert len(windows) == plan.lanes[lane].windows


def test_accounts_equal_what_the_feed_gives(worlds):
    for feed in worlds:
        real, padding = Counter(), Counter()
        for position in range(feed.plan.positions):
            row = feed[position]["provenance"].tolist()
            key = (feed.plan.stages[row[1]].name, feed.plan.slices[row[2]], row[8])
            real[key] += row[7]
            padding[key] += len(feed[position]["input_ids"]) - row[7]
        found, empty = Counter(), Counter()
        for row in account(feed.plan).to_pylist():
            key = (row["stage"], row["slice"], row["sequence_length"])
            found[key] += row["real_tokens"]
            empty[key] += row["padding_tokens"]
        assert found == real
        assert empty == padding


def test_attention_pairs_equal_the_feeds_segments(worlds):
    for feed in worlds:
        for stage, total in zip(feed.plan.stages, attention_pairs(feed.plan), strict=True):
            found = 0
            for position in range(stage.first, stage.first + stage.windows):
                sample = feed[position]
                edges = sample["cu_seqlens"].tolist()
                inside = stage.mask == "document"
                for low, high in pairwise(edges):
                    padding = inside and (sample["input_ids"][low:high] == feed.pad_id).all()
                    found += 0 if padding else (high - low) * (high - low + 1) // 2
            assert total == found


def test_trace_names_the_tokens_that_the_feed_gives_and_finds_the_way_back(worlds):
    for feed in worlds:
        plan, stage = feed.plan, feed.plan.stages[1]
        for step in range(stage.first_step, stage.first_step + stage.windows // 2):
            for t in trace(plan, step):
                shard = feed._shard(plan.shards.index(t.shard))
                begin = shard.span(t.doc)[0] + t.start
                expected = shard.tokens(begin, begin + t.length)
                ids = feed[t.position]["input_ids"][t.offset : t.offset + t.length]
                assert ids.tolist() == expected.tolist()
                seen = plan.steps_of_document(t.shard, t.doc)
                assert (step, t.position, t.window, t.start, t.length) in seen


def test_any_world_reads_one_order(worlds):
    feed = worlds[0]
    whole = [feed[p]["input_ids"].tolist() for p in range(len(feed))]
    for world, micro in ((1, 3), (2, 1), (3, 2)):
        got = {}
        for rank in range(world):
            for batch in FeedLoader(feed, rank=rank, world=world, micro_batch=micro):
                for row, ids in zip(batch["provenance"], batch["input_ids"], strict=True):
                    if row[0] >= 0:
                        assert int(row[0]) not in got
                        got[int(row[0])] = ids.tolist()
        assert [got[p] for p in range(len(feed))] == whole


@given(data=st.data())
@settings(max_examples=15)
def test_change_of_a_later_stage_keeps_earlier_positions(naive, tmp_path_factory, data):
    tools = naive("naive_mixing")
    lengths = data.draw(st.sampled_from([LISTED, [64, 128], BY_SLICE, [256]]))
    one, two = (mixture(tools, lengths) for _ in range(2))
    two["stages"][2]["sequence_length"] = data.draw(st.sampled_from([32, 64, [32, 64]]))
    two["stages"][2]["max_epochs"] = 20
    plans = []
    for mix in (one, two):
        folder = tmp_path_factory.mktemp("prefix")
        plans.append(Plan.open(tools.make_plan(folder, mix)))
    edge = plans[0].stages[2].first
    assert plans[0].prefix_digest(edge) == plans[1].prefix_digest(edge)
    assert np.array_equal(plans[0].rows(0, edge)[:, 4:], plans[1].rows(0, edge)[:, 4:])


def test_export_has_a_folder_for_each_length(worlds, tmp_path):
    feed = worlds[0]
    stage = feed.plan.stages[1]
    told = export(feed, "npy", tmp_path / "out", stages=[stage.name])["stages"]
    assert [(t["folder"], t["sequence_length"]) for t in told] == [
        (f"1-long_context-{n}", n) for n in LISTED
    ]
    for one in told:
        size = one["sequence_length"]
        flat = np.fromfile(tmp_path / "out" / one["folder"] / "tokens.npy", "<u2").reshape(-1, size)
        places = range(stage.first, stage.first + stage.windows)
        samples = [feed[p] for p in places]
        expected = [s["input_ids"] for s in samples if s["provenance"][8] == size]
        assert np.array_equal(flat, np.concatenate(expected).reshape(-1, size))
    assert sum(t["tokens"] for t in told) == stage.windows * 256


@pytest.mark.parametrize(
    ("lengths", "words"),
    [
        ([64, 100], "64 does not divide the longest, 100"),
        ([], "found none; expected at least one length"),
        ([1, 64], r"sequence_length\[0\]: found 1"),
        ({"long": 256}, "slice 'web' of the stage has no length"),
        ({"long": 256, "web": 64, "code": 64}, "code: not a slice of the stage"),
        ("64", "sequence_length: found '64'"),
    ],
)
def test_lengths_wrong_are_named(naive, lengths, words):
    with pytest.raises(UsageError, match=words):
        MixSpec.parse(mixture(naive("naive_mixing"), lengths))


def test_list_of_one_length_is_that_length(naive, tmp_path):
    tools = naive("naive_mixing")
    plans = [
        tools.make_plan(tmp_path / str(k), mixture(tools, lengths)).name
        for k, lengths in enumerate(([256], 256, {"long": 256, "web": 256}))
    ]
    assert len(set(plans)) == 1


def test_infeasible_names_the_part_and_the_cures_work(naive, tmp_path):
    tools = naive("naive_mixing")
    mix = mixture(tools, BY_SLICE, tokens=256 * 400, max_epochs=9)
    mix["stages"][2]["max_epochs"] = 60
    with pytest.raises(
        UsageError, match=r"44 windows of 64\); the stage asks for 532 windows"
    ) as caught:
        tools.make_plan(tmp_path / "a", mix)
    told = str(caught.value)
    mix["stages"][1]["tokens"] = int(re.search(r"would do: tokens: (\d+);", told)[1])
    tools.make_plan(tmp_path / "b", mix)
