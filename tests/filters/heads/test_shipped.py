"""What ships: recipe, model, card, figures and model card of each head belong together."""

from __future__ import annotations

import json
import math

import pyarrow as pa
import pytest

from gristmill.documents.errors import UsageError
from gristmill.filters._cards import model_sha256, read_card
from gristmill.filters.fasttext import load
from gristmill.filters.heads.card import card_of, nulls, read_figures, render
from gristmill.filters.heads.data import read_recipe
from gristmill.filters.quality import SHIPPED, Quality, shipped

HEADS = ("edu", "know", "format")
CANARIES = SHIPPED.parent / "heads" / "canaries.jsonl"


@pytest.mark.parametrize("head", HEADS)
def test_shipped_head_is_small_and_its_card_is_of_its_figures(head):
    model = SHIPPED / f"{head}.ftz"
    assert model.stat().st_size <= 4_000_000
    figures = read_figures(SHIPPED / f"{head}.evaluation.json")
    assert figures["model_sha256"] == model_sha256(model)
    assert figures["recipe"]["label"] == read_recipe(SHIPPED / f"{head}.yaml").label
    assert render(figures) == (SHIPPED / f"{head}.md").read_text("utf-8")
    card = read_card(model, load(model).labels)
    if card.values is not None:
        assert card.cut_points.tolist() == figures["cut_points"]


def test_shipped_heads_are_those_with_a_recipe():
    assert set(shipped()) == {p.stem for p in SHIPPED.glob("*.yaml")} == set(HEADS)


LESSON = """\
Photosynthesis is the process by which plants turn light into chemical energy. In the first stage,
pigments called chlorophylls absorb light; its energy splits water and is stored in two molecules.
In the second stage, these drive the reactions that build sugar. Both stages take place in the
chloroplast, a part of the cell that is bounded by two membranes. The first needs light and happens
in the membranes of flat sacs, the thylakoids. The second takes place in the fluid around them,
where the enzyme rubisco binds carbon dioxide to a sugar of five carbon atoms. The product splits
at once into two molecules of three carbon atoms each. For example, six turns of this cycle make
one molecule of glucose. Why do leaves look green? Chlorophyll absorbs red and blue light well and
green light badly, so green is reflected. The rate of photosynthesis depends on light, on
temperature and on the concentration of carbon dioxide. If one of them is scarce it limits the
rate, whatever the others are. This can be measured by counting the bubbles of oxygen that a water
plant gives off in a minute.
"""
SHOP = """\
Add to cart. Free shipping on all orders. Sale ends today! View more products. Log in. Buy now. New
arrivals, gift cards, size guide, returns within 30 days. Rated 4.8 by customers. Only 3 left in
stock. Subscribe for 10 % off your first order. Follow us. Contact. Privacy policy. Terms. Add to
wish list. Compare. Color: blue. Size: M. Quantity: 1. Similar items you may like: cotton shirt,
linen shirt, polo shirt, summer dress, belt, socks, hat, scarf, gloves. Customers also viewed: wool
coat, rain jacket, boots. Need help? Chat with us from 9 to 5. Store finder. Careers. Gift wrapping
available at checkout. Pay in 3 with no interest. Enter your email to be told when it is back.
"""


def test_shipped_heads_put_a_lesson_above_a_shop():
    batch = pa.RecordBatch.from_pydict({"text": pa.array([LESSON, SHOP], pa.large_string())})
    scores = Quality(heads=("edu", "know")).measure(batch).scores
    for head in ("edu", "know"):
        assert scores[f"{head}_bucket"][0] > scores[f"{head}_bucket"][1] + 10


def test_shipped_heads_gain_little_by_repetition_and_nothing_by_blanks():
    entries = [json.loads(line) for line in CANARIES.read_text("utf-8").splitlines()]
    code = [entry["text"] for entry in entries if entry["set"] == "source code"]
    texts = code + [text * 50 for text in code] + [text + " \n" * 50_000 for text in code]
    batch = pa.RecordBatch.from_pydict({"text": pa.array(texts, pa.large_string())})
    scores = Quality(heads=("edu", "know")).measure(batch).scores
    for head in ("edu", "know"):
        once, often, blank = scores[f"{head}_bucket"].astype(int).reshape(3, len(code))
        assert (often - once).mean() < 3
        assert abs(blank - once).max() <= 1


def test_canaries_are_twelve_sets():
    lines = CANARIES.read_text("utf-8").splitlines()
    sets = [json.loads(line)["set"] for line in lines]
    assert {sets.count(s) for s in sets} == {8}
    assert len({json.loads(line)["text"] for line in lines}) == len(lines)
    assert len(set(sets)) == 12


def no_constant(name: str) -> None:
    raise AssertionError(name)


@pytest.mark.parametrize("head", HEADS)
def test_shipped_figures_are_json_of_the_standard(head):
    text = (SHIPPED / f"{head}.evaluation.json").read_text("utf-8")
    found = json.loads(text, parse_constant=no_constant)
    assert json.dumps(nulls(found), indent=1) + "\n" == text


def test_figures_that_cannot_be_told_are_null():
    assert nulls({"auc": math.nan, "auc_95": (math.nan, 0.5)}) == {
        "auc": None,
        "auc_95": [None, 0.5],
    }


def refusal(path) -> str:
    """What is wrong with a file of figures; empty where a card comes of it."""
    try:
        card_of(path)
    except UsageError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("head", HEADS)
def test_card_of_figures_that_lack_a_part_says_so_in_a_line(tmp_path, head):
    whole = read_figures(SHIPPED / f"{head}.evaluation.json")
    path = tmp_path / "figures.json"
    lacking = []
    for key in whole:
        path.write_text(json.dumps({k: v for k, v in whole.items() if k != key}))
        if said := refusal(path):
            assert f"found no '{key}'" in said
            lacking.append(key)
        for wrong in (None, [], {}, "x", [None], 1e400, [{"a": 1}]):
            path.write_text(json.dumps(whole | {key: wrong}))
            assert "\n" not in refusal(path)
    assert {"ladder", "quantized", "by_type", "random_split"} <= set(lacking)
    assert ("attacks" in lacking) == ("attacks" in whole)


@pytest.mark.parametrize("text", ["[]", "7", "{", "null", "[" * 100_000, '{"format": 2}', ""])
def test_card_of_other_files_says_what_is_expected(tmp_path, text):
    path = tmp_path / "figures.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="expected the JSON of `gristmill quality evaluate"):
        card_of(path)


def test_card_of_a_model_says_what_is_expected_in_a_line():
    with pytest.raises(UsageError, match="bytes that are no text; a model") as caught:
        card_of(SHIPPED / "edu.ftz")
    assert len(str(caught.value)) < 1000
    assert "\n" not in str(caught.value)
