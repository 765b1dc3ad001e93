"""Where records provably start in a large file; see `extents` for the rules and their reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .columns import MAGIC, group_starts, open_parquet
from .extents import nearest
from .frames import frame_end, one_frame, skippable
from .members import CODECS, Codec, one_member
from .sniff import codec_of, kind_of
from .storage import Ranges
from .stored import Stored

_CHAIN = 65_536  # stored bytes that sound members must span before a split is believed
_REACH = 4 << 20  # stored bytes behind a wanted place that are searched for a boundary
_DECODED = 256 << 20  # decoded bytes spent on one member or frame before giving the split up
_TRIES = 16  # boundaries looked at per wanted place


def record_starts(ranges: Ranges, name: str, wanted: Sequence[int]) -> list[int]:
    """Record starts near the `wanted` places, ascending; fewer where none can be proven cheaply."""
    if not wanted:
        return []
    stored = Stored(ranges, name, 0, ranges.size)
    if stored.view(0, 4) == MAGIC:
        try:
            with open_parquet(ranges) as table:
                starts = group_starts(table)
        except (OSError, ValueError):
            return []
        return nearest(starts, wanted) if starts == sorted(set(starts)) else []
    codec = codec_of(stored)
    if codec == "plain":
        lines = kind_of(bytes(stored.view(0, 64 << 10))) == "jsonl"
        return list(_after_newlines(stored, wanted)) if lines else []
    if codec == "zstd":
        return list(_frames(stored, wanted))
    if isinstance(codec, Codec) and codec is CODECS[0]:
        return list(_members(stored, codec, wanted))
    return []


def _after_newlines(stored: Stored, wanted: Sequence[int]) -> Iterator[int]:
    for place in wanted:
        hit = stored.find(b"\n", place - 1)
        if hit < 0 or hit + 1 >= stored.end:
            return
        yield hit + 1


def _frames(stored: Stored, wanted: Sequence[int]) -> Iterator[int]:
    """Walk all frames once; a wanted place takes the first good boundary at or after it."""
    places = iter(wanted)
    place = next(places, None)
    at = stored.start
    before = -1  # the last frame with content
    tries = 0
    while place is not None and at < stored.end:
        at = stored.skip_nuls(at)
        end, reason = frame_end(stored, at) if at < stored.end else (at, "end")
        if reason:
            return
        if skippable(bytes(stored.view(at, 4))):
            at = end
            continue
        if at >= place and before >= 0 and tries < _TRIES:
            tries += 1
            if at - before < _REACH and _joins(
                _tail(one_frame(stored, before, at)), next(one_frame(stored, at, end), b"")
            ):
                yield at
                tries = _TRIES
        before, at = at, end
        while place is not None and at > place and tries >= _TRIES:
            place, tries = next(places, None), 0


def _members(stored: Stored, codec: Codec, wanted: Sequence[int]) -> Iterator[int]:
    for place in wanted:
        cut = _chained(stored, codec, max(stored.start, place - 2 * _CHAIN), place)
        if cut is not None:
            yield cut


def _chained(stored: Stored, codec: Codec, start: int, place: int) -> int | None:
    """The first boundary at or after `place` that a long enough chain of members runs into."""
    first = start
    while True:
        first = codec.find(stored, first)
        if first > place + _REACH or first >= stored.end:
            return None
        at = first
        while at < place + _REACH:
            tail, end = _closed(stored, codec, at)
            if end < 0 or end >= stored.end:
                break
            at = stored.skip_nuls(end)
            if not codec.starts(stored, at):
                break
            if at - first > _CHAIN and at >= place:
                head, _ = _closed(stored, codec, at, head=True)
                if _joins(tail, head):
                    return at
        if at - first > _CHAIN:  # a sound chain: the file holds no boundary here
            return None
        first += 1


def _closed(stored: Stored, codec: Codec, at: int, *, head: bool = False) -> tuple[bytes, int]:
    """The last (or first) decoded bytes of the member and its end, -1 if it is not sound."""
    member = one_member(stored, codec, at)
    kept = b""
    spent = 0
    while True:
        try:
            data = next(member)
        except StopIteration as stop:
            end, reason, _ = stop.value
            return kept, -1 if reason else end
        if head and data:
            return data[:64], at
        kept = (kept + data)[-64:]
        spent += len(data)
        if spent > _DECODED:
            return kept, -1


def _tail(parts: Iterator[bytes]) -> bytes:
    kept = b""
    for part in parts:
        kept = (kept + part)[-64:]
    return kept


def _joins(tail: bytes, head: bytes) -> bool:
    """Whether a record ends with `tail` and another starts with `head`."""
    if kind_of(head) == "warc" and head.startswith(b"WARC/"):
        return tail.endswith((b"\n\r\n", b"\n\n"))
    if kind_of(head) == "arc":
        return tail.endswith(b"\n")
    return tail.endswith(b"\n") and head.startswith((b"{", b"["))
