"""C4's rules: Raffel et al. 2020, "Exploring the Limits of Transfer Learning", section 2.2.

An editing stage. Lines go, each with its line feed, for the first reason that holds: a word of more
than 1,000 characters, no terminal punctuation (off by default), fewer than 3 words, "javascript", a
cookie or policy phrase. Citation marks (`[1]`, `[edit]`) go from lines that stay. Then texts are
dropped by what remains: "lorem ipsum", a curly bracket, fewer than 5 sentences.

`terminal_punctuation` is off as in FineWeb (Penedo et al. 2024, section 3.5), which found that it
removes 30% of tokens by itself; `terminal_punctuation=True` is the paper's.

What differs from datatrove 0.10.1 (`as_datatrove=True` counts words and sentences as it does):
blank lines stay, for later stages read paragraphs by them (but those after a line that is cut go
with it when one stood before it too); words are those of `_kernels_c4`, so that a Chinese line is
not one word; long words break at characters of scripts without spaces; a sentence ends at terminal
punctuation and a space, not before a lower-case letter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pyarrow as pa

from ..documents.edits import Edits
from ..documents.errors import UsageError
from ..documents.stage import Measured
from ..documents.text import text_view
from . import _kernels_c4, _shown
from ._characters import table
from ._exact import Rule, check_counts, check_flags, check_names, columns, first_broken
from ._scan import cut, scans

SCORES = (
    "sentences",  # of the lines that stay, as all but the last
    "lorem_ipsum_lines",
    "curly_brackets",  # opening ones
    "kept_lines",  # with something on them
    "cut_lines",
)
EDITS = (
    "citation",
    "long_word",
    "no_terminal_punctuation",
    "few_words",
    "javascript",
    "policy",
)
_CITATIONS = ("[edit]", "[citation needed]")
_LOREM = "lorem ipsum"
_RARE = "etaoinshrdlcumwfgypbvkjxqz"  # English letters from common to rare


@cache
def _phrases(groups: tuple[tuple[str, ...], ...]) -> tuple[np.ndarray, ...]:
    """`phrases` of `_kernels_c4.c4`; phrases of group g have the kind 1 << g."""
    pairs: list[tuple[int, int]] = []
    text = bytearray()
    ends: list[int] = []
    kinds: list[int] = []
    anchors: list[int] = []
    heads: list[list[int]] = []
    for group, phrases in enumerate(groups):
        for phrase in phrases:
            low = phrase.lower()
            rarity = [_RARE.find(a) + _RARE.find(b) for a, b in pairwise(low)]
            anchor = rarity.index(max(rarity))
            pairs.append((ord(low[anchor]) | 0x20, ord(low[anchor + 1]) | 0x20))
            text += low.encode()
            head = bytes(b | 0x20 for b in low.encode()[:8])
            ends.append(len(text))
            kinds.append(1 << group)
            anchors.append(anchor)
            heads.append([int.from_bytes(part, "little") for part in (head, b"\xff" * len(head))])
    as_array = (np.array(x, np.int64) for x in (ends, kinds, anchors))
    unique = np.array(sorted(set(pairs)), np.uint8).reshape(-1, 2)
    beginnings = np.array(heads, np.uint64).reshape(-1, 2)
    return (unique, np.frombuffer(bytes(text), np.uint8), *as_array, beginnings)


@dataclass(frozen=True, kw_only=True, slots=True)
class C4:
    """Cut lines, then drop texts, by the rules of Raffel et al. 2020, section 2.2.

    Scores: int32 counts (`SCORES`); edits by reason (`EDITS`). Speed and agreement beside
    datatrove's: benchmarks/filters.py.
    """

    max_word_chars: int = 1000  # code points without a space
    terminal_punctuation: bool = False  # cut lines that do not end as a sentence does
    min_line_words: int = 3  # a shorter line goes
    as_datatrove: bool = False  # words are between spaces, sentences those of tokens
    citations: bool = True  # cut `[1]`, `[edit]`, `[citation needed]`
    javascript: tuple[str, ...] = ("javascript",)  # ASCII, any case; a line with one goes
    policy: tuple[str, ...] = (
        "terms of use",
        "privacy policy",
        "cookie policy",
        "uses cookies",
        "use of cookies",
        "use cookies",
    )
    min_sentences: int = 5  # of what is left; a text with fewer goes
    lorem_ipsum: bool = True  # drop texts with it
    curly_brackets: bool = True  # drop texts with one

    name: ClassVar[str] = "c4"
    revision: ClassVar[int] = 1
    reasons: ClassVar[tuple[str, ...]] = (
        "keep",
        "lorem_ipsum",
        "curly_bracket",
        "few_sentences",
    )
    verdict_fields: ClassVar[frozenset[str]] = frozenset(
        {"min_sentences", "lorem_ipsum", "curly_brackets"}
    )

    def __post_init__(self) -> None:
        """Check the fields; UsageError names the one that is wrong."""
        check_counts(self, ("max_word_chars", "min_line_words", "min_sentences"))
        check_flags(self, ("as_datatrove", "terminal_punctuation", "citations"))
        check_names(self, ("javascript", "policy"))
        for name in ("javascript", "policy"):
            for phrase in getattr(self, name):
                if len(phrase) < 2 or not phrase.isascii():
                    msg = f"{self.name}.{name}: found {phrase!r}, expected 2 or more ASCII letters"
                    raise UsageError(msg)

    def measure(self, batch: pa.RecordBatch) -> Measured:
        """Find the lines and citations that go, and count over what stays."""
        view = text_view(batch.column("text"))
        counts = np.zeros((view.rows, len(SCORES)), np.int32)
        text = view.data[view.offsets[0] : view.offsets[-1]]
        room = int(_kernels_c4.count_either(text, 0x0A, 0x5B)) + view.rows
        edits = (
            np.empty(room, np.int64),
            np.empty(room, np.int64),
            np.empty(room, np.int64),
            np.empty(room, np.uint8),
        )
        limits = (
            self.max_word_chars,
            self.min_line_words,
            self.terminal_punctuation,
            self.citations,
            self.as_datatrove,
        )
        phrases = _phrases((self.javascript, self.policy, (_LOREM,)))
        made = 0
        for scan, rows in scans(view):
            if self.as_datatrove:
                cut(scan, citations=self.citations)
            more = (rows.start, table(), limits, phrases, _forms(), edits, made, counts[rows])
            made = _kernels_c4.c4(*scan, *more)
        at, starts, lengths, reasons = (values[:made].copy() for values in edits)
        gone = Edits(rows=at, starts=starts, lengths=lengths, reasons=reasons, reason_names=EDITS)
        return Measured(columns(counts, SCORES), edits=gone)

    def rules(self, scores: Mapping[str, np.ndarray]) -> tuple[Rule, ...]:
        """Each rule on what remains, in the order of `reasons[1:]`."""
        every = np.ones(len(scores["sentences"]), bool)
        return (
            Rule(scores["lorem_ipsum_lines"], 0, asked=every & self.lorem_ipsum),
            Rule(scores["curly_brackets"], 0, asked=every & self.curly_brackets),
            Rule(scores["sentences"], self.min_sentences, least=True),
        )

    def verdict(self, scores: Mapping[str, np.ndarray]) -> np.ndarray:
        """Judge by the first rule that a row breaks, in the order of `reasons`."""
        return first_broken(self.rules(scores))

    def show(self, text: str, reason: str) -> str | None:
        """The line that broke the rule, for `why`."""
        wanted = {"lorem_ipsum": _LOREM, "curly_bracket": "{"}.get(reason)
        if wanted is None:
            return None
        return _shown.first(text.split("\n"), lambda line: wanted in line.lower())


@cache
def _forms() -> tuple[np.ndarray, np.ndarray]:
    """Citation marks in words, one after another, and the end of each."""
    text = "".join(_CITATIONS).encode()
    return np.frombuffer(text, np.uint8), np.cumsum([len(form) for form in _CITATIONS])
