"""Pages are extracted in a process beside the reader's, so that one that hangs costs itself alone.

Limits in bytes and nodes keep known traps out, the same on every machine. What they do not know (a
page on which a library goes round for ever, or dies) happens in the child: its kernel limit on CPU
time (RLIMIT_CPU) ends it, the reader starts another and asks once more, and a page that ends two
children is one row in the books, `extract_hang` or `extract_crash`, a fault; the pages before and
after it never notice. CPU time and not the clock: a busy machine decides as an idle one does. The
clock is a second net, ten times wider, for what waits and does not compute.

The reader waits while a record is with the child, so a task still has one core. The child ends with
its reader (end of pipe, and PR_SET_PDEATHSIG). Pickle goes between two processes of ours and never
touches a file.
"""

from __future__ import annotations

import atexit
import json
import os
import pickle
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, ClassVar

from ...documents.errors import StopError
from ...documents.records import Draft, Loss, Record, Skip

CPU_SECONDS = 20  # of one record: far above what a page takes (280-300 a second, one core)
_WIDER = 10  # times as long on the clock
_TRIES = 2
_BATCH = 16  # records on the way to the child at once
_BATCH_BYTES = 4 << 20
_BOOT = (
    "import json, sys; path, args = json.loads(sys.argv[1]); sys.path[:] = path; "
    "from gristmill.pipelines.convert.guard import serve; serve(*args)"
)
Converter = Callable[[Iterator[Record | Loss | Skip]], Iterator[Draft | Loss | Skip]]
Out = Draft | Loss | Skip


def guarded(
    converter: Converter, items: Iterator[Record | Loss | Skip]
) -> Iterator[Draft | Loss | Skip]:
    """What `converter` makes of the items, record by record, in order, in a child process.

    For converters that look at one record at a time. Records without a body stay here.
    """
    held: list[Record | Out] = []
    size = bodies = 0
    for item in items:
        held.append(item)
        if isinstance(item, Record) and item.body is not None:
            size += len(item.body)
            bodies += 1
        if bodies >= _BATCH or size >= _BATCH_BYTES or len(held) >= 64 * _BATCH:
            yield from _convert(converter, held)
            held, size, bodies = [], 0, 0
    yield from _convert(converter, held)


def _convert(converter: Converter, held: list[Record | Out]) -> Iterator[Out]:
    pages = [i for i in held if isinstance(i, Record) and i.body is not None]
    answers = iter(_ask(converter, pages))
    for item in held:
        if not isinstance(item, Record):
            yield item
        elif item.body is None:
            yield from converter(iter([item]))
        else:
            yield from next(answers)


def _ask(converter: Converter, pages: list[Record]) -> list[list[Out]]:
    """The answer for each page; a page that ends the child twice becomes a loss."""
    answers: list[list[Out]] = []
    tries = 0
    while len(answers) < len(pages):
        child = Child.running()
        left = pages[len(answers) :]
        came = child.convert(converter, left)
        answers += came
        if len(came) == len(left):
            break
        tries = 1 if came else tries + 1
        why = child.end()
        if tries == _TRIES:
            answers.append([_loss(left[len(came)], why)])
            tries = 0
    return answers


def _loss(record: Record, status: int | None) -> Loss:
    if status in {None, -signal.SIGXCPU}:
        spent = f"{CPU_SECONDS} s of CPU time"
        detail = f"ended {_TRIES} times: {spent if status else f'no answer for {_WIDER} x {spent}'}"
        return Loss(locator=record.locator, reason="extract_hang", detail=detail, url=record.url)
    how = f"signal {-status}" if status is not None and status < 0 else f"status {status}"
    detail = f"the extracting process ended {_TRIES} times on this page, the last time by {how}"
    return Loss(locator=record.locator, reason="extract_crash", detail=detail, url=record.url)


class Child:
    """The process that extracts for this one; started when it is first needed."""

    current: ClassVar[Child | None] = None

    def __init__(self) -> None:
        ours, theirs = Pipe()
        path = [entry or os.getcwd() for entry in sys.path]  # noqa: PTH109 - a string, as sys.path
        boot = json.dumps([path, [theirs.fileno(), os.getpid(), CPU_SECONDS]])
        self.owner = os.getpid()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BOOT, boot],
            stdin=subprocess.DEVNULL,
            stdout=2,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        self._connection: Connection = ours
        try:
            ready = ours.poll(60) and ours.recv_bytes() == b"ready"
        except (EOFError, OSError):
            ready = False
        if not ready:
            self.end()
            msg = "the extracting process does not start; what it said stands above"
            raise StopError(msg)

    @classmethod
    def running(cls) -> Child:
        """The child of this process; another one after a fork or an end."""
        if cls.current is None or cls.current.owner != os.getpid():
            cls.current = cls()
        return cls.current

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def convert(self, converter: Converter, pages: list[Record]) -> list[list[Out]]:
        """Answers in order; fewer than pages when the child ended or said nothing for too long."""
        answers: list[list[Out]] = []
        try:
            self._connection.send_bytes(pickle.dumps((converter, pages), pickle.HIGHEST_PROTOCOL))
            while len(answers) < len(pages):
                if not self._connection.poll(_WIDER * CPU_SECONDS):
                    break
                failed, answer = pickle.loads(self._connection.recv_bytes())  # noqa: S301 - ours
                if failed:
                    raise answer
                answers.append(answer)
        except (EOFError, OSError):
            pass
        return answers

    def end(self) -> int | None:
        """End it; its exit status, or None when it had to be killed."""
        type(self).current = None
        try:
            status: int | None = self._process.wait(timeout=0.2)
        except subprocess.TimeoutExpired:
            status = None
        self._process.kill()
        self._process.wait()
        self._connection.close()
        return status


@atexit.register
def close() -> None:
    """End the child of this process, if there is one."""
    child = Child.current
    if child is not None and child.owner == os.getpid():
        child.end()


def serve(fd: int, parent: int, cpu_seconds: int) -> None:
    """The child: convert what comes, each record under its own limit, until the pipe ends."""
    from ..worker import die_with_parent

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent(parent)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    connection = Connection(fd)
    connection.send_bytes(b"ready")
    while True:
        try:
            converter, pages = pickle.loads(connection.recv_bytes())  # noqa: S301 - from our parent
        except EOFError:
            return
        for page in pages:
            used = resource.getrusage(resource.RUSAGE_SELF)
            spent = int(used.ru_utime + used.ru_stime) + 1
            resource.setrlimit(resource.RLIMIT_CPU, (spent + cpu_seconds, most))
            answer: Any
            try:
                answer = (False, list(converter(iter([page]))))
            except Exception as error:  # noqa: BLE001 - raised again where the reader is
                answer = (True, error)
            connection.send_bytes(pickle.dumps(answer, pickle.HIGHEST_PROTOCOL))
