"""The demo, and the one way in which the command line starts a run."""

from __future__ import annotations

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
    farewell = f"report: {out / REPORT}\nnext: gristmill why {out} {_interesting(out)}"
    return text, outcome, farewell


def _interesting(out: Path) -> str:
    """URL of the final document that stands for the most duplicates; of several the first."""
    from ..ledger.writer import connect

    con = connect()
    try:
        row = con.execute(
            "SELECT url FROM read_parquet(?) WHERE url LIKE 'http%' "
            "ORDER BY cluster_size DESC, url LIMIT 1",
            [str(out / "corpus" / "*.parquet")],
        ).fetchone()
    finally:
        con.close()
    return str(row[0]) if row else "DOC"
