"""`report.html` from the ledger: one file, no script, no fetch, readable in light and dark.

Everything shown is a query of the ledger, so `gristmill ledger RUN --sql` gives the same numbers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from ..ledger.balance import imbalances
from ..ledger.writer import connect
from .charts import bars, escape, funnel, share, short, table, without_noughts

STYLE = """
:root { color-scheme: light dark; --ink: #1d2329; --quiet: #66707a; --line: #dde1e5;
  --page: #fdfdfc; --bar: #2f6f8f; --was: #d5e3ea; --good: #2a7d4f; --bad: #b3372b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e7ea; --quiet: #96a1ab; --line: #333b42;
  --page: #14181b; --bar: #62a8c9; --was: #263a45; --good: #63b98a; --bad: #e8796c; } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 32px 24px 64px; max-width: 1060px; background: var(--page);
  color: var(--ink); font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif }
h1 { font-size: 26px; margin: 0 0 2px } h2 { font-size: 18px; margin: 42px 0 8px }
h3 { font-size: 15px; margin: 22px 0 6px }
p { margin: 6px 0 } .quiet, .unknown { color: var(--quiet) } .good { color: var(--good) }
.bad { color: var(--bad) } code { font: 13px ui-monospace, "DejaVu Sans Mono", monospace }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px;
  margin: 22px 0 }
