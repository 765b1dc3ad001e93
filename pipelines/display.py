"""Rows and nested values for people and for scripts; nothing here decides anything."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..documents.errors import UsageError

if TYPE_CHECKING:
    from ..ledger.funnel import Answer
    from .run import Run

UNKNOWN = "unknown"
# Of a document: null says that there is none of it, not that nobody knows.
_ABSENT = frozenset({"url", "host", "turns", "shard", "training"})


def to_json(value: Any) -> str:
    """JSON for scripts: keys as they come, bytes as hex."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=_plain)


def to_line(value: Any) -> str:
    """The same on one line, for JSON lines."""
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Path):
        return str(value)
    return value.item() if hasattr(value, "item") else str(value)


def cell(value: Any) -> str:
    """One value for a table: None is `unknown`, numbers have thousands separators."""
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.2f}"
    return value.hex() if isinstance(value, bytes) else str(value)


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A plain table: numbers to the right, everything else to the left."""
    cells = [list(columns), *([cell(v) for v in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    right = [
        any(isinstance(row[i], (int, float)) for row in rows)
        and all(row[i] is None or isinstance(row[i], (int, float)) for row in rows)
        for i in range(len(columns))
    ]
    return "\n".join(
        "  ".join(
            text.rjust(width) if r else text.ljust(width)
            for text, width, r in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in cells
    )


def records(rows: Sequence[Mapping[str, Any]]) -> str:
    """Dicts with the same keys as a table."""
    if not rows:
        return "nothing"
    columns = list(rows[0])
    return table(columns, [[_short(row.get(c)) for c in columns] for row in rows])


def _short(value: Any) -> Any:
    """A value that fits a cell: nothing for None, `key value` pairs for a mapping."""
    if isinstance(value, Mapping):
        return ", ".join(f"{k} {v}" for k, v in value.items())
    return "" if value is None else value


def outline(value: Any, indent: int = 0) -> str:
    """Nested dicts and lists as indented `key: value` lines."""
    pad = "  " * indent
    lines: list[str] = []
    if isinstance(value, Mapping):
        wide = max((len(str(k)) for k in value), default=0) + 1
        for key, item in value.items():
            if isinstance(item, (Mapping, list, tuple)) and item:
                lines += [f"{pad}{key}:", outline(item, indent + 1)]
            else:
                text = "none" if item is None and key in _ABSENT else _leaf(item, pad)
                lines.append(f"{pad}{str(key) + ':':<{wide}} {text}".rstrip())
    elif isinstance(value, (list, tuple)):
        for item in value:
            text = outline(item, indent + 1)
            lines.append(f"{pad}- {text.lstrip()}" if text else f"{pad}-")
    else:
        lines.append(f"{pad}{_leaf(value, pad)}")
    return "\n".join(lines)


def _leaf(value: Any, pad: str) -> str:
    if value is None or isinstance(value, (int, float, bool, bytes)):
        return cell(value)
    if isinstance(value, (Mapping, list, tuple)):  # empty ones
        return "none"
    return str(value).replace("\n", f"\n{pad}  ")


def emit(answer: Answer, form: str, to: Path | None = None) -> None:
    """Print rows, or write them to a file; UsageError where a format needs a file."""
    if form == "parquet":
        if to is None:
            msg = "--format parquet: needs --to FILE; a terminal shows no Parquet"
            raise UsageError(msg)
        _parquet(answer, to)
        return
    if form == "json":
        named = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
        text = to_json(named)
    elif form == "csv":
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(answer.columns)  # a count that is not known is an empty field
        writer.writerows(
            [v.hex() if isinstance(v, bytes) else v for v in row] for row in answer.rows
        )
        text = buffer.getvalue().rstrip("\n")
    else:
        text = table(answer.columns, answer.rows) if answer.columns else ""
    if to is None:
        print(text)  # noqa: T201 - the data that was asked for
    else:
        to.write_text(text + "\n", encoding="utf-8")


def _parquet(answer: Answer, to: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = [pa.array([row[i] for row in answer.rows]) for i in range(len(answer.columns))]
    pq.write_table(pa.table(arrays, names=answer.columns), to)


def ask_ledger(folder: Path, *, by: str | None, sql: str | None) -> Answer:
    """Answer a question to a run's ledger; without a question the funnel."""
    from ..ledger.funnel import ask, funnel
    from ..ledger.funnel import by as sums_by
    from ..ledger.writer import connect
    from .books import LEDGER
    from .run import open_run

    if by and sql:
        msg = "--by and --sql: choose one of them"
        raise UsageError(msg)
    run = open_run(folder)
    run.store.require(LEDGER)
    con = connect(run.store.path(LEDGER), read_only=True)
    try:
        if sql:
            return ask(con, sql)
        columns = [c.strip() for c in (by or "").split(",") if c.strip()]
        return sums_by(con, columns) if columns else funnel(con)
    finally:
        con.close()


def options(pairs: Sequence[str]) -> dict[str, Any]:
    """`key=value` pairs; values are YAML, so that `2` is a number and `[a, b]` a list."""
    import yaml

    found: dict[str, Any] = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign or not key:
            msg = f"--option {pair}: expected KEY=VALUE"
            raise UsageError(msg)
        found[key] = yaml.safe_load(value)
    return found


def run_and_plan(folder: Path) -> tuple[Run, str]:
    """The run and the plan's id, from a plan folder or from a run folder (its current plan)."""
    from .planned import current_plan
    from .run import open_run

    if (folder / "plan.json").is_file():
        whole = folder.resolve()
        return open_run(whole.parent.parent), whole.name
    run = open_run(folder)
    plan = current_plan(run)
    if plan is None:
        msg = f"{folder}: its recipe states no `mixture`, so there is no plan"
        raise UsageError(msg)
    return run, plan.id


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """One line on stderr that is written over, on a terminal alone."""
    if not sys.stderr.isatty():
        yield lambda _line: None
        return

    def say(line: str) -> None:
        sys.stderr.write(f"\r\x1b[K{line[:100]}")
        sys.stderr.flush()

    try:
        yield say
    finally:
        sys.stderr.write("\r\x1b[K")
