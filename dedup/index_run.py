"""One immutable run of an index: the documents of a crawl, sorted by band key.

    documents.bin  DOCUMENT[n]         what the representative order needs, ids, shards
    keys.bin       uint64[n * bands]   band keys, ascending
    owners.bin     uint32[n * bands]   the document of each
    nexts.bin      uint64[n * bands]   its key in the band after, by which hot groups split
    sets.bin       uint64[...]         shingle sets, document after document
    ends.bin       int64[n + 1]        where each begins and ends
    crcs.bin       uint32[pages]       CRC-32 of each 4 KiB of the files above, in their order
    run.json       settings, shards, sizes and digests of the files; written last

640 bytes a document and 8 a shingle. All are mapped, so a query touches a few pages of each and an
index of any size opens at once; the pages that it touches are checked. A run is named after its
contents: two builds of one crawl agree, and a run.json that was changed shows.
"""

from __future__ import annotations

import json
import mmap
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..documents.errors import DamagedError, FormatError
from ..documents.fingerprint import digest, file_digest
from ..documents.identity import shard_hash
from . import _kernels_pairs as kernels
from .rank import Nodes

FORMAT = 2
PAGE = 4096  # bytes under one CRC-32: what a query reads at least
DOCUMENT = np.dtype(
    [
        ("high", "<u8"), ("low", "<u8"), ("shard", "<u4"), ("size", "<u4"), ("quality", "<i4"),
        ("priority", "<u2"), ("row", "<u4"),
    ]
)  # fmt: skip
FILES = {
    "documents": DOCUMENT,
    "keys": np.dtype("<u8"),
    "owners": np.dtype("<u4"),
    "nexts": np.dtype("<u8"),
    "sets": np.dtype("<u8"),
    "ends": np.dtype("<i8"),
}
NEAR = 256  # keys around a guess that are read with it: half a page


