"""A supervised pool of local processes: a worker that dies costs one attempt, never the run.

`multiprocessing.Pool` (and so datatrove's local executor) waits for ever for a task whose worker
was killed; `concurrent.futures` gives up the whole pool. Here each worker has a pipe of its own:
its end tells of a death at once (a poll every 0.5 s is the second net), the task goes back into
the queue, a new process takes the place. On two cores: 0.06 s (at most 0.09 of ten) from SIGKILL
to the retry running in a new process, 0.17 s to start two workers, 0.6 ms per task handed out.

Workers live on between calls of `run`. Nothing here judges data: what a task wrote, its sidecar
says.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Self

from ..documents.errors import StopError, UsageError

PERFORM = "gristmill.pipelines.tasks:perform"
ATTEMPTS = 3
_POLL = 0.5  # seconds between looks at processes whose pipe says nothing
_FALSE_STARTS = 3  # workers in a row that die before they are ready: the set-up is broken
_BOOT = (
    "import json, sys; path, args = json.loads(sys.argv[1]); sys.path[:] = path; "
    "from gristmill.pipelines.worker import serve; serve(*args)"
)
# One task has one core: libraries must not start threads of their own beside it.
_ONE_THREAD = dict.fromkeys(
    (
        "RAYON_NUM_THREADS",
        "OMP_NUM_THREADS",  # Arrow's compute pool follows this one too
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMBA_NUM_THREADS",
    ),
    "1",
) | {"TOKENIZERS_PARALLELISM": "false"}


@dataclass(frozen=True, slots=True)
class Failure:
    """A task that was given up."""

    key: str
    attempts: int
    error: str  # the traceback's last line, or "killed by signal 9"
    kind: str = ""  # the exception's class name; empty when the process died
    exit_code: int | None = None  # what the exception asks the command line to return
    traceback: str = ""


@dataclass(slots=True)
class _Worker:
    process: subprocess.Popen[bytes]
    connection: Connection
    ready: bool = False
    task: str | None = None
    since: float = 0.0  # monotonic seconds when the task was handed out


@dataclass(slots=True)
class _Call:
    """The state of one `run`."""

    where: tuple[str, str]
    queue: deque[str]
    attempts: dict[str, int]
    progress: Callable[[str], None]
    failures: list[Failure] = field(default_factory=list)

    def failed(self, key: str, answer: dict[str, Any], limit: int) -> None:
        self.attempts[key] += 1
        if answer.get("retry", True) and self.attempts[key] < limit:
            self.queue.append(key)
            return
        self.failures.append(
            Failure(
                key,
                self.attempts[key],
                answer["error"],
                answer.get("kind", ""),
                answer.get("exit_code"),
                answer.get("traceback", ""),
            )
        )


class LocalPool:
    """`workers` supervised processes, one task at a time each. Close it, or use it in a `with`.

    `task_timeout` (seconds, default none) kills a worker that hangs; like any death that costs its
    task one of its `attempts`. It is a fault in the report, never a verdict on data.
    """

    def __init__(
        self,
        workers: int,
        *,
        perform: str = PERFORM,
        attempts: int = ATTEMPTS,
        task_timeout: float | None = None,
    ) -> None:
        if workers < 1:
            msg = f"workers: found {workers}, expected 1 or more"
            raise UsageError(msg)
        self.size = workers
        self.peak_bytes = 0  # largest peak resident memory that any worker reported, bytes
        self._perform = perform
        self._limit = attempts
        self._timeout = task_timeout
        self._workers: list[_Worker] = []
        self._false_starts = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers that live."""
        return [worker.process.pid for worker in self._workers if worker.process.poll() is None]

    def run(
        self, run_dir: Path, step: str, keys: Sequence[str], *, progress: Callable[[str], None]
    ) -> list[Failure]:
        """Do all `keys`, handed out in their order; `progress` gets each key that is done.

        Returns the tasks that were given up, sorted by key. StopError when workers cannot start.
        """
        call = _Call((str(run_dir), step), deque(keys), dict.fromkeys(keys, 0), progress)
        try:
            with sigterm_raises():
                for worker in list(self._workers):  # died while nobody looked: costs no attempt
                    if worker.process.poll() is not None:
                        self._bury(worker)
                while call.queue or any(worker.task is not None for worker in self._workers):
                    self._turn(call)
        except BaseException:
            self.close()
            raise
        return sorted(call.failures, key=lambda failure: failure.key)

    def close(self) -> None:
        """End all workers, by pid; what they were doing is lost, what they have done is not."""
        for worker in self._workers:
            worker.connection.close()
            worker.process.kill()
        for worker in self._workers:
            worker.process.wait()
        self._workers.clear()

    def _turn(self, call: _Call) -> None:
        busy = sum(worker.task is not None for worker in self._workers)
        while len(self._workers) < min(self.size, busy + len(call.queue)):
            self._start()
        for worker in self._workers:
            if worker.ready and worker.task is None and call.queue:
                self._hand_out(worker, call)
        ready = wait([worker.connection for worker in self._workers], timeout=_POLL)
        for worker in list(self._workers):
            dead = worker.process.poll() is not None  # first: what it said before is then complete
            if worker.connection in ready or dead:
                self._hear(worker, call)
            elif self._timeout and worker.task and self._elapsed(worker) > self._timeout:
                worker.process.kill()
                self._lost(worker, call, f"took longer than task_timeout = {self._timeout:g} s")

    def _start(self) -> None:
        ours, theirs = Pipe()
        path = [entry or os.getcwd() for entry in sys.path]  # noqa: PTH109 - a string, as sys.path
        boot = json.dumps([path, [theirs.fileno(), os.getpid(), self._perform]])
        process = subprocess.Popen(
            [sys.executable, "-c", _BOOT, boot],
            env=os.environ | _ONE_THREAD,
            stdin=subprocess.DEVNULL,
            stdout=2,  # stdout is data, and the driver's
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        self._workers.append(_Worker(process, ours))

    def _hand_out(self, worker: _Worker, call: _Call) -> None:
        key = call.queue.popleft()
        worker.task, worker.since = key, time.monotonic()
        with contextlib.suppress(OSError):  # it just died: the pipe's end says so in this turn
            worker.connection.send_bytes(json.dumps([*call.where, key]).encode())

    def _hear(self, worker: _Worker, call: _Call) -> None:
        try:
            said = worker.connection.recv_bytes() if worker.connection.poll() else None
        except (EOFError, OSError):
            said = None
        if said is None:
            self._lost(worker, call, None)
            return
        answer = json.loads(said)
        if not worker.ready:
            if not answer["ok"]:
                msg = f"a worker cannot load {self._perform}: {answer['traceback']}"
                raise StopError(msg)
            worker.ready, self._false_starts = True, 0
        else:
            key, worker.task = worker.task, None
            self.peak_bytes = max(self.peak_bytes, answer["peak_bytes"])
            if key is not None and answer["ok"]:
                call.progress(key)
            elif key is not None:
                call.failed(key, answer, self._limit)

    def _lost(self, worker: _Worker, call: _Call, why: str | None) -> None:
        status = self._bury(worker)
        if why is None:
            why = f"killed by signal {-status}" if status < 0 else f"exited with status {status}"
        if worker.task is not None:
            call.failed(worker.task, {"error": why}, self._limit)
        elif not worker.ready:
            self._false_starts += 1
            if self._false_starts >= _FALSE_STARTS:
                msg = (
                    f"{_FALSE_STARTS} workers in a row ended before they were ready; the last {why}"
                )
                raise StopError(msg)

    def _bury(self, worker: _Worker) -> int:
        self._workers.remove(worker)
        worker.connection.close()
        try:
            return worker.process.wait(timeout=5)
        except subprocess.TimeoutExpired:  # its pipe is gone but it is not
            worker.process.kill()
            return worker.process.wait()

    @staticmethod
    def _elapsed(worker: _Worker) -> float:
        return time.monotonic() - worker.since


@contextlib.contextmanager
def sigterm_raises() -> Iterator[None]:
    """Turn SIGTERM into SystemExit(143), so that it ends the workers as Ctrl-C does."""
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    ):
        yield
        return

    def leave(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
