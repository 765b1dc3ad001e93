"""Questions to a ledger: the funnel, and sums by any columns of the flow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import duckdb

from ..documents.errors import UsageError, did_you_mean

DIMENSIONS = ("pass", "stage", "source", "dump", "language", "account", "reason")
_NAMES = """
SELECT table_name FROM duckdb_tables()
UNION ALL SELECT view_name FROM duckdb_views() WHERE NOT internal
"""


class Answer(NamedTuple):
    """A result set: names and rows."""

    columns: list[str]
    rows: list[tuple[Any, ...]]


def ask(con: duckdb.DuckDBPyConnection, sql: str) -> Answer:
    """Answer a query; UsageError with DuckDB's own words when it cannot be answered."""
    try:
        result = con.execute(sql)
        if result.description is None:
            return Answer([], [])
        return Answer([c[0] for c in result.description], result.fetchall())
    except duckdb.Error as error:
        tables = [r[0] for r in con.execute(_NAMES).fetchall()]
        msg = f"--sql: {str(error).splitlines()[0]}; tables: {', '.join(sorted(tables))}"
        raise UsageError(msg) from error


def funnel(con: duckdb.DuckDBPyConnection) -> Answer:
    """What is left after each stage, over all sources."""
    return ask(con, "SELECT pass, stage, documents, bytes, tokens, documents_dropped FROM funnel")


def by(con: duckdb.DuckDBPyConnection, columns: Sequence[str]) -> Answer:
    """Sums of documents, bytes and tokens of the flow by some of its columns.

    Without `account` among them the rows are those of what was dropped and stripped: sums over
    all accounts would count a document once per stage and mean nothing.
    """
    for name in columns:
        if name not in DIMENSIONS:
            msg = f"--by {name}: no such column{did_you_mean(name, DIMENSIONS)}"
            raise UsageError(msg)
    chosen = ", ".join(columns)
    if "account" in columns:
        sums = ", ".join(f"sum({u})::BIGINT AS {u}" for u in ("documents", "bytes", "tokens"))
    elif "reason" in columns:
        sums = _gone("dropped") + ", " + _gone("stripped", documents=False)
    elif not {"stage", "pass"} & set(columns):
        sums = _ends("language" not in columns)
    else:
        sums = ", ".join(
            f"coalesce(sum({unit}) FILTER (account = '{account}'), 0)::BIGINT AS {unit}_{name}"
            for account, name in (("in", "in"), ("kept", "kept"), ("dropped", "dropped"))
            for unit in ("documents", "bytes", "tokens")
        )
    where = "WHERE reason <> ''" if "reason" in columns and "account" not in columns else ""
    order = "min(position), " if {"stage", "pass"} & set(columns) else ""
    sql = f"SELECT {chosen}, {sums} FROM flow {where} "  # noqa: S608 - names from a closed list
    return ask(con, f"{sql} GROUP BY {chosen} ORDER BY {order}{chosen}")


def _ends(entry: bool) -> str:
    """What came in first, what is left last, and all that went between: not sums over stages."""
    ends = [("in", "pass = 'read' AND account = 'kept'")] if entry else []  # no language yet there
    ends += [("kept", "pass = 'corpus' AND account = 'kept'")]
    ends += [(name, f"account = '{name}'") for name in ("dropped", "stripped", "added")]
    return ", ".join(
        f"coalesce(sum({unit}) FILTER ({where}), 0)::BIGINT AS {unit}_{name}"
        for name, where in ends
        for unit in ("documents", "bytes", "tokens")
        if unit != "documents" or name not in {"stripped", "added"}
    )


def _gone(account: str, *, documents: bool = True) -> str:
    units = ("documents", "bytes", "tokens") if documents else ("bytes", "tokens")
    return ", ".join(
        f"coalesce(sum({u}) FILTER (account = '{account}'), 0)::BIGINT AS {u}_{account}"
        for u in units
    )
