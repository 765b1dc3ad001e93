"""Messages of a conversation to parts: who speaks, under which heading, what is said.

Messages are OpenAI's (`content`, `tool_calls`, the older `function_call`, `reasoning_content`),
Anthropic's (`content` as a list of `text`, `thinking`, `tool_use` and `tool_result`) or SWE-agent's
steps (`thought`, `action`, `observation`). What is not rendered is counted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

STEP = ("thought", "action", "observation")
LEGACY = "function_call"  # OpenAI's one call, before `tool_calls`
REASONING = ("reasoning_content", "reasoning", "thinking")  # vLLM and DeepSeek, OpenRouter, Ollama
TRAIN = "train"  # as `weight`, with true and false
#: Fields that name or date a message and say nothing in it; any other that is not read is counted.
LABELS = frozenset({"id", "name", "tool_call_id", "type", "model", "timestamp", "created_at"})
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
    """A turn, or within a turn a `call`, its `arguments`, `reasoning`, a `result`, more `text`."""

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
    reasoning: bool = True  # False: left out, and counted


def parts_of(messages: list[Any], fields: Fields, notes: Counter[str]) -> Iterator[Part]:
    """The parts of all messages, in order; MalformedError says which message is none.

    `notes` counts what is not rendered: `unread:NAME` (a field), `placeholder:TYPE` (content of
    an unknown type: `[TYPE]` stands in its place), `reasoning_dropped`, `reasoning_withheld` (a
    thought without a text).
    """
    for number, message in enumerate(messages):
        if not isinstance(message, Mapping):
            msg = f"message {number}: expected an object, found {type(message).__name__}"
            raise MalformedError(msg)
        if fields.role in message:
            yield from _message(message, fields, f"message {number}", notes)
        elif any(name in message for name in STEP):
            yield from _step(message, f"message {number}")
            _note_unread(message, STEP, notes)
        else:
            msg = f"message {number}: no {fields.role!r} and no {', '.join(STEP)}"
            raise MalformedError(msg)


def _message(
    message: Mapping[str, Any], fields: Fields, where: str, notes: Counter[str]
) -> Iterator[Part]:
    given = " ".join(_string(message[fields.role], f"{where}: {fields.role}").split())
    weight = all(_learnt(message.get(n), f"{where}: {n}") for n in (fields.weight, TRAIN))
    role = ROLES.get(given.lower(), given.lower())
    turn = Part(role, f"## {given}", [], weight=weight)
    open_ = turn  # takes the next text
    content = message.get(fields.content)
    thought = next((n for n in REASONING if _is_text(message.get(n))), None)
    pieces = content if isinstance(content, list) else [content]
    if thought and not any(_thought_of(p) == message[thought] for p in pieces):
        pieces = [{"type": "reasoning", "reasoning": message[thought]}, *pieces]
    held: list[Part] = []
    for piece in pieces:
        for part in _content(piece, f"{where}: {fields.content}", notes):
            if part.role == "reasoning" and not fields.reasoning:
                notes["reasoning_dropped"] += 1
            elif part.role != "text" or not part.weight:
                held.append(part._replace(weight=weight and part.weight))
                open_ = Part("text", "", [], weight=weight)
            elif part.said:
                if open_.role == "text" and not open_.said:
                    held.append(open_)
                open_.said.extend(part.said)
    yield turn
    yield from held
    calls = _parsed(message.get(fields.calls)) or []
    if not isinstance(calls, list):
        msg = f"{where}: {fields.calls} is a {type(calls).__name__}, not a list"
        raise MalformedError(msg)
    read = [fields.role, fields.content, fields.calls, fields.weight, TRAIN, thought]
    if not calls and message.get(LEGACY):
        calls = [_parsed(message[LEGACY])]
        read.append(LEGACY)
    for call in calls:
        for part in _call(call, f"{where}: {fields.calls}"):
            yield part._replace(weight=weight)
    _note_unread(message, read, notes)


def _note_unread(
    message: Mapping[str, Any], read: Iterable[str | None], notes: Counter[str]
) -> None:
    """Count fields that nothing reads and that hold text, or what may hold some."""
    for name, value in message.items():
        if (
            name not in read
            and name not in LABELS
            and value
            and not isinstance(value, (int, float))
        ):
            notes[f"unread:{name}"] += 1


def _learnt(value: Any, where: str) -> bool:
    """What a weight says: 0 and 1, as numbers, truth values or strings of them; None says 1."""
    word = value.strip().lower() if isinstance(value, str) else value
    if word in (None, 1, "1", "1.0", "true"):
        return True
    if word in (0, "0", "0.0", "false"):
        return False
    msg = f"{where}: found {value!r}; expected 0 or 1, true or false"
    raise MalformedError(msg)


def _parsed(value: Any) -> Any:
    """A list or an object that a source holds as JSON text; anything else as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def list_in(value: Any) -> list[Any] | None:
    """The list that a field holds, as such or as JSON text; None where it has none."""
    found = _parsed(value)
    return found if isinstance(found, list) else None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _thought_of(piece: Any) -> str | None:
    """The text of a block of reasoning; None for any other piece, or one without a text."""
    if not isinstance(piece, Mapping) or piece.get("type") not in ("thinking", "reasoning"):
        return None
    return next(
        (piece[n] for n in ("thinking", "reasoning", "text") if _is_text(piece.get(n))), None
    )


def _string(value: Any, where: str) -> str:
    if not isinstance(value, str):
        msg = f"{where}: expected a string, found {type(value).__name__}"
        raise MalformedError(msg)
    return value


def _content(piece: Any, where: str, notes: Counter[str]) -> Iterator[Part]:
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
    if (thought := _thought_of(piece)) is not None:
        yield Part("reasoning", "### reasoning", [thought])
    elif kind == "thinking":  # withheld: a signature alone
        notes["reasoning_withheld"] += 1
    elif kind == "tool_use":
        yield from _call(piece, where)
    elif kind == "tool_result":
        inner = piece.get("content")
        result = Part("result", "### result", [])
        for one in inner if isinstance(inner, list) else [inner]:
            for part in _content(one, where, notes):
                head = [f"{part.heading}{part.glue}".strip("\n")] if part.heading else []
                result.said.extend([*head, *part.said])
        yield result
    elif isinstance(piece.get("text"), str):
        yield from _content(piece["text"], where, notes)
    else:
        kind = " ".join(str(kind or "attachment").split())[:80]
        notes[f"placeholder:{kind}"] += 1
        yield Part("text", "", [f"[{kind}]"], weight=False)  # no assistant says that


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
