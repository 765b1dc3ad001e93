"""Tokenise a shard of the corpus once: flat ids, document ends, document ids and an index.

`encode_shard` streams: a batch of rows (32 MiB of text by the row group's mean) is read, encoded in
parts of 4 MiB and written; control ids are placed here, by id, never by text. Memory follows the
longest document, not the shard. Files carry no times or paths, so two writers give the same bytes.
Formats stand in `shards`, which reads them without Arrow.
"""

from __future__ import annotations

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
from .encoder import Encoder, Part
from .shards import EXTENT, FORMAT

BATCH = 32 << 20  # bytes of text that one batch of rows aims at
ROWS = 4096  # rows of a batch at most: a mean says little when lengths differ


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenAccount:
    """What a shard of the corpus became. text_tokens + special_tokens is the length of `.bin`."""

    documents: int
    text_tokens: int
    special_tokens: int  # ends of documents, and begins where the tokenizer has them
    bytes: int  # UTF-8 bytes of text


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
    *,
    bin_path: Path,
    ends_path: Path,
    ids_path: Path,
    index_path: Path,
) -> TokenAccount:
    """Write the token shard of a Parquet file with columns `id` (16 bytes) and `text`.

    Documents keep their order; an empty text is its end token alone. Every file is written under
    a name of its own and renamed, the index last. StopError: no such file or columns. DamagedError:
    not readable as Parquet.
    """
    part = f".{os.getpid()}.part"
    paths = (bin_path, ends_path, ids_path, index_path)
    parts = [p.with_name(p.name + part) for p in paths]
    try:
        account = _write(corpus, encoder, *parts)
        for written, path in zip(parts, paths, strict=True):
            written.replace(path)
    finally:
        for written in parts:
            written.unlink(missing_ok=True)
    return account


def _write(
    corpus: Path, encoder: Encoder, bin_: Path, ends_: Path, ids_: Path, index_: Path
) -> TokenAccount:
    ends, names = [np.zeros(0, np.int64)], [np.zeros((0, 16), np.uint8)]
    text_bytes = text_tokens = special = 0
    with bin_.open("wb") as file:
        out = Extents(file)
        for batch in _batches(corpus):
            names.append(_ids(corpus, batch.column("id")))
            offsets = text_view(batch.column("text")).offsets
            text_bytes += int(offsets[-1] - offsets[0])
            for part in encoder.parts(batch.column("text")):
                flat, flat_ends = _place(corpus, part, encoder)
                ends.append(flat_ends + out.size // encoder.dtype.itemsize)
                text_tokens += len(part.ids)
                special += len(flat) - len(part.ids)
                out.write(flat.data.cast("B"))
        out.close_extent()
        _sync(file)
    end, name = np.concatenate(ends).astype("<u8"), np.concatenate(names)
    documents, tokens = len(name), out.size // encoder.dtype.itemsize
    per_document = 1 if encoder.bos_id is None else 2
    if len(end) != documents or special != per_document * documents:
        raise ContractError(
            f"{corpus}: {documents:,} documents, {len(end):,} ends, {special:,} control tokens"
        )
    index = {
        "format": FORMAT,
        "dtype": encoder.dtype.name,
        "documents": documents,
        "tokens": tokens,
        "text_tokens": text_tokens,
        "special_tokens": special,
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
        "ends": save_array(ends_, end),
        "ids": save_array(ids_, name),
    }
    with index_.open("wb") as file:
        file.write(canonical(index) + b"\n")
        _sync(file)
    return TokenAccount(
        documents=documents, text_tokens=text_tokens, special_tokens=special, bytes=text_bytes
    )


def _place(corpus: Path, part: Part, encoder: Encoder) -> tuple[np.ndarray, np.ndarray]:
    """Put the control ids among a part's: the flat ids, and where in them documents end."""
    if (part.ids == encoder.eos_id).any():
        raise ContractError(f"{corpus}: text gave the id {encoder.eos_id} of the end of a document")
    wanted = part.ends if encoder.bos_id is None else np.ones_like(part.ends)
    marks, ends = part.marks[wanted], part.ends[wanted]
    values = np.where(ends, encoder.eos_id, encoder.bos_id or 0).astype(encoder.dtype)
    # Marks stand in order of rows and np.insert keeps that order where several share a place.
    flat = np.insert(part.ids.astype(encoder.dtype), marks, values)
    return flat, (marks + np.arange(1, len(marks) + 1))[ends]


def _batches(corpus: Path) -> Iterator[pa.RecordBatch]:
    """Batches of `id` and `text`, sized by each row group's mean bytes a row."""
    try:
        with pq.ParquetFile(corpus) as file:
            names = set(file.schema_arrow.names)
            if missing := {"id", "text"} - names:
                raise StopError(f"{corpus} has no column {sorted(missing)}; it has {sorted(names)}")
            text_leaf = file.schema_arrow.names.index("text")
            for group in range(file.num_row_groups):
                meta = file.metadata.row_group(group)
                leaf = _leaf(meta, "text", text_leaf)
                mean = meta.column(leaf).total_uncompressed_size // max(meta.num_rows, 1)
                rows = max(1, min(ROWS, BATCH // max(mean, 1)))
                yield from file.iter_batches(rows, [group], ["id", "text"], use_threads=False)
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
