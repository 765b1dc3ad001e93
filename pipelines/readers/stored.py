"""Stored bytes of one extent, and the events that a codec makes of them.

A codec yields `Open` where a member starts, `bytes`, `CLOSE` when the member's own checks passed,
and `Fault` where bytes are missing or wrong; decoding goes on at the next sound member after it.
A member that decodes to more than `HOLD` is read once to its end first, and `Proof` says how it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

CHUNK = 1 << 20  # most bytes that one event carries
HOLD = 256 << 10
"""Decoded bytes up to which a member's records wait until it has closed well. A larger member is
inflated twice, first to its checksum alone, which adds 10-20 % to reading JSONL."""
REACH = 4 << 20
"""Decoded bytes before the first visible fault of a corrupt larger member that are never trusted.
No distance is safe: a wrong bit in deflate may only swap letters that later copies carry on, and in
text of few words that stayed valid JSON for more than 256 KiB. Hence the option `salvage`."""
_CACHE = 1 << 20  # bytes read from storage at once


@dataclass(frozen=True, slots=True)
class Open:
    """A member starts at this stored byte."""

    offset: int


@dataclass(frozen=True, slots=True)
class Close:
    """The open member ended and its checksum, where it has one, is right."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What a first reading of the open member found; comes before its first HOLD bytes are out."""

    sound: bool


@dataclass(frozen=True, slots=True)
class Fault:
    """Here the decoded stream is broken; what follows belongs to another member."""

    reason: str  # truncated_stream, corrupt_member
    detail: str
    offset: int  # stored byte of the broken member


CLOSE = Close()
Event = bytes | Open | Close | Proof | Fault


class Stored:
    """Random reads within [start, end) of a file through one cached window."""

    def __init__(self, path: Path, start: int, end: int) -> None:
        self.start = start
        self.end = end
        self._file = path.open("rb", buffering=0)
        self._cache = b""
        self._at = 0

    def view(self, at: int, size: int) -> memoryview:
        """Bytes [at, at + size), shorter only at the end of the extent."""
        size = max(0, min(size, self.end - at))
        begin = at - self._at
        if begin < 0 or begin + size > len(self._cache):
            want = min(max(size, _CACHE), self.end - at)
            parts: list[bytes] = []
            while want > 0:  # a network file system may give less than was asked for
                part = os.pread(self._file.fileno(), want, at + sum(map(len, parts)))
                if not part:
                    break
                parts.append(part)
                want -= len(part)
            self._cache = b"".join(parts)
            self._at = at
            begin = 0
        return memoryview(self._cache)[begin : begin + size]

    def find(self, magic: bytes, at: int) -> int:
        """The next `magic` at or after `at`, or -1."""
        while at < self.end:
            window = bytes(self.view(at, _CACHE))
            hit = window.find(magic)
            if hit >= 0:
                return at + hit
            if len(window) < _CACHE:
                return -1
            at += len(window) - len(magic) + 1
        return -1

    def skip_nuls(self, at: int) -> int:
        """The first byte at or after `at` that is not NUL (gzip(1) skips such padding too)."""
        while at < self.end:
            if self.view(at, 1) != b"\0":
                return at
            window = bytes(self.view(at, 1 << 16))
            if not window:
                return at
            rest = len(window.lstrip(b"\0"))
            if rest:
                return at + len(window) - rest
            at += len(window)
        return at

    def plain(self) -> Iterator[bytes]:
        """The bytes themselves."""
        at = self.start
        while at < self.end:
            data = bytes(self.view(at, CHUNK))
            if not data:
                return
            yield data
            at += len(data)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()
