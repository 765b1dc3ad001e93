"""A trainer's feed from a bucket: the local samples, after a fork too, through faults."""

from __future__ import annotations

import hashlib
import multiprocessing

import pytest

from gristmill.documents.errors import StopError
from gristmill.mixing import FeedLoader, TokenFeed

BUCKET = "s3://crawl"


@pytest.fixture(name="world")
def world_fixture(naive, tmp_path, store):
    """The folder of a plan and its tokens, both in the bucket as well."""
    name = naive("naive_mixing").make_plan(tmp_path).name
    for path in [*(tmp_path / "tokens").iterdir(), *(tmp_path / "plans" / name).iterdir()]:
        store.put(path.relative_to(tmp_path).as_posix(), path.read_bytes())
    return tmp_path, name


def digest(feed):
    hasher = hashlib.sha256()
    for batch in FeedLoader(feed, prefetch=4):
        hasher.update(batch["input_ids"].tobytes() + batch["labels"].tobytes())
    return hasher.hexdigest()


def _read(feed, results):
    results.put(digest(feed))


def remote(world, cache):
    return TokenFeed(f"{BUCKET}/plans/{world[1]}", f"{BUCKET}/tokens", cache=world[0] / cache)


def test_bucket_feed_is_the_local_feed_through_faults(world, store):
    folder, name = world
    expected = digest(TokenFeed(folder / "plans" / name, folder / "tokens"))
    store.fault = lambda n: {0: "refuse", 1: "cut"}.get(n % 5)
    assert digest(remote(world, "one")) == expected


def test_bucket_feed_after_a_fork(world):
    """Workers of a DataLoader are forked from a process that has read already."""
    folder, name = world
    expected = digest(TokenFeed(folder / "plans" / name, folder / "tokens"))
    feed = remote(world, "two")
    assert feed[0]["input_ids"] is not None
    fork = multiprocessing.get_context("fork")
    results = fork.Queue()
    child = fork.Process(target=_read, args=(feed, results), daemon=True)
    child.start()
    assert results.get(timeout=60) == expected
    child.join(60)
    assert child.exitcode == 0


def test_bucket_object_gone_says_so(world, store):
    feed = remote(world, "three")
    for key in ("tokens/part-000.bin", "tokens/part-001.bin"):
        store.client.delete_object(Bucket="crawl", Key=key)
    with pytest.raises(StopError, match=r"s3://crawl/tokens/part-00\d.bin is missing"):
        digest(feed)
