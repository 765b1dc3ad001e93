from __future__ import annotations

import copy

import pytest

from gristmill.mixing import Plan
from gristmill.mixing.amend import amend
from gristmill.mixing.prefix import same_until


def compiled(world, edit=lambda mapping: None):
    mapping = copy.deepcopy(world.tools.THREE_STAGES)
    edit(mapping)
    return Plan.open(world.tools.compiled(world, mapping))


def last(**fields):
    return lambda m: m["stages"][2].update(fields)


@pytest.mark.parametrize(
    ("edit", "until"),
    [
        (lambda m: None, 190),
        (lambda m: m["stages"].pop(), 150),
        (lambda m: m["stages"].append({**m["stages"][2], "name": "more", "max_epochs": 9}), 190),
        (last(tokens=64 * 80, max_epochs=9), 182),  # 150 and two whole blocks of 16
        (last(weights={"web": 1, "code": 3}, max_epochs=9), 150),
        (last(mask="none"), 150),
        (last(packing="best_fit"), 150),
        (lambda m: m["stages"][0]["weights"].update(code=[0.2, 0.1]), 32),  # two blocks alike
        (lambda m: m.update(seed=8), 0),
    ],
)
def test_same_until_counts_what_is_the_same_and_no_more(world, edit, until):
    one, other = compiled(world), compiled(world, edit)
    assert same_until(one, other) == same_until(other, one) == until
    assert one.prefix_digest(until) == other.prefix_digest(until)
    if until < min(one.positions, other.positions):
        end = min(until + 32, one.positions, other.positions)
        assert one.prefix_digest(end) != other.prefix_digest(end)


def test_same_until_ends_where_an_amendment_begins(world, tmp_path):
    plan = compiled(world)
    made = amend(plan, position=40, skips=[(44, 48)], out=tmp_path)
    amended = Plan.open(tmp_path / made.plan)
    assert same_until(plan, amended) == 44
    assert same_until(amended, amended) == plan.positions
    ids = [plan.ids[3].tobytes().hex()]
    made = amend(plan, position=60, remove=ids, out=tmp_path)
    assert same_until(plan, Plan.open(tmp_path / made.plan)) == 60
