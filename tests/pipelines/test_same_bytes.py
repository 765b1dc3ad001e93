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


@pytest.mark.nightly  # compiles all kernels anew: 200 s
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


def _made(run: Path) -> int:
    """Outputs that are committed: the measure of time here, whatever the machine's speed."""
    return sum(1 for _ in run.rglob("*.run.json"))


def test_run_driver_or_worker_killed_at_ten_moments_same_bytes(mill, small_run, tmp_path):
    recipe, out = mill.small_recipe(tmp_path), tmp_path / "run"
    chance = random.Random(20261130)
    whole = _made(small_run)
    moments = sorted(chance.sample(range(1, whole - whole // 10), 10))
    process = _start(recipe, out)
    for number, moment in enumerate(moments):
        if process.poll() is not None:
            process = _start(recipe, out)
        while _made(out) < moment:
            assert process.poll() is None, "the run ended before its moment"
            time.sleep(0.002)
        workers = [p for p in _children(process.pid) if _alive(p)]
        while number % 2 and not workers:  # some steps are the driver's own
            assert process.poll() is None, "the run ended before its moment"
            time.sleep(0.002)
            workers = [p for p in _children(process.pid) if _alive(p)]
        if number % 2:
            os.kill(chance.choice(workers), signal.SIGKILL)
        else:
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=60)
            _wait_gone(workers)
    process.wait(timeout=120)
    done = mill.command("run", recipe, "--out", out, "--workers", 2)
    assert done.returncode == 0, done.stderr
    assert mill.differing(mill.snapshot(small_run), mill.snapshot(out)) == []
    assert mill.command("verify", out).returncode == 0
