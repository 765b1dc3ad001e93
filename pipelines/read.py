"""The read step: stored bytes to documents, written once, and a row for what did not become one.

Three outputs a shard: `documents`, `losses`, and `attributes/read` (id and text bytes: all that a
pass needs to know of a row whose text it need not see). Conservation is checked before they are
committed: stored bytes are those of the extents, decoded bytes those of records, losses and skips.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from isal import isal_zlib

from ..documents.errors import ContractError, StopError
from ..documents.fingerprint import canonical, digest
from ..documents.identity import IdMaker
from ..documents.records import Draft, Locator, Loss, Record, Skip
from ..documents.schema import DOCUMENTS, FORMAT, LOCATOR, LOSSES, TURNS
from ..documents.text import from_buffers
from .convert.cleaning import clean_line
from .manifest import extent_digest
from .passes import attributes
from .steps import Counts, Facts, Step

if TYPE_CHECKING:
    from .recipe import Source
    from .run import Run

_PLAIN_HOST = re.compile(r"https?://([a-z0-9.-]+)(?:/|\Z)")
REVISION = 5  # of the readers: another number where they give other records, losses or counts
GROUP_BYTES = 8 << 20  # of text per row group: what a random look-up of one document decodes
READ = pa.schema(
    [pa.field("id", pa.binary(16), nullable=False), pa.field("bytes", pa.int64(), nullable=False)]
)


class ReadStep(Step):
    """`documents/<shard>.parquet`, `losses/<shard>.parquet`, `attributes/read/<shard>.parquet`."""

    name = "read"

    def outputs(self, run: Run, key: str) -> tuple[str, ...]:
        """The three outputs of a shard."""
        return f"documents/{key}.parquet", f"losses/{key}.parquet", attributes("read", key)

    def inputs(self, run: Run, key: str) -> dict[str, str]:
        """The stored bytes of each extent, by digest."""
        return {f"extent-{i}": d for i, d in enumerate(run.shards[key].digests)}

    def fingerprint(self, run: Run, key: str) -> str:
        """Reader options, the converter, what the source states, libraries, Unicode's tables."""
        source = run.recipe.source(run.shards[key].source)
        converter = source.converter
        own = [converter.name, converter.revision, converter]
        said = [source.name, source.dump, source.license, dict(source.reader)]
        libraries = run.versions("pyarrow", "resiliparse", "zstandard", "brotli", "isal")
        libraries += run.versions(*getattr(converter, "libraries", ()))
        parts = [FORMAT, REVISION, own, said, libraries, unicodedata.unidata_version]
        if key in run.removals:
            parts.append(sorted(i.hex() for i in run.removals[key]))
        return digest(parts)

    def write(self, run: Run, key: str, paths: Mapping[str, Path], facts: Facts) -> Counts:
        """Read all extents of the shard, in order."""
        shard = run.shards[key]
        source = run.recipe.source(shard.source)
        removed = frozenset().union(*run.removals.values())  # what is down stays down anywhere
        out = _Writer([paths[o] for o in self.outputs(run, key)], source, removed)
        try:
            counts = _read(run, key, source, out)
        finally:
            out.close()
        for extent, value in zip(shard.extents, shard.digests, strict=True):
            if extent_digest(run.recipe.root, extent) != value:
                msg = (
                    f"{extent.file}: its bytes {extent.start}-{extent.end} are not those that the "
                    "manifest names; it changed while the run went on. Give the same command again"
                )
                raise StopError(msg)
        facts.bytes = shard.stored_bytes
        documents, losses, narrow = self.outputs(run, key)
        counts |= {"documents": out.documents, "text_bytes": out.text_bytes}
        counts |= {"repairs": dict(sorted(out.repairs.items()))}
        counts |= {"repeated_urls": dict(sorted(out.repeated.items()))}  # within the shard
        return {
            documents: counts,
            losses: {"losses": out.losses},
            narrow: {"documents": out.documents},
        }


