"""The example trainer on the sample data, through all three stages (make test-trainers)."""

from __future__ import annotations

import importlib.util
import json
import shutil
import signal
import subprocess
import sys
import zlib
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest

from gristmill.mixing import MixSpec, Plan, compile_plan
from gristmill.mixing.shards import EXTENT, TokenShard
from gristmill.mixing.spoken import spoken_in
from gristmill.pipelines.catalog import catalog
from gristmill.pipelines.run import open_run

pytestmark = [
    pytest.mark.trainers,
    pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="torch is not installed"),
]
EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "train.py"
MIX = {
    "global_batch": 4,
    "slices": {"web": {"source": ["web", "wet"]}, "long": {"source": ["books"]}, "rest": {}},
    "stages": [
        {
            "name": "base",
            "tokens": "48Ki",
            "sequence_length": 256,
            "weights": {"web": 0.7, "rest": 0.3},
        },
        {
            "name": "long",
            "tokens": "24Ki",
            "sequence_length": [512, 2048],
            "weights": {"long": 2, "rest": 1},
        },
        {"name": "code", "tokens": "8Ki", "sequence_length": 1024, "weights": {"rest": 1}},
    ],
}


def folder_of(run_folder, out, spoil=None):
    """A run as the example sees it: tokens (one shard's replaced by chance) and a small plan."""
    run = open_run(run_folder)
    shutil.copytree(run_folder / "tokens", out / "tokens")
    if spoil is not None:
        path = out / "tokens" / f"{spoil}.bin"
        size = path.stat().st_size // 2
        data = np.random.default_rng(0).integers(4, 16_000, size).astype("<u2").tobytes()
        path.write_bytes(data)  # spoilt before it was hashed: every checksum holds
        index = out / "tokens" / f"{spoil}.index.json"
        told = json.loads(index.read_text())
        told["crc32"] = [zlib.crc32(data[i : i + EXTENT]) for i in range(0, len(data), EXTENT)]
        told["digest"] = blake2b(data, digest_size=16).hexdigest()
        index.write_text(json.dumps(told))
    indexes = {
        p.name.removesuffix(".index.json"): json.loads(p.read_text())
        for p in (out / "tokens").glob("*.index.json")
    }
    name = compile_plan(
        catalog(run),
        MixSpec.parse(MIX),
        tokens_digests={k: v["digest"] for k, v in indexes.items()},
        tokenizer_digest=next(iter(indexes.values()))["tokenizer"],
        out=out / "plans",
        spoken={n: spoken_in(TokenShard.open(out / "tokens" / n)) for n in indexes},
    )
    (out / "plans" / "current.json").write_text(json.dumps({"plan": name}))
    return Plan.open(out / "plans" / name)


def command(run, out, *more):
    return [sys.executable, EXAMPLE, run, "--out", out, "--width", 16, *more]


def train(run, out, *more):
    done = subprocess.run(
        [str(c) for c in command(run, out, *more)], capture_output=True, text=True, check=True
    )
    return (out / "losses.csv").read_text(), done.stdout


def killed(run, out, steps, *more):
    """Train until `steps` steps are told, then SIGKILL."""
    child = subprocess.Popen(
        [str(c) for c in command(run, out, *more)], stdout=subprocess.PIPE, text=True
    )
    for _ in range(steps):
        assert child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()


def test_training_killed_and_resumed_has_the_same_loss_curve(demo_run, tmp_path):
    plan = folder_of(demo_run, tmp_path)
    assert [s.name for s in plan.stages] == ["base", "long", "code"]
    assert {plan.lanes[k].sequence_length for k in plan.stages[1].lanes} == {512, 2048}
    assert plan.turns  # what runs of agents are told is no target
    whole, said = train(tmp_path, tmp_path / "whole")
    assert said.strip().endswith("token shards out of line: []")
    for steps, more in ((5, ()), (40, ("--workers", 2)), (8, ())):  # in each of the stages
        killed(tmp_path, tmp_path / "broken", steps, *more)
    assert train(tmp_path, tmp_path / "broken")[0] == whole
    curve = [float(line.split(",")[2]) for line in whole.splitlines()[1:]]
    assert len(curve) == sum(s.windows // s.global_batch for s in plan.stages)
    assert np.mean(curve[-4:]) < curve[0] - 1  # it learns


def test_planted_bad_shard_is_found_and_traced(demo_run, tmp_path):
    # the smaller part of its slice: the monitor compares within one
    victim = next(p.name.removesuffix(".bin") for p in (demo_run / "tokens").glob("wet-*.bin"))
    plan = folder_of(demo_run, tmp_path, spoil=victim)
    said = train(tmp_path, tmp_path / "out")[1].partition("out of line:")[2]
    first, *others = json.loads(said)
    assert first["shard"] == victim
    assert first["score"] > 5
    assert {o["shard"] for o in others if o["score"] > 0} <= {victim}
    known = {
        plan.ids[row].tobytes().hex()
        for row in np.flatnonzero(plan.documents[:, 0] == plan.shards.index(victim))
    }
    assert {document for document, _, _ in first["documents"]} <= known
