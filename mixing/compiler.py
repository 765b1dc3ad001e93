"""Catalogue and spec to a plan folder: feasible or refused with the cure, the same bytes always.

All that could depend on a library's version is written down as data: packing, quotas, order keys.
Cost (`benchmarks/feed.py --only compile --documents 10000000`): 10 million documents in 40 slices,
best fit at 4,096, take 18 to 19 CPU seconds, an account by all dimensions 10 to 11, and all of it
2.9 GiB; linear in documents and lanes. Each lane is three files that are flushed to the disk.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..documents.errors import ContractError, StopError, UsageError
from ..documents.fingerprint import canonical, file_digest
from .feasible import require_feasible
from .lengths import divided
from .order import NAME, test_vectors
from .packing import GROUP, pack
from .plan import FORMAT, MIXED, SPOKEN, Lane, plan_id
from .reads import Reads
from .selection import Catalogue
from .spec import MixSpec
from .spoken import Spoken, arrays_of
from .stages import lane_of, schedule
from .usage import Usage


def compile_plan(
    catalog: pa.Table,
    spec: MixSpec,
    *,
    tokens_digests: Mapping[str, str],
    tokenizer_digest: str,
    out: Path,
    bos: bool = False,
    spoken: Mapping[str, Spoken] | None = None,
) -> str:
    """Compile a plan into `out/<plan id>/` and return the id (16 hex digits).

    `catalog`: one row per document, sorted by (shard, doc): shard string, doc uint32 (ordinal in
    the token shard), id binary(16), tokens uint32 (end-of-document token included), source,
    language, dump, license (strings, nullable), and a column, of names or numbers, for each further
    attribute that a slice asks for. `tokens_digests`: shard -> the `digest` in its index.json;
    `bos`: documents begin with a control token too; `spoken`: shard -> what it says of
    conversations, where it has any.
    UsageError when a slice is empty or a stage asks for more than `max_epochs` allows: one message
    with what there is and what would do. StopError when a shard has no digest. Two writers are
    harmless: same bytes, one rename.
    """
    documents = Catalogue(catalog, spec.attributes)
    for name in documents.shards:
        if name not in tokens_digests:
            raise StopError(
                f"token shard {name!r} has documents in the catalogue but no digest; "
                f"{len(tokens_digests)} of {len(documents.shards)} shards are tokenised"
            )
    asked = spec
    spec, parts = divided(asked, documents)
    chosen = {name: documents.select(s) for name, s in sorted(spec.slices.items())}
    lanes, arrays = _pack_lanes(documents, spec, chosen)
    stages, ledgers = schedule(spec, lanes)
    kinds = ("windows", "pieces", "by_document")
    held = ([arrays[f"lane-{k}.{kind}"] for k in range(len(lanes))] for kind in kinds)
    usage = Usage(documents.tokens, *held)
    require_feasible(Reads(asked, parts, lanes, usage, ledgers))
    arrays |= {f"stage-{k}.ledger": table for k, table in enumerate(ledgers)}
    content: dict[str, Any] = {
        "format": MIXED if any(stage.lengths for stage in spec.stages) else FORMAT,
        "order": NAME,
        "vectors": test_vectors(),
        "seed": spec.seed,
        "block": spec.block,
        "group": GROUP,
        "pad_id": spec.pad_id,
        "bos": bos,
        "positions": sum(stage.windows for stage in stages),
        "tokenizer": tokenizer_digest,
        "shards": [{"name": n, "digest": tokens_digests[n]} for n in documents.shards],
        "sources": documents.sources,
        "dimensions": list(documents.dimensions().items()),
        "slices": {
            name: {
                **dataclasses.asdict(spec.slices[name]),
                "documents": len(rows),
                "tokens": int(documents.tokens[rows].sum()),
                "unmatched": documents.unmatched(spec.slices[name]),
            }
            for name, rows in chosen.items()
        },
        "lanes": [dataclasses.asdict(lane) for lane in lanes],
        "stages": [dataclasses.asdict(stage) for stage in stages],
    }
    turns = arrays_of(documents.shards, documents.shard, documents.doc, spoken or {})
    if turns:
        content["format"] = max(content["format"], SPOKEN)
    return write_plan(out, content, documents.arrays() | arrays | turns)


def _pack_lanes(
    documents: Catalogue, spec: MixSpec, chosen: Mapping[str, np.ndarray]
) -> tuple[list[Lane], dict[str, np.ndarray]]:
    lanes: list[Lane] = []
    arrays: dict[str, np.ndarray] = {}
    for stage in spec.stages:
        for name in stage.slices:
            rows = chosen[name]
            if not len(rows):
                raise UsageError(
                    f"stage {stage.name!r}: slice {name!r} has no document among "
                    f"{len(documents.tokens)}; {documents.why_empty(spec.slices[name])}"
                )
            if lane_of(lanes, name, stage) is not None:
                continue
            length = stage.length_of(name)
            purpose = (spec.seed, "pack", name, length, stage.packing)
            tokens = documents.tokens[rows]
            offsets, pieces = pack(tokens, length, stage.packing, *purpose)
            pieces[:, 0] = rows[pieces[:, 0]]
            key = f"lane-{len(lanes)}"
            arrays[f"{key}.windows"] = offsets
            arrays[f"{key}.pieces"] = pieces
            way_back = np.lexsort((pieces[:, 1], pieces[:, 0]))
            arrays[f"{key}.by_document"] = way_back.astype(np.uint32)
            lanes.append(
                Lane(
                    slice=name,
                    sequence_length=length,
                    packing=stage.packing,
                    windows=len(offsets) - 1,
                    pieces=len(pieces),
                    documents=len(rows),
                    tokens=int(tokens.sum()),
                )
            )
    return lanes, arrays


def write_plan(out: Path, content: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    """Write to a temporary folder, then rename; an equal plan that is there already stays."""
    out.mkdir(parents=True, exist_ok=True)
    work = out / f".plan-{os.getpid()}.tmp"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    try:
        content["arrays"] = {}
        for name, array in sorted(arrays.items()):
            file = work / f"{name}.npy"
            with file.open("wb") as stream:  # .npy 1.0, C order, little-endian: fixed bytes
                little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
                np.lib.format.write_array(stream, little, version=(1, 0), allow_pickle=False)
                stream.flush()
                os.fsync(stream.fileno())
            content["arrays"][name] = {
                "digest": file_digest(file),
                "size": file.stat().st_size,
                "shape": list(array.shape),
                "dtype": array.dtype.str,
            }
        data = canonical(content)
        name = plan_id(data)
        (work / "plan.json").write_bytes(data)
        _place(work, out / name, content["arrays"], data)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return name


def _place(work: Path, target: Path, arrays: Mapping[str, Any], data: bytes) -> None:
    for _ in range(3):
        try:
            work.rename(target)
        except OSError:  # it is there: ours, another writer's, or a damaged one
            if _whole(target, arrays, data):
                return
            aside = target.with_name(f".{target.name}-{os.getpid()}.old")
            target.rename(aside)
            shutil.rmtree(aside, ignore_errors=True)
        else:
            return
    msg = f"{target}: cannot be placed; something keeps writing there"
    raise ContractError(msg)


def _whole(target: Path, arrays: Mapping[str, Any], data: bytes) -> bool:
    try:
        return (target / "plan.json").read_bytes() == data and all(
            file_digest(target / f"{name}.npy") == array["digest"] for name, array in arrays.items()
        )
    except OSError:
        return False
