"""Clusters of which nothing is left: every document kept for them was dropped by a later stage.

A duplicate stage removes documents for the sake of one that it keeps. When a later duplicate stage
removes that one, its witness there stands for the cluster. When any other stage drops it, the
cluster is gone from the corpus. No document is handed its place: each would have to be judged by
all later stages, global ones too, which would then decide anew, as often as the cluster has
documents. The recipe's order does the same at once: what drops documents goes before what compares
them. So the books name each cluster that is gone, and who dropped its last documents.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from ..dedup import ExactDuplicates, NearDuplicates
from ..documents.identity import shard_hash
from ..ledger.writer import connect
from .passes import Pass, attributes

if TYPE_CHECKING:
    import duckdb

    from .recipe import GlobalUse
    from .run import Run


def gone_clusters(run: Run) -> Iterator[tuple[str, str, int, int, str]]:
    """(stage, cluster, documents in it, kept then, stages that dropped those) of each gone one."""
    uses = [p.surveys for p in run.passes if p.surveys is not None]
    dropping = [p for p in run.passes if _drops(run, p)]
    if not uses or not dropping:
        return
    con = connect()
    hashes = pa.array([shard_hash(s) for s in run.shards], pa.uint64())
    con.register("shards", pa.table({"shard": list(run.shards), "hash": hashes}))
    con.execute(
        "CREATE TEMP TABLE decided (stage VARCHAR, shard VARCHAR, id BLOB, gone BOOLEAN, "
        "witness_in VARCHAR, witness_id BLOB, cluster BLOB, size BIGINT)"
    )
    for use in uses:
        con.execute(
            "INSERT INTO decided SELECT ?, s.shard, d.id, d.code <> 0, w.shard, d.witness_id, "
            "d.cluster, d.cluster_size FROM read_parquet(?) AS d JOIN shards AS s "
            "ON s.hash = d.shard LEFT JOIN shards AS w ON w.hash = d.witness_shard "
            "WHERE d.cluster_size > 1",
            [use.stage.name, [str(run.store.path(f)) for f in run.decision_files(use)]],
        )
    con.execute("CREATE TEMP TABLE lost (shard VARCHAR, id BLOB, stage VARCHAR)")
    for which in dropping:
        _dropped(run, con, which)
    for use in reversed(uses):
        _stood_for(con, use)
    for use in uses:
        yield from con.execute(
            "SELECT decided.stage, lower(hex(cluster)), any_value(size), count(*), "
            "string_agg(DISTINCT lost.stage, ', ' ORDER BY lost.stage) "
            "FROM decided LEFT JOIN lost USING (shard, id) "
            "WHERE decided.stage = ? AND NOT gone AND cluster IS NOT NULL "
            "GROUP BY 1, cluster HAVING count(lost.stage) = count(*) ORDER BY 2",
            [use.stage.name],
        ).fetchall()
    con.close()


def _drops(run: Run, which: Pass) -> bool:
    """Whether any stage of a pass dropped anything."""
    return any(
        any(run.store.require(attributes(which.name, s)).counts["dropped"].values())
        for s in run.shards
    )


def _dropped(run: Run, con: duckdb.DuckDBPyConnection, which: Pass) -> None:
    """Documents kept by some global stage that a pass dropped, and by which of its stages."""
    names = {"shard": [], "place": [], "stage": []}  # type: dict[str, list[str | int]]
    for shard in run.shards:
        first = [which.applies.stage] if which.applies and run.covers(which.applies, shard) else []
        for place, stage in enumerate([*first, *which.stages[run.shards[shard].source]]):
            for column, value in zip(names, (shard, place + 1, stage.name), strict=True):
                names[column].append(value)
    con.register("names", pa.table(names))
    con.execute(
        "INSERT INTO lost SELECT a.shard, a.id, n.stage FROM (SELECT id, dropped_by, "
        "parse_filename(filename, true) AS shard FROM read_parquet(?, filename = true) "
        "WHERE dropped_by > 0) AS a SEMI JOIN (SELECT * FROM decided WHERE NOT gone) AS k "
        "ON k.shard = a.shard AND k.id = a.id "
        "JOIN names AS n ON n.shard = a.shard AND n.place = a.dropped_by",
        [[str(run.store.path(attributes(which.name, s))) for s in run.shards]],
    )
    con.unregister("names")


def _stood_for(con: duckdb.DuckDBPyConnection, use: GlobalUse) -> None:
    """What a stage removed as duplicates is lost if the witness is, and to whom that is lost."""
    if isinstance(use.stage, (ExactDuplicates, NearDuplicates)):
        con.execute(
            "CREATE OR REPLACE TEMP TABLE lost AS SELECT l.shard, l.id, "
            "CASE WHEN l.stage = $stage THEN w.stage ELSE l.stage END AS stage FROM lost AS l "
            "LEFT JOIN decided AS d ON d.stage = $stage AND d.shard = l.shard AND d.id = l.id "
            "LEFT JOIN lost AS w ON w.shard = d.witness_in AND w.id = d.witness_id",
            {"stage": use.stage.name},
        )
        con.execute("DELETE FROM lost WHERE stage IS NULL")
