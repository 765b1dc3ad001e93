"""Runs of coding agents to text: every message under a line with its role.

    ## assistant
    I will look at the tests first.

    ### call: bash
    {"command": "ls tests"}

    ## tool
    test_a.py

Messages are OpenAI's (`content`, `tool_calls`), Anthropic's (`content` as a list of `text`,
`tool_use` and `tool_result`) or SWE-agent's steps (`thought`, `action`, `observation`). Role lines
are plain text here; a renderer that knows a tokenizer puts control tokens in their place by id.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...documents.records import Draft, Loss, Record, Skip
from .cleaning import clean_text, clean_values
from .plain import make_draft

_STEP = ("thought", "action", "observation")


class _MalformedError(Exception):
    """A message that is none; the text says what was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """One document per run.

    The first of `messages` (dotted paths into the row) that is a list is rendered; a row without
    any is taken by its `text_field`, a log that is text already. Read such sources with
    `text_field: null`, so that rows without a text come through. Losses: `bad_schema`, and
    `no_text` (`dropped`). `outcome` fields that the row has stand in the metadata.
    """

    name: ClassVar[str] = "trajectory"
    revision: ClassVar[int] = 1

    messages: tuple[str, ...] = (
        "messages",
        "history",
        "traj.history",
        "trajectory",
        "traj.trajectory",
    )
    text_field: str = "text"
    role_field: str = "role"
    content_field: str = "content"
    calls_field: str = "tool_calls"
    outcome: tuple[str, ...] = (
        "outcome",
        "resolved",
        "meta.resolved",
        "meta.test_outcome",
        "info.exit_status",
        "traj.info.exit_status",
    )

    def __call__(self, items: Iterator[Record | Loss | Skip]) -> Iterator[Draft | Loss | Skip]:
        """Losses and skips of the reader pass through."""
        for item in items:
            yield self._run(item) if isinstance(item, Record) else item

    def _run(self, record: Record) -> Draft | Loss:
        used, found = self._messages(record.fields)
        try:
            if isinstance(found, list):
                raw = self._render(found)
                count = len(found)
            else:
                raw = self._log(record)
                count = 0
        except _MalformedError as error:
            return Loss(locator=record.locator, reason="bad_schema", detail=str(error)[:300])
        text, repairs = clean_text(raw)
        if not text.strip():
            return Loss(locator=record.locator, reason="no_text", kind="dropped")
        # What was rendered is in the text; the other forms of the same run would only repeat it.
        rest = {
            k: v
            for k, v in record.fields.items()
            if k != self.text_field and k not in {p.partition(".")[0] for p in self.messages}
        }
        metadata = clean_values(rest)
        outcome = {p: v for p in self.outcome if (v := _at(record.fields, p)) is not None}
        if outcome:
            metadata["outcome"] = clean_values(outcome)
        if used:
            metadata |= {"rendered": used, "messages": count}
        return make_draft(record, text, metadata, repairs)

    def _messages(self, fields: Mapping[str, Any]) -> tuple[str, Any]:
        for path in self.messages:
            if isinstance(found := _at(fields, path), list):
                return path, found
        return "", None

    def _log(self, record: Record) -> str:
        """The text of a run without messages: the text field, or the record's own text."""
        if isinstance(text := record.fields.get(self.text_field), str):
            return text
        if record.text is None or record.text.lstrip()[:1] == "{":  # the row itself
            found = ", ".join(sorted(record.fields))
            msg = f"no list under {', '.join(self.messages)} and no text; fields: {found}"
            raise _MalformedError(msg)
        return record.text

    def _render(self, messages: list[Any]) -> str:
        blocks: list[str] = []
        for number, message in enumerate(messages):
            if not isinstance(message, Mapping):
                msg = f"message {number}: expected an object, found {type(message).__name__}"
                raise _MalformedError(msg)
            if self.role_field in message:
                blocks += self._message(message, number)
            elif any(name in message for name in _STEP):
                blocks += _step(message, number)
            else:
                msg = f"message {number}: no {self.role_field!r} and no {', '.join(_STEP)}"
                raise _MalformedError(msg)
        return "\n\n".join(blocks) + "\n" if blocks else ""

    def _message(self, message: Mapping[str, Any], number: int) -> Iterator[str]:
        role = _string(message[self.role_field], f"message {number}: {self.role_field}")
        yield f"## {' '.join(role.split())}"
        content = message.get(self.content_field)
        for part in content if isinstance(content, list) else [content]:
            yield from _part(part, f"message {number}: {self.content_field}")
        calls = message.get(self.calls_field) or []
        if not isinstance(calls, list):
            msg = f"message {number}: {self.calls_field} is a {type(calls).__name__}, not a list"
            raise _MalformedError(msg)
        for call in calls:
            yield from _call(call, f"message {number}: {self.calls_field}")


def _at(fields: Mapping[str, Any], path: str) -> Any:
    value: Any = fields
    for name in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def _string(value: Any, where: str) -> str:
    if not isinstance(value, str):
        msg = f"{where}: expected a string, found {type(value).__name__}"
        raise _MalformedError(msg)
    return value


def _part(part: Any, where: str) -> Iterator[str]:
    """One piece of a message's content."""
    if part is None or part == "":
        return
    if isinstance(part, str):
        yield part.strip("\n")
        return
    if not isinstance(part, Mapping):
        msg = f"{where}: expected text or an object, found {type(part).__name__}"
        raise _MalformedError(msg)
    kind = part.get("type")
    if kind == "tool_use":
        yield from _call(part, where)
    elif kind == "tool_result":
        inner = part.get("content")
        yield "### result"
        for piece in inner if isinstance(inner, list) else [inner]:
            yield from _part(piece, where)
    elif isinstance(part.get("text"), str):
        yield from _part(part["text"], where)
    else:
        yield f"[{kind or 'attachment'}]"


def _call(call: Any, where: str) -> Iterator[str]:
    """A tool call: its name and its arguments as they stood, or as JSON."""
    if not isinstance(call, Mapping):
        msg = f"{where}: expected an object, found {type(call).__name__}"
        raise _MalformedError(msg)
    inner = call.get("function")
    function = inner if isinstance(inner, Mapping) else call
    name = _string(function.get("name"), f"{where}: name")
    arguments = function.get("arguments", function.get("input"))
    yield f"### call: {' '.join(name.split())}"
    if arguments not in (None, ""):
        plain = arguments if isinstance(arguments, str) else _json(arguments)
        yield plain.strip("\n")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _step(message: Mapping[str, Any], number: int) -> Iterator[str]:
    for name, head in zip(_STEP, ("## assistant", "### call", "## tool"), strict=True):
        value = message.get(name)
        if value in (None, ""):
            continue
        yield head
        yield _string(value, f"message {number}: {name}").strip("\n")
