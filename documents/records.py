"""What readers and converters hand on: records, drafts of documents, and losses.

Readers turn stored bytes into `Record`, `Loss` and `Skip`; converters turn records into `Draft` and
`Loss`. Every one carries the decoded bytes that it covers, so that the reader's account is a sum.

What a reader has let go of is its taker's alone to change. None is frozen: a frozen dataclass sets
each field by a call, and reading makes several of these for every record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


@dataclass(slots=True)
class Locator:
    """The way back to the raw record; fields as in `documents.schema`."""

    file: str
    offset: int  # bytes, in the stored file
    inner: int = 0  # bytes after decoding from `offset` (Parquet: row in the row group)
    span: int = 0  # decoded bytes


@dataclass(slots=True, kw_only=True)
class Record:
    """One raw record. Exactly one of `body` (bytes to extract from) and `text` is set."""

    locator: Locator
    body: bytes | None = None
    text: str | None = None
    media_type: str = ""  # of `body`, lower case, without parameters: `text/html`
    charset: str = ""  # as the transport stated it, or empty
    url: str | None = None
    date: str | None = None  # ISO 8601 as the source gave it
    identity: str | None = None  # the record's own id: WARC-Record-ID, `id` field, path in a repo
    fields: Mapping[str, Any] = field(default_factory=dict)  # what else the source gave
    utf8: bytes | None = None  # `text` as UTF-8, from where that is known without encoding it
    repairs: Mapping[str, int] = field(default_factory=dict)  # what the reader changed, by kind


@dataclass(slots=True, kw_only=True)
class Loss:
    """A record, or a stretch of bytes, that did not become a document: a row in the books."""

    locator: Locator
    reason: str  # snake_case, from a closed list beside the code that raises it
    detail: str = ""
    kind: str = "fault"  # `fault`: damage, counts against max_loss; `dropped`: a rule
    url: str | None = None  # where the record stated one: `why URL` finds it
    records: int = 1  # in it, where that is known (a Parquet row group: its rows)


@dataclass(slots=True, kw_only=True)
class Skip:
    """Bytes that are not meant to be documents (warcinfo, requests, padding): counted by reason."""

    reason: str
    span: int  # decoded bytes
    records: int = 1


class Turn(NamedTuple):
    """A part of a conversation in a text, or of a turn in it: `[start, body)` is its heading.

    Roles are `system`, `user`, `assistant`, `tool` and whatever a source has beside them; within a
    turn `call` (a tool's name) and its `arguments`, `result` (of a tool, in a user's turn),
    `reasoning`.
    """

    role: str
    start: int  # bytes of UTF-8, as are all three
    body: int
    stop: int
    trained: bool


@dataclass(slots=True, kw_only=True)
class Draft:
    """A document before it has an id. `repairs` counts what the text policy changed, by kind."""

    locator: Locator
    text: str
    url: str | None = None
    date: str | None = None
    license: str | None = None
    identity: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    repairs: Mapping[str, int] = field(default_factory=dict)
    records: int = 1  # raw records that went into it (a repository bundle: its files)
    utf8: bytes | None = None  # `text` as UTF-8, from where that is known without encoding it
    turns: tuple[Turn, ...] | None = None  # of a conversation, in order and apart
