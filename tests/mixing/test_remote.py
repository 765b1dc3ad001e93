"""A feed from an address: the same samples, each extent fetched once, damage named."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import fsspec.implementations.local
import pytest

from gristmill.documents.errors import DamagedError, StopError, UsageError
from gristmill.mixing import FeedLoader, TokenFeed
from gristmill.mixing.shards import EXTENT


@pytest.fixture(scope="module", name="world")
def world_fixture(naive, tmp_path_factory):
    """(plan folder, tokens folder): one document of three extents beside small ones."""
    tools, folder = naive("naive_mixing"), tmp_path_factory.mktemp("remote")
    documents = [*tools.mixed_documents(), {**tools.mixed_documents()[0], "tokens": 5_000_000}]
    mix = {
        "slices": {"all": {}},
        "stages": [
            {"name": "base", "tokens": 4_000_000, "sequence_length": 4096, "weights": {"all": 1}}
        ],
    }
    return tools.make_plan(folder, mix, documents), folder / "tokens"


@pytest.fixture(name="fetched")
def fetched_fixture(monkeypatch):
    """[(file name, start), ...] as they are asked of the store."""
    asked = []
    real = fsspec.implementations.local.LocalFileSystem.cat_file

    def counting(self, path, start=None, end=None, **options):
        asked.append((path.rpartition("/")[2], start))
        return real(self, path, start=start, end=end, **options)

    monkeypatch.setattr(fsspec.implementations.local.LocalFileSystem, "cat_file", counting)
    return asked


def test_feed_from_an_address_is_the_local_feed(world, tmp_path, fetched):
    plan, tokens = world
    local = TokenFeed(plan, tokens)
    feed = TokenFeed(f"file://{plan}", f"file://{tokens}", cache=tmp_path)
    places = range(0, len(feed), 7)
    for position in places:
        for key, value in feed[position].items():
            assert value.tobytes() == local[position][key].tobytes()
    extents = [f for f in fetched if f[0].endswith(".bin")]
    assert len(extents) == len(set(extents)) > 2  # each once, however many windows it holds
    assert {start % EXTENT for _, start in extents} == {0}


def test_cache_serves_the_next_process(world, tmp_path, fetched):
    plan, tokens = world
    first = TokenFeed(plan, f"file://{tokens}", cache=tmp_path)
    expected = first[3]["input_ids"].tolist()
    asked = len(fetched)
    again = pickle.loads(pickle.dumps(first))
    assert again[3]["input_ids"].tolist() == expected
    assert len(fetched) == asked


def test_threads_share_a_feed(world, tmp_path):
    plan, tokens = world
    feed = TokenFeed(plan, f"file://{tokens}", cache=tmp_path)
    local = TokenFeed(plan, tokens)
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda p: feed[p]["input_ids"].tobytes(), range(0, len(feed), 11)))
    assert got == [local[p]["input_ids"].tobytes() for p in range(0, len(feed), 11)]
    ahead = FeedLoader(feed, prefetch=16)
    assert [b["positions"] for b in ahead] == [(p, p + 1) for p in range(len(feed))]


def test_cache_torn_extent_is_fetched_again(world, tmp_path):
    plan, tokens = world
    position = 5
    expected = TokenFeed(plan, f"file://{tokens}", cache=tmp_path)[position]["input_ids"].tolist()
    for path in tmp_path.glob("*.bin"):
        with path.open("r+b") as file:
            file.write(bytes(1000))
            file.seek(EXTENT)
            file.write(bytes(1000)[: max(0, path.stat().st_size - EXTENT)])
    again = TokenFeed(plan, f"file://{tokens}", cache=tmp_path, verify="off")
    assert again[position]["input_ids"].tolist() == expected


def test_store_damaged_says_so_before_a_sample(world, tmp_path, monkeypatch):
    plan, tokens = world
    real = fsspec.implementations.local.LocalFileSystem.cat_file

    def flipping(self, path, start=None, end=None, **options):
        data = bytearray(real(self, path, start=start, end=end, **options))
        if path.endswith(".bin"):
            data[7] ^= 1
        return bytes(data)

    monkeypatch.setattr(fsspec.implementations.local.LocalFileSystem, "cat_file", flipping)
    feed = TokenFeed(plan, f"file://{tokens}", cache=tmp_path)
    with pytest.raises(DamagedError, match=r"position 0 .*extent \d+"):
        feed[0]


def test_store_that_fails_is_asked_again_then_stops(world, tmp_path, monkeypatch):
    plan, tokens = world
    real = fsspec.implementations.local.LocalFileSystem.cat_file
    calls = []

    def failing(self, path, start=None, end=None, **options):
        calls.append(path)
        if len(calls) in wrong:
            raise OSError("503 slow down")
        return real(self, path, start=start, end=end, **options)

    monkeypatch.setattr(fsspec.implementations.local.LocalFileSystem, "cat_file", failing)
    monkeypatch.setattr("gristmill.mixing.remote.time.sleep", lambda _: None)
    wrong = {1, 2, 3}
    assert TokenFeed(plan, f"file://{tokens}", cache=tmp_path / "a")[0]
    calls.clear()
    wrong = set(range(100))
    with pytest.raises(StopError, match=r"4 attempts failed.*503"):
        TokenFeed(plan, f"file://{tokens}", cache=tmp_path / "b")[0]


def test_address_wrong_use_is_named(world, tmp_path):
    plan, tokens = world
    with pytest.raises(UsageError, match="needs cache="):
        TokenFeed(plan, f"file://{tokens}")
    with pytest.raises(UsageError, match="nosuch"):
        TokenFeed(plan, "nosuch://bucket", cache=tmp_path)
    with pytest.raises(StopError, match="missing from the store"):
        TokenFeed(plan, f"file://{tokens}-gone", cache=tmp_path)[0]
