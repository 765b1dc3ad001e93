"""Runs of coding agents to text: every message under a line with its role.

    ## assistant
    I will look at the tests first.

    ### call: bash
    {"command": "ls tests"}

    ## tool
    test_a.py

The lines are for people, filters and duplicates. Where turns begin and end stands beside the text
(`Draft.turns`): the tokens step puts control tokens in place of the lines, by id, and keeps all but
the assistant's turns out of the loss (`turns` in a recipe).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ...documents.errors import UsageError, did_you_mean
from ...documents.files import files_field
from ...documents.records import Draft, Loss, Record, Skip, Turn
from .cleaning import clean_text, clean_values
from .held import HeldOut
from .messages import Fields, MalformedError, Part, list_in, parts_of
from .outcomes import said_outcome
from .plain import make_draft
from .tools import Tools

_OUTCOMES = ("any", "not_failed", "verified")
_BAD_CALLS = ("keep", "untrained", "drop")
_REASONING = ("keep", "drop")
_LEARNT = frozenset({"assistant"})


class _DroppedError(Exception):
    """A run that a rule leaves out: reason and detail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """One document per run, with its turns.

    The first of `messages` (dotted paths into the row) that is a list is rendered, or the JSON text
    of one; a row without any is taken by its `text_field`, a log that is text already. Read such
    sources with `text_field: null`, so that rows without a text come through. Losses: `bad_schema`,
    and (`dropped`) `no_text`; `held_out`, a run on a repository of a benchmark (`benchmarks`: lists
    that ship, `held_out`: files of `owner/name` lines); `failed` and `unverified` by `outcome`;
    `bad_call` where `bad_calls: drop`.

    `outcome`: `any` keeps all runs, `not_failed` drops those whose `outcome_fields` say that they
    failed, `verified` also those of which none says that they did well. Words (`resolved`,
    `passed`, `yes`), 1 and 0 as numbers, text or truth values say so, or an object that has one
    under `resolved`, `outcome` and the like (`outcomes.py`); 0.5 and `submitted` say neither.

    `bad_calls`: a call is bad when the row lists `tools` and the call names none of them, or its
    arguments are no JSON object or break the tool's schema; `untrained` keeps such a call in
    sight and out of the loss. The metadata count calls by what was found.

    Turns are trained if they are the assistant's and neither the message's `weight_field` nor its
    `train` is 0 (`0`, `false`, `"0"`; a weight between is `bad_schema`). An assistant's turn that
    says and calls nothing is none. `reasoning: drop` leaves out what a model thought
    (`reasoning_content`, blocks of `thinking`). `not_rendered` in the metadata counts what did not
    come through: `empty_turn`, `reasoning_dropped`, `unread:FIELD` of messages, `placeholder:TYPE`
    of content that is no text, which is never a target; `repairs` have their sum.
    """

    name: ClassVar[str] = "trajectory"
    revision: ClassVar[int] = 3

    messages: tuple[str, ...] = (
        "messages",
        "history",
        "traj.history",
        "trajectory",
        "traj.trajectory",
    )
    text_field: str = "text"  # of a row without messages: a run as text
    role_field: str = "role"  # of a message: who speaks
    content_field: str = "content"  # of a message: what is said
    calls_field: str = "tool_calls"  # of a message: its calls
    weight_field: str = "weight"  # of a message: 0 is no target
    reasoning: str = "keep"  # or "drop": what a model thought
    outcome_fields: tuple[str, ...] = (
        "outcome",
        "resolved",
        "reward",
        "meta.resolved",
        "meta.test_outcome",
        "info.exit_status",
        "traj.info.exit_status",
    )
    outcome: str = "any"  # or "not_failed", or "verified": which runs stay
    tools_field: str = "tools"  # of a row: schemas that calls are held against
    bad_calls: str = "keep"  # or "untrained": no targets; or "drop": the run
    repo_fields: tuple[str, ...] = ("repo", "instance_id", "meta.instance_id")
    benchmarks: tuple[str, ...] = ("swe_bench",)  # runs on repositories of these are held out
    held_out: tuple[Path, ...] = files_field()  # and on those named here, one a line

    def __post_init__(self) -> None:
        for name, value, known in (
            ("outcome", self.outcome, _OUTCOMES),
            ("bad_calls", self.bad_calls, _BAD_CALLS),
            ("reasoning", self.reasoning, _REASONING),
        ):
            if value not in known:
                msg = f"{name}: found {value!r}; expected one of {', '.join(known)}"
                raise UsageError(msg + did_you_mean(value, known))
        HeldOut.check(self.benchmarks)

    @property
    def libraries(self) -> tuple[str, ...]:
        """Those whose version bears on what comes out, beside the reader's."""
        return () if self.bad_calls == "keep" else ("jsonschema-rs",)

    def __call__(self, items: Iterator[Record | Loss | Skip]) -> Iterator[Draft | Loss | Skip]:
        """Losses and skips of the reader pass through."""
        held = HeldOut.of(self.benchmarks, self.held_out)
        for item in items:
            yield self._run(item, held) if isinstance(item, Record) else item

    def _run(self, record: Record, held: HeldOut) -> Draft | Loss:
        notes: Counter[str] = Counter()
        try:
            self._rules(record.fields, held)
            used, found = self._messages(record.fields)
            if not used:
                text, repairs = clean_text(self._log(record))
                turns, calls = None, Counter[str]()
            else:
                parts, calls = self._checked(parts_of(found, self._names(), notes), record.fields)
                text, turns, repairs = rendered(parts, notes)
        except MalformedError as error:
            return Loss(locator=record.locator, reason="bad_schema", detail=str(error)[:300])
        except _DroppedError as error:
            reason, detail = error.args
            return Loss(locator=record.locator, reason=reason, detail=detail, kind="dropped")
        if not text.strip():
            return Loss(locator=record.locator, reason="no_text", kind="dropped")
        # What was rendered is in the text; the other forms of the same run would only repeat it.
        rest = {
            k: v
            for k, v in record.fields.items()
            if k != self.text_field and k not in {p.partition(".")[0] for p in self.messages}
        }
        metadata = clean_values(rest)
        outcome = {p: v for p in self.outcome_fields if (v := at(record.fields, p)) is not None}
        if outcome:
            metadata["outcome"] = clean_values(outcome)
        if used:
            metadata |= {"rendered": used, "messages": len(found)}
        if calls:
            metadata["calls"] = dict(sorted(calls.items()))
        if notes:
            metadata["not_rendered"] = clean_values(dict(sorted(notes.items())))
            repairs["not_rendered"] = notes.total()
        draft = make_draft(record, text, metadata, repairs)
        draft.turns = turns
        return draft

    def _names(self) -> Fields:
        return Fields(
            role=self.role_field,
            content=self.content_field,
            calls=self.calls_field,
            weight=self.weight_field,
            reasoning=self.reasoning == "keep",
        )

    def _rules(self, fields: Mapping[str, Any], held: HeldOut) -> None:
        if name := held.found(at(fields, path) for path in self.repo_fields):
            raise _DroppedError("held_out", name)
        if self.outcome == "any":
            return
        stated = {path: at(fields, path) for path in self.outcome_fields}
        good, why = said_outcome(stated)
        if good is False:
            raise _DroppedError("failed", why)
        if good is None and self.outcome == "verified":
            raise _DroppedError("unverified", why)

    def _messages(self, fields: Mapping[str, Any]) -> tuple[str, list[Any]]:
        for path in self.messages:
            if (found := list_in(at(fields, path))) is not None:
                return path, found
        return "", []

    def _log(self, record: Record) -> str:
        """The text of a run without messages: the text field, or the record's own text."""
        if isinstance(text := record.fields.get(self.text_field), str):
            return text
        if record.text is None or record.text.lstrip()[:1] == "{":  # the row itself
            found = ", ".join(sorted(record.fields))
            msg = f"no list under {', '.join(self.messages)} and no text; fields: {found}"
            raise MalformedError(msg)
        return record.text

    def _checked(
        self, parts: Iterable[Part], fields: Mapping[str, Any]
    ) -> tuple[list[Part], Counter[str]]:
        """The parts, bad calls marked; how many calls were good, bad by kind, or not checked."""
        parts, counts = list(parts), Counter[str]()
        if self.bad_calls == "keep":
            return parts, counts
        tools = Tools.of(at(fields, self.tools_field))
        for i, part in enumerate(parts):
            if part.role != "call":
                continue
            more = parts[i + 1] if i + 1 < len(parts) else None
            more = more if more is not None and more.role == "arguments" else None
            kind, why = tools.look(part.said, "" if more is None else more.said[0])
            counts[kind] += 1
            if kind not in ("good", "unchecked"):
                if self.bad_calls == "drop":
                    raise _DroppedError("bad_call", f"{kind}: {why}")
                parts[i] = part._replace(weight=False)
                if more is not None:
                    parts[i + 1] = more._replace(weight=False)
        return parts, counts


