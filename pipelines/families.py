"""Families of template pages as a run found them: for the ledger, the report and `sample`.

Their decisions name every member; texts are read only of the families that are shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..documents.identity import shard_hash
from ..filters.templates import Templates
from ..filters.templates.families import Families
from ..filters.templates.shown import FILLS, show
from ..ledger.writer import connect
from .find import Place, row_of
from .passes import Pass
from .texts import ShardTexts, Texts

if TYPE_CHECKING:
    from .recipe import GlobalUse
    from .run import Run

LARGEST = 100  # families in the ledger
PAGES = 5  # of a family that are shown
_SUMS = """
SELECT cluster, max(cluster_size) AS documents, count(*) FILTER (code <> 0) AS removed,
    count(*) FILTER (exemplar) AS exemplars, count(*) FILTER (code = 0 AND NOT exemplar) AS own,
    sum(words)::BIGINT AS words, sum(template_words)::BIGINT AS template_words
FROM read_parquet(?) WHERE cluster IS NOT NULL GROUP BY 1
ORDER BY removed DESC, documents DESC, hex(cluster) LIMIT ?
"""
_MEMBERS = "SELECT shard, row, exemplar, code, id FROM read_parquet(?) WHERE cluster = ?"


def cutting(run: Run) -> Iterator[tuple[GlobalUse, list[Pass]]]:
    """The stages that find templates, and the passes before each."""
    for i, which in enumerate(run.passes):
        if which.surveys is not None and isinstance(which.surveys.stage, Templates):
            yield which.surveys, list(run.passes[: i + 1])


def _files(run: Run, use: GlobalUse) -> list[str]:
    sides = {n: run.store.present(n) for n in run.decision_files(use)}
    return [str(run.store.path(n)) for n, side in sides.items() if side and side.counts["rows"]]


def _largest(run: Run, use: GlobalUse, most: int) -> list[tuple[Any, ...]]:
    files = _files(run, use)
    if not files:
        return []
    con = connect()
    found = con.execute(_SUMS, [files, most]).fetchall()
    con.close()
    return found


def _members(run: Run, use: GlobalUse, cluster: bytes) -> list[tuple[Any, ...]]:
    """Exemplars first, then by id."""
    con = connect()
    found = con.execute(_MEMBERS, [_files(run, use), cluster]).fetchall()
    con.close()
    return sorted(found, key=lambda m: (m[4] != cluster, not m[2], m[3] == 0, m[4], m[0]))


def _place(run: Run, shard: int, row: int) -> Place:
    name = run.shard_of(shard)
    starts = ShardTexts(run, name, []).starts()
    group = int(np.searchsorted(starts, row, side="right")) - 1
    return Place(shard=name, row=row, group=group, local=row - int(starts[group]))


def _about(run: Run, member: tuple[Any, ...]) -> dict[str, Any]:
    place = _place(run, member[0], member[1])
    return row_of(run, f"documents/{place.shard}.parquet", place, ["id", "url", "host"])


def template_rows(run: Run) -> Iterator[tuple[Any, ...]]:
    """Rows of the ledger's table `templates`: the largest families of each stage."""
    known = {shard_hash(name) for name in run.shards}
    for use, _ in cutting(run):
        for cluster, *counts in _largest(run, use, LARGEST):
            first = _members(run, use, cluster)[0]
            about = _about(run, first) if first[0] in known else {"url": None, "host": None}
            yield (use.stage.name, cluster.hex(), about["host"], about["url"], *counts)


def sample_families(run: Run, stage: str, n: int) -> list[dict[str, Any]]:
    """The `n` largest families: template with slots marked, fills, pages."""
    told = []
    for use, through in cutting(run):
        if use.stage.name != stage:
            continue
        texts = Texts(run, [p.name for p in through])
        for cluster, documents, removed, exemplars, own, words, template_words in _largest(
            run, use, n
        ):
            members = _members(run, use, cluster)[: Families.sample]
            shard = np.array([m[0] for m in members], np.uint64)
            row = np.array([m[1] for m in members], np.uint32)
            found = texts(shard, row)
            shown = show(found, use.stage.ngram)
            pages = [
                {
                    "id": m[4].hex(),
                    "url": _about(run, m)["url"],
                    "kept": "exemplar" if m[2] else "no" if m[3] else "own prose",
                    "fills": fills[:FILLS],
                }
                for m, fills in zip(members[:PAGES], shown["fills"], strict=False)
            ]
            told.append({
                "family": cluster.hex(),
                "documents": documents,
                "removed": removed,
                "exemplars": exemplars,
                "kept_for_own_prose": own,
                "template_share": template_words / words if words else None,
                "slots": shown["slots"],
                "template": shown["template"],
                "pages": pages,
            })  # fmt: skip
    return told
