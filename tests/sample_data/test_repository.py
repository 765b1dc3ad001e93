from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def checkout(sample, tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("granary")
    for row in sample.rows["code/repository.jsonl.gz"]:
        path = root / row["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(row["text"], encoding="utf-8")
    return root


def unittest(root: Path, *words: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-B", "-m", "unittest", *words]
    return subprocess.run(
        command, cwd=root, capture_output=True, text=True, timeout=60, check=False
    )


def test_repository_its_own_tests_pass(checkout):
    done = unittest(checkout, "discover", "-s", "tests")
    assert done.returncode == 0, done.stderr
    assert "Ran 42 tests" in done.stderr


def test_repository_has_thirty_files_and_more_that_import_each_other(sample):
    rows = sample.rows["code/repository.jsonl.gz"]
    paths = {row["path"] for row in rows}
    assert 30 <= len(rows) <= 60
    assert {"README.md", "granary/__init__.py", "tests/test_cli.py"} <= paths
    users = [row for row in rows if "from granary." in row["text"]]
    assert len(users) >= 25
    for row in rows:
        if row["path"].endswith(".py"):
            compile(row["text"], row["path"], "exec")


def test_agent_runs_mend_what_fails_and_report_it_truly(sample, checkout, tmp_path):
    runs = sample.rows["agent/trajectories.jsonl.gz"]
    first = [run for run in runs if run["id"].endswith("-0")]
    assert len(first) == 10

    def check(run: dict) -> tuple[str, int, int, str]:
        calls = [call["function"] for message in run["messages"]
                 for call in message.get("tool_calls", [])]  # fmt: skip
        edit = next(json.loads(call["arguments"]) for call in calls if call["name"] == "edit_file")
        command = next(json.loads(call["arguments"]) for call in calls if call["name"] == "run")
        root = tmp_path / run["id"]
        for source in checkout.rglob("*"):
            if source.is_file() and "__pycache__" not in source.parts:
                target = root / source.relative_to(checkout)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(source.read_bytes())
        path = root / edit["path"]
        good = path.read_text(encoding="utf-8")
        assert good.count(edit["new"]) == 1, run["id"]
        test = command["command"].split()[-1]
        path.write_text(good.replace(edit["new"], edit["old"]), encoding="utf-8")
        before = unittest(root, test)
        path.write_text(good, encoding="utf-8")
        return run["id"], before.returncode, unittest(root, test).returncode, before.stderr

    failing = {
        run["instance_id"]: message["content"].split()[1]
        for run in runs
        if run["outcome"] == "failed"
        for message in run["messages"]
        if message["content"].startswith("FAIL: ")
    }
    with ThreadPoolExecutor(2) as pool:
        for name, before, after, log in pool.map(check, first):
            assert before != 0, name
            assert after == 0, name
            assert failing[name.removesuffix("-0")] in log, name
