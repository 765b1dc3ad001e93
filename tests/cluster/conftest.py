"""A real Slurm (two nodes) and a real Ray (two nodes) on loopback, each in a folder of its own.

All processes run in the foreground as children of this one and are ended by process id; whatever
they left behind is found by the folder's name in its environment. Nothing under /etc or /run is
touched, ports are free ones. Where an engine is not installed or does not start, its tests skip.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

TASKS = Path(__file__).resolve().parent.parent / "pipelines"  # pool_tasks.py
PARTS = ("munged", "slurmctld", "slurmd", "scontrol", "sbatch", "squeue", "sinfo", "srun")


@dataclass(frozen=True)
class Cluster:
    """A started engine: `make_executor(name, workers, options)` reaches it."""

    name: str
    options: Mapping[str, Any]
    env: Mapping[str, str]  # already set in os.environ; pass it to a driver with a bare environment
    state: Path


def pytest_collection_modifyitems(items):
    here = str(Path(__file__).parent)
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.cluster)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now, below the range of outgoing connections."""
    with contextlib.ExitStack() as stack:
        found: list[int] = []
        for port in range(20000 + os.getpid() % 5000, 32000):
            s = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                s.bind(("127.0.0.1", port))
                found.append(port)
            if len(found) == count:
                return found
    pytest.skip("no free ports on loopback")


def _die_with_tests() -> None:
    """Linux ends the engine when the test process is killed (PR_SET_PDEATHSIG = 1)."""
    ctypes.CDLL(None).prctl(1, int(signal.SIGTERM))


class Engine:
    """Processes with a state folder, a log each, and an end."""

    def __init__(self, name: str) -> None:
        self.state = Path(tempfile.mkdtemp(prefix=f"gm-{name}-"))
        self.env = {"GRISTMILL_TEST_CLUSTER": str(self.state)}
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, *command: str) -> None:
        name = f"{len(self.processes)}-{Path(command[0]).name}"
        with (self.state / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                env=os.environ | self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=_die_with_tests,  # noqa: PLW1509 - one call, no Python state
            )
        self.processes.append(process)

    def wait_for(self, what: str, *command: str, seconds: float = 40) -> None:
        """Until the command prints `what`; otherwise skip, with the ends of all logs."""
        end = time.monotonic() + seconds
        seen = ""
        while time.monotonic() < end:
            done = subprocess.run(
                command, env=os.environ | self.env, capture_output=True, text=True, check=False
            )
            seen = done.stdout + done.stderr
            if what in done.stdout:
                return
            if any(process.poll() is not None for process in self.processes):
                break
            time.sleep(0.1)
        logs = "\n".join(
            f"{log.name}: {log.read_text(errors='replace')[-600:]}"
            for log in sorted(self.state.glob("*.log"))
        )
        pytest.skip(f"{command[0]} never said {what!r}, but {seen!r}\n{logs}")

    def end(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for _ in range(50):
            left = self.left_over()
            if not left:
                break
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)
        shutil.rmtree(self.state, ignore_errors=True)

    def left_over(self) -> list[int]:
        """Processes that were started with this engine's environment, by process id."""
        mark = f"GRISTMILL_TEST_CLUSTER={self.state}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with contextlib.suppress(OSError):
                    if mark in (entry / "environ").read_bytes():
                        found.append(int(entry.name))
        return found


@contextlib.contextmanager
def engine(name: str) -> Iterator[Engine]:
    it = Engine(name)
    try:
        yield it
    finally:
        it.end()


