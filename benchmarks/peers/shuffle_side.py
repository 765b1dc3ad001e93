"""What the peers' own shuffles make of consecutive positions; runs in their environment.

    python shuffle_side.py OUT LEVANTER_WHEEL|- POSITIONS SIZE... -- WEIGHT...

Writes `<name>-<size>.npy`, int64[positions]: the element at positions 0.., and `grain-mix.npy`:
the source at each position of a mixture. A peer that does not import is named on stdout.
"""

from __future__ import annotations

import sys
import types
import zipfile
from contextlib import nullcontext
from pathlib import Path

import numpy as np


def grain_side(out: Path, positions: int, sizes: list[int], weights: list[float]) -> None:
    import grain

    for size in sizes:
        data = grain.MapDataset.range(size).shuffle(seed=7)
        np.save(out / f"grain-{size}.npy", np.array([data[i] for i in range(positions)], np.int64))
    # element i of source k is k: what is asked is who comes when
    sources = [grain.MapDataset.source([k]).repeat() for k in range(len(weights))]
    mixed = grain.MapDataset.mix(sources, weights)
    np.save(out / "grain-mix.npy", np.array([mixed[i] for i in range(positions)], np.int64))


def levanter_side(out: Path, wheel: str, positions: int, sizes: list[int]) -> None:
    """Their `_prp.py` as it stands in the wheel; the package itself wants all of JAX's world."""
    import jax

    stand_in = types.ModuleType("levanter.utils.jax_utils")
    stand_in.local_cpu_mesh = nullcontext  # there is no other device here
    sys.modules[stand_in.__name__] = stand_in
    with zipfile.ZipFile(wheel) as archive:
        source = archive.read("levanter/data/_prp.py")
    module = types.ModuleType("levanter_prp")
    exec(compile(source, "levanter/data/_prp.py", "exec"), module.__dict__)
    for kind in ("feistel", "linear"):
        for size in sizes:
            order = module.Permutation.make(kind, size, jax.random.PRNGKey(7))
            image = np.asarray(order(np.arange(positions))).astype(np.int64)
            np.save(out / f"levanter-{kind}-{size}.npy", image)


def main() -> None:
    out, wheel, positions = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    split = sys.argv.index("--")
    sizes = [int(s) for s in sys.argv[4:split]]
    weights = [float(w) for w in sys.argv[split + 1 :]]
    for name, side in (
        ("grain", lambda: grain_side(out, positions, sizes, weights)),
        ("levanter", lambda: levanter_side(out, wheel, positions, sizes)),
    ):
        try:
            side()
        except Exception as error:  # noqa: BLE001  (whatever a peer raises, the others are measured)
            print(f"{name}: {type(error).__name__}: {str(error)[:200]}")


if __name__ == "__main__":
    main()
