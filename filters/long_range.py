"""How much a text takes up again far from where it spoke of it: a score for long-context slices.

A long text need not have long dependencies: a forum's archive or a file of many articles is long,
and each of its parts can be read alone. Chen et al. 2024, "Long Context is Not Long at All"
(ProLong, arXiv:2405.17915) score documents by strength, distance and specificity of dependencies
between segments, strength by the perplexities of a language model. Here strength is shared words
(lexical cohesion: Hearst 1997, "TextTiling"), which needs no model, and is exact:

- A text is cut into segments of `segment` words; two characters of a script without spaces are one
  word, as elsewhere. What is left at the end is not looked at.
- Terms are words of `min_letters` letters or more that do not begin with a digit, ASCII in lower
  case; in scripts without spaces two characters in a row. Specificity: one that stands in more
  than `common` of the segments says nothing and makes no pair.
- Distance: segments are far from each other from `distance` segments on, near below.
- `far` is the terms that two far segments share on average, `near` that two near ones do, both of
  10,000 terms of a segment.

`score` is far x min(1, far / near): shared far off, and not merely the remainder of what is shared
nearby; `far` alone is a score too, and stored. Texts of fewer than 2 `distance` segments have
score -1, which `min_score` never drops.

Limits: the same words, not the same meaning; short words of Arabic or Hebrew are not terms at the
default; words are not stemmed, nor other capitals lowered. Scores of different languages are not
comparable, so limit them by language. How well it tells long texts from joined ones:
benchmarks/long_range.py.
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
from . import _kernels_long_range
from ._exact import Rule, check_counts, check_fractions, first_broken, rational
from ._scan import scans

SCALE = 10_000  # of `near`, `far` and `score`
SCORES = (
    "segments",  # whole ones
    "near",  # terms shared by segments less than `distance` apart, of 10,000 of a segment
    "far",  # the same of the others
    "score",  # far x min(1, far / near)
)


@dataclass(frozen=True, kw_only=True, slots=True)
class LongRange:
    """Measure what far parts of a text share; for slices, `long_range.score: {min: 100}`.

    Scores: int32 (`SCORES`); -1 where the text is too short. Drops nothing unless `min_score` is
    given. AUC and speed: benchmarks/long_range.py.
    """

    min_score: int = 0  # a text with less goes; 0: none
    segment: int = 64  # words
    min_letters: int = 6  # of a term
    distance: int = 32  # segments: 2,048 words, about what a sequence of 4,096 tokens holds
    common: float = 0.5  # of segments, in which a term may stand

    name: ClassVar[str] = "long_range"
    revision: ClassVar[int] = 1
    reasons: ClassVar[tuple[str, ...]] = ("keep", "no_long_range")
    verdict_fields: ClassVar[frozenset[str]] = frozenset({"min_score"})

    def __post_init__(self) -> None:
        """Check the fields; UsageError names the one that is wrong."""
        check_counts(self, ("min_score", "segment", "min_letters", "distance"))
        check_fractions(self, ("common",))
        for field, least in (("segment", 1), ("min_letters", 1), ("distance", 2)):
            if getattr(self, field) < least:
                found = getattr(self, field)
                raise UsageError(f"{self.name}.{field}: found {found}, expected {least} or more")

    def measure(self, batch: pa.RecordBatch) -> Measured:
        """Count shared terms of segments near each other and far apart, of each text."""
        view = text_view(batch.column("text"))
        counts = np.zeros((view.rows, 4), np.int64)
        fields = self.segment, self.min_letters, self.distance, rational(self.common)
        for scan, rows in scans(view):
            _kernels_long_range.long_range(*scan, *fields, counts[rows])
        found = {name: np.full(view.rows, -1, np.int32) for name in SCORES}
        found["segments"] = counts[:, 0].astype(np.int32)
        for row in np.flatnonzero(counts[:, 0] >= 2 * self.distance).tolist():
            segments, terms, near, far = counts[row].tolist()
            values = shared(segments, terms, near, far, self.distance)
            for name, value in zip(SCORES[1:], values, strict=True):
                found[name][row] = value
        return Measured(found)

    def rules(self, scores: Mapping[str, np.ndarray]) -> tuple[Rule, ...]:
        """The one rule: of texts that are long enough."""
        score = scores["score"]
        return (Rule(score, self.min_score, least=True, asked=score >= 0),)

    def verdict(self, scores: Mapping[str, np.ndarray]) -> np.ndarray:
        """Judge by `min_score`."""
        return first_broken(self.rules(scores))


def shared(segments: int, terms: int, near: int, far: int, distance: int) -> tuple[int, int, int]:
    """`near`, `far` and `score` from counts of pairs, rounded down; in whole numbers throughout.

    At least 2 `distance` segments, and a distance of 2, so that there are pairs of both kinds.
    """
    far_pairs = (segments - distance) * (segments - distance + 1) // 2
    near_pairs = segments * (segments - 1) // 2 - far_pairs
    if not terms:
        return 0, 0, 0
    top = SCALE * segments  # over terms: 10,000 of the terms of a mean segment
    score = top * far // (terms * far_pairs)
    if near * far_pairs > far * near_pairs:
        score = top * far * far * near_pairs // (terms * far_pairs * far_pairs * near)
    return top * near // (terms * near_pairs), top * far // (terms * far_pairs), score
