"""Runs into an index of near duplicates, and questions to it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..dedup import NearDuplicates
from ..dedup.index import Index, Match
from ..dedup.rank import Nodes, column, matrix, nodes
from ..dedup.verify import shingle_sets
from ..documents.errors import UsageError
from .passes import Pass
from .rounds import surveyed
from .run import open_run
from .texts import ShardTexts

if TYPE_CHECKING:
    from .recipe import GlobalUse
    from .run import Run


def near_pass(run: Run) -> tuple[GlobalUse, Pass, list[Pass]]:
    """The near duplicates of a run, the pass that surveyed for them, and those up to it."""
    through: list[Pass] = []
    for which in run.passes:
        through.append(which)
        if which.surveys is not None and isinstance(which.surveys.stage, NearDuplicates):
            return which.surveys, which, through
    msg = f"{run.store.root}: its recipe has no near_duplicates, so it holds no sketches to index"
    raise UsageError(msg)


def add_run(folder: Path, run: Run) -> dict[str, Any]:
    """Make an index of a run's documents, or add them to one; says what it came to."""
    stage = near_pass(run)[0].stage
    if (folder / "index.json").is_file():
        index = Index.open(folder, missing=True)
        index.check_same(stage)
    else:
        index = Index.make(folder, stage)
    writer = index.writer()
    for piece in pieces(run):
        writer.add(*piece)
    before = len(index.about["runs"])
    changed = index.add(writer)
    index = Index.open(folder)
    decided = index.decisions()
    return {
        "index": str(folder),
        "crawls": len(index.runs),
        "added": len(index.runs) > before,  # False: it was in already
        "documents": int(index.starts[-1]),
        "removed": int((column(decided, "code") != 0).sum()),
        "changed": changed.num_rows,
        "listed": str(folder / "changed" / f"{index.about['generation']:06d}.parquet"),
    }


def pieces(
    run: Run,
) -> Iterator[tuple[str, Nodes, np.ndarray, tuple[np.ndarray, np.ndarray]]]:
    """What `RunWriter.add` takes, by row group: documents with shingles, sketched before."""
    use, which, through = near_pass(run)
    stage = use.stage
    for shard in run.covered(use):
        texts = ShardTexts(run, shard, [p.name for p in through])
        starts = texts.starts()
        for group, documents in enumerate(surveyed(run, use, which, through, shard)):
            some = np.flatnonzero(column(documents, "shingles") > 0)
            if not len(some):
                continue
            taken = documents.take(pa.array(some))
            local = column(taken, "row").astype(np.int64) - starts[group]
            values, begins, ends = shingle_sets(
                texts.some(texts.raw(group), group, local), stage.ngram, stage.char_ngram
            )
            keys = matrix(taken, "bands", stage.bands)
            yield shard, nodes(taken), keys, (values, np.append(begins, ends[-1:]))


def ask(folder: Path, text: str | None, run: Path | None) -> Iterator[dict[str, Any]]:
    """Answer `dedup query`; UsageError unless one of text and run is given."""
    if (text is None) == (run is None):
        msg = "dedup query: expected --text FILE or --run RUN, one of both"
        raise UsageError(msg)
    if run is not None:
        yield from ask_run(folder, open_run(run))
        return
    try:
        content = sys.stdin.read() if text == "-" else Path(str(text)).read_text("utf-8", "replace")
    except OSError as error:
        msg = f"--text {text}: cannot be read: {error}"
        raise UsageError(msg) from error
    yield from ask_text(folder, content)


def ask_text(folder: Path, text: str) -> list[dict[str, Any]]:
    """What one text duplicates."""
    return [_told(m) for m in Index.open(folder).query(text)]


def ask_run(folder: Path, run: Run) -> Iterator[dict[str, Any]]:
    """What the documents of a run duplicate: one row for each that duplicates any."""
    index = Index.open(folder)
    use, which, through = near_pass(run)
    for shard in run.covered(use):
        texts = ShardTexts(run, shard, [p.name for p in through])
        starts = texts.starts()
        for group, documents in enumerate(surveyed(run, use, which, through, shard)):
            local = column(documents, "row").astype(np.int64) - starts[group]
            ids = documents.column("id").to_pylist()
            found = index.query_texts(texts.some(texts.raw(group), group, local))
            for id_, matches in zip(ids, found, strict=True):
                if matches:
                    yield {
                        "id": id_.hex(),
                        "shard": shard,
                        "duplicates": [_told(m) for m in matches],
                    }


def _told(match: Match) -> dict[str, Any]:
    jaccard = round(match.shared / match.either, 4)
    return {"jaccard": jaccard, **match._asdict()}
