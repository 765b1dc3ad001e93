"""What hangs together with documents that are taken down, and what enters in their place.

A kept document stands for its duplicates. When it goes, the run made again keeps the next of them:
the text that had to go, where that one is a copy. So a policy follows decisions from document to
document over all duplicate stages until nothing is added. One hop a stage is not enough: of three
equal texts the kept one goes for the sake of a removed one, and the third enters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..dedup import ExactDuplicates, NearDuplicates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .run import Run

Found = dict[str, set[bytes]]  # shard -> ids
_ID = pa.binary(16)
_PROOF = ["id", "shard", "witness_id", "witness_shard", "shared", "either", "code"]


def join_duplicates(run: Run, found: Found, *, whole: bool) -> None:
    """Add to `found` what decisions of exact and near duplicates join to it, to a fixed point.

    Joined are a removed document and its witness; if `whole`, all documents of a cluster. Ids name
    content, so that those of equal records in two shards go together. Each hop reads the decision
    files once and looks only for what the hop before added.
    """
    files = [
        name
        for which in run.passes
        if (use := which.surveys) and isinstance(use.stage, (ExactDuplicates, NearDuplicates))
        for name in run.decision_files(use)
    ]
    for name in files:
        run.store.require(name)
    known = {i for ids in found.values() for i in ids}
    fresh = set(known)
    while fresh:
        some = pa.array(sorted(fresh), _ID)
        fresh = set()
        for shard, id_ in _whole(run, some) if whole else _proven(run, files, some):
            found.setdefault(run.shard_of(shard), set()).add(id_)
            if id_ not in known:
                known.add(id_)
                fresh.add(id_)


def _proven(run: Run, files: list[str], some: pa.Array) -> Iterator[tuple[int, bytes]]:
    """Both ends of every removal that has one end among `some`."""
    for name in files:
        table = pq.read_table(run.store.path(name), columns=_PROOF)
        table = table.filter(pc.is_valid(table["witness_id"]))
        ends = (pc.is_in(table[c], value_set=some) for c in ("id", "witness_id"))
        table = table.filter(pc.or_(*ends))
        for side in ("", "witness_"):
            pair = (table[side + c].to_pylist() for c in ("shard", "id"))
            yield from zip(*pair, strict=True)


def _whole(run: Run, some: pa.Array) -> Iterator[tuple[int, bytes]]:
    """All documents of the clusters that have one among `some`; a cluster is of one stage."""
    for which in run.passes:
        use = which.surveys
        if use is None or not isinstance(use.stage, (ExactDuplicates, NearDuplicates)):
            continue
        paths = [run.store.path(f) for f in run.decision_files(use)]
        touched = []
        for path in paths:
            table = pq.read_table(path, columns=["id", "cluster"])
            hits = pc.is_in(table["id"], value_set=some)
            touched += table["cluster"].filter(hits).drop_null().to_pylist()
        clusters = pa.array(sorted(set(touched)), _ID)
        for path in paths if touched else []:
            table = pq.read_table(path, columns=["shard", "id", "cluster"])
            table = table.filter(pc.is_in(table["cluster"], value_set=clusters))
            yield from zip(table["shard"].to_pylist(), table["id"].to_pylist(), strict=True)


class Before:
    """Which documents the corpus held, and what had removed the others.

    Kept in memory: 16 bytes a document of the corpus, 60 a removal.
    """

    def __init__(self, run: Run) -> None:
        self.held = {s: _corpus(run, s) for s in run.shards}
        self.removals: list[tuple[Any, pa.Table]] = []
        for which in run.passes:
            for name in run.decision_files(which.surveys) if which.surveys else []:
                if run.store.present(name) is not None and which.surveys:
                    table = pq.read_table(run.store.path(name), columns=_PROOF)
                    gone = table.filter(pc.greater(table["code"], 0))
                    self.removals.append((which.surveys.stage, gone))

    def entered(self, run: Run) -> list[dict[str, Any]]:
        """Documents that the corpus of `run`, made again, holds and did not hold, and why.

        Each has its `id`, `shard`, the `stage` that had removed it and the `reason`, `witness` the
        document that had proved this, `jaccard` as a fraction. `verbatim` tells that the two texts
        were equal but for white space. Stage and witness are null where no decision removed it.
        """
        fresh: dict[bytes, dict[str, Any]] = {}
        for shard in run.shards:
            held, now = self.held.get(shard), _corpus(run, shard)
            if held is None or len(held) == 0:
                held = pa.array([], _ID)
            for id_ in now.filter(pc.invert(pc.is_in(now, value_set=held))).to_pylist():
                why = dict.fromkeys(("stage", "reason", "witness", "jaccard"))
                fresh[id_] = {"id": id_.hex(), "shard": shard, **why, "verbatim": False}
        some = pa.array(list(fresh), _ID)
        for stage, table in self.removals:
            for row in table.filter(pc.is_in(table["id"], value_set=some)).to_pylist():
                told = fresh[row["id"]]
                told |= {"stage": stage.name, "reason": stage.reasons[row["code"]]}
                if row["witness_id"] is None:
                    continue
                told["witness"] = row["witness_id"].hex()
                told["verbatim"] = isinstance(stage, ExactDuplicates)
                if isinstance(stage, NearDuplicates):
                    told["jaccard"] = f"{row['shared']}/{row['either']}"
        return sorted(fresh.values(), key=lambda t: (t["shard"], t["id"]))


def _corpus(run: Run, shard: str) -> pa.Array:
    name = f"corpus/{shard}.parquet"
    if run.store.present(name) is None:
        return pa.array([], _ID)
    found = pq.read_table(run.store.path(name), columns=["id"]).column(0).combine_chunks()
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
