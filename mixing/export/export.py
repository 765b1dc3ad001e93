"""Walk the plan, check every token on the way, hand blocks of windows to a writer."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...documents.errors import UsageError, did_you_mean
from ...documents.fingerprint import file_digest
from ..feed import TokenFeed
from ..plan import Stage
from .writers import Block, DatatroveWriter, MdsWriter, MegatronWriter, NpyWriter, Writer

FORMAT: Final = 1
BLOCK_TOKENS: Final = 1 << 20  # tokens of a block: 8 MB as the feed gives them


def _parquet(folder: Path, dtype: np.dtype, length: int, masked: bool) -> Writer:
    from .parquet import ParquetWriter  # pyarrow, which the others do without

    return ParquetWriter(folder, dtype, length, masked)


FORMATS: Final[Mapping[str, Any]] = {
    "megatron": MegatronWriter,
    "ds": DatatroveWriter,
    "npy": NpyWriter,
    "mds": MdsWriter,
    "parquet": _parquet,
}


def export(
    feed: TokenFeed, to: str, out: Path, *, stages: Sequence[str] | None = None
) -> dict[str, Any]:
    """Write stages of a plan (all of them, unless named) below `out`; returns `export.json`.

    Loss masks of conversations stand beside the tokens (`writers`). UsageError for a format or
    stage that is not there, for a plan that the format cannot hold, or where `out` exists;
    DamagedError, with nothing left behind, when a token shard is not what its index says.
    """
    if to not in FORMATS:
        raise UsageError(f"--to {to}: not a format{did_you_mean(to, FORMATS)}")
    if to == "megatron" and feed.plan.turns:
        raise UsageError(
            "--to megatron: the plan has tokens of conversations that are no targets, and .bin has "
            "no place to say which; read the plan itself (adapters.megatron.PlanDataset), export "
            "to ds, npy, mds or parquet, or lay turns out with `loss: all`"
        )
    names = [stage.name for stage in feed.plan.stages]
    for name in stages or ():
        if name not in names:
            raise UsageError(f"--stage {name}: not in the plan{did_you_mean(name, names)}")
    if out.exists():
        raise UsageError(f"{out}: exists; an export goes to a new folder")
    work = out.with_name(f"{out.name}.unfinished-{os.getpid()}")
    try:
        content = _write(feed, to, work, stages or names)
        work.rename(out)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return content


def _write(feed: TokenFeed, to: str, work: Path, names: Sequence[str]) -> dict[str, Any]:
    dtype = feed.token_dtype().newbyteorder("<")
    masked = bool(feed.plan.turns)
    stages = []
    for number, stage in enumerate(feed.plan.stages):
        if stage.name not in names:
            continue
        lengths = sorted({feed.plan.lanes[lane].sequence_length for lane in stage.lanes})
        for length in lengths:
            alone = len(lengths) == 1
            folder = work / f"{number}-{_plain(stage.name)}{'' if alone else f'-{length}'}"
            folder.mkdir(parents=True)
            with closing(FORMATS[to](folder, dtype, length, masked)) as writer:
                for block in _blocks(feed, stage, dtype, length):
                    writer.add(block)
            files = sorted(p for p in folder.rglob("*") if p.is_file())
            stages.append(
                {
                    "stage": stage.name,
                    "folder": folder.name,
                    "first_position": stage.first,
                    "windows": writer.windows,
                    "sequence_length": length,
                    "mask": stage.mask,
                    "tokens": writer.windows * length,
                    "files": {
                        f.relative_to(work).as_posix(): {
                            "size": f.stat().st_size,
                            "digest": file_digest(f),
                        }
                        for f in files
                    },
                }
            )
    content = {
        "format": FORMAT,
        "to": to,
        "plan": feed.plan.id,
        "tokenizer": feed.plan.content["tokenizer"],
        "dtype": dtype.name,
        "pad_id": feed.pad_id,
        "stages": stages,
    }
    text = json.dumps(content, indent=2, sort_keys=True) + "\n"
    (work / "export.json").write_text(text, encoding="utf-8")
    return content


def _plain(name: str) -> str:
    """A stage's name as part of a file name; its number keeps folders apart."""
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in name)[:64]


def _blocks(feed: TokenFeed, stage: Stage, dtype: np.dtype, length: int) -> Iterator[Block]:
    """The sequences of one length, in the plan's order."""
    plan = feed.plan
    each = stage.sequence_length // length  # sequences of a position
    rows = max(1, BLOCK_TOKENS // stage.sequence_length)
    end = stage.first + stage.windows
    found = plan.rows(stage.first, end)
    own = np.array([plan.lanes[lane].sequence_length == length for lane in range(len(plan.lanes))])
    mine = np.unique(found[own[found[:, 3]], 0]).tolist()
    served = [p for p in mine if not plan.skipped(p)]
    for first in range(0, len(served), rows):
        samples = [feed[p] for p in served[first : first + rows]]
        ids = np.stack([s["input_ids"] for s in samples]).reshape(-1, length)
        edges = [s["cu_seqlens"] for s in samples]
        parts = [
            np.diff(e[(e >= n * length) & (e <= (n + 1) * length)]).astype(np.int64)
            for e in edges
            for n in range(each)
        ]
        provenance = np.repeat([s["provenance"] for s in samples], each, axis=0)
        yield Block(
            positions=provenance[:, 0].copy(),
            ids=ids.astype(dtype),
            segments=parts,
            mask=np.stack([s["loss_mask"] for s in samples]).reshape(-1, length),
            provenance=provenance,
        )
