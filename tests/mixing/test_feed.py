from __future__ import annotations

import hashlib
import pickle
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.documents.errors import DamagedError, FormatError, StopError, UsageError
from gristmill.mixing import FeedLoader, MixSpec, Plan, TokenFeed, compile_plan, trace
from gristmill.mixing.encoder import load_encoder
from gristmill.mixing.shards import ShardPaths, TokenShard
from gristmill.mixing.tokens import encode_shard


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
        assert sample["provenance"].tolist()[:6] == list(plan.locate(position)[0])
    for position in (-1, len(feed)):
        with pytest.raises(IndexError, match="outside plan"):
            feed[position]


def test_document_mask_segments_positions_and_targets(world, feed):
    # boundaries are the plan's: some documents hold an end token in their middle
    tools, plan = world[0], feed.plan
    rows = world.catalog.to_pylist()
    inner_eos = 0
    for position in range(120, plan.positions):
        sample, (slot,) = feed[position], plan.locate(position)
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
        real = int(sample["provenance"][7])
        ids = sample["input_ids"]
        assert sample["labels"][: real - 1].tolist() == ids[1:real].tolist()
        assert (sample["labels"][real:] == -100).all()
        assert sample["cu_seqlens"].tolist() == [0, len(ids)]
        assert sample["position_ids"].tolist() == list(range(len(ids)))


def test_every_token_but_the_first_is_a_target_once_per_epoch(world, tmp_path):
    # cut anywhere: the token after a cut is the label of the one before it
    tools, catalog, digests, folder = world
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
            tools.compiled((tools, catalog, digests, tmp_path), mapping)
        mapping["stages"][0]["tokens"] = int(re.search(r"tokens: (\d+)", str(caught.value))[1])
        feed = TokenFeed(
            tools.compiled((tools, catalog, digests, tmp_path), mapping), folder / "tokens"
        )
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


def corrupted(world, folder, file, at=-1):
    """A copy of the token folder with one byte of `file` flipped."""
    folder.mkdir()
    for source in (world.folder / "tokens").iterdir():
        data = source.read_bytes()
        if source.name == file:
            at %= len(data)
            data = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        (folder / source.name).write_bytes(data)
    return folder


def test_corrupt_token_raises_naming_file_extent_and_position(world, plan_folder, tmp_path):
    folder = corrupted(world, tmp_path / "t", "part-001.bin", at=1000)
    feed = TokenFeed(plan_folder, folder)
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
                for row, _, _ in feed.plan.window_pieces(
                    *feed.plan.locate(position)[0][3::2]
                ).tolist()
            }
            assert shards == {0}
            assert sample["provenance"][0] == position
    assert raised
    assert served_before
    first = next(
        p
        for p in range(len(feed))
        if 1 in feed.plan.documents[feed.plan.window_pieces(*feed.plan.locate(p)[0][3::2])[:, 0], 0]
    )
    loader = FeedLoader(feed)
    with pytest.raises(DamagedError, match=f"position {first} "):
        list(loader)
    assert loader.position <= first  # the state does not run over it
    with pytest.raises(DamagedError, match=r"part-001\.bin"):
        TokenFeed(plan_folder, folder, verify="all")
    TokenFeed(plan_folder, folder, verify="off")[first]  # asked not to look


@pytest.mark.parametrize("file", ["part-000.ends.npy", "part-000.ids.npy"])
def test_corrupt_companions_are_named(world, plan_folder, tmp_path, file):
    folder = corrupted(world, tmp_path / "t", file, at=-9)
    with pytest.raises((DamagedError, StopError, FormatError), match=file):
        TokenFeed(plan_folder, folder, verify="all")


