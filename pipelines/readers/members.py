"""gzip, bzip2 and xz: files of members that follow each other, each decoded on its own.

`isal_zlib` inflates the members of a WET (3 KB each) at 430-460 MB/s where `zlib` does 250 and
`igzip_lib.IgzipDecompressor` 190-240, all with checksums verified; FastWARC's own reader does 370,
but stops at an empty member or at padding and gives no offsets of its members.
Stored bytes go in 16 KiB at a time: less copying of what a small member leaves over.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, cast

from isal import isal_zlib

from .account import ReadAccount
from .stored import CHUNK, CLOSE, HOLD, Event, Fault, Open, Proof, Stored, Whole

_PIECE = 16 << 10  # stored bytes given to a decoder at once
_PROBE = 64 << 10  # stored bytes that must decode before a magic number counts as a member


class _Gzip:
    """The interface of `bz2.BZ2Decompressor` over the faster of the gzip decoders."""

    __slots__ = ("_inner",)

    def __init__(self) -> None:
        self._inner = isal_zlib.decompressobj(wbits=31)

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: Any, max_length: int) -> bytes:
        tail = self._inner.unconsumed_tail
        return self._inner.decompress(tail + data if tail else data, max_length)


@dataclass(frozen=True, slots=True)
class Codec:
    """How members of one kind look and decode."""

    name: str
    magic: bytes
    new: Callable[[], Any]

    def starts(self, stored: Stored, at: int) -> bool:
        """Whether the header of a member stands at `at`."""
        return self.begins(stored.view(at, 10))

    def begins(self, head: memoryview) -> bool:
        """Whether the header of a member stands at the start of `head`."""
        if head[: len(self.magic)] != self.magic:
            return False
        return self.name != "gzip" or len(head) < 4 or not head[3] & 0xE0  # reserved flags

    def decodes(self, stored: Stored, at: int) -> bool:
        """Whether the bytes at `at` also decode as far as a probe goes."""
        decoder = self.new()
        try:
            out = decoder.decompress(bytes(stored.view(at, _PROBE)), 4096)
        except ERRORS:
            return False
        return bool(out) or decoder.eof

    def find(self, stored: Stored, at: int) -> int:
        """The next member at or after `at` that decodes, or the end of the extent."""
        while (at := stored.find(self.magic, at)) >= 0:
            if self.starts(stored, at) and self.decodes(stored, at):
                return at
            at += 1
        return stored.end


ERRORS: tuple[type[Exception], ...] = (
    zlib.error,
    cast("type[Exception]", isal_zlib.error),
    OSError,
    EOFError,
    lzma.LZMAError,
    ValueError,
)
CODECS = (
    Codec("gzip", b"\x1f\x8b\x08", _Gzip),
    Codec("bzip2", b"BZh", bz2.BZ2Decompressor),
    Codec(
        "xz",
        b"\xfd7zXZ\0",
        lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=256 << 20),
    ),
)


_Begun = tuple[Any, int, bytes]  # a decoder, stored bytes it was given, what came out


def decode_members(stored: Stored, codec: Codec, account: ReadAccount) -> Iterator[Event]:
    """Every member of the extent in order, damage as `Fault`. Empty members are nothing special."""
    at = stored.start
    while at < stored.end:
        head = stored.view(at, _PIECE)
        begun: _Begun | None = None
        if codec.begins(head):
            decoder = codec.new()
            try:
                out = decoder.decompress(head, CHUNK)
            except ERRORS:  # the long way says which, and where
                pass
            else:
                if decoder.eof and len(out) <= HOLD:
                    used = len(head) - len(decoder.unused_data)
                    account.members += used
                    yield Whole(at, out)
                    at += used
                    continue
                begun = decoder, len(head), out
        after = stored.skip_nuls(at)
        account.padding += after - at
        at = after
        if at >= stored.end:
            return
        yield Open(at)
        if not codec.starts(stored, at):
            following = codec.find(stored, at + 1)
            account.damaged += following - at
            detail = f"no {codec.name} header where a member should start"
            yield Fault("corrupt_member", detail, at)
            at = following
            continue
        stored.keep()
        try:
            end, reason, detail = yield from _proven_member(stored, codec, at, begun)
        finally:
            stored.let_go()
        if not reason:
            account.members += end - at
            yield CLOSE
        else:
            end = codec.find(stored, at + len(codec.magic))
            if end < stored.end and reason == "truncated_stream":
                reason = "corrupt_member"  # it swallowed a sound member: not cut, but broken
            account.damaged += end - at
            yield Fault(reason, detail, at)
        at = end


def _proven_member(
    stored: Stored, codec: Codec, at: int, begun: _Begun | None
) -> Generator[Event, None, tuple[int, str, str]]:
    """`one_member`, with a `Proof` before more than HOLD bytes have come out of it."""
    member = one_member(stored, codec, at, begun)
    size = 0
    asked = False
    while True:
        try:
            data = next(member)
        except StopIteration as stop:
            return stop.value
        size += len(data)
        if size > HOLD and not asked:
            asked = True
            reason = _outcome(one_member(stored, codec, at))
            yield Proof(reason != "corrupt_member")
        yield data


def _outcome(member: Generator[bytes, None, tuple[int, str, str]]) -> str:
    while True:
        try:
            next(member)
        except StopIteration as stop:
            return stop.value[1]


def one_member(
    stored: Stored, codec: Codec, at: int, begun: _Begun | None = None
) -> Generator[bytes, None, tuple[int, str, str]]:
    """Decode the member at `at`. Returns (its end, reason or "", detail)."""
    decoder, taken, out = begun or (codec.new(), 0, b"")
    inside = at + taken
    if out:
        yield out
    if decoder.eof:
        return inside - len(decoder.unused_data), "", ""
    while True:
        data = stored.view(inside, _PIECE) if decoder.needs_input else b""
        try:
            out = decoder.decompress(data, CHUNK)
        except ERRORS as error:
            return inside, "corrupt_member", f"{codec.name}: {error}"
        inside += len(data)
        if out:
            yield out
        if decoder.eof:
            return inside - len(decoder.unused_data), "", ""
        if not out and not data and decoder.needs_input:
            return inside, "truncated_stream", f"the {codec.name} member has no end"
