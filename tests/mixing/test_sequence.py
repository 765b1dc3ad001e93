from __future__ import annotations

import numpy as np
import pytest

from gristmill.mixing import FeedLoader, TokenFeed
from gristmill.mixing.sequence import IGNORE, Arrays, Pool

NAMES = ("input_ids", "labels", "position_ids", "loss_mask", "provenance", "cu_seqlens")


@pytest.fixture(scope="module", name="feed")
def feed_fixture(naive, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sequence")
    return TokenFeed(naive("naive_mixing").make_plan(folder), folder / "tokens")


def address(array):
    return array.__array_interface__["data"][0]


def test_pool_gives_what_nobody_holds_and_nothing_else():
    pool = Pool()
    first = pool.take(2, 100, 64)
    where = address(first)
    assert first.shape == (2, 100)
    assert where % 4096 == 64
    view = first[1, 5:]
    del first
    other = pool.take(2, 100, 64)
    assert address(other) != where  # the view holds it
    del view
    assert address(pool.take(2, 100, 64)) == where
    assert address(pool.take(2, 101, 64)) != where


def test_pool_keeps_a_bounded_number_of_arrays():
    pool = Pool()
    held = [pool.take(1, 10, 0) for _ in range(3 * Pool.KEPT)]
    assert len({address(array) for array in held}) == len(held)
    assert len(pool._known) == Pool.KEPT


def test_held_batches_are_never_written_again(feed):
    loader = FeedLoader(feed, micro_batch=2)
    held, copies = [], []
    for batch in loader:
        held.append({name: batch[name][:] for name in NAMES})  # views alone
        copies.append({name: batch[name].copy() for name in NAMES})
    for one, two in zip(held, copies, strict=True):
        for name in NAMES:
            assert np.array_equal(one[name], two[name])


def test_samples_and_batches_agree_everywhere(feed):
    for batch in FeedLoader(feed, micro_batch=3):
        low, high = batch["positions"]
        places = batch["provenance"][:, 0].tolist()
        ends = [0]
        for i, place in enumerate(places):
            if place < 0:
                assert (batch["labels"][i] == IGNORE).all()
                ends.append(ends[-1] + batch["labels"].shape[1])
                continue
            assert low <= place < high
            sample = feed[place]
            for name in NAMES[:5]:
                assert np.array_equal(batch[name][i], sample[name]), (place, name)
            ends += (ends[-1] + sample["cu_seqlens"][1:]).tolist()
        assert batch["cu_seqlens"].tolist() == ends


def test_arrays_of_plain_text_run_on_but_not_into_documents_without_targets():
    arrays = Arrays(1, 10, 0, Pool())
    arrays.open(inside=False)
    arrays.text(np.array([5, 1]), IGNORE, target=True)
    arrays.text(np.array([6, 1]), IGNORE, target=True)  # its first is the label of the end before
    arrays.text(np.array([7, 7]), IGNORE, target=False)
    arrays.text(np.array([8, 9]), 3, target=True)
    arrays.close(10)
    arrays.finish()
    assert arrays.ids[0].tolist() == [5, 1, 6, 1, 7, 7, 8, 9, 0, 0]
    no = IGNORE
    assert arrays.labels[0].tolist() == [1, 6, 1, no, no, no, 9, 3, no, no]
    assert arrays.places[0].tolist() == list(range(10))
    assert arrays.edges == [0, 10]
