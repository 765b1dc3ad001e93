"""Near duplicates of known Jaccard, and the few items that are planted by hand."""

from __future__ import annotations

import json
from dataclasses import replace

from generator.grammar import HERE, Dice
from generator.prose import Block, Document, Writer, as_text

EMAILS = ("ada.dunmere@example.org", "workshop@example.com", "j.jorrick+forum@example.net")
PHONES = (
    "+1 202 555 0143",
    "(212) 555-0187",
    "020 7946 0958",
    "+44 20 7946 0321",
    "01 99 00 41 73",
)
ADDRESSES = ("192.0.2.17", "198.51.100.204", "203.0.113.9", "2001:db8::8a2e:370:7334")
BENCHMARK: list[list[str]] = json.loads((HERE / "benchmark.json").read_text(encoding="utf-8"))


def words(text: str) -> list[str]:
    """Lower-cased runs of ASCII letters and digits or of letters beyond ASCII."""
    kept = [
        char if (char.isalnum() if char.isascii() else char.isalpha()) else " "
        for char in text.lower()
    ]
    return "".join(kept).split()


def shingles(text: str, size: int = 5) -> set[tuple[str, ...]]:
    """The set of word 5-grams."""
    tokens = words(text)
    return {tuple(tokens[at : at + size]) for at in range(len(tokens) - size + 1)}


def overlap(left: str, right: str) -> tuple[int, int]:
    """Shingles in both, shingles in either."""
    a, b = shingles(left), shingles(right)
    return len(a & b), len(a | b)


def near(dice: Dice, document: Document, percent: int, topic: str) -> Document:
    """A copy whose 5-gram Jaccard is as near to `percent` as whole edits allow.

    Above 80 percent single words change, below it whole sentences, as a rewrite would.
    """
    writer = Writer(dice, topic)
    blocks: list[Block] = list(document.blocks)
    original = document.text
    before, above = list(blocks), 1.0
    while True:
        shared, either = overlap(original, as_text((("h1", document.title), *blocks)))
        gap = shared / either - percent / 100
        if gap <= 0:
            nearer = blocks if -gap < above else before
            return replace(document, blocks=tuple(nearer))
        before, above = list(blocks), gap
        at = dice.below(len(blocks))
        tag, text = blocks[at]
        if tag != "p":
            continue
        if percent > 80:
            parts = text.split(" ")
            spot = dice.below(len(parts))
            if not parts[spot].isalpha():
                continue
            parts[spot] = writer.one("a").split()[0]
            blocks[at] = (tag, " ".join(parts))
        else:
            parts = text.split(". ")
            spot = dice.below(len(parts) - 1) if len(parts) > 1 else 0
            frame = dice.pick(writer.words.lists["define"])
            parts[spot] = writer.say(frame).rstrip(".") + ("" if len(parts) > 1 else ".")
            blocks[at] = (tag, ". ".join(parts))


def insert(document: Document, sentence: str, at: int = 1) -> Document:
    """Put a sentence at the end of a paragraph of the document."""
    blocks = list(document.blocks)
    spots = [number for number, (tag, _) in enumerate(blocks) if tag == "p"]
    spot = spots[min(at, len(spots) - 1)]
    blocks[spot] = ("p", f"{blocks[spot][1]} {sentence}")
    return replace(document, blocks=tuple(blocks))
