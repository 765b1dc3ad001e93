"""Tokens of conversations that are no targets, in the formats of other trainers."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gristmill.documents.errors import UsageError
from gristmill.mixing import MixSpec, TokenFeed, compile_plan
from gristmill.mixing.export import export
from gristmill.mixing.spoken import Spoken


@pytest.fixture(scope="module", name="feed")
def feed_fixture(naive, tmp_path_factory):
    """Every third token of every document is no target."""
    tools = naive("naive_mixing")
    folder = tmp_path_factory.mktemp("masks")
    catalog, digests = tools.make_corpus(folder / "tokens", tools.mixed_documents())
    spoken = {
        name: Spoken(
            np.array(
                [
                    [row["doc"], t, t + 1]
                    for row in catalog.to_pylist()
                    if row["shard"] == name
                    for t in range(0, row["tokens"], 3)
                ]
            ),
            np.zeros((0, 2), np.int64),
        )
        for name in digests
    }
    name = compile_plan(
        catalog,
        MixSpec.parse(tools.THREE_STAGES),
        tokens_digests=digests,
        tokenizer_digest=tools.TOKENIZER,
        out=folder,
        spoken=spoken,
    )
    return TokenFeed(folder / name, folder / "tokens")


def learnt(feed, stage):
    """By sequence and token whether it is a target: bool[windows, S]."""
    samples = [feed[p] for p in range(stage.first, stage.first + stage.windows)]
    out = np.zeros((stage.windows, stage.sequence_length), bool)
    for row, sample in zip(out, samples, strict=True):
        for i, label in enumerate(sample["labels"][:-1].tolist()):
            row[i + 1] = label != -100
    assert out.any(axis=1).all()
    assert not out.all(axis=1).any()
    return out


@pytest.mark.parametrize(("to", "file"), [("ds", "tokens.ds.loss"), ("npy", "labels_mask.npy")])
def test_masks_are_a_byte_a_token(feed, tmp_path, to, file):
    content = export(feed, to, tmp_path / to)
    for stage, told in zip(feed.plan.stages, content["stages"], strict=True):
        raw = (tmp_path / to / told["folder"] / file).read_bytes()
        mask = np.frombuffer(raw, np.bool_).reshape(-1, stage.sequence_length)
        assert np.array_equal(mask, learnt(feed, stage))
        assert f"{told['folder']}/{file}" in told["files"]


def test_masks_are_a_column_of_mds(feed, tmp_path):
    content = export(feed, "mds", tmp_path / "mds")
    for stage, told in zip(feed.plan.stages, content["stages"], strict=True):
        folder = tmp_path / "mds" / told["folder"]
        (shard,) = json.loads((folder / "index.json").read_text())["shards"]
        assert shard["column_names"] == ["input_ids", "loss_mask", "position"]
        size = sum(shard["column_sizes"])
        raw = (folder / shard["raw_data"]["basename"]).read_bytes()[-size * stage.windows :]
        rows = np.frombuffer(raw, np.uint8).reshape(-1, size)
        low = shard["column_sizes"][0]
        mask = rows[:, low : low + stage.sequence_length]
        assert np.array_equal(mask, learnt(feed, stage))


def test_masks_that_megatron_cannot_hold_are_not_lost_in_silence(feed, tmp_path):
    with pytest.raises(UsageError, match="no place to say which"):
        export(feed, "megatron", tmp_path / "out")
    assert not (tmp_path / "out").exists()
