"""Rewritings that add or take no knowledge: what a head's score does under them."""

from __future__ import annotations

import random
from collections.abc import Callable

_STUFFING = (
    "learn education science theory definition example explanation students research history "
    "chapter concept analysis principle knowledge method experiment evidence function system "
)
_TEXTBOOK = (
    "In this section we define the main concept and work through an example. Recall that a "
    "function "
    "assigns to each element of one set exactly one element of another. The evidence for the "
    "theory "
    "comes from several experiments, which are described below.\n\n"
)
_CHROME = (
    "\nHome | About us | Contact | Privacy policy | Terms of use\nShare this page\nSign up for our "
    "newsletter\nWe use cookies to improve your experience. Accept all\n"
)


def _shuffled(text: str) -> str:
    words = text.split()
    random.Random(len(words)).shuffle(words)  # noqa: S311 - a fixed permutation
    return " ".join(words)


def _headings(text: str) -> str:
    parts = [p for p in text.split("\n\n") if p.strip()]
    return "\n\n".join(f"Section {n}\n\n{part}" for n, part in enumerate(parts, 1))


ATTACKS: dict[str, Callable[[str], str]] = {
    "keyword stuffing (20 words, 5 times)": lambda text: text + "\n" + _STUFFING * 5,
    "textbook sentences in front": lambda text: _TEXTBOOK + text,
    "words shuffled": _shuffled,
    "headings of an article": _headings,
    "lower case": str.lower,
    "first quarter alone": lambda text: text[: len(text) // 4],
    "navigation behind": lambda text: text + _CHROME * 3,
}
