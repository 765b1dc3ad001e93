"""Writing a run of an index: of new documents, or of a run without some of its own."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Mapping
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..documents.errors import StopError
from ..documents.fingerprint import canonical, digest, file_digest
from .index_run import DOCUMENT, FILES, FORMAT, PAGE, IndexRun, joined_sets
from .rank import Nodes

BAND = np.dtype([("key", "<u8"), ("next", "<u8"), ("owner", "<u4")])  # a row before it is sorted
SORTED = 256 << 20  # bytes that sorting a bucket may take


class RunWriter:
    """Takes documents in any number of pieces; `finish` sorts and names the run."""

    def __init__(self, folder: Path, settings: Mapping[str, Any], bands: int) -> None:
        self.folder = folder
        self.settings = dict(settings)
        self.bands = bands
        self.shards: list[str] = []
        self.count = 0
        self._end = 0
        folder.mkdir(parents=True)
        self._open = {
            name: (folder / f"{name}.bin").open("wb") for name in ("documents", "sets", "ends")
        }
        (folder / "bands").mkdir()  # BAND[...] by the first byte of their keys, so 256 buckets
        self._open["ends"].write(np.zeros(1, "<i8").tobytes())

    def add(self, shard: str, found: Nodes, keys: np.ndarray, sets: tuple[Any, Any]) -> None:
        """Documents of one shard: keys uint64[n, bands], sets as (values, offsets int64[n + 1])."""
        if not self.shards or self.shards[-1] != shard:
            self.shards.append(shard)
        values, offsets = sets
        rows = np.empty(len(found.high), DOCUMENT)
        rows["shard"] = len(self.shards) - 1
        for name in ("high", "low", "size", "quality", "priority", "row"):
            rows[name] = getattr(found, name)
        self._open["documents"].write(rows.tobytes())
        self._deal(keys)
        part = values[offsets[0] : offsets[-1]]
        self._open["sets"].write(np.ascontiguousarray(part, "<u8").tobytes())
        ends = offsets[1:] - offsets[0] + self._end
        self._open["ends"].write(ends.astype("<i8").tobytes())
        self._end += int(offsets[-1] - offsets[0])
        self.count += len(rows)

    def finish(self) -> str:
        """Sort, describe and return the name of the run."""
        for file in self._open.values():
            file.close()
        self._sort()
        (self.folder / "bands").rmdir()
        paths = {name: self.folder / f"{name}.bin" for name in (*FILES, "crcs")}
        with paths["crcs"].open("wb") as file:
            for name in FILES:
                file.write(_page_crcs(paths[name]).tobytes())
        files = {name: [p.stat().st_size, file_digest(p)] for name, p in paths.items()}
        body = {
            "format": FORMAT,
            "settings": self.settings,
            "bands": self.bands,
            "documents": self.count,
            "shards": self.shards,
            "files": files,
        }
        (self.folder / "run.json").write_bytes(canonical(body))
        return digest(body)[:16]

    def abandon(self) -> None:
        """Leave nothing of it."""
        for file in self._open.values():
            file.close()
        discard(self.folder)

    def _deal(self, keys: np.ndarray) -> None:
        """Append the band rows of documents to their buckets; each is written and read once."""
        rows = np.empty(keys.size, BAND)
        rows["key"], rows["next"] = keys.ravel(), np.roll(keys, -1, axis=1).ravel()
        rows["owner"] = np.repeat(np.arange(self.count, self.count + len(keys)), self.bands)
        first = (rows["key"] >> np.uint64(56)).astype(np.uint8)
        rows = rows[np.argsort(first, kind="stable")]
        ends = np.cumsum(np.bincount(first, minlength=256)).tolist()
        for bucket, (start, end) in enumerate(pairwise([0, *ends])):
            if end > start:
                with (self.folder / "bands" / f"{bucket:02x}").open("ab") as file:
                    file.write(rows[start:end].tobytes())

    def _sort(self) -> None:
        with ExitStack() as stack:
            files = {
                name: stack.enter_context((self.folder / f"{name}.bin").open("wb"))
                for name in ("keys", "nexts", "owners")
            }
            for path in sorted((self.folder / "bands").iterdir()):
                rows = np.memmap(path, BAND, "r")
                parts = -(-rows.nbytes * 3 // SORTED)  # 1 for up to 35 million documents
                begin = int(path.name, 16) << 56
                edges = [begin + (p << 56) // parts for p in range(parts + 1)]
                for low, high in pairwise(edges):
                    inside = (rows["key"] >= np.uint64(low)) & (rows["key"] <= np.uint64(high - 1))
                    some = rows[inside]
                    order = np.argsort(some["key"], kind="stable")  # owners ascend already
                    for name, file in files.items():
                        file.write(some[name.removesuffix("s")][order].tobytes())
                path.unlink()


def _page_crcs(path: Path) -> np.ndarray:
    """CRC-32 of each page of a file, uint32[pages]."""
    found = []
    with path.open("rb") as file:
        while chunk := memoryview(file.read(PAGE << 8)):
            found += [zlib.crc32(chunk[at : at + PAGE]) for at in range(0, len(chunk), PAGE)]
    return np.array(found, "<u4")


def placed(writer: RunWriter) -> str:
    """Finish a run and move it to where its name says; if it is there and sound, that one stays."""
    name = writer.finish()
    target = writer.folder.parent / name
    if target.exists():
        try:
            IndexRun.open(target).check()
        except StopError:
            discard(target)
        else:
            discard(writer.folder)
            return name
    writer.folder.rename(target)
    return name


def without(run: IndexRun, keep: np.ndarray, writer: RunWriter) -> str:
    """A run again, without some documents."""
    order = np.argsort(run.owners, kind="stable")  # documents together, their keys ascending
    keys, nexts = (values[order].reshape(-1, writer.bands) for values in (run.keys, run.nexts))
    keys = _cycle(np.asarray(keys), np.asarray(nexts))
    for number, shard in enumerate(run.shards):
        mine = np.flatnonzero(keep & (run.documents["shard"] == number))
        if not len(mine):
            continue
        found = run.nodes(mine)._replace(row=run.documents["row"][mine])
        writer.add(shard, found, keys[mine], joined_sets([run.set_of(d) for d in mine.tolist()]))
    return placed(writer)


def _cycle(keys: np.ndarray, nexts: np.ndarray) -> np.ndarray:
    """Keys of each document in an order of bands: each is followed by its next, from the least.

    Which band a key is of is not stored, and only the cyclic order bears on anything.
    """
    out = np.empty_like(keys)
    rows = np.arange(len(keys))
    at = np.zeros(len(keys), np.int64)
    for band in range(keys.shape[1]):
        out[:, band] = keys[rows, at]
        at = np.argmax(keys == nexts[rows, at][:, None], axis=1)
    return out


def discard(folder: Path) -> None:
    """Remove a run, or what a killed build left."""
    shutil.rmtree(folder, ignore_errors=True)
