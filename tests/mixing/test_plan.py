from __future__ import annotations

import copy
import json
import re
import shutil
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from gristmill.documents.errors import (
    ContractError,
    DamagedError,
    FormatError,
    StopError,
    UsageError,
)
from gristmill.mixing import Plan
from gristmill.mixing.account import account
from gristmill.mixing.plan import plan_id


def compiled(world, *arguments, **named):
    return Plan.open(world[0].compiled(world, *arguments, **named), verify=True)


def changed(world, edit):
    mapping = copy.deepcopy(world[0].THREE_STAGES)
    edit(mapping)
    return mapping


def test_compile_twice_same_bytes(world):
    one, two = compiled(world), compiled(world, out="again")
    assert one.id == two.id
    assert re.fullmatch("[0-9a-f]{16}", one.id)
    names = sorted(p.name for p in one.folder.iterdir())
    assert names == sorted(p.name for p in two.folder.iterdir())
    for name in names:
        assert (one.folder / name).read_bytes() == (two.folder / name).read_bytes()
    assert sorted(p.name for p in two.folder.parent.iterdir()) == [two.id]  # nothing left over


def test_compile_order_of_recipe_keys_and_chunks_of_catalogue_do_not_matter(world):
    def turn(mapping):
        mapping["slices"] = dict(reversed(mapping["slices"].items()))
        for stage in mapping["stages"]:
            stage["weights"] = dict(reversed(stage["weights"].items()))

    table = world[1]
    parts = pa.concat_tables([table.slice(0, 17), table.slice(17, 50), table.slice(67)])
    other = compiled(world, changed(world, turn), catalog=parts)
    assert other.id == compiled(world).id


def test_compile_damaged_plan_in_place_is_mended(world):
    plan = compiled(world, out="mend")
    file = plan.folder / "lane-0.pieces.npy"
    good = file.read_bytes()
    file.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    assert compiled(world, out="mend").id == plan.id
    assert file.read_bytes() == good


def test_rows_and_locate_agree_everywhere(world):
    plan = compiled(world)
    rows = plan.rows(0, plan.positions)
    for position, row in enumerate(rows.tolist()):
        assert tuple(row) == tuple(plan.locate(position)[0])
    for low, high in ((0, 0), (3, 29), (119, 122), (100, plan.positions)):
        assert (plan.rows(low, high) == rows[low:high]).all()
    for low, high in ((-1, 3), (0, plan.positions + 1), (5, 4)):
        with pytest.raises(IndexError, match="outside"):
            plan.rows(low, high)
    with pytest.raises(IndexError, match="outside"):
        plan.locate(plan.positions)


def test_rows_each_lane_reads_epochs_without_gaps_or_repeats(world):
    # lanes shared by three stages (web and code at 64) go on where the earlier stage stopped
    def edit(mapping):
        mapping["stages"].append({**mapping["stages"][2], "name": "anneal", "max_epochs": 9})

    plan = compiled(world, changed(world, edit))
    rows = plan.rows(0, plan.positions)
    shared = set(plan.stages[0].lanes) & set(plan.stages[2].lanes) & set(plan.stages[3].lanes)
    assert len(shared) == 2
    for number, lane in enumerate(plan.lanes):
        mine = rows[rows[:, 3] == number]
        times = Counter(map(tuple, mine[:, 4:].tolist()))
        assert set(times.values()) == {1}
        per_epoch = Counter(mine[:, 4].tolist())
        last = max(per_epoch)
        assert all(per_epoch[e] == lane.windows for e in range(last))


