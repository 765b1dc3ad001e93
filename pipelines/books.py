"""The books of a run: from the counts in the sidecars to `ledger.duckdb` and `report.html`.

Only counts are collected here, and from sidecars nearly all of them: a run of 100,000 shards has
some gigabytes of attributes and a few hundred megabytes of sidecars. What the sidecars say is
proven against the files themselves by `pipelines.verify`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .. import __version__
from ..documents.errors import StopError
from ..documents.fingerprint import digest
from ..ledger.writer import connect, write_ledger
from .accounts import accounts
from .catalog import QUALITY, final_columns
from .families import template_rows
from .gone import gone_clusters
from .planned import SERVED, plan_tables, recorded
from .run import RECIPE
from .tasks import steps_of

if TYPE_CHECKING:
    from .run import Run

LEDGER = "ledger.duckdb"
REPORT = "report.html"
FORMAT = 1
Row = tuple[Any, ...]


def build_ledger(run: Run) -> None:
    """Write `ledger.duckdb` and `report.html` of a run that is complete.

    StopError names the first piece that is missing.
    """
    inputs = {"books": books_digest(run)}
    if not run.store.valid(LEDGER, inputs, digest(["ledger", FORMAT])):
        tables = collect(run)
        with run.store.writing(LEDGER) as temporary:
            write_ledger(temporary, tables)
            run.store.commit(
                temporary, LEDGER, inputs=inputs, fingerprint=digest(["ledger", FORMAT])
            )
    from .report import render

    with run.store.writing(REPORT) as temporary:
        temporary.write_text(render(run.store.path(LEDGER)), encoding="utf-8")
        run.store.commit(
            temporary,
            REPORT,
            inputs=run.store.digests(LEDGER),
            fingerprint=digest(["report", FORMAT]),
        )


def books_digest(run: Run) -> str:
    """One digest of everything that the ledger is made from."""
    names = [RECIPE, "lock.json", "manifest.jsonl"]
    for step in steps_of(run):
        names += [o for key in step.keys(run) for o in step.outputs(run, key)]
    for plan in recorded(run):
        names += [f"plans/{plan}/plan.json", f"plans/{plan}/{SERVED}"]
    return digest([{n: run.store.require(n).digest for n in names}, sorted(run.without)])


def collect(run: Run) -> dict[str, Any]:
    """The rows of every table of the ledger."""
    slices, tokens = final_sums(run)
    return {
        "runs": [_run(run)],
        "sources": [
            (s.name, s.dump, s.license, s.priority, s.max_loss, s.removal_cap)
            for s in run.recipe.sources
        ],
        "shards": list(_shards(run)),
        "reads": [row for shard in run.shards for row in reads(run, shard)],
        "losses": _losses(run),
        "route": list(_route(run)),
        "flow": [*flow(run), *_corpus_flow(run, tokens)],
        "tokens": list(_tokens(run)),
        "clusters": list(_clusters(run)),
        "templates": list(template_rows(run)),
        "gone_clusters": list(gone_clusters(run)),
        "slices": slices,
        **plan_tables(run),
        "speed": speed(run),
    }


def _run(run: Run) -> Row:
    manifest = run.store.require("manifest.jsonl").digest
    return (
        run.recipe.name,
        run.recipe.identity,
        manifest,
        run.tokenizer_identity[0],
        __version__,
    )


def _shards(run: Run) -> Iterator[Row]:
    for shard in run.manifest:
        if shard.name in run.shards:
            counts = run.store.require(f"documents/{shard.name}.parquet").counts
            known = [counts["decoded_bytes"], counts["documents"], counts["text_bytes"]]
            yield (shard.name, shard.source, "done", None, shard.stored_bytes, *known)
        else:
            state = "duplicate_input" if shard.duplicate_of is not None else "without"
            where = shard.duplicate_of
            yield (shard.name, shard.source, state, where, shard.stored_bytes, None, None, None)


def reads(run: Run, shard: str) -> list[Row]:
    """The reader's account of a shard: what was decoded, and what became of it."""
    counts = run.store.require(f"documents/{shard}.parquet").counts
    source = run.shards[shard].source
    rows: list[Row] = [
        (shard, source, "in", "", "", None, counts["decoded_bytes"]),
        (shard, source, "kept", "", "", counts["records"], counts["record_bytes"]),
    ]
    rows += [
        (shard, source, "skipped", "", r, n, size) for r, (n, size) in counts["skipped"].items()
    ]
    for name, (number, size) in counts["lost"].items():
        kind, _, reason = name.partition(":")
        rows.append((shard, source, "lost", kind, reason, number, size))
    return rows


