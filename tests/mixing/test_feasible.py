"""Each change that the message of an infeasible mixture names, written as a user would write it."""

from __future__ import annotations

import copy
import math
import re

import pyarrow as pa
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.documents.errors import UsageError

CHANGE = re.compile(
    r"(?P<field>tokens|weights|at_least|max_epochs|more documents): (?P<value>\{[^}]*\}|\d+)"
    r"( tokens(?P<alike>, of lengths as now)?)?"
    r"( without at_least for (?P<free>[a-z, ]+?))?( in stage '(?P<stage>\w+)')?"
)


def mixture(world, *stages):
    made = copy.deepcopy(world[0].THREE_STAGES)
    made["stages"] = [
        {"name": f"s{k}", "sequence_length": 64, **copy.deepcopy(stage)}
        for k, stage in enumerate(stages)
    ]
    return made


def refused(world, mapping):
    """(the message's lead, its proposals: each a list of changes) of a mixture that is too much."""
    with pytest.raises(UsageError, match="lacks tokens") as caught:
        world.tools.compiled(world, mapping)
    short, lead, told = re.fullmatch(
        r"stage '(\w+)': slice '[\w@+-]+' lacks tokens\. It has [\d,]+ in .* is \d+\. "
        r"(.*ny one of these) would do: (.*)\.",
        str(caught.value),
    ).groups()
    proposals = []
    for proposal in told.split("; "):
        parts = re.split(r" and (?=[a-z_ ]+: )", proposal)
        found = [CHANGE.fullmatch(part) for part in parts]
        assert all(found), proposal
        proposals.append([one.groupdict() | {"stage": one["stage"] or short} for one in found])
    return lead, proposals


def written(world, mapping, changes):
    """The mixture with the changes written into it, and the catalogue with more documents."""
    mapping, catalog = copy.deepcopy(mapping), world[1]
    for change in changes:
        (stage,) = (s for s in mapping["stages"] if s["name"] == change["stage"])
        field, value = change["field"], yaml.safe_load(change["value"])
        if field == "more documents":
            catalog = grown(world, mapping, catalog, value, change["alike"])
        elif isinstance(value, dict) and isinstance(stage.get(field), dict):
            stage[field] |= value
        else:
            stage[field] = value
        for name in filter(None, (change["free"] or "").split(", ")):
            del stage["at_least"][name]
    return mapping, catalog


def grown(world, mapping, catalog, lacking, alike):
    """The catalogue with documents of whole windows, or of the lengths that the slice has."""
    rows, extra = world[1].to_pylist(), []
    for name, tokens in lacking.items():
        spec = mapping["slices"][name]
        mine = [r for r in rows if r["source"] in spec.get("source", "web code books")]
        mine = [r for r in mine if r["tokens"] >= spec.get("min_tokens", 1)]
        size = max(longest(s) for s in mapping["stages"])
        given = 0
        while given < tokens:
            length = mine[len(extra) % len(mine)]["tokens"] if alike else size
            extra.append({**mine[-1], "doc": 1000 + len(extra), "tokens": length})
            given += length
    extra = [{**row, "shard": rows[-1]["shard"]} for row in extra]
    return pa.concat_tables([catalog, pa.Table.from_pylist(extra, catalog.schema)])


def longest(stage):
    asked = stage["sequence_length"]
    if isinstance(asked, dict):
        return max(asked.values())
    return max(asked) if isinstance(asked, list) else asked


