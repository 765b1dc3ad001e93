"""zstd: frames are walked by their block headers first, so each has its end before it is decoded.

The walk reads 3 bytes a block of at most 128 KiB; it makes offsets exact, tells a cut frame from a
broken one (a reader of the library returns both as a short read), and splits files at no cost.

A file may start with its own dictionary (`.warc.zst`, the specification of IIPC: a skippable frame
0x184D2A5D that holds one, itself compressed or not); every extent of it looks there.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Protocol

import zstandard

from .account import ReadAccount
from .stored import CLOSE, HOLD, Event, Fault, Open, Proof, Stored

MAGIC = b"\x28\xb5\x2f\xfd"
_READ = 128 << 10  # bytes decoded at once: one block
WINDOW = 128 << 20  # bytes, the largest window that a frame may ask for (zstd --long=27)
_DICTIONARY = b"\x5d\x2a\x4d\x18"
_LARGEST = 64 << 20  # bytes of a dictionary


def skippable(head: bytes) -> bool:
    """Whether a skippable frame (0x184D2A50 to 5F) starts with `head`."""
    return len(head) >= 4 and head[1:4] == b"\x2a\x4d\x18" and head[0] & 0xF0 == 0x50


def starts(stored: Stored, at: int) -> bool:
    """Whether a frame of either kind starts at `at`."""
    head = bytes(stored.view(at, 4))
    return head == MAGIC or skippable(head)


class Bytes(Protocol):
    """What `frame_end` asks of the bytes it walks."""

    @property
    def end(self) -> int:
        """Where they end."""
        ...

    def view(self, at: int, size: int) -> memoryview:
        """Bytes [at, at + size), shorter only at the end."""
        ...


def frame_end(stored: Bytes, at: int) -> tuple[int, str]:
    """Where the frame at `at` ends, and "" or a fault's reason (RFC 8878, 3.1)."""
    head = bytes(stored.view(at, 18))
    if skippable(head):
        if len(head) < 8:
            return stored.end, "truncated_stream"
        end = at + 8 + int.from_bytes(head[4:8], "little")
        return (end, "") if end <= stored.end else (stored.end, "truncated_stream")
    if len(head) < 5:
        return stored.end, "truncated_stream"
    flags = head[4]
    single = flags >> 5 & 1
    sizes = (single, 2, 4, 8)[flags >> 6] + (0, 1, 2, 4)[flags & 3] + (0 if single else 1)
    if flags & 8:  # reserved bit
        return at, "corrupt_member"
    inside = at + 5 + sizes
    while True:
        block = bytes(stored.view(inside, 3))
        if len(block) < 3:
            return stored.end, "truncated_stream"
        word = int.from_bytes(block, "little")
        kind, size = word >> 1 & 3, word >> 3
        if kind == 3 or size > _READ:
            return at, "corrupt_member"
        inside += 3 + (1 if kind == 1 else size)
        if word & 1:
            break
    inside += 4 if flags & 4 else 0
    return (inside, "") if inside <= stored.end else (stored.end, "truncated_stream")


def _window(stored: Stored, at: int) -> int:
    """Bytes of window that the frame at `at` asks for (RFC 8878, 3.1.1.1)."""
    head = bytes(stored.view(at, 18))
    if len(head) < 6:
        return 0
    flags = head[4]
    if not flags >> 5 & 1:
        base = 1 << (10 + (head[5] >> 3))
        return base + base // 8 * (head[5] & 7)
    size = (1, 2, 4, 8)[flags >> 6]  # one segment: its window is its content
    start = 5 + (0, 1, 2, 4)[flags & 3]
    return int.from_bytes(head[start : start + size], "little") + (256 if size == 2 else 0)


def find_frame(stored: Stored, at: int) -> int:
    """The next frame at or after `at` whose headers make sense, or the end of the extent."""
    while (at := stored.find(MAGIC, at)) >= 0:
        if frame_end(stored, at)[1] != "corrupt_member":
            return at
        at += 1
    return stored.end


def decode_frames(stored: Stored, account: ReadAccount) -> Iterator[Event]:
    """Every frame of the extent in order, damage as `Fault`."""
    at = stored.start
    while at < stored.end:
        stored.keep()  # a frame is walked, then proven if it is large, then decoded
        try:
            at = yield from _decode_frame(stored, at, account)
        finally:
            stored.let_go()