def _read(run: Run, key: str, source: Source, out: _Writer) -> dict[str, Any]:
    """Feed the writer; returns the reader's account."""
    from .convert import MainText
    from .convert.guard import guarded
    from .readers import ReadAccount, read_extent

    skipped: Counter[str] = Counter()
    skipped_bytes: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    lost_bytes: Counter[str] = Counter()
    unseen = 0  # records of damage that never was decoded bytes
    account = ReadAccount()

    def items() -> Iterator[Record | Loss | Skip]:
        for number, extent in enumerate(run.shards[key].extents):
            for item in read_extent(run.recipe.root, extent, account, **source.reader):
                yield item if isinstance(item, Skip) else _within(item, number, extent.start)

    records = 0
    record_bytes = 0
    convert = source.converter
    made = guarded(convert, items()) if isinstance(convert, MainText) else convert(items())
    for item in made:
        if isinstance(item, Skip):
            skipped[item.reason] += item.records
            skipped_bytes[item.reason] += item.span
        elif isinstance(item, Loss):
            lost[f"{item.kind}:{item.reason}"] += 1
            lost_bytes[f"{item.kind}:{item.reason}"] += item.locator.span
            if item.kind == "fault" and not item.locator.span:
                unseen += item.records
            out.lose(item)
        elif out.add(item):
            records += item.records
            record_bytes += item.locator.span
        else:  # booked without what it was
            lost["dropped:taken_down"] += 1
            lost_bytes["dropped:taken_down"] += item.locator.span
            out.lose(Loss(locator=item.locator, kind="dropped", reason="taken_down"))
    account.check()
    total = record_bytes + sum(skipped_bytes.values()) + sum(lost_bytes.values())
    if total != account.decoded_bytes:
        msg = (
            f"shard {key}: {account.decoded_bytes} bytes were decoded, {total} are accounted for "
            f"(records {record_bytes}, skipped {sum(skipped_bytes.values())}, "
            f"lost {sum(lost_bytes.values())}): the reader or converter lost some"
        )
        raise ContractError(msg)
    return {
        "stored_bytes": account.stored_bytes,
        "damaged_bytes": account.damaged,
        "decoded_bytes": account.decoded_bytes,
        "records": records,
        "record_bytes": record_bytes,
        "skipped": {k: [skipped[k], skipped_bytes[k]] for k in sorted(skipped)},
        "lost": {k: [lost[k], lost_bytes[k]] for k in sorted(lost)},
        "unseen_records": unseen,
    }


def _within(item: Record | Loss, number: int, start: int) -> Record | Loss:
    """With a locator that names the shard's extent, not a path: a file may move, bytes do not.

    `pipelines.manifest.Shard.place` leads back to the file.
    """
    at = item.locator
    within = Locator(str(number), at.offset - start, at.inner, at.span)
    if isinstance(item, Loss):  # the reader's message looks at it again
        return replace(item, locator=within)
    item.locator = within  # nobody else holds it
    return item


