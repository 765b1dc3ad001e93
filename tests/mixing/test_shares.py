"""What a plan serves of each slice and source, counted position by position and token by token."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from gristmill.mixing import Plan, TokenFeed
from gristmill.mixing.account import account
from gristmill.mixing.quota import UNIT


@pytest.fixture(scope="module", name="tools")
def tools_fixture(naive):
    return naive("naive_mixing")


def random_mixture(rng, sources):
    """Two stages over one slice for each source: weights, ramps, minimum shares, odd sizes."""
    stages = []
    packing = rng.choice(["concat", "best_fit"])
    for name in ("one", "two"):
        weights = {}
        for source in sources:
            kind = rng.random()
            if kind < 0.3:
                weights[source] = [rng.random(), round(rng.random(), 3)]
            elif kind < 0.4:
                weights[source] = [0, rng.random()]
            else:
                weights[source] = rng.choice([1, rng.random(), 10 ** rng.uniform(-4, 0)])
        weights[sources[0]] = 1
        low = {s: rng.random() / 2 / len(sources) for s in sources if rng.random() < 0.2}
        stages.append(
            {
                "name": name,
                "tokens": 8 * rng.randint(2 * len(sources), 2000),
                "sequence_length": 8,
                "packing": packing,
                "weights": weights,
                "at_least": low,
                "max_epochs": 1 << 20,
            }
        )
    return {
        "seed": rng.getrandbits(32),
        "block": rng.randint(16, 300),
        "global_batch": rng.randint(1, 4),
        "slices": {s: {"source": s} for s in sources},
        "stages": stages,
    }


def test_every_source_within_one_window_of_its_share_at_every_block_edge_30_plans(tools, tmp_path):
    ramped = raised = 0
    for number in range(30):
        rng = random.Random(number)
        sources = [f"s{i:02d}" for i in range(rng.randint(2, 79))]
        documents = [
            {"tokens": rng.randint(2, 900), "source": s} for s in sources for _ in range(2)
        ]
        mapping = random_mixture(rng, sources)
        plan = Plan.open(tools.make_plan(tmp_path / str(number), mapping, documents))
        rows = plan.rows(0, plan.positions)
        for k, stage in enumerate(plan.stages):
            served = np.array([stage.lanes.index(lane) for lane in rows[rows[:, 1] == k, 3]])
            low = mapping["stages"][k]["at_least"]
            for i, name in enumerate(stage.slices):
                first, bend = stage.shares[i], stage.end_shares[i] - stage.shares[i]
                ramped += bend != 0
                raised += name in low
                assert min(first, first + bend) >= Fraction(str(low.get(name, 0))) * UNIT
                count = np.concatenate([[0], np.cumsum(served == i)])
                assert count[-1] >= 1
                for edge in (*range(0, stage.windows, plan.block), stage.windows):
                    line = Fraction(first * edge) + Fraction(bend * edge**2, 2 * stage.windows)
                    assert abs(line / UNIT - int(count[edge])) < 1
    assert ramped > 100
    assert raised > 100


def test_61_sources_down_to_2_9e_5_are_all_served(tools, tmp_path):
    # as many, and as rare, as in a published midtraining recipe (OLMo 3 32B): 12 below 1/2048
    sources = [f"s{i:02d}" for i in range(61)]
    weights = {s: 2.9e-5 * (1 + i) for i, s in enumerate(sources[:12])}
    rest = 1 - sum(weights.values())
    weights |= dict.fromkeys(sources[12:], rest / 49)
    mapping = {
        "block": 2048,
        "slices": {s: {"source": s} for s in sources},
        "stages": [
            {
                "name": "midtraining",
                "tokens": 4 * 70_000,
                "sequence_length": 4,
                "weights": weights,
                "max_epochs": 1 << 20,
            }
        ],
    }
    documents = [{"tokens": 2000, "source": s} for s in sources]
    plan = Plan.open(tools.make_plan(tmp_path, mapping, documents))
    rows = plan.rows(0, plan.positions)
    served = Counter(plan.sources[plan.document_sources[row]] for row in _heads(plan, rows))
    assert min(served.values()) == served["s00"] == 2  # 70,000 x 2.9e-5 = 2.03
    for source, weight in weights.items():
        assert abs(served[source] - 70_000 * weight) < 1.01  # shares are rounded to 2**-32


def _heads(plan, rows):
    """Row of the first document of each position."""
    return [int(plan.pieces[lane][int(plan.windows[lane][w]), 0]) for lane, w in rows[:, [3, 5]]]


def test_token_sums_of_the_feed_equal_the_ledger_with_ramps_and_minimum_shares(tools, tmp_path):
    mapping = {
        **tools.THREE_STAGES,
        "stages": [
            {
                **tools.THREE_STAGES["stages"][0],
                "weights": {"web": [0.9, 0.2], "code": [0, 0.3], "all": 0.1},
                "at_least": {"all": 0.2},
                "max_epochs": 9,
            },
            {
                **tools.THREE_STAGES["stages"][1],
                "tokens": {"long": 256 * 20, "web": 256 * 9},
                "weights": None,
                "max_epochs": 9,
            },
            {**tools.THREE_STAGES["stages"][2], "max_epochs": 19},
        ],
    }
    del mapping["stages"][1]["weights"]
    plan_folder = tools.make_plan(tmp_path, mapping)
    feed = TokenFeed(plan_folder, tmp_path / "tokens", verify="all")
    plan = feed.plan
    found: dict[tuple, Counter] = {}
    targets: Counter = Counter()
    for position in range(len(feed)):
        sample = feed[position]
        _, k, _, lane, _, window, _, real, _ = sample["provenance"].tolist()
        stage, edges, pieces = plan.stages[k], [0], plan.window_pieces(lane, window).tolist()
        for row, start, length in pieces:
            edges.append(edges[-1] + length)
            # the tokens that the trainer gets are those of the document that the books name
            own = tools.document_tokens(row, int(plan.documents[row, 2]))[start : start + length]
            assert sample["input_ids"][edges[-2] : edges[-1]].tolist() == own
            source = plan.sources[plan.document_sources[row]]
            cell = found.setdefault((stage.name, plan.lanes[lane].slice, source), Counter())
            cell["real_tokens"] += length
        assert real == edges[-1]
        targets[stage.name, plan.lanes[lane].slice] += int(sample["loss_mask"].sum())
        head = plan.sources[plan.document_sources[pieces[0][0]]]
        cell = found.setdefault((stage.name, plan.lanes[lane].slice, head), Counter())
        cell["padding_tokens"] += stage.sequence_length - real
        cell["windows"] += 1
    books = {
        (row["stage"], row["slice"], row["source"]): Counter(
            {name: row[name] for name in ("real_tokens", "padding_tokens", "windows")}
        )
        for row in account(plan).to_pylist()
    }
    assert found == books
    told: Counter = Counter()  # of a document cut in two, or run together with the next one
    for row in account(plan).to_pylist():
        told[row["stage"], row["slice"]] += row["loss_tokens"]
    assert told == targets
    total = sum(cell["real_tokens"] + cell["padding_tokens"] for cell in found.values())
    assert total == sum(s.windows * s.sequence_length for s in plan.stages)