def _losses(run: Run) -> pa.Table:
    """Every stretch of input that became no document."""
    names = ["extent", "offset", "inner", "span", "kind", "reason", "detail", "url"]
    found = [pa.schema([("shard", pa.string()), ("source", pa.string())]).empty_table()]
    for shard, about in run.shards.items():
        name = f"losses/{shard}.parquet"
        if not run.store.require(name).counts["losses"]:
            continue
        table = pq.read_table(run.store.path(name), columns=names).replace_schema_metadata(None)
        number = table.num_rows
        extents = about.extents
        at = table.column("extent").to_pylist()
        start = pa.array([extents[i].start for i in at], pa.int64())
        table = table.set_column(1, "offset", pc.add(table.column("offset"), start))
        table = table.set_column(0, "file", pa.array([extents[i].file for i in at], pa.string()))
        table = table.add_column(0, "source", pa.array([about.source] * number, pa.string()))
        found.append(table.add_column(0, "shard", pa.array([shard] * number, pa.string())))
    whole = pa.concat_tables(found, promote_options="default")
    for name in ["file", *names[1:]]:
        if name not in whole.column_names:
            kind = pa.int64() if name in {"offset", "inner", "span"} else pa.string()
            whole = whole.append_column(name, pa.array([], kind))
    return whole.rename_columns({"offset": "stored_offset", "inner": "inner_offset"})


def positions(run: Run) -> dict[tuple[str, str], int]:
    """(pass, stage) -> place in the whole recipe; a source's own stages before the shared ones."""
    found: dict[tuple[str, str], int] = {("read", "read"): 0}
    for number, which in enumerate(run.passes):
        place: dict[str, int] = {}
        for shard in _one_shard_each(run):
            for i, stage in enumerate(run.stages(which, shard)):
                place[stage.name] = max(place.get(stage.name, 0), i)
        # Sources without a shard have no flow, so that their stages need no place.
        for name, i in sorted(place.items(), key=lambda item: item[::-1]):
            found[which.name, name] = (number + 1) * 1000 + i
    found["corpus", "corpus"] = (len(run.passes) + 1) * 1000
    return found


def _route(run: Run) -> Iterator[Row]:
    """(source, pass, stage, step): where each stage stands on the way of a source's documents."""
    laid = laid_out(run)
    for shard in _one_shard_each(run):
        source = run.shards[shard].source
        way = [("read", "read")]
        way += [(p.name, s.name) for p in run.passes for s in run.stages(p, shard)]
        way += [("corpus", "corpus"), *[("tokens", "turns")] * (source in laid)]
        for step, (pass_name, stage) in enumerate(way):
            yield (source, pass_name, stage, step)


def _one_shard_each(run: Run) -> list[str]:
    return list({about.source: name for name, about in run.shards.items()}.values())


