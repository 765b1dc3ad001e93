"""What the dedup benchmarks share: real texts, graded copies, the whole stage in memory."""

from __future__ import annotations

import gzip
import json
import os
import random
import sys
import tempfile
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from gristmill.dedup.rank import Nodes
from gristmill.documents.exchange import JoiningRound, WholeRound

ROOT = Path(__file__).resolve().parent.parent
PEPS = "d-dup-pep-revisions/develop.jsonl.gz"
PEERS = (
    "datasketch==2.0.0", "rensa==0.5.0", "datatrove[processing]==0.10.1", "spacy", "orjson",
)  # fmt: skip


def cache_folder():
    return Path(tempfile.gettempdir()) / "gristmill-bench"


def data_folder(given):
    """The folder of real data sets: an argument, $GRISTMILL_DATA or ../shared/data."""
    data = Path(given or os.environ.get("GRISTMILL_DATA", ROOT.parent / "shared" / "data"))
    if not (data / PEPS).exists():
        sys.exit(f"no data sets in {data}; name their folder or set GRISTMILL_DATA")
    return data


def load(path, limit=None, field="text"):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line)[field] for line in islice(file, limit)]


def graded(texts, seed=7, most=0.08):
    """Each text with a copy in which a share of words, up to `most`, is exchanged at random."""
    draw = random.Random(seed)
    for text in texts:
        yield text
        words = text.split()
        for _ in range(int(len(words) * draw.random() * most + draw.random())):
            words[draw.randrange(len(words))] = f"x{draw.randrange(10**6)}"
        yield " ".join(words)


def column_of(texts):
    return pa.array(texts, pa.large_string())


def documents_of(stage, texts):
    """The table that `scatter` gets: one shard, ids in order."""
    rows = len(texts)
    scores = stage.survey.measure(pa.record_batch({"text": column_of(texts)})).scores
    found = Nodes(
        shard=np.zeros(rows, np.uint64),
        high=np.zeros(rows, np.uint64),
        low=np.arange(rows, dtype=np.uint64),
        row=np.arange(rows, dtype=np.uint32),
        priority=np.zeros(rows, np.uint16),
        quality=np.full(rows, -1, np.int32),
        size=np.array([len(text.encode()) for text in texts], np.uint32),
    )
    columns = found.columns()
    for name, values in scores.items():
        flat = pa.array(values.ravel())
        columns[name] = (
            pa.FixedSizeListArray.from_arrays(flat, values.shape[1]) if values.ndim == 2 else flat
        )
    return pa.table(columns)


def decide(stage, texts, watch=None):
    """Decisions of the whole stage; `watch` sees each round's rows and what it made of them."""
    column = column_of(texts)
    rows = stage.scatter(documents_of(stage, texts))
    seen = {}
    for step in stage.rounds:
        if isinstance(step, WholeRound):
            made = step.whole([rows])
        elif isinstance(step, JoiningRound):
            made = step.join(rows, seen[step.beside])
        else:
            made = step.gather(rows, lambda _, at: step.prepare(column.take(pa.array(at))))  # noqa: B023
        if watch:
            watch(step, rows, made)
        seen[step.name] = rows = made
    return rows
