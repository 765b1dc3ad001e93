"""Slurm and Ray, thin: one class each that hands out the same keys through datatrove's executors.

Of datatrove only the submission is used; what came of a key, `deal.py` knows. Its completion
markers, `depends=`, statistics and exit state are never asked. This is the only module that imports
datatrove; 0.10.1 was read and tried (`executor/slurm.py`, `executor/ray.py`). RUN must be on
storage that all nodes share.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import re
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import UnionType
from typing import Any, ClassVar, Union, get_args, get_origin, get_type_hints

import datatrove.executor.ray
from datatrove.executor.ray import RayPipelineExecutor, RayTaskManager
from datatrove.executor.slurm import SlurmPipelineExecutor
from datatrove.pipeline.base import PipelineStep
from loguru import logger

from ..documents.errors import StopError, UsageError, did_you_mean
from .deal import Dealer, do_share
from .executors import Executor
from .pool import PERFORM
from .worker import die_with_parent

_log = logging.getLogger(__name__)


def make(name: str, workers: int | None, options: Mapping[str, Any]) -> Executor:
    """Return the executor `slurm` or `ray`; UsageError for an unknown option."""
    fields = SlurmOptions if name == "slurm" else RayOptions
    known = get_type_hints(fields)
    for key, value in options.items():
        if key not in known:
            msg = f"executor {name}: unknown option {key!r}{did_you_mean(key, known)}"
            raise UsageError(msg)
        if not _fits(value, known[key]):
            msg = f"executor {name}: option {key}: found {value!r}, expected {known[key]}"
            raise UsageError(msg)
    if workers is not None and workers < 1:
        msg = f"workers: found {workers}, expected 1 or more"
        raise UsageError(msg)
    if name == "slurm":
        return SlurmExecutor(workers, SlurmOptions(**options))
    return RayExecutor(workers, RayOptions(**options))


def _fits(value: Any, hint: Any) -> bool:
    """Whether `value` is of the (perhaps united) type `hint`; an int is a good float."""
    kinds = [get_origin(kind) or kind for kind in (get_args(hint) if _is_union(hint) else (hint,))]
    if isinstance(value, bool):
        return bool in kinds
    return isinstance(value, tuple(kinds)) or (isinstance(value, int) and float in kinds)


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in {Union, UnionType}


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class SlurmOptions:
    """What a job asks of Slurm; the fields are those of sbatch."""

    partition: str | None = None  # None: the cluster's default
    time: str | int = "24:00:00"  # HH:MM:SS for one array task, or seconds: YAML reads 24:00:00 so
    cpus_per_task: int = 1
    mem_per_cpu_gb: int = 2
    qos: str | None = None
    venv_path: str | None = None  # an `activate` script; None: of the running interpreter's venv
    sbatch_args: Mapping[str, str] = dataclasses.field(default_factory=dict)
    max_array_size: int | None = None  # None: the cluster's own MaxArraySize
    max_ranks: int | None = None  # at most so many ranks per call: fewer starts, coarser shares
    task_timeout: float | None = None  # seconds, see LocalPool
    perform: str = PERFORM


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class RayOptions:
    """What a rank asks of Ray, and where Ray is."""

    address: str = "auto"  # host:port, "auto" for the cluster of this node, "local" to start one
    cpus_per_task: int = 1
    mem_per_cpu_gb: float = 2
    max_ranks: int | None = None  # at most so many ranks per call: fewer starts, coarser shares
    task_timeout: float | None = None  # seconds, see LocalPool
    perform: str = PERFORM


class Deal(PipelineStep):  # type: ignore[misc]
    """The one datatrove step: does this rank's share of the deal in `folder`."""

    name = "gristmill tasks"
    type = "gristmill"

    def __init__(self, folder: str, *, die_with_actor: bool) -> None:
        super().__init__()
        self.folder = folder
        self.die_with_actor = die_with_actor

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> Iterator[Any]:
        """Do keys[rank::ranks]."""
        if self.die_with_actor:  # we are a fork that would survive its actor, and go on writing
            die_with_parent(os.getppid())
        do_share(Path(self.folder), rank)
        yield from data or ()


class _Array(SlurmPipelineExecutor):  # type: ignore[misc]
    """datatrove's submission without the statistics job that follows each array."""

    def launch_merge_stats(self) -> None:
        """Do nothing: a second job would wait in the queue for numbers that nobody reads."""


