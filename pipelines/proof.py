"""Near duplicates proven again from their texts: what `verify` recomputes.

`pipelines.witness` holds the decisions to each other; here a sample of removed documents, the same
every time, and their witnesses are read, shingled and compared anew, so that a wrong number in a
decision file cannot prove itself. It is `SAMPLE` pairs; all of them would read the corpus.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import duckdb
import numpy as np

from ..dedup import NearDuplicates
from ..dedup.verify import shingle_sets
from .recount import Told
from .texts import Texts

if TYPE_CHECKING:
    from .recipe import GlobalUse
    from .run import Run

SAMPLE = 1000  # removed documents of a stage


def check_texts(run: Run, use: GlobalUse, through: list[str]) -> Iterator[Told]:
    """Sizes of meet and join of some removed documents and their witnesses, from the texts."""
    stage = use.stage
    if not isinstance(stage, NearDuplicates):
        return
    files = [str(run.store.path(f)) for f in run.decision_files(use)]
    rows = duckdb.execute(
        "SELECT d.shard, d.row, k.shard, k.row, d.shared, d.either, lower(hex(d.id)), "
        "parse_filename(d.filename) FROM read_parquet(?, filename = true) AS d "
        "JOIN read_parquet(?) AS k ON k.shard = d.witness_shard AND k.id = d.witness_id "
        "WHERE d.code <> 0 ORDER BY md5(hex(d.id)), d.shard LIMIT ?",
        [files, files, SAMPLE],
    ).fetchall()
    if not rows:
        return
    shard = np.array([r[0] for r in rows] + [r[2] for r in rows], np.uint64)
    row = np.array([r[1] for r in rows] + [r[3] for r in rows], np.uint32)
    texts = Texts(run, through)(shard, row)
    values, starts, ends = shingle_sets(texts, stage.ngram, stage.char_ngram)
    half = len(rows)
    for i, told in enumerate(rows):
        one, other = (values[starts[j] : ends[j]] for j in (i, i + half))
        shared = len(np.intersect1d(one, other, assume_unique=True))
        either = len(one) + len(other) - shared
        if (shared, either) != told[4:6]:
            what = (
                f"stage {stage.name}: document {told[6]} shares {shared} of {either} shingles with "
                f"its witness, its decision says {told[4]} of {told[5]}"
            )
            yield f"decisions/{stage.name}/{told[7]}", what