def flow(run: Run) -> list[Row]:
    """Sums over the shards of each source of what the accounts say."""
    place = positions(run)
    sums: dict[tuple[str, str, str, str, str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for pass_name in ("read", *(p.name for p in run.passes)):
        for shard, about in run.shards.items():
            for stage, language, account, reason, *amounts in run.store.require(
                accounts(pass_name, shard)
            ).counts["flow"]:
                entry = sums[pass_name, stage, about.source, language, account, reason]
                for i, amount in enumerate(amounts):
                    entry[i] += amount
    dumps = {s.name: s.dump for s in run.recipe.sources}
    return [
        (p, place[p, stage], stage, source, dumps[source], language, account, reason, *amounts)
        for (p, stage, source, language, account, reason), amounts in sorted(sums.items())
    ]


def final_sums(run: Run) -> tuple[list[Row], dict[str, int]]:
    """Slices of the final documents, and their counted tokens by source; one shard at a time."""
    sums: dict[Row, list[int]] = defaultdict(lambda: [0, 0, 0])
    tokens: dict[str, int] = defaultdict(int)
    con = connect()
    for shard, about in run.shards.items():
        table = _final(run, shard)
        tokens[about.source] += int(np.sum(table.column("counted").to_numpy()))
        con.register("final", table)
        for *key, documents, size, count in con.execute(_SLICES).fetchall():
            entry = sums[about.source, *key]
            for i, amount in enumerate((documents, size, count)):
                entry[i] += amount
        con.unregister("final")
    con.close()
    order = sorted(sums, key=lambda k: (*(str(v or "") for v in k[:5]), k[5] or 0, k[6]))
    return [(*key, *sums[key]) for key in order], tokens


_SLICES = """
SELECT dump, language, license, "quality.format", "quality.bucket"::INTEGER,
    ceil(log2(greatest(tokens, 1)))::INTEGER, count(*), sum(bytes)::BIGINT, sum(tokens)::BIGINT
FROM final GROUP BY ALL
"""


def _final(run: Run, shard: str) -> pa.Table:
    """Final documents of a shard without text: attributes, bytes, and tokens of two origins."""
    last = run.passes[-1].name
    run.store.require(f"corpus/{shard}.parquet")
    path = run.store.path(f"attributes/{last}/{shard}.parquet")
    size = pq.read_table(path, columns=["bytes"]).column(0)
    counted = pq.read_table(run.store.path(accounts(last, shard)), columns=["tokens"]).column(0)
    left = pa.array(size.is_valid().to_numpy())
    table = final_columns(run, shard, ["language", "dump", "license"], QUALITY)
    ends = np.load(run.store.path(f"tokens/{shard}.ends.npy")).astype(np.int64)
    pieces = {
        "bytes": size.filter(left).combine_chunks(),
        "counted": counted.filter(left).combine_chunks(),
        "tokens": pa.array(np.diff(ends, prepend=0)),
    }
    for name, column in pieces.items():
        if len(column) != table.num_rows:
            msg = (
                f"shard {shard}: {table.num_rows} final documents, {len(column)} rows of {name}; "
                "`gristmill verify` names what to make again"
            )
            raise StopError(msg)
        table = table.append_column(name, column)
    return table


def _corpus_flow(run: Run, tokens: dict[str, int]) -> list[Row]:
    """The corpus as the end of the chain: documents and bytes as its files have them.

    Behind it, where conversations were laid out, what their headings and new borders came to.
    """
    place = positions(run)["corpus", "corpus"]
    rows: list[Row] = []
    laid = laid_out(run)
    for source in run.recipe.sources:
        names = [n for n, about in run.shards.items() if about.source == source.name]
        counts = [run.store.require(f"corpus/{n}.parquet").counts for n in names]
        amounts = [sum(c[k] for c in counts) for k in ("documents", "text_bytes")]
        amounts.append(tokens.get(source.name, 0))
        rows += [
            ("corpus", place, "corpus", source.name, source.dump, "", account, "", *amounts)
            for account in ("in", "kept")
            if names
        ]
        if source.name in laid:
            documents, size, encoded, _, few, many = laid[source.name]
            kept = (amounts[0], amounts[1] - size + encoded, amounts[2] - few + many)
            accounts_ = {
                ("in", ""): amounts,
                ("added", "turns"): (documents, 0, many),
                ("stripped", "turns"): (documents, size - encoded, few),
                ("kept", ""): kept,
            }
            rows += [
                ("tokens", place + 1, "turns", source.name, source.dump, "", *account, *sums)
                for account, sums in accounts_.items()
            ]
    return rows


def laid_out(run: Run) -> dict[str, list[int]]:
    """By source, where conversations were laid out by their turns: `TokenAccount.turns`."""
    sums: dict[str, list[int]] = {}
    for shard, about in run.shards.items():
        turns = run.store.require(f"tokens/{shard}.bin").counts["turns"]
        if turns[0]:
            held = sums.setdefault(about.source, [0] * len(turns))
            sums[about.source] = [a + b for a, b in zip(held, turns, strict=True)]
    return sums


def _tokens(run: Run) -> Iterator[Row]:
    for shard, about in run.shards.items():
        counts = run.store.require(f"tokens/{shard}.bin").counts
        names = ("documents", "text_tokens", "special_tokens", "unlearnt_tokens", "text_bytes")
        yield (shard, about.source, *(counts[n] for n in names))


def _clusters(run: Run) -> Iterator[Row]:
    """Sizes of clusters, from the decision files."""
    con = connect()
    for use in _globals(run):
        files = run.decision_files(use)
        paths = [str(run.store.path(n)) for n in files if run.store.require(n).counts["rows"]]
        if not paths:
            continue
        found = con.execute(
            "SELECT cluster_size, count(DISTINCT cluster), count(*) FILTER (code <> 0) "
            "FROM read_parquet(?) WHERE cluster IS NOT NULL GROUP BY 1 ORDER BY 1",
            [paths],
        ).fetchall()
        yield from ((use.stage.name, *row) for row in found)
    con.close()


def _globals(run: Run) -> list[Any]:
    return [p.surveys for p in run.passes if p.surveys is not None]


def speed(run: Run) -> list[Row]:
    """Seconds and bytes by step and stage, from the facts of the tasks that wrote the outputs."""
    rows: list[Row] = []
    for step in steps_of(run):
        facts = [run.store.run_facts(step.outputs(run, key)[0]) for key in step.keys(run)]
        rows += speed_rows(step.name, [f for f in facts if f])
    return rows


def speed_rows(step: str, facts: list[dict[str, Any]]) -> list[Row]:
    """One row for a step and one for each stage in it; none when no facts are left."""
    if not facts:
        return []

    def total(name: str) -> Any:
        return sum(f.get(name, 0) for f in facts)

    peak = max(f.get("peak_rss_bytes", 0) for f in facts) or None
    sums = [total(n) for n in ("seconds", "cpu_seconds", "bytes", "text_bytes_read")]
    rows: list[Row] = [(step, "", len(facts), *sums, peak)]
    stages: dict[str, list[float]] = {}
    for fact in facts:
        for stage, (seconds, size) in fact.get("stages", {}).items():
            entry = stages.setdefault(stage, [0, 0.0, 0])
            entry[0] += 1
            entry[1] += seconds
            entry[2] += size
    rows += [(step, s, n, t, None, int(b), None, None) for s, (n, t, b) in stages.items()]
    return rows


def _without(run: Run, source: str) -> float:
    """Share of a source's stored bytes that `--without` leaves out."""
    mine = [s for s in run.manifest if s.source == source and s.duplicate_of is None]
    total = sum(s.stored_bytes for s in mine)
    return sum(s.stored_bytes for s in mine if s.name in run.without) / total if total else 0.0


def unseen_share(run: Run, source: str) -> float:
    """The share of a source that never was decoded bytes: of stored bytes, or of records."""
    stored = damaged = records = unseen = 0
    for shard in (n for n, s in run.shards.items() if s.source == source):
        counts = run.store.require(f"documents/{shard}.parquet").counts
        stored += counts["stored_bytes"]
        damaged += counts["damaged_bytes"]
        records += counts["records"]
        unseen += counts["unseen_records"]
    by_records = unseen / (records + unseen) if unseen else 0.0
    return max(damaged / stored if stored else 0.0, by_records)


def over_limit(run: Run) -> list[str]:
    """One line for each source with more damage than its `max_loss`: share, limit, where to look.

    The share is of decoded bytes, or, where it is more, that of what could not be decoded: of
    stored bytes (members that do not inflate) or of records (rows under a wrong schema).
    """
    lines: list[str] = []
    for source in run.recipe.sources:
        faults = damaged = decoded = 0
        for shard in (n for n, s in run.shards.items() if s.source == source.name):
            for _, _, account, kind, _, records, size in reads(run, shard):
                decoded += size if account == "in" else 0
                if kind == "fault":
                    faults += records
                    damaged += size
        missing = _without(run, source.name)
        if missing > source.max_loss:
            lines.append(
                f"source {source.name!r}: shards named by --without hold {missing:.3%} of its "
                f"stored bytes; max_loss is {source.max_loss:g}"
            )
        seen = damaged / decoded if decoded else float(faults > 0)
        share = max(seen, unseen_share(run, source.name))
        of = f"decoded bytes ({damaged:,} of {decoded:,})"
        if share > seen:
            of = "stored bytes or records, counting what could not be decoded"
        if share > source.max_loss or (faults and not source.max_loss):
            sql = f"FROM losses WHERE source = '{source.name}' AND kind = 'fault'"
            lines.append(
                f"source {source.name!r}: {faults} faults took {share:.3%} of its {of}; "
                f"max_loss is {source.max_loss:g}. "
                f'See them: gristmill ledger {run.store.root} --sql "{sql}"'
            )
    return lines