# Reasons for which a job waits for ever: a person must change the options or the cluster.
_HOPELESS = re.compile(
    r"BadConstraints|DependencyNeverSatisfied|Invalid(Account|QOS)|JobHeld|"
    r"launch_failed_requeued_held|Partition(Config|NodeLimit|TimeLimit)|QOS(MaxCpu|MaxMemory|MaxNode|"
    r"MaxWallDuration)PerJobLimit"
)


class SlurmExecutor(Dealer):
    """One Slurm array per call; `workers` is the array's throttle (`%n`)."""

    options: SlurmOptions

    def __init__(self, workers: int | None, options: SlurmOptions) -> None:
        super().__init__(workers, options)
        try:
            config = _slurm("scontrol", "show", "config")
        except FileNotFoundError as error:
            msg = "executor slurm: no scontrol here; install slurm-client or start on a login node"
            raise UsageError(msg) from error
        found = re.search(r"^MaxArraySize\s*=\s*(\d+)", config, re.MULTILINE)
        own = int(found[1]) if found else 1001
        self._limit = min(own, options.max_array_size or own)

    def _array_limit(self) -> int:
        return self._limit

    def _submit(self, folder: Path, ranks: int, listen: Callable[[], None]) -> str:
        options = self.options
        activate = options.venv_path or str(Path(sys.prefix) / "bin" / "activate")
        if not Path(activate).is_file():
            msg = f"executor slurm: venv_path: no such file: {activate}"
            raise UsageError(msg)
        inside = os.environ.pop("SLURM_ARRAY_TASK_ID", None)  # datatrove would take us for a task
        try:
            with _quiet():
                array = _Array(
                    [Deal(str(folder), die_with_actor=False)],
                    tasks=ranks,
                    time=_hours(options.time),
                    partition=options.partition or _default_partition(),
                    cpus_per_task=options.cpus_per_task,
                    mem_per_cpu_gb=options.mem_per_cpu_gb,
                    workers=self.workers,
                    job_name="gristmill",
                    qos=options.qos,
                    venv_path=activate,
                    sbatch_args={"kill-on-invalid-dep": "yes"} | dict(options.sbatch_args),
                    max_array_size=self._limit,
                    logging_dir=str(folder / "datatrove"),
                    mail_type="NONE",
                )
                array.run()
        except (OSError, subprocess.CalledProcessError) as error:
            msg = f"executor slurm: sbatch refused the job ({error}); its words stand above"
            raise StopError(msg) from error
        finally:
            if inside is not None:
                os.environ["SLURM_ARRAY_TASK_ID"] = inside
        try:
            self._wait(array.job_id, listen)
        except BaseException:
            _slurm("scancel", array.job_id)
            raise
        return f"lost with Slurm job {array.job_id}: see {array.slurm_logs_folder}"

    @staticmethod
    def _wait(job: str, listen: Callable[[], None]) -> None:
        pause = 0.5  # seconds; grows to 10, since a controller serves a whole cluster
        while True:
            listen()
            states = _queue(job)
            if not states:
                return
            for state, reason in states:
                if state == "PENDING" and _HOPELESS.search(reason):
                    msg = (
                        f"Slurm job {job} can never start ({reason}): see `scontrol show job {job}`"
                    )
                    raise StopError(msg)
            time.sleep(pause)
            pause = min(10.0, pause * 1.1)


def _queue(job: str) -> list[tuple[str, str]]:
    """(state, reason) of what is left of a job in the queue; empty when it has ended."""
    try:
        rows = _slurm("squeue", "--noheader", "--jobs", job, "--format", "%T|%r").splitlines()
    except subprocess.CalledProcessError as error:
        if "Invalid job id" in error.stderr:  # ended so long ago that the controller forgot it
            return []
        _log.warning("squeue: %s; asking again", error.stderr.strip())
        return [("UNKNOWN", "")]  # the controller is away: the job goes on without it
    return [(state, reason) for state, _, reason in (row.partition("|") for row in rows)]


