"""Stored bytes of one extent, and the events that a codec makes of them.

A codec yields `Open` where a member starts, `bytes`, `CLOSE` when the member's own checks passed,
and `Fault` where bytes are missing or wrong; decoding goes on at the next sound member after it.
A member that decodes to more than `HOLD` is read once to its end first, and `Proof` says how it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...documents.errors import StopError
from .storage import Kept, Ranges

CHUNK = 1 << 20  # most bytes that one event carries
HOLD = 256 << 10
"""Decoded bytes up to which a member's records wait until it has closed well. A larger member is
inflated twice, first to its checksum alone, which adds 10-20 % to reading JSONL."""
REACH = 4 << 20
"""Decoded bytes before the first visible fault of a corrupt larger member that are never trusted.
No distance is safe: a wrong bit in deflate may only swap letters that later copies carry on, and in
text of few words that stayed valid JSON for more than 256 KiB. Hence the option `salvage`."""
_CACHE = 1 << 20  # bytes read from storage at once; doubled up to what the storage asks for


@dataclass(slots=True)
class Open:
    """A member starts at this stored byte."""

    offset: int


@dataclass(slots=True)
class Whole:
    """A member of at most HOLD bytes at once: `Open`, its bytes and `CLOSE`. Most are such."""

    offset: int
    data: bytes


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

    reason: str  # truncated_stream, corrupt_member, window_too_large
    detail: str
    offset: int  # stored byte of the broken member


CLOSE = Close()
Event = bytes | Whole | Open | Close | Proof | Fault


class Stored:
    """Random reads within [start, end) of a file through one cached window.

    The window doubles while reads follow each other, up to `Ranges.sequential`: a request to an
    object store costs some 30 ms whatever its size, so 1 MiB at a time would be 30 MB/s.
    """

    def __init__(self, ranges: Ranges, name: str, start: int, end: int) -> None:
        self.start = start
        self.end = end
        self.name = name
        self.dictionary: Any = None  # of zstd frames, once it was looked for
        self._ranges = ranges
        self._view = memoryview(b"")  # the window
        self._at = 0  # where it starts
        self._want = _CACHE
        self._keeping = False
        self._kept: Kept | None = None

    def view(self, at: int, size: int) -> memoryview:
        """Bytes [at, at + size), shorter only at the end of the extent."""
        begin = at - self._at
        held = len(self._view)
        if begin < 0 or begin + size > held or size < 0:
            size = max(0, min(size, self.end - at))
            if begin < 0 or begin + size > held:
                follows = held and 0 <= begin <= held
                self._want = min(2 * self._want, self._ranges.sequential) if follows else _CACHE
                if self._keeping and self._kept is None and held:
                    self._kept = Kept(self._ranges, self._at, self._view)
                window = self.outside(at, min(max(size, self._want, _CACHE), self.end - at))
                self._view = memoryview(window)
                self._at = at
                begin = 0
        return self._view[begin : begin + size]

    def outside(self, at: int, size: int) -> bytes:
        """Bytes anywhere in the file, past the cache; StopError when it is shorter than planned."""
        data = (self._kept or self._ranges).read(at, size)
        if len(data) < size and at + len(data) < self.end:
            msg = (
                f"{self.name}: ends at byte {at + len(data)}, and {self.end} bytes were planned: "
                "it was changed since. Give the same command again to plan it anew"
            )
            raise StopError(msg)
        return data

    def keep(self) -> None:
        """The member that starts in the window is read more than once: fetch it once."""
        self._keeping = self._ranges.far

    def let_go(self) -> None:
        """What was kept is not needed any more."""
        self._keeping = False
        if self._kept is not None:
            self._kept.close()
            self._kept = None

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
