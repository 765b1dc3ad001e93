"""Tokenise a shard of the corpus once: flat ids, document ends, document ids and an index.

A document is one segment of text; a conversation with a template (`turns`) is one per part, and
control ids stand around them. Segments are encoded each on its own, so no token crosses a border.

`encode_shard` streams: a batch of rows (32 MiB of text by the row group's mean) is read, encoded in
parts of 4 MiB and written; control ids are placed here, by id, never by text. Memory follows the
longest document, not the shard. Files carry no times or paths, so two writers give the same bytes.
Formats stand in `shards`, which reads them without Arrow.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..documents.errors import ContractError, DamagedError, StopError
from ..documents.fingerprint import canonical
from ..documents.text import text_view
from .encoder import Encoder
from .layout import Layout, joined
from .shards import EXTENT, FORMAT, ShardPaths
from .turns import TurnSpec

BATCH = 32 << 20  # bytes of text that one batch of rows aims at
ROWS = 4096  # rows of a batch at most: a mean says little when lengths differ


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenAccount:
    """What a shard of the corpus became. text_tokens + special_tokens is the length of `.bin`.

    Words that a template puts around turns are text tokens.

    `turns`: of the documents laid out by their turns [documents, bytes of their texts, of these
    bytes encoded, tokens of their texts as they stand, of these tokens too few in `.bin`, too
    many]: the last two are sums over documents, so that as they stand - too few + too many = text
    tokens of these documents.
    """

    documents: int
    text_tokens: int
    special_tokens: int  # control tokens: ends and begins of documents, around turns
    bytes: int  # UTF-8 bytes of text that were encoded
    unlearnt_tokens: int = 0  # that are no targets
    turns: tuple[int, ...] = (0, 0, 0, 0, 0, 0)


class Extents:
    """Writes `.bin`, its CRC-32 per extent and its digest, in one pass over the bytes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._crc = 0
        self.size = 0
        self.crcs: list[int] = []
        self.hasher = hashlib.blake2b(digest_size=16)

    def write(self, data: memoryview) -> None:
        """Add bytes."""
        self._file.write(data)
        self.hasher.update(data)
        at = 0
        while at < len(data):
            piece = data[at : at + EXTENT - self.size % EXTENT]
            self._crc = zlib.crc32(piece, self._crc)
            self.size += len(piece)
            at += len(piece)
            if self.size % EXTENT == 0:
                self.close_extent()

    def close_extent(self) -> None:
        """End an extent: after each `EXTENT` bytes, and once after the last."""
        if self.size > EXTENT * len(self.crcs):
            self.crcs.append(self._crc)
            self._crc = 0


def encode_shard(
    corpus: Path,
    encoder: Encoder,
    paths: ShardPaths,
    *,
    turns: TurnSpec | None = None,
) -> TokenAccount:
    """Write into `paths` the token shard of a Parquet file with columns `id` (16 bytes), `text`.

    `turns`: how documents that have any in the column `turns` are laid out; None: as text.
    Documents keep their order; an empty text is its end token alone. Every file is written under a
    name of its own and renamed, the index last. StopError: no such file or columns. DamagedError:
    not readable as Parquet.
    """
    part = f".{os.getpid()}.part"
    names = [f.name for f in dataclasses.fields(ShardPaths)]  # the index last
    parts = ShardPaths(**{n: Path(f"{getattr(paths, n)}{part}") for n in names})
    try:
        account = _write(corpus, encoder, turns, parts)
        for name in names:
            getattr(parts, name).replace(getattr(paths, name))
    finally:
        for name in names:
            getattr(parts, name).unlink(missing_ok=True)
    return account


