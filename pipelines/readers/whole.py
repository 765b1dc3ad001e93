"""A folder of texts or pages: each file, whatever codec it is in, is one document.

It has to be asked for (`reader: {format: text}` or `html`). Any bytes can be a text, and a page may
well be a server's error saved under the name of an archive, so neither is guessed: where nothing is
asked for such a file is `unknown_format`, a fault. Of a file that is damaged anywhere nothing is
handed on, since what is left of it would pass for the whole.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...documents.records import Locator, Loss, Record
from .account import ReadOptions, above
from .binary import binary
from .framing import Framed, lost
from .storage import key_of
from .stream import Stream

MEDIA = {"text": "text/plain", "html": "text/html"}


def frame_whole(stream: Stream, options: ReadOptions) -> Iterator[Framed]:
    """The file as one record, or as one loss."""
    if stream.broken:
        if stream.fill(1):
            yield _passed(stream, "corrupt_member", "part of a file that is damaged before it")
        return
    while stream.available <= options.max_record_bytes and stream.fill(
        min(2 * stream.available + 1, options.max_record_bytes + 1)
    ):
        pass
    if stream.available > options.max_record_bytes:
        yield _passed(stream, "too_large", above(options.max_record_bytes))
    elif stream.fault is None and stream.available:
        start = stream.position
        body = stream.buf[stream.at :]
        stream.at = len(stream.buf)
        yield stream.position, whole_record(body, stream.locate(start, len(body)), options)


def whole_record(body: bytes, locator: Locator, options: ReadOptions) -> Record | Loss:
    """The record of a file's decoded bytes; its identity is the path under the root or bucket.

    A file that is `binary` is `not_text`, a fault: an image, a PDF, or a compressed file whose
    first bytes are damaged.
    """
    if why := binary(body):
        return Loss(locator=locator, reason="not_text", detail=why)
    media = MEDIA[options.format or "text"]
    return Record(locator=locator, body=body, media_type=media, identity=key_of(locator.file))


def _passed(stream: Stream, reason: str, detail: str) -> Framed:
    start = stream.position
    where = stream.locate(start)
    while True:
        stream.at = len(stream.buf)
        if not stream.fill(1):
            break
    return lost(stream, where, start, reason, detail)
