"""Gopher's quality rules: Rae et al. 2021, "Scaling Language Models", table A1 and section A.1.1.

Three readings differ from datatrove 0.10.1 on purpose (`as_datatrove=True` gives its own):

- words are words (`_scan`), as in the paper and in tools that split at spaces, not the tokens of a
  treebank tokeniser, where each comma is one: the paper asks that 80% of *words* hold a letter, and
  with a seventh of English tokens being punctuation that bar is nearer 93%. A run of visible
  characters without any word (`|`, `--`) counts as a word without letters, so tables still show.
  Of 3,650 texts in 23 languages datatrove drops 26% by this rule, ours 3%;
- lines are those with something on them: blank lines between the items of a list hid the list;
- stop words may be of any language that has a list (`stop_words.tsv`), two of *one* list, asked of
  texts whose letters are mostly Latin; others pass, since no list could tell. With
  `stop_languages=("eng",)` the rule is the paper's and drops what is not English. The script is
  read off the text by the kernel: the stage needs no language from elsewhere.

The mean word length is that of words of spaced scripts, and it is asked only where they are the
majority: a Han character is a word of one character.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from ..documents.errors import UsageError, did_you_mean
from ..documents.stage import Measured
from ..documents.text import text_view
from . import _kernels_quality, _kernels_tokens, _shown
from ._characters import table
from ._exact import (
    Rule,
    above,
    check_counts,
    check_flags,
    check_fractions,
    check_names,
    columns,
    first_broken,
)
from ._scan import cut, scans

SCORES = (
    "words",  # of all scripts
    "unspaced_words",  # characters of scripts without spaces
    "word_chars",  # code points of words of spaced scripts
    "alphabetic_words",
    "symbol_words",  # runs of visible characters without a word
    "hashes",  # number signs
    "ellipses",  # "..." and U+2026
    "letters",
    "latin_letters",
    "lines",  # with something on them
    "bullet_lines",
    "ellipsis_lines",
    "stop_words",  # different ones, of the list with most; 4 means 4 or more
    "marks",  # visible characters outside words
)
BULLETS = np.array([ord(c) for c in "-*•‣◦▪●"], np.int64)
_STOP_WORDS = Path(__file__).with_name("stop_words.tsv")


@cache
def stop_lists() -> dict[str, tuple[str, ...]]:
    """Stop words by language (ISO 639-3), from `stop_words.tsv`."""
    lines = _STOP_WORDS.read_text("utf-8").splitlines()
    pairs = (line.split("\t") for line in lines if not line.startswith("#"))
    return {language: tuple(words.split()) for language, words in pairs}


@cache
def _stop_table(languages: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Open table of word keys (`_kernels_quality._short`); the lists that hold each, as bits."""
    lists: dict[int, int] = {}
    for bit, language in enumerate(languages or stop_lists()):
        for word in stop_lists()[language]:
            folded = bytes(b | 0x20 for b in word.encode())
            key = int.from_bytes(folded, "little")
            lists[key] = lists.get(key, 0) | 1 << bit
    keys, masks = np.zeros(4096, np.uint64), np.zeros(4096, np.uint64)
    for key, mask in lists.items():
        at = _kernels_quality._slot(keys, 4095, np.uint64(key))  # noqa: SLF001
        keys[at], masks[at] = key, mask
    return keys, masks


