from __future__ import annotations

import copy
import json
from itertools import pairwise

import numpy as np
import pytest

from gristmill.documents.errors import UsageError
from gristmill.mixing import Plan, TokenFeed
from gristmill.mixing.budget import (
    attention_pairs,
    budget,
    causal_pairs,
    plan_stages,
    read_constants,
    stated_stages,
)


def totals(found):
    return {row["quantity"]: (row["low"], row["high"]) for row in found.totals}


def stated(tokens, *pairs, **more):
    constants = read_constants(pairs, **more)
    return budget(stated_stages(tokens, constants), constants)


@pytest.mark.parametrize(
    ("params", "tokens", "flop"),
    [
        ("40e9", "28.5e12", 6.84e24),  # GLM-5
        ("49e9", "32T", 9.408e24),  # DeepSeek-V4
        ("3.08e9", "11.2T", 2.07e23),  # SmolLM3
    ],
)
def test_compute_published_models_six_n_d(params, tokens, flop):
    found = totals(stated([tokens], f"active_params={params}"))
    assert found["training compute"][0] == pytest.approx(flop, rel=2e-3)
    assert found["attention compute"] == (None, None)


def test_totals_nobody_states_a_constant_stays_unknown():
    found = stated(["1T"], "active_params=1e9")
    assert totals(found)["energy"] == totals(found)["cost"] == (None, None)
    assert all(r["low"] != 0 for r in found.totals)
    bases = {r["constant"]: r["basis"] for r in found.constants}
    assert bases.pop("active_params") == "assumed"
    assert set(bases.values()) == {"unknown"}


def test_totals_by_hand():
    found = totals(
        stated(
            ["3600"],
            "active_params=1e6",
            "peak=1e6",
            "mfu=0.5",
            "power=500",
            "node_overhead=2",
            "pue=1.5",
            "carbon=100",
            "price=3",
            "development=0.5",
        )
    )
    assert found["accelerator hours"] == pytest.approx((12, 12))  # 2.16e10 / 5e5 / 3600
    assert found["energy of the machines"] == pytest.approx((0.012, 0.012))  # MWh
    assert found["energy"] == pytest.approx((0.018, 0.018))
    assert found["carbon"] == pytest.approx((0.0018, 0.0018))  # tonnes
    assert found["cost"] == pytest.approx((36, 36))
    assert found["energy of development"] == pytest.approx((0.009, 0.009))
    assert found["energy of restarts"] == (None, None)


def test_totals_ranges_widen():
    found = totals(stated(["1T"], "active_params=1e9", "peak=1e15", "mfu=0.25..0.5"))
    low, high = found["accelerator hours"]
    assert high == pytest.approx(2 * low)


def test_tables_by_name_are_published():
    found = stated(["1T"], "active_params=1e9", "mfu=0.4", accelerator="h100-sxm", grid="FRA")
    rows = {r["constant"]: r for r in found.constants}
    assert rows["peak"]["basis"] == rows["carbon"]["basis"] == "published"
    assert "datasheet" in rows["power"]["source"]
    assert "France" in rows["carbon"]["source"]


def test_command_line_before_table():
    rows = {r["constant"]: r for r in read_constants(["power=650"], accelerator="h100-sxm").rows()}
    assert (rows["power"]["low"], rows["power"]["basis"]) == (650, "assumed")
    assert rows["peak"]["basis"] == "published"


