r"""JSON lines: one object a line, each line judged on its own.

A line that is not UTF-8 or not JSON is one row in the books and nothing else (case 01: datatrove
yields no document of such a file). `\ud800` escapes stay for the text policy to repair. NaN and
Infinity, which pandas writes and JSON forbids, become null. A line nested more than MAX_DEPTH deep
is `bad_json`: each later step that looks into metadata would else meet Python's limit of recursion.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...documents.records import Locator, Loss, Record, Skip
from .account import ReadOptions, above
from .framing import Framed, lost
from .stream import Stream

MAX_DEPTH = 200  # objects and arrays in each other that a row may hold; agent runs have some 20
TOO_DEEP = f"nested too deeply: at most {MAX_DEPTH} objects and arrays in each other"
_NEWLINE = re.compile(rb"\n")
_OTHER = re.compile(rb"[^\0]")


def _finite(number: str) -> float | None:
    value = float(number)
    return value if math.isfinite(value) else None


_DECODER = json.JSONDecoder(parse_constant=lambda _: None, parse_float=_finite)


def frame_jsonl(stream: Stream, options: ReadOptions) -> Iterator[Framed]:
    """Lines of the stream up to the next fault or the end; the caller takes the fault."""
    searched = 0  # bytes of the window known to hold no newline
    while True:
        if stream.buf.startswith(b"\0", stream.at) and not searched:
            yield _nuls(stream)
        hit = stream.buf.find(b"\n", stream.at + searched)
        start = stream.position
        if hit < 0:
            searched = stream.available
            if searched > options.max_record_bytes:
                yield _too_large(stream, start, options)
                searched = 0
                continue
            # Doubling keeps the copying of a long line linear.
            need = min(max(2 * searched, 1), options.max_record_bytes + 1)
            if stream.fill(need) or stream.available > searched:
                continue
            if stream.fault or not stream.available:
                return
            hit = len(stream.buf) - 1  # a last line without a newline
        searched = 0
        end = hit + 1
        line = stream.buf[stream.at : end]
        locator = stream.locate(start, end - stream.at)
        if not line.strip():
            item: Record | Loss | Skip = Skip(reason="blank", span=len(line), records=0)
        elif len(line) > options.max_record_bytes:
            detail = f"{len(line)} bytes, {above(options.max_record_bytes)}"
            item = Loss(locator=locator, reason="too_large", detail=detail)
        else:
            item = parse_line(line, locator, options)
        last = not line.endswith(b"\n")
        if last and isinstance(item, Loss) and _is_cut(item):
            item = Loss(locator=locator, reason="truncated_stream", detail=item.detail)
        stream.at = end
        yield stream.position, item


def _is_cut(loss: Loss) -> bool:
    """Whether a last line without its end lacks something; a whole value and more do not."""
    wrong = loss.reason in {"bad_json", "invalid_utf8"}
    return wrong and not loss.detail.startswith("Extra data")


def _nuls(stream: Stream) -> Framed:
    """Pass over NULs before a line, which a machine that went down leaves; the line is sound."""
    start = stream.position
    where = stream.locate(start)
    stream.discard(_OTHER, 0)
    detail = f"{stream.position - start} NULs where a line should start"
    return lost(stream, where, start, "bad_framing", detail)


def _too_large(stream: Stream, start: int, options: ReadOptions) -> Framed:
    where = stream.locate(start)
    if stream.discard(_NEWLINE, 0):
        stream.at += 1
    detail = f"{stream.position - start} bytes, {above(options.max_record_bytes)}"
    return lost(stream, where, start, "too_large", detail)


def parse_line(line: bytes, locator: Locator, options: ReadOptions) -> Record | Loss:
    """One line to a record."""
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        detail = f"byte {error.start} of the line: {error.reason}"
        return Loss(locator=locator, reason="invalid_utf8", detail=detail)
    text = text.removeprefix("\ufeff").strip(" \t\r\n")
    if not text:
        return Loss(locator=locator, reason="blank", kind="dropped")
    try:
        row = _DECODER.decode(text)
    except ValueError as error:
        return Loss(locator=locator, reason="bad_json", detail=str(error)[:200])
    except RecursionError:
        return Loss(locator=locator, reason="bad_json", detail=TOO_DEEP)
    if not isinstance(row, dict):
        detail = f"expected an object, found {type(row).__name__}"
        return Loss(locator=locator, reason="bad_schema", detail=detail)
    if text.count("[") + text.count("{") > MAX_DEPTH and _too_deep(row):
        return Loss(locator=locator, reason="bad_json", detail=TOO_DEEP)
    return make_record(row, text, locator, options)


def _too_deep(row: Mapping[str, Any]) -> bool:
    """Whether more than MAX_DEPTH objects and arrays (the row is one) lie in each other."""
    level: list[Any] = [row]
    for _ in range(MAX_DEPTH):
        inner = [v for o in level for v in (o.values() if isinstance(o, Mapping) else o)]
        level = [v for v in inner if isinstance(v, (dict, list, tuple))]
        if not level:
            return False
    return True


def make_record(
    row: Mapping[str, Any],
    raw: str,
    locator: Locator,
    options: ReadOptions,
    repairs: dict[str, int] | None = None,
) -> Record | Loss:
    """A row of named values to a record; `raw` is its text when no text field is asked for."""
    name = options.text_field
    if name is not None:
        if name not in row:
            detail = f"no field {name!r}; fields: {', '.join(sorted(row))[:200]}"
            return Loss(locator=locator, reason="bad_schema", detail=detail)
        text = row[name]
        if text is None:
            return Loss(locator=locator, reason="null_text", kind="dropped")
        if not isinstance(text, str):
            detail = f"field {name!r}: expected a string, found {type(text).__name__}"
            return Loss(locator=locator, reason="bad_schema", detail=detail)
        raw = text
    rest = {k: v for k, v in row.items() if k != name}
    url = _own(rest, options.url_field)
    identity = _own(rest, options.id_field)
    dates = [k for k in options.date_fields if isinstance(rest.get(k), str)]
    date = rest.pop(dates[0]) if dates else None
    return Record(
        locator=locator,
        text=raw,
        url=url,
        date=date,
        identity=identity,
        fields=rest,
        repairs=repairs or {},
    )


def _own(rest: dict[str, Any], name: str) -> str | None:
    """Take a string or whole number out of the row; any other value stays among the fields."""
    value = rest.get(name)
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        del rest[name]
        return str(value)
    return None
