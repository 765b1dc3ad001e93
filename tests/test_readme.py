"""The README says what is: its output is the demo's, its recipe runs, its commands exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from gristmill.pipelines.recipe import parse_recipe

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", README, re.DOTALL)


def test_readme_demo_output_is_the_demos(demo_run, mill):
    shown = next(b for b in blocks("text") if "report:" in b)
    table = mill.command("ledger", demo_run).stdout
    assert shown[: shown.index("report:")].split() == table.split()
    report, following = shown[shown.index("report:") :].strip().splitlines()
    assert report == "report: runs/demo/report.html"
    command = shlex.split(following.removeprefix("next: "))
    assert command[:3] == [".venv/bin/gristmill", "why", "runs/demo"]
    assert mill.command("why", demo_run, command[3]).returncode == 0


def test_readme_commands_are_known_with_their_options(mill):
    lines = [ln for b in blocks("console") for ln in b.splitlines() if "$ gristmill" in ln]
    assert len(lines) > 3
    for line in lines:
        words = shlex.split(line.removeprefix("$ "), comments=True)
        group = words[1] in {"mix", "dedup", "quality"}
        known = mill.command(*words[1 : 3 if group else 2], "--help").stdout
        for word in words[2:]:
            if word.startswith("-"):
                assert re.search(rf"(^|\s|,){re.escape(word)}\b", known, re.MULTILINE), line


def test_readme_make_targets_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"make ([a-z-]+)", README))
    assert {"demo", "test"} <= named <= targets


def test_readme_recipe_parses(tmp_path):
    (recipe,) = blocks("yaml")
    parsed = parse_recipe(recipe, folder=tmp_path, root=tmp_path, where="mine.yaml")
    assert [s.name for s in parsed.sources] == ["web", "books"]


def test_readme_trainer_example_runs(demo_run, mill):
    (code,) = blocks("python")
    from gristmill.pipelines.run import open_run
    from gristmill.pipelines.trace import current_plan

    plan = current_plan(open_run(demo_run))
    code = code.replace("runs/mine/plans/PLAN", str(plan)).replace("runs/mine", str(demo_run))
    code = code.replace(
        "    state =", "    print(sorted(batch), batch['input_ids'].shape); state ="
    )
    scope: dict[str, object] = {}
    exec(compile(code + "    break\n", "README.md", "exec"), scope)
    assert set(scope["state"]) == {"format", "plan", "position", "digest"}


@pytest.mark.parametrize("path", sorted(set(re.findall(r"\]\(([^)#:]+)\)", README))))
def test_readme_links_lead_somewhere(path):
    assert (ROOT / path).exists()


@pytest.mark.parametrize("recipe", sorted((ROOT / "pipelines" / "recipes").glob("*.yaml")), ids=str)
def test_shipped_recipes_parse(recipe, tmp_path):
    from gristmill.pipelines.recipe import load_recipe

    assert load_recipe(recipe, root=tmp_path).sources


def test_recipes_page_is_what_the_classes_say():
    import importlib.util

    spec = importlib.util.spec_from_file_location("make_recipes", ROOT / "docs/make_recipes.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8") == module.page()