.tile { border: 1px solid var(--line); border-radius: 8px; padding: 12px 14px }
.tile b { display: block; font-size: 22px; font-weight: 600 }
.tile span { color: var(--quiet); font-size: 13px }
.scroll { overflow-x: auto }
table { border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums }
th { text-align: left; font-weight: 600; color: var(--quiet) }
th, td { padding: 4px 14px 4px 0; border-bottom: 1px solid var(--line); white-space: nowrap }
.n { text-align: right }
svg { display: block; width: 100%; max-width: 1000px; margin: 10px 0 14px }
svg text { font-size: 13px; fill: var(--ink) } svg .head, svg .part { fill: var(--quiet) }
svg .head { font-weight: 600 } svg .bar { fill: var(--bar) } svg .was { fill: var(--was) }
"""

UNITS = ("documents", "bytes of text", "tokens")
Rows = list[tuple[Any, ...]]


def render(ledger: Path) -> str:
    """The report of a run from its `ledger.duckdb`, as one HTML page."""
    con = connect(ledger, read_only=True)
    try:
        sections = [
            _head(con),
            _funnel(con),
            _reasons(con),
            _sources(con),
            _languages(con),
            _mixture(con),
            _clusters(con),
            _templates(con),
            _speed(con),
        ]
        (title,) = _all(con, "SELECT name FROM runs")[0]
    finally:
        con.close()
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}: gristmill report</title>\n<style>{STYLE}</style>\n"
        "</head>\n<body>\n" + "\n".join(sections) + "\n</body>\n</html>\n"
    )


def _all(con: duckdb.DuckDBPyConnection, sql: str) -> Rows:
    return con.execute(sql).fetchall()


def _head(con: duckdb.DuckDBPyConnection) -> str:
    name, recipe, _, tokenizer, version = _all(con, "FROM runs")[0]
    first, last = _ends(con)
    stored, decoded, shards, aside = _all(
        con,
        "SELECT sum(stored_bytes) FILTER (state = 'done'), sum(decoded_bytes), "
        "count(*) FILTER (state = 'done'), count(*) FILTER (state <> 'done') FROM shards",
    )[0]
    faults, damaged = _all(
        con, "SELECT count(*), coalesce(sum(span), 0) FROM losses WHERE kind = 'fault'"
    )[0]
    off = imbalances(con)
    state = '<p class="good">Every account balances, to the last byte and token.</p>'
    if off:
        state = "".join(f'<p class="bad">Out of balance: {escape(row)}</p>' for row in off)
    tiles = [
        (short(stored), "bytes stored"),
        (short(decoded), "bytes decoded"),
        (short(last[0]), f"documents left, of {short(first[0])}"),
        (short(last[2]), f"tokens left, of {short(first[2])}"),
        (f"{faults:,}", f"faults took {short(damaged)} bytes ({share(damaged, decoded, 2)})"),
        (f"{shards:,}", f"shards read, {aside:,} only booked"),
    ]
    boxes = "".join(
        f'<div class="tile"><b>{escape(a)}</b><span>{escape(b)}</span></div>' for a, b in tiles
    )
    return (
        f"<h1>{escape(name)}</h1>\n"
        f'<p class="quiet">recipe <code>{escape(recipe[:12])}</code>, tokenizer '
        f"<code>{escape((tokenizer or 'unknown')[:12])}</code>, gristmill {escape(version)}</p>\n"
        f'{state}\n<div class="tiles">{boxes}</div>'
    )


def _ends(con: duckdb.DuckDBPyConnection) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    rows = _all(con, "SELECT documents, bytes, tokens FROM funnel ORDER BY position")
    return rows[0], rows[-1]


def _funnel(con: duckdb.DuckDBPyConnection) -> str:
    rows = _all(
        con,
        "SELECT pass, stage, documents, documents_dropped, bytes, bytes_dropped, bytes_stripped, "
        "bytes_added, tokens, tokens_dropped, tokens_stripped, tokens_added "
        "FROM funnel ORDER BY position",
    )
    shown = [r for i, r in enumerate(rows) if i == 0 or any(r[k] for k in (3, 5, 6, 7, 9, 10, 11))]
    picture = funnel([(r[1], (r[2], r[4], r[8])) for r in shown], UNITS)
    columns = ["pass", "stage", "documents", "dropped", "bytes", "dropped", "stripped",
               "added", "tokens", "dropped", "stripped", "added"]  # fmt: skip
    quiet = len(rows) - len(shown)
    note = f"; {quiet} stages that changed nothing stand in the table alone" if quiet else ""
    return (
        "<h2>The funnel</h2>\n"
        f'<p class="quiet">What is left after each stage, over all sources{note}.</p>\n'
        f"{picture}\n{table(*without_noughts(columns, rows))}"
    )


def _reasons(con: duckdb.DuckDBPyConnection) -> str:
    rows = _all(
        con,
        "SELECT stage, reason, account, sum(documents)::BIGINT, sum(bytes)::BIGINT, "
        "sum(tokens)::BIGINT FROM flow WHERE account IN ('dropped', 'stripped', 'added') "
        "GROUP BY position, stage, reason, account ORDER BY position, 4 DESC, reason",
    )
    lost = _all(
        con,
        "SELECT source, kind, reason, sum(records)::BIGINT, sum(bytes)::BIGINT FROM reads "
        "WHERE account = 'lost' GROUP BY ALL ORDER BY kind DESC, 5 DESC, source, reason",
    )
    skipped = _all(
        con,
        "SELECT source, reason, sum(records)::BIGINT, sum(bytes)::BIGINT FROM reads "
        "WHERE account = 'skipped' GROUP BY ALL ORDER BY 4 DESC, source, reason",
    )
    return (
        "<h2>What went, and why</h2>\n<h3>Documents</h3>\n"
        + table(["stage", "reason", "account", "documents", "bytes", "tokens"], rows)
        + "\n<h3>Records that became no document</h3>\n"
        + table(["source", "kind", "reason", "records", "decoded bytes"], lost)
        + "\n<h3>Records that were never meant to</h3>\n"
        + table(["source", "reason", "records", "decoded bytes"], skipped)
    )


def _sources(con: duckdb.DuckDBPyConnection) -> str:
    rows = _all(
        con,
        """
        WITH read AS (
            SELECT source, sum(stored_bytes)::BIGINT AS stored,
                sum(decoded_bytes)::BIGINT AS decoded, sum(documents)::BIGINT AS documents
            FROM shards WHERE state = 'done' GROUP BY source
        ), damage AS (
            SELECT source, sum(bytes)::BIGINT AS bytes FROM reads WHERE kind = 'fault'
            GROUP BY source
        ), final AS (
            SELECT source, sum(documents)::BIGINT AS documents, sum(bytes)::BIGINT AS bytes,
                sum(tokens)::BIGINT AS tokens
            FROM flow WHERE pass = 'corpus' AND account = 'kept' GROUP BY source
        )
        SELECT source, stored, decoded, coalesce(damage.bytes, 0), max_loss, read.documents,
            final.documents, final.bytes, final.tokens
        FROM sources LEFT JOIN read USING (source) LEFT JOIN damage USING (source)
            LEFT JOIN final USING (source) ORDER BY priority, source
        """,
    )
    shown = [
        [s, stored, decoded, share(hurt, decoded, 2), f"{limit:.2%}", n, kept, share(kept, n),
         size, tokens]
        for s, stored, decoded, hurt, limit, n, kept, size, tokens in rows
    ]  # fmt: skip
    columns = ["source", "stored bytes", "decoded bytes", "damaged", "allowed", "documents",
               "left", "share", "bytes left", "tokens left"]  # fmt: skip
    aside = _all(
        con,
        "SELECT state, source, shard, duplicate_of, stored_bytes FROM shards "
        "WHERE state <> 'done' ORDER BY ALL",
    )
    more = ""
    if aside:
        named = [[*row[:3], row[3] or "", row[4]] for row in aside]
        more = "\n<h3>Shards booked and not read</h3>\n" + table(
            ["state", "source", "shard", "same bytes as", "stored bytes"], named
        )
    return f"<h2>Sources</h2>\n{table(columns, shown)}{more}"


def _languages(con: duckdb.DuckDBPyConnection) -> str:
    rows = _all(
        con,
        "SELECT coalesce(language, '(not measured)'), sum(documents)::BIGINT, sum(bytes)::BIGINT, "
        "sum(tokens)::BIGINT FROM slices GROUP BY 1 ORDER BY 4 DESC, 1",
    )
    whole = sum(r[3] for r in rows)
    shown = [[*r, share(r[3], whole), r[3] and r[2] / r[3]] for r in rows]
    columns = ["language", "documents", "bytes", "tokens", "share of tokens", "bytes a token"]
    return f"<h2>Languages of what is left</h2>\n{table(columns, shown)}"


def _mixture(con: duckdb.DuckDBPyConnection) -> str:
    rows = _all(
        con,
        "SELECT stage, slice, sequence_length, sum(windows)::BIGINT, sum(real_tokens)::BIGINT, "
        "sum(padding_tokens)::BIGINT, sum(unique_tokens)::BIGINT, sum(repeated_tokens)::BIGINT, "
        "max(epochs_max), any_value(stage_position) AS p FROM plan "
        "GROUP BY stage, slice, sequence_length ORDER BY p, slice",
    )
    totals: dict[str, int] = {}
    for row in rows:
        totals[row[0]] = totals.get(row[0], 0) + row[4] + row[5]
    shown = [[r[0], r[1], r[2], r[3], share(r[4] + r[5], totals[r[0]]), *r[4:9]] for r in rows]
    columns = ["stage", "slice", "length", "windows", "share", "tokens", "padding",
               "first time", "again", "most reads"]  # fmt: skip
    body = table(columns, shown, empty="The recipe states no mixture.")
    return f"<h2>The mixture</h2>\n{body}"


def _clusters(con: duckdb.DuckDBPyConnection) -> str:
    parts = ["<h2>Duplicates</h2>"]
    stages = "SELECT DISTINCT stage FROM clusters ANTI JOIN templates USING (stage) ORDER BY stage"
    for (stage,) in _all(con, stages):
        rows = con.execute(
            # Sizes above 8 share buckets that double.
            "SELECT CASE WHEN size <= 8 THEN size::VARCHAR ELSE "
            "(2 ** floor(log2(size - 1)) + 1)::BIGINT || ' to ' || "
            "(2 ** (floor(log2(size - 1)) + 1))::BIGINT END, "
            "sum(clusters)::BIGINT, sum(removed)::BIGINT FROM clusters WHERE stage = ? "
            "GROUP BY 1 ORDER BY min(size)",
            [stage],
        ).fetchall()
        found, gone = sum(r[1] for r in rows), sum(r[2] for r in rows)
        parts.append(
            f'<h3>{escape(stage)}</h3>\n<p class="quiet">{found:,} clusters; {gone:,} documents '
            "removed, each with a kept witness. Clusters by number of documents:</p>\n"
            + bars([(str(r[0]), r[1]) for r in rows], "clusters by number of documents")
        )
        for stage_, count, documents in con.execute(
            "SELECT lost_to, count(*), sum(size)::BIGINT FROM gone_clusters WHERE stage = ? "
            "GROUP BY 1 ORDER BY 1",
            [stage],
        ).fetchall():
            parts.append(
                f'<p class="quiet">{count:,} clusters of {documents:,} documents have none left: '
                f"what was kept for them was dropped by {escape(stage_)}.</p>"
            )
    if len(parts) == 1:
        parts.append('<p class="quiet">None were found, or none were looked for.</p>')
    return "\n".join(parts)


def _templates(con: duckdb.DuckDBPyConnection) -> str:
    rows = _all(
        con,
        "SELECT host, url, documents, removed, exemplars, own_prose, template_words, words "
        "FROM templates ORDER BY removed DESC, documents DESC, family LIMIT 20",
    )
    if not rows:
        return ""
    columns = ["host", "first exemplar", "pages", "removed", "exemplars", "own prose", "template"]
    body = table(columns, [[*r[:6], share(r[6], r[7])] for r in rows])
    return (
        "<h2>Templates</h2>\n"
        '<p class="quiet">The largest families of pages filled in from a template, and the share '
        "of their words that it explains. <code>gristmill sample --stage templates</code> shows "
        f"them with their slots.</p>\n{body}"
    )


def _speed(con: duckdb.DuckDBPyConnection) -> str:
    rows = _all(
        con,
        "SELECT step, stage, tasks, seconds, bytes, "
        "CASE WHEN seconds > 0 AND bytes > 0 THEN bytes / seconds / 1e6 END, peak_rss_bytes / 1e6 "
        "FROM speed ORDER BY rowid",
    )
    whole = [r for r in rows if not r[1]]
    stages = [[r[1], *r[2:6]] for r in rows if r[1]]
    steps = [[r[0], *r[2:]] for r in whole]
    return (
        "<h2>Speed</h2>\n"
        '<p class="quiet">Seconds are summed over tasks, so MB/s is that of one worker. '
        "Bytes are of text; of stored bytes for the reader.</p>\n<h3>Stages</h3>\n"
        + table(["stage", "tasks", "seconds", "bytes", "MB/s"], stages)
        + "\n<h3>Steps</h3>\n"
        + table(["step", "tasks", "seconds", "bytes", "MB/s", "peak memory, MB"], steps)
    )
