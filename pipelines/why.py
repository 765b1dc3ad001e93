"""Why: one document from its raw record to the training steps that see it.

raw record -> document -> each stage's verdict, scores, cuts and evidence -> tokens -> steps
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

from ..documents.edits import Edits
from ..documents.errors import GristmillError
from ..documents.records import Locator
from ..documents.stage import Stage
from ..ledger.writer import connect
from .accounts import accounts
from .columns import EDITS, edits_from, schema_meta
from .find import Place, corpus_ordinal, find, row_of
from .passes import Pass, attributes
from .texts import ShardTexts

if TYPE_CHECKING:
    from .run import Run

EXCERPT = 80  # characters of a cut that are shown
WIDEST = 16  # bytes of a packed score that are shown


def why(run: Run, document: str) -> dict[str, Any]:
    """All that is known of the documents with this URL or id; UsageError when there is none."""
    return {"asked": document, "documents": [_one(run, place) for place in find(run, document)]}


def _one(run: Run, place: Place) -> dict[str, Any]:
    row = row_of(run, f"documents/{place.shard}.parquet", place)
    text = row.pop("text")
    row["id"] = row["id"].hex()
    row["metadata"] = json.loads(row["metadata"])
    locator = run.shards[place.shard].place(row.pop("locator"))
    passes = _passes(run, place)
    last = passes[-1] if passes else {}
    return {
        "document": {
            **row,
            "shard": place.shard,
            "row": place.row,
            "text_bytes": len(text.encode()),
        },
        "raw_record": _raw(run, place, locator),
        "passes": passes,
        "outcome": last.get("outcome", "not decided yet"),
        "tokens": _tokens(run, place),
        "training": _training(run, place),
    }


def _raw(run: Run, place: Place, locator: dict[str, Any]) -> dict[str, Any]:
    """The locator, and whether the record still stands there."""
    from .readers import reread

    found: dict[str, Any] = dict(locator)
    options = run.recipe.source(run.shards[place.shard].source).reader
    try:
        record = reread(run.recipe.root, Locator(**locator), **options)
    except (OSError, GristmillError) as error:
        return found | {"state": f"cannot be read: {error}"}
    if record is None:
        return found | {"state": "no record stands there any more"}
    body = (
        record.body if record.body is not None else (record.text or "").encode("utf-8", "replace")
    )
    found |= {"state": "there", "identity": record.identity, "bytes": len(body)}
    return found | {"digest": hashlib.blake2b(body, digest_size=16).hexdigest()}


def _passes(run: Run, place: Place) -> list[dict[str, Any]]:
    found = []
    earlier: list[str] = []
    for which in run.passes:
        name = attributes(which.name, place.shard)
        if run.store.present(name) is None:
            break
        told = _one_pass(run, which, place, earlier)
        found.append(told)
        if told["outcome"] != "kept":
            break
        earlier.append(which.name)
    return found


def _one_pass(run: Run, which: Pass, place: Place, earlier: list[str]) -> dict[str, Any]:
    name = attributes(which.name, place.shard)
    about = schema_meta(pq.read_schema(run.store.path(name)))["stages"]
    row = row_of(run, name, place)
    texts = ShardTexts(run, place.shard, earlier)
    text = texts.group(place.group)[place.local].as_py().encode()
    stages = []
    own = which.stages[run.shards[place.shard].source]
    outcome = "kept"
    for stage in about:
        code = row[f"{stage['name']}.code"]
        if code is None:
            break
        told: dict[str, Any] = {"stage": stage["name"], "verdict": stage["reasons"][code]}
        told["scores"] = {s: _plain(row[f"{stage['name']}.{s}"]) for s in stage["scores"]}
        if stage["edit_reasons"] is not None:
            told["cuts"], text = _cuts(row[f"{stage['name']}.edits"], stage, text)
        note = row[f"{stage['name']}.evidence"]
        if note is not None:
            told["evidence"] = _note(note)
            _follow_witness(run, stage["name"], told["evidence"])
        made = next((s for s in own if s.name == stage["name"]), None)
        if made is not None:
            told |= _measured(made, row, stage, code, text)
        stages.append(told)
        if code:
            outcome = f"dropped by {stage['name']}: {stage['reasons'][code]}"
    return {"pass": which.name, "stages": stages, "outcome": outcome}


def _measured(
    made: Stage, row: dict[str, Any], stage: dict[str, Any], code: int, text: bytes
) -> dict[str, Any]:
    """Each rule's value and threshold, and what of the text broke one; of stages that tell."""
    told: dict[str, Any] = {}
    rules, show = getattr(made, "rules", None), getattr(made, "show", None)
    if rules is not None:
        scores = {s: np.array([row[f"{stage['name']}.{s}"]]) for s in stage["scores"]}
        told["rules"] = dict(
            zip(stage["reasons"][1:], (r.told(0) for r in rules(scores)), strict=True)
        )
    shown = show(text.decode("utf-8", "replace"), stage["reasons"][code]) if code and show else None
    return told if shown is None else {**told, "shown": shown}


