"""Shared by all tests: where real data stands, the plain-Python twins, one Hypothesis profile."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from hypothesis import HealthCheck, settings

# Where tests run in the background a shell has the interrupt ignored, and so would what they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent

settings.register_profile(
    "gristmill",
    deadline=None,  # the first call of a kernel compiles
    print_blob=True,  # a failure can be replayed
    # the same examples for everybody; GRISTMILL_RANDOM=1 draws others, and finds other faults
    derandomize="GRISTMILL_RANDOM" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("gristmill")


def load_naive(name: str) -> ModuleType:
    """Import tests/<name>.py, a module of plain-Python twins, without touching sys.path."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, ROOT / "tests" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(name="naive", scope="session")
def naive_fixture():
    """`naive("naive_filters")` gives the module of twins."""
    return load_naive


@pytest.fixture(scope="session")
def small_model():
    """`small_model(number=, kept=, rows=, args=)`: bytes of a fastText model that knows `river`."""
    return load_naive("naive_fasttext").model_bytes


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data sets, or skip: they are not part of the repository."""
    root = Path(os.environ.get("GRISTMILL_DATA", ROOT.parent / "shared" / "data"))
    if not (root / "a-warc-built").is_dir():
        pytest.skip(f"no real data at {root.name}/ (set GRISTMILL_DATA)")
    return root


DEMO = ROOT / "pipelines" / "recipes" / "demo.yaml"

# Deterministic outputs: all but timings, the driver's memory and the books (a DuckDB file's bytes
# and a report with timings differ from run to run).
VARYING = (".run.json",)
DRIVER = {"run.json", "inputs.seen", "ledger.duckdb", "report.html", "lock.json"}

SMALL = """
name: small
root: {root}
shard_bytes: 100 KiB
sources:
  web:
    paths: {web}
    converter: main_text
    max_loss: 0.5
    stages: [language, gopher_quality, gopher_repetition, c4, fineweb_quality]
  wet:
    paths: ["wet/*.wet.gz"]
    converter: plain
    removal_cap: 1
    max_loss: 0.02
    stages: [language, gopher_quality, c4]
  notes:
    paths: ["books/notes.jsonl.zst"]
    converter: plain
    removal_cap: 1
    max_loss: 0.5
  agent: {{paths: ["agent/*.jsonl.gz"], converter: trajectory, reader: {{text_field: null}}}}
shared: [exact_duplicates, near_duplicates]
mixture:
  global_batch: 4
  block: 16
  slices: {{web: {{source: [web, wet]}}, agent: {{source: [agent]}}}}
  stages:
    - name: base
      tokens: 64Ki
      sequence_length: 512
      packing: concat
      weights: {{web: 1}}
      max_epochs: 4
    - name: agentic
      tokens: 16Ki
      sequence_length: 2048
      weights: {{agent: 1, web: 1}}
      max_epochs: 40
"""


def snapshot(run: Path) -> dict[str, str]:
    """Digests of all deterministic outputs of a run, by name."""
    found = {}
    for path in sorted(run.rglob("*")):
        name = path.relative_to(run).as_posix()
        plain = name.removesuffix(".json")
        if path.is_dir() or name.endswith(VARYING) or name in DRIVER or plain in DRIVER:
            continue
        assert not path.name.startswith("."), f"a temporary file was left: {name}"
        found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def differing(a: dict[str, str], b: dict[str, str]) -> list[str]:
    """Names that differ between two snapshots."""
    return sorted(n for n in a.keys() | b.keys() if a.get(n) != b.get(n))


def small_recipe(
    folder: Path, *, web: list[str] | None = None, change: tuple[str, str] = ("", "")
) -> Path:
    """Write the small recipe into `folder`; `change` replaces one stretch of its text."""
    names = web or ["web/pages-00000.warc.gz", "web/truncated.warc.gz"]
    text = SMALL.format(root=ROOT / "sample_data", web=names)
    if change[0]:
        assert change[0] in text
        text = text.replace(*change)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "small.yaml"
    path.write_text(text)
    return path


def gristmill(*args: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user does."""
    command = [sys.executable, "-m", "gristmill", *map(str, args)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **(env or {})}
    )


@pytest.fixture(scope="session")
def mill() -> SimpleNamespace:
    """The helpers of this file."""
    return SimpleNamespace(
        snapshot=snapshot, differing=differing, small_recipe=small_recipe, command=gristmill
    )


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory) -> Path:
    """The demo's run folder, made once."""
    out = tmp_path_factory.mktemp("demo") / "run"
    done = gristmill("run", DEMO, "--out", out, "--workers", 2)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="session")
def small_run(tmp_path_factory) -> Path:
    """A small run in this process's eyes: one worker, made once."""
    folder = tmp_path_factory.mktemp("small")
    done = gristmill("run", small_recipe(folder), "--out", folder / "run", "--workers", 1)
    assert done.returncode == 0, done.stderr
    return folder / "run"
