"""The Ray executor on a real Ray."""

from __future__ import annotations

import pytest

from gristmill.documents.errors import StopError, UsageError
from gristmill.pipelines.executors import make_executor

TASKS = {"perform": "pool_tasks:perform"}


@pytest.fixture
def executor(ray_cluster):
    it = make_executor("ray", 2, {**ray_cluster.options, **TASKS})
    yield it
    it.close()


def test_ray_tasks_done_failures_reported_and_deaths_retried(executor, tmp_path):
    """`actoronce` kills the Ray worker itself: its rank is run again, and nobody writes twice."""
    done: list[str] = []
    keys = ["write-1", "killonce-1", "raise-1", "usage-1", "actoronce-1"]
    failures = executor.run(tmp_path, "s", keys, progress=done.append)
    assert sorted(done) == ["actoronce-1", "killonce-1", "write-1"]
    assert [(f.key, f.attempts, f.error, f.exit_code) for f in failures] == [
        ("raise-1", 3, "ValueError: no luck with raise-1", None),
        ("usage-1", 1, "usage-1 is wrong", 2),
    ]
    assert len((tmp_path / "s" / "actoronce-1.tries").read_text().splitlines()) == 2
    assert executor.peak_bytes > 1 << 20


def test_ray_second_step_on_the_same_connection(executor, tmp_path):
    for step in ("first", "second"):
        assert executor.run(tmp_path, step, ["write-1"], progress=lambda _: None) == []
        assert (tmp_path / step / "write-1").read_text() == f"{step} write-1\n"


def test_ray_rank_that_no_node_can_hold_stops(ray_cluster, tmp_path):
    executor = make_executor("ray", 1, {**ray_cluster.options, "mem_per_cpu_gb": 500})
    try:
        with pytest.raises(StopError, match="on one node"):
            executor.run(tmp_path, "s", ["write-1"], progress=lambda _: None)
    finally:
        executor.close()


def test_ray_unknown_option_says_the_nearest(ray_cluster):
    with pytest.raises(UsageError, match="did you mean 'address'"):
        make_executor("ray", 1, {"adress": "x"})


def test_ray_many_keys_share_few_ranks(executor, tmp_path):
    keys = [f"write-{i:02}" for i in range(20)]
    done: list[str] = []
    assert executor.run(tmp_path, "s", keys, progress=done.append) == []
    assert sorted(done) == keys
    assert len(list((tmp_path / "launch" / "s-1" / "results").iterdir())) == 7  # ceil(20 / 3)


def test_ray_submission_that_fails_stops_instead_of_waiting(executor, tmp_path, monkeypatch):
    """datatrove loses an error of its submitting threads and waits for ever."""

    def broken(*args, **kwargs):
        raise RuntimeError("no placement today")

    monkeypatch.setattr("ray.util.placement_group", broken)
    with pytest.raises(StopError, match="no placement today"):
        executor.run(tmp_path, "s", ["write-1"], progress=lambda _: None)
