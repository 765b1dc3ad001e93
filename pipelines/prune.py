"""After a whole run: remove what no step of it names.

A shard that is gone, a pass that was renamed, a partition that is no more: what they left would
make the folder differ from a fresh run's. Plans stay as long as the tokens that they refer to do: a
trainer may be reading one.
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from ..mixing.feed import REMOVED
from .tasks import steps_of

if TYPE_CHECKING:
    from .run import Run

FOLDERS = (
    "documents", "losses", "attributes", "accounts", "manifests", "exchange", "decisions", "corpus",
    "tokens",
)  # fmt: skip


def prune(run: Run) -> list[str]:
    """Remove what is left over; returns the names of the outputs that went."""
    wanted: set[str] = set()
    for step in steps_of(run):
        for key in step.keys(run):
            for name in step.outputs(run, key):
                wanted |= {name, f"{name}.json", f"{name}.run.json"}
    gone = []
    for folder in FOLDERS:
        for path in sorted(run.store.path(folder).rglob("*")):
            name = path.relative_to(run.store.root).as_posix()
            if path.is_file() and name not in wanted:
                path.unlink()
                gone.append(name)
    _plans(run, gone)
    shutil.rmtree(run.store.path("launch"), ignore_errors=True)  # logs of tasks that all went well
    for folder in FOLDERS:
        for path in sorted(run.store.path(folder).rglob("*"), reverse=True):
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()
    return gone


def _plans(run: Run, gone: list[str]) -> None:
    """Remove plans over tokens that are no more."""
    pointer = run.store.path("plans/current.json")
    if not pointer.is_file():
        return
    current = json.loads(pointer.read_bytes())["plan"]
    for folder in sorted(run.store.path("plans").iterdir()):
        if not folder.is_dir() or folder.name == current or folder.name.startswith("."):
            continue
        if (folder / REMOVED).is_file():  # it has tokens of its own: a trainer may be on it
            continue
        if not _tokens_stand(run, folder.name):
            shutil.rmtree(folder)
            gone.append(f"plans/{folder.name}")


def _tokens_stand(run: Run, plan: str) -> bool:
    try:
        content = json.loads(run.store.path(f"plans/{plan}/plan.json").read_bytes())
        shards = {s["name"]: s["digest"] for s in content["shards"]}
    except (OSError, ValueError, KeyError, TypeError):
        return False
    sides = {n: run.store.present(f"tokens/{n}.bin") for n in shards}
    return all(s is not None and s.digest == shards[n] for n, s in sides.items())