def test_constants_file_keeps_source_basis_date(tmp_path):
    path = tmp_path / "site.yaml"
    path.write_text("pue: {value: [1.1, 1.2], source: meter 3, basis: measured, date: 2026}")
    row = {r["constant"]: r for r in read_constants(file=path).rows()}["pue"]
    assert (row["low"], row["high"], row["basis"], row["date"]) == (1.1, 1.2, "measured", "2026")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pue: 1.2", "expected value, source"),
        ("pue: {value: 1.2}", "says where it is from"),
        ("pue: {value: 1.2, source: x, basis: guess}", "expected one of measured"),
        ("pue: {value: .9, source: x}", "from 1 to 100"),
        ("pue: {value: [1.3, 1.2], source: x}", "from 1 to 100"),
        ("peu: {value: 1.2, source: x}", "did you mean 'pue'"),
        ("pue: {valeu: 1.2, source: x}", "did you mean 'value'"),
        ("[1]", "expected name"),
        ("a: [", "cannot be read as YAML"),
    ],
)
def test_constants_file_wrong_says_so(tmp_path, text, message):
    path = tmp_path / "site.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        read_constants(file=path)


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("mfu", "expected NAME=VALUE"),
        ("mfu=0", "from 1e-06 to 1"),
        ("mfu=nan", "from 1e-06 to 1"),
        ("mfu=inf", "from 1e-06 to 1"),
        ("mfu=a..b", "found"),
        ("mfu=.1...2...3", "found"),
        ("layers=2.5", "one whole number"),
        ("layers=1..2", "one whole number"),
        ("utilisation=1", "no constant"),
    ],
)
def test_pair_wrong_says_so(pair, message):
    with pytest.raises(UsageError, match=message):
        read_constants([pair])


def test_names_unknown_say_so():
    with pytest.raises(UsageError, match="did you mean 'h100-sxm'"):
        read_constants(accelerator="h100")
    with pytest.raises(UsageError, match="--grid Franc: not in the table"):
        read_constants(grid="Franc")


def test_budget_without_parameters_says_so():
    with pytest.raises(UsageError, match="--active-params"):
        stated(["1T"])


@pytest.mark.parametrize("text", ["", "x", "1T@", "1T@x", "0", "1.5", "1T@3T", "-5"])
def test_stated_stage_wrong_says_so(text):
    with pytest.raises(UsageError, match="--tokens"):
        stated_stages([text], read_constants())


def test_stated_stage_with_length_counts_pairs():
    (stage,) = stated_stages(["10@4"], read_constants())
    assert stage == ("10@4", 10, 4, 10 + 10 + 3)


def test_causal_pairs_by_hand():
    assert causal_pairs(np.array([1, 2, 5])).tolist() == [1, 3, 15]
    assert causal_pairs(np.array([1, 2, 5]), 2).tolist() == [1, 3, 9]


@pytest.fixture(scope="module", name="world")
def world_fixture(naive, tmp_path_factory):
    """(plan whose last stage has no document mask, its feed)."""
    tools, folder = naive("naive_mixing"), tmp_path_factory.mktemp("budget")
    mapping = copy.deepcopy(tools.THREE_STAGES)
    mapping["stages"][-1]["mask"] = "none"
    plan = tools.make_plan(folder, mapping)
    return Plan.open(plan), TokenFeed(plan, folder / "tokens")


@pytest.mark.parametrize("window", [None, 7])
def test_attention_pairs_equal_the_feeds_segments(world, window):
    plan, feed = world
    for stage, total in zip(plan.stages, attention_pairs(plan, window), strict=True):
        found = 0
        for position in range(stage.first, stage.first + stage.windows):
            sample = feed[position]
            edges = sample["cu_seqlens"].tolist()
            real = int(sample["provenance"][7]) if stage.mask == "document" else edges[-1]
            for low, high in pairwise(edges):
                if low < real:  # padding is a segment of its own, masked out
                    found += sum(min(i + 1, window or i + 1) for i in range(high - low))
        assert total == found


def test_plan_budget_is_the_sum_of_its_stages(world):
    plan, _ = world
    constants = read_constants(["active_params=100", "layers=2", "width=8"])
    found = budget(plan_stages(plan, constants), constants)
    tokens = sum(s.windows * s.sequence_length for s in plan.stages)
    assert [s.stage for s in found.stages] == [s.name for s in plan.stages]
    dense, attention = 600 * tokens, 12 * 16 * sum(attention_pairs(plan))
    assert totals(found)["training compute"] == (dense + attention,) * 2
    assert json.loads(json.dumps(found.totals)) == found.totals