MIXED = {"sequence_length": [64, 256], "tokens": 256 * 120}
CASES = {
    "mixed lengths": [{**MIXED, "weights": {"web": 1, "code": 1}}],
    "mixed lengths, one slice": [{**MIXED, "weights": {"web": 1}}],
    "mixed lengths, one short": [{**MIXED, "weights": {"web": 9, "code": 1}}],
    "mixed lengths, targets": [
        {"sequence_length": [64, 256], "tokens": {"web": 20000, "code": 9000}}
    ],
    "mixed lengths, minimum": [
        {**MIXED, "weights": {"web": 1, "code": 9}, "at_least": {"web": 0.8}}
    ],
    "mixed lengths after plain": [
        {"tokens": 64 * 150, "weights": {"web": 1}},
        {**MIXED, "weights": {"web": 1, "code": 1}, "max_epochs": {"web": 4, "code": 9}},
    ],
    "one number of epochs for all": [
        {"tokens": 64 * 600, "weights": {"web": 2, "code": 1}, "max_epochs": 7}
    ],
    "a later stage short then": [
        {"tokens": {"web": 20000, "code": 2000}},
        {"tokens": 64 * 100, "weights": {"web": 1, "code": 1}, "at_least": {"web": 0.4}},
    ],
    "two stages short, each by itself": [
        {"tokens": 64 * 300, "weights": {"web": 1}},
        {"tokens": 64 * 900, "weights": {"code": 1}},
    ],
    "three stages short": [
        {"tokens": 64 * 300, "weights": {"web": 3, "code": 1}},
        {**MIXED, "weights": {"code": 1, "web": [0, 1]}},
        {"tokens": 64 * 400, "weights": {"web": 1, "code": 1}, "max_epochs": 6},
    ],
    # Lighter in the first stage, `web` is short in the second still: the search went on for ever.
    "short again in a later stage": [
        {
            "sequence_length": [64, 256],
            "tokens": 64 * 228,
            "weights": {"code": 2, "long": 1, "web": 5},
            "max_epochs": 3,
        },
        {"tokens": 64 * 720, "weights": {"web": 1}, "max_epochs": 4},
    ],
}


SHORT = {
    "one slice": {},
    "one slice with a ramp": {
        "weights": {"web": [0.9, 0.2], "code": 0.1, "long": [0, 0.3]},
        "max_epochs": {"long": 9, "code": 20},
    },
    "two slices": {"weights": {"web": 0.5, "code": 0.3, "long": 0.2}},
    "targets": {"tokens": {"web": 30_000, "long": 4_000}, "weights": None},
    "minimum share": {
        "weights": {"web": 0.1, "code": 0.1, "long": 0.8},
        "at_least": {"web": 0.6},
        "max_epochs": {"long": 9, "code": 9},
    },
    "all slices": {"weights": {"web": 0.9, "code": 0.1}, "packing": "best_fit"},
}


def short_stage(**stage):
    """One stage that asks for too much, its windows and masks as plain as they can be."""
    plain = {"name": "base", "packing": "concat", "mask": "none"}
    asked = {"tokens": 64 * 600, "weights": {"web": 0.6, "code": 0.04, "long": 0.36}}
    return {k: v for k, v in (plain | asked | stage).items() if v is not None}


def a_bit_more(field, value):
    """What is too much by the least that can be stated: of one of the values."""
    if field == "tokens" and isinstance(value, int):
        yield value + 64 * 4
    elif field == "max_epochs":
        yield from ({**value, name: value[name] - 1} for name in value)
    elif field == "more documents":
        yield {name: tokens - 64 for name, tokens in value.items()}
    elif field == "tokens" and len(value) > 1:  # the whole stage: one step more, in proportion
        scale = 1 + 64 * 4 / sum(value.values())
        yield {name: int(tokens * scale) + 1 for name, tokens in value.items()}
    elif field == "weights" and len(value) > 1:  # in proportion
        yield {name: number * (1 + 1e-4) for name, number in value.items()}
    else:  # the last of six digits

        def more(number):
            if isinstance(number, list):
                return [more(n) for n in number]
            return number + 10.0 ** (math.floor(math.log10(number)) - 5) if number else number

        one = 64 * 4 if field == "tokens" else 0
        yield {name: number + one if one else more(number) for name, number in value.items()}


@pytest.mark.parametrize("kind", SHORT)
def test_each_of_three_proposals_works_and_is_the_smallest(world, kind):
    mapping = mixture(world, short_stage(**SHORT[kind]))
    _, proposals = refused(world, mapping)
    assert len(proposals) == 3
    for (change,) in proposals:
        world.tools.compiled(world, *written(world, mapping, [change]))
        for worse in a_bit_more(change["field"], yaml.safe_load(change["value"])):
            less = change | {"value": yaml.safe_dump(worse, default_flow_style=True)}
            with pytest.raises(UsageError, match="lacks tokens"):
                world.tools.compiled(world, *written(world, mapping, [less]))


