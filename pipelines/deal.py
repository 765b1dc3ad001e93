"""How keys reach the ranks of a cluster job, and how what came of them comes back: by files.

Each call gets a fresh folder RUN/launch/<step>-<n>:

    deal.json             run folder, step, keys, ranks; rank r does keys[r::ranks]
    results/<rank>.jsonl  a line per key as it ends: {"key": ..., "error": null or text, ...}

A rank does its keys through a `LocalPool` of one, so a killed task is retried on the spot; a key
without a line was lost with its rank and is dealt again, three times in all. The lines drive the
progress bar and the report; whether a key is done, the sidecars decide.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from .executors import prepare_environment, ranks_for
from .pool import ATTEMPTS, Failure, LocalPool, sigterm_raises

_SETTLE = 2.0  # seconds for the last lines to become visible here


def do_share(folder: Path, rank: int) -> None:
    """Do rank `rank`'s keys that have no line yet (a rank that was requeued goes on)."""
    prepare_environment(node_local=True)
    deal = json.loads((folder / "deal.json").read_text(encoding="utf-8"))
    results = folder / "results" / f"{rank:05d}.jsonl"
    done = {line["key"] for line in _lines(results)}
    with (
        results.open("a", encoding="utf-8") as file,
        LocalPool(1, perform=deal["perform"], task_timeout=deal["task_timeout"]) as pool,
    ):

        def book(**line: Any) -> None:
            # the newline in front ends a line that a killed predecessor left torn
            file.write("\n" + json.dumps(line | {"peak_bytes": pool.peak_bytes}) + "\n")
            file.flush()
            os.fsync(file.fileno())

        def progress(key: str) -> None:
            book(key=key, error=None)

        mine = [key for key in deal["keys"][rank :: deal["ranks"]] if key not in done]
        for failure in pool.run(Path(deal["run_dir"]), deal["step"], mine, progress=progress):
            book(**dataclasses.asdict(failure))


class Dealer:
    """What both have in common: deal, submit, listen, deal again what was lost."""

    def __init__(self, workers: int | None, options: Any) -> None:
        self.workers = -1 if workers is None else workers
        self.options = options
        self.peak_bytes = 0  # largest peak resident memory that any task's worker reported, bytes

    def run(
        self, run_dir: Path, step: str, keys: Sequence[str], *, progress: Callable[[str], None]
    ) -> list[Failure]:
        """Do all `keys` (see `executors.Executor`). StopError when the engine cannot run them."""
        failures: list[Failure] = []
        missing = list(keys)
        lost = ""
        for _ in range(ATTEMPTS):
            if not missing:
                break
            folder, ranks = self._deal(Path(run_dir).resolve(), step, missing)
            heard: set[str] = set()

            def listen(folder: Path = folder, heard: set[str] = heard) -> None:
                for line in _results(folder):
                    if line["key"] in heard:
                        continue
                    heard.add(line["key"])
                    self.peak_bytes = max(self.peak_bytes, line.pop("peak_bytes"))
                    if line["error"] is None:
                        progress(line["key"])
                    else:
                        failures.append(Failure(**line))

            with sigterm_raises():
                lost = self._submit(folder, ranks, listen)
            listen()
            if len(heard) < len(missing):  # lost, or not yet visible on a network share
                time.sleep(_SETTLE)
                listen()
            missing = [key for key in missing if key not in heard]
        failures += [Failure(key, ATTEMPTS, lost) for key in missing]
        return sorted(failures, key=lambda failure: failure.key)

    def close(self) -> None:
        """Nothing is kept between calls."""

    def _deal(self, run_dir: Path, step: str, keys: list[str]) -> tuple[Path, int]:
        launch = run_dir / "launch"
        launch.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"[^\w.-]", "_", step)
        number = 1
        while True:
            folder = launch / f"{name}-{number}"
            with contextlib.suppress(FileExistsError):
                folder.mkdir()
                break
            number += 1
        (folder / "results").mkdir()
        limit = self._array_limit()
        ranks = ranks_for(len(keys), min(limit, self.options.max_ranks or limit))
        deal = {
            "run_dir": str(run_dir),
            "step": step,
            "keys": keys,
            "ranks": ranks,
            "perform": self.options.perform,
            "task_timeout": self.options.task_timeout,
        }
        (folder / "deal.json").write_text(json.dumps(deal), encoding="utf-8")
        return folder, ranks

    def _array_limit(self) -> int:
        raise NotImplementedError

    def _submit(self, folder: Path, ranks: int, listen: Callable[[], None]) -> str:
        """Run the deal to its end; returns how to name the loss of a key without a result."""
        raise NotImplementedError


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the whole lines of a results file; a torn one (its writer died) counts as absent."""
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            if line:
                yield json.loads(line)


def _results(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted((folder / "results").iterdir()):
        yield from _lines(path)
