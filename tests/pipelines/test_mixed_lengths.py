"""A whole run whose stages mix sequence lengths, with conversations: every command, and amended."""

from __future__ import annotations

import json
import shutil
from collections import Counter

import numpy as np
import pytest

from gristmill.documents.errors import FormatError
from gristmill.mixing import Plan, TokenFeed
from gristmill.mixing.plan import plan_id
from gristmill.pipelines.mix import account_of
from gristmill.pipelines.planned import current_plan
from gristmill.pipelines.run import open_run
from gristmill.pipelines.trace import show, trace
from gristmill.pipelines.verify import verify_folder

RECIPE = """
name: lengths
root: data
sources:
  web: {paths: [web.jsonl], converter: plain}
  agent: {paths: [agent.jsonl], reader: {text_field: null}, converter: trajectory}
turns: gristmill
mixture:
  block: 4
  global_batch: 2
  slices: {web: {source: [web]}, agent: {source: [agent]}}
  stages:
    - {name: base, tokens: 2Ki, sequence_length: 64, weights: {web: 1}, max_epochs: 99}
    - {name: listed, tokens: 8Ki, sequence_length: [64, 128, 512], weights: {agent: 2, web: 1},
       max_epochs: 99}
    - {name: named, tokens: 4Ki, sequence_length: {agent: 256, web: 64}, mask: none,
       weights: {agent: [1, 2], web: 1}, max_epochs: 99}
"""


def conversation(n):
    call = {"name": "look", "arguments": json.dumps({"place": f"hill {n}"})}
    more = f"Rivers carry stones from hill {n} to the sea. " * (1 + n % 12)
    return {
        "messages": [
            {"role": "user", "content": f"Where does river {n} rise? {more}"},
            {"role": "assistant", "content": more, "tool_calls": [{"function": call}]},
            {"role": "tool", "content": f"hill {n}: a spring"},
            {"role": "assistant", "content": f"It rises on hill {n}."},
        ]
    }


@pytest.fixture(name="run")
def run_fixture(tiny):
    web = [{"text": f"Hill {i} has a spring, and rain. " * (1 + i % 30)} for i in range(60)]
    return tiny(RECIPE, web=web, agent=[conversation(n) for n in range(30)]).out


def books_equal_the_feed(run, plan):
    """Accounts against what every position gives, read one by one."""
    feed = TokenFeed(plan.folder, run / "tokens", verify="all")
    real, loss = Counter(), Counter()
    for position in range(plan.positions):
        if plan.skipped(position):
            continue
        sample = feed[position]
        row = sample["provenance"].tolist()
        key = (plan.stages[row[1]].name, plan.slices[row[2]], row[8])
        real[key] += row[7]
        loss[key] += int(sample["loss_mask"].sum())
    answer = account_of(open_run(run), plan.id, (), None, keep=False)
    rows = [dict(zip(answer.columns, r, strict=True)) for r in answer.rows]
    for r in rows:
        key = (r["stage"], r["slice"], r["sequence_length"])
        assert r["real_tokens"] == real.pop(key, 0)
        assert r["loss_tokens"] in (None, loss[key])
    assert not real
    return rows


def test_run_with_mixed_stages_of_conversations_has_true_books(run):
    opened = open_run(run)
    plan = current_plan(opened)
    assert [s["lengths"] for s in show(opened, None)["stages"]] == [[64], [64, 128, 512], [64, 256]]
    rows = books_equal_the_feed(run, plan)
    assert plan.turns
    spoken = [r for r in rows if r["slice"].startswith("agent")]
    assert len({r["sequence_length"] for r in spoken}) > 2
    assert all(r["loss_tokens"] < 0.9 * r["real_tokens"] for r in spoken)
    assert verify_folder(run) == []


def test_commands_over_mixed_stages_and_their_amended_plan(run, mill, tmp_path):
    plan = current_plan(open_run(run))
    first = plan.stages[1].first
    read = trace(open_run(run), None, plan.step_of(first + 2))
    (tmp_path / "ids").write_text("\n".join({row["id"] for row in read}))
    asked = ("--skip", f"{first + 4}..{first + 6}", "--remove", tmp_path / "ids", "--json")
    told = mill.command("mix", "amend", run, "--from", first + 2, *asked)
    assert told.returncode == 0, told.stderr
    changed = Plan.open(run / "plans" / json.loads(told.stdout)["plan"], verify=True)
    masked = sum(r["masked_tokens"] for r in books_equal_the_feed(run, changed))
    assert masked > 0
    old, new = (TokenFeed(p.folder, run / "tokens") for p in (plan, changed))
    for position in range(first + 2):
        assert np.array_equal(old[position]["labels"], new[position]["labels"])
    where = run / "plans" / changed.id
    for given in (
        ("mix", "show", where),
        ("mix", "account", where, "--position", first + 7, "--record"),
        ("mix", "plan", run),
        ("export", where, "--to", "ds", "--out", tmp_path / "ds"),
        ("export", where, "--to", "npy", "--out", tmp_path / "npy"),
        ("export", where, "--to", "parquet", "--out", tmp_path / "parquet"),
        ("budget", where, "--active-params", "1e9"),
        ("report", run),
        ("ledger", run, "--sql", "SELECT * FROM served"),
        ("verify", run),
    ):
        done = mill.command(*given)
        assert done.returncode == 0, (given, done.stderr)
    served = sum(changed.served(k) * s.sequence_length for k, s in enumerate(changed.stages))
    exported = json.loads((tmp_path / "npy" / "export.json").read_text())["stages"]
    assert sum(s["tokens"] for s in exported) == served


def test_plan_of_an_older_version_is_told_and_the_run_makes_it_anew(run, mill):
    good = current_plan(open_run(run)).folder
    content = json.loads((good / "plan.json").read_bytes())
    for stage in content["stages"]:
        del stage["end_shares"]
    data = json.dumps(content).encode()
    store = open_run(run).store
    older = run / "plans" / plan_id(data)
    shutil.copytree(good, older, ignore=shutil.ignore_patterns("*.json"))
    (older / "plan.json").write_bytes(data)
    with pytest.raises(FormatError, match=r"stages\[0\]: no end_shares.*gristmill run RECIPE"):
        Plan.open(older)
    pointer = json.loads((run / "plans" / "current.json").read_bytes())
    side = store.sidecar("plans/current.json")
    with store.writing("plans/current.json") as path:
        path.write_text(json.dumps({**pointer, "plan": older.name}))
        store.commit(path, "plans/current.json", inputs=side.inputs, fingerprint=side.fingerprint)
    told = mill.command("mix", "show", run)
    assert (told.returncode, len(told.stderr.splitlines())) == (3, 1), told.stderr
    done = mill.command("run", run.parent / "tiny.yaml", "--out", run, "--workers", 1)
    assert done.returncode == 0, done.stderr
    assert current_plan(open_run(run)).id == good.name
