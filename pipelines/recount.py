"""The second count: every sum of the books made again from the Parquet files, by SQL.

The books are written by NumPy and Arrow while the work is done; here DuckDB goes over the files
afterwards, by id and not by place, and knows the rules only from the contract: codes say who stays,
edits say which bytes went, deltas say how tokens changed. So a mistake has to be made twice, in two
languages, to stay unseen. One shard is held at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .accounts import accounts
from .columns import schema_meta
from .passes import Pass, attributes

if TYPE_CHECKING:
    import duckdb

    from .run import Run

Key = tuple[str, str, str, str]  # stage, language, account, reason
Told = tuple[str, str]  # file, what is wrong with it
UNITS = ("documents", "bytes", "tokens")


def quoted(text: str) -> str:
    """A name for SQL."""
    return '"' + text.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _list(texts: list[str]) -> str:
    return "[" + ", ".join(_text(t) for t in texts) + "]"


def check_read(run: Run, con: duckdb.DuckDBPyConnection, shard: str) -> Iterator[Told]:
    """Documents of a shard against the reader's counts and against `attributes/read`."""
    name = f"documents/{shard}.parquet"
    counts = run.store.require(name).counts
    source = run.shards[shard].source
    found = con.execute(
        "SELECT count(*), coalesce(sum(strlen(text)), 0)::BIGINT, "
        "coalesce(sum(locator.span), 0)::BIGINT, count(*) FILTER (source <> ?) "
        "FROM read_parquet(?)",
        [source, str(run.store.path(name))],
    ).fetchall()[0]
    told = (counts["documents"], counts["text_bytes"], counts["record_bytes"], 0)
    units = ("documents", "text bytes", "decoded bytes in records", "documents of another source")
    for unit, a, b in zip(units, told, found or (), strict=True):
        if a != b:
            sides = f"{a:,} in the books, {b:,} counted ({b - a:+,})"
            yield name, f"stage read, source {source}: {unit}: {sides}"
    stored = run.shards[shard].stored_bytes
    if counts["stored_bytes"] != stored:
        yield (
            name,
            (
                f"stage read, source {source}: {counts['stored_bytes']:,} stored bytes read, the "
                f"manifest has {stored:,} ({counts['stored_bytes'] - stored:+,})"
            ),
        )
    wrong = con.execute(
        "SELECT count(*) FROM (SELECT id, strlen(text) AS size FROM read_parquet(?)) AS d "
        "FULL JOIN read_parquet(?) AS r ON d.id = r.id WHERE d.size IS DISTINCT FROM r.bytes",
        [str(run.store.path(name)), str(run.store.path(attributes("read", shard)))],
    ).fetchall()[0]
    if wrong and wrong[0]:
        yield attributes("read", shard), f"{wrong[0]:,} rows differ in id or bytes from {name}"


def check_flow(
    run: Run, con: duckdb.DuckDBPyConnection, which: Pass | None, before: str, shard: str
) -> Iterator[Told]:
    """One pass (None: the tokens of documents as read) of a shard against its books."""
    pass_name = which.name if which is not None else "read"
    file = accounts(pass_name, shard)
    told = _told(run.store.require(file).counts["flow"])
    if which is None:
        found = _read_flow(run, con, shard)
    else:
        found, wrong = _pass_flow(run, con, which, before, shard)
        yield from wrong
    source = run.shards[shard].source
    zero = [0, 0, 0]
    for key in sorted(told | found):
        for unit, a, b in zip(UNITS, told.get(key, zero), found.get(key, zero), strict=True):
            if a != b:
                stage, language, account, reason = key
                what = f"{account} {reason}".strip() + (f" ({language})" if language else "")
                where = f"pass {pass_name}, stage {stage}, source {source}, {what}"
                sides = f"{a:,} in the books, {b:,} counted from the documents ({b - a:+,})"
                yield file, f"{where}: {unit}: {sides}"


def _told(rows: list[list[Any]]) -> dict[Key, list[int]]:
    found: dict[Key, list[int]] = {}
    for stage, language, account, reason, *amounts in rows:
        entry = found.setdefault((stage, language, account, reason), [0, 0, 0])
        for i, amount in enumerate(amounts):
            entry[i] += amount
    return found


