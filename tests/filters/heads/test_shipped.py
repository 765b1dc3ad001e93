"""What ships: recipe, model, card, figures and model card of each head belong together."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from gristmill.filters._cards import model_sha256, read_card
from gristmill.filters.fasttext import load
from gristmill.filters.heads.card import read_figures, render
from gristmill.filters.heads.data import read_recipe
from gristmill.filters.quality import SHIPPED, Quality, shipped

HEADS = ("edu", "know", "format")


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


def test_canaries_are_twelve_sets():
    lines = Path(SHIPPED.parent / "heads" / "canaries.jsonl").read_text("utf-8").splitlines()
    sets = [json.loads(line)["set"] for line in lines]
    assert {sets.count(s) for s in sets} == {8}
    assert len({json.loads(line)["text"] for line in lines}) == len(lines)
    assert len(set(sets)) == 12