def _slurm(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _hours(time: str | int) -> str:
    """Turn seconds into the HH:MM:SS of sbatch; a text is already what sbatch takes."""
    if isinstance(time, str):
        return time
    return f"{time // 3600:02}:{time // 60 % 60:02}:{time % 60:02}"


def _default_partition() -> str:
    names = _slurm("sinfo", "--noheader", "--format", "%P").split()
    starred = [name[:-1] for name in names if name.endswith("*")]
    if not starred:
        msg = f"executor slurm: the cluster has no default partition; set partition: {names}"
        raise UsageError(msg)
    return starred[0]


class _Groups(RayTaskManager):  # type: ignore[misc]
    """datatrove waits for ever for a rank whose submission failed; here the error comes out."""

    errors: ClassVar[list[BaseException]] = []

    def submit_task(self, *args: Any) -> Future[Any]:
        """Submit, and pass an error of the submitting thread on to who waits for it."""
        submitted: Future[Any] = super().submit_task(*args)

        def settle(thread: Future[None]) -> None:
            error = None if thread.cancelled() else thread.exception()
            if error is not None and not submitted.done():
                self.errors.append(error)
                submitted.set_exception(error)

        self.pg_futures[-1].add_done_callback(settle)
        return submitted


datatrove.executor.ray.RayTaskManager = _Groups


class RayExecutor(Dealer):
    """One actor per rank on a Ray cluster, `workers` at a time.

    Known gap: when the fork in which datatrove runs a rank is killed alone (its actor and its task
    are not), datatrove waits for ever; interrupt, and the same command resumes.
    """

    options: RayOptions

    def __init__(self, workers: int | None, options: RayOptions) -> None:
        super().__init__(workers, options)
        try:
            import ray
        except ModuleNotFoundError as error:
            msg = "executor ray needs ray, which is not installed: pip install 'gristmill[ray]'"
            raise UsageError(msg) from error
        self._ray = ray
        self._started = not ray.is_initialized()
        if self._started:
            path = os.environ.get("PYTHONPATH")
            try:
                ray.init(
                    address=options.address,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    runtime_env={"env_vars": {"PYTHONPATH": path}} if path else None,
                )
            except (ConnectionError, RuntimeError, ValueError) as error:
                msg = f"executor ray: no cluster at {options.address!r}: {error}"
                raise StopError(msg) from error

    def _array_limit(self) -> int:
        """Four ranks per slot: a rank costs about 1 s (placement group, actor), a key does not."""
        cpus = int(self._ray.cluster_resources().get("CPU", 1)) // self.options.cpus_per_task
        return 4 * max(1, cpus if self.workers == -1 else min(self.workers, cpus))

    def _submit(self, folder: Path, ranks: int, listen: Callable[[], None]) -> str:
        self._check_resources()
        _Groups.errors.clear()
        with _quiet():
            group = RayPipelineExecutor(
                [Deal(str(folder), die_with_actor=True)],
                tasks=ranks,
                workers=self.workers,
                cpus_per_task=self.options.cpus_per_task,
                mem_per_cpu_gb=self.options.mem_per_cpu_gb,
                logging_dir=str(folder / "datatrove"),
            )
            self._wait(group, listen)
        incomplete = group.get_incomplete_ranks()
        return f"lost with {len(incomplete)} of {ranks} Ray ranks, see {folder / 'datatrove'}"

    def _wait(self, group: RayPipelineExecutor, listen: Callable[[], None]) -> None:
        """Let datatrove's loop run beside ours; it never raises for a failed rank."""
        thread = threading.Thread(target=group.run, name="datatrove-ray", daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(timeout=0.5)
                listen()
                if _Groups.errors:
                    msg = f"executor ray: submitting a rank failed: {_Groups.errors[0]!r}"
                    raise StopError(msg)  # noqa: TRY301 - it must close, too
        except BaseException:
            self.close()  # ends the actors and placement groups, and so the thread
            raise

    def _check_resources(self) -> None:
        """StopError when no node could ever hold a rank; datatrove would wait for ever."""
        need = {
            "CPU": float(self.options.cpus_per_task),
            "memory": self.options.mem_per_cpu_gb * self.options.cpus_per_task * (1 << 30),
        }
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        if not any(all(node.get(k, 0) >= v for k, v in need.items()) for node in nodes):
            has = [{k: node.get(k, 0) for k in need} for node in nodes]
            msg = (
                f"executor ray: a rank needs {need} (CPUs, bytes) on one node; the nodes have {has}"
            )
            raise StopError(msg)

    def close(self) -> None:
        """Leave the cluster."""
        if self._started:
            self._ray.shutdown()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep datatrove's talk out of the driver's stderr; each rank's log has it."""
    logger.disable("datatrove")
    try:
        with warnings.catch_warnings():  # datatrove uses arguments that Ray will drop one day
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        logger.enable("datatrove")
