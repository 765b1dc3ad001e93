"""Plain rows into a new `ledger.duckdb`, in one transaction.

The caller gives a temporary path and renames; a ledger is never changed in place, so that a reader
sees the old books or the new ones. Rows go in as Arrow tables: `executemany` takes them one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import pyarrow as pa

from ..documents.errors import ContractError, did_you_mean

SCHEMA = files(__package__).joinpath("schema.sql")
MEMORY = "512MB"  # of DuckDB; beyond it spills to disk
THREADS = 2

Rows: TypeAlias = pa.Table | Iterable[Sequence[Any]]


def connect(path: Path | None = None, *, read_only: bool = False) -> duckdb.DuckDBPyConnection:
    """Open DuckDB with bounded threads and memory; in memory without a path."""
    con = duckdb.connect(
        ":memory:" if path is None else str(path),
        read_only=read_only,
        config={"threads": THREADS, "memory_limit": MEMORY},
    )
    con.execute("SET enable_progress_bar = false")
    return con


def write_ledger(path: Path, tables: Mapping[str, Rows]) -> None:
    """Make the ledger at `path`, which must not exist; see `fill`."""
    con = connect(path)
    try:
        fill(con, tables)
        con.execute("CHECKPOINT")
    finally:
        con.close()


def fill(con: duckdb.DuckDBPyConnection, tables: Mapping[str, Rows]) -> None:
    """Create the schema in an empty database and insert rows by table, in one transaction.

    Rows are sequences in the column order of schema.sql, or Arrow tables with those column names.
    ContractError: a table that the schema does not have, or rows that do not fit it.
    """
    try:
        con.execute("BEGIN")
        con.execute(SCHEMA.read_text(encoding="utf-8"))
        known = [r[0] for r in con.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        for name, rows in tables.items():
            if name not in known:
                msg = f"ledger: no table {name!r}{did_you_mean(name, known)}"
                raise ContractError(msg)
            _fill(con, name, rows)
        con.execute("COMMIT")
    except duckdb.Error as error:
        msg = f"ledger: {error}"
        raise ContractError(msg) from error


def _fill(con: duckdb.DuckDBPyConnection, name: str, rows: Rows) -> None:
    described = con.execute(f'DESCRIBE "{name}"').fetchall()
    columns = [r[0] for r in described]
    if isinstance(rows, pa.Table):
        table = rows.select(columns)
    else:
        kinds = {"BIGINT": pa.int64(), "INTEGER": pa.int32(), "DOUBLE": pa.float64()}
        given: list[Sequence[Any]] = list(rows)
        schema = pa.schema([(r[0], kinds.get(r[1], pa.string())) for r in described])
        for row in given:
            if len(row) != len(columns):
                msg = f"ledger: table {name!r} has columns {columns}, got a row {list(row)!r}"
                raise ContractError(msg)
        try:
            arrays = [
                pa.array([row[i] for row in given], field.type) for i, field in enumerate(schema)
            ]
        except pa.ArrowException as error:
            msg = f"ledger: table {name!r}: {error}"
            raise ContractError(msg) from error
        table = pa.Table.from_arrays(arrays, schema=schema)
    con.register("incoming", table)
    con.execute(f'INSERT INTO "{name}" SELECT * FROM incoming')  # noqa: S608 - a table of ours
    con.unregister("incoming")
