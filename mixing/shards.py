"""Token shards as a trainer reads them: numpy and the standard library alone.

A shard is five files beside each other, written by `tokens.encode_shard`:

    <shard>.bin         token ids, flat, little-endian uint16 or uint32; each document ends in eos
    <shard>.ends.npy    uint64[documents]: position after each document's last token, eos included
    <shard>.ids.npy     uint8[documents, 16]: document ids, in the same order
    <shard>.unlearnt.npy  uint64[k, 2]: positions [start, stop) of tokens that are no targets,
                        ascending and apart: what others say in conversations (`turns`)
    <shard>.index.json  format, dtype, counts, tokenizer, CRC-32 per extent of 4 MiB, digests

The `.bin` is byte for byte what Megatron calls `.bin` (its `.idx` holds lengths: the differences of
`ends`) and what datatrove calls `.ds` (its `.ds.index` is `ends` without the 128 bytes of header).
Reading is a memory map: opening costs the index and `ends` (8 bytes a document), tokens cost pages.
Each extent is checked against its CRC when it is first touched, and then no more.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..documents.errors import DamagedError, FormatError, StopError

FORMAT = 2
EXTENT = 4 << 20  # bytes of `.bin` under one CRC-32
Fetch = Callable[[int, int], bytes]
DTYPES: dict[str, np.dtype] = {"uint16": np.dtype("<u2"), "uint32": np.dtype("<u4")}


@dataclass(frozen=True, kw_only=True)
class ShardPaths:
    """The five files of the shard with prefix `tokens/<shard>`."""

    bin: Path
    ends: Path
    ids: Path
    unlearnt: Path
    index: Path

    @classmethod
    def of(cls, prefix: Path) -> ShardPaths:
        """Paths for a prefix; dots in the shard's name stay."""
        name = prefix.name
        return cls(
            bin=prefix.with_name(f"{name}.bin"),
            ends=prefix.with_name(f"{name}.ends.npy"),
            ids=prefix.with_name(f"{name}.ids.npy"),
            unlearnt=prefix.with_name(f"{name}.unlearnt.npy"),
            index=prefix.with_name(f"{name}.index.json"),
        )


