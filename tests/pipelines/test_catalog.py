"""Slices by what stages wrote: the plan is made anew, no token is written again."""

from __future__ import annotations

import json
import re

import pyarrow.parquet as pq
import pytest

from gristmill.documents.errors import UsageError
from gristmill.mixing import Plan
from gristmill.pipelines.run import open_run

RECIPE = """
name: sliced
root: data
sources:
  web:
    paths: [web.jsonl]
    converter: plain
    stages: [{quality: {heads: [edu, format]}}]
  code: {paths: [code.jsonl], converter: plain}
shared: [exact_duplicates]
mixture:
  slices:
    good: {source: [web], quality.bucket: RANGE}
    talk: {quality.format: [forum, article, service]}
    copied: {exact_duplicates.cluster_size: {min: 2}}
    rest: {source: [code], length_bucket: {max: 20}}
  stages:
    - name: base
      tokens: 1024
      sequence_length: 64
      weights: {good: 2, talk: 1, copied: 1, rest: 1}
      max_epochs: 99
"""
# Long enough for a head to tell them apart: it puts every short text low.
TOPICS = re.split(
    "\n\n",
    """\
The water cycle moves water between the ocean, the air and the land. The sun warms the sea, and
part of it evaporates. High in the air the vapour cools and condenses to small drops, which are
clouds. They fall as rain or snow; rivers and ground water carry it back. A drop stays in the
air for nine days on average, in a glacier for centuries. Without evaporation from plants much
of the land would have far less rain.

Buy now! Cheap shoes, best price, free shipping, click here and order today only. Add to cart.
New in: boots, sandals, sneakers. Sign up and save 10 % on your first order. Gift cards. Size
guide. Returns within 30 days. Pay later. Rated 4.8 by customers. Only three left. Follow us.
Compare. Wish list. Need help? Chat with us. Store finder. Careers. Terms. Cookies.

I had the same problem with my printer, did you try to install the driver again? Mine stopped
after the last update and said it was offline all the time. I unplugged it, waited a minute and
added it once more. It works now but the scanner still does not. Does anybody know where the old
driver is? Thanks in advance! Edit: found it on the disc that came with it.

Photosynthesis turns light into chemical energy, which plants store as sugar. Chlorophyll
absorbs red and blue light; the energy splits water into oxygen, protons and electrons. In the
second stage an enzyme binds carbon dioxide to a sugar of five carbon atoms. The rate depends on
light, temperature and carbon dioxide: the scarcest of them limits it. Because chlorophyll
reflects green light, leaves look green.

Home | About | Contact | Privacy | Terms | Login | Register | Search | Help | Archive | Sitemap
| News | Events | Jobs | Press | Partners | Shop | Blog | Forum | Gallery | Links | Imprint
""",
)


def recipe(bounds="{max: 19, min: 0}"):
    return RECIPE.replace("RANGE", bounds)


@pytest.fixture
def rows():
    web = [{"text": f"{TOPICS[i % 5]} Note {i}. {TOPICS[(i * 3 + 1) % 5]}"} for i in range(30)]
    return {"web": [*web, web[0], web[1], web[1]], "code": [{"text": f"x = {i}"} for i in range(9)]}


def plan_of(out):
    pointer = json.loads((out / "plans/current.json").read_bytes())
    return Plan.open(out / "plans" / pointer["plan"], verify=True)


def tokens_of(out):
    return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in (out / "tokens").iterdir()}


def attributes_of(out):
    """What the passes wrote of the final documents, by id, read without the code under test."""
    kept = {}
    for shard in open_run(out).shards:
        corpus = pq.read_table(out / f"corpus/{shard}.parquet", columns=["id", "row"]).to_pylist()
        passes = [pq.read_table(out / f"attributes/{p}/{shard}.parquet").to_pylist()
                  for p in ("base", "exact_duplicates")]  # fmt: skip
        for row in corpus:
            kept[row["id"]] = {k: v for p in passes for k, v in p[row["row"]].items()}
    return kept


def chosen(plan, name):
    lane = next(i for i, lane in enumerate(plan.lanes) if lane.slice == name)
    return {plan.ids[row].tobytes() for row in plan.pieces[lane][:, 0]}


def test_slices_take_the_documents_whose_attributes_match(tiny, rows):
    out = tiny(recipe("{min: 1, max: 12}"), **rows).out
    plan, wrote = plan_of(out), attributes_of(out)
    assert len(wrote) == len(plan.ids) == 39
    buckets = {i: a.get("quality.bucket") for i, a in wrote.items()}
    assert chosen(plan, "good") == {i for i, b in buckets.items() if b is not None and 1 <= b <= 12}
    kinds = {"forum", "article", "service"}
    assert chosen(plan, "talk") == {i for i, a in wrote.items() if a.get("quality.format") in kinds}
    sizes = {i: a["exact_duplicates.cluster_size"] for i, a in wrote.items()}
    assert chosen(plan, "copied") == {i for i, size in sizes.items() if size >= 2}
    assert sorted(sizes.values())[-2:] == [2, 3]
    assert len(chosen(plan, "rest")) == 9


def test_other_buckets_and_weights_redo_the_plan_alone(tiny, rows):
    out = tiny(recipe(), **rows).out
    first, tokens = plan_of(out), tokens_of(out)
    again = tiny(recipe("{min: 3}").replace("good: 2", "good: [3, 1]"), **rows)
    assert {step for step, _ in again.made} == {"mix"}
    assert plan_of(out).id != first.id
    assert chosen(plan_of(out), "good") < chosen(first, "good")
    assert tokens_of(out) == tokens


def test_buckets_of_another_head_write_no_token(tiny, rows):
    out = tiny(recipe("{min: 2}"), **rows).out
    before, tokens = attributes_of(out), tokens_of(out)
    again = tiny(recipe("{min: 2}").replace("edu", "know"), **rows)
    steps = {step for step, _ in again.made}
    assert "pass-base" in steps
    assert "mix" in steps
    assert "tokens" not in steps
    assert tokens_of(out) == tokens
    after = attributes_of(out)
    assert chosen(plan_of(out), "good") == {
        i for i, a in after.items() if a.get("quality.bucket", -1) >= 2
    }
    assert [a.get("quality.bucket") for a in after.values()] != [
        a.get("quality.bucket") for a in before.values()
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("quality.bucket:", "qualty.bucket:"), "no source meets a stage 'qualty'; did you mean"),
        (("quality.bucket:", "quality.buckets:"), "no attribute 'quality.buckets'; did you mean"),
        (("RANGE", "[high]"), "quality.bucket: found 'high'; documents have numbers"),
    ],
)
def test_attribute_that_nothing_wrote_is_named(tiny, rows, change, words):
    with pytest.raises(UsageError, match=words):
        tiny(RECIPE.replace(*change).replace("RANGE", "{min: 1}"), **rows)


def test_attribute_that_a_stage_does_not_write_stops_before_any_work(tiny, rows, tmp_path):
    with pytest.raises(UsageError, match=r"no attribute 'quality\.buckets'; did you mean"):
        tiny(recipe().replace("quality.bucket:", "quality.buckets:"), **rows)
    assert not (tmp_path / "run").exists()


def test_attribute_of_a_shared_stage_is_looked_at_too(tiny, rows, tmp_path):
    shared = recipe().replace("shared: [", "shared: [c4, ").replace("quality.bucket:", "c4.cut:")
    assert "shared: [c4, " in shared
    with pytest.raises(UsageError, match=r"no attribute 'c4\.cut'"):
        tiny(shared, **rows)
    assert not (tmp_path / "run").exists()
