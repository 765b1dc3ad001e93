"""Documents taken out of a plan that is in use: their tokens are gone, the order stays.

A plan is immutable, so a taken-down document keeps its slots; what it held there is masked. Beside
the plan stand

    removed.json      shard -> digest of its masked `.bin`, and the documents (ordinals) in it
    tokens/           every token shard of the plan: masked ones as new files, others as links

so the plan reads tokens of its own, whatever the run's tokens become. The tokens of a removed
document are end-of-document tokens, its id is zeros, and the feed gives no label for them. `feed`
reads all of this with numpy alone.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from ..documents.fingerprint import canonical
from .feed import REMOVED as NAME
from .feed import REMOVED_FORMAT as FORMAT
from .feed import read_removed
from .shards import ShardPaths, TokenShard
from .tokens import Extents, save_array

STEP = 1 << 20  # tokens copied at a time


def mask_plan(
    plan_folder: Path, tokens: Path, shards: list[str], gone: dict[str, set[int]], out: Path
) -> None:
    """Write into `out` what takes documents (ordinals by shard) out of a plan over `shards`.

    The caller moves it to the plan, `removed.json` last: until then the plan reads what it read.
    What was taken out before stays out.
    """
    before = read_removed(plan_folder) or {}
    source = plan_folder / "tokens" if before else tokens
    every = {shard: set(entry["documents"]) for shard, entry in before.items()}
    for shard, more in gone.items():
        every.setdefault(shard, set()).update(more)
    (out / "tokens").mkdir(parents=True)
    told: dict[str, Any] = {}
    for shard in shards:
        documents = sorted(every.get(shard, ()))
        if documents:
            digest = mask_shard(source / shard, out / "tokens" / shard, documents)
            told[shard] = {"digest": digest, "documents": documents}
        else:
            _link(source / shard, out / "tokens" / shard)
    (out / NAME).write_bytes(canonical({"format": FORMAT, "shards": told}))


def mask_shard(source: Path, target: Path, documents: list[int]) -> str:
    """Copy a token shard with some documents blanked; the digest of the new `.bin`."""
    shard = TokenShard.open(source)
    paths = ShardPaths.of(target)
    eos = shard.index["eos_id"]
    with paths.bin.open("wb") as file:
        out = Extents(file)
        spans = [shard.span(d) for d in documents]
        for low in range(0, shard.token_count, STEP):
            high = min(low + STEP, shard.token_count)
            part = shard.tokens(low, high).copy()
            for begin, end in spans:
                if begin < high and end > low:
                    part[max(begin, low) - low : min(end, high) - low] = eos
            out.write(part.data.cast("B"))
        out.close_extent()
    ids = shard.ids.copy()
    ids[documents] = 0
    save_array(paths.unlearnt, np.asarray(shard.unlearnt))
    index = shard.index | {
        "crc32": out.crcs,
        "digest": out.hasher.hexdigest(),
        "ends": save_array(paths.ends, np.asarray(shard.ends)),
        "ids": save_array(paths.ids, ids),
    }
    paths.index.write_bytes(canonical(index) + b"\n")
    return str(index["digest"])


def _link(source: Path, target: Path) -> None:
    """The same files under another name: the run replaces its own, and never writes into one."""
    one, two = ShardPaths.of(source), ShardPaths.of(target)
    for name in ("bin", "ends", "ids", "unlearnt", "index"):
        try:
            os.link(getattr(one, name), getattr(two, name))
        except OSError:  # another file system, or one without links
            shutil.copy(getattr(one, name), getattr(two, name))