def test_rows_blocks_hold_what_the_ledger_says(world):
    plan = compiled(world)
    rows = plan.rows(0, plan.positions)
    for k, stage in enumerate(plan.stages):
        for b in range(-(-stage.windows // plan.block)):
            size = min(plan.block, stage.windows - b * plan.block)
            low = stage.first + b * plan.block
            found = Counter(rows[low : low + size, 3].tolist())
            counts = plan.block_counts(k, b)[1].tolist()
            assert [found[lane] for lane in stage.lanes] == counts


def test_blocks_have_orders_of_their_own(world):
    plan = compiled(world)
    orders = {
        tuple(plan.block_order(stage, block).forward(np.arange(16)).tolist())
        for stage, blocks in ((0, 7), (1, 1), (2, 2))
        for block in range(blocks)
    }
    assert len(orders) == 10


def test_slice_bounds_are_inclusive(world):
    bounds = {"min_tokens": 40, "max_tokens": 45}

    def edit(mapping):
        mapping["slices"]["code"] = bounds
        for stage in mapping["stages"]:
            stage["max_epochs"] = 99

    plan = compiled(world, changed(world, edit))
    expected = [n for n in world[1]["tokens"].to_pylist() if 40 <= n <= 45]
    assert {40, 45} <= set(expected)
    assert plan.content["slices"]["code"]["documents"] == len(expected)
    assert plan.content["slices"]["code"]["tokens"] == sum(expected)


def test_stages_are_whole_steps_and_step_spans_tile_the_plan(world):
    plan = compiled(world)
    assert [(s.windows, s.global_batch, s.first_step) for s in plan.stages] == [
        (120, 4, 0),
        (30, 2, 30),
        (40, 4, 45),
    ]
    for batch in (None, 1, 2, 7, 1000):
        spans = [plan.step_span(s, batch) for s in range(plan.steps(batch))]
        assert [p for low, high in spans for p in range(low, high)] == list(range(plan.positions))
        for step, (low, high) in enumerate(spans):
            assert {plan.step_of(p, batch) for p in range(low, high)} == {step}
        with pytest.raises(UsageError, match=f"expected 0 to {plan.steps(batch) - 1}"):
            plan.step_span(plan.steps(batch), batch)


def test_budget_is_rounded_down_to_steps_and_is_one_step_at_least(world):
    def edit(mapping):
        mapping["stages"][0]["tokens"] = 64 * 11 + 5
        mapping["stages"][1]["tokens"] = 1

    plan = compiled(world, changed(world, edit))
    assert [s.windows for s in plan.stages] == [8, 2, 40]
    assert plan.stages[0].asked_tokens == 709


@pytest.mark.parametrize("edited", ["replace", "longer", "gone", "more"])
def test_change_of_last_stage_keeps_earlier_positions(world, edited):
    def edit(mapping):
        last = mapping["stages"][2]
        if edited == "replace":
            mapping["slices"]["german"] = {"language": ["deu_Latn"]}
            last.update(sequence_length=32, packing="best_fit", weights={"german": 1, "code": 3})
        elif edited == "longer":
            last["tokens"] *= 2
        elif edited == "gone":
            del mapping["stages"][2]
        else:
            mapping["stages"].append({**last, "name": "anneal", "max_epochs": 9})

    plan, other = compiled(world), compiled(world, changed(world, edit))
    assert plan.id != other.id
    assert (plan.rows(0, 150)[:, [0, 1, 3, 4, 5]] == other.rows(0, 150)[:, [0, 1, 3, 4, 5]]).all()
    assert plan.prefix_digest(150) == other.prefix_digest(150)
    if edited != "gone":
        whole_blocks = 150 + 32  # the last stage has 40 windows in blocks of 16
        same = plan.prefix_digest(whole_blocks) == other.prefix_digest(whole_blocks)
        assert same == (edited in {"longer", "more"})


def test_prefix_digest_sees_seed_and_documents(world):
    plan = compiled(world)
    other = compiled(world, changed(world, lambda m: m.update(seed=8)))
    assert plan.prefix_digest(40) != other.prefix_digest(40)
    assert plan.prefix_digest(40) != plan.prefix_digest(41)


def test_one_short_document_is_a_plan(world, tmp_path):
    tools = world[0]
    catalog, digests = tools.make_corpus(tmp_path / "tokens", [{"tokens": 3}], shards=1)
    mapping = {
        "slices": {"only": {"source": [None]}},
        "stages": [
            {"name": "s", "tokens": 4 * 128, "sequence_length": 128, "weights": {"only": 1}}
        ],
    }
    for packing in ("concat", "best_fit"):
        mapping["stages"][0]["packing"] = packing
        plan = compiled((tools, catalog, digests, tmp_path), mapping)
        assert sorted(plan.rows(0, 4)[:, 4].tolist()) == [0, 1, 2, 3]
        books = account(plan).to_pylist()
        assert len(books) == 1
        assert (books[0]["real_tokens"], books[0]["padding_tokens"]) == (12, 500)
        assert (books[0]["unique_tokens"], books[0]["epochs_max"]) == (3, 4)


def test_token_in_two_slices_may_be_read_as_often_as_the_larger_cap_allows(world):
    def edit(mapping, caps):
        del mapping["stages"][1:]
        mapping["stages"][0].update(
            tokens=64 * 260, weights={"all": 0.6, "code": 0.4}, max_epochs=caps
        )

    plan = compiled(world, changed(world, lambda m: edit(m, {"all": 1, "code": 6})))
    assert max(account(plan)["epochs_max"].to_pylist()) == 6
    compiled(world, changed(world, lambda m: edit(m, {"all": 6, "code": 1})))
    with pytest.raises(
        UsageError, match=r"slice 'code' lacks.* other slices .* read some of it 1 "
    ):
        compiled(world, changed(world, lambda m: edit(m, {"all": 1, "code": 5})))


def test_epochs_count_across_stages_and_slices(world):
    # long documents are read by base (as part of all) and by long_context: neither alone is over
    def edit(mapping, cap):
        mapping["slices"] = {"all": {}, "long": {"min_tokens": 100}}
        base = {"name": "base", "tokens": 64 * 408, "sequence_length": 64, "packing": "concat"}
        long = {"name": "long", "tokens": 256 * 72, "sequence_length": 256}
        mapping["stages"] = [
            {**base, "weights": {"all": 1}, "max_epochs": 2},
            {**long, "weights": {"long": 1}, "max_epochs": cap},
        ]

    plan = compiled(world, changed(world, lambda m: edit(m, 4)))
    assert [lane.windows for lane in plan.lanes] == [204, 36]  # two epochs each
    assert account(plan)["epochs_max"].to_pylist()[-1] == 4
    with pytest.raises(UsageError, match=r"slice 'long' lacks tokens.* read some of it 2 times"):
        compiled(world, changed(world, lambda m: edit(m, 3)))


def test_empty_slice_used_by_a_stage_names_the_value(world):
    mapping = changed(world, lambda m: m["slices"]["code"].update(source="coed"))
    with pytest.raises(
        UsageError, match=r"slice 'code' has no document.*'coed'; did you mean 'code'"
    ):
        compiled(world, mapping)
    mapping = changed(world, lambda m: m["slices"].update(long={"min_tokens": 10_000}))
    with pytest.raises(
        UsageError, match=r"slice 'long' has no document among 120.*documents have 3"
    ):
        compiled(world, mapping)


def test_slice_value_that_nothing_has_is_kept_in_the_plan(world):
    mapping = changed(world, lambda m: m["slices"]["web"].update(source=["web", "wbe"]))
    assert compiled(world, mapping).content["slices"]["web"]["unmatched"] == {"source": ["wbe"]}


def test_slices_choose_the_documents_that_match(world):
    table = world[1].to_pylist()
    plan = compiled(world)
    for number, lane in enumerate(plan.lanes):
        spec = plan.content["slices"][lane.slice]
        expected = [
            row
            for row, d in enumerate(table)
            if (not spec["source"] or d["source"] in spec["source"])
            and (not spec["license"] or d["license"] in spec["license"])
            and d["tokens"] >= spec["min_tokens"]
        ]
        assert np.unique(plan.pieces[number][:, 0]).tolist() == expected
        assert lane.tokens == sum(table[row]["tokens"] for row in expected)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda t: t.slice(0, 0), UsageError, "no documents"),
        (lambda t: t.drop_columns(["source"]), ContractError, r"\['source'\] are missing"),
        (lambda t: pa.concat_tables([t.slice(60), t.slice(0, 60)]), ContractError, "row 60 is not"),
        (lambda t: pa.concat_tables([t.slice(0, 1), t]), ContractError, "row 1 is not after"),
    ],
)
def test_catalogue_broken_raises(world, change, error, words):
    with pytest.raises(error, match=words):
        compiled(world, catalog=change(world[1]))


