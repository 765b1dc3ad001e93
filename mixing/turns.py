r"""Turns of conversations to segments of text and control ids: what a recipe's `turns` says.

    turns:
      preset: chatml              # or `gristmill`, for our own tokenizer
      call: {head: ["<tool_call>", {text: "\n"}], tail: [{text: "\n"}, "</tool_call>"]}
      loss: assistant             # or `all`

A role has a `head` and a `tail`, lists whose strings are *names of control tokens*, looked up in
the tokenizer, and whose `{text: ...}` are encoded as text, `{role}` in it being the turn's role.
A name that the tokenizer does not have is an error, never text; and text that spells a control
token stays text, in documents as in a template. `call`, `arguments`, `result`, `reasoning` and
`text` stand within a turn; without an entry they get nothing around them. `other` is for any role
without one.

The head of a turn is given to a model when it is to speak, so no target; its tail is one where the
turn is, or it never learns to stop. Within an assistant's turn the heads of calls are targets too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..documents.errors import StopError, UsageError, did_you_mean

#: 1: within a turn, 2: within a call.
LEVELS: Final = {"call": 1, "result": 1, "text": 1, "reasoning": 1, "arguments": 2}
LOSSES: Final = ("assistant", "all")
OTHER: Final = "other"
Item = tuple[str, str]  # ("token", name) or ("text", text)
PRESETS: Final[Mapping[str, Mapping[str, Any]]] = {
    "gristmill": {
        "system": {"head": ["<|system|>"], "tail": ["<|end_of_turn|>"]},
        "user": {"head": ["<|user|>"], "tail": ["<|end_of_turn|>"]},
        "assistant": {"head": ["<|assistant|>"], "tail": ["<|end_of_turn|>"]},
        "tool": {"head": ["<|tool_result|>"], "tail": ["<|end_of_turn|>"]},
        # Our tokenizer names no end of these; by its reserved ids they are parsed back from ids.
        "call": {"head": ["<|tool_call|>"], "tail": ["<|reserved_0|>"]},
        "arguments": {"head": [{"text": "\n"}]},
        "result": {"head": ["<|tool_result|>"], "tail": ["<|reserved_1|>"]},
        "reasoning": {"head": ["<|reserved_2|>"], "tail": ["<|reserved_3|>"]},
        "other": {"head": ["<|user|>", {"text": "{role}\n"}], "tail": ["<|end_of_turn|>"]},
    },
    "chatml": {
        "other": {
            "head": ["<|im_start|>", {"text": "{role}\n"}],
            "tail": ["<|im_end|>", {"text": "\n"}],
        },
        "call": {"head": [{"text": "\n<tool_call>\n"}], "tail": [{"text": "\n</tool_call>"}]},
        "arguments": {"head": [{"text": "\n"}]},
        "result": {
            "head": [{"text": "\n<tool_response>\n"}],
            "tail": [{"text": "\n</tool_response>"}],
        },
        "reasoning": {"head": [{"text": "<think>\n"}], "tail": [{"text": "\n</think>\n\n"}]},
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What stands before and after what a role says."""

    head: tuple[Item, ...] = ()
    tail: tuple[Item, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSpec:
    """A recipe's `turns`, parsed; `loss: all` leaves no token out."""

    roles: Mapping[str, Around]
    loss: str = "assistant"

    @staticmethod
    def parse(value: Any, where: str = "turns") -> TurnSpec:
        """Read a recipe's mapping, or the name of a preset; UsageError names the field."""
        given = {"preset": value} if isinstance(value, str) else value
        if not isinstance(given, Mapping):
            raise UsageError(f"{where}: found {value!r}; expected a preset or roles")
        roles = {str(k): v for k, v in given.items()}
        preset = roles.pop("preset", None)
        if preset is not None and preset not in PRESETS:
            hint = did_you_mean(str(preset), PRESETS)
            raise UsageError(f"{where}.preset: no preset {preset!r}{hint}")
        loss = roles.pop("loss", "assistant")
        if loss not in LOSSES:
            raise UsageError(f"{where}.loss: found {loss!r}; expected one of {', '.join(LOSSES)}")
        merged = {**PRESETS.get(preset or "", {}), **roles}
        if not merged:
            raise UsageError(f"{where}: names no role; expected a preset or `role: {{head, tail}}`")
        return TurnSpec(
            roles={role: _around(body, f"{where}.{role}") for role, body in merged.items()},
            loss=loss,
        )


def _around(value: Any, where: str) -> Around:
    if not isinstance(value, Mapping):
        raise UsageError(f"{where}: found {value!r}; expected {{head: [...], tail: [...]}}")
    for key in value:
        if key not in ("head", "tail"):
            raise UsageError(
                f"{where}.{key}: unknown field{did_you_mean(str(key), ('head', 'tail'))}"
            )
    return Around(**{k: _items(v, f"{where}.{k}") for k, v in value.items()})


def _items(value: Any, where: str) -> tuple[Item, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise UsageError(
            f"{where}: found {value!r}; expected a list of control tokens and {{text: ...}}"
        )
    found: list[Item] = []
    for each in value:
        if isinstance(each, str) and each:
            found.append(("token", each))
        elif isinstance(each, Mapping) and set(each) == {"text"} and isinstance(each["text"], str):
            found.append(("text", each["text"]))
        else:
            raise UsageError(f"{where}: found {each!r}; expected a control token or {{text: ...}}")
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Run:
    """A document as segments: `spans` of its text, and the ids before each and after the last.

    `placed[i]` stands before span i, `placed[-1]` after all; each is a list of (id, learnt).
    """

    spans: list[tuple[int, int]]  # bytes
    learnt: list[bool]  # by span
    placed: list[list[tuple[int, bool]]]


class Renderer:
    """Lays out turns with the ids of one tokenizer."""

    def __init__(
        self, spec: TurnSpec, controls: Mapping[str, int], encode: Callable[[str], list[int]]
    ) -> None:
        """`controls`: ids by name; `encode`: ids of a text. UsageError for an unknown name."""
        self.spec = spec
        self._encode = encode
        self._ids: dict[tuple[str, str], tuple[list[int], list[int]]] = {}
        for role, around in spec.roles.items():
            for kind, name in (*around.head, *around.tail):
                if kind == "token" and name not in controls:
                    known = ", ".join(sorted(controls)[:20]) or "none"
                    raise UsageError(
                        f"turns.{role}: the tokenizer has no control token {name!r}"
                        f"{did_you_mean(name, controls)}; it has: {known}. Text stands as "
                        "`{text: ...}`"
                    )
        self._controls = controls

    def around(self, role: str) -> tuple[list[int], list[int]]:
        """Ids before and after what a role says. StopError for a role that nothing is said of."""
        spec = self.spec.roles
        used = role if role in spec or role in LEVELS else OTHER
        if used not in spec and used not in LEVELS:
            raise StopError(
                f"a run has turns of role {role!r}, and the recipe's turns say nothing of it; "
                f"state turns.{role} or turns.{OTHER}"
            )
        if (used, role) not in self._ids:
            found = spec.get(used, Around())
            self._ids[used, role] = self._ids_of(found.head, role), self._ids_of(found.tail, role)
        return self._ids[used, role]

    def _ids_of(self, items: tuple[Item, ...], role: str) -> list[int]:
        out: list[int] = []
        for kind, value in items:
            if kind == "token":
                out.append(self._controls[value])
            else:
                out += self._encode(value.replace("{role}", role))
        return out

    def lay_out(self, turns: Sequence[Mapping[str, Any]]) -> Run:
        """A document's turns (`documents.schema.TURN`), in order; those cut whole are not there."""
        run = Run([], [], [])
        everything = self.spec.loss == "all"
        held: list[tuple[int, bool]] = []  # ids before the next span
        open_: list[tuple[int, list[int], bool]] = []  # level, tail, learnt

        def close(level: int) -> None:
            while open_ and open_[-1][0] >= level:
                _, tail, learnt = open_.pop()
                held.extend((i, learnt) for i in tail)

        def begin(role: str, learnt: bool) -> None:
            level = LEVELS.get(role, 0)
            close(level)
            head, tail = self.around(role)
            held.extend((i, learnt and (level > 0 or everything)) for i in head)
            open_.append((level, tail, learnt))

        for turn, alive in zip(turns, _alive(turns), strict=True):
            if not alive:
                continue
            role, learnt = turn["role"], everything or bool(turn["trained"])
            if role in LEVELS and not open_:
                begin("assistant" if turn["trained"] else "user", learnt)
            begin(role, learnt)
            run.placed.append(held)
            held = []
            run.spans.append((turn["body"], turn["stop"]))
            run.learnt.append(learnt)
        close(0)
        run.placed.append(held)
        return run


def _alive(turns: Sequence[Mapping[str, Any]]) -> list[bool]:
    """Which parts have bytes left, themselves or within them."""
    out = []
    inner = [False] * (max(LEVELS.values()) + 2)  # by level: is one alive, up to the next above it
    for turn in reversed(turns):
        level = LEVELS.get(turn["role"], 0)
        alive = turn["stop"] > turn["start"] or any(inner[level + 1 :])
        inner[level + 1 :] = [False] * len(inner[level + 1 :])
        inner[level] = inner[level] or alive
        out.append(alive)
    return out[::-1]
