"""The recipe that a crawl starts from runs as it ships, and its books balance."""

from __future__ import annotations

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_web_recipe_runs_on_the_sample_and_its_books_balance(mill, tmp_path):
    (tmp_path / "web").mkdir()
    shutil.copy(ROOT / "sample_data" / "web" / "pages-00000.warc.gz", tmp_path / "web")
    recipe, run = ROOT / "pipelines" / "recipes" / "web.yaml", tmp_path / "run"
    done = mill.command("run", recipe, "--root", tmp_path, "--out", run, "--workers", 1)
    assert done.returncode == 0, done.stderr
    assert mill.command("verify", run).returncode == 0
    table = mill.command("ledger", run).stdout
    stages = [line.split()[1] for line in table.splitlines()[1:] if line.strip()]
    shared = ["exact_duplicates", "url_duplicates", "host_cap", "templates", "near_duplicates"]
    assert [s for s in stages if s in shared] == shared
    left = int(table.split("\n")[len(stages)].split()[2].replace(",", ""))
    assert 0 < left < 150
