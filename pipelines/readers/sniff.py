"""What a file is, by its bytes and never by its name."""

from __future__ import annotations

import re

from . import arc
from .frames import MAGIC, find_frame
from .frames import starts as frame_starts
from .members import CODECS, Codec
from .stored import Stored
from .warc import HEADER

PROBE = 64 << 10  # decoded bytes that say what a stream holds
_SEARCH = 1 << 20  # stored bytes searched for a member when the start is damaged
BOM = b"\xef\xbb\xbf"
_FOREIGN = (
    (b"PK\x03\x04", "a ZIP archive: unpack it"),
    (b"\xff\xfe", "UTF-16: convert it to UTF-8"),
    (b"\xfe\xff", "UTF-16: convert it to UTF-8"),
    (b"%PDF", "a PDF"),
    (b"\x04\x22\x4d\x18", "lz4: compress it with zstd"),
    (b"ARROW1", "an Arrow file: write it as Parquet"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it"),
    (b"Rar!\x1a\x07", "a RAR archive: unpack it"),
)
# What is foreign only inside a codec: files are packed once.
_PACKED = (
    (b"\x1f\x8b\x08", "gzip inside a compressed file: unpack it once"),
    (MAGIC, "zstd inside a compressed file: unpack it once"),
    (b"\xfd7zXZ\0", "xz inside a compressed file: unpack it once"),
    (b"BZh", "bzip2 inside a compressed file: unpack it once"),
    (b"PAR1", "Parquet inside a compressed file: unpack it, Parquet is compressed in itself"),
)
_ARCHIVES = tuple(m for m, _ in _FOREIGN if m[:2] not in {b"\xff\xfe", b"\xfe\xff"})
_ROW = rb"\{[ \t]*\"[^\"\\\n]{0,200}\"[ \t]*:"  # the start of an object, never found in noise
_OBJECT = re.compile(_ROW)
_LINE = re.compile(rb"\n(?=" + _ROW + rb")")
_AFTER_NULS = re.compile(rb"\0(?=" + _ROW + rb")")
REACH = arc.LONGEST + 1  # bytes in which any of these starts fits
_WHOLE = (*_ARCHIVES, *(m for m, _ in _PACKED))
_TAR = slice(257, 262)  # where a tar archive says so


def codec_of(stored: Stored) -> Codec | str:
    """The codec of the extent: one of CODECS, "zstd" or "plain"."""
    at = stored.skip_nuls(stored.start)
    if frame_starts(stored, at):
        return "zstd"
    for codec in CODECS:
        if codec.starts(stored, at):
            return codec
    head = bytes(stored.view(stored.start, PROBE))
    if kind_of(head) is not None or head.startswith(tuple(m for m, _ in _FOREIGN)):
        return "plain"
    # The first member's header may be what is damaged: look for a sound one behind it.
    near = bytes(stored.view(stored.start, _SEARCH))
    if MAGIC in near:
        at = find_frame(stored, stored.start)
        if at < stored.start + _SEARCH:
            return "zstd"
    for codec in CODECS:
        if codec.magic in near and codec.find(stored, stored.start) < (stored.start + _SEARCH):
            return codec
    return "plain"


def kind_of(head: bytes) -> str | None:
    """`warc`, `arc`, `jsonl`, `blank` (line ends so far) or None for a stream's first bytes."""
    start = head.removeprefix(BOM).lstrip(b" \t\r\n")
    if not start:
        return "blank"
    first = start[:1]
    start = start.lstrip(b"\0 \t\r\n")
    if start.startswith(b"WARC/"):
        return "warc"
    if start.startswith(b"filedesc:") or arc.starts(start):
        return "arc"
    if head.startswith(_ARCHIVES) or head[_TAR] == b"ustar":
        return None  # lines of what it holds may look like records, the rest of it does not
    if first in {b"{", b"["} or _OBJECT.match(start):
        return "jsonl"
    warc = HEADER.search(head)
    if line := _LINE.search(head):  # the first line may be damaged
        return "warc" if warc and warc.start() < line.start() else "jsonl"
    if warc:
        return "warc"
    return "arc" if arc.NEXT.search(head) else None


def sealed(head: bytes) -> bool:
    """Whether this is an archive, or packed twice: nothing in it is to be taken for a record."""
    return head.startswith(_WHOLE) or head[_TAR] == b"ustar"


def next_start(data: bytes, at: int) -> int:
    """Where from `at` on something starts that `kind_of` knows; -1 if nowhere."""
    header = HEADER.search(data, at)
    hits = [header.start()] if header else []
    nuls = data.find(b"\0{", at)  # 20 times as fast over NULs as the pattern
    searches = ((arc.AFTER, at), (_LINE, at), (_AFTER_NULS, nuls if nuls >= 0 else len(data)))
    hits += [m.end() for pattern, begin in searches if (m := pattern.search(data, begin))]
    return min(hits, default=-1)


def foreign(head: bytes) -> str:
    """What an unknown stream seems to be, for the books."""
    if head[_TAR] == b"ustar":
        return "a tar archive: unpack it"
    for magic, name in (*_FOREIGN, *_PACKED):
        if head.startswith(magic):
            return name
    if head.lstrip()[:1] == b"<":
        return "markup: state `reader: {format: html}` if each file of the source is a page"
    return (
        f"neither WARC, ARC, JSONL nor Parquet; it starts with {head[:24]!r}. State `reader: "
        "{format: text}` if each file of the source is a text; name a list of paths itself"
    )
