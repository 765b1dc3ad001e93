"""How random the order is, and how even the mixture: ours beside Grain's and Levanter's own code.

    python benchmarks/shuffle.py [--cache FOLDER] [--positions 262144]

The elements at consecutive positions, of a million to three thousand million. For each order:

parity    odd elements in blocks of 1,024 positions: their variance over the binomial one
lag 1     correlation of successive elements, in standard deviations of a true shuffle
coverage  of 4,096 equal ranges of elements, those that 4,096 positions meet: mean, in standard
          deviations (a true shuffle meets 63.2 %)
spectrum  the greatest peak of the periodogram over its mean (a true shuffle: about 13)

`numpy` is numpy's own permutation: what chance alone gives. Mixtures: 40 sources of unequal shares
(a Dirichlet draw, least 2e-5). Peers are installed below --cache, never in this environment.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from peers.venv import UnavailableError, environment

from gristmill.mixing import MixSpec, Plan, compile_plan
from gristmill.mixing.order import Permutation

SIZES = (1 << 20, 1_000_003, 10_000_019, 100_000_007, 3_000_000_017)
GRAIN = ("grain==0.2.18",)
LEVANTER = "marin-levanter==0.2.20.dev202606180959"
SOURCES = 40


def statistics(image: np.ndarray, size: int) -> tuple[float, float, float, float]:
    """Parity, lag 1, coverage and spectral peak of int64[positions] elements below `size`."""
    n = len(image)
    odd = (image & 1).reshape(-1, 1024).sum(axis=1)
    parity = float(((odd - 512.0) ** 2).mean() / 256)
    x = image / size - 0.5
    lag = float(np.corrcoef(x[:-1], x[1:])[0, 1] * n**0.5)
    cells = 4096
    met = np.array([len(np.unique(part)) for part in (image * cells // size).reshape(-1, cells)])
    # occupancy of `cells` balls in as many cells
    some = cells * (1 - (1 - 1 / cells) ** cells)
    two = cells * (cells - 1) * (1 - 2 / cells) ** cells + cells * (1 - 1 / cells) ** cells
    deviation = (two - (cells * (1 - 1 / cells) ** cells) ** 2) ** 0.5
    coverage = float((met.mean() - some) / deviation * len(met) ** 0.5)
    return parity, lag, coverage, spectral_peak(x)


def spectral_peak(x: np.ndarray) -> float:
    power = np.abs(np.fft.rfft(x - x.mean()))[1:] ** 2
    return float(power.max() / power.mean())


def weights() -> list[float]:
    draw = np.random.default_rng(3).dirichlet(np.full(SOURCES, 0.5))
    return [float(w) for w in np.maximum(draw, 2e-5) / np.maximum(draw, 2e-5).sum()]


def our_mixture(folder: Path, positions: int, shares: list[float]) -> np.ndarray:
    """The slice at each position of a plan: one document of one window a source."""
    names = [f"s{k:02d}" for k in range(SOURCES)]
    nothing = pa.nulls(SOURCES, "string")
    table = pa.table(
        {
            "shard": ["part"] * SOURCES,
            "doc": pa.array(range(SOURCES), pa.uint32()),
            "id": pa.array([k.to_bytes(16, "big") for k in range(SOURCES)], pa.binary(16)),
            "tokens": pa.array([2] * SOURCES, pa.uint32()),
            "source": names,
            "language": nothing,
            "dump": nothing,
            "license": nothing,
        }
    )
    spec = MixSpec.parse(
        {
            "slices": {name: {"source": name} for name in names},
            "stages": [
                {
                    "name": "base",
                    "tokens": 2 * positions,
                    "sequence_length": 2,
                    "weights": dict(zip(names, shares, strict=True)),
                    "max_epochs": 1 << 20,
                }
            ],
        }
    )
    plan = compile_plan(table, spec, tokens_digests={"part": "0"}, tokenizer_digest="0", out=folder)
    return Plan.open(folder / plan).rows(0, positions)[:, 2]


def evenness(slices: np.ndarray, shares: list[float]) -> tuple[int, float, float, float]:
    """Sources never served, greatest error of any prefix and at edges of 4,096, spectral peak."""
    share = np.array(shares) / sum(shares)
    most = edges = 0.0
    position = np.arange(1, len(slices) + 1)
    for k in range(len(share)):
        error = np.abs(np.cumsum(slices == k) - position * share[k])
        most = max(most, float(error.max()))
        edges = max(edges, float(error[4095::4096].max()))
    unserved = int((np.bincount(slices, minlength=len(share)) == 0).sum())
    return unserved, most, edges, spectral_peak((slices == int(np.argmax(share))) * 1.0)


def wheel_of_levanter(python: Path, folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    if not (found := list(folder.glob("marin_levanter*.whl"))):
        what = [python, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, LEVANTER]
        subprocess.run([str(w) for w in what], capture_output=True, check=False)
        found = list(folder.glob("marin_levanter*.whl"))
    return str(found[0]) if found else "-"


def peers(cache: Path, out: Path, positions: int, shares: list[float]) -> None:
    try:
        python = environment(cache / "shuffle-peers", *GRAIN, "jax", "jaxtyping")
    except UnavailableError as error:
        print(f"peers: not installed ({error})")
        return
    wheel = wheel_of_levanter(python, cache / "wheels")
    side = Path(__file__).parent / "peers" / "shuffle_side.py"
    told = [python, side, out, wheel, positions, *SIZES, "--", *shares]
    subprocess.run([str(t) for t in told], check=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--positions", type=int, default=1 << 18)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out, shares = Path(folder), weights()
        peers(asked.cache or out / "cache", out, asked.positions, shares)
        print(f"{'order':20s} {'elements':>13s} {'parity':>8s} {'lag 1':>9s} {'coverage':>9s} peak")
        for size in SIZES:
            orders = {"gristmill": Permutation(size, "bench").forward(np.arange(asked.positions))}
            if size <= SIZES[2]:
                orders["numpy"] = np.random.default_rng(7).permutation(size)[: asked.positions]
            for name in ("grain", "levanter-feistel", "levanter-linear"):
                if (file := out / f"{name}-{size}.npy").is_file():
                    orders[name] = np.load(file)
            for name, image in orders.items():
                parity, lag, coverage, peak = statistics(image, size)
                print(f"{name:20s} {size:13,d} {parity:8.2f} {lag:9.1f} {coverage:9.1f} {peak:.0f}")
        print(f"\n{'mixture of 40':20s} {'unserved':>9s} {'prefix':>8s} {'at 4,096':>9s} peak")
        mixtures = {"gristmill": our_mixture(out, asked.positions, shares)}
        if (file := out / "grain-mix.npy").is_file():
            mixtures["grain"] = np.load(file)
        chance = np.random.default_rng(7).choice(SOURCES, asked.positions, p=shares)
        mixtures["drawn at random"] = chance
        for name, slices in mixtures.items():
            unserved, most, edges, peak = evenness(slices, shares)
            print(f"{name:20s} {unserved:9d} {most:8.2f} {edges:9.3f} {peak:.0f}")


if __name__ == "__main__":
    main()
