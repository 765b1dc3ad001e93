"""Clusters of which nothing is left: every document kept for them was dropped by a later stage.

A duplicate stage removes documents for the sake of one that it keeps. When a later stage drops
that one, its cluster is gone from the corpus, and the removed would have to be judged by the later
stages to take its place. The books name each such cluster and who dropped its last documents; the
cure is the recipe's order: what drops documents goes before what compares them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from ..documents.identity import shard_hash
from ..ledger.writer import connect
from .passes import Pass, attributes

if TYPE_CHECKING:
    import duckdb

    from .recipe import GlobalUse
    from .run import Run


def gone_clusters(run: Run) -> Iterator[tuple[str, str, int, int, str]]:
    """(stage, cluster, documents in it, kept then, stages that dropped those) of each gone one."""
    for at, which in enumerate(run.passes):
        if which.surveys is not None:
            later = [p for p in run.passes[at + 1 :] if _drops(run, p)]
            if later:
                yield from _of_stage(run, which.surveys, later)


def _drops(run: Run, which: Pass) -> bool:
    """Whether any stage of a pass dropped anything, its own duplicates aside."""
    own = which.applies.stage.name if which.applies else ""
    counts = (run.store.require(attributes(which.name, s)).counts["dropped"] for s in run.shards)
    return any(number for c in counts for stage, number in c.items() if stage != own)


def _of_stage(
    run: Run, use: GlobalUse, later: list[Pass]
) -> Iterator[tuple[str, str, int, int, str]]:
    con = connect()
    covered = run.covered(use)
    files = [str(run.store.path(f)) for f in run.decision_files(use)]
    hashes = pa.array([shard_hash(s) for s in covered], pa.uint64())
    con.register("shards", pa.table({"shard": covered, "hash": hashes}))
    con.execute(
        "CREATE TEMP TABLE kept AS SELECT s.shard, d.id, d.cluster, d.cluster_size "
        "FROM read_parquet(?) AS d JOIN shards AS s ON s.hash = d.shard "
        "WHERE d.code = 0 AND d.cluster IS NOT NULL AND d.cluster_size > 1",
        [files],
    )
    con.execute("CREATE TEMP TABLE dropped (shard VARCHAR, id BLOB, stage VARCHAR)")
    for which in later:
        _dropped(run, con, use, which, covered)
    yield from con.execute(
        "SELECT ?, lower(hex(cluster)), any_value(cluster_size), count(*), "
        "string_agg(DISTINCT stage, ', ' ORDER BY stage) FROM kept LEFT JOIN dropped "
        "USING (shard, id) GROUP BY cluster HAVING count(stage) = count(*) ORDER BY 2",
        [use.stage.name],
    ).fetchall()
    con.close()


def _dropped(
    run: Run, con: duckdb.DuckDBPyConnection, use: GlobalUse, which: Pass, covered: list[str]
) -> None:
    """Kept documents that a pass dropped, and by which of its stages."""
    names = {"shard": [], "place": [], "stage": []}  # type: dict[str, list[str | int]]
    for shard in covered:
        first = [which.applies.stage] if which.applies and run.covers(which.applies, shard) else []
        for place, stage in enumerate([*first, *which.stages[run.shards[shard].source]]):
            for column, value in zip(names, (shard, place + 1, stage.name), strict=True):
                names[column].append(value)
    con.register("names", pa.table(names))
    con.execute(
        "INSERT INTO dropped SELECT a.shard, a.id, n.stage FROM (SELECT id, dropped_by, "
        "parse_filename(filename, true) AS shard FROM read_parquet(?, filename = true) "
        "WHERE dropped_by > 0) AS a SEMI JOIN kept AS k ON k.shard = a.shard AND k.id = a.id "
        "JOIN names AS n ON n.shard = a.shard AND n.place = a.dropped_by WHERE n.stage <> ?",
        [[str(run.store.path(attributes(which.name, s))) for s in covered], use.stage.name],
    )
    con.unregister("names")
