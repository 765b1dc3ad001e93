"""One extent to records, losses and skips; one record again from its locator.

    storage (ranges) -> codec (members, frames) -> Stream (positions) -> framer -> hold -> out

How each kind of damage is caught, whatever the codec and container:

    cut stream                 members, frames: the codec's end is missing; framers: the length is
    corrupt member             its checksum or structure; decoding goes on at the next sound member
    empty member, padding      members: an end without bytes, NULs between members
    wrong or missing length    warc, arc: no line end and header where the length says
    damaged header             warc, arc: resynchronised at the next header, from its own first byte
    line of wrong bytes        jsonl: each line is decoded and parsed on its own
    wrong type, null           jsonl, columns: a row of `bad_schema` or `null_text`
    nested without end         jsonl: 200 levels, `bad_json`; columns: Arrow's 100, `corrupt_member`
    value that Python lacks    columns: a string or null instead, a repair and no loss
    NULs before a line         jsonl: `bad_framing` up to the line, which is read
    damaged start of a file    sniff: `bad_framing` up to the first thing that starts a record
    cut up record, no type     warcrecord: `segmented`, `no_type`; a type unknown is a skip `type:x`
    zstd --long=28 and more    frames: `window_too_large`, before memory is taken
    nothing but damage         here: after `max_faults` in a row the rest is one loss, `given_up`
    giant record               all: `max_record_bytes` before it is held; columns: before decoding
    coded or cut body          http: the coding's own end; what is not coded is taken as it is
    binary bytes               http, warcrecord, whole: `bad_coding` or `not_text`
    foreign bytes              sniff: `unknown_format`, with what they seem to be
    nothing at all             here: `empty_file`, dropped and no fault: writers leave such files

FastWARC is not used, though it is faster (benchmarks/README.md, by benchmarks/readers.py): it stops
without a word at an empty member or padding, reads a wrong Content-Length over the next record,
loses records with LF header lines, and has no offsets inside a member.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...documents.records import Locator, Loss, Record, Skip
from .account import ReadAccount, ReadOptions
from .arc import frame_arc
from .columns import MAGIC, read_parquet, reread_row
from .extents import Extent
from .frames import decode_frames
from .framing import Framed, lost
from .jsonl import frame_jsonl, parse_line
from .members import Codec, decode_members
from .sniff import BOM, PROBE, REACH, codec_of, foreign, kind_of, next_start, sealed
from .storage import Ranges, open_file
from .stored import REACH as TRUST
from .stored import Event, Stored
from .stream import Stream
from .warc import frame_warc
from .whole import frame_whole, whole_record

Item = Record | Loss | Skip
Framer = Callable[[Stream, ReadOptions], Iterator[Framed]]
_FRAMERS: dict[str, Framer] = {"warc": frame_warc, "arc": frame_arc, "jsonl": frame_jsonl}


def read_extent(
    root: Path, extent: Extent, account: ReadAccount, **options: Any
) -> Iterator[Record | Loss | Skip]:
    """Read `extent` under `root`; `options` are the fields of `ReadOptions`.

    Damage comes out as `Loss`, never as an exception. After `max_faults` damaged records in a row
    the rest of the extent is one loss, `given_up`, that says what to do: neighbours in the shard
    are read. UsageError names an unknown option.
    The account balances (`account.check()`) once the iterator is used up.
    """
    return _checked(root, extent, account, ReadOptions.of(options))


def _checked(
    root: Path, extent: Extent, account: ReadAccount, given: ReadOptions
) -> Iterator[Item]:
    account.stored_bytes += extent.end - extent.start
    in_a_row = 0
    items = _items(root, extent, account, given)
    for item in items:
        account.book(item)
        yield item
        if not isinstance(item, Loss):
            in_a_row = 0
            continue
        in_a_row = in_a_row + 1 if item.kind == "fault" else 0
        if in_a_row >= given.max_faults:
            if (rest := _given_up(items, item, in_a_row)) is not None:
                account.book(rest)
                yield rest
            return


def _given_up(items: Iterator[Item], last: Loss, in_a_row: int) -> Loss | None:
    """What is left of an extent as one loss, so that all its bytes are booked; None if nothing."""
    at: Locator | None = None
    span = records = 0
    for item in items:
        span += _span(item)
        if not isinstance(item, Skip):
            at = at or item.locator
            records += item.records if isinstance(item, Loss) else 1
    if at is None and not span:
        return None
    detail = (
        f"{in_a_row} damaged records in a row before it, the last one {last.reason} "
        f"({last.detail[:200]}). Fetch the file again, or check the source's reader options "
        "(text_field, max_faults)"
    )
    at = at or last.locator
    locator = Locator(at.file, at.offset, at.inner, span)
    return Loss(locator=locator, reason="given_up", detail=detail, records=records)


def _items(root: Path, extent: Extent, account: ReadAccount, given: ReadOptions) -> Iterator[Item]:
    """All that is in the extent; one row for an extent that has nothing in it."""
    nothing = True
    for item in _found(root, extent, account, given) if extent.end > extent.start else ():
        nothing = False
        yield item
    if nothing:
        size = extent.end - extent.start
        detail = f"{size} stored bytes hold no record" if size else "the file has 0 bytes"
        at = Locator(extent.file, extent.start)
        yield Loss(locator=at, reason="empty_file", detail=detail, kind="dropped")


def _found(root: Path, extent: Extent, account: ReadAccount, given: ReadOptions) -> Iterator[Item]:
    with closing(open_file(root, extent.file)) as ranges:
        if given.format is None and _is_parquet(ranges):
            yield from read_parquet(ranges, extent, account, given)
            return
        stored = Stored(ranges, extent.file, extent.start, extent.end)
        yield from _hold(_open(stored, extent.file, account), given)


def _is_parquet(ranges: Ranges) -> bool:
    return ranges.read(0, 4) == MAGIC


def _open(stored: Stored, name: str, account: ReadAccount) -> Stream:
    codec = codec_of(stored)
    if isinstance(codec, Codec):
        return Stream(decode_members(stored, codec, account), name, account, None)
    if codec == "zstd":
        return Stream(decode_frames(stored, account), name, account, None)
    events: Iterator[Event] = _plain(stored, account)
    return Stream(events, name, account, stored.start)


def _plain(stored: Stored, account: ReadAccount) -> Iterator[Event]:
    for data in stored.plain():
        account.members += len(data)
        yield data


def _framed(stream: Stream, given: ReadOptions) -> Iterator[Framed | int]:
    """Items of the whole stream; after a fault, the position from which they are not trusted."""
    framer: Framer | None = frame_whole if given.format else None
    while True:
        if framer is None and stream.fill(1):
            stream.fill(PROBE)
            head = stream.buf[stream.at : stream.at + PROBE]
            kind = kind_of(head)
            if kind == "blank":
                stream.at += len(head)
                yield stream.position, Skip(reason="blank", span=len(head), records=0)
                continue
            if kind is not None:
                framer = _FRAMERS[kind]
                if stream.position == 0 and kind != "jsonl" and stream.buf.startswith(BOM):
                    stream.at = len(BOM)
                    yield stream.position, Skip(reason="bom", span=len(BOM), records=0)
            elif stream.fault is None or next_start(stream.buf, stream.at) >= 0:
                yield _unknown(stream)
                if stream.available:
                    continue
        if framer is not None:
            yield from framer(stream, given)
        if stream.fault is not None:
            start = stream.position
            locator = stream.locate(start, stream.available)
            fault, doubtful = stream.take_fault()
            stream.at = len(stream.buf)
            loss = Loss(
                locator=locator
                if locator.span
                else Locator(stream.file, fault.offset, locator.inner),
                reason=fault.reason,
                detail=fault.detail,
            )
            yield doubtful
            yield stream.position, loss
        elif not stream.fill(1) and stream.fault is None:
            return


def _unknown(stream: Stream) -> Framed:
    """Pass over bytes of no known kind up to the next record, fault or the end.

    Bytes before a record are its file's damaged start; an archive is passed over whole.
    """
    start = stream.position
    where = stream.locate(start)
    head = stream.buf[stream.at : stream.at + PROBE]
    reason, detail = "unknown_format", foreign(head)
    whole = sealed(head)
    while True:
        if not whole and (hit := next_start(stream.buf, stream.at)) >= 0:
            reason, detail = "bad_framing", f"no record before here; it starts with {head[:24]!r}"
            stream.at = hit
            break
        stream.at = max(stream.at, len(stream.buf) - REACH)
        if not stream.fill(stream.available + 1):
            stream.at = len(stream.buf)
            break
    return lost(stream, where, start, reason, detail)


def _hold(stream: Stream, given: ReadOptions) -> Iterator[Item]:
    """Let items go once they are proven; what a fault casts doubt on becomes one loss.

    In a member known to be corrupt the first damaged record shows where at the latest: from TRUST
    bytes before it nothing of that member is let go.
    """
    held: deque[Framed] = deque()
    doubtful: int | None = None
    looked: int | None = None  # the suspect member whose held records were looked through
    spoilt: Framed | None = None  # the loss that gathers the rest of a corrupt member
    for framed in _framed(stream, given):
        if isinstance(framed, int):
            doubtful = framed
            continue
        if spoilt is not None:
            spoilt = _add(spoilt, framed, closing=doubtful is not None)
        elif doubtful is not None:
            held.append(_merge(held, framed, doubtful))
        else:
            held.append(framed)
            suspect = stream.suspect
            if suspect is not None and (suspect != looked or _damaged(framed[1])):
                spoilt = _spoil(held, suspect, salvage=given.salvage)
                looked = suspect
        if spoilt is not None and doubtful is not None:
            held.append(spoilt)
            spoilt = None
        doubtful = None
        trusted = stream.trusted
        while held and held[0][0] <= trusted:
            yield held.popleft()[1]
    for _, item in held:
        yield item


def _damaged(item: Item) -> bool:
    return isinstance(item, Loss) and item.kind == "fault"


def _span(item: Item) -> int:
    return item.span if isinstance(item, Skip) else item.locator.span


def _spoil(held: deque[Framed], suspect: int, *, salvage: bool) -> Framed | None:
    """Gather what is held of a corrupt member: all, or from TRUST bytes before its first fault."""
    for end, item in held:
        if end > suspect and (_damaged(item) or not salvage):
            first = max(suspect, end - _span(item) - TRUST) if salvage else suspect
            break
    else:
        return None
    empty = Loss(locator=Locator("", 0), reason="corrupt_member")  # takes the place of what it gets
    return _merge(held, (held[-1][0], empty), first)


def _add(spoilt: Framed, framed: Framed, *, closing: bool) -> Framed:
    """Put an item of a corrupt member to the others; the fault that closes it gives the detail."""
    _, loss = spoilt
    end, item = framed
    if not isinstance(loss, Loss):
        return framed
    at = loss.locator
    locator = Locator(at.file, at.offset, at.inner, at.span + _span(item))
    if closing and isinstance(item, Loss):
        detail = f"{item.detail}; nothing from here to the member's end is trusted"
        return end, Loss(locator=locator, reason=item.reason, detail=detail)
    return end, Loss(locator=locator, reason=loss.reason, detail=loss.detail)


def _merge(held: deque[Framed], fault: Framed, doubtful: int) -> Framed:
    """Put what is held behind `doubtful` into the loss of a fault."""
    end, loss = fault
    if not isinstance(loss, Loss):
        return fault
    count = span = 0
    at = loss.locator
    while held and held[-1][0] > doubtful:
        item = held.pop()[1]
        count += item.records if isinstance(item, Skip) else 1
        span += _span(item)
        if not isinstance(item, Skip):
            at = item.locator
    if not span:
        return fault
    locator = Locator(at.file, at.offset, at.inner, span + loss.locator.span)
    detail = f"{loss.detail}; {count} records before it in the member are not trusted"
    return end, Loss(locator=locator, reason=loss.reason, detail=detail)


def reread(root: Path, locator: Locator, **options: Any) -> Record | None:
    """The record at `locator` once more, or None when it is no record (any more).

    Costs decoding from `locator.offset`: one WARC member, or up to `inner` bytes of a large one.
    Of a locator that covers several lines (a repository bundle) the first comes back.
    """
    given = ReadOptions.of(options)
    with closing(open_file(root, locator.file)) as ranges:
        if given.format is None and _is_parquet(ranges):
            return reread_row(ranges, locator, given)
        if not 0 <= locator.offset < ranges.size:
            return None
        stored = Stored(ranges, locator.file, locator.offset, ranges.size)
        stream = _open(stored, locator.file, ReadAccount())
        if not _skip(stream, locator.inner) or not stream.fill(locator.span):
            return None
        data = stream.buf[stream.at : stream.at + locator.span]
    if given.format is not None:
        whole = whole_record(data, locator, given)
        return whole if isinstance(whole, Record) else None
    kind = kind_of(data[:PROBE])
    if kind in {"warc", "arc"}:
        one = Stream(iter([data]), locator.file, ReadAccount(), locator.offset)
        for _, item in _FRAMERS[kind](one, given):
            if isinstance(item, Record):
                return _placed(item, locator)
        return None
    item = parse_line(data.partition(b"\n")[0], locator, given)
    return item if isinstance(item, Record) else None


def _placed(record: Record, locator: Locator) -> Record:
    return replace(record, locator=locator)


def _skip(stream: Stream, count: int) -> bool:
    while count:
        if not stream.fill(1):
            return False
        step = min(count, stream.available)
        stream.at += step
        count -= step
    return True