class _Writer:
    """Gathers rows up to a row group's bytes and writes the three files in step."""

    def __init__(self, paths: list[Path], source: Source, removed: frozenset[bytes]) -> None:
        meta = {b"gristmill": canonical({"format": FORMAT, "stages": []})}
        schemas = [s.with_metadata(meta) for s in (DOCUMENTS, LOSSES, READ)]
        self._schemas = schemas
        self._files = [
            pq.ParquetWriter(p, s, compression="zstd") for p, s in zip(paths, schemas, strict=True)
        ]
        self._source = source
        self._removed = removed
        self._id = IdMaker(source.name)
        self._rows: list[tuple[Any, ...]] = []
        self._lost: list[dict[str, Any]] = []
        self._held = 0
        self.documents = self.text_bytes = self.losses = 0
        self.repairs: Counter[str] = Counter()
        self._urls: dict[str, tuple[int, int]] = {}  # of each, size and checksum of its first text
        self.repeated: Counter[str] = Counter()

    def add(self, draft: Draft) -> bool:
        """One document; False when it was taken down and is left out."""
        content = draft.text.encode() if draft.utf8 is None else draft.utf8
        id_ = self._id(draft.identity, content)
        if id_ in self._removed:
            return False
        if self._held and self._held + len(content) > GROUP_BYTES:
            self._flush()
        metadata = dict(draft.metadata)
        if draft.repairs:
            metadata["repairs"] = dict(draft.repairs)
            self.repairs.update(draft.repairs)
        if draft.records != 1:
            metadata["records"] = draft.records
        at = draft.locator
        self._rows.append(
            (
                id_,
                content,
                draft.url,
                _host(draft.url),
                draft.date,
                draft.license or self._source.license,
                _json(metadata),
                None if draft.turns is None else [turn._asdict() for turn in draft.turns],
                int(at.file),
                at.offset,
                at.inner,
                at.span,
            )
        )
        if draft.url:
            mark = len(content), isal_zlib.crc32(content)
            if mark != (first := self._urls.setdefault(draft.url, mark)):
                self.repeated["other_text"] += 1
            elif first is not mark:
                self.repeated["same_text"] += 1
        self._held += len(content)
        self.documents += 1
        self.text_bytes += len(content)
        return True

    def lose(self, loss: Loss) -> None:
        """One row in the books."""
        at = loss.locator
        self._lost.append(
            {
                "extent": int(at.file),
                "offset": at.offset,
                "inner": at.inner,
                "span": at.span,
                "kind": loss.kind,
                "reason": loss.reason,
                "detail": loss.detail.encode("utf-8", "replace").decode()[:1000],
                "url": clean_line(loss.url),
            }
        )
        self.losses += 1
        if len(self._lost) >= 10_000:
            self._flush_losses()

    def _flush(self) -> None:
        for which, columns in ((0, self._columns()), (2, self._narrow())):
            table = pa.Table.from_arrays(columns, schema=self._schemas[which])
            self._files[which].write_table(table, row_group_size=max(1, table.num_rows))
        self._rows, self._held = [], 0

    def _columns(self) -> list[pa.Array]:
        """The held rows as columns of DOCUMENTS; texts are joined, not encoded again."""
        held = zip(*self._rows, strict=True) if self._rows else [()] * 12
        ids, texts, url, host, date, license_, metadata, turns, *locator = held
        offsets = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(text) for text in texts], out=offsets[1:])
        where = [pa.array(part, field.type) for part, field in zip(locator, LOCATOR, strict=True)]
        rows = len(texts)
        return [
            pa.array(ids, pa.binary(16)),
            from_buffers(np.frombuffer(b"".join(texts), np.uint8), offsets),
            pa.array(url, pa.string()),
            pa.array(host, pa.string()),
            pa.array([self._source.name] * rows, pa.string()),
            pa.array([self._source.dump] * rows, pa.string()),
            pa.array(date, pa.string()),
            pa.array(license_, pa.string()),
            pa.array(metadata, pa.string()),
            pa.array(turns, TURNS),
            pa.StructArray.from_arrays(where, fields=list(LOCATOR)),
        ]

    def _narrow(self) -> list[pa.Array]:
        sizes = [len(row[1]) for row in self._rows]
        return [
            pa.array([row[0] for row in self._rows], pa.binary(16)),
            pa.array(sizes, pa.int64()),
        ]

    def _flush_losses(self) -> None:
        self._files[1].write_table(pa.Table.from_pylist(self._lost, schema=self._schemas[1]))
        self._lost = []

    def close(self) -> None:
        """Write what is held; an empty file has one empty row group, so that its schema stands."""
        if self._rows or not self.documents:
            self._flush()
        if self._lost or not self.losses:
            self._flush_losses()
        for file in self._files:
            file.close()


def _json(metadata: dict[str, Any]) -> bytes:
    """Canonical JSON; what records of a shard have in common is encoded once."""
    if set(map(type, metadata.values())) == {str}:  # 1 and True would be one key
        return _json_of(*metadata.items())
    return canonical(metadata) if metadata else b"{}"


@lru_cache(maxsize=1024)
def _json_of(*items: tuple[str, str]) -> bytes:
    return canonical(dict(items))


def _host(url: str | None) -> str | None:
    """Lower-case host of a URL; None when there is none."""
    if not url:
        return None
    if plain := _PLAIN_HOST.match(url):  # most URLs, ten times faster; urlsplit says the same
        return plain[1]
    try:
        return urlsplit(url).hostname
    except ValueError:  # `http://[bad`
        return None