SLURM_CONF = """\
ClusterName=gristmill
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# cred_expire: a requeued job waits for the old credential's end, 120 s by default
AuthInfo=socket={state}/munge.sock,cred_expire=5
CredType=cred/munge
SlurmctldPort={ports[0]}
StateSaveLocation={state}/ctld
SlurmdSpoolDir={state}/d-%n
SlurmdPidFile={state}/slurmd-%n.pid
SlurmdLogFile={state}/slurmd-%n.log
SlurmctldPidFile={state}/slurmctld.pid
SlurmctldLogFile={state}/slurmctld.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=6
KillWait=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=sched_interval=1,bf_interval=2,sched_min_interval=0
# two nodes on one machine, each with the CPUs and memory that it claims
SlurmdParameters=config_overrides
MinJobAge=600
DefMemPerCPU=512
JobRequeue=1
MaxArraySize=1001
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2 RealMemory=8000
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2 RealMemory=8000
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


@pytest.fixture(scope="session")
def slurm_cluster() -> Iterator[Cluster]:
    """Slurm with two nodes; SLURM_CONF and PYTHONPATH are set in the environment."""
    pytest.importorskip("datatrove", reason="pip install -r requirements-cluster.lock")
    absent = [part for part in PARTS if shutil.which(part) is None]
    if absent:
        pytest.skip(f"no {absent}: apt-get install slurmctld slurmd slurm-client munge")
    if os.geteuid() != 0:
        pytest.skip("munged and slurmd start as root only")
    with engine("slurm") as it, pytest.MonkeyPatch.context() as patch:
        host = socket.gethostname().partition(".")[0]
        conf = it.state / "slurm.conf"
        conf.write_text(SLURM_CONF.format(host=host, state=it.state, ports=free_ports(3)))
        key = it.state / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)
        for folder in ("ctld", "d-n1", "d-n2"):
            (it.state / folder).mkdir()
        it.env |= {"SLURM_CONF": str(conf), "PYTHONPATH": str(TASKS)}
        it.start(
            "munged",
            "--foreground",
            "--force",
            *(f"--{name}={it.state}/munge.{name[:-5]}" for name in ("key-file", "pid-file")),
            f"--socket={it.state}/munge.sock",
            f"--seed-file={it.state}/munge.seed",
        )
        it.wait_for("munge.sock", "ls", str(it.state))
        it.start("slurmctld", "-D", "-c", "-f", str(conf))
        it.start("slurmd", "-D", "-N", "n1", "-f", str(conf))
        it.start("slurmd", "-D", "-N", "n2", "-f", str(conf))
        it.wait_for("2 idle", "sinfo", "--noheader", "--format", "%D %T")
        for name, value in it.env.items():
            patch.setenv(name, value)
        yield Cluster("slurm", {"mem_per_cpu_gb": 1, "time": "00:10:00"}, it.env, it.state)
        subprocess.run(["scancel", "--user", "root"], check=False)


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[Cluster]:
    """Ray with two nodes of one CPU; its token and PYTHONPATH are set in the environment."""
    pytest.importorskip("datatrove", reason="pip install -r requirements-cluster.lock")
    ray = str(Path(sys.executable).with_name("ray"))
    if not Path(ray).exists():
        pytest.skip("no ray: pip install -r requirements-cluster.lock")
    with engine("ray") as it, pytest.MonkeyPatch.context() as patch:
        (port,) = free_ports(1)
        address = f"127.0.0.1:{port}"
        it.env |= {
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_TMPDIR": str(it.state),
            "PYTHONPATH": str(TASKS),
        }
        node = (
            "--node-ip-address=127.0.0.1",
            "--num-cpus=1",
            "--memory=2000000000",
            "--object-store-memory=100000000",
            "--disable-usage-stats",
            "--block",
        )
        head = ("--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={it.state}")
        it.start(ray, "start", *head, *node)
        count = (
            "import ray; ray.init(address={!r}, log_to_driver=False); print(len(ray.nodes()), 'up')"
        )
        it.wait_for("1 up", sys.executable, "-c", count.format(address), seconds=60)
        it.start(ray, "start", f"--address={address}", *node)
        it.wait_for("2 up", sys.executable, "-c", count.format(address), seconds=60)
        for name, value in it.env.items():
            patch.setenv(name, value)
        yield Cluster("ray", {"address": address, "mem_per_cpu_gb": 0.5}, it.env, it.state)
