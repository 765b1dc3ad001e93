"""A small text grammar: frames with slots, alternations and English endings, from a seed.

A frame is text with `{slot}`, `{slot.form}` and `(this|that|)`; both nest. A slot is looked up in
what the caller has bound, then in the topic, then in the language. Random numbers come from
splitmix64, so the text does not depend on the Python version.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
HERE = Path(__file__).resolve().parent
_MASK = (1 << 64) - 1
_ARTICLE = re.compile(r"\b([Aa]) (?=(?:[aeio]|u(?!n[ai]|s|t))\w*)")
_START = re.compile(r"^\W*\w")
_VOWELS = "aeiou"


class Dice:
    """Random numbers from a string seed: splitmix64, the same on every Python."""

    def __init__(self, seed: str) -> None:
        self.state = int.from_bytes(seed.encode().ljust(8, b"\0")[:8], "little")
        for byte in seed.encode():
            self.state = ((self.state ^ byte) * 0x100000001B3) & _MASK

    def below(self, bound: int) -> int:
        """Give an integer in [0, bound)."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & _MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return (z ^ (z >> 31)) % bound

    def between(self, low: int, high: int) -> int:
        """Give an integer in [low, high]."""
        return low + self.below(high - low + 1)

    def pick(self, items: Sequence[T]) -> T:
        """Give one item."""
        return items[self.below(len(items))]

    def some(self, items: Sequence[T], count: int) -> list[T]:
        """Give `count` different items, in random order."""
        rest = list(items)
        return [rest.pop(self.below(len(rest))) for _ in range(min(count, len(rest)))]


def plural(noun: str) -> str:
    """`pear` to `pears`; an item `leaf/leaves` says its own."""
    one, _, many = noun.partition("/")
    if many:
        return many
    if one.endswith("y") and one[-2] not in _VOWELS:
        return one[:-1] + "ies"
    return one + ("es" if one.endswith(("s", "x", "ch", "sh")) else "s")


def verb(item: str, form: str) -> str:
    """Give base, `s`, `ed` or `ing` of `plan/planned/planning`, the last two optional."""
    parts = item.split("/")
    base, _, tail = parts[0].partition(" ")
    tail = f" {tail}" if tail else ""
    if form == "ed":
        if len(parts) > 1:
            return parts[1] + tail
        if base.endswith("y") and base[-2] not in _VOWELS:
            return base[:-1] + "ied" + tail
        return base + ("d" if base.endswith("e") else "ed") + tail
    if form == "ing":
        if len(parts) > 2:
            return parts[2] + tail
        return (
            (base[:-1] if base.endswith("e") and not base.endswith("ee") else base) + "ing" + tail
        )
    return plural(base) + tail if form == "s" else base + tail


class Grammar:
    """The frames and words of one language, read from `<code>.txt`."""

    def __init__(self, code: str) -> None:
        self.lists: dict[str, list[str]] = {}
        self.topics: dict[str, dict[str, list[str]]] = {}
        into: list[str] = []
        words = self.lists
        for raw in (HERE / f"{code}.txt").read_text(encoding="utf-8").splitlines():
            line = raw.strip()
            if not line or line.startswith("#"):
                continue
            if line.startswith("[topic "):
                words = self.topics.setdefault(line[7:-1], {})
            elif line.startswith("["):
                words = self.lists
                into = self.lists.setdefault(line[1:-1], [])
            elif words is self.lists:
                into.append(line)
            else:
                key, _, items = line.partition(":")
                words[key] = [item.strip() for item in items.split(",")]

    def say(self, frame: str, dice: Dice, topic: str | None = None, **bound: str) -> str:
        """Expand one frame to a sentence."""
        text, _ = self._expand(frame, 0, dice, self.topics.get(topic or "", {}), bound, "")
        text = re.sub(r" +", " ", text).strip()
        text = re.sub(r" ([,.;:?!])", r"\1", text)
        text = _ARTICLE.sub(r"\1n ", text) if self.topics else text
        return _START.sub(lambda match: match.group().upper(), text, count=1)

    def _slot(
        self, name: str, dice: Dice, words: dict[str, list[str]], bound: dict[str, str]
    ) -> str:
        key, _, form = name.partition(".")
        if key == "num":
            return str(dice.between(3, 97))
        if key == "year":
            return str(dice.between(1620, 2019))
        item = bound[key] if key in bound else dice.pick(words.get(key) or self.lists[key])
        if key in {"n", "w", "f", "g"}:
            return plural(item) if form else item.partition("/")[0]
        if key in {"v", "i"} and self.topics:
            return verb(item, form)
        if "{" in item or "(" in item:
            return self._expand(item, 0, dice, words, bound, "")[0]
        return item

    def _expand(
        self,
        text: str,
        at: int,
        dice: Dice,
        words: dict[str, list[str]],
        bound: dict[str, str],
        stop: str,
    ) -> tuple[str, int]:
        out: list[str] = []
        while at < len(text) and text[at] not in (stop or "\0"):
            char = text[at]
            if char == "{":
                end = text.index("}", at)
                out.append(self._slot(text[at + 1 : end], dice, words, bound))
                at = end + 1
            elif char == "(":
                options, at = _options(text, at)
                out.append(self._expand(dice.pick(options), 0, dice, words, bound, "")[0])
            else:
                out.append(char)
                at += 1
        return "".join(out), at


def _options(text: str, at: int) -> tuple[list[str], int]:
    """Split `(a|b(c|d))` at its own bars; give the options and where it ends."""
    options: list[str] = []
    depth, start = 0, at + 1
    for here in range(at, len(text)):
        char = text[here]
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if depth == 0:
                return [*options, text[start:here]], here + 1
        elif char == "|" and depth == 1:
            options.append(text[start:here])
            start = here + 1
    raise ValueError(f"unclosed parenthesis in frame {text!r}")