def test_tokens_of_another_corpus_are_refused(world, plan_folder, tmp_path):
    tools = world[0]
    documents = tools.mixed_documents()
    documents[3]["tokens"] += 1
    tools.make_corpus(tmp_path / "t", documents)
    feed = TokenFeed(plan_folder, tmp_path / "t")
    with pytest.raises(
        StopError, match=r"part-00\d\.index\.json: digest .* these are other tokens"
    ):
        list(FeedLoader(feed))
    with pytest.raises(UsageError, match="verify: found 'maybe'"):
        TokenFeed(plan_folder, tmp_path / "t", verify="maybe")


def test_feed_is_safe_in_threads(world, plan_folder, feed):
    fresh = TokenFeed(plan_folder, world.folder / "tokens")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(fresh.__getitem__, range(len(fresh))))
    for position, sample in enumerate(found):
        assert (sample["input_ids"] == feed[position]["input_ids"]).all()


def test_feed_pickled_to_a_worker_reads_the_same(feed):
    again = pickle.loads(pickle.dumps(feed))
    assert again.verify == feed.verify
    for name, value in feed[77].items():
        assert (again[77][name] == value).all()


def test_feed_imports_numpy_and_the_standard_library_alone(world, plan_folder):
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
feed = TokenFeed({str(plan_folder)!r}, {str(world.folder / "tokens")!r})
loader = FeedLoader(feed, rank=1, world=2)
batch = next(iter(loader))
print(batch["input_ids"][0, :4].tolist(), len(trace(feed.plan, 0)) > 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    expected = TokenFeed(plan_folder, world.folder / "tokens")[1]["input_ids"][:4].tolist()
    assert done.stdout.strip() == f"{expected} True"


def test_plan_opened_once_serves_from_a_moved_folder(world, plan_folder, tmp_path):
    plan = Plan.open(plan_folder)
    target = tmp_path / plan.id
    target.mkdir()
    for file in plan_folder.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    assert TokenFeed(str(target), str(world.folder / "tokens"))[5]["provenance"][0] == 5


def test_feed_reads_shards_that_the_encoder_wrote(tmp_path):
    texts = [f"Document {n}: " + "a few words of prose, then more. " * (n % 9) for n in range(40)]
    ids = [hashlib.blake2b(text.encode(), digest_size=16).digest() for text in texts]
    table = pa.table(
        {"id": pa.array(ids, pa.binary(16)), "text": pa.array(texts, pa.large_string())}
    )
    pq.write_table(table, tmp_path / "c.parquet")
    encoder, paths = load_encoder(), ShardPaths.of(tmp_path / "web")
    encode_shard(tmp_path / "c.parquet", encoder, paths)
    shard = TokenShard.open(tmp_path / "web")
    none = pa.nulls(40, "string")
    catalog = pa.table(
        {
            "shard": ["web"] * 40,
            "doc": pa.array(range(40), pa.uint32()),
            "id": table["id"],
            "tokens": pa.array(np.diff(shard.ends.astype(np.int64), prepend=0), pa.uint32()),
            **dict.fromkeys(("source", "language", "dump", "license"), none),
        }
    )
    mapping = {
        "slices": {"all": {}},
        "stages": [{"name": "s", "tokens": 1024, "sequence_length": 128, "weights": {"all": 1}}],
    }
    name = compile_plan(
        catalog,
        MixSpec.parse(mapping),
        tokens_digests={"web": shard.index["digest"]},
        tokenizer_digest=encoder.digest,
        out=tmp_path,
    )
    feed = TokenFeed(tmp_path / name, tmp_path, verify="all")
    flat, offsets = encoder.encode(pa.array(texts, pa.large_string()))
    met = 0
    for step in range(feed.plan.steps()):
        for t in trace(feed.plan, step):
            assert t.id == ids[t.doc].hex()
            found = feed[t.position]["input_ids"][t.offset : t.offset + t.length]
            whole = [*flat[offsets[t.doc] : offsets[t.doc + 1]].tolist(), encoder.eos_id]
            assert found.tolist() == whole[t.start : t.start + t.length]
            met += 1
    assert met > 20