@dataclass(frozen=True, kw_only=True, slots=True)
class GopherQuality:
    """Drop texts that break a rule of Rae et al. 2021, table A1; thresholds are the paper's.

    Scores: int32 counts (`SCORES`). Speed and agreement beside datatrove's: benchmarks/filters.py.
    """

    min_words: int = 50
    max_words: int = 100_000
    min_word_length: float = 3  # mean, code points
    max_word_length: float = 10  # mean, code points
    max_symbol_ratio: float = 0.1  # number signs, and ellipses, per word
    max_bullet_lines: float = 0.9  # of lines
    max_ellipsis_lines: float = 0.3  # of lines
    min_alphabetic_words: float = 0.8  # of words
    as_datatrove: bool = False  # count tokens (`_kernels_tokens`) and blank lines, as FineWeb did
    min_stop_words: int = 2  # different ones; at most 4
    stop_languages: tuple[str, ...] = ()  # lists to look for; empty: all. The paper's: ("eng",)

    name: ClassVar[str] = "gopher_quality"
    revision: ClassVar[int] = 2
    reasons: ClassVar[tuple[str, ...]] = (
        "keep",
        "few_words",
        "many_words",
        "short_words",
        "long_words",
        "hashes",
        "ellipses",
        "bullet_lines",
        "ellipsis_lines",
        "few_alphabetic_words",
        "few_stop_words",
    )
    verdict_fields: ClassVar[frozenset[str]] = frozenset(
        {
            "min_words",
            "max_words",
            "min_word_length",
            "max_word_length",
            "max_symbol_ratio",
            "max_bullet_lines",
            "max_ellipsis_lines",
            "min_alphabetic_words",
            "min_stop_words",
        }
    )

    def __post_init__(self) -> None:
        """Check the fields; UsageError names the one that is wrong."""
        check_counts(self, ("min_words", "max_words", "min_stop_words"))
        check_fractions(self, ("max_bullet_lines", "max_ellipsis_lines", "min_alphabetic_words"))
        check_fractions(self, ("min_word_length", "max_word_length", "max_symbol_ratio"), 1000)
        if self.min_stop_words > _kernels_quality.ENOUGH:
            msg = (
                f"{self.name}.min_stop_words: found {self.min_stop_words}; the kernel stops "
                f"looking at {_kernels_quality.ENOUGH}, so that is the most that can be asked"
            )
            raise UsageError(msg)
        check_flags(self, ("as_datatrove",))
        check_names(self, ("stop_languages",))
        for language in self.stop_languages:
            if language not in stop_lists():
                msg = f"{self.name}.stop_languages: no list for {language!r}"
                raise UsageError(msg + did_you_mean(language, stop_lists()))

    def measure(self, batch: pa.RecordBatch) -> Measured:
        """Count words, symbols and lines of each text."""
        view = text_view(batch.column("text"))
        counts = np.zeros((view.rows, len(SCORES)), np.int32)
        stops = _stop_table(self.stop_languages)
        for scan, rows in scans(view):
            _kernels_quality.quality(*scan, *stops, BULLETS, counts[rows])
            if self.as_datatrove:
                cut(scan)
                _kernels_tokens.count(*scan, table(), _kernels_tokens.KINDS, counts[rows])
        return Measured(columns(counts, SCORES))

    def rules(self, scores: Mapping[str, np.ndarray]) -> tuple[Rule, ...]:
        """Each rule, in the order of `reasons[1:]`."""
        words, single, lines = scores["words"], scores["unspaced_words"], scores["lines"]
        chars, spaced = scores["word_chars"], words - single
        all_words = words + scores["symbol_words"]
        spaces = spaced > single  # most words are of spaced scripts
        latin = above(scores["latin_letters"], scores["letters"], 0.5)
        return (
            Rule(words, self.min_words, least=True),
            Rule(words, self.max_words),
            Rule(chars, self.min_word_length, spaced, least=True, asked=spaces),
            Rule(chars, self.max_word_length, spaced, asked=spaces),
            Rule(scores["hashes"], self.max_symbol_ratio, all_words),
            Rule(scores["ellipses"], self.max_symbol_ratio, all_words),
            Rule(scores["bullet_lines"], self.max_bullet_lines, lines),
            Rule(scores["ellipsis_lines"], self.max_ellipsis_lines, lines),
            Rule(scores["alphabetic_words"], self.min_alphabetic_words, all_words, least=True),
            Rule(
                scores["stop_words"],
                self.min_stop_words,
                least=True,
                asked=None if self.stop_languages else latin,
            ),
        )

    def verdict(self, scores: Mapping[str, np.ndarray]) -> np.ndarray:
        """Judge by the first rule that a row breaks, in the order of `reasons`."""
        return first_broken(self.rules(scores))

    def show(self, text: str, reason: str) -> str | None:
        """A line that broke the rule, for `why`."""
        ends = {"ellipsis_lines": ("...", "…"), "ellipses": ("...", "…")}.get(reason)
        if reason == "bullet_lines":
            return _shown.first(text.split("\n"), lambda line: ord(line.strip()[0]) in BULLETS)
        if ends:
            return _shown.first(text.split("\n"), lambda line: any(e in line for e in ends))
        return (
            _shown.first(text.split("\n"), lambda line: "#" in line) if reason == "hashes" else None
        )
