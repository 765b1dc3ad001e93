"""The command line as a user meets it: help, exit codes, what goes to stdout and what to stderr."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from gristmill.cli import app

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = [
    *("demo", "run", "status", "ledger", "why", "sample", "verify", "report", "budget"),
    *("export", "remove", "doctor"),
]
DEDUP = ["dedup", "dedup curve", "dedup index", "dedup query", "dedup verify"]
QUALITY = [
    "quality",
    *(f"quality {c}" for c in ("annotate", "train", "quantize", "evaluate", "calibrate", "card")),
]
HEAVY = {
    "pyarrow",
    "duckdb",
    "numba",
    "numpy",
    "yaml",
    "rich",
    "datatrove",
    "tokenizers",
    "resiliparse",
}
MIX = ("mix", "mix plan", "mix show", "mix trace", "mix amend", "mix account")
HEADER = """# The command line

What `gristmill COMMAND --help` prints; `tests/test_cli.py` compares. To write this page anew:

    python tests/test_cli.py > docs/cli.md

Exit codes: 0 all is well, or the damage is within the recipe's `max_loss`; 1 there is more damage
than declared, or `verify` found something (outputs are usable, what is wrong is listed); 2 wrong
use; 3 the run could not go on; 130 interrupted. stdout is data and stderr is talk.
"""


def ask(*args, code=0, **env):
    """Run in this process; the exit code must be `code`."""
    command, env = [str(a) for a in args], {"COLUMNS": "80"} | env
    done = CliRunner().invoke(app, command, env=env, prog_name="gristmill")
    assert done.exit_code == code, (done.exit_code, done.stdout, done.stderr, done.exception)
    return done


def document() -> str:
    """docs/cli.md as it should be."""
    parts = [HEADER]
    for command in ["", *COMMANDS, *MIX, *DEDUP, *QUALITY]:
        title = f"gristmill {command}".strip()
        parts.append(
            f"## `{title}`\n\n```text\n{ask(*command.split(), '--help').stdout.strip()}\n```\n"
        )
    return "\n".join(parts)


def test_docs_list_every_command_as_its_help_does():
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == document()


def test_help_names_every_command():
    text = ask("--help").stdout
    for command in [*COMMANDS, "mix", "dedup", "quality"]:
        assert f"\n  {command}  " in text


def test_help_loads_nothing_heavy():
    program = (
        "import sys\n"
        "from gristmill.cli import app\n"
        "try:\n    app(['--help'])\n"
        "except SystemExit:\n    pass\n"
        "print(sorted({m.partition('.')[0] for m in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "Usage: gristmill" not in done.stderr
    assert HEAVY.isdisjoint(set(eval(done.stderr)))


def test_commands_are_short():
    """A command says what it takes and calls one thing: 15 lines of body at most."""
    import ast

    tree = ast.parse((ROOT / "cli.py").read_text(encoding="utf-8"))
    commands = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.decorator_list]
    assert len(commands) >= len(COMMANDS)
    for node in commands:
        assert node.end_lineno - node.body[0].lineno < 15, node.name


def test_version_is_printed():
    import gristmill

    assert ask("--version").stdout == f"gristmill {gristmill.__version__}\n"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["run", "none.yaml", "--out", "x"], "no recipe at none.yaml"),
        (["status", "none"], "no folder none"),
        (["ledger", "none"], "no folder none"),
        (["verify", "none"], "not a run folder"),
        (["report", "none"], "no folder none"),
        (["why", "none", "abc"], "no folder none"),
        (["sample", "none"], "no folder none"),
        (["mix", "show", "none"], "no folder none"),
        (["mix", "trace", "none", "--step", "0"], "no folder none"),
    ],
)
def test_wrong_use_is_one_line_and_exit_2(tmp_path, monkeypatch, args, says):
    monkeypatch.chdir(tmp_path)
    done = ask(*args, code=2)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("gristmill: ")
    assert says in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "args",
    [
        ["status"],
        ["no-such"],
        ["run", "x.yaml", "--no-such"],
        ["run", "x.yaml", "--out", "y", "--executor", "pbs"],
        ["run", "x.yaml", "--out", "y", "--workers", "0"],
    ],
)
def test_unknown_options_and_commands_exit_2(args):
    assert ask(*args, code=2).stdout == ""


def test_wrong_option_of_an_executor_exit_2(small_run):
    recipe = small_run.parent / "small.yaml"
    for option in ("attemts=3", "nonsense"):
        done = ask("run", recipe, "--out", small_run, "--option", option, code=2)
        assert option.partition("=")[0] in done.stderr


def test_output_that_cannot_be_written_exit_3(tmp_path, small_run):
    (tmp_path / "file").write_text("in the way")
    done = ask("ledger", small_run, "--format", "csv", "--to", tmp_path / "file" / "x.csv", code=3)
    assert done.stderr.startswith("gristmill: ")
    assert done.stderr.count("\n") == 1


def test_ledger_prints_the_funnel(small_run):
    lines = ask("ledger", small_run).stdout.splitlines()
    assert lines[0].split()[:3] == ["pass", "stage", "documents"]
    assert lines[1].split()[:2] == ["read", "read"]
    assert len({len(line) for line in lines}) == 1  # numbers stand to the right


def test_ledger_formats_hold_the_same_rows(small_run, tmp_path):
    asked = ["ledger", small_run, "--by", "source,stage"]
    rows = json.loads(ask(*asked, "--format", "json").stdout)
    assert {r["source"] for r in rows} == {"web", "wet", "notes", "agent"}
    read = list(csv.DictReader(io.StringIO(ask(*asked, "--format", "csv").stdout)))
    assert [{k: str(v) for k, v in r.items()} for r in rows] == read
    out = tmp_path / "rows.parquet"
    assert ask(*asked, "--format", "parquet", "--to", out).stdout == ""
    assert pq.read_table(out).to_pylist() == rows
    table = ask(*asked).stdout.splitlines()
    assert len(table) == len(rows) + 1


def test_ledger_sql_and_its_mistakes(small_run):
    done = ask("ledger", small_run, "--sql", "SELECT count(*) AS n FROM runs", "--format", "json")
    assert json.loads(done.stdout) == [{"n": 1}]
    listed = ask("ledger", small_run, "--sql", "SELEC 1", code=2).stderr.split("tables: ")[1]
    assert {"flow", "balances", "funnel", "planned_served"} <= set(listed.strip().split(", "))
    assert "duckdb" not in listed
    assert "did you mean 'stage'" in ask("ledger", small_run, "--by", "stge", code=2).stderr
    assert "choose one" in ask("ledger", small_run, "--by", "stage", "--sql", "x", code=2).stderr
    assert "--to" in ask("ledger", small_run, "--format", "parquet", code=2).stderr


def test_ledger_cannot_be_changed_by_a_query(small_run):
    before = (small_run / "ledger.duckdb").read_bytes()
    ask("ledger", small_run, "--sql", "DELETE FROM flow", code=2)
    assert (small_run / "ledger.duckdb").read_bytes() == before


def test_unknown_is_said_and_json_has_null(small_run):
    query = ["ledger", small_run, "--sql", "SELECT NULL::BIGINT AS n"]
    assert ask(*query).stdout.split() == ["n", "unknown"]
    assert json.loads(ask(*query, "--format", "json").stdout) == [{"n": None}]


def test_json_of_every_command_parses(small_run):
    status = json.loads(ask("status", small_run, "--json").stdout)
    assert status["complete"]
    assert json.loads(ask("verify", small_run, "--json").stdout) == []
    (drawn,) = json.loads(ask("sample", small_run, "-n", "1", "--json").stdout)
    found = json.loads(ask("why", small_run, drawn["id"], "--json").stdout)
    assert drawn["id"] in json.dumps(found)
    plan = json.loads(ask("mix", "show", small_run, "--json").stdout)
    assert [s["stage"] for s in plan["stages"]] == ["base", "agentic"]
    step = json.loads(ask("mix", "trace", small_run, "--step", "0", "--json").stdout)
    assert step
    assert {s["step"] for s in step} == {0}


def test_why_by_a_name_that_is_no_id_says_what_ids_are(small_run):
    told = ask("why", small_run, "note-1", code=2).stderr
    assert "32 hex digits" in told
    assert "is hashed into them and not kept" in told
    assert "did you mean" in ask("why", small_run, "https://quay.example/saling/5", code=2).stderr


def test_why_says_none_where_a_document_has_no_turns(small_run):
    (drawn,) = json.loads(ask("sample", small_run, "-n", "1", "--json").stdout)
    lines = [line.split() for line in ask("why", small_run, drawn["id"]).stdout.splitlines()]
    assert ["turns:", "none"] in lines
    assert ["turns:", "unknown"] not in lines


def test_plain_text_of_every_command(small_run):
    assert "complete" in ask("status", small_run).stdout
    assert ask("verify", small_run).stdout == "every file, chain and balance is as it says\n"
    assert "text:" in ask("sample", small_run, "-n", "2").stdout
    assert "stages:" in ask("mix", "show", small_run).stdout
    assert ask("mix", "trace", small_run, "--step", "1").stdout.split()[0] == "step"


def test_amend_makes_a_plan_beside_and_names_steps_that_served(small_run, tmp_path):
    step = json.loads(ask("mix", "trace", small_run, "--step", "0", "--json").stdout)
    removed = tmp_path / "ids"
    removed.write_text(step[0]["id"] + "\n" + "0" * 32 + "\n", encoding="utf-8")
    places = json.loads(ask("mix", "show", small_run, "--json").stdout)["stages"][0]["positions"]
    middle = step[-1]["position"] + 1
    command = ["mix", "amend", small_run, "--from", middle, "--remove", removed]
    found = json.loads(ask(*command, "--skip", f"{middle}..{places[1]}", "--json").stdout)
    assert found["masked_documents"] == 1
    assert found["not_in_plan"] == ["0" * 32]
    assert found["steps_that_read_removed_documents"] == {step[0]["id"]: [0]}
    shown = json.loads(ask("mix", "show", found["folder"], "--json").stdout)
    assert shown["plan"] == found["plan"]
    before = json.loads(ask("mix", "show", small_run, "--json").stdout)["account"]
    assert sum(r["windows"] for r in shown["account"]) < sum(r["windows"] for r in before)
    early = ask("mix", "amend", small_run, "--from", 0, "--remove", removed, "--json").stdout
    early = json.loads(early)["folder"]
    whole = json.loads(ask("mix", "show", early, "--json").stdout)["account"]
    assert sum(row["masked_tokens"] for row in whole) > 0
    shutil.rmtree(early)
    assert "LOW..HIGH" in ask("mix", "amend", small_run, "--from", 0, "--skip", "x", code=2).stderr
    assert "nothing to amend" in ask("mix", "amend", small_run, "--from", 0, code=2).stderr
    assert ask("verify", small_run).stdout == "every file, chain and balance is as it says\n"
    shutil.rmtree(found["folder"])


def test_export_writes_a_new_folder_once(small_run, tmp_path):
    out = tmp_path / "exported"
    command = ["export", small_run, "--to", "npy", "--stage", "base", "--out", out]
    assert ask(*command).stdout.strip() == str(out)
    stage = json.loads((out / "export.json").read_text(encoding="utf-8"))["stages"][0]
    assert (out / "0-base" / "tokens.npy").stat().st_size == 2 * stage["tokens"]
    assert "exists" in ask(*command, code=2).stderr
    assert "did you mean 'npy'" in ask(*command[:3], "nyp", *command[4:], code=2).stderr


def test_budget_of_a_run_and_of_stated_tokens(small_run):
    cost = json.loads(ask("budget", small_run, "--active-params", "1e6", "--json").stdout)
    shown = json.loads(ask("mix", "show", small_run, "--json").stdout)
    assert [s["tokens"] for s in cost["stages"]] == [s["tokens"] for s in shown["stages"]]
    text = ask("budget", "--active-params", "40e9", "--tokens", "28.5e12").stdout
    assert "training compute        6.84e+24" in text
    assert "unknown" in text
    both = ask("budget", small_run, "--tokens", "1T", "--active-params", "1", code=2)
    assert "found both" in both.stderr
    assert "found neither" in ask("budget", "--active-params", "1", code=2).stderr


def test_mix_takes_a_plan_folder_as_well(small_run):
    plan = json.loads((small_run / "plans/current.json").read_bytes())["plan"]
    folder = small_run / "plans" / plan
    assert ask("mix", "show", folder).stdout == ask("mix", "show", small_run).stdout


def test_verify_of_a_damaged_run_exit_1(small_run, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(small_run, run)
    (run / "report.html").write_bytes(b"x" + (run / "report.html").read_bytes()[1:])
    done = ask("verify", run, code=1)
    assert done.stdout.startswith("report.html: ")
    assert done.stderr == ""  # progress is for terminals alone
    (problem,) = json.loads(ask("verify", run, "--json", code=1).stdout)
    assert problem["file"] == "report.html"


def test_report_prints_where_it_stands(small_run, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(small_run, run)
    (run / "report.html").unlink()
    assert ask("report", run).stdout == f"{run / 'report.html'}\n"
    assert (run / "report.html").is_file()


def test_output_has_no_colours(small_run):
    for env in ({"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}):
        for args in (["--help"], ["status", small_run], ["ledger", small_run]):
            assert "\x1b" not in ask(*args, **env).stdout


def test_doctor_finds_this_machine_well():
    text = ask("doctor").stdout
    assert text.startswith("gristmill ")
    assert "BAD" not in text
    for word in ("pyarrow", "Numba's cache", "tokenizer: engine", "free disk"):
        assert word in text


def test_doctor_knows_every_library_that_the_project_states():
    from gristmill.pipelines.doctor import NEEDED, OPTIONAL

    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = stated["optional-dependencies"]

    def names(lines):
        return {re.match(r"[\w-]+", line)[0].lower() for line in lines}

    assert {n.lower() for n in NEEDED} == names(stated["dependencies"])
    optional = names(line for e, lines in extras.items() if e != "dev" for line in lines)
    assert set(OPTIONAL) == optional | {"torch"}  # a trainer's own


def test_run_again_makes_nothing(small_run, mill):
    before = mill.snapshot(small_run)
    done = mill.command("run", small_run.parent / "small.yaml", "--out", small_run, "--workers", 1)
    assert done.returncode == 0, done.stderr
    assert "made" not in done.stderr
    assert done.stdout == ""
    assert mill.snapshot(small_run) == before


def test_run_interrupted_exit_130(tmp_path, mill):
    recipe = mill.small_recipe(tmp_path)
    command = [sys.executable, "-m", "gristmill", "run", recipe, "--out", tmp_path / "run"]
    process = subprocess.Popen(
        [*map(str, command), "--workers", "1"],
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "run" / "lock.json.json").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, talk = process.communicate(timeout=60)
    assert process.returncode == 130, talk
    assert "Traceback" not in talk
    assert "the same command goes on" in talk


def test_demo_ends_with_the_report_and_a_command_that_works(tmp_path, mill):
    out = tmp_path / "demo"
    done = mill.command("demo", "--out", out, "--workers", 2)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].split()[:3] == ["pass", "stage", "documents"]
    last, next_line = done.stderr.splitlines()[-2:]
    assert last == f"report: {out / 'report.html'}"
    assert (out / "report.html").is_file()
    assert next_line.startswith("next: ")
    called, _, url = next_line.removeprefix("next: ").partition(f" why {out} ")
    assert called.endswith("gristmill")
    assert url in ask("why", out, url).stdout
    assert "witness_id" in ask("why", out, url).stdout


if __name__ == "__main__":
    sys.stdout.write(document())