def test_message_is_one_line_with_all_there_is_to_know(world):
    with pytest.raises(UsageError) as caught:
        world.tools.compiled(world, mixture(world, short_stage()))
    assert str(caught.value) == (
        "stage 'base': slice 'web' lacks tokens. It has 2,790 in 60 documents (44 windows of 64); "
        "the stage asks for 360 windows of it. Some tokens would be read 9 times; max_epochs is "
        "4. Any one of these would do: tokens: 18688; weights: {web: 0.166929}; "
        "max_epochs: {web: 9}."
    )


def test_stage_short_by_an_earlier_one_names_what_to_cut_there(world):
    first = short_stage(tokens=64 * 176, weights={"web": 1}, max_epochs=4)
    mapping = mixture(world, first, first | {"name": "again", "tokens": 64 * 40})
    with pytest.raises(UsageError, match="stage 'again': slice 'web' lacks") as caught:
        world.tools.compiled(world, mapping)
    assert ", 176 windows of it in earlier stages" in str(caught.value)
    _, proposals = refused(world, mapping)
    assert [(c["stage"], c["field"], yaml.safe_load(c["value"])) for (c,) in proposals] == [
        ("again", "max_epochs", {"web": 5}),
        ("base", "tokens", 64 * 136),
        ("again", "more documents", {"web": 64 * 10}),
    ]
    mapping["stages"][0]["tokens"] = 64 * 136
    world.tools.compiled(world, mapping)
    mapping["stages"][0]["tokens"] = 64 * 140
    with pytest.raises(UsageError, match="'again': slice 'web' lacks"):
        world.tools.compiled(world, mapping)


@pytest.mark.parametrize("case", CASES)
def test_every_proposal_is_accepted_when_written(world, case):
    mapping = mixture(world, *CASES[case])
    lead, proposals = refused(world, mapping)
    single = any(len(changes) == 1 for changes in proposals)
    assert lead == (
        "Any one of these" if single else "No single change was found; any one of these"
    )
    for changes in proposals:
        world.tools.compiled(world, *written(world, mapping, changes))


def test_proposals_of_a_stage_by_length_name_slices_of_the_recipe(world):
    mapping = mixture(world, *CASES["mixed lengths"])
    fields = {change["field"]: change["value"] for (change,) in refused(world, mapping)[1]}
    assert set(yaml.safe_load(fields["max_epochs"])) <= {"web", "code"}
    assert set(yaml.safe_load(fields.get("more documents", "{}"))) <= {"web", "code"}


def test_proposals_together_do_only_together(world):
    mapping = mixture(world, *CASES["two stages short, each by itself"])
    together = [changes for changes in refused(world, mapping)[1] if len(changes) > 1]
    assert together
    for changes in together:
        for k in range(len(changes)):
            with pytest.raises(UsageError, match="lacks tokens"):
                world.tools.compiled(
                    world, *written(world, mapping, changes[:k] + changes[k + 1 :])
                )


@given(data=st.data())
@settings(max_examples=12)
def test_every_proposal_is_accepted_in_random_mixtures(world, data):
    def stage():
        names = data.draw(st.sampled_from([("web",), ("web", "code"), ("code", "long", "web")]))
        return {
            "tokens": 256 * data.draw(st.integers(20, 200)),
            "sequence_length": data.draw(st.sampled_from([64, [64, 256], [32, 64, 128]])),
            "weights": {name: data.draw(st.integers(1, 5)) for name in names},
            "max_epochs": data.draw(st.sampled_from([3, 4, 8])),
        }

    mapping = mixture(world, *(stage() for _ in range(data.draw(st.integers(1, 3)))))
    try:
        world.tools.compiled(world, mapping)
    except UsageError:
        for changes in refused(world, mapping)[1]:
            if changes[0]["field"] != "more documents":  # depends on the documents' lengths
                world.tools.compiled(world, *written(world, mapping, changes))