def _write(
    corpus: Path, encoder: Encoder, spec: TurnSpec | None, paths: ShardPaths
) -> TokenAccount:
    layout = Layout(encoder, spec)
    ends, names = [np.zeros(0, np.int64)], [np.zeros((0, 16), np.uint8)]
    unlearnt = [np.zeros((0, 2), np.int64)]
    text_bytes = encoded = 0
    turns = np.zeros(6, np.int64)
    with paths.bin.open("wb") as file:
        out = Extents(file)
        for batch in _batches(corpus, with_turns=spec is not None):
            names.append(_ids(corpus, batch.column("id")))
            laid = layout.lay_out(batch)
            offsets = text_view(laid.text).offsets
            text_bytes += int(offsets[-1] - offsets[0])
            counted = np.zeros(len(offsets) - 1, np.int64)  # tokens of each segment
            mark = 0
            for part in encoder.parts(laid.text):
                if (part.ids == encoder.eos_id).any():
                    msg = f"text gave the id {encoder.eos_id} of the end of a document"
                    raise ContractError(f"{corpus}: {msg}")
                begin = out.size // encoder.dtype.itemsize
                flat, flat_ends, spans = laid.place(part, mark, encoder.dtype)
                if laid.run.any():
                    laid.count(part, mark, counted)
                mark += len(part.marks)
                ends.append(flat_ends + begin)
                unlearnt.append(spans + begin)
                encoded += len(part.ids)
                out.write(flat.data.cast("B"))
            turns += laid.booked(batch, counted, encoder)
        out.close_extent()
        _sync(file)
    end, name = np.concatenate(ends).astype("<u8"), np.concatenate(names)
    spans = joined(np.concatenate(unlearnt))
    documents, tokens = len(name), out.size // encoder.dtype.itemsize
    special = layout.placed.total()
    text_tokens = tokens - special
    if len(end) != documents or text_tokens != encoded + layout.written:
        raise ContractError(
            f"{corpus}: {documents:,} documents, {len(end):,} ends; {encoded:,} tokens of texts, "
            f"{layout.written:,} of the template's, {special:,} control tokens, {tokens:,} in all"
        )
    index = {
        "format": FORMAT,
        "dtype": encoder.dtype.name,
        "documents": documents,
        "tokens": tokens,
        "text_tokens": text_tokens,
        "special_tokens": special,
        "placed": {str(i): n for i, n in sorted(layout.placed.items())},
        "text_bytes": text_bytes,
        "tokenizer": encoder.digest,
        "engine": encoder.engine,
        "vocab_size": encoder.vocab_size,
        "eos_id": encoder.eos_id,
        "bos_id": encoder.bos_id,
        "size": out.size,
        "extent": EXTENT,
        "crc32": out.crcs,
        "digest": out.hasher.hexdigest(),
        "ends": save_array(paths.ends, end),
        "ids": save_array(paths.ids, name),
        "unlearnt": save_array(paths.unlearnt, spans.astype("<u8")) | {"spans": len(spans)},
    }
    with paths.index.open("wb") as file:
        file.write(canonical(index) + b"\n")
        _sync(file)
    return TokenAccount(
        documents=documents,
        text_tokens=text_tokens,
        special_tokens=special,
        bytes=text_bytes,
        unlearnt_tokens=int((spans[:, 1] - spans[:, 0]).sum()),
        turns=tuple(turns.tolist()),
    )


def _batches(corpus: Path, *, with_turns: bool) -> Iterator[pa.RecordBatch]:
    """Batches of `id`, `text` and perhaps `turns`, sized by each row group's mean bytes a row."""
    try:
        with pq.ParquetFile(corpus) as file:
            names = set(file.schema_arrow.names)
            if missing := {"id", "text"} - names:
                raise StopError(f"{corpus} has no column {sorted(missing)}; it has {sorted(names)}")
            columns = ["id", "text"] + ["turns"] * (with_turns and "turns" in names)
            text_leaf = file.schema_arrow.names.index("text")
            for group in range(file.num_row_groups):
                meta = file.metadata.row_group(group)
                leaf = _leaf(meta, "text", text_leaf)
                mean = meta.column(leaf).total_uncompressed_size // max(meta.num_rows, 1)
                rows = max(1, min(ROWS, BATCH // max(mean, 1)))
                yield from file.iter_batches(rows, [group], columns, use_threads=False)
    except FileNotFoundError as error:
        raise StopError(f"{corpus} is missing; give `gristmill run` again to make it") from error
    except (pa.ArrowInvalid, OSError) as error:
        raise DamagedError(
            f"{corpus} is not readable as Parquet ({error}); `gristmill verify` names what to make "
            "again"
        ) from error


def _leaf(meta: Any, name: str, likely: int) -> int:
    """Give the number of a leaf column: nested columns before it shift it from its place."""
    for leaf in (likely, *range(meta.num_columns)):
        if leaf < meta.num_columns and meta.column(leaf).path_in_schema == name:
            return leaf
    raise StopError(f"column {name!r} is nested; plain text is needed")


def _ids(corpus: Path, column: pa.Array) -> np.ndarray:
    """Ids as uint8[rows, 16]."""
    if column.type != pa.binary(16) or column.null_count:
        raise StopError(f"{corpus}: ids are {column.type}, not 16 bytes each without nulls")
    raw = np.frombuffer(column.buffers()[1], np.uint8)
    return raw[column.offset * 16 : (column.offset + len(column)) * 16].reshape(-1, 16)


def save_array(path: Path, array: np.ndarray) -> dict[str, int]:
    """Write a .npy (header and bytes depend on the array alone); its entry in the index."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    raw = buffer.getbuffer()
    with path.open("wb") as file:
        file.write(raw)
        _sync(file)
    return {"size": len(raw), "crc32": zlib.crc32(raw)}


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
