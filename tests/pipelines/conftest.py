"""Shared by tests of runs: a run to damage, tasks done in this process, tiny corpora."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.documents.errors import StopError
from gristmill.documents.fingerprint import canonical, digest, file_digest
from gristmill.ledger.writer import connect
from gristmill.pipelines.driver import run_recipe
from gristmill.pipelines.executors import Failure
from gristmill.pipelines.run import open_run
from gristmill.pipelines.tasks import perform


class Inline:
    """Does tasks in this process and notes them in `made`.

    `before` holds by step what is called once before its first task; `fail` is a step and the
    beginning of the keys that fail.
    """

    def __init__(self, *, before=None, fail=None):
        self.before = before or {}
        self.fail = fail
        self.made: list[tuple[str, str]] = []

    def run(self, run_dir, step, keys, *, progress):
        self.before.pop(step, lambda: None)()
        failures = []
        for key in keys:
            if self.fail and step == self.fail[0] and key.startswith(self.fail[1]):
                failures.append(Failure(key=key, attempts=1, error="planted"))
                continue
            try:
                perform(str(run_dir), step, key)
            except StopError as error:
                failures.append(Failure(key=key, attempts=1, error=str(error)))
            else:
                self.made.append((step, key))
        return failures

    def close(self):
        pass


@pytest.fixture(scope="session")
def inline() -> type[Inline]:
    """`inline()` is an executor for a run in this process."""
    return Inline


@pytest.fixture(scope="session")
def ask():
    """`ask(run, sql)`: the rows that a question to a run's books gives."""

    def rows(run, sql):
        with connect(run / "ledger.duckdb", read_only=True) as con:
            return con.execute(sql).fetchall()

    return rows


@pytest.fixture
def tiny(tmp_path):
    """`tiny(recipe, a=[row, ...])` mills rows, which stand in data/a.jsonl; returns the run."""

    def mill(recipe, **sources):
        (tmp_path / "data").mkdir(exist_ok=True)
        for name, rows in sources.items():
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            (tmp_path / "data" / f"{name}.jsonl").write_text(lines)
        (tmp_path / "tiny.yaml").write_text(recipe)
        executor = Inline()
        run_recipe(tmp_path / "tiny.yaml", tmp_path / "run", executor=executor, say=lambda _: None)
        return SimpleNamespace(out=tmp_path / "run", made=executor.made)

    return mill


@pytest.fixture
def copy(small_run, tmp_path) -> Path:
    """A run that a test may damage."""
    return Path(shutil.copytree(small_run, tmp_path / "run"))


def reseal(run: Path, name: str, change=None) -> None:
    """Make the sidecar agree with the file as it stands, and change its counts."""
    path = run / f"{name}.json"
    side = json.loads(path.read_bytes())
    side |= {"digest": file_digest(run / name), "size": (run / name).stat().st_size}
    if change:
        change(side["counts"])
    side.pop("self")
    number = side.pop("format")
    path.write_bytes(canonical(side | {"format": number, "self": digest(side)}))


def web(run: Path, with_losses: bool = False) -> str:
    """The web shard with the most documents, or losses."""
    opened = open_run(run)
    unit = "losses" if with_losses else "documents"
    shards = [n for n, s in opened.shards.items() if s.source == "web"]
    counts = {n: opened.store.require(f"{unit}/{n}.parquet").counts[unit] for n in shards}
    return max(shards, key=lambda n: counts[n])


def edit(run: Path, name: str, column: str, change) -> None:
    """Rewrite one column of a Parquet file row group by row group, and seal it."""
    file = pq.ParquetFile(run / name)
    groups = [file.read_row_group(g) for g in range(file.num_row_groups)]
    schema = file.schema_arrow
    at = schema.get_field_index(column)
    done = False
    with pq.ParquetWriter(run / name, schema, compression="zstd") as writer:
        for table in groups:
            values = table.column(column).to_pylist()
            done = done or bool(change(values))
            changed = table.set_column(
                at, schema.field(at), pa.array(values, schema.field(at).type)
            )
            writer.write_table(changed, row_group_size=max(1, table.num_rows))
    assert done, "nothing was there to change"
    reseal(run, name)


def first(test, to):
    """For `edit`: change the first value that passes a test."""

    def change(values):
        for i, value in enumerate(values):
            if value is not None and test(value):
                values[i] = to(value)
                return True
        return False

    return change


@pytest.fixture(scope="session")
def damage() -> SimpleNamespace:
    """What it takes to damage a run so that its seals still hold."""
    return SimpleNamespace(reseal=reseal, web=web, edit=edit, first=first)
