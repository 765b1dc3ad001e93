"""The decoded stream of an extent as one window that slides, with every byte's way back.

Positions count decoded bytes from the start of the extent and never restart at a member, since a
line or a record may reach over members. The window ends at a fault until the framer takes it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from ...documents.records import Locator
from .account import ReadAccount
from .stored import HOLD, REACH, Close, Event, Fault, Open, Proof, Whole

_WINDOW = 256 << 10  # bytes; a window of 1 MiB leaves the cache: 294 MB/s of WET for 334


class Stream:
    """`buf[at:]` is what is left to frame; `base + at` is its position."""

    def __init__(
        self, events: Iterator[Event], file: str, account: ReadAccount, plain_start: int | None
    ) -> None:
        self.buf = b""
        self.at = 0
        self.base = 0
        self.file = file
        self.fault: Fault | None = None
        self.ended = False
        self.broken = False  # a fault was taken
        self._events = events
        self._account = account
        self._plain = plain_start
        self._starts = [0]  # positions at which members start, ascending
        self._offsets = [0]  # where these members stand in the file
        self._closed = 0  # all before it is proven
        self._proven = False  # the open member is
        self.suspect: int | None = None  # start of the open member when it is known to be corrupt

    @property
    def position(self) -> int:
        """Of the next byte to frame."""
        return self.base + self.at

    @property
    def available(self) -> int:
        """Bytes in the window."""
        return len(self.buf) - self.at

    @property
    def trusted(self) -> int:
        """Records that end at or before this position may leave."""
        frontier = self.base + len(self.buf)
        if self._plain is not None or self._proven:
            return frontier
        return self._doubtful(frontier)

    def _doubtful(self, frontier: int) -> int:
        """From where on a fault at `frontier` takes the open member's bytes with it."""
        return max(self._closed, frontier - (HOLD if self.suspect is None else REACH))

    def fill(self, need: int) -> bool:
        """Make `need` bytes available; False when a fault or the end comes first."""
        if len(self.buf) - self.at >= need:
            return True
        if self.fault is not None or self.ended:
            return False
        parts = [self.buf[self.at :]]
        held = size = len(parts[0])
        start = self.base + self.at
        want = max(need, _WINDOW)
        for event in self._events:
            if isinstance(event, Whole):
                if event.data:  # a file may hold millions of empty members
                    self._open(start + size, event.offset, start)
                    parts.append(event.data)
                    size += len(event.data)
                self._closed = start + size
                self._proven = False
                if size >= want:
                    break
            elif isinstance(event, bytes):
                parts.append(event)
                size += len(event)
                if size >= want:
                    break
            elif isinstance(event, Open):
                self._open(start + size, event.offset, start)
            elif isinstance(event, Close):
                self._closed = start + size
                self._proven = False
            elif isinstance(event, Proof):
                self._proven = event.sound
                if not event.sound:
                    self.suspect = self._starts[-1]
            else:
                self.fault = event
                break
        else:
            self.ended = True
        self._account.decoded_bytes += size - held
        self.buf = b"".join(parts)
        self.base = start
        self.at = 0
        return size >= need

    def _open(self, position: int, offset: int, floor: int) -> None:
        if len(self._starts) > 4096:  # forget members that lie behind the window
            keep = bisect_right(self._starts, floor) - 1
            del self._starts[:keep], self._offsets[:keep]
        self._starts.append(position)
        self._offsets.append(offset)

    def locate(self, position: int, span: int = 0) -> Locator:
        """The way back to `position`."""
        if self._plain is not None:
            return Locator(self.file, self._plain + position, 0, span)
        member = bisect_right(self._starts, position) - 1
        return Locator(self.file, self._offsets[member], position - self._starts[member], span)

    def member_at(self, position: int) -> bool:
        """Whether a member starts at `position`, which lies in the window or just behind it."""
        index = bisect_right(self._starts, position) - 1
        return self._plain is None and index > 0 and self._starts[index] == position

    def take_fault(self) -> tuple[Fault, int]:
        """Pass the fault at the window's end. Returns it and the first position not trusted."""
        fault = self.fault
        if fault is None:
            msg = "no fault to take"
            raise ValueError(msg)
        self.fault = None
        self.broken = True
        frontier = self.base + len(self.buf)
        corrupt = fault.reason == "corrupt_member"
        doubtful = self._doubtful(frontier) if corrupt else frontier
        self._closed = frontier  # damage was booked; what follows is another member
        self._proven = False
        self.suspect = None
        return fault, doubtful

    def discard(self, pattern: re.Pattern[bytes], overlap: int) -> bool:
        """Drop bytes up to a match of at most `overlap` bytes; False when none comes."""
        while True:
            hit = pattern.search(self.buf, self.at)
            if hit:
                self.at = hit.start()
                return True
            self.at = max(self.at, len(self.buf) - overlap)
            if not self.fill(self.available + 1):
                self.at = len(self.buf)
                return False
