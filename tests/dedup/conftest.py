"""A tiny engine in memory: it moves rows between rounds as `pipelines` does, and nothing more."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

from gristmill.documents.exchange import (
    DECISIONS,
    CuttingStage,
    FetchingRound,
    JoiningRound,
    WholeRound,
)
from gristmill.documents.identity import shard_hash
from gristmill.documents.stage import checked_measure, checked_verdict


@dataclass(frozen=True, kw_only=True)
class Doc:
    text: str
    shard: str = "shard"
    id: bytes | None = None
    priority: int = 0
    quality: int = -1
    host: str | None = None
    url: str | None = None
    date: str | None = None
    source: str = "web"
    dump: str | None = None


class Corpus:
    """Documents in shards; `run` gives DECISIONS sorted by (shard, id)."""

    def __init__(self, docs, seed=None):
        named = [
            (doc, doc.id if doc.id is not None else i.to_bytes(16, "big"))
            for i, doc in enumerate(docs)
        ]
        self.seed = seed
        if seed is not None:
            random.Random(seed).shuffle(named)
        self.shards = {} if docs else {"shard": []}
        for doc, key in named:
            self.shards.setdefault(doc.shard, []).append((doc, key))
        self.names = {shard_hash(name): name for name in self.shards}
        self.fetched = []

    def texts(self, shards, rows):
        assert len(shards) == len(rows)
        wanted = list(zip(shards.tolist(), rows.tolist(), strict=True))
        assert len(set(wanted)) == len(wanted)  # each text once in a call
        found = [self.shards[self.names[s]][r][0].text for s, r in wanted]
        self.fetched.append(sum(len(text.encode()) for text in found))
        return pa.array(found, pa.large_string())

    def surveyed(self, stage):
        for name, docs in self.shards.items():
            texts = [doc.text for doc, _ in docs]
            batch = pa.record_batch(
                {"text": pa.array(texts, pa.large_string())}
                | {
                    name: pa.array([getattr(doc, name) for doc, _ in docs], pa.string())
                    for name in ("url", "host", "date", "source", "dump")
                }
            )
            scores = checked_measure(stage.survey, batch).scores
            assert not checked_verdict(stage.survey, scores, len(docs)).any()
            columns = {
                "shard": pa.array([shard_hash(name)] * len(docs), pa.uint64()),
                "id": pa.array([key for _, key in docs], pa.binary(16)),
                "row": pa.array(range(len(docs)), pa.uint32()),
                "priority": pa.array([doc.priority for doc, _ in docs], pa.uint16()),
                "quality": pa.array([doc.quality for doc, _ in docs], pa.int32()),
                "bytes": pa.array([len(text.encode()) for text in texts], pa.uint32()),
            }
            for score, values in scores.items():
                column = pa.array(values.ravel())
                if values.ndim == 2:
                    column = pa.FixedSizeListArray.from_arrays(column, values.shape[1])
                columns[score] = column
            if isinstance(stage, CuttingStage):
                columns["text"] = pa.array(texts, pa.large_string())
            yield pa.table(columns)

    def run(self, stage, partitions=1, rounds=None):
        tables = [stage.scatter(documents) for documents in self.surveyed(stage)]
        made = {}
        for step in rounds if rounds is not None else stage.rounds:
            parts = self._parts(tables, partitions)
            if isinstance(step, WholeRound):
                tables = [step.whole(parts)]
            elif isinstance(step, JoiningRound):
                beside = self._parts(made[step.beside], partitions)
                tables = [step.join(*both) for both in zip(parts, beside, strict=True)]
            else:
                tables = [step.gather(part, self.fetched_for(step, part)) for part in parts]
            made[step.name] = tables
        result = pa.concat_tables([table.replace_schema_metadata(None) for table in tables])
        assert result.schema == getattr(stage, "decided", DECISIONS)
        return result.sort_by([("shard", "ascending"), ("id", "ascending")])

    def _parts(self, tables, partitions):
        rows = pa.concat_tables([table.replace_schema_metadata(None) for table in tables])
        if self.seed is not None:
            order = list(range(len(rows)))
            random.Random(self.seed).shuffle(order)
            rows = rows.take(pa.array(order, pa.int64()))
        part = rows.column("partition").to_numpy() % np.uint64(partitions)
        return [rows.filter(pa.array(part == p)) for p in range(partitions)]

    def fetched_for(self, step, rows):
        """What a round keeps of the texts that it named before, and of no others."""
        if not isinstance(step, FetchingRound):
            return self.texts
        named = step.needs(rows)
        allowed = set(zip(*(named[c].to_pylist() for c in ("shard", "row")), strict=True))
        assert len(allowed) == len(named)

        def fetched(shards, rows):
            assert set(zip(shards.tolist(), rows.tolist(), strict=True)) <= allowed
            return step.prepare(self.texts(shards, rows))

        return fetched

    def decide(self, stage, **kwargs):
        """Decisions as {(shard name, id): row as dict}."""
        rows = self.run(stage, **kwargs).to_pylist()
        return {(self.names[row["shard"]], row["id"]): row for row in rows}


@pytest.fixture(name="naive", scope="session")
def naive_fixture(naive):
    """The module of twins."""
    return naive("naive_dedup")


@pytest.fixture(name="doc", scope="session")
def doc_fixture():
    return Doc


@pytest.fixture(name="corpus", scope="session")
def corpus_fixture():
    return Corpus


@pytest.fixture(name="key", scope="session")
def key_fixture():
    """Id of the i-th document of a corpus, unless the document states its own."""
    return lambda i: i.to_bytes(16, "big")
