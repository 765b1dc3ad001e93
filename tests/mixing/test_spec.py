from __future__ import annotations

import copy
import re

import pytest

from gristmill.documents.errors import UsageError
from gristmill.mixing import MixSpec
from gristmill.mixing.fields import parse_tokens


def edited(naive, path, value):
    mapping = copy.deepcopy(naive("naive_mixing").THREE_STAGES)
    at = mapping
    for key in path[:-1]:
        at = at[key]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return mapping


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (["sed"], 1, "mix.sed: unknown field; did you mean 'seed'?"),
        (["seed"], "x", "mix.seed: found 'x'; expected a whole number"),
        (["seed"], True, "mix.seed: found True"),
        (["block"], 0, "mix.block: found 0; expected a whole number from 1"),
        (["slices"], {}, "mix.slices: found none"),
        (["slices"], 3, "mix.slices: found 3; expected a mapping"),
        (["slices", "web", "sources"], [], "mix.slices.web.sources: unknown field; did you mean"),
        (["slices", "web", "source"], [], "mix.slices.web.source: found []"),
        (
            ["slices", "web", "source"],
            [3],
            "mix.slices.web.source: found 3; expected names or null",
        ),
        (["slices", "long", "max_tokens"], 3, "mix.slices.long: max_tokens 3 is below min_tokens"),
        (["stages"], [], "mix.stages: found []; expected a list of stages"),
        (["stages", 1, "name"], "base", "mix.stages[1].name: 'base' is the name of two stages"),
        (["stages", 1, "name"], None, "mix.stages[1].name: is missing"),
        (["stages", 1, "packing"], "bestfit", "did you mean 'best_fit'?"),
        (["stages", 1, "mask"], "doc", "mix.stages[1].mask: found 'doc'"),
        (["stages", 1, "tokens"], "4X", "mix.stages[1].tokens: found '4X'"),
        (["stages", 1, "tokens"], 0, "mix.stages[1].tokens: found 0"),
        (["stages", 1, "sequence_length"], 1, "mix.stages[1].sequence_length: found 1"),
        (["stages", 1, "weights"], {}, "mix.stages[1].weights: found none"),
        (
            ["stages", 1, "weights", "wbe"],
            1,
            "mix.stages[1].weights.wbe: no slice of that name; did",
        ),
        (
            ["stages", 1, "weights", "web"],
            0,
            "mix.stages[1].weights.web: found 0; expected a number",
        ),
        (["stages", 1, "weights", "web"], float("nan"), "mix.stages[1].weights.web: found nan"),
        (["stages", 1, "weights", "web"], float("inf"), "mix.stages[1].weights.web: found inf"),
        (["stages", 1, "weights", "web"], [1], "weights.web: found [1]; expected a weight, or two"),
        (["stages", 1, "weights", "web"], [0, 0], "weights.web: found [0, 0]; expected a weight"),
        (["stages", 1, "weights"], {"web": [0, 1]}, "weights: all are 0 at the stage's start"),
        (["stages", 1, "weights"], None, "mix.stages[1].weights: is missing"),
        (["stages", 1, "tokens"], {"web": "1M"}, "weights: `tokens` has a target for each slice"),
        (["stages", 1, "at_least"], {"cod": 0.1}, "at_least.cod: not a slice of the stage"),
        (["stages", 1, "at_least"], {"web": 2}, "at_least.web: found 2; expected a share"),
        (["stages", 1, "at_least"], {"web": 0.7, "long": 0.4}, "at_least: comes to 1.1; expected"),
        (["stages", 1, "max_epochs"], 0, "mix.stages[1].max_epochs: found 0"),
        (["stages", 1, "max_epochs"], {"code": 2}, "max_epochs.code: not a slice of the stage"),
        (["stages", 1, "max_epochs"], {"web": 1.5}, "mix.stages[1].max_epochs.web: found 1.5"),
        (["stages", 1, "global_batch"], -4, "mix.stages[1].global_batch: found -4"),
    ],
)
def test_parse_wrong_field_is_named_with_its_path(naive, path, value, words):
    with pytest.raises(UsageError, match=re.escape(words)):
        MixSpec.parse(edited(naive, path, value))


def test_parse_defaults_and_inheritance(naive):
    spec = MixSpec.parse(naive("naive_mixing").THREE_STAGES)
    assert [s.global_batch for s in spec.stages] == [4, 2, 4]
    assert spec.stages[0].max_epochs == {"web": 4, "code": 4, "all": 4}
    assert spec.stages[1].max_epochs == {"long": 5, "web": 4}
    assert spec.slices["code"].source == ("code",)
    assert spec.slices["all"].source is None
    assert spec.stages[2].mask == "document"


def test_parse_tokens_by_slice_are_the_budget_and_the_weights(naive):
    mapping = edited(naive, ["stages", 1, "weights"], None)
    mapping["stages"][1]["tokens"] = {"web": "3K", "long": 1000}
    stage = MixSpec.parse(mapping).stages[1]
    assert stage.budget == 4000
    assert stage.slices == ["long", "web"]
    assert stage.ramps == {"web": (3000, 3000), "long": (1000, 1000)}
    assert stage.max_epochs == {"long": 5, "web": 4}


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("4M", 4_000_000),
        ("1.5B", 1_500_000_000),
        ("64Ki", 65_536),
        ("1_000", 1000),
        (" 2 t ", 2 * 10**12),
        (4e9, 4_000_000_000),
        (7, 7),
    ],
)
def test_parse_tokens_units(text, tokens):
    assert parse_tokens(text, "x") == tokens


@pytest.mark.parametrize("text", ["", "M", "1.0005k", "-3", 1.5, None, True, "4 KB", [4]])
def test_parse_tokens_wrong_is_refused(text):
    with pytest.raises(UsageError, match="expected a number of tokens"):
        parse_tokens(text, "x")
