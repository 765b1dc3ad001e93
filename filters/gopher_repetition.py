"""Gopher's repetition rules: Rae et al. 2021, table A1 ("Repetition removal").

Characters are code points, and fractions are of the whole text, as in datatrove 0.10.1; an n-gram
has the characters of its words, the top ones a space between them besides. What differs, and what
`as_datatrove=True` does as it does (both then drop the same texts; benchmarks/README.md):

- punctuation is no word (see `_scan`), so n-grams run across it;
- a top n-gram has to occur twice: datatrove counts one that occurs once, and drops a text of ten
  different words as two tenths 2-gram;
- lines are compared without the spaces at their ends; blank ones are none; a paragraph ends at a
  line with nothing but spaces on it;
- where most words are characters of a script without spaces, n counts two of them as one word
  (a Chinese word has 1.5 to 2), for 5 characters in a row recur in any long text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from ..documents.errors import UsageError
from ..documents.stage import Measured
from ..documents.text import text_view
from . import _kernels_repeats, _shown
from ._exact import Rule, check_flags, check_fractions, columns, first_broken
from ._scan import cut, scans

SCORES = (
    "chars",  # code points of the text
    "words",
    "unspaced_words",
    "lines",
    "duplicate_lines",  # that stood before
    "duplicate_line_chars",
    "paragraphs",
    "duplicate_paragraphs",
    "duplicate_paragraph_chars",
    "top_2_gram_chars",  # of all its occurrences; overlaps count twice
    "top_3_gram_chars",
    "top_4_gram_chars",
    "duplicate_5_gram_chars",  # of non-overlapping later occurrences
    "duplicate_6_gram_chars",
    "duplicate_7_gram_chars",
    "duplicate_8_gram_chars",
    "duplicate_9_gram_chars",
    "duplicate_10_gram_chars",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class GopherRepetition:
    """Drop texts that repeat themselves: Rae et al. 2021, table A1; thresholds are the paper's.

    Scores: int32 counts (`SCORES`). Speed beside datatrove's: benchmarks/filters.py.
    """

    duplicate_lines: float = 0.30  # of lines
    duplicate_paragraphs: float = 0.30  # of paragraphs
    duplicate_line_chars: float = 0.20  # of the text's code points, as all below
    duplicate_paragraph_chars: float = 0.20  # and in paragraphs
    top_n_grams: tuple[float, ...] = (0.20, 0.18, 0.16)  # n = 2, 3, 4
    duplicate_n_grams: tuple[float, ...] = (0.15, 0.14, 0.13, 0.12, 0.11, 0.10)  # n = 5 to 10

    as_datatrove: bool = False  # n-grams of tokens (`_kernels_tokens`), lines with their spaces

    name: ClassVar[str] = "gopher_repetition"
    revision: ClassVar[int] = 2
    reasons: ClassVar[tuple[str, ...]] = (
        "keep",
        "duplicate_paragraphs",
        "duplicate_paragraph_chars",
        "duplicate_lines",
        "duplicate_line_chars",
        *(f"top_{n}_gram" for n in (2, 3, 4)),
        *(f"duplicate_{n}_grams" for n in range(5, 11)),
    )
    verdict_fields: ClassVar[frozenset[str]] = frozenset(
        {
            "duplicate_lines",
            "duplicate_paragraphs",
            "duplicate_line_chars",
            "duplicate_paragraph_chars",
            "top_n_grams",
            "duplicate_n_grams",
        }
    )

    def __post_init__(self) -> None:
        """Check the fields; UsageError names the one that is wrong."""
        for name, count in (("top_n_grams", 3), ("duplicate_n_grams", 6)):
            given = getattr(self, name)
            if not isinstance(given, (tuple, list)) or len(given) != count:
                msg = f"{self.name}.{name}: found {given!r}, expected {count} fractions"
                raise UsageError(msg)
            object.__setattr__(self, name, tuple(given))
        check_fractions(self, sorted(self.verdict_fields))
        check_flags(self, ("as_datatrove",))

    def measure(self, batch: pa.RecordBatch) -> Measured:
        """Count what is repeated in each text."""
        view = text_view(batch.column("text"))
        counts = np.zeros((view.rows, len(SCORES)), np.int32)
        for scan, rows in scans(view):
            if self.as_datatrove:
                cut(scan)
            _kernels_repeats.repetition(*scan, self.as_datatrove, counts[rows])
        return Measured(columns(counts, SCORES))

    def rules(self, scores: Mapping[str, np.ndarray]) -> tuple[Rule, ...]:
        """Each rule, in the order of `reasons[1:]`."""
        chars, lines, paragraphs = scores["chars"], scores["lines"], scores["paragraphs"]
        return (
            Rule(scores["duplicate_paragraphs"], self.duplicate_paragraphs, paragraphs),
            Rule(scores["duplicate_paragraph_chars"], self.duplicate_paragraph_chars, chars),
            Rule(scores["duplicate_lines"], self.duplicate_lines, lines),
            Rule(scores["duplicate_line_chars"], self.duplicate_line_chars, chars),
            *(
                Rule(scores[f"top_{n}_gram_chars"], limit, chars)
                for n, limit in enumerate(self.top_n_grams, 2)
            ),
            *(
                Rule(scores[f"duplicate_{n}_gram_chars"], limit, chars)
                for n, limit in enumerate(self.duplicate_n_grams, 5)
            ),
        )

    def verdict(self, scores: Mapping[str, np.ndarray]) -> np.ndarray:
        """Judge by the first rule that a row breaks, in the order of `reasons`."""
        return first_broken(self.rules(scores))

    def show(self, text: str, reason: str) -> str | None:
        """What of a text repeats, for `why`."""
        if "gram" in reason:
            words = int(reason.split("_")[1])
            return _shown.n_gram(text, words, self.as_datatrove)
        return _shown.repeated(
            _shown.paragraphs(text) if "paragraph" in reason else text.split("\n")
        )