def _decode_frame(stored: Stored, at: int, account: ReadAccount) -> Generator[Event, None, int]:
    """The frame at `at` and padding before it; returns where it ends."""
    after = stored.skip_nuls(at)
    account.padding += after - at
    at = after
    if at >= stored.end:
        return at
    end, reason = frame_end(stored, at) if starts(stored, at) else (at, "corrupt_member")
    if not reason and skippable(bytes(stored.view(at, 4))):
        account.padding += end - at
        return end
    yield Open(at)
    if not reason and (window := _window(stored, at)) > WINDOW:
        account.damaged += end - at
        yield Fault(
            "window_too_large",
            f"the zstd frame asks for a window of {window >> 20} MiB, at most {WINDOW >> 20} MiB "
            "are given: compress the file again with `--long=27` or less",
            at,
        )
        return end
    detail = {"": "", "truncated_stream": "the zstd frame has no end"}.get(
        reason, "no sound zstd frame where one should start"
    )
    if starts(stored, at):
        broken = yield from _proven_frame(stored, at, end if end > at else stored.end)
        # A broken frame beats a cut one only when another frame follows.
        if broken and reason != "truncated_stream":
            reason, detail = "corrupt_member", broken
    if not reason:
        account.members += end - at
        yield CLOSE
    else:
        trusted = end > at and reason == "corrupt_member"  # headers sound, contents not
        if not (trusted and (end == stored.end or starts(stored, end))):
            end = find_frame(stored, at + 4)
        if end < stored.end:
            reason = "corrupt_member"
        account.damaged += end - at
        yield Fault(reason, detail, at)
    return end


def _proven_frame(stored: Stored, at: int, end: int) -> Generator[Event, None, str]:
    """`one_frame`, with a `Proof` before more than HOLD bytes have come out of it.

    A frame without a checksum can only be found broken by its structure, so it is never proven.
    """
    checked = len(head := bytes(stored.view(at, 5))) == 5 and bool(head[4] & 4)
    frame = one_frame(stored, at, end)
    size = 0
    asked = False
    while True:
        try:
            data = next(frame)
        except StopIteration as stop:
            return stop.value
        size += len(data)
        if size > HOLD and not asked:
            asked = True
            broken = _outcome(one_frame(stored, at, end))
            if broken or checked:
                yield Proof(not broken)
        yield data


def _outcome(frame: Generator[bytes, None, str]) -> str:
    while True:
        try:
            next(frame)
        except StopIteration as stop:
            return stop.value


class _Span:
    """The stored bytes of one frame as a file."""

    def __init__(self, stored: Stored, at: int, end: int) -> None:
        self._stored = stored
        self._at = at
        self._end = end

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes."""
        left = self._end - self._at
        data = bytes(self._stored.view(self._at, left if size < 0 else min(size, left)))
        self._at += len(data)
        return data


def one_frame(stored: Stored, at: int, end: int) -> Generator[bytes, None, str]:
    """Decode the frame in [at, end). Returns what was wrong, or ""."""
    if stored.dictionary is None:
        stored.dictionary = _dictionary(stored)
    library = zstandard.ZstdDecompressor(max_window_size=WINDOW, **stored.dictionary)
    source = _Span(stored, at, end)
    reader = library.stream_reader(source, read_size=_READ, read_across_frames=False)  # type: ignore[arg-type]
    try:
        while out := reader.read(_READ):
            yield out
    except zstandard.ZstdError as error:
        return f"zstd: {error}"
    return ""


def _dictionary(stored: Stored) -> dict[str, zstandard.ZstdCompressionDict]:
    """The dictionary at the start of the file, as the argument of a decompressor; {} if none.

    One that cannot be read is none: the frames that need it then fail, each in the books.
    """
    head = stored.outside(0, min(8, stored.end))
    size = int.from_bytes(head[4:8], "little")
    if not head.startswith(_DICTIONARY) or not 8 <= size <= min(_LARGEST, stored.end - 8):
        return {}
    data = stored.outside(8, size)
    if data.startswith(MAGIC):
        try:
            library = zstandard.ZstdDecompressor(max_window_size=WINDOW)
            data = library.decompress(data, max_output_size=_LARGEST)
        except zstandard.ZstdError:
            return {}
    return {"dict_data": zstandard.ZstdCompressionDict(data)}
