"""The four flat formats, each as its own project reads it; numpy and the standard library alone.

megatron  tokens.bin flat tokens; tokens.idx header, int32 lengths, int64 byte offsets of the
          sequences (a piece of a document each), int64 first sequence of each document (a
          window each). `IndexedDataset`, megatron-core 0.16
ds        tokens.ds flat tokens, tokens.ds.index uint64 ends of pieces, tokens.ds.metadata.
          datatrove 0.10
npy       tokens.npy raw tokens without a header, in spite of the name. OLMo-core 3
mds       shard.<n>.mds of at most 64 MiB, index.json. mosaicml-streaming 0.13, version 2

Where a plan has tokens of conversations that are no targets, a byte a token says which are: ds
tokens.ds.loss (`save_loss_metadata`), npy labels_mask.npy (`label_mask_paths`), mds a column
`loss_mask`. megatron has no place for it.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

import numpy as np

MEGATRON_DTYPES: Final = {2: 8, 4: 4}  # bytes a token -> code of uint16, of int32
MDS_SHARD: Final = 1 << 26  # bytes, as mosaicml-streaming has it; its offsets are 32 bits


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """Windows n of a stage, in the plan's order."""

    positions: np.ndarray  # int64[n]
    ids: np.ndarray  # dtype[n, S]
    segments: list[np.ndarray]  # n x int64[segments]: lengths, padding a segment of its own
    mask: np.ndarray  # bool[n, S]: is there a target
    provenance: np.ndarray  # int64[n, 9]: `feed.PROVENANCE`


def targets(mask: np.ndarray) -> np.ndarray:
    """Which tokens are targets, of which labels are there: uint8[n, S] of bool[n, S].

    A label stands one place before its token; the first token of a sequence has none.
    """
    out = np.zeros(mask.shape, np.uint8)
    out[:, 1:] = mask[:, :-1]
    return out


class Writer(Protocol):
    """Takes the blocks of a stage in order; `windows` counts them."""

    windows: int

    def __init__(self, folder: Path, dtype: np.dtype, length: int, masked: bool) -> None:
        """`masked`: write which tokens are targets, too."""

    def add(self, block: Block) -> None:
        """Take windows."""

    def close(self) -> None:
        """Finish the files."""


class _Flat:
    """Tokens one after the other in one file, and the lengths of their segments."""

    name: str
    mask_name: str = ""

    def __init__(self, folder: Path, dtype: np.dtype, length: int, masked: bool) -> None:
        self.folder, self.dtype, self.length = folder, dtype, length
        self.windows = 0
        self.segments: list[np.ndarray] = []
        self._file: BinaryIO = (folder / self.name).open("wb")
        self._mask: BinaryIO | None = (folder / self.mask_name).open("wb") if masked else None

    def add(self, block: Block) -> None:
        """Append the windows' tokens."""
        self._file.write(block.ids.tobytes())
        if self._mask is not None:
            self._mask.write(targets(block.mask).tobytes())
        self.segments += block.segments
        self.windows += len(block.ids)

    def close(self) -> None:
        """Finish the file of tokens."""
        self._file.close()
        if self._mask is not None:
            self._mask.close()

    def lengths(self) -> np.ndarray:
        """Lengths of all segments, int64."""
        return np.concatenate([np.zeros(0, np.int64), *self.segments])


class NpyWriter(_Flat):
    """OLMo-core's raw tokens."""

    name = "tokens.npy"
    mask_name = "labels_mask.npy"


class MegatronWriter(_Flat):
    """Megatron-core's `IndexedDataset`."""

    name = "tokens.bin"

    def close(self) -> None:
        """Write the index beside the tokens."""
        super().close()
        lengths = self.lengths()
        each = np.array([0, *(len(s) for s in self.segments)], np.int64)
        with (self.folder / "tokens.idx").open("wb") as file:
            code = MEGATRON_DTYPES[self.dtype.itemsize]
            file.write(b"MMIDIDX\x00\x00" + struct.pack("<QB", 1, code))
            file.write(struct.pack("<QQ", len(lengths), len(each)))
            file.write(lengths.astype("<i4").tobytes())
            file.write(
                ((np.cumsum(lengths) - lengths) * self.dtype.itemsize).astype("<i8").tobytes()
            )
            file.write(np.cumsum(each).astype("<i8").tobytes())


class DatatroveWriter(_Flat):
    """datatrove's `.ds`."""

    name = "tokens.ds"
    mask_name = "tokens.ds.loss"

    def close(self) -> None:
        """Write ends and metadata beside the tokens."""
        super().close()
        (self.folder / "tokens.ds.index").write_bytes(
            np.cumsum(self.lengths()).astype("<u8").tobytes()
        )
        tokens = self.windows * self.length
        text = f"gristmill|{self.dtype.itemsize}\n{tokens}\n{tokens / 1e9:.4f} GT"
        (self.folder / "tokens.ds.metadata").write_text(text, encoding="utf-8")


class MdsWriter:
    """mosaicml-streaming's shards: columns `input_ids`, `position`, and `loss_mask` if masked."""

    def __init__(self, folder: Path, dtype: np.dtype, length: int, masked: bool) -> None:
        self.folder = folder
        self.masked = masked
        ids, place = (f"ndarray:{dtype.name}:{length}", dtype.itemsize * length), ("int", 8)
        columns = {"input_ids": ids, "position": place}
        if masked:
            columns["loss_mask"] = (f"ndarray:uint8:{length}", length)
        columns = dict(sorted(columns.items()))  # as its own writer has them
        self.sample = sum(size for _, size in columns.values())  # bytes, the same for all
        self.config: dict[str, Any] = {
            "column_encodings": [encoding for encoding, _ in columns.values()],
            "column_names": list(columns),
            "column_sizes": [size for _, size in columns.values()],
            "compression": None,
            "format": "mds",
            "hashes": [],
            "size_limit": MDS_SHARD,
        }
        self.shards: list[dict[str, Any]] = []
        self.samples: list[bytes] = []
        self.windows = 0

    def add(self, block: Block) -> None:
        """Write a shard whenever one is full."""
        most = max(1, MDS_SHARD // (self.sample + 4))
        masks = targets(block.mask)
        for row, ids in enumerate(block.ids):
            mask = masks[row].tobytes() if self.masked else b""
            place = struct.pack("<q", int(block.positions[row]))
            self.samples.append(ids.tobytes() + mask + place)
            self.windows += 1
            if len(self.samples) >= most:
                self._flush()

    def close(self) -> None:
        """Write the last shard and the index."""
        if self.samples:
            self._flush()
        text = json.dumps({"shards": self.shards, "version": 2}, sort_keys=True)
        (self.folder / "index.json").write_text(text, encoding="utf-8")

    def _flush(self) -> None:
        config = json.dumps(self.config, sort_keys=True).encode()
        count = len(self.samples)
        begin = 4 + 4 * (count + 1) + len(config)
        offsets = (begin + np.arange(count + 1, dtype=np.int64) * self.sample).astype("<u4")
        name = f"shard.{len(self.shards):05}.mds"
        data = struct.pack("<I", count) + offsets.tobytes() + config + b"".join(self.samples)
        (self.folder / name).write_bytes(data)
        raw = {"basename": name, "bytes": len(data), "hashes": {}}
        known = {"raw_data": raw, "samples": count, "version": 2, "zip_data": None}
        self.shards.append(self.config | known)
        self.samples = []
