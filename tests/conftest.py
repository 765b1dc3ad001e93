"""Shared by all tests: where real data stands, the plain-Python twins, one Hypothesis profile."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

settings.register_profile(
    "gristmill",
    deadline=None,  # the first call of a kernel compiles
    print_blob=True,  # a failure can be replayed
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
def real_data() -> Path:
    """The folder of real data sets, or skip: they are not part of the repository."""
    root = Path(os.environ.get("GRISTMILL_DATA", ROOT.parent / "shared" / "data"))
    if not (root / "a-warc-built").is_dir():
        pytest.skip(f"no real data at {root.name}/ (set GRISTMILL_DATA)")
    return root
