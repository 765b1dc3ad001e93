"""The local pool: deaths, exceptions, hangs, and that nothing outlives the driver."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from gristmill.documents.errors import StopError, UsageError
from gristmill.pipelines.executors import make_executor, prepare_environment
from gristmill.pipelines.pool import LocalPool

HERE = Path(__file__).resolve().parent
PERFORM = "pool_tasks:perform"

DRIVER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from gristmill.pipelines.pool import LocalPool
pool = LocalPool(2, perform="pool_tasks:perform")
print("started", flush=True)
pool.run(Path(sys.argv[2]), "s", ["hang-1", "hang-2"], progress=print)
"""


@pytest.fixture(autouse=True)
def _tasks_importable(monkeypatch):
    monkeypatch.syspath_prepend(str(HERE))


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def until(condition, seconds: float = 20.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False


def tries(run_dir: Path, key: str, step: str = "s") -> list[list[str]]:
    """One [pid, monotonic seconds, host] per attempt."""
    path = run_dir / step / f"{key}.tries"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def run(pool: LocalPool, run_dir: Path, keys: list[str], step: str = "s"):
    done: list[str] = []
    return pool.run(run_dir, step, keys, progress=done.append), sorted(done)


def test_pool_many_tasks_all_done_by_all_workers(tmp_path):
    keys = [f"sleep-0.05-{i}" for i in range(12)]
    with LocalPool(2, perform=PERFORM) as pool:
        failures, done = run(pool, tmp_path, keys)
        assert len(pool.pids) == 2
    assert failures == []
    assert done == sorted(keys)
    assert all((tmp_path / "s" / key).read_text() == f"s {key}\n" for key in keys)
    assert len({tries(tmp_path, key)[0][0] for key in keys}) == 2


def test_pool_no_tasks_starts_nothing(tmp_path):
    with LocalPool(4, perform=PERFORM) as pool:
        assert run(pool, tmp_path, []) == ([], [])
        assert pool.pids == []


def test_pool_workers_stay_between_steps(tmp_path):
    with LocalPool(1, perform=PERFORM) as pool:
        run(pool, tmp_path, ["write-1"], "first")
        run(pool, tmp_path, ["write-1"], "second")
        assert pool.pids == [int(tries(tmp_path, "write-1", "first")[0][0])]
        assert pool.pids == [int(tries(tmp_path, "write-1", "second")[0][0])]
        assert 0 < pool.peak_bytes < 200 << 20


def test_pool_worker_killed_from_outside_noticed_within_5_s(tmp_path):
    """SIGKILL at a running task: the retry starts on a new process well before five seconds."""
    killed: list[float] = []

    def kill() -> None:
        if until(lambda: tries(tmp_path, "hangonce-1")):
            killed.append(time.monotonic())
            os.kill(int(tries(tmp_path, "hangonce-1")[0][0]), signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    with LocalPool(2, perform=PERFORM) as pool:
        failures, done = run(pool, tmp_path, ["hangonce-1", "write-1"])
    thread.join()
    assert failures == []
    assert done == ["hangonce-1", "write-1"]
    first, second = tries(tmp_path, "hangonce-1")
    assert first[0] != second[0]
    notice = float(second[1]) - killed[0]
    print(f"retry started {notice:.3f} s after SIGKILL")  # noqa: T201 - `pytest -rA` shows it
    assert 0 <= notice < 5


@pytest.mark.parametrize(
    ("key", "error"),
    [
        ("kill-1", "killed by signal 9"),
        ("segfault-1", "killed by signal 11"),
        ("exit-1", "exited with status 7"),
    ],
)
def test_pool_task_that_always_kills_its_worker_fails_after_three(tmp_path, key, error):
    with LocalPool(2, perform=PERFORM) as pool:
        failures, done = run(pool, tmp_path, [key, *(f"write-{i}" for i in range(5))])
    assert [(f.key, f.attempts, f.error) for f in failures] == [(key, 3, error)]
    assert len(tries(tmp_path, key)) == 3
    assert done == [f"write-{i}" for i in range(5)]


def test_pool_exception_fails_after_three_and_names_itself(tmp_path):
    with LocalPool(2, perform=PERFORM) as pool:
        failures, done = run(pool, tmp_path, ["raise-1", "raiseonce-1", "write-1"])
    (failure,) = failures
    assert (failure.key, failure.attempts, failure.kind) == ("raise-1", 3, "ValueError")
    assert failure.error == "ValueError: no luck with raise-1"
    assert "pool_tasks.py" in failure.traceback
    assert failure.exit_code is None
    assert done == ["raiseonce-1", "write-1"]
    assert len(tries(tmp_path, "raiseonce-1")) == 2


@pytest.mark.parametrize(("key", "code"), [("usage-1", 2), ("contract-1", 3), ("damaged-1", 3)])
def test_pool_own_errors_fail_at_once_and_keep_their_exit_code(tmp_path, key, code):
    with LocalPool(1, perform=PERFORM) as pool:
        failures, done = run(pool, tmp_path, [key, "write-1"])
    assert [(f.key, f.attempts, f.exit_code) for f in failures] == [(key, 1, code)]
    assert failures[0].error.endswith(f"{key} is wrong")
    assert done == ["write-1"]


def test_pool_task_timeout_kills_and_books(tmp_path):
    with LocalPool(2, perform=PERFORM, task_timeout=2, attempts=2) as pool:
        failures, done = run(pool, tmp_path, ["hang-1", "hangonce-1", "write-1"])
    assert [(f.key, f.attempts) for f in failures] == [("hang-1", 2)]
    assert "task_timeout = 2 s" in failures[0].error
    assert done == ["hangonce-1", "write-1"]
    assert not any(alive(int(pid)) for pid, *_ in tries(tmp_path, "hang-1"))


def test_pool_worker_dead_between_calls_costs_no_attempt(tmp_path):
    with LocalPool(1, perform=PERFORM, attempts=1) as pool:
        run(pool, tmp_path, ["write-1"])
        os.kill(pool.pids[0], signal.SIGKILL)
        assert until(lambda: not pool.pids)
        assert run(pool, tmp_path, ["write-2"]) == ([], ["write-2"])


@pytest.mark.parametrize("perform", ["no_such_module:perform", "pool_tasks:no_such_function"])
def test_pool_unknown_perform_stops_and_names_it(tmp_path, perform):
    with LocalPool(2, perform=perform) as pool, pytest.raises(StopError, match="no_such"):
        run(pool, tmp_path, ["write-1"])


def test_pool_workers_that_never_start_stop_the_run(tmp_path, monkeypatch):
    (tmp_path / "bad").write_text("#!/bin/sh\nexit 4\n")
    (tmp_path / "bad").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bad"))
    with LocalPool(1, perform=PERFORM) as pool, pytest.raises(StopError, match="status 4"):
        run(pool, tmp_path, ["write-1"])


def test_pool_worker_environment_has_one_thread_and_quiet_stdout(tmp_path, capfd):
    with LocalPool(1, perform=PERFORM) as pool:
        failures, _ = run(pool, tmp_path, ["env-1", "print-1"])
    assert failures == []
    text = (tmp_path / "s" / "env.json").read_text()
    for name in ("RAYON", "OMP", "OPENBLAS", "NUMBA"):
        assert f'"{name}_NUM_THREADS": "1"' in text
    assert '"TOKENIZERS_PARALLELISM": "false"' in text
    out, err = capfd.readouterr()
    assert out == ""
    assert "talk from a task" in err


def test_pool_peak_memory_is_the_workers_own(tmp_path):
    """A driver that has held much must not show in its workers' peaks; a task that does, must."""
    held = bytearray(300 << 20)
    held[::4096] = b"x" * len(held[::4096])
    with LocalPool(1, perform=PERFORM) as pool:
        run(pool, tmp_path, ["write-1"])
        assert pool.peak_bytes < 200 << 20
        run(pool, tmp_path, ["memory-1"])
        assert 200 << 20 < pool.peak_bytes < 300 << 20
    del held


def test_pool_exception_in_the_driver_ends_the_workers(tmp_path):
    pool = LocalPool(2, perform=PERFORM)

    def progress(key: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pool.run(tmp_path, "s", ["write-1", "hang-1"], progress=progress)
    assert pool.pids == []
    assert not any(alive(int(pid)) for pid, *_ in tries(tmp_path, "hang-1"))


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, -2), (signal.SIGKILL, -9)]
)
def test_pool_driver_ended_leaves_no_orphan(tmp_path, number, status):
    command = [sys.executable, "-c", DRIVER, str(HERE), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as driver:
        keys = ("hang-1", "hang-2")
        assert until(lambda: all(tries(tmp_path, key) for key in keys))
        pids = [int(tries(tmp_path, key)[0][0]) for key in keys]
        assert all(alive(pid) for pid in pids)
        driver.send_signal(number)
        try:
            assert driver.wait(timeout=10) == status
        finally:
            driver.kill()  # or a driver that goes on is waited for
        assert until(lambda: not any(alive(pid) for pid in pids), 5)


def test_pool_zero_workers_is_wrong_use():
    with pytest.raises(UsageError, match="workers: found 0"):
        LocalPool(0)


def test_executor_unknown_names_say_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'slurm'"):
        make_executor("slrum", 1)
    with pytest.raises(UsageError, match="did you mean 'task_timeout'"):
        make_executor("local", 1, {"task_timout": 3})


def test_environment_numba_cache_is_ours_and_private(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    folder = prepare_environment()
    assert folder == tmp_path / "cache" / "gristmill" / "numba"
    assert os.environ["NUMBA_CACHE_DIR"] == str(folder)
    assert folder.stat().st_mode & 0o777 == 0o700


def test_environment_numba_cache_set_by_the_user_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "mine"))
    assert prepare_environment() == tmp_path / "mine"
    assert prepare_environment(node_local=True) == tmp_path / "mine"


def test_environment_numba_cache_writable_by_others_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    expected = tmp_path / f"gristmill-numba-{os.getuid()}"
    assert prepare_environment(node_local=True) == expected
    expected.chmod(0o777)
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    other = prepare_environment(node_local=True)
    assert other != expected
    assert other.stat().st_mode & 0o777 == 0o700
