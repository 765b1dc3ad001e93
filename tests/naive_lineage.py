"""Lineage by hand: every hop checked against the bytes, with as little of the mill as can be.

forward   raw record (decoded with the standard library) -> document or loss -> verdicts, cuts ->
          corpus text -> token ids (decoded with `tokenizers`) -> all training samples that hold it
backward  training position -> documents of its step -> token ids -> corpus text -> raw record
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import zstandard
from tokenizers import Tokenizer

from gristmill.documents.records import Draft, Locator
from gristmill.mixing import Plan, TokenFeed, trace
from gristmill.mixing.encoder import OWN
from gristmill.pipelines.readers import reread
from gristmill.pipelines.run import Run
from gristmill.pipelines.trace import current_plan
from gristmill.pipelines.why import why


def decoded_at(path: Path, offset: int, inner: int, span: int) -> bytes:
    """The raw record's bytes, with zlib and zstandard alone: never the project's readers."""
    with path.open("rb") as file:
        magic = file.read(4)
        file.seek(offset)
        head = file.read(4)
        file.seek(offset)
        if head[:2] == b"\x1f\x8b":
            stream: Any = zlib.decompressobj(31)
            out, rest = b"", b""
            while len(out) < inner + span:
                chunk = rest or file.read(1 << 16)
                if not chunk:
                    break
                out += stream.decompress(chunk)
                rest = stream.unused_data
                if stream.eof:
                    stream = zlib.decompressobj(31)
            return out[inner : inner + span]
        if head == b"\x28\xb5\x2f\xfd":
            reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
            reader.read(inner)
            return reader.read(span)
        assert magic != b"PAR1"
        file.seek(offset + inner)
        return file.read(span)


class Trail:
    """One run, opened for checking."""

    def __init__(self, folder: Path) -> None:
        self.run = Run(folder)
        plan = current_plan(self.run)
        assert plan is not None
        self.plan = Plan.open(plan)
        self.feed = TokenFeed(plan, folder / "tokens")
        body = json.loads(OWN.read_text())
        body["added_tokens"] = []
        self.tokenizer = Tokenizer.from_str(json.dumps(body))
        self._tables: dict[str, Any] = {}

    def table(self, name: str) -> Any:
        """A Parquet file of the run, as rows."""
        if name not in self._tables:
            self._tables[name] = pq.read_table(self.run.store.path(name))
        return self._tables[name]

    def tokens(self, shard: str, ordinal: int) -> np.ndarray:
        """A document's ids, read from the flat file by its ends."""
        ends = np.load(self.run.store.path(f"tokens/{shard}.ends.npy"))
        index = json.loads(self.run.store.path(f"tokens/{shard}.index.json").read_bytes())
        flat = np.memmap(self.run.store.path(f"tokens/{shard}.bin"), index["dtype"], "r")
        start = int(ends[ordinal - 1]) if ordinal else 0
        return np.array(flat[start : int(ends[ordinal])])

    def check_raw(self, shard: str, row: int) -> None:
        """The document's text is what its raw record converts to."""
        document = self.table(f"documents/{shard}.parquet").slice(row, 1).to_pylist()[0]
        at = Locator(**self.run.shards[shard].place(document["locator"]))
        source = self.run.recipe.source(self.run.shards[shard].source)
        path = self.run.recipe.root / at.file
        if source.converter.name == "repository":
            self._check_files(shard, document)
            return
        if not _is_parquet(path):
            raw = decoded_at(path, at.offset, at.inner, at.span)
            assert len(raw) == at.span
        record = reread(self.run.recipe.root, at, **source.reader)
        assert record is not None
        drafts = [d for d in source.converter(iter([record])) if isinstance(d, Draft)]
        assert drafts
        assert drafts[0].text == document["text"]
        if not _is_parquet(path) and document["url"]:
            assert document["url"].encode() in raw

    def _check_files(self, shard: str, document: dict[str, Any]) -> None:
        """A bundle: each file's raw line holds the text that stands at its place."""
        text = document["text"].encode()
        files = json.loads(document["metadata"])["files"]
        assert sum(f["locator"][3] for f in files) == document["locator"]["span"]
        for file in files:
            extent, offset, inner, span = file["locator"]
            at = self.run.shards[shard].place({"extent": extent, "offset": offset})
            path = self.run.recipe.root / at["file"]
            line = json.loads(decoded_at(path, at["offset"], inner, span))
            assert line["path"] == file["path"]
            stands = text[file["start"] : file["start"] + file["bytes"]].decode()
            assert stands.strip() == line["text"].replace("\r\n", "\n").strip()

    def check_final(self, shard: str, ordinal: int) -> None:
        """The token ids decode to the corpus text, and end with the end of document."""
        row = self.table(f"corpus/{shard}.parquet").slice(ordinal, 1).to_pylist()[0]
        ids = self.tokens(shard, ordinal)
        index = json.loads(self.run.store.path(f"tokens/{shard}.index.json").read_bytes())
        text, raw = row["text"], row["text"].encode()
        if row["turns"] is not None:  # laid out: what was said, with a line before arguments
            said = [("\n" * (t["role"] == "arguments")).encode() for t in row["turns"]]
            said = [b + raw[t["body"] : t["stop"]] for b, t in zip(said, row["turns"], strict=True)]
            text = b"".join(said).decode()
        words = [i for i in ids.tolist() if str(i) not in index["placed"]]
        assert self.tokenizer.decode(words, skip_special_tokens=False) == text
        assert ids[-1] == index["eos_id"]

    def check_position(self, position: int) -> int:
        """Follow all that stands at a training position back to raw records; returns documents."""
        sample = self.feed[position]
        step = self.plan.step_of(position)
        rows = [t for t in trace(self.plan, step) if t.position == position]
        assert rows
        for row in rows:
            ids = self.tokens(row.shard, row.doc)[row.start : row.start + row.length]
            assert (sample["input_ids"][row.offset : row.offset + row.length] == ids).all()
            final = self.table(f"corpus/{row.shard}.parquet").slice(row.doc, 1).to_pylist()[0]
            assert final["id"].hex() == row.id
            self.check_final(row.shard, row.doc)
            self.check_raw(row.shard, final["row"])
        return len(rows)

    def check_document(self, shard: str, row: int) -> str:
        """Follow one document forward to its end; returns how it ended."""
        document = self.table(f"documents/{shard}.parquet").slice(row, 1).to_pylist()[0]
        self.check_raw(shard, row)
        told = next(
            d
            for d in why(self.run, document["id"].hex())["documents"]
            if (d["document"]["shard"], d["document"]["row"]) == (shard, row)
        )
        final = self.table(f"corpus/{shard}.parquet")
        rows = final.column("row").to_pylist()
        if told["outcome"] != "kept":
            assert row not in rows
            assert told["tokens"]["shard"] is None
            assert told["training"] is None
            self._check_dropped(told)
            return str(told["outcome"])
        ordinal = rows.index(row)
        text = document["text"].encode()
        for each in told["passes"]:
            for stage in each["stages"]:
                text = _without(text, stage.get("cuts", []))
        assert text.decode() == final.column("text")[ordinal].as_py()
        assert told["tokens"]["document"] == ordinal
        self.check_final(shard, ordinal)
        ids = self.tokens(shard, ordinal)
        for seen in told["training"]["seen"]:
            sample = self.feed[seen["position"]]
            piece = ids[seen["start"] : seen["start"] + seen["length"]]
            window = sample["input_ids"]
            at = [i for i in np.flatnonzero(window == piece[0]) if _same(window, i, piece)]
            assert at, (seen, shard, ordinal)
        return "trained" if told["training"]["seen"] else "kept"

    def _check_dropped(self, told: dict[str, Any]) -> None:
        """A duplicate names a witness that is kept by the stage that judged."""
        last = told["passes"][-1]["stages"][-1]
        if last["stage"] not in {"exact_duplicates", "near_duplicates"}:
            return
        witness = last["evidence"]["witness_id"]
        shard = last["evidence"]["witness_in"]
        found = why(self.run, witness)["documents"]
        one = next(d for d in found if d["document"]["shard"] == shard)
        judged = [s for p in one["passes"] for s in p["stages"] if s["stage"] == last["stage"]]
        assert judged[0]["verdict"] == "keep"


def _same(window: np.ndarray, at: int, piece: np.ndarray) -> bool:
    return (
        bool((window[at : at + len(piece)] == piece).all())
        if at + len(piece) <= len(window)
        else False
    )


def _without(text: bytes, cuts: list[dict[str, Any]]) -> bytes:
    out = bytearray(text)
    for cut in reversed(cuts):
        del out[cut["start"] : cut["start"] + cut["length"]]
    return bytes(out)


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def raw_records(root: Path, file: str) -> list[tuple[int, int]]:
    """(offset, inner) of every record of a gzip file, by the standard library: JSONL lines, or
    members of a WARC that start with `WARC/1`."""
    data = (root / file).read_bytes()
    found = []
    if ".jsonl" in file:
        inner = 0
        for line in io.BytesIO(gzip.decompress(data)):
            found.append((0, inner))
            inner += len(line)
        return found
    at = 0
    while at < len(data):
        stream = zlib.decompressobj(31)
        body = stream.decompress(data[at:])
        kind = next((x for x in body.split(b"\r\n") if x.startswith(b"WARC-Type:")), b"")
        if kind.split(b":")[1].strip() in {b"response", b"conversion"}:
            found.append((at, 0))
        at = len(data) - len(stream.unused_data)
    return found
