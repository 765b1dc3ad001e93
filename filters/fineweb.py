"""FineWeb's own rules: Penedo et al. 2024, "The FineWeb Datasets", section 3.6.

The paper and its code differ: the paper drops texts with 10% of their characters in duplicated
lines, the code (datatrove 0.10.1, which made the data set) with 1%, and adds the rule on line
breaks. The code's values are the defaults; `max_duplicate_chars=0.1` gives the paper's.

What differs from the code: a line's end is looked at without trailing spaces, closing quotes and
brackets (`he said."` ends in terminal punctuation; with datatrove it does not); its length is that
of what is visible; line breaks are those after lines with something on them, since in FineWeb's
pipeline C4's rules have taken the blank lines away before this rule counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from ..documents.stage import Measured
from ..documents.text import text_view
from . import _kernels_repeats, _shown
from ._characters import table
from ._exact import Rule, check_counts, check_fractions, columns, first_broken
from ._scan import scans

SCORES = (
    "lines",  # with something on them
    "terminal_lines",  # that end in terminal punctuation
    "short_lines",
    "duplicate_chars",  # code points in lines that stood before
    "line_chars",  # code points of the text without line feeds
    "words",
    "line_breaks",  # line feeds after lines with something on them
)


@dataclass(frozen=True, kw_only=True, slots=True)
class FineWebQuality:
    """Drop lists, menus and repeated lines: Penedo et al. 2024, section 3.6.

    Scores: int32 counts (`SCORES`). Speed and agreement beside datatrove's: benchmarks/filters.py.
    """

    short_line: int = 30  # code points; a line of so many is short
    min_terminal_lines: float = 0.12  # of lines
    max_short_lines: float = 0.67  # of lines
    max_duplicate_chars: float = 0.01  # of code points; the paper says 0.1
    max_line_breaks: float = 0.3  # per word; in the code alone

    name: ClassVar[str] = "fineweb_quality"
    revision: ClassVar[int] = 2
    reasons: ClassVar[tuple[str, ...]] = (
        "keep",
        "empty",
        "few_terminal_lines",
        "short_lines",
        "duplicate_chars",
        "line_breaks",
    )
    verdict_fields: ClassVar[frozenset[str]] = frozenset(
        {"min_terminal_lines", "max_short_lines", "max_duplicate_chars", "max_line_breaks"}
    )

    def __post_init__(self) -> None:
        """Check the fields; UsageError names the one that is wrong."""
        check_counts(self, ("short_line",))
        check_fractions(self, ("min_terminal_lines", "max_short_lines", "max_duplicate_chars"))
        check_fractions(self, ("max_line_breaks",), 1000)

    def measure(self, batch: pa.RecordBatch) -> Measured:
        """Count lines by kind, and words, of each text."""
        view = text_view(batch.column("text"))
        counts = np.zeros((view.rows, len(SCORES)), np.int32)
        for scan, rows in scans(view):
            _kernels_repeats.fineweb(*scan, table(), self.short_line, counts[rows])
        return Measured(columns(counts, SCORES))

    def rules(self, scores: Mapping[str, np.ndarray]) -> tuple[Rule, ...]:
        """Each rule, in the order of `reasons[1:]`."""
        lines, chars = scores["lines"], scores["line_chars"]
        return (
            Rule(lines, 1, least=True),
            Rule(scores["terminal_lines"], self.min_terminal_lines, lines, least=True),
            Rule(scores["short_lines"], self.max_short_lines, lines),
            Rule(scores["duplicate_chars"], self.max_duplicate_chars, chars),
            Rule(scores["line_breaks"], self.max_line_breaks, scores["words"]),
        )

    def verdict(self, scores: Mapping[str, np.ndarray]) -> np.ndarray:
        """Judge by the first rule that a row breaks, in the order of `reasons`."""
        return first_broken(self.rules(scores))

    def show(self, text: str, reason: str) -> str | None:
        """A line that broke the rule, for `why`."""
        lines = text.split("\n")
        if reason == "duplicate_chars":
            return _shown.repeated(lines)
        if reason == "few_terminal_lines":
            return _shown.first(
                lines, lambda line: not line.rstrip("\"')]} ").endswith((".", "!", "?"))
            )
        if reason in {"short_lines", "line_breaks"}:
            return _shown.first(lines, lambda line: len(line.strip()) <= self.short_line)
        return None
