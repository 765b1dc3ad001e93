"""The demo, and the one way in which the command line starts a run."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from .driver import Outcome, run_recipe

Say = Callable[[str], None]


def run_with(
    recipe: Path,
    out: Path,
    executor: str,
    workers: int | None,
    options: Mapping[str, Any],
    *,
    say: Say,
    **more: Any,
) -> Outcome:
    """`run_recipe` with an executor by name, closed whatever happens."""
    from .executors import make_executor

    hands = make_executor(executor, workers, options)
    try:
        return run_recipe(recipe, out, executor=hands, say=say, **more)
    finally:
        hands.close()


def run_demo(out: Path, workers: int | None, *, say: Say) -> tuple[str, Outcome, str]:
    """Run the demo recipe; returns the funnel as text, the outcome, and what to try next."""
    from ..ledger.funnel import funnel
    from ..ledger.writer import connect
    from .books import LEDGER, REPORT
    from .display import table

    with as_file(files("gristmill").joinpath("pipelines/recipes/demo.yaml")) as recipe:
        outcome = run_with(recipe, out, "local", workers, {}, say=say)
    con = connect(out / LEDGER, read_only=True)
    try:
        text = table(*funnel(con))
    finally:
        con.close()
    farewell = f"report: {out / REPORT}\nnext: {program()} why {out} {_interesting(out)}"
    return text, outcome, farewell


def program() -> str:
    """How a user calls this command line: its name, or its path where the name is not found."""
    if shutil.which("gristmill"):
        return "gristmill"
    called = Path(sys.argv[0])
    if called.name != "gristmill":
        return f"{os.path.relpath(sys.executable)} -m gristmill"
    return os.path.relpath(called) if called.is_absolute() else str(called)


def summary(out: Path) -> str:
    """What a run came to, in a few words: documents, tokens, faults, and where the report is."""
    from ..ledger.writer import connect
    from .books import LEDGER, REPORT

    con = connect(out / LEDGER, read_only=True)
    try:
        rows = con.execute("SELECT documents, tokens FROM funnel ORDER BY position").fetchall()
        found = con.execute("SELECT count(*) FROM losses WHERE kind = 'fault'").fetchone()
        gone = con.execute(
            "SELECT stage, lost_to, count(*) FROM gone_clusters GROUP BY 1, 2 ORDER BY 1, 2"
        ).fetchall()
    finally:
        con.close()
    (first, _), (last, tokens) = rows[0], rows[-1]
    faults = found[0] if found else 0
    said = (
        f"{last:,} of {first:,} documents left, {tokens:,} tokens; {faults:,} faults in the input"
    )
    for stage, lost_to, clusters in gone:
        said += (
            f"\nclusters of {stage} with none left: {clusters:,}; what it kept was dropped by "
            f"{lost_to}, which stands better before it in the recipe"
        )
    return f"{said}\nreport: {out / REPORT}"


def _interesting(out: Path) -> str:
    """URL of a near duplicate that was removed: its `why` names the witness."""
    from ..ledger.writer import connect

    removed = sorted((out / "decisions" / "near_duplicates").glob("*.parquet"))
    con = connect()
    try:
        row = con.execute(
            "SELECT url FROM read_parquet($documents) WHERE url LIKE 'http%' AND id IN "
            "(SELECT id FROM read_parquet($removed) WHERE code <> 0) ORDER BY url LIMIT 1",
            {
                "documents": str(out / "documents" / "*.parquet"),
                "removed": [str(p) for p in removed],
            },
        ).fetchone()
    finally:
        con.close()
    return str(row[0]) if row else "DOC"