def _read_flow(run: Run, con: duckdb.DuckDBPyConnection, shard: str) -> dict[Key, list[int]]:
    row = con.execute(
        "SELECT count(*), coalesce(sum(bytes), 0)::BIGINT, coalesce(sum(tokens), 0)::BIGINT "
        "FROM read_parquet(?) AS r JOIN read_parquet(?) AS a USING (id)",
        [
            str(run.store.path(attributes("read", shard))),
            str(run.store.path(accounts("read", shard))),
        ],
    ).fetchall()[0]
    return {("read", "", "kept", ""): list(row or (0, 0, 0))}


def _pass_flow(
    run: Run, con: duckdb.DuckDBPyConnection, which: Pass, before: str, shard: str
) -> tuple[dict[Key, list[int]], list[Told]]:
    """Sums of a pass over a shard, and rows whose columns contradict each other."""
    here = attributes(which.name, shard)
    stages = schema_meta(pq.read_schema(run.store.path(here)))["stages"]
    base = pq.read_schema(run.store.path(attributes("base", shard)))
    language = 'l."language.language"' if "language.language" in base.names else "NULL"
    picked = [f"coalesce({language}, '') AS lang", "e.bytes AS b0", "t.tokens AS t0"]
    picked += ["h.bytes AS b_end", "h.dropped_by AS by_end", "a.tokens AS t_end"]
    for i, about in enumerate(stages, 1):
        stage = about["name"]
        picked.append(f"h.{quoted(stage + '.code')} AS c{i}")
        if about["edit_reasons"] is None:
            picked += [f"b{i - 1} AS b{i}", f"t{i - 1} AS t{i}"]
            continue
        sizes = [len(r) // 2 for r in about["replacements"]]
        edits = f"h.{quoted(stage + '.edits')}"
        for k in range(len(about["edit_reasons"])):
            mine = f"list_filter({edits}, lambda x: x.reason = {k})"
            cut = f"list_sum(list_transform({mine}, lambda x: x.length::BIGINT))"
            put = f"list_sum(list_transform({mine}, lambda x: {sizes}[x.replacement + 1]::BIGINT))"
            picked.append(f"coalesce({cut}, 0)::BIGINT AS cut{i}_{k}")
            picked.append(f"coalesce({put}, 0)::BIGINT AS put{i}_{k}")
            delta = f"a.{quoted(stage + '.deltas')}[{k + 1}]"
            picked.append(f"coalesce({delta}, 0)::BIGINT AS delta{i}_{k}")
        each = range(len(about["edit_reasons"]))
        picked.append(
            f"b{i - 1}" + "".join(f" - cut{i}_{k} + put{i}_{k}" for k in each) + f" AS b{i}"
        )
        picked.append(f"t{i - 1}" + "".join(f" + delta{i}_{k}" for k in each) + f" AS t{i}")
        picked.append(f"h.{quoted(stage + '.bytes')} AS told{i}")
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE d AS SELECT {', '.join(picked)} "  # noqa: S608 - names of ours
        "FROM read_parquet(?) AS h JOIN read_parquet(?) AS e USING (id) "
        "JOIN read_parquet(?) AS t USING (id) JOIN read_parquet(?) AS a USING (id) "
        "JOIN read_parquet(?) AS l USING (id)",
        [
            str(run.store.path(name))
            for name in (
                here,
                attributes(before, shard),
                accounts(before, shard),
                accounts(which.name, shard),
                attributes("base", shard),
            )
        ],
    )
    sums = con.execute(" UNION ALL ".join(_sums(stages))).fetchall() if stages else []
    found = _told([[s, lang, a, r, *amounts] for s, lang, a, r, *amounts in sums])
    return {k: v for k, v in found.items() if any(v)}, list(_rows(run, con, which, shard, stages))