@dataclass(frozen=True)
class IndexRun:
    """An open run; arrays are mapped at first use."""

    folder: Path
    about: Mapping[str, Any]

    @staticmethod
    def open(folder: Path) -> IndexRun:
        """Check that the run is whole by sizes; DamagedError names it and what is wrong."""
        mend = "give `gristmill dedup index` its crawl again"
        try:
            about = json.loads((folder / "run.json").read_bytes())
        except (OSError, ValueError) as error:
            msg = f"run {folder.name} of the index has no run.json that can be read; {mend}"
            raise DamagedError(msg) from error
        if about.get("format") != FORMAT:
            msg = f"{folder}/run.json: format {about.get('format')}, this version reads {FORMAT}"
            raise FormatError(msg)
        if digest(about)[:16] != folder.name:
            msg = f"run {folder.name} of the index: its run.json is of other contents; {mend}"
            raise DamagedError(msg)
        for name, (size, _) in about["files"].items():
            path = folder / f"{name}.bin"
            found = path.stat().st_size if path.is_file() else -1
            if found != size:
                what = "is missing" if found < 0 else f"has {found} bytes, expected {size}"
                msg = f"run {folder.name} of the index: {name}.bin {what}; {mend}"
                raise DamagedError(msg)
        return IndexRun(folder, about)

    def check(self, *names: str) -> None:
        """Hash some files again, or all; DamagedError names what differs."""
        for name in names or self.about["files"]:
            if file_digest(self.folder / f"{name}.bin") != self.about["files"][name][1]:
                raise self._damaged(name)

    def _damaged(self, name: str) -> DamagedError:
        return DamagedError(
            f"run {self.folder.name} of the index: {name}.bin is not what run.json says; "
            "give `gristmill dedup index` its crawl again"
        )

    def sound(self, name: str, starts: np.ndarray, ends: np.ndarray | None = None) -> None:
        """Read the pages of these stretches of an array (or places), all at once, and check them.

        A page is checked once for as long as the run is open. DamagedError names the file.
        """
        ends = starts + 1 if ends is None else ends
        starts, ends = starts[starts < ends], ends[starts < ends]
        values = getattr(self, name)
        ahead(values, starts, ends)
        first = starts * values.itemsize // PAGE
        last = (ends * values.itemsize - 1) // PAGE
        pages = {p for a, b in zip(first.tolist(), last.tolist(), strict=True)
                 for p in range(a, b + 1)}  # fmt: skip
        crcs, checked = self._crcs[name]
        raw = values.view(np.uint8)
        for page in sorted(pages - checked):
            if zlib.crc32(raw[page * PAGE : (page + 1) * PAGE]) != crcs[page]:
                raise self._damaged(name)
            checked.add(page)

    @cached_property
    def _crcs(self) -> dict[str, tuple[np.ndarray, set[int]]]:
        """Of each file the CRCs of its pages, and the pages that were checked."""
        crcs = np.fromfile(self.folder / "crcs.bin", "<u4")
        counts = [-(-self.about["files"][name][0] // PAGE) for name in FILES]
        parts = np.split(crcs, np.cumsum(counts)[:-1])
        return {name: (part, set()) for name, part in zip(FILES, parts, strict=True)}

    @property
    def count(self) -> int:
        """Documents."""
        return int(self.about["documents"])

    @property
    def shards(self) -> Sequence[str]:
        """Names of its shards."""
        return list(self.about["shards"])

    def _map(self, name: str) -> np.ndarray:
        path = self.folder / f"{name}.bin"
        if not path.stat().st_size:
            return np.empty(0, FILES[name])
        return np.memmap(path, FILES[name], "r")

    @cached_property
    def documents(self) -> np.ndarray:
        """DOCUMENT[n]."""
        return self._map("documents")

    @cached_property
    def keys(self) -> np.ndarray:
        """uint64[n * bands], ascending."""
        return self._map("keys")

    @cached_property
    def owners(self) -> np.ndarray:
        """uint32[n * bands]."""
        return self._map("owners")

    @cached_property
    def nexts(self) -> np.ndarray:
        """uint64[n * bands]."""
        return self._map("nexts")

    @cached_property
    def sets(self) -> np.ndarray:
        """uint64 shingles."""
        return self._map("sets")

    @cached_property
    def ends(self) -> np.ndarray:
        """int64[n + 1]."""
        return self._map("ends")

    def set_of(self, document: int) -> np.ndarray:
        """The shingles of a document, by ordinal."""
        return self.sets[int(self.ends[document]) : int(self.ends[document + 1])]

    def sound_sets(self, documents: np.ndarray) -> None:
        """`sound` for what `set_of` reads of documents int64[n]."""
        self.sound("ends", documents, documents + 2)
        self.sound("sets", self.ends[documents], self.ends[documents + 1])

    @cached_property
    def shard_hashes(self) -> np.ndarray:
        """uint64 of each shard."""
        return np.array([shard_hash(s) for s in self.shards], np.uint64)

    def places(self, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where each of some keys stands in `keys`: int64, from and to.

        Keys are evenly spread, so a place is guessed from the value, and once more from the
        difference found there: of 320 million that misses by some hundred. Pages that are not in
        memory are read at once for all keys, twice, where a binary search waits for 20 a key.
        """
        size, scale = len(self.keys), len(self.keys) / 2.0**64
        low, high = np.zeros((2, len(wanted)), np.int64)
        if size:
            around = np.minimum((wanted * scale).astype(np.int64), size - 1)
            ahead(self.keys, around)
            off = (wanted.astype(np.float64) - self.keys[around]) * scale
            around = np.clip(around + off.astype(np.int64), 0, size - 1)
            self.sound("keys", np.maximum(around - NEAR, 0), np.minimum(around + NEAR, size))
            kernels.find_keys(self.keys, wanted, around, low, high)
            self._found(wanted, low, high)
        return low, high

    def _found(self, wanted: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        """DamagedError unless the keys on both sides of both ends are sound, and say the same.

        That is enough: they ascend, so whatever led there, the keys are nowhere else.
        """
        keys, size = self.keys, len(self.keys)
        at = np.concatenate([low, high])
        self.sound("keys", np.maximum(at - 1, 0), np.minimum(at + 1, size))
        good = (low == 0) | (keys[np.maximum(low - 1, 0)] < wanted)
        good &= (high == size) | (keys[np.minimum(high, size - 1)] > wanted)
        inside = keys[np.minimum(low, size - 1)] == wanted
        good &= (low == high) | (inside & (keys[np.maximum(high - 1, 0)] == wanted))
        if not good.all():
            raise self._damaged("keys")

    def ids(self) -> pa.FixedSizeBinaryArray:
        """Of all documents, in their order."""
        return self.nodes(np.arange(self.count)).ids()

    def nodes(self, which: np.ndarray) -> Nodes:
        """Documents by ordinal; `row` is the ordinal, by which the index finds them again."""
        rows = self.documents[which]
        return Nodes(
            shard=self.shard_hashes[rows["shard"]],
            high=rows["high"].astype(np.uint64),
            low=rows["low"].astype(np.uint64),
            row=np.asarray(which, np.uint32),
            priority=rows["priority"].astype(np.uint16),
            quality=rows["quality"].astype(np.int32),
            size=rows["size"].astype(np.uint32),
        )


def ahead(values: np.ndarray, starts: np.ndarray, ends: np.ndarray | None = None) -> None:
    """Have the pages of a mapped array read, all at once, that hold these stretches (or places)."""
    whole = getattr(values, "_mmap", None)  # an empty file is not mapped
    if whole is None or not hasattr(mmap, "MADV_WILLNEED"):
        return
    page, width = mmap.PAGESIZE, values.itemsize
    first = starts * width // page
    last = first if ends is None else np.maximum(ends * width - 1, starts * width) // page
    for begin, end in zip(first.tolist(), last.tolist(), strict=True):
        whole.madvise(mmap.MADV_WILLNEED, begin * page, (end - begin + 1) * page)


def shards_of(folder: Path) -> set[str]:
    """The shards of a run of which nothing but run.json need be there; none without it."""
    try:
        return set(json.loads((folder / "run.json").read_bytes())["shards"])
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def joined_sets(pieces: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Sets one after the other: (values, offsets)."""
    offsets = np.zeros(len(pieces) + 1, np.int64)
    np.cumsum([len(p) for p in pieces], out=offsets[1:])
    return np.concatenate(pieces) if pieces else np.empty(0, np.uint64), offsets
