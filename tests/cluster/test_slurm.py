"""The Slurm executor on a real Slurm."""

from __future__ import annotations

import subprocess
import time

import pytest
import yaml

from gristmill.documents.errors import StopError, UsageError
from gristmill.pipelines.executors import make_executor

TASKS = {"perform": "pool_tasks:perform"}


def queued() -> str:
    return subprocess.check_output(["squeue", "--noheader"], text=True)


def run(cluster, run_dir, keys, *, workers=None, step="s", **options):
    done: list[str] = []
    executor = make_executor("slurm", workers, {**cluster.options, **TASKS, **options})
    try:
        failures = executor.run(run_dir, step, keys, progress=done.append)
    finally:
        executor.close()
    return failures, sorted(done), executor


def test_slurm_tasks_done_failures_reported_and_deaths_retried(slurm_cluster, tmp_path):
    keys = ["write-1", "write-2", "killonce-1", "raise-1", "kill-1", "usage-1"]
    failures, done, executor = run(slurm_cluster, tmp_path, keys)
    assert done == ["killonce-1", "write-1", "write-2"]
    assert [(f.key, f.attempts, f.error, f.exit_code) for f in failures] == [
        ("kill-1", 3, "killed by signal 9", None),
        ("raise-1", 3, "ValueError: no luck with raise-1", None),
        ("usage-1", 1, "usage-1 is wrong", 2),
    ]
    assert (tmp_path / "s" / "write-1").read_text() == "s write-1\n"
    assert executor.peak_bytes > 1 << 20
    assert queued() == ""


def test_slurm_rank_lost_without_a_word_is_dealt_again(slurm_cluster, tmp_path):
    """The rank's process is killed: Slurm books a failed job, its key goes into a second array."""
    failures, done, _ = run(slurm_cluster, tmp_path, ["lostonce-1", "write-1"])
    assert failures == []
    assert done == ["lostonce-1", "write-1"]
    assert len((tmp_path / "s" / "lostonce-1.tries").read_text().splitlines()) == 2
    assert sorted(path.name for path in (tmp_path / "launch").iterdir()) == ["s-1", "s-2"]


def test_slurm_more_keys_than_the_array_holds_share_ranks(slurm_cluster, tmp_path):
    keys = [f"write-{i}" for i in range(5)]
    failures, done, _ = run(slurm_cluster, tmp_path, keys, workers=1, max_array_size=2)
    assert failures == []
    assert done == keys
    results = tmp_path / "launch" / "s-1" / "results"
    assert sorted(path.name for path in results.iterdir()) == ["00000.jsonl", "00001.jsonl"]
    assert "--array=0-1%1\n" in (results.parent / "datatrove/launch_script.slurm").read_text()


def test_slurm_job_that_can_never_start_stops_and_leaves_the_queue(slurm_cluster, tmp_path):
    start = time.monotonic()
    with pytest.raises(StopError, match=r"can never start \(PartitionConfig\)"):
        run(slurm_cluster, tmp_path, ["write-1"], cpus_per_task=64)
    assert time.monotonic() - start < 60
    assert queued() == ""


def test_slurm_more_memory_than_any_node_is_refused(slurm_cluster, tmp_path):
    with pytest.raises(StopError, match="refused"):
        run(slurm_cluster, tmp_path, ["write-1"], mem_per_cpu_gb=500)


def test_slurm_time_in_seconds_is_what_yaml_makes_of_it(slurm_cluster, tmp_path):
    assert yaml.safe_load("26:01:05") == 93665
    assert run(slurm_cluster, tmp_path, ["write-1"], time=93665)[0] == []
    script = tmp_path / "launch" / "s-1" / "datatrove" / "launch_script.slurm"
    assert "--time=26:01:05\n" in script.read_text()


def test_slurm_max_ranks_deals_all_keys_to_fewer(slurm_cluster, tmp_path):
    keys = [f"write-{i}" for i in range(5)]
    assert run(slurm_cluster, tmp_path, keys, max_ranks=1)[:2] == ([], keys)
    results = tmp_path / "launch" / "s-1" / "results"
    assert [path.name for path in results.iterdir()] == ["00000.jsonl"]


@pytest.mark.parametrize(
    "wrong", [{"mem_per_cpu_gb": "two"}, {"partition": 3}, {"cpus_per_task": True}]
)
def test_slurm_option_of_a_wrong_type_is_wrong_use(slurm_cluster, wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        make_executor("slurm", None, wrong)


def test_slurm_unknown_partition_stops(slurm_cluster, tmp_path):
    with pytest.raises(StopError, match="refused"):
        run(slurm_cluster, tmp_path, ["write-1"], partition="nowhere")


def test_slurm_interrupted_driver_cancels_its_job(slurm_cluster, tmp_path):
    executor = make_executor("slurm", None, {**slurm_cluster.options, **TASKS})

    def progress(key: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        executor.run(tmp_path, "s", ["write-1", "hang-1"], progress=progress)
    end = time.monotonic() + 30
    while queued() and time.monotonic() < end:
        time.sleep(0.2)
    assert queued() == ""
