from __future__ import annotations

import json
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.documents.errors import DamagedError, FormatError, StopError, UsageError
from gristmill.mixing import (
    FeedLoader,
    MixSpec,
    Plan,
    TokenFeed,
    carry_state,
    compile_plan,
)


@pytest.fixture(scope="module", name="world")
def world_fixture(naive, tmp_path_factory):
    """(tools, plan folder, tokens folder, catalogue, digests)."""
    tools = naive("naive_mixing")
    folder = tmp_path_factory.mktemp("feed")
    catalog, digests = tools.make_corpus(folder / "tokens", tools.mixed_documents())
    return tools, compiled(tools, folder, catalog, digests), folder / "tokens", catalog, digests


def compiled(tools, folder, catalog, digests, mapping=None):
    spec = MixSpec.parse(mapping or tools.THREE_STAGES)
    name = compile_plan(
        catalog, spec, tokens_digests=digests, tokenizer_digest=tools.TOKENIZER, out=folder
    )
    return folder / name


@pytest.fixture(scope="module", name="feed")
def feed_fixture(world):
    return TokenFeed(world[1], world[2])


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


def test_sample_fields_and_shapes(feed):
    plan = feed.plan
    assert len(feed) == plan.positions
    for position in (0, 119, 120, 149, 150, 189):
        sample = feed[position]
        size = plan.stages[plan.stage_at(position)].sequence_length
        for name in ("input_ids", "labels", "position_ids", "loss_mask"):
            assert sample[name].shape == (size,)
        assert sample["cu_seqlens"].dtype == np.int32
        assert sample["cu_seqlens"][[0, -1]].tolist() == [0, size]
        assert (np.diff(sample["cu_seqlens"]) > 0).all()
        assert (sample["loss_mask"] == (sample["labels"] != -100)).all()
        assert sample["provenance"].tolist()[:6] == list(plan.locate(position))
    for position in (-1, len(feed)):
        with pytest.raises(IndexError, match="outside plan"):
            feed[position]


def test_document_mask_segments_positions_and_targets(world, feed):
    # boundaries are the plan's: some documents hold an end token in their middle
    tools, plan = world[0], feed.plan
    rows = world[3].to_pylist()
    inner_eos = 0
    for position in range(120, plan.positions):
        sample, slot = feed[position], plan.locate(position)
        edges = [0]
        for row, start, length in plan.window_pieces(slot.lane, slot.window).tolist():
            whole = tools.document_tokens(row, rows[row]["tokens"])
            part = slice(edges[-1], edges[-1] + length)
            assert sample["input_ids"][part].tolist() == whole[start : start + length]
            assert sample["position_ids"][part].tolist() == list(range(length))
            following = whole[start + 1 : start + length + 1]
            expected = following + [-100] * (length - len(following))
            assert sample["labels"][part].tolist() == expected
            inner_eos += tools.EOS in whole[start : start + length - 1]
            edges.append(part.stop)
        padding = slice(edges[-1], None)
        assert (sample["input_ids"][padding] == plan.content["pad_id"]).all()
        assert not sample["loss_mask"][padding].any()
        size = len(sample["input_ids"])
        assert sample["cu_seqlens"].tolist() == [*edges, *([size] if edges[-1] < size else [])]
    assert inner_eos > 5


def test_without_mask_text_runs_on_over_documents(feed):
    for position in range(120):
        sample = feed[position]
        real = int(sample["provenance"][-1])
        ids = sample["input_ids"]
        assert sample["labels"][: real - 1].tolist() == ids[1:real].tolist()
        assert (sample["labels"][real:] == -100).all()
        assert sample["cu_seqlens"].tolist() == [0, len(ids)]
        assert sample["position_ids"].tolist() == list(range(len(ids)))


def test_every_token_but_the_first_is_a_target_once_per_epoch(world, tmp_path):
    # cut anywhere: the token after a cut is the label of the one before it
    tools, _, tokens, catalog, digests = world
    for packing in ("concat", "best_fit"):
        mapping = {
            "slices": {"all": {}},
            "stages": [
                {
                    "name": "s",
                    "tokens": 10**9,
                    "sequence_length": 32,
                    "packing": packing,
                    "weights": {"all": 1},
                }
            ],
        }
        mapping["stages"][0]["max_epochs"] = 1
        with pytest.raises(UsageError) as caught:
            compiled(tools, tmp_path, catalog, digests, mapping)
        cure = str(caught.value).split("stage tokens of at most ")[1].split(";")[0]
        mapping["stages"][0]["tokens"] = int(cure.replace(",", ""))
        feed = TokenFeed(compiled(tools, tmp_path, catalog, digests, mapping), tokens)
        found = np.sort(
            np.concatenate(
                [s["labels"][s["loss_mask"]] for s in map(feed.__getitem__, range(len(feed)))]
            )
        )
        rows = catalog.to_pylist()
        expected = [
            t for n, r in enumerate(rows) for t in tools.document_tokens(n, r["tokens"])[1:]
        ]
        assert found.tolist() == sorted(expected)


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
    loader.load_state_dict(FeedLoaderAt(feed, 120))
    batch = next(iter(loader))
    edges = batch["cu_seqlens"].tolist()
    assert edges[0] == 0
    assert edges[-1] == 512
    assert 256 in edges
    assert all(a < b for a, b in pairwise(edges))
    flat = batch["position_ids"].reshape(-1)
    assert (flat[batch["cu_seqlens"][:-1]] == 0).all()


