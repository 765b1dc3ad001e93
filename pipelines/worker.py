"""The far side of `pool.LocalPool`: one process that does one task at a time and says how it went.

It is started with `python -c`, not by `multiprocessing`: that would import the driver's `__main__`
again (a script without its guard would start itself for ever) and keep a helper process beside it.
Messages are JSON over a socket pair, so nothing that a task raises has to survive pickling.

A worker never outlives its driver: Linux kills it when the driver dies (PR_SET_PDEATHSIG), and a
thread of its own waits for the end of the pipe, which also covers other systems.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import fcntl
import gc
import importlib
import json
import os
import queue
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ..documents.errors import GristmillError

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Ask Linux to kill this process when `parent` dies; exit now if that has happened already."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
        if os.getppid() != parent:
            os._exit(1)


def peak_bytes() -> int:
    """Peak resident memory of this process, bytes.

    VmHWM and not `ru_maxrss`: the latter starts from the parent's peak, since it survives exec.
    """
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def load(perform: str) -> Callable[[str, str, str], None]:
    """`package.module:function` -> the function."""
    module, _, function = perform.partition(":")
    found: Callable[[str, str, str], None] = getattr(importlib.import_module(module), function)
    return found


def collect_seldom() -> None:
    """Let the garbage collector pass over all that is loaded by now, and look seldom at the rest.

    What a task makes goes by reference counts; a collection walks all objects of the libraries.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def describe(error: BaseException) -> dict[str, Any]:
    """Turn an exception into plain text: `error` is what ours say, or the traceback's last line."""
    text = "".join(traceback.format_exception(error))
    ours = isinstance(error, GristmillError)
    last = traceback.format_exception_only(error)[-1].strip()
    return {
        "ok": False,
        "error": str(error) if ours else last,
        "kind": type(error).__name__,
        "exit_code": getattr(error, "exit_code", None),
        # our own errors say that a person must act: a second attempt would say the same
        "retry": not ours,
        "traceback": text,
    }


def serve(fd: int, parent: int, perform: str) -> None:
    """Do the tasks that come through the socket `fd` until it closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the driver acts
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    die_with_parent(parent)
    faulthandler.enable()  # a segfault leaves its Python stack on stderr
    connection = Connection(fd)
    fcntl.fcntl(fd, fcntl.F_SETFD, fcntl.FD_CLOEXEC)  # what a task starts must not hold the pipe
    tasks: queue.SimpleQueue[list[str]] = queue.SimpleQueue()

    def listen() -> None:
        try:
            while True:
                tasks.put(json.loads(connection.recv_bytes()))
        except (EOFError, OSError):
            os._exit(0)  # the driver closed the pool or is gone: stop at once, even inside a task

    threading.Thread(target=listen, daemon=True).start()

    def say(message: dict[str, Any]) -> None:
        try:
            connection.send_bytes(json.dumps(message).encode())
        except OSError:
            os._exit(0)

    gc.disable()  # imports make many objects and no rubbish
    try:
        function = load(perform)
    except Exception as error:  # noqa: BLE001 - whatever it is, the driver reports it
        say(describe(error))
        return
    gc.enable()
    collect_seldom()
    say({"ok": True})
    while True:
        run_dir, step, key = tasks.get()
        try:
            function(run_dir, step, key)
            answer: dict[str, Any] = {"ok": True}
        except Exception as error:  # noqa: BLE001 - a failed task is a result like another
            answer = describe(error)
        answer["peak_bytes"] = peak_bytes()
        say(answer)
