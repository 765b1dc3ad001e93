"""Against the real libraries (make test-trainers): order, state and kills in any world."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import signal
import subprocess
import sys

import numpy as np
import pytest

from gristmill.documents.errors import UsageError
from gristmill.mixing import FeedLoader, TokenFeed

pytestmark = [
    pytest.mark.trainers,
    pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="torch is not installed"),
    pytest.mark.filterwarnings("ignore"),  # torch warns of its own deprecations
]


@pytest.fixture(scope="module", name="folder")
def folder_fixture(naive, tmp_path_factory):
    """Holds `plan` and `tokens`."""
    folder = tmp_path_factory.mktemp("torch")
    (folder / "plan.txt").write_text(str(naive("naive_mixing").make_plan(folder)))
    return folder


@pytest.fixture(name="feed")
def feed_fixture(folder):
    return TokenFeed((folder / "plan.txt").read_text(), folder / "tokens")


def whole(feed):
    """{position: input_ids} of the plan, from the feed alone."""
    return {p: feed[p]["input_ids"].tolist() for p in range(len(feed))}


def rows(batch):
    return [
        (int(where[0]), ids.tolist())
        for where, ids in zip(batch["provenance"], batch["input_ids"], strict=True)
        if where[0] >= 0
    ]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_data_loader_any_workers_is_the_plain_loader(feed, workers):
    from gristmill.mixing.adapters.torch import FeedDataLoader

    plain = list(FeedLoader(feed, micro_batch=2))
    loader = FeedDataLoader(FeedLoader(feed, micro_batch=2), workers=workers)
    for mine, theirs in zip(loader, plain, strict=True):
        for key in ("input_ids", "labels", "position_ids", "loss_mask", "cu_seqlens"):
            assert mine[key].numpy().tobytes() == theirs[key].tobytes()
        assert tuple(mine["positions"]) == theirs["positions"]
    assert loader.state_dict()["position"] == len(feed)


def test_worlds_and_workers_change_at_every_resume(feed):
    """8 -> 7 -> 24 -> 1 ranks with 0, 1, 3 and 2 workers: one order, nothing lost or repeated."""
    from gristmill.mixing.adapters.torch import FeedDataLoader

    state, seen = None, []
    for world, workers, stop in [(8, 0, 60), (7, 1, 120), (24, 3, 150), (1, 2, None)]:
        got, states = [], []
        for rank in range(world):
            loader = FeedDataLoader(FeedLoader(feed, rank=rank, world=world), workers=workers)
            if state is not None:
                loader.load_state_dict(json.loads(json.dumps(state)))
            for batch in loader:
                got += rows(batch)
                if batch["last"] and stop is not None and batch["positions"][1] >= stop:
                    break
            states.append(loader.state_dict())
        assert all(s == states[0] for s in states)
        state = states[0]
        seen += sorted(got)
    assert [p for p, _ in seen] == list(range(len(feed)))
    assert dict(seen) == whole(feed)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("stop", [1, 5, 20])
def test_stateful_data_loader_goes_on_within_a_step(feed, workers, stop):
    stateful = pytest.importorskip("torchdata.stateful_dataloader")
    from gristmill.mixing.adapters.torch import FeedDataset

    def fresh():
        dataset = FeedDataset(FeedLoader(feed, world=2, rank=1))
        return stateful.StatefulDataLoader(dataset, batch_size=None, num_workers=workers)

    expected = [rows(b) for b in FeedLoader(feed, world=2, rank=1)]
    first = fresh()
    begun = iter(first)
    got = [rows(next(begun)) for _ in range(stop)]
    state = first.state_dict()
    del begun
    second = fresh()
    second.load_state_dict(state)
    got += [rows(b) for b in second]
    assert got == expected


RANKS = """
import json, multiprocessing, os, sys
from gristmill.mixing import FeedLoader, TokenFeed
from gristmill.mixing.adapters.torch import FeedDataLoader
plan, tokens, state, logs, *numbers = sys.argv[1:]
world, workers, micro = map(int, numbers)
context = multiprocessing.get_context("fork")
together = context.Barrier(world)

def train(rank):
    loader = FeedDataLoader(
        FeedLoader(TokenFeed(plan, tokens), rank=rank, world=world, micro_batch=micro),
        workers=workers,
    )
    if os.path.exists(state):
        loader.load_state_dict(json.load(open(state)))
    together.wait()  # nobody writes the state before all have read it
    with open(f"{logs}/{world}-{rank}.jsonl", "a") as out:
        for batch in loader:
            for where, ids in zip(batch["provenance"].tolist(), batch["input_ids"].tolist()):
                if where[0] >= 0:
                    out.write(json.dumps([where[0], ids]) + "\\n")
            if batch["last"]:
                out.flush()
                together.wait()
                if rank == 0:
                    with open(state + ".new", "w") as file:
                        json.dump(loader.state_dict(), file)
                    os.replace(state + ".new", state)
                    print(batch["positions"][1], flush=True)