def _follow_witness(run: Run, stage: str, note: Any) -> None:
    """Say what became of a witness, and of the cluster: a later stage may have dropped it."""
    if not isinstance(note, dict) or not note.get("witness_in"):
        return
    note["witness_now"] = _fate(run, note)
    lost_to = _lost_to(run, stage, note.get("cluster", ""))
    if lost_to:
        note["cluster_now"] = f"none left: what was kept of it was dropped by {lost_to}"


def _fate(run: Run, note: dict[str, Any]) -> str:
    """What became of the witness that a note names, followed to the end."""
    for place in find(run, note["witness_id"]):
        if place.shard == note["witness_in"]:
            return _outcome(run, place)
    return "not there"


def _lost_to(run: Run, stage: str, cluster: str) -> str | None:
    """The stages to which a cluster was lost, by the ledger; None when some of it is left."""
    path = run.store.path("ledger.duckdb")
    if not path.is_file():
        return None
    con = connect(path, read_only=True)
    try:
        found = con.execute(
            "SELECT lost_to FROM gone_clusters WHERE stage = ? AND cluster = ?", [stage, cluster]
        ).fetchone()
    finally:
        con.close()
    return str(found[0]) if found else None


def _outcome(run: Run, place: Place) -> str:
    """The last word on a document."""
    for which in run.passes:
        name = attributes(which.name, place.shard)
        if run.store.present(name) is None:
            break
        row = row_of(run, name, place)
        if row["dropped_by"]:
            stages = schema_meta(pq.read_schema(run.store.path(name)))["stages"]
            stage = stages[row["dropped_by"] - 1]["name"]
            note = _note(row[f"{stage}.evidence"] or "{}")
            told = f"dropped by {stage}"
            if isinstance(note, dict) and note.get("witness_in"):
                told += f" for {note['witness_id']}: {_fate(run, note)}"
            return told
    return "kept"


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return (
            value.hex() if len(value) <= WIDEST else f"{value[:WIDEST].hex()}… {len(value)} bytes"
        )
    return value


def _note(note: str) -> Any:
    try:
        return json.loads(note)
    except ValueError:
        return note


def _cuts(
    items: list[dict[str, int]], stage: dict[str, Any], text: bytes
) -> tuple[list[Any], bytes]:
    """What was cut, with its text, and the text without it."""
    import pyarrow as pa

    edits: Edits = edits_from(pa.array([items], EDITS), stage)
    told = []
    out = []
    read = 0
    fills = edits.replacements
    which = edits.replacement if edits.replacement is not None else np.zeros(len(items), np.uint8)
    for i, item in enumerate(items):
        end = item["start"] + item["length"]
        cut = text[item["start"] : end].decode("utf-8", "replace")
        told.append(
            {
                "reason": stage["edit_reasons"][item["reason"]],
                "start": item["start"],
                "length": item["length"],
                "text": cut if len(cut) <= EXCERPT else cut[:EXCERPT] + "…",
            }
        )
        out += [text[read : item["start"]], fills[int(which[i])]]
        read = end
    return told, b"".join([*out, text[read:]])


def _tokens(run: Run, place: Place) -> dict[str, Any] | None:
    """Tokens as read and after each pass, and where they stand in the token shard."""
    counts = {}
    for name in ("read", *(p.name for p in run.passes)):
        if run.store.present(accounts(name, place.shard)) is None:
            break
        row = row_of(run, accounts(name, place.shard), place, ["tokens"])
        if row["tokens"] is None:
            break
        counts[name] = row["tokens"]
    ordinal = corpus_ordinal(run, place)
    found: dict[str, Any] = {"counted": counts, "shard": None}
    ends_name = f"tokens/{place.shard}.ends.npy"
    if ordinal is None or run.store.present(ends_name) is None:
        return found
    ends = np.load(run.store.path(ends_name), mmap_mode="r")
    start = int(ends[ordinal - 1]) if ordinal else 0
    place_told = {"shard": f"tokens/{place.shard}.bin", "document": ordinal}
    return found | place_told | {"start": start, "end": int(ends[ordinal])}


def _training(run: Run, place: Place) -> dict[str, Any] | None:
    """The steps of the current plan that see the document; None without a plan."""
    from ..mixing import Plan, steps_of_document
    from .trace import current_plan

    folder = current_plan(run)
    ordinal = corpus_ordinal(run, place)
    if folder is None or ordinal is None:
        return None
    plan = Plan.open(folder)
    seen = steps_of_document(plan, place.shard, ordinal)
    rows = [{**s._asdict(), "stage": plan.stages[plan.stage_at(s.position)].name} for s in seen]
    return {"plan": plan.id, "steps": len({s.step for s in seen}), "seen": rows}


def why_stage(run: Run, place: Place, stage: str) -> dict[str, Any]:
    """What one stage said of a document: verdict, scores, cuts and evidence."""
    for told in _passes(run, place):
        for each in told["stages"]:
            if each["stage"] == stage:
                return dict(each)
    return {}
