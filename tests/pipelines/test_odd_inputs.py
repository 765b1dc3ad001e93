"""Whole runs over odd inputs: they are in the books, in the exit code and in the report."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

RECIPE = """
name: odd
root: .
sources:
  pages: {paths: [PATHS], converter: main_text}
shared: [exact_duplicates]
"""
# Read by every Python that starts with its folder on the path: one page goes round for ever.
HANGING = """
from gristmill.pipelines.convert import guard, main_text
real = main_text.read_page
def read_page(html, **options):
    while "this page never ends" in html:
        pass
    return real(html, **options)
main_text.read_page = read_page
guard.CPU_SECONDS = 1
"""


def page(number: int, text: str) -> bytes:
    body = (
        f"<html><body><main><p>{text} {'and so on ' * 40}{number}</p></main></body></html>".encode()
    )
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
    lines = (
        "WARC/1.0",
        "WARC-Type: response",
        f"WARC-Record-ID: <urn:{number}>",
        f"WARC-Target-URI: http://h.example/{number}",
        "Content-Type: application/http; msgtype=response",
        f"Content-Length: {len(head) + len(body)}",
    )
    return gzip.compress("\r\n".join(lines).encode() + b"\r\n\r\n" + head + body + b"\r\n\r\n")


def recipe(folder: Path, paths: str) -> Path:
    file = folder / "odd.yaml"
    file.write_text(RECIPE.replace("PATHS", paths))
    return file


def test_run_page_that_hangs_is_killed_booked_and_reported(mill, tmp_path, ask):
    texts = ("a first page", "this page never ends", "a last page")
    (tmp_path / "a.warc.gz").write_bytes(b"".join(page(n, t) for n, t in enumerate(texts)))
    (tmp_path / "site").mkdir()
    (tmp_path / "site/sitecustomize.py").write_text(HANGING)
    path = os.pathsep.join(filter(None, [str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")]))
    out = tmp_path / "run"
    done = mill.command(
        "run", recipe(tmp_path, '"*.warc.gz"'), "--out", out, "--workers", 1,
        env={"PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "pages" in done.stderr
    rows = ask(out, "select reason, kind, detail, url from losses")
    assert [(r[0], r[1], r[3]) for r in rows] == [("extract_hang", "fault", "http://h.example/1")]
    assert "CPU time" in rows[0][2]
    assert sum(pq.read_metadata(f).num_rows for f in (out / "documents").glob("*.parquet")) == 2
    assert "extract_hang" in (out / "report.html").read_text()
    why = mill.command("why", out, "http://h.example/1")
    assert "extract_hang" in why.stderr


def test_run_file_of_no_bytes_is_a_row_and_no_damage(mill, tmp_path, ask):
    (tmp_path / "a.warc.gz").write_bytes(page(1, "the only page"))
    (tmp_path / "b.warc.gz").write_bytes(b"")
    (tmp_path / "c.warc.gz").write_bytes(gzip.compress(b""))
    out = tmp_path / "run"
    done = mill.command("run", recipe(tmp_path, '"*.warc.gz"'), "--out", out, "--workers", 1)
    assert done.returncode == 0, done.stderr
    rows = ask(out, "select reason, kind, detail from losses order by detail")
    assert [r[:2] for r in rows] == [("empty_file", "dropped")] * 2
    assert "20 stored bytes" in rows[0][2]
    assert "0 bytes" in rows[1][2]
    assert mill.command("verify", out).returncode == 0


def test_run_lost_row_groups_count_by_their_rows_against_max_loss(mill, tmp_path):
    """A group that never was decoded is one row in the books, and 20,000 records lost."""
    pq.write_table(
        pa.table({"text": [f"a sound row {n}" for n in range(100)]}), tmp_path / "a.parquet"
    )
    pq.write_table(pa.table({"txt": ["x"] * 20_000}), tmp_path / "b.parquet")
    made = recipe(tmp_path, '"*.parquet"')
    made.write_text(made.read_text().replace("main_text", "main_text, max_loss: 0.01"))
    done = mill.command("run", made, "--out", tmp_path / "run", "--workers", 1)
    assert done.returncode == 1, done.stderr
    assert "99.502%" in done.stderr


def test_run_file_of_bad_lines_costs_itself_and_a_run_never_reads_itself(mill, tmp_path, ask):
    """One shard of three files; the second command finds the first one's folder below the root."""
    for name, lines in (("a", 1), ("c", 1), ("b", 0)):
        sound = "".join(f'{{"text": "a sound line {name} {n}"}}\n' for n in range(lines))
        (tmp_path / f"{name}.jsonl").write_text(sound or "{oops\n" * 1_200)
    deep = '{"text": "deep", "m": ' + "[" * 500 + "]" * 500 + "}\n"
    (tmp_path / "d.jsonl").write_text(deep)
    out = tmp_path / "run"
    made = recipe(tmp_path, '"**/*.jsonl"')  # the run has a manifest.jsonl
    for words in ((), ("run/ is a run's own folder",)):
        done = mill.command("run", made, "--out", out, "--workers", 1)
        assert done.returncode == 1, done.stderr
        assert all(w in done.stderr for w in words)
        rows = ask(out, "select reason, count(*), sum(span) from losses group by 1 order by 1")
        assert rows == [("bad_json", 1_001, 6_000 + len(deep)), ("given_up", 1, 1_200)]
        assert sum(pq.read_metadata(f).num_rows for f in (out / "documents").glob("*.parquet")) == 2
    assert ask(out, "select count(*) from shards") == [(1,)]