def _sums(stages: list[dict[str, Any]]) -> Iterator[str]:
    """One SELECT per account of each stage: stage, language, account, reason, three sums."""
    for i, about in enumerate(stages, 1):
        stage = _text(about["name"])

        def account(name: str, reason: str, where: str, at: int, stage: str = stage) -> str:
            sums = f"count(*), coalesce(sum(b{at}), 0)::BIGINT, coalesce(sum(t{at}), 0)::BIGINT"
            select = f"SELECT {stage}, lang, '{name}', {reason}, {sums}"
            return f"{select} FROM d WHERE {where} GROUP BY ALL"

        yield account("in", "''", f"c{i} IS NOT NULL", i - 1)
        yield account("kept", "''", f"c{i} = 0", i)
        yield account(
            "dropped", f"coalesce({_list(about['reasons'])}[c{i} + 1], '?')", f"c{i} > 0", i
        )
        for k, reason in enumerate(about["edit_reasons"] or ()):
            for name, size, tokens in (
                ("stripped", f"cut{i}_{k}", f"greatest(-delta{i}_{k}, 0)"),
                ("added", f"put{i}_{k}", f"greatest(delta{i}_{k}, 0)"),
            ):
                yield (
                    f"SELECT {stage}, lang, '{name}', {_text(reason)}, "  # noqa: S608
                    f"count(*) FILTER ({size} > 0 OR {tokens} > 0), sum({size})::BIGINT, "
                    f"sum({tokens})::BIGINT FROM d WHERE c{i} IS NOT NULL GROUP BY ALL"
                )


def _rows(
    run: Run, con: duckdb.DuckDBPyConnection, which: Pass, shard: str, stages: list[dict[str, Any]]
) -> Iterator[Told]:
    """Rows that contradict themselves: who is alive, what is left, by whom it was dropped."""
    here = attributes(which.name, shard)
    alive = "b0 IS NOT NULL"
    by = "CASE WHEN b0 IS NULL THEN 255"
    checks: list[tuple[str, str, str]] = []
    for i, about in enumerate(stages, 1):
        stage = about["name"]
        found_in = f"stage {stage}: "
        wrong = f"({alive}) <> (c{i} IS NOT NULL)"
        checks += [
            (here, found_in + "a code where none belongs, or none where one does", wrong),
            (here, found_in + "a code without a reason", f"c{i} >= {len(about['reasons'])}"),
        ]
        if about["edit_reasons"] is not None:
            differ = f"({alive}) AND told{i} IS DISTINCT FROM b{i}"
            checks.append((here, found_in + "bytes that its edits do not give", differ))
        by += f" WHEN c{i} > 0 THEN {i}"
        alive += f" AND c{i} = 0"
    n = len(stages)
    alive = f"coalesce({alive}, false)"
    checks.append((here, "bytes left", f"b_end IS DISTINCT FROM (CASE WHEN {alive} THEN b{n} END)"))
    checks.append((here, "dropped_by", f"coalesce(by_end, 255) <> {by} ELSE 0 END"))
    account = accounts(which.name, shard)
    checks.append(
        (account, "tokens left", f"t_end IS DISTINCT FROM (CASE WHEN {alive} THEN t{n} END)")
    )
    counts = ", ".join(f"count(*) FILTER ({where})" for _, _, where in checks)
    found = con.execute(f"SELECT {counts}, count(*) FROM d").fetchall()[0]  # noqa: S608
    for (file, what, _), number in zip(checks, found[:-1], strict=True):
        if number:
            yield file, f"pass {which.name}, {what}: {number:,} rows"
    rows = run.store.require(f"documents/{shard}.parquet").counts["documents"]
    if found and found[-1] != rows:
        yield here, f"pass {which.name}: {found[-1]:,} of {rows:,} documents stand in all its files"


