"""The house: packages listed are those that exist, the wheel holds them, imports run downwards."""

from __future__ import annotations

import ast
import hashlib
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FLOORS = ("documents", "ledger", "filters", "dedup", "mixing", "pipelines")
# What a folder may import of ours beside itself; "" is the root module.
MAY = {
    "documents": set(),
    "ledger": {"documents"},
    "filters": {"documents", "ledger"},
    "dedup": {"documents", "ledger"},
    "mixing": {"documents", "ledger"},
    "pipelines": {"documents", "ledger", "filters", "dedup", "mixing", ""},
}
# Helpers of kernels that do something else than those of the same name in other files.
OTHERS = {
    "filters/_kernels_pii.py": {"_at"},
    "filters/_kernels_secrets.py": {"_at", "_back", "_key", "_last"},
    "filters/fasttext/_kernels.py": {"_at", "_wide", "_is_space"},
    "pipelines/convert/weed/_kernels.py": {"_key", "_slot"},
}
MODULE = "gristmill.filters._kernels_common."
HEAVY = ("numpy", "pyarrow", "duckdb", "numba", "datatrove", "ray", "tokenizers", "resiliparse")


def sources(folder: str) -> list[Path]:
    return sorted(p for p in (ROOT / folder).rglob("*.py") if "__pycache__" not in p.parts)


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """(line, absolute module) of every import in a file, wherever it stands."""
    package = ["gristmill", *path.relative_to(ROOT).parent.parts]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield node.lineno, name.name
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *(node.module.split(".") if node.module else [])])
            for name in node.names:
                yield node.lineno, f"{stem}.{name.name}"


def floor_of(module: str) -> str | None:
    """The folder that an import goes to, "" for the root module, None when it is not ours."""
    parts = module.split(".")
    if parts[0] != "gristmill":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in FLOORS else ""


@pytest.mark.parametrize("folder", FLOORS)
def test_house_imports_run_downwards(folder):
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {module}"
        for path in sources(folder)
        for line, module in imports(path)
        if (floor := floor_of(module)) is not None and floor != folder and floor not in MAY[folder]
    ]
    assert wrong == []


def test_house_imports_are_read_right():
    """The rule above sees relative imports of every depth: a known one of each."""
    found = {module for _, module in imports(ROOT / "pipelines" / "pool.py")}
    assert "gristmill.documents.errors.StopError" in found
    assert "gristmill.pipelines.executors.prepare_environment" in {
        module for _, module in imports(ROOT / "pipelines" / "deal.py")
    }


def test_house_only_launch_imports_datatrove_and_ray():
    found = {
        str(path.relative_to(ROOT))
        for path in [*ROOT.glob("*.py"), *(p for folder in FLOORS for p in sources(folder))]
        for _, module in imports(path)
        if module.split(".")[0] in {"datatrove", "ray"}
    }
    assert found == {"pipelines/launch.py"}


def test_house_command_line_imports_nothing_heavy():
    code = f"import sys, gristmill.cli; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_house_helpers_of_kernels_are_the_same_in_all_files():
    """Numba's cache does not see edits in another file, so what folders share is copied."""
    seen: dict[str, dict[str, list[str]]] = {}
    apart = []
    for path in (p for folder in FLOORS for p in sources(folder) if p.stem.startswith("_kernels")):
        name = path.relative_to(ROOT).as_posix()
        for helper in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(helper, ast.FunctionDef) and helper.name.startswith("_"):
                if helper.name in OTHERS.get(name, ()):
                    apart.append((name, helper.name))
                    continue
                bodies = seen.setdefault(helper.name, {})
                bodies.setdefault(ast.unparse(helper), []).append(name)
    assert sorted(apart) == sorted((name, helper) for name in OTHERS for helper in OTHERS[name])
    assert {name: list(b.values()) for name, b in seen.items() if len(b) > 1} == {}
    assert sum(map(len, seen["_fmix"].values())) > 1  # something is held


def test_house_kernels_import_nothing_of_ours_but_what_they_share():
    found = {
        f"{path.relative_to(ROOT)}:{line} imports {module}"
        for folder in FLOORS
        for path in sources(folder)
        if path.stem.startswith("_kernels")
        for line, module in imports(path)
        if floor_of(module) is not None and not module.startswith(MODULE)
    }
    assert found == set()


def test_house_kernels_name_the_version_of_what_they_share():
    """Numba's cache sees edits of a kernel's own file alone; a new version changes each of them."""
    common = ROOT / "filters" / "_kernels_common.py"
    version = hashlib.blake2b(common.read_bytes()).hexdigest()[:8]
    named = {
        path.relative_to(ROOT).as_posix(): re.findall(
            r'^COMMON = "(\w+)"', path.read_text(encoding="utf-8"), re.MULTILINE
        )
        for folder in FLOORS
        for path in sources(folder)
        if any(module.startswith(MODULE) for _, module in imports(path))
    }
    assert len(named) > 1
    wrong = sorted(name for name, found in named.items() if found != [version])
    assert wrong == [], f'edit them: COMMON = "{version}"'


def listed() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return project["tool"]["setuptools"]["packages"]


def test_house_packages_listed_are_those_in_the_tree():
    tree = {"gristmill"} | {
        ".".join(["gristmill", *path.relative_to(ROOT).parent.parts])
        for folder in FLOORS
        for path in sources(folder)
    }
    assert sorted(listed()) == sorted(tree)
    for package in listed()[1:]:
        assert (ROOT / Path(*package.split(".")[1:]) / "__init__.py").is_file(), package


def test_house_wheel_holds_every_module_and_data_file(tmp_path):
    """Built in a copy: a build in the tree would leave build/ beside the packages."""
    copy = tmp_path / "copy"
    skip = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "runs")
    shutil.copytree(ROOT, copy, ignore=skip)
    code = f"from setuptools import build_meta; build_meta.build_wheel({str(tmp_path)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=copy, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (wheel,) = tmp_path.glob("gristmill-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
        metadata = archive.read(next(n for n in held if n.endswith("METADATA"))).decode()
    expected = {
        f"gristmill/{path.relative_to(ROOT)}"
        for path in [
            *ROOT.glob("*.py"),
            *(p for folder in FLOORS for p in sources(folder)),
            *(ROOT / "pipelines" / "recipes").glob("*.yaml"),
            *(ROOT / "ledger").glob("*.sql"),
            ROOT / "py.typed",
        ]
    }
    assert expected - held == set()
    assert not [name for name in held if "/tests/" in name or "/benchmarks/" in name]
    assert "License-Expression: Apache-2.0" in metadata
    assert "Requires-Python: >=3.11" in metadata


def test_house_no_file_is_above_500_lines():
    files = [*ROOT.glob("*.py"), *(p for f in (*FLOORS, "tests", "benchmarks") for p in sources(f))]
    lengths = {
        p.relative_to(ROOT).as_posix(): len(p.read_text("utf-8").splitlines()) for p in files
    }
    assert len(lengths) > 300
    assert {name: n for name, n in lengths.items() if n > 500} == {}
