"""What an index remembers between crawls: the pairs compared, and what was decided."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

PAIR = np.dtype([("a", "<u8"), ("b", "<u8"), ("shared", "<u4"), ("either", "<u4")])


def moved(
    pairs: np.ndarray, old: list[str], old_starts: np.ndarray, new: list[str], starts: np.ndarray
) -> np.ndarray:
    """Known pairs by their new ordinals; those of runs that are gone or changed are forgotten."""
    if not old:
        return pairs
    gone = -(1 << 62)
    shift = np.array(
        [starts[new.index(n)] - old_starts[i] if n in new else gone for i, n in enumerate(old)]
    )
    out = pairs.copy()
    keep = np.ones(len(pairs), bool)
    for side in ("a", "b"):
        number = np.searchsorted(old_starts, pairs[side], side="right") - 1
        moved = pairs[side].astype(np.int64) + shift[number]
        keep &= moved >= 0
        out[side] = np.maximum(moved, 0)
    out = out[keep]
    return out[np.lexsort((out["b"], out["a"]))]


def find_pairs(known: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Place of each wanted pair among the known, which are ascending; -1 where it is not."""
    both = np.concatenate((np.stack([known["a"], known["b"]], axis=1), wanted))
    order = np.lexsort((np.arange(len(both)), both[:, 1], both[:, 0]))
    same = np.zeros(len(both), bool)
    same[1:] = (both[order][1:] == both[order][:-1]).all(axis=1)
    out = np.full(len(both), -1, np.int64)
    after = np.flatnonzero(same)
    out[order[after]] = order[after - 1]
    return out[len(known) :]


def changed_decisions(
    before: pa.Table, after: pa.Table, earlier: set[int], gone: frozenset[bytes] = frozenset()
) -> pa.Table:
    """Decisions on documents of earlier shards that differ now; one without a row was kept.

    Documents whose ids are `gone` are not named: neither they nor, as what was a witness, theirs.
    """
    old = {(r["shard"], r["id"]): r for r in before.to_pylist()}
    new = {(r["shard"], r["id"]): r for r in after.to_pylist()}
    rows = []
    for key in sorted(old.keys() | new.keys()):
        if key[0] not in earlier or key[1] in gone:
            continue
        was, now = old.get(key), new.get(key)
        told = [(r["code"], r["witness_id"]) if r else (0, None) for r in (was, now)]
        if told[0] != told[1]:
            witness = None if told[0][1] in gone else told[0][1]
            rows.append((*key, told[0][0], witness, *told[1]))
    names = ("shard", "id", "code_before", "witness_before", "code", "witness")
    kinds = (pa.uint64(), pa.binary(16), pa.uint8(), pa.binary(16), pa.uint8(), pa.binary(16))
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return pa.table({n: pa.array(c, k) for n, c, k in zip(names, columns, kinds, strict=True)})
