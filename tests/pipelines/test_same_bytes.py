"""The same bytes for any number of workers, order of shards, CPU, and after any kill."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gristmill.pipelines.driver import run_recipe
from gristmill.pipelines.tasks import perform


class Shuffled:
    """An executor in this process that does the tasks of a step in a seeded random order."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.order: list[str] = []

    def run(self, run_dir, step, keys, *, progress):
        shuffled = list(keys)
        self.random.shuffle(shuffled)
        self.order += shuffled
        for key in shuffled:
            perform(str(run_dir), step, key)
        return []

    def close(self):
        pass


@pytest.mark.parametrize("workers", [2, 4])
def test_run_any_number_of_workers_same_bytes(mill, small_run, tmp_path, workers):
    done = mill.command(
        "run", mill.small_recipe(tmp_path), "--out", tmp_path / "run", "--workers", workers
    )
    assert done.returncode == 0, done.stderr
    assert mill.differing(mill.snapshot(small_run), mill.snapshot(tmp_path / "run")) == []


def test_run_shuffled_shards_and_paths_same_bytes(mill, small_run, tmp_path):
    web = ["web/truncated.warc.gz", "web/pages-00000.warc.gz"]
    recipe = mill.small_recipe(tmp_path, web=web)
    executor = Shuffled(1)
    run_recipe(recipe, tmp_path / "run", executor=executor)
    assert executor.order != sorted(executor.order)
    left = mill.differing(mill.snapshot(small_run), mill.snapshot(tmp_path / "run"))
    assert left == ["recipe.yaml", "recipe.yaml.json"]  # the listing itself is all that differs


def test_run_generic_cpu_same_bytes(mill, small_run, tmp_path):
    env = {"NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    done = mill.command(
        "run", mill.small_recipe(tmp_path), "--out", tmp_path / "run", "--workers", 2, env=env
    )
    assert done.returncode == 0, done.stderr
    assert mill.differing(mill.snapshot(small_run), mill.snapshot(tmp_path / "run")) == []


def _children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    try:
        return [int(p) for p in path.read_text().split()]
    except OSError:
        return []


def _start(recipe: Path, out: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "gristmill", "run", str(recipe), "--out", str(out)]
    return subprocess.Popen(
        [*command, "--workers", "2"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _wait_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + 5
    while any(Path(f"/proc/{p}/cmdline").is_file() and _alive(p) for p in pids):
        assert time.monotonic() < deadline, "workers outlived their driver by 5 s"
        time.sleep(0.05)


def _alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False


def test_run_driver_or_worker_killed_at_ten_moments_same_bytes(mill, small_run, tmp_path):
    recipe = mill.small_recipe(tmp_path)
    moments = random.Random(20261130)
    kills = {"driver": 0, "worker": 0}
    for attempt in range(10):
        process = _start(recipe, tmp_path / "run")
        time.sleep(moments.uniform(0.3, 4.0))
        workers = [p for p in _children(process.pid) if _alive(p)]
        victim = "driver" if attempt % 2 == 0 else "worker"
        if victim == "driver" and process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills["driver"] += 1
        elif victim == "worker" and workers:
            os.kill(moments.choice(workers), signal.SIGKILL)
            kills["worker"] += 1
        process.wait(timeout=120)
        _wait_gone(workers)
    assert kills["driver"] >= 2
    done = mill.command("run", recipe, "--out", tmp_path / "run", "--workers", 2)
    assert done.returncode == 0, done.stderr
    left = mill.differing(mill.snapshot(small_run), mill.snapshot(tmp_path / "run"))
    assert left == []
    assert mill.command("verify", tmp_path / "run").returncode == 0
