"""The proof of the decisions: each removed document has a kept witness that is near enough.

Checked from the files by SQL, over all shards that a global stage covers: the documents decided on
and their witnesses were there when the stage looked; no witness was removed; shared and either, the
sizes of the shingle sets' meet and join, reach the threshold in whole numbers; and the pass after
it did what was decided. Memory follows the documents decided on, not the corpus.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

import pyarrow as pa

from ..documents.identity import shard_hash
from .passes import attributes
from .recount import Told, quoted

if TYPE_CHECKING:
    import duckdb

    from .recipe import GlobalUse
    from .run import Run


def check_decisions(
    run: Run, con: duckdb.DuckDBPyConnection, use: GlobalUse, after: str, applying: str
) -> Iterator[Told]:
    """Each removed document names a kept witness that is near enough, and was removed."""
    covered = run.covered(use)
    files = [str(run.store.path(f)) for f in run.decision_files(use)]
    stage = use.stage.name
    hashes = pa.array([shard_hash(s) for s in covered], pa.uint64())
    con.register("shards", pa.table({"name": covered, "hash": hashes}))
    con.execute(
        "CREATE OR REPLACE TEMP TABLE d AS SELECT *, parse_filename(filename) AS file "
        "FROM read_parquet(?, filename = true)",
        [files],
    )
    con.execute(
        "CREATE OR REPLACE TEMP TABLE alive AS SELECT s.hash AS shard, a.id, a.file FROM ("
        "SELECT id, parse_filename(filename, true) AS file FROM read_parquet(?, filename = true) "
        "WHERE bytes IS NOT NULL) AS a JOIN shards AS s ON s.name = a.file "
        "SEMI JOIN (SELECT shard, id FROM d UNION SELECT witness_shard, witness_id FROM d) AS n "
        "ON n.shard = s.hash AND n.id = a.id",
        [[str(run.store.path(attributes(after, s))) for s in covered]],
    )
    limit = Fraction(getattr(use.stage, "threshold", 1))  # of equal texts: 1
    near = (
        f"d.shared::HUGEINT * {limit.denominator} >= {limit.numerator}::HUGEINT * d.either "
        "AND d.shared <= d.either AND d.either > 0"
    )
    of_removed = {
        "with no witness": "d.witness_id IS NULL",
        "with a witness that is not there": "d.witness_id IS NOT NULL AND w.id IS NULL",
        "with a witness that was removed itself": "coalesce(k.code, 0) <> 0",
        "with a witness named in the wrong shard": "s.name IS DISTINCT FROM d.witness_in",
        f"with a witness less alike than {limit}": f"NOT coalesce({near}, false)",
    }
    checks = {
        "that were not there": "a.id IS NULL",
        "with a code without a reason": f"d.code >= {len(use.stage.reasons)}",
    }
    checks |= {f"removed {k}": f"d.code <> 0 AND ({v})" for k, v in of_removed.items()}
    for what, where in checks.items():
        found = con.execute(
            "SELECT d.file, count(*), min(hex(d.id)) FROM d "  # noqa: S608 - conditions of ours
            "LEFT JOIN alive AS a ON a.shard = d.shard AND a.id = d.id "
            "LEFT JOIN alive AS w ON w.shard = d.witness_shard AND w.id = d.witness_id "
            "LEFT JOIN d AS k ON k.shard = d.witness_shard AND k.id = d.witness_id "
            f"LEFT JOIN shards AS s ON s.hash = d.witness_shard WHERE {where} GROUP BY 1 ORDER BY 1"
        ).fetchall()
        for file, number, first in found:
            name = f"decisions/{stage}/{file}"
            yield name, f"stage {stage}: {number:,} documents {what}; the first is {first.lower()}"
    column = quoted(f"{stage}.code")
    reasons = use.stage.reasons  # what its cuts empty is told where they are made
    emptied = reasons.index("emptied") if "emptied" in reasons else 0
    differing = con.execute(
        f"SELECT p.file, count(*) FROM (SELECT id, {column} AS code, "  # noqa: S608
        "parse_filename(filename, true) AS file FROM read_parquet(?, filename = true, "
        f"union_by_name = true) WHERE {column} IS NOT NULL) AS p "
        "JOIN shards AS s ON s.name = p.file "
        "LEFT JOIN d ON d.shard = s.hash AND d.id = p.id WHERE p.code <> coalesce(d.code, 0) "
        f"AND NOT (p.code = {emptied} AND coalesce(d.code, 1) = 0) "
        "GROUP BY 1 ORDER BY 1",
        [[str(run.store.path(attributes(applying, s))) for s in covered]],
    ).fetchall()
    for file, number in differing:
        yield (
            attributes(applying, file),
            f"stage {stage}: {number:,} codes are not those of its decisions",
        )
    con.unregister("shards")
