"""Runs into an index of near duplicates, and questions to it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..dedup import NearDuplicates
from ..dedup.index import Index
from ..dedup.index_query import Match, query, query_texts
from ..dedup.index_run import IndexRun
from ..dedup.rank import Nodes, column, matrix, nodes
from ..dedup.verify import shingle_sets
from ..documents.errors import StopError, UsageError
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
    use = near_pass(run)[0]
    stage = use.stage
    if (folder / "index.json").is_file():
        index = Index.open(folder, missing=True)
        index.check_same(stage)
    else:
        index = Index.make(folder, stage)
    writer = index.writer()
    for piece in pieces(run):
        writer.add(*piece)
    before = list(index.about["runs"])
    changed = index.add(writer, run.covered(use))
    index = Index.open(folder)
    decided = index.decisions()
    return {
        "index": str(folder),
        "crawls": len(index.runs),
        "added": index.about["runs"] != before,  # False: it was in already
        "replaced": sum(name not in index.about["runs"] for name in before),  # what it was before
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


def index_problems(folder: Path) -> list[str]:
    """Hash every file of an index again: what is wrong, one line for each run and file."""
    index = Index.open(folder, missing=True)
    found = []
    for name in index.about["runs"]:
        try:
            IndexRun.open(folder / "runs" / name).check()
        except StopError as error:
            found.append(str(error))
    return found + [f"{name}: {what}" for name, what in index.damaged_books()]


def ask(folder: Path, text: str | None, run: Path | None) -> Iterator[dict[str, Any]]:
    """Answer `dedup query`; UsageError unless one of text and run is given."""
    if (text is None) == (run is None):
        msg = "dedup query: expected --text FILE or --run RUN, one of both"
        raise UsageError(msg)
    if run is not None:
        yield from ask_run(folder, open_run(run))
        return
    yield from ask_text(folder, read_text(str(text)))


def read_text(path: str) -> str:
    """The text of a file, or with `-` of stdin; UsageError when it is none."""
    try:
        raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        return raw.decode()
    except (OSError, UnicodeDecodeError) as error:
        msg = f"--text {path}: cannot be read as text in UTF-8: {error}"
        raise UsageError(msg) from error


def ask_text(folder: Path, text: str) -> list[dict[str, Any]]:
    """What one text duplicates; UsageError for one too short to be compared with any."""
    index = Index.open(folder)
    stage = index.stage
    if not len(shingle_sets(pa.array([text], pa.large_string()), stage.ngram, stage.char_ngram)[0]):
        msg = (
            f"the text has no {stage.ngram} words in a row (or {stage.char_ngram} characters of a "
            "script without spaces): too short to be a near duplicate of any"
        )
        raise UsageError(msg)
    return [_told(m) for m in query(index, text)]


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
            found = query_texts(index, texts.some(texts.raw(group), group, local))
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
