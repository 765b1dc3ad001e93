"""Messages of a conversation to parts: who speaks, under which heading, what is said.

Messages are OpenAI's (`content`, `tool_calls`), Anthropic's (`content` as a list of `text`,
`tool_use` and `tool_result`) or SWE-agent's steps (`thought`, `action`, `observation`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

STEP = ("thought", "action", "observation")
#: What sources call the four roles; any other name stays as it is.
ROLES = {
    "human": "user",
    "gpt": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "function": "tool",
    "observation": "tool",
    "developer": "system",
}


class MalformedError(Exception):
    """A message that is none; the text says what was found."""


class Part(NamedTuple):
    """A turn, or within a turn a `call`, its `arguments`, a `result`, or more `text`."""

    role: str
    heading: str
    said: list[str]
    glue: str = "\n\n"  # between the heading and what is said
    weight: bool = True  # False: the source says that nobody is to learn it


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """The names of a message's fields."""

    role: str
    content: str
    calls: str
    weight: str


def parts_of(messages: list[Any], fields: Fields) -> Iterator[Part]:
    """The parts of all messages, in order; MalformedError says which message is none."""
    for number, message in enumerate(messages):
        if not isinstance(message, Mapping):
            msg = f"message {number}: expected an object, found {type(message).__name__}"
            raise MalformedError(msg)
        if fields.role in message:
            yield from _message(message, fields, f"message {number}")
        elif any(name in message for name in STEP):
            yield from _step(message, f"message {number}")
        else:
            msg = f"message {number}: no {fields.role!r} and no {', '.join(STEP)}"
            raise MalformedError(msg)


def _message(message: Mapping[str, Any], fields: Fields, where: str) -> Iterator[Part]:
    given = " ".join(_string(message[fields.role], f"{where}: {fields.role}").split())
    weight = message.get(fields.weight) != 0
    role = ROLES.get(given.lower(), given.lower())
    turn = Part(role, f"## {given}", [], weight=weight)
    open_ = turn  # takes the next text
    content = message.get(fields.content)
    held: list[Part] = []
    for piece in content if isinstance(content, list) else [content]:
        for part in _content(piece, f"{where}: {fields.content}"):
            if part.role != "text":
                held.append(part._replace(weight=weight))
                open_ = Part("text", "", [], weight=weight)
            elif part.said:
                if open_.role == "text" and not open_.said:
                    held.append(open_)
                open_.said.extend(part.said)
    yield turn
    yield from held
    calls = message.get(fields.calls) or []
    if not isinstance(calls, list):
        msg = f"{where}: {fields.calls} is a {type(calls).__name__}, not a list"
        raise MalformedError(msg)
    for call in calls:
        for part in _call(call, f"{where}: {fields.calls}"):
            yield part._replace(weight=weight)


def _string(value: Any, where: str) -> str:
    if not isinstance(value, str):
        msg = f"{where}: expected a string, found {type(value).__name__}"
        raise MalformedError(msg)
    return value


def _content(piece: Any, where: str) -> Iterator[Part]:
    """One piece of a message's content."""
    if piece is None or piece == "":
        return
    if isinstance(piece, str):
        yield Part("text", "", [piece])
        return
    if not isinstance(piece, Mapping):
        msg = f"{where}: expected text or an object, found {type(piece).__name__}"
        raise MalformedError(msg)
    kind = piece.get("type")
    if kind == "tool_use":
        yield from _call(piece, where)
    elif kind == "tool_result":
        inner = piece.get("content")
        result = Part("result", "### result", [])
        for one in inner if isinstance(inner, list) else [inner]:
            for part in _content(one, where):
                head = [f"{part.heading}{part.glue}".strip("\n")] if part.heading else []
                result.said.extend([*head, *part.said])
        yield result
    elif isinstance(piece.get("text"), str):
        yield from _content(piece["text"], where)
    else:
        yield Part("text", "", [f"[{kind or 'attachment'}]"])


def _call(call: Any, where: str) -> Iterator[Part]:
    """A tool call: its name and its arguments as they stood, or as JSON."""
    if not isinstance(call, Mapping):
        msg = f"{where}: expected an object, found {type(call).__name__}"
        raise MalformedError(msg)
    inner = call.get("function")
    function = inner if isinstance(inner, Mapping) else call
    name = _string(function.get("name"), f"{where}: name")
    yield Part("call", "### call: ", [" ".join(name.split())], glue="")
    arguments = function.get("arguments", function.get("input"))
    if arguments not in (None, ""):
        plain = arguments if isinstance(arguments, str) else _json(arguments)
        yield Part("arguments", "", [plain], glue="")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _step(message: Mapping[str, Any], where: str) -> Iterator[Part]:
    thought, action, seen = (message.get(name) for name in STEP)
    if thought not in (None, "") or action not in (None, ""):
        said = [_string(thought, f"{where}: thought")] if thought not in (None, "") else []
        yield Part("assistant", "## assistant", said)
    if action not in (None, ""):
        yield Part("call", "### call", [])
        yield Part("arguments", "", [_string(action, f"{where}: action")], glue="")
    if seen not in (None, ""):
        yield Part("tool", "## tool", [_string(seen, f"{where}: observation")])
