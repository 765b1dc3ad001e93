"""The part of a batch that one rank of a context-parallel group computes.

A sequence is cut into 2 x world equal chunks, and rank r has the r-th and the r-th from the end: so
every rank meets as many earlier tokens under a causal mask (Megatron's and ring attention's zigzag
order). Positions and labels were made for the whole sequence, so nothing is lost at the cuts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from ..documents.errors import UsageError

CUT: Final = ("input_ids", "labels", "position_ids", "loss_mask")


def context_slice(batch: Mapping[str, Any], rank: int, world: int) -> dict[str, Any]:
    """The batch with `CUT` reduced to the rank's [m, S / world]; the rest as it is.

    `places` int64[S / world] are the columns of the whole that it has. `cu_seqlens` stays that of
    whole sequences: attention needs it so. UsageError where 2 x world does not divide S.
    """
    length = batch["input_ids"].shape[1]
    if world < 1 or not 0 <= rank < world:
        raise UsageError(f"context rank {rank} of {world}: expected 0 to {world - 1}")
    if length % (2 * world):
        raise UsageError(
            f"context-parallel world {world}: {2 * world} chunks do not divide {length} tokens"
        )
    chunk = length // (2 * world)
    both = (rank, 2 * world - 1 - rank)
    places = np.concatenate([np.arange(n * chunk, (n + 1) * chunk) for n in both])
    return {**batch, **{name: batch[name][:, places] for name in CUT}, "places": places}