def rendered(
    parts: Iterable[Part], notes: Counter[str]
) -> tuple[str, tuple[Turn, ...], dict[str, int]]:
    """The text of parts, cleaned, where each stands in it, and what cleaning repaired.

    An assistant's turn without a word or a call is left out: a model would learn to say nothing.
    """
    blocks: list[str] = []
    turns: list[Turn] = []
    repairs: Counter[str] = Counter()
    size = 0  # bytes of the blocks
    speaker = False  # is it the assistant that speaks
    cleaned = [_cleaned(part, repairs) for part in parts]
    for i, (part, heading, body) in enumerate(cleaned):
        if part.role not in _INNER:
            speaker = part.role in _LEARNT
        glue = part.glue if heading and body else ""
        if not body and (not heading or part.role == "reasoning"):
            continue
        if part.role in _LEARNT and not body and not _has_inner(cleaned, i):
            notes["empty_turn"] += 1
            continue
        start = size + 2 if blocks else 0
        at_body = start + len((heading + glue).encode())
        size = at_body + len(body.encode())
        turns.append(Turn(part.role, start, at_body, size, speaker and part.weight))
        blocks.append(heading + glue + body)
    return "\n\n".join(blocks) + "\n" if blocks else "", tuple(turns), dict(repairs)


def _cleaned(part: Part, repairs: Counter[str]) -> tuple[Part, str, str]:
    """A part with its heading and what is said."""
    heading, mended = clean_text(part.heading)
    repairs.update(mended)
    said = []
    for piece in part.said:
        text, mended = clean_text(piece)
        repairs.update(mended)
        if (text := text.strip("\n")).strip():
            said.append(text)
    return part, heading, "\n\n".join(said)


def _has_inner(cleaned: list[tuple[Part, str, str]], turn: int) -> bool:
    """Does a turn hold a call or anything else that is not empty."""
    for part, heading, body in cleaned[turn + 1 :]:
        if part.role not in _INNER:
            return False
        if body or (heading and part.role == "call"):
            return True
    return False


_INNER = frozenset({"call", "arguments", "result", "text", "reasoning"})


def at(fields: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path, None where there is none."""
    value: Any = fields
    for name in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value