ranks = [context.Process(target=train, args=(rank,)) for rank in range(world)]
for one in ranks:
    one.start()
for one in ranks:
    one.join()
sys.exit(any(one.exitcode for one in ranks))
"""


@pytest.fixture(name="start")
def start_fixture(folder, feed, tmp_path):
    """`start(world, workers, micro)`: ranks in processes of their own, that go on from a state."""
    (tmp_path / "train.py").write_text(RANKS)
    (tmp_path / "logs").mkdir()
    told = [feed.plan.folder, folder / "tokens", tmp_path / "state.json", tmp_path / "logs"]

    def start(*numbers):
        return subprocess.Popen(
            [sys.executable, *map(str, (tmp_path / "train.py", *told, *numbers))],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a group of its own: one signal ends ranks and workers
        )

    return start


def kill(child, steps):
    """SIGKILL after whole steps; one that was under way is read again, the same."""
    for _ in range(steps):
        assert child.stdout.readline()
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()


def finished(child, logs):
    """{position: input_ids} of what all ranks have read, when the last of them has ended."""
    child.communicate()
    assert child.returncode == 0
    found = {}
    for log in sorted(logs.iterdir()):
        for line in log.read_text().splitlines():
            try:
                position, ids = json.loads(line)
            except ValueError:  # cut by the kill, and read again
                continue
            assert found.setdefault(position, ids) == ids
    return found


@pytest.mark.parametrize("workers", [0, 2])
def test_killed_at_any_step_nothing_lost_or_changed(start, feed, tmp_path, workers):
    for steps in (2, 7, 11):
        kill(start(1, workers, 3), steps)
    assert finished(start(1, workers, 3), tmp_path / "logs") == whole(feed)


@pytest.mark.parametrize("seed", [1, 2])
def test_ranks_of_any_world_killed_at_random_steps_read_one_order(start, feed, tmp_path, seed):
    """8 -> 7 -> 24 -> 1 ranks in processes of their own, all killed at once, somewhere."""
    chance = random.Random(seed)
    for world, workers in ((8, 0), (7, 3), (24, 1), (1, 3)):
        kill(start(world, workers, 1), chance.randint(1, 9))
    assert finished(start(1, 0, 1), tmp_path / "logs") == whole(feed)


def test_grain_reads_the_feed_as_it_stands(feed):
    grain = pytest.importorskip("grain")
    source = grain.MapDataset.source(feed)
    assert len(source) == len(feed)
    for position in (0, 7, len(feed) - 1):
        assert source[position]["input_ids"].tolist() == feed[position]["input_ids"].tolist()


def test_megatron_sample_keys_and_masks(feed):
    from gristmill.mixing.adapters.megatron import PlanDataset

    dataset = PlanDataset(feed)
    assert len(dataset) == len(feed)
    for position in (0, 120, len(feed) - 1):
        sample, mine = feed[position], dataset[position]
        assert mine["tokens"].tolist() == sample["input_ids"].tolist()
        mask = mine["loss_mask"].numpy() > 0
        assert mask.tolist() == sample["loss_mask"].tolist()
        assert mine["labels"].numpy()[mask].tolist() == sample["labels"][mask].tolist()
        assert (mine["labels"].numpy()[~mask] == 0).all()


def test_hugging_face_labels_stand_beside_their_tokens(feed):
    from gristmill.mixing.adapters.huggingface import FeedItems

    for position in (0, 120, len(feed) - 1):
        sample, item = feed[position], FeedItems(feed)[position]
        labels = item["labels"].numpy()
        assert labels[0] == -100
        told = np.flatnonzero(labels != -100)
        assert (labels[told] == sample["input_ids"][told]).all()
        assert told.tolist() == (np.flatnonzero(sample["loss_mask"][:-1]) + 1).tolist()


def test_data_loader_wrong_numbers_are_named(feed):
    from gristmill.mixing.adapters.torch import FeedDataLoader

    with pytest.raises(UsageError, match="workers -1"):
        FeedDataLoader(FeedLoader(feed), workers=-1)
    with pytest.raises(UsageError, match="prefetch 0"):
        FeedDataLoader(FeedLoader(feed), prefetch=0)


def test_no_process_is_left(feed):
    from gristmill.mixing.adapters.torch import FeedDataLoader

    loader = iter(FeedDataLoader(FeedLoader(feed), workers=2))
    next(loader)
    loader.close()
    children = subprocess.run(
        ["ps", "--ppid", str(os.getpid()), "-o", "args="],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.splitlines()
    assert [c for c in children if not c.startswith("ps ") and "resource_tracker" not in c] == []
