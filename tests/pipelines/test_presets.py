"""Recipes after published mixtures run scaled down, and serve the shares that they state."""

from __future__ import annotations

import json
import random
import shutil
from fractions import Fraction
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from gristmill.mixing import MixSpec, TokenFeed
from gristmill.pipelines.planned import current_plan
from gristmill.pipelines.run import open_run

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "pipelines" / "recipes"
SHRINK = 64  # of sequence lengths and of bounds on tokens
WINDOWS = 400  # of each stage

#: What the recipes' heads say was published; shares by source, in percent.
PUBLISHED = {
    "fineweb": [(15 * 10**12, 4096, {"web": 100})],
    "olmo3": [
        (593 * 10**10, 8192,
         {"web": 76.1, "pdf": 13.6, "code": 6.89, "math": 2.56, "arxiv": 0.86, "wiki": 0.04}),
        (10**11, 8192, {"web": 22.5, "math": 20.4, "code": 20, "instruct": 27.1, "stem": 5,
                        "pdf": 5}),
        (10**11, 65536, {"pdf": 34 + 3.3, "web": 14.85, "math": 13.464, "code": 13.2,
                         "instruct": 17.886, "stem": 3.3}),
    ],
    "smollm3": [
        (814 * 10**10, 4096, {"web": 84.4, "code": 12.9, "math": 2.7}),
        (176 * 10**10, 4096, {"web": 76.4, "code": 16.5, "math": 7.1}),
        (123 * 10**10, 4096, {"web": 63.1, "code": 28.3, "math": 7.5}),
        (472 * 10**8, 32768, {"web": 51.4, "code": 29.1, "math": 8.5, "reasoning": 10}),
        (472 * 10**8, 65536, {"web": 55.1, "code": 26.6, "math": 8.3, "reasoning": 10}),
    ],
    "glm5": [(18 * 10**12, 4096, None), (9 * 10**12, 4096, None), (10**12, 32768, None),
             (5 * 10**11, 131072, None), (5 * 10**10, 204800, None)],
    "deepseek_v4": [(None, 4096, None), (None, 16384, None), (None, 65536, None),
                    (None, 1 << 20, None)],
}  # fmt: skip


def mixture(name):
    return yaml.safe_load((RECIPES / f"{name}.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", PUBLISHED)
def test_preset_states_what_was_published(name):
    given = mixture(name)["mixture"]
    spec = MixSpec.parse(given)
    assert len(spec.stages) == len(PUBLISHED[name])
    for stage, (tokens, length, shares) in zip(spec.stages, PUBLISHED[name], strict=True):
        assert tokens in (None, stage.budget)
        assert stage.sequence_length == length
        if shares is None:
            continue
        by_source = dict.fromkeys(shares, Fraction(0))
        for slice_, weight in stage.weights.items():
            (source,) = spec.slices[slice_].source
            by_source[source] += weight[0]
        assert by_source == {source: Fraction(str(share)) for source, share in shares.items()}
    if name == "deepseek_v4":  # what is published of it: 33T in all
        assert sum(stage.budget for stage in spec.stages) == 33 * 10**12


def scaled(name, folder):
    """A recipe with short windows and bounds, few windows, and no cap on what little there is."""
    recipe = mixture(name) | {"root": str(folder)}
    for piece in recipe["mixture"]["slices"].values():
        for bound in ("min_tokens", "max_tokens"):
            if bound in piece:
                piece[bound] //= SHRINK
    for stage in recipe["mixture"]["stages"]:
        stage["sequence_length"] //= SHRINK
        stage["tokens"] = stage["sequence_length"] * WINDOWS
        stage |= {"global_batch": 1, "max_epochs": 1 << 20}
    return recipe


def write_source(folder, name, converter):
    """Some documents for a source: sample data, and texts of words drawn at random."""
    folder.mkdir(parents=True)
    if converter == "repository":
        shutil.copy(ROOT / "sample_data/code/repository.jsonl.gz", folder)
    elif converter == "trajectory":
        shutil.copy(ROOT / "sample_data/agent/trajectories.jsonl.gz", folder)
    elif converter == "main_text":
        table = pq.read_table(ROOT / "sample_data/encyclopedia/articles.parquet")
        pq.write_table(table, folder / "articles.parquet")
    else:
        rng = random.Random(name)
        words = ["".join(rng.choices("abcdefghijklmnop", k=rng.randint(2, 9))) for _ in range(900)]
        lines = [
            json.dumps({"text": " ".join(rng.choices(words, k=size))})
            for size in (30, 60, 200, 900, 2500)
        ]
        (folder / "texts.jsonl").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("name", PUBLISHED)
def test_preset_runs_scaled_down_and_serves_its_shares(name, tiny, tmp_path):
    recipe = scaled(name, tmp_path / "sources")
    for source, about in recipe["sources"].items():
        write_source(tmp_path / "sources" / source, source, about["converter"])
    out = tiny(yaml.safe_dump(recipe, sort_keys=False)).out
    plan = current_plan(open_run(out))
    spec = MixSpec.parse(recipe["mixture"])
    feed = TokenFeed(plan.folder, out / "tokens")
    for k, (stage, asked) in enumerate(zip(plan.stages, spec.stages, strict=True)):
        assert stage.windows == WINDOWS
        served = plan.ledgers[k][-1].tolist()
        ends = [sum(weight[end] for weight in asked.weights.values()) for end in (0, 1)]
        for slice_, count in zip(stage.slices, served, strict=True):
            share = sum(asked.weights[slice_][end] / ends[end] for end in (0, 1)) / 2
            assert abs(count - max(1, WINDOWS * share)) < 2
        sample = feed[stage.first + WINDOWS - 1]
        assert sample["input_ids"].shape == (asked.sequence_length,)
