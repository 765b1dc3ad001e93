"""Tasks for the executor tests: the key says what happens. Imports nothing heavy."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from pathlib import Path

from gristmill.documents.errors import ContractError, DamagedError, UsageError

OWN_ERRORS = {"usage": UsageError, "contract": ContractError, "damaged": DamagedError}


def perform(run_dir: str, step: str, key: str) -> None:
    """`write-1` writes; `kill-1` dies; `killonce-1` dies at its first attempt; and so on."""
    out = Path(run_dir) / step
    out.mkdir(parents=True, exist_ok=True)
    with (out / f"{key}.tries").open("a") as file:
        file.write(f"{os.getpid()} {time.monotonic()} {os.uname().nodename}\n")
    tries = len((out / f"{key}.tries").read_text().splitlines())
    verb = key.partition("-")[0]
    if verb == "kill" or (verb == "killonce" and tries == 1):
        os.kill(os.getpid(), signal.SIGKILL)
    elif verb == "lostonce" and tries == 1:  # the rank's process: its parent here
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    elif verb == "actoronce" and tries == 1:  # the parent of that one
        status = Path(f"/proc/{os.getppid()}/stat").read_text()
        os.kill(int(status.rpartition(")")[2].split()[1]), signal.SIGKILL)
        time.sleep(60)
    elif verb == "segfault":
        ctypes.string_at(0)
    elif verb == "exit":
        sys.exit(7)
    elif verb == "raise" or (verb == "raiseonce" and tries == 1):
        msg = f"no luck with {key}"
        raise ValueError(msg)
    elif verb in OWN_ERRORS:
        raise OWN_ERRORS[verb](f"{key} is wrong")
    elif verb in {"hang", "sleep"} or (verb == "hangonce" and tries == 1):
        time.sleep(600 if verb.startswith("hang") else float(key.split("-")[1]))
    elif verb == "env":
        (out / "env.json").write_text(json.dumps(dict(os.environ)))
    elif verb == "print":
        print("talk from a task")  # noqa: T201
    elif verb == "memory":
        filled = bytearray(200 << 20)
        filled[::4096] = b"x" * len(filled[::4096])
    temporary = out / f".{key}.{os.getpid()}"
    temporary.write_text(f"{step} {key}\n")
    temporary.replace(out / key)
