"""How long `gristmill --help` takes: the least and the median of a few starts of Python.

The goal is 0.3 s. On two cores under load 6: least 0.08, median 0.21, of which Python itself 0.06.
Help of a command takes 0.09 s more where pydantic is installed, since Typer then imports it.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

ROUNDS = 9


def measure(*command: str) -> list[float]:
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - start)
    return seconds


if __name__ == "__main__":
    for name, command in {
        "python -c pass": ("-c", "pass"),
        "gristmill --help": ("-m", "gristmill", "--help"),
        "gristmill run --help": ("-m", "gristmill", "run", "--help"),
    }.items():
        found = measure(*command)
        print(f"{name:<22} least {min(found):.3f} s, median {statistics.median(found):.3f} s")
