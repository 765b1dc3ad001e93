"""What is planted in the sample data for masking and decontamination is found, and nothing else."""

from __future__ import annotations

import json

import pyarrow as pa

from gristmill.documents.stage import checked_measure
from gristmill.filters import PII, Decontaminate

NATIONAL = {"020 7946 0958", "01 99 00 41 73"}  # no word like "Tel." before: left, as `pii` says
KINDS = {"email": {"email"}, "phone": {"phone"}, "ip": {"ipv4", "ipv6"}}


def batch_of(sample):
    keys = sorted(sample.texts)
    whole = [sample.texts[k].encode("utf-8", "replace").decode() for k in keys]  # a lone surrogate
    texts = pa.array(whole, pa.large_string())
    return keys, pa.record_batch({"text": texts})


def test_planted_items_are_found_by_name_and_no_other_text_is(sample):
    keys, batch = batch_of(sample)
    measured = checked_measure(Decontaminate(files=sample.root / "benchmark.jsonl"), batch)
    found = {
        (*keys[row], item["item"])
        for row, note in zip(measured.evidence.rows.tolist(), measured.evidence.notes, strict=True)
        for item in json.loads(note)["items"]
    }
    planted = {(f["file"], f["id"], f["item"]) for f in sample.facts["benchmark"]}
    assert {f[2] for f in found} == {f[2] for f in planted}
    assert planted <= found


def test_planted_personal_data_is_masked_and_nothing_else_of_the_pages(sample):
    _, batch = batch_of(sample)
    edits = checked_measure(PII(reserved=True), batch).edits
    found = {}
    for row, start, length, kind in zip(
        edits.rows, edits.starts, edits.lengths, edits.reasons, strict=True
    ):
        raw = batch.column("text")[row].as_py().encode()
        found[raw[start : start + length].decode()] = edits.reason_names[kind]
    planted = {f["value"]: f["kind"] for f in sample.facts["personal_data"]}
    assert planted.keys() - found.keys() == NATIONAL
    assert all(found[v] in KINDS[kind] for v, kind in planted.items() if v not in NATIONAL)
