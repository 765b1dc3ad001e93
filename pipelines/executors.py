"""Who does the tasks: local processes, Slurm or Ray. An executor only hands out keys.

A task is (run folder, step, key); `gristmill.pipelines.tasks:perform` does it and writes its
outputs with their sidecars. What is done, the sidecars say: the driver looks at them after each
call, whatever an executor reports. So executors may lose an answer or do a task twice, harmlessly.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from ..documents.errors import UsageError, did_you_mean
from .pool import ATTEMPTS, PERFORM, Failure, LocalPool

__all__ = ["Executor", "Failure", "LocalPool", "make_executor", "prepare_environment", "ranks_for"]

EXECUTORS = ("local", "slurm", "ray")


class Executor(Protocol):
    """Hands tasks out and waits for them. One step at a time; reusable for the next step."""

    def run(
        self, run_dir: Path, step: str, keys: Sequence[str], *, progress: Callable[[str], None]
    ) -> list[Failure]:
        """Do every key; `progress` gets each one done; what was given up comes back, by key."""
        ...

    def close(self) -> None:
        """End what this executor started: processes, jobs, connections."""
        ...


def cpu_count() -> int:
    """CPUs that this process may use (a container or Slurm may grant fewer than exist)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def make_executor(
    name: str, workers: int | None, options: Mapping[str, Any] | None = None
) -> Executor:
    """Return the executor called `name`; `workers` tasks at a time (None: all CPUs, or no limit).

    Options of `local`: attempts, task_timeout (s). Of `slurm` and `ray`: the fields of
    `launch.SlurmOptions` and `launch.RayOptions`. UsageError for an unknown name or option, and
    when what the executor needs is not installed.
    """
    options = dict(options or {})
    if name == "local":
        known = {"attempts": ATTEMPTS, "task_timeout": None, "perform": PERFORM}
        for key in options:
            if key not in known:
                msg = f"executor local: unknown option {key!r}{did_you_mean(key, known)}"
                raise UsageError(msg)
        prepare_environment()
        return LocalPool(cpu_count() if workers is None else workers, **(known | options))
    if name not in EXECUTORS:
        msg = f"unknown executor {name!r}{did_you_mean(name, EXECUTORS)}"
        raise UsageError(msg)
    try:
        from . import launch
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "datatrove":
            raise
        msg = f"executor {name} needs datatrove: pip install 'gristmill[{name}]'"
        raise UsageError(msg) from error
    prepare_environment()
    return launch.make(name, workers, options)


def ranks_for(keys: int, limit: int) -> int:
    """Return how many ranks do `keys` keys when one array holds `limit`: one array, always.

    datatrove chains several arrays and waits for the last one only. 1,000 keys in an array of 1,001
    are 1,000 ranks; 1,002 keys are 501 ranks of two.
    """
    each = -(-keys // limit)
    return -(-keys // each) if keys else 0


def prepare_environment(*, node_local: bool = False) -> Path:
    """Set NUMBA_CACHE_DIR where nobody has, before Numba is imported; returns the folder.

    The default is the user's cache folder; on a cluster (`node_local`) it is the node's temporary
    folder, since a home folder is usually a network share there. Numba's cache is pickles, so a
    folder that others could have prepared is never taken: it must be ours, with mode 0700.
    """
    given = os.environ.get("NUMBA_CACHE_DIR")
    home = _user_cache()
    if given and not (node_local and home and Path(given) == home):
        return Path(given)
    temporary = Path(tempfile.gettempdir()) / f"gristmill-numba-{os.getuid()}"
    for folder in (temporary,) if node_local or home is None else (home, temporary):
        if _is_ours(folder):
            break
    else:
        folder = Path(tempfile.mkdtemp(prefix="gristmill-numba-"))
    os.environ["NUMBA_CACHE_DIR"] = str(folder)
    return folder


def _user_cache() -> Path | None:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    return Path(base) / "gristmill" / "numba" if os.path.isabs(base) else None  # noqa: PTH117


def _is_ours(folder: Path) -> bool:
    """Make `folder` if need be; True when it is a real folder that only this user can write."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return False
    own = status.st_uid == os.getuid() and not status.st_mode & 0o022 and not folder.is_symlink()
    return own and os.access(folder, os.W_OK | os.X_OK)
