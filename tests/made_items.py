"""Made-up evaluation items, and what `decontaminate` says of a text."""

from __future__ import annotations

import json
import random

import pyarrow as pa

from gristmill.documents.edits import apply_edits
from gristmill.documents.stage import checked_measure

WORDS = [f"{a}{b}{c}" for a in "bdklmnprst" for b in "aeiou" for c in "bdklmnprst"]


def sentence(seed: int, size: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=size))


def batch_of(texts) -> pa.RecordBatch:
    return pa.record_batch({"text": pa.array(texts, pa.large_string())})


def found(stage, text: str) -> list[dict]:
    measured = checked_measure(stage, batch_of([text]))
    return json.loads(measured.evidence.notes[0])["items"] if measured.evidence.notes else []


def cut(stage, texts: list[str]) -> list[str]:
    """What is left; measuring it again must find nothing."""
    batch = batch_of(texts)
    left = apply_edits(batch.column("text"), checked_measure(stage, batch).edits)
    again = checked_measure(stage, pa.record_batch({"text": left}))
    assert not again.scores["items"].any()
    return left.to_pylist()
