"""`mix plan` and `mix account`: more plans over a run's tokens, and books of what was served."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest
import yaml

from gristmill.documents.errors import StopError, UsageError
from gristmill.ledger.balance import imbalances
from gristmill.ledger.writer import connect
from gristmill.mixing import TokenFeed
from gristmill.pipelines.mix import account_of, further_plan
from gristmill.pipelines.planned import current_plan, plan_tables
from gristmill.pipelines.run import open_run
from gristmill.pipelines.verify import verify_folder

RECIPE = """
name: mixed
root: data
sources:
  web: {paths: [web.jsonl], converter: plain, license: cc-by, dump: d1,
        stages: [{quality: {heads: [edu, format]}}]}
  code: {paths: [code.jsonl], converter: plain}
mixture:
  block: 8
  slices: {web: {source: [web]}, code: {source: [code]}}
  stages:
    - {name: base, tokens: 2048, sequence_length: 64, weights: {web: 2, code: 1}, max_epochs: 99}
    - {name: late, tokens: 1024, sequence_length: 64, weights: {web: 1, code: 1}, max_epochs: 99}
"""


@pytest.fixture
def run(tiny):
    rows = {
        "web": [{"text": f"Rivers carry stones from hill {i} to the sea. " * 3} for i in range(20)],
        "code": [{"text": f"def f{i}(x):\n    return x + {i}\n"} for i in range(20)],
    }
    return tiny(RECIPE, **rows).out


def test_further_plan_reads_the_same_tokens_and_keeps_what_was_served(run, tmp_path):
    mixture = yaml.safe_load(RECIPE)["mixture"]
    mixture["stages"][1]["weights"] = {"web": [1, 0], "code": 1}
    (tmp_path / "mixture.yaml").write_text(yaml.safe_dump(mixture))
    before = {p: p.read_bytes() for p in (run / "tokens").iterdir()}
    opened = open_run(run)
    found = further_plan(opened, tmp_path / "mixture.yaml")
    current = current_plan(opened)
    assert found["current_plan"] == current.id != found["plan"]
    assert found["same_as_current_until"] == 32  # all of the first stage
    assert {p: p.read_bytes() for p in (run / "tokens").iterdir()} == before
    feed = TokenFeed(run / "plans" / found["plan"], run / "tokens", verify="all")
    assert len(feed) == found["positions"] == 48
    old = TokenFeed(current.folder, run / "tokens")
    assert all((feed[p]["input_ids"] == old[p]["input_ids"]).all() for p in range(32))
    assert further_plan(opened, None)["plan"] == current.id
    assert verify_folder(run) == []


def test_further_plan_with_later_stages_added_keeps_every_earlier_position(run, tmp_path):
    mixture = yaml.safe_load(RECIPE)["mixture"]
    more = {"tokens": 1024, "max_epochs": 99, "weights": {"code": 1, "long": 1}}
    mixture["slices"]["long"] = {"min_tokens": 20}  # a slice that earlier stages do not read
    mixture["stages"] += [
        {"name": "long_context", "sequence_length": [64, 128], **more},
        {"name": "agentic", "sequence_length": 32, "packing": "concat", "mask": "none", **more},
    ]
    (tmp_path / "mixture.yaml").write_text(yaml.safe_dump(mixture))
    opened = open_run(run)
    found = further_plan(opened, tmp_path / "mixture.yaml")
    old = TokenFeed(current_plan(opened).folder, run / "tokens")
    new = TokenFeed(run / "plans" / found["plan"], run / "tokens")
    assert found["same_as_current_until"] == len(old) == 48 < len(new)
    assert [s.name for s in new.plan.stages] == ["base", "late", "long_context", "agentic"]
    assert old.plan.prefix_digest(48) == new.plan.prefix_digest(48)
    lanes = [lane.slice for lane in old.plan.lanes]
    for position in range(48):
        before, after = old[position], new[position]
        assert before.keys() == after.keys()
        for key in before:
            if key != "provenance":
                assert before[key].tobytes() == after[key].tobytes()
        # numbers of slices are a plan's own; all else of where it is from is the same
        one, two = before["provenance"].tolist(), after["provenance"].tolist()
        assert old.plan.slices[one.pop(2)] == new.plan.slices[two.pop(2)]
        assert one == two
    assert lanes == [lane.slice for lane in new.plan.lanes][: len(lanes)]


def test_further_plan_from_a_recipe_or_from_nothing(run, tmp_path):
    (tmp_path / "other.yaml").write_text(RECIPE.replace("web: 2", "web: 5"))
    opened = open_run(run)
    assert further_plan(opened, tmp_path / "other.yaml")["same_as_current_until"] == 0
    with pytest.raises(UsageError, match=r"no such file; expected a mixture"):
        further_plan(opened, tmp_path / "nowhere.yaml")
    (tmp_path / "bad.yaml").write_text("slices: {}\nstages: []\n")
    with pytest.raises(UsageError, match=r"mixture\.slices: found none"):
        further_plan(opened, tmp_path / "bad.yaml")


def test_slices_and_cube_have_format_and_bucket_and_come_to_the_plan(run, ask):
    shown = ask(run, "SELECT source, page_format IS NULL, quality_bucket IS NULL FROM slices")
    assert set(shown) == {("web", False, False), ("code", True, True)}
    tokens = ask(run, "SELECT source, sum(tokens) FROM slices GROUP BY 1 ORDER BY 1")
    assert tokens == ask(
        run, "SELECT source, sum(text_tokens + special_tokens) FROM tokens GROUP BY 1 ORDER BY 1"
    )
    plan = current_plan(open_run(run))
    cube = pq.read_table(plan.folder / "cube.parquet")
    for name in ("real_tokens", "padding_tokens", "loss_tokens", "windows"):
        total = sum(cube[name].to_pylist())
        assert ask(run, f"SELECT sum({name}) FROM cube") == [(total,)]
        assert ask(run, f"SELECT sum({name}) FROM plan") == [(total,)]
    assert {r["license"] for r in cube.to_pylist() if r["source"] == "web"} == {"cc-by"}
    feed = TokenFeed(plan.folder, run / "tokens")
    targets = sum(int(feed[p]["loss_mask"].sum()) for p in range(len(feed)))
    assert ask(run, "SELECT sum(loss_tokens) FROM cube") == [(targets,)]


def test_account_recorded_position_is_in_the_ledger_as_served(run, ask):
    opened = open_run(run)
    plan = current_plan(opened)
    assert ask(run, "SELECT count(*) FROM served") == [(0,)]
    answer = account_of(opened, plan.id, ["source"], 37, keep=True)
    named = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    feed = TokenFeed(plan.folder, run / "tokens")
    for stage in plan.stages:
        places = range(stage.first, min(stage.first + stage.windows, 37))
        mine = [row for row in named if row["stage"] == stage.name]
        real = sum(int(feed[p]["provenance"][7]) for p in places)
        assert sum(row["served_real_tokens"] for row in mine) == real
        targets = sum(int(feed[p]["loss_mask"].sum()) for p in places)
        assert sum(row["served_loss_tokens"] for row in mine) == targets
        assert sum(row["served_windows"] for row in mine) == len(places)
        assert sum(row["planned_windows"] for row in mine) == stage.windows
    sql = "SELECT sum(served_tokens), sum(planned_tokens), min(position) FROM planned_served"
    sums = [sum(row[f"{side}_real_tokens"] for row in named) for side in ("served", "planned")]
    assert ask(run, sql) == [(*sums, 37)]
    con = connect(run / "ledger.duckdb", read_only=True)
    assert imbalances(con) == []
    con.close()
    assert verify_folder(run) == []


def test_account_wrong_use_is_named(run):
    opened = open_run(run)
    plan = current_plan(opened).id
    with pytest.raises(UsageError, match="--record: needs --position"):
        account_of(opened, plan, ["source"], None, keep=True)
    with pytest.raises(UsageError, match="position 99 is outside plan"):
        account_of(opened, plan, ["source"], 99, keep=False)
    columns = account_of(opened, plan, ["quality_bucket", "language"], None, keep=False).columns
    assert columns[:5] == ["stage", "slice", "quality_bucket", "language", "sequence_length"]


def test_recorded_position_that_is_torn_is_named(run):
    opened = open_run(run)
    plan = current_plan(opened)
    account_of(opened, plan.id, ["source"], 8, keep=True)
    (plan.folder / "served.json").write_text(json.dumps({"posit": 3}))
    with pytest.raises(StopError, match=r"served\.json: torn .* record the position again"):
        plan_tables(opened)