def test_catalogue_empty_document_raises(world):
    table = world[1]
    zero = pa.array([0] * len(table), pa.uint32())
    with pytest.raises(ContractError, match="row 0 has 0 tokens"):
        compiled(world, catalog=table.set_column(3, "tokens", zero))


def test_shard_without_digest_stops(world):
    tools, table, digests, folder = world
    with pytest.raises(StopError, match="'part-001' has documents in the catalogue but no digest"):
        compiled((tools, table, {"part-000": digests["part-000"]}, folder))


def copied(plan, folder):
    shutil.copytree(plan.folder, folder / plan.id)
    return folder / plan.id


def test_open_flipped_bytes_and_missing_files_are_named(world, tmp_path):
    folder = copied(compiled(world), tmp_path)
    for file in sorted(folder.iterdir()):
        good = file.read_bytes()
        file.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
        with pytest.raises(DamagedError, match=re.escape(file.name)):
            Plan.open(folder, verify=True)
        file.unlink()
        with pytest.raises((DamagedError, UsageError), match=re.escape(file.name)):
            Plan.open(folder)
        file.write_bytes(good)
    Plan.open(folder, verify=True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: [s.pop("end_shares") for s in c["stages"]], r"stages\[0\]: no end_shares"),
        (lambda c: c["lanes"][0].update(rows=3), r"lanes\[0\]: new rows"),
        (lambda c: c.pop("bos"), "no bos"),
        (lambda c: c["arrays"].pop("cells"), "no cells"),
    ],
)
def test_open_plan_of_another_version_names_what_differs_and_the_mending(
    world, tmp_path, change, words
):
    folder = copied(compiled(world), tmp_path)
    content = json.loads((folder / "plan.json").read_bytes())
    change(content)
    data = json.dumps(content).encode()
    new = shutil.copytree(folder, tmp_path / plan_id(data))
    (new / "plan.json").write_bytes(data)
    with pytest.raises(FormatError, match=words + r"\); compile it again: gristmill run RECIPE"):
        Plan.open(new)


def test_open_other_format_or_order_is_refused(world, tmp_path):
    folder = copied(compiled(world), tmp_path)
    content = json.loads((folder / "plan.json").read_bytes())
    for key, value, error in (
        ("format", 99, FormatError),
        ("order", "feistel4", FormatError),
        ("vectors", [[1, 0, 0], *[[2, 0, 0]] * (len(content["vectors"]) - 1)], StopError),
    ):
        data = json.dumps({**content, key: value}).encode()
        new = tmp_path / plan_id(data)
        shutil.copytree(folder, new)
        (new / "plan.json").write_bytes(data)
        with pytest.raises(error):
            Plan.open(new)
    with pytest.raises(UsageError, match=r"no plan\.json"):
        Plan.open(tmp_path)