def FeedLoaderAt(feed, position):
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
    tools, _, tokens, catalog, digests = world
    mapping = json.loads(json.dumps(tools.THREE_STAGES))
    mapping["stages"][2]["weights"] = {"code": 1, "web": 9}
    new = TokenFeed(compiled(tools, tmp_path, catalog, digests, mapping), tokens)
    state = FeedLoaderAt(feed, 148)
    moved = carry_state(state, feed.plan, new.plan)
    loader = FeedLoader(new)
    loader.load_state_dict(moved)
    assert next(iter(loader))["provenance"][0, 0] == 148
    with pytest.raises(StopError, match=r"differs from .* before position 160"):
        carry_state(FeedLoaderAt(feed, 160), feed.plan, new.plan)


def corrupted(world, folder, file, at=-1):
    """A copy of the token folder with one byte of `file` flipped."""
    folder.mkdir()
    for source in world[2].iterdir():
        data = source.read_bytes()
        if source.name == file:
            at %= len(data)
            data = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        (folder / source.name).write_bytes(data)
    return folder


def test_corrupt_token_raises_naming_file_extent_and_position(world, tmp_path):
    folder = corrupted(world, tmp_path / "t", "part-001.bin", at=1000)
    feed = TokenFeed(world[1], folder)
    raised = served_before = 0
    for position in range(len(feed)):
        try:
            sample = feed[position]
        except DamagedError as error:
            raised += 1
            words = str(error)
            assert f"position {position} (stage " in words
            assert "part-001.bin: extent 0 (bytes 0 to " in words
        else:
            served_before += 1
            shards = {
                int(feed.plan.documents[row, 0])
                for row, _, _ in feed.plan.window_pieces(*feed.plan.locate(position)[3::2]).tolist()
            }
            assert shards == {0}
            assert sample["provenance"][0] == position
    assert raised
    assert served_before
    first = next(
        p
        for p in range(len(feed))
        if 1 in feed.plan.documents[feed.plan.window_pieces(*feed.plan.locate(p)[3::2])[:, 0], 0]
    )
    loader = FeedLoader(feed)
    with pytest.raises(DamagedError, match=f"position {first} "):
        list(loader)
    assert loader.position <= first  # the state does not run over it
    with pytest.raises(DamagedError, match=r"part-001\.bin"):
        TokenFeed(world[1], folder, verify="all")
    TokenFeed(world[1], folder, verify="off")[first]  # asked not to look


@pytest.mark.parametrize("file", ["part-000.ends.npy", "part-000.ids.npy"])
def test_corrupt_companions_are_named(world, tmp_path, file):
    folder = corrupted(world, tmp_path / "t", file, at=-9)
    with pytest.raises((DamagedError, StopError, FormatError), match=file):
        TokenFeed(world[1], folder, verify="all")


def test_tokens_of_another_corpus_are_refused(world, tmp_path):
    tools = world[0]
    documents = tools.mixed_documents()
    documents[3]["tokens"] += 1
    tools.make_corpus(tmp_path / "t", documents)
    feed = TokenFeed(world[1], tmp_path / "t")
    with pytest.raises(
        StopError, match=r"part-00\d\.index\.json: digest .* these are other tokens"
    ):
        list(FeedLoader(feed))
    with pytest.raises(UsageError, match="verify: found 'maybe'"):
        TokenFeed(world[1], tmp_path / "t", verify="maybe")


def test_feed_is_safe_in_threads(world, feed):
    fresh = TokenFeed(world[1], world[2])
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(fresh.__getitem__, range(len(fresh))))
    for position, sample in enumerate(found):
        assert (sample["input_ids"] == feed[position]["input_ids"]).all()


def test_feed_pickled_to_a_worker_reads_the_same(feed):
    again = pickle.loads(pickle.dumps(feed))
    assert again.verify == feed.verify
    for name, value in feed[77].items():
        assert (again[77][name] == value).all()


def test_feed_imports_numpy_and_the_standard_library_alone(world):
    # what a trainer's environment lacks is blocked; the batch must come all the same
    code = f"""
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {{"pyarrow", "numba", "duckdb", "yaml", "typer", "tokenizers",
                                   "fastokens", "zstandard", "resiliparse", "llvmlite"}}:
            raise ImportError("blocked: " + name)
sys.meta_path.insert(0, Block())
from gristmill.mixing import FeedLoader, MixSpec, Plan, TokenFeed, trace
feed = TokenFeed({str(world[1])!r}, {str(world[2])!r})
loader = FeedLoader(feed, rank=1, world=2)
batch = next(iter(loader))
print(batch["input_ids"][0, :4].tolist(), len(trace(feed.plan, 0)) > 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    expected = TokenFeed(world[1], world[2])[1]["input_ids"][:4].tolist()
    assert done.stdout.strip() == f"{expected} True"


def test_plan_opened_once_serves_from_a_moved_folder(world, tmp_path):
    plan = Plan.open(world[1])
    target = tmp_path / plan.id
    target.mkdir()
    for file in world[1].iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    assert TokenFeed(str(target), str(world[2]))[5]["provenance"][0] == 5
