"""What is written is what the feed gives, read back without our own writers."""

from __future__ import annotations

import json
import struct
from itertools import chain, pairwise

import numpy as np
import pyarrow.parquet as pq
import pytest

from gristmill.documents.errors import DamagedError, UsageError
from gristmill.documents.fingerprint import file_digest
from gristmill.mixing import TokenFeed
from gristmill.mixing.export import FORMATS, export


@pytest.fixture(scope="module", name="feed")
def feed_fixture(naive, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    return TokenFeed(naive("naive_mixing").make_plan(folder), folder / "tokens")


def expected(feed, stage):
    """(ids, lengths of segments) of every window of a stage, from the feed."""
    samples = [feed[p] for p in range(stage.first, stage.first + stage.windows)]
    return [s["input_ids"].tolist() for s in samples], [
        np.diff(s["cu_seqlens"]).tolist() for s in samples
    ]


@pytest.fixture(scope="module", name="written")
def written_fixture(feed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("written")
    return {to: (export(feed, to, folder / to), folder / to) for to in FORMATS}


def stages(feed, written, to):
    content, folder = written[to]
    for stage, told in zip(feed.plan.stages, content["stages"], strict=True):
        yield stage, folder / told["folder"], np.dtype(content["dtype"])


def test_megatron_index_leads_to_every_sequence(feed, written):
    for stage, folder, dtype in stages(feed, written, "megatron"):
        raw = (folder / "tokens.idx").read_bytes()
        assert raw[:9] == b"MMIDIDX\x00\x00"
        version, code, sequences, documents = struct.unpack_from("<QBQQ", raw, 9)
        assert (version, code) == (1, {2: 8, 4: 4}[dtype.itemsize])
        lengths = np.frombuffer(raw, "<i4", sequences, 34)
        pointers = np.frombuffer(raw, "<i8", sequences, 34 + 4 * sequences)
        first = np.frombuffer(raw, "<i8", documents, 34 + 12 * sequences)
        assert len(raw) == 34 + 12 * sequences + 8 * documents
        data = (folder / "tokens.bin").read_bytes()
        pieces = [
            np.frombuffer(data, dtype, n, p).tolist()
            for n, p in zip(lengths.tolist(), pointers.tolist(), strict=True)
        ]
        windows, segments = expected(feed, stage)
        assert documents == stage.windows + 1
        for k, window in enumerate(windows):
            mine = pieces[first[k] : first[k + 1]]
            assert [len(p) for p in mine] == segments[k]
            assert list(chain(*mine)) == window


def test_datatrove_ends_and_tokens(feed, written):
    for stage, folder, dtype in stages(feed, written, "ds"):
        windows, segments = expected(feed, stage)
        tokens = np.fromfile(folder / "tokens.ds", dtype)
        assert tokens.tolist() == list(chain(*windows))
        ends = np.fromfile(folder / "tokens.ds.index", "<u8")
        assert ends.tolist() == np.cumsum(list(chain(*segments))).tolist()
        size, count, _ = (folder / "tokens.ds.metadata").read_text().split("\n")
        assert size.split("|")[1] == str(dtype.itemsize)
        assert int(count) == len(tokens)


def test_npy_is_the_raw_tokens(feed, written):
    for stage, folder, dtype in stages(feed, written, "npy"):
        tokens = np.memmap(folder / "tokens.npy", dtype, "r")
        assert tokens.tolist() == list(chain(*expected(feed, stage)[0]))


def test_mds_samples_by_their_offsets(feed, written):
    for stage, folder, dtype in stages(feed, written, "mds"):
        index = json.loads((folder / "index.json").read_text())
        assert index["version"] == 2
        found, places = [], []
        for shard in index["shards"]:
            data = (folder / shard["raw_data"]["basename"]).read_bytes()
            assert len(data) == shard["raw_data"]["bytes"]
            (count,) = struct.unpack_from("<I", data)
            offsets = np.frombuffer(data, "<u4", count + 1, 4).tolist()
            assert count == shard["samples"]
            assert offsets[-1] == len(data)
            size = shard["column_sizes"][0]
            for low, high in pairwise(offsets):
                found.append(np.frombuffer(data[low : low + size], dtype).tolist())
                places.append(struct.unpack("<q", data[low + size : high])[0])
        assert found == expected(feed, stage)[0]
        assert places == list(range(stage.first, stage.first + stage.windows))


def test_mds_full_shards_are_split(feed, tmp_path, monkeypatch):
    monkeypatch.setattr("gristmill.mixing.export.writers.MDS_SHARD", 1000)
    content = export(feed, "mds", tmp_path / "out", stages=[feed.plan.stages[0].name])
    folder = tmp_path / "out" / content["stages"][0]["folder"]
    shards = json.loads((folder / "index.json").read_text())["shards"]
    assert len(shards) > 1
    assert sum(s["samples"] for s in shards) == feed.plan.stages[0].windows


def test_parquet_has_masks_and_provenance(feed, written):
    for stage, folder, _ in stages(feed, written, "parquet"):
        rows = pq.read_table(folder / "sequences.parquet").to_pylist()
        assert [r["position"] for r in rows] == list(
            range(stage.first, stage.first + stage.windows)
        )
        windows, segments = expected(feed, stage)
        assert [r["input_ids"] for r in rows] == windows
        assert [r["segments"] for r in rows] == segments
        assert [r["loss_mask"] for r in rows] == [
            feed[r["position"]]["loss_mask"].tolist() for r in rows
        ]


@pytest.mark.parametrize("to", FORMATS)
def test_export_twice_same_bytes_and_digests_hold(feed, written, to, tmp_path):
    content, folder = written[to]
    assert export(feed, to, tmp_path / "again") == content
    named = {name for stage in content["stages"] for name in stage["files"]}
    every = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert every == named | {"export.json"}
    for stage in content["stages"]:
        for name, told in stage["files"].items():
            assert told == {
                "size": (folder / name).stat().st_size,
                "digest": file_digest(folder / name),
            }


def test_export_names_the_nearest_stage_and_format(feed, tmp_path):
    with pytest.raises(UsageError, match="did you mean 'megatron'"):
        export(feed, "megatorn", tmp_path / "out")
    with pytest.raises(UsageError, match="did you mean"):
        export(feed, "npy", tmp_path / "out", stages=[feed.plan.stages[0].name + "x"])
    assert list(tmp_path.iterdir()) == []


def test_export_corrupt_tokens_leave_nothing(naive, tmp_path):
    plan = naive("naive_mixing").make_plan(tmp_path)
    victim = next((tmp_path / "tokens").glob("*.bin"))
    data = bytearray(victim.read_bytes())
    data[10] ^= 1
    victim.write_bytes(data)
    with pytest.raises(DamagedError, match=victim.name):
        export(TokenFeed(plan, tmp_path / "tokens"), "npy", tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["plans", "tokens"]