def check_corpus(run: Run, con: duckdb.DuckDBPyConnection, shard: str) -> Iterator[Told]:
    """Final documents and their tokens against the last pass, document by document."""
    last = run.passes[-1].name
    corpus, prefix = f"corpus/{shard}.parquet", f"tokens/{shard}"
    source = run.shards[shard].source
    tokens, wrong = _token_shard(run, shard)
    con.register("encoded", tokens)
    laid = run.recipe.turns is not None
    # A corpus that says more documents than the last pass kept, or others, or longer ones, shows.
    query = (
        "WITH left_over AS (SELECT b.id, b.bytes, t.tokens FROM read_parquet(?) AS b "
        "JOIN read_parquet(?) AS t USING (id) WHERE b.bytes IS NOT NULL), "
        "final AS (SELECT id, strlen(text) AS size, ? AND turns IS NOT NULL AS laid, "
        "list_sum(list_transform(turns, lambda x: x.stop - x.body)) AS said FROM read_parquet(?)) "
        "SELECT count(*) FILTER (l.id IS NULL OR f.id IS NULL), "
        "count(*) FILTER (l.bytes <> f.size), coalesce(sum(f.size - l.bytes), 0)::BIGINT, "
        "count(*) FILTER (f.id IS NOT NULL AND e.id IS NULL OR f.id IS NULL), "
        "count(*) FILTER (l.tokens <> e.tokens AND NOT f.laid), "
        "coalesce(sum(e.tokens - l.tokens) FILTER (NOT f.laid), 0)::BIGINT, "
        "count(*) FILTER (f.laid), "
        "coalesce(sum(f.size) FILTER (f.laid), 0)::BIGINT, "
        "coalesce(sum(f.said) FILTER (f.laid), 0)::BIGINT, "
        "coalesce(sum(l.tokens) FILTER (f.laid), 0)::BIGINT, "
        "coalesce(sum(greatest(l.tokens - e.tokens, 0)) FILTER (f.laid), 0)::BIGINT, "
        "coalesce(sum(greatest(e.tokens - l.tokens, 0)) FILTER (f.laid), 0)::BIGINT "
        "FROM left_over AS l FULL JOIN final AS f USING (id) FULL JOIN encoded AS e USING (id)"
    )
    files = [attributes(last, shard), accounts(last, shard), corpus]
    first, second, third = (str(run.store.path(f)) for f in files)
    row = con.execute(query, [first, second, laid, third]).fetchall()[0]
    con.unregister("encoded")
    strangers, longer, size, lost, off, count, *found = row
    told = run.store.require(f"{prefix}.bin").counts["turns"]
    names = ("documents", "bytes", "bytes encoded", "tokens", "tokens too few", "tokens too many")
    wrong += [
        f"laid out by turns: {a:,} {name} in the books, {b:,} counted ({b - a:+,})"
        for name, a, b in zip(names, told, found, strict=True)
        if a != b
    ]
    where = f"stage corpus, source {source}"
    if strangers:
        yield (
            corpus,
            f"{where}: {strangers:,} documents stand on one side only of corpus and {files[0]}",
        )
    if longer:
        yield (
            corpus,
            f"{where}: {longer:,} texts differ in bytes from what the passes left ({size:+,})",
        )
    if lost:
        yield (
            f"{prefix}.ids.npy",
            f"{where}: {lost:,} documents stand on one side only of corpus and tokens",
        )
    if off:
        than = f"documents have other tokens than {files[1]} counts ({count:+,} tokens)"
        yield f"{prefix}.ends.npy", f"{where}: {off:,} {than}"
    for what in wrong:
        yield f"{prefix}.bin", f"{where}: {what}"


def _token_shard(run: Run, shard: str) -> tuple[pa.Table, list[str]]:
    """Ids and text tokens per document, and what is wrong with the shard's tokens."""
    index = json.loads(run.store.path(f"tokens/{shard}.index.json").read_bytes())
    ends = np.load(run.store.path(f"tokens/{shard}.ends.npy")).astype(np.int64)
    ids = np.load(run.store.path(f"tokens/{shard}.ids.npy"))
    kind = {"uint16": "<u2", "uint32": "<u4"}[index["dtype"]]
    data = np.fromfile(run.store.path(f"tokens/{shard}.bin"), kind)
    counts = run.store.require(f"tokens/{shard}.bin").counts
    wrong: list[str] = []
    for name, number in index["placed"].items():
        found = int((data == int(name)).sum())
        if found != number:
            wrong.append(f"control token {name}: {number:,} in the index, {found:,} in the file")
    if not (data[ends - 1] == index["eos_id"]).all():
        wrong.append(f"documents that do not end in the token {index['eos_id']}")
    special = np.isin(data, [int(name) for name in index["placed"]])
    text = len(data) - int(special.sum())
    if text != counts["text_tokens"]:
        told = counts["text_tokens"]
        wrong.append(f"{told:,} text tokens in the books, {text:,} in the file ({text - told:+,})")
    if counts["documents"] != len(ends):
        wrong.append(f"{counts['documents']:,} documents in the books, {len(ends):,} in the file")
    raw = pa.array([bytes(row) for row in ids], pa.binary(16))
    before = np.concatenate([[0], np.cumsum(~special)])  # text tokens before each place
    sizes = pa.array(np.diff(before[ends], prepend=0)[: len(raw)])
    return pa.table({"id": raw.slice(0, len(sizes)), "tokens": sizes}), wrong
