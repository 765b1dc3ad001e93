"""Catalogue and spec to a plan folder: feasible or refused with the cure, the same bytes always.

All that could depend on a library's version is written down as data: packing, quotas, order keys.
Cost, one core (benchmarks/feed.py): 150,000 to 190,000 documents/s with 40 slices, of which a
third is packing, a third counting repetition and the rest writing; linear in documents and lanes.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..documents.errors import ContractError, StopError, UsageError
from ..documents.fingerprint import canonical, file_digest
from .order import NAME, test_vectors
from .packing import GROUP, pack
from .plan import FORMAT, Lane, Stage, plan_id
from .quota import UNIT, integer_weights, ledger
from .selection import Catalogue
from .spec import MixSpec, StageSpec
from .usage import Usage, window_counts


def compile_plan(
    catalog: pa.Table,
    spec: MixSpec,
    *,
    tokens_digests: Mapping[str, str],
    tokenizer_digest: str,
    out: Path,
    bos: bool = False,
) -> str:
    """Compile a plan into `out/<plan id>/` and return the id (16 hex digits).

    `catalog`: one row per document, sorted by (shard, doc): shard string, doc uint32 (ordinal in
    the token shard), id binary(16), tokens uint32 (end-of-document token included), source,
    language, dump, license (strings, nullable). `tokens_digests`: shard -> the `digest` in its
    index.json; `bos`: documents begin with a control token too. UsageError when a slice is empty
    or a stage asks for more than `max_epochs` allows: one message with what there is and what would
    do. StopError when a shard has no digest. Two writers are harmless: same bytes, one rename.
    """
    documents = Catalogue(catalog)
    for name in documents.shards:
        if name not in tokens_digests:
            raise StopError(
                f"token shard {name!r} has documents in the catalogue but no digest; "
                f"{len(tokens_digests)} of {len(documents.shards)} shards are tokenised"
            )
    chosen = {name: documents.select(name, s) for name, s in sorted(spec.slices.items())}
    lanes, arrays = _pack_lanes(documents, spec, chosen)
    stages, ledgers = _schedule(spec, lanes)
    arrays |= {f"stage-{k}.ledger": table for k, table in enumerate(ledgers)}
    _check_epochs(documents, spec, stages, ledgers, lanes, arrays)
    content: dict[str, Any] = {
        "format": FORMAT,
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
    return write_plan(out, content, documents.arrays() | arrays)


def _pack_lanes(
    documents: Catalogue, spec: MixSpec, chosen: Mapping[str, np.ndarray]
) -> tuple[list[Lane], dict[str, np.ndarray]]:
    lanes: list[Lane] = []
    arrays: dict[str, np.ndarray] = {}
    for stage in spec.stages:
        for name in sorted(stage.weights):
            rows = chosen[name]
            if not len(rows):
                raise UsageError(
                    f"stage {stage.name!r}: slice {name!r} has no document among "
                    f"{len(documents.tokens)}; {documents.why_empty(spec.slices[name])}"
                )
            if _lane(lanes, name, stage) is not None:
                continue
            purpose = (spec.seed, "pack", name, stage.sequence_length, stage.packing)
            tokens = documents.tokens[rows]
            offsets, pieces = pack(tokens, stage.sequence_length, stage.packing, *purpose)
            pieces[:, 0] = rows[pieces[:, 0]]
            key = f"lane-{len(lanes)}"
            arrays[f"{key}.windows"] = offsets
            arrays[f"{key}.pieces"] = pieces
            way_back = np.lexsort((pieces[:, 1], pieces[:, 0]))
            arrays[f"{key}.by_document"] = way_back.astype(np.uint32)
            lanes.append(
                Lane(
                    slice=name,
                    sequence_length=stage.sequence_length,
                    packing=stage.packing,
                    windows=len(offsets) - 1,
                    pieces=len(pieces),
                    documents=len(rows),
                    tokens=int(tokens.sum()),
                )
            )
    return lanes, arrays


def _lane(lanes: list[Lane], name: str, stage: StageSpec) -> int | None:
    key = (name, stage.sequence_length, stage.packing)
    found = [(lane.slice, lane.sequence_length, lane.packing) for lane in lanes]
    return found.index(key) if key in found else None


def _schedule(spec: MixSpec, lanes: list[Lane]) -> tuple[list[Stage], list[np.ndarray]]:
    stages: list[Stage] = []
    ledgers: list[np.ndarray] = []
    given = [0] * len(lanes)
    position = step = 0
    for k, asked in enumerate(spec.stages):
        batch = asked.global_batch
        steps = max(1, asked.tokens // (asked.sequence_length * batch))
        windows = steps * batch
        names = sorted(asked.weights)
        weights = {name: asked.weights[name] for name in names}
        shares = integer_weights(weights, windows, f"stages[{k}] {asked.name!r}")
        table = ledger([shares[name] for name in names], windows, spec.block)
        mine = [i for name in names if (i := _lane(lanes, name, asked)) is not None]
        stages.append(
            Stage(
                name=asked.name,
                first=position,
                windows=windows,
                sequence_length=asked.sequence_length,
                packing=asked.packing,
                mask=asked.mask,
                global_batch=batch,
                first_step=step,
                asked_tokens=asked.tokens,
                slices=names,
                weights=[str(weights[name]) for name in names],
                shares=[shares[name] for name in names],
                lanes=mine,
                before=[given[i] for i in mine],
                max_epochs=[asked.max_epochs[name] for name in names],
            )
        )
        ledgers.append(table)
        for lane, count in zip(mine, table[-1].tolist(), strict=True):
            given[lane] += count
        position += windows
        step += steps
    return stages, ledgers


def _check_epochs(
    documents: Catalogue,
    spec: MixSpec,
    stages: list[Stage],
    ledgers: list[np.ndarray],
    lanes: list[Lane],
    arrays: Mapping[str, np.ndarray],
) -> None:
    """UsageError naming the worst slice of the first stage that reads a token too often."""
    kinds = ("windows", "pieces", "by_document")
    usage = Usage(
        documents.tokens,
        *([arrays[f"lane-{k}.{kind}"] for k in range(len(lanes))] for kind in kinds),
    )
    for stage, table in zip(stages, ledgers, strict=True):
        counts = table[-1].tolist()
        for lane, before, count in zip(stage.lanes, stage.before, counts, strict=True):
            read = window_counts(spec.seed, lanes[lane], before, before + count)
            usage.times[usage.segments[lane]] += usage.spread(lane, read)
        # a token in several slices of the stage may be read as often as the largest cap allows
        allowed = np.zeros_like(usage.times)
        for cap, lane in zip(stage.max_epochs, stage.lanes, strict=True):
            mine = usage.segments[lane]
            allowed[mine] = np.maximum(allowed[mine], cap)
        most = []  # reads of the lane's most read token that is read too often; 0: there is none
        for lane in stage.lanes:
            times = usage.times[usage.segments[lane]]
            most.append(int(times[times > allowed[usage.segments[lane]]].max(initial=0)))
        if not any(most):
            continue
        # to blame: of the slices that hold such a token, the one that itself asks most for its cap
        asked = [
            Fraction(before + count, lanes[lane].windows * cap) if bad else -1
            for lane, before, count, cap, bad in zip(
                stage.lanes, stage.before, counts, stage.max_epochs, most, strict=True
            )
        ]
        i = asked.index(max(asked))
        lane = stage.lanes[i]
        own = window_counts(spec.seed, lanes[lane], 0, stage.before[i] + counts[i])
        others = int((usage.times[usage.segments[lane]] - usage.spread(lane, own)).max())
        raise UsageError(_infeasible(stage, i, counts[i], lanes[lane], most[i], others))


def _infeasible(stage: Stage, i: int, asked: int, lane: Lane, most: int, others: int) -> str:
    name, cap, length = stage.slices[i], stage.max_epochs[i], stage.sequence_length
    room = lane.windows * (cap - others) - stage.before[i]  # windows that surely keep the cap
    cures = [f"max_epochs: {{{name}: {most}}}", "more documents in the slice"]
    if room >= 1 and len(stage.slices) > 1:
        share = room * 10_000 // stage.windows / 100
        cures.insert(0, f"a weight of at most {share:g} % of the stage")
    budget = room * UNIT // stage.shares[i] // stage.global_batch * stage.global_batch
    if budget >= stage.global_batch:
        cures.insert(0, f"stage tokens of at most {budget * length:,}")
    also = f", {stage.before[i]:,} windows of it in earlier stages" if stage.before[i] else ""
    also += f", and other slices or lengths read some of it {others} times" if others else ""
    return (
        f"stage {stage.name!r}: slice {name!r} lacks tokens. It has {lane.tokens:,} in "
        f"{lane.documents:,} documents ({lane.windows:,} windows of {length:,}); the stage asks "
        f"for {asked:,} windows of it{also}. Some tokens would be read {most} times; max_epochs is "
        f"{cap}. Any of these would do: {'; '.join(cures)}."
    )


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