@dataclass(frozen=True, kw_only=True)
class TokenShard:
    """One open shard. `ends` is checked and in memory; tokens and ids stay on disk."""

    paths: ShardPaths
    index: dict[str, Any]
    dtype: np.dtype
    documents: int
    token_count: int
    ends: np.ndarray  # uint64[documents]
    _data: np.ndarray = field(repr=False)  # dtype[tokens], mapped
    _checked: bytearray = field(repr=False)  # by extent
    _fetch: Fetch | None = field(repr=False, default=None)

    @classmethod
    def open(cls, prefix: Path, fetch: Fetch | None = None) -> TokenShard:
        """Open `<prefix>.bin` and its companions.

        `fetch(low, high)` gives bytes of the true `.bin` where this one is a cache: an extent that
        fails its CRC is fetched, checked and written once, and only then an error.

        StopError: a file is missing. FormatError: an unknown format number. DamagedError: sizes,
        `ends` or counts are not what the index says.
        """
        paths = ShardPaths.of(prefix)
        index = _read_index(paths.index)
        dtype = DTYPES[index["dtype"]]
        size = _size(paths.bin)
        if size != index["size"] or size != index["tokens"] * dtype.itemsize:
            raise DamagedError(
                f"{paths.bin} has {size:,} bytes, its index says {index['size']:,} "
                f"({index['tokens']:,} tokens of {dtype.itemsize}); `gristmill verify` names what "
                "to make again"
            )
        ends = _load(paths.ends, index["ends"], (index["documents"],), np.uint64)
        last = int(ends[-1]) if len(ends) else 0
        if last != index["tokens"] or (np.diff(ends.astype(np.int64), prepend=0) < 0).any():
            raise DamagedError(f"{paths.ends}: ends at {last:,} of {index['tokens']:,} tokens")
        # An empty file cannot be mapped.
        # A plain view: slices of the subclass cost more.
        data = np.asarray(np.memmap(paths.bin, dtype, "r")) if size else np.empty(0, dtype)
        return cls(
            paths=paths,
            index=index,
            dtype=dtype,
            documents=index["documents"],
            token_count=index["tokens"],
            ends=ends,
            _data=data,
            _checked=bytearray(len(index["crc32"])),
            _fetch=fetch,
        )

    @property
    def digest(self) -> str:
        """BLAKE2b-128 of `.bin`, as the index states it: what a plan is compiled for."""
        return str(self.index["digest"])

    @cached_property
    def ids(self) -> np.ndarray:
        """Document ids, uint8[documents, 16]; read and checked at the first use."""
        return _load(self.paths.ids, self.index["ids"], (self.documents, 16), np.uint8)

    @cached_property
    def unlearnt(self) -> np.ndarray:
        """Stretches of tokens that are no targets, uint64[k, 2]; checked when first used."""
        entry = self.index["unlearnt"]
        spans = _load(self.paths.unlearnt, entry, (entry["spans"], 2), np.uint64)
        flat = spans.astype(np.int64).reshape(-1)
        if len(flat) and (flat[-1] > self.token_count or (np.diff(flat) <= 0).any()):
            raise DamagedError(f"{self.paths.unlearnt}: stretches are not ascending and apart")
        return spans

    def span(self, document: int) -> tuple[int, int]:
        """Token positions [start, end) of a document, control tokens included."""
        if not 0 <= document < self.documents:
            raise IndexError(f"document {document} of {self.documents} in {self.paths.bin}")
        return self.ends.item(document - 1) if document else 0, self.ends.item(document)

    def part(
        self, document: int, tokens: int, start: int, end: int, *, verify: bool = True
    ) -> np.ndarray:
        """Tokens [start, end) of a document that should have `tokens` of them, as `tokens` does."""
        ends = self.ends
        begin = ends.item(document - 1) if document else 0
        if document >= self.documents or ends.item(document) - begin != tokens:
            low, high = self.span(document) if document < self.documents else (0, 0)
            raise DamagedError(
                f"{self.paths.ends}: document {document} has {high - low} tokens, the plan says "
                f"{tokens}; tokenise the shard again, or compile the plan again"
            )
        low, high = begin + start, begin + end
        width = self.dtype.itemsize
        first = low * width // EXTENT
        if verify and not (high * width <= (first + 1) * EXTENT and self._checked[first]):
            return self.tokens(low, high)
        return self._data[low:high]

    def tokens(self, start: int, end: int, *, verify: bool = True) -> np.ndarray:
        """Return the tokens of [start, end), a read-only view of the map.

        DamagedError names file, extent and position when bytes differ from the index's CRC.
        """
        if not 0 <= start <= end <= self.token_count:
            raise IndexError(f"tokens [{start}, {end}) of {self.token_count:,} in {self.paths.bin}")
        if verify and end > start:
            width = self.dtype.itemsize
            first, last = start * width // EXTENT, (end * width - 1) // EXTENT
            for extent in range(first, last + 1):
                if not self._checked[extent]:
                    self._check(extent)
        return self._data[start:end]

    def _check(self, extent: int) -> None:
        width = self.dtype.itemsize
        low = extent * EXTENT
        high = min(low + EXTENT, self.index["size"])
        expected = self.index["crc32"][extent]
        found = zlib.crc32(self._data[low // width : high // width].data)
        if found != expected and self._fetch is not None:
            data = self._fetch(low, high)
            found = zlib.crc32(data)
            if found == expected:
                with self.paths.bin.open("r+b") as file:
                    file.seek(low)
                    file.write(data)  # the map shows it
        if found != expected:
            raise DamagedError(
                f"{self.paths.bin}: extent {extent} (bytes {low:,} to {high:,}, tokens from "
                f"{low // width:,}) has CRC-32 {found:08x}, its index says {expected:08x}; "
                "`gristmill verify` names what to make again"
            )
        self._checked[extent] = True

    def verify(self) -> None:
        """Hash the whole `.bin`; DamagedError names the extent that is wrong, or the file."""
        hasher = hashlib.blake2b(digest_size=16)
        step = EXTENT // self.dtype.itemsize
        for extent in range(len(self._checked)):
            self._check(extent)
            hasher.update(self._data[extent * step : (extent + 1) * step].data)
        if hasher.hexdigest() != self.index["digest"]:
            raise DamagedError(f"{self.paths.bin}: its BLAKE2b is not what its index says")
        _ = self.ids, self.unlearnt


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError as error:
        raise StopError(f"{path} is missing; give `gristmill run` again to make it") from error


def _read_index(path: Path) -> dict[str, Any]:
    _size(path)
    try:
        index = json.loads(path.read_bytes())
        found = index["format"]
    except (ValueError, TypeError, KeyError) as error:
        raise DamagedError(f"{path} is not the index of a token shard: {error!r}") from error
    if found != FORMAT:
        raise FormatError(f"{path} has format {found}, this version reads {FORMAT}")
    return index


def _load(path: Path, entry: dict[str, Any], shape: tuple[int, ...], kind: type) -> np.ndarray:
    """Read a small .npy whole, check its CRC-32, shape and type; read-only."""
    _size(path)
    raw = path.read_bytes()
    if len(raw) != entry["size"] or zlib.crc32(raw) != entry["crc32"]:
        raise DamagedError(
            f"{path}: {len(raw):,} bytes with CRC-32 {zlib.crc32(raw):08x}, the index says "
            f"{entry['size']:,} with {entry['crc32']:08x}; `gristmill verify` names what to make "
            "again"
        )
    array: np.ndarray = np.load(path, allow_pickle=False)
    if array.shape != shape or array.dtype != np.dtype(kind).newbyteorder("<"):
        raise DamagedError(f"{path}: {array.dtype}{array.shape}, the index says {shape}")
    array.flags.writeable = False
    return array
