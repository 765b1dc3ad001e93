"""The language of a text, offline: Resiliparse's profile detector (101 languages), or a model.

A text of more than 3 KiB is judged by 3 samples of 1 KiB: its beginning, middle and end, cut
between characters. On 1,485 web pages of 11 KB that gives the language of the whole text for 99.7%,
0.7% aside that are `und`.
`und` is the language of a text with too few letters, and of one whose samples disagree (`_lid`).

Of 2,534 passages of 8 sentences in 63 languages the detector gets 99.4% right. Alone it takes 30 of
40 in Hindi for Nepali or Marathi; by function words it knows them all. Norwegian's two forms are
one; Asturian and others without a profile come out as their neighbours. Its rank is the distance
from the nearest profile (Cavnar and Trenkle 1994: out of place): a whole number, less is surer,
above 1,200 usually wrong. It is not a probability.

`model: lid.176.ftz` (or GlotLID's, OpenLID's, one's own) asks a fastText model instead: more
languages, and a probability. benchmarks/language.py compares them, and prints the figures above.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from ..documents.errors import UsageError, did_you_mean
from ..documents.files import FILES, as_paths
from ..documents.stage import Measured
from ..documents.text import text_view
from . import _kernels_language
from ._characters import table
from ._exact import check_counts, check_fractions, check_names
from ._lid import UNDETERMINED, LanguageModel, by_model, by_profiles, known_codes, read_model

MOST_SAMPLES = 1000  # of a text: each costs every text eight bytes, even the shortest


def sampled(
    data: np.ndarray, offsets: np.ndarray, samples: int, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """`samples` pieces of `size` bytes of each text at even distances, with a space between.

    Pieces are cut inwards to whole characters; a text that is no longer than all of them comes back
    whole, as its first piece. Returns uint8[bytes] and int64[rows * samples + 1], where each piece
    ends (a space between is part of the later one); every `samples`-th is where a text ends.
    """
    sizes = np.diff(offsets)
    room = np.where(sizes <= samples * size, sizes, samples * (size + 1))
    out = np.empty(int(room.sum()), np.uint8)
    ends = np.zeros(len(sizes) * samples + 1, np.int64)
    _kernels_language.sample(data, offsets, samples, size, out, ends)
    return out, ends


@dataclass(frozen=True, kw_only=True, slots=True)
class Language:
    """Find each text's language; drop those that are not in `keep` (empty: keep all).

    Scores: `language` S8 (`eng_Latn`; `und` for texts with fewer than `min_letters` letters, or
    mixed) and how sure it is: by the detector `rank` (less is surer) and `margin` to the next
    language, int32, -1 for `und`; by a model `score` (probability) and `margin`, float32.
    """

    keep: tuple[str, ...] = ()  # names such as eng_Latn; empty: all
    model: Path | None = field(default=None, metadata={FILES: True})  # fastText; None: the detector
    max_rank: int = 1200  # out of place; beyond it a language that is kept is doubted and dropped
    min_score: float = 0.65  # of a model: likewise; FineWeb's, for lid.176
    min_margin: float = 0  # ranks by the detector, probability by a model
    min_letters: int = 20  # of a text with fewer the language is `und`
    samples: int = 3  # of a longer text the detector reads so many pieces
    sample_bytes: int = 1024  # of so many bytes

    name: ClassVar[str] = "language"
    revision: ClassVar[int] = 2
    reasons: ClassVar[tuple[str, ...]] = (
        "keep",
        "undetermined",
        "other_language",
        "uncertain_language",
    )
    verdict_fields: ClassVar[frozenset[str]] = frozenset(
        {"keep", "max_rank", "min_score", "min_margin"}
    )

    def __post_init__(self) -> None:
        """Check the fields; UsageError names the one that is wrong."""
        check_counts(self, ("max_rank", "min_letters", "samples", "sample_bytes"))
        check_fractions(self, ("min_score",))
        check_fractions(self, ("min_margin",), 1 if self.model else 10_000)
        if not 1 <= self.samples <= MOST_SAMPLES or self.sample_bytes < 64:
            msg = (
                f"{self.name}: found {self.samples} samples of {self.sample_bytes} bytes, expected "
                f"1 to {MOST_SAMPLES} of at least 64"
            )
            raise UsageError(msg)
        check_names(self, ("keep",))
        if self.model is None:
            self._check_keep(None)
        else:
            object.__setattr__(self, "model", as_paths(self.model, f"{self.name}.model")[0])

    def _check_keep(self, lid: LanguageModel | None) -> None:
        known = known_codes(lid)
        for code in self.keep:
            if code not in known:
                msg = f"{self.name}.keep: the {'model' if lid else 'detector'} has no {code!r}"
                raise UsageError(msg + did_you_mean(code, known))

    def load(self) -> tuple[str, ...]:
        """Read the model, if there is one; UsageError when it is none, or has not what is kept."""
        if self.model is None:
            return ()
        lid = read_model(self.model)
        self._check_keep(lid)
        return (f"{self.model.name}: {len(set(lid.codes))} languages",)

    def measure(self, batch: pa.RecordBatch) -> Measured:
        """Name the language of each text."""
        view = text_view(batch.column("text"))
        short = np.zeros(view.rows, np.bool_)
        _kernels_language.few_letters(view.data, view.offsets, table(), self.min_letters, short)
        data, bounds = sampled(view.data, view.offsets, self.samples, self.sample_bytes)
        if self.model is None:
            found = by_profiles(data, bounds, self.samples, short)
        else:
            found = by_model(data, bounds, self.samples, short, read_model(self.model))
        return Measured({"language": found.language, **found.scores})

    def verdict(self, scores: Mapping[str, np.ndarray]) -> np.ndarray:
        """Keep the languages of `keep` that are sure enough."""
        language = scores["language"]
        out = np.zeros(len(language), np.uint8)
        if self.keep:
            wanted = np.isin(language, np.array(self.keep, "S8"))
            unsure = scores["margin"] < self.min_margin
            if "rank" in scores:
                unsure |= scores["rank"] > self.max_rank
            else:
                unsure |= scores["score"] < self.min_score
            out[unsure & (language != UNDETERMINED.encode())] = 3
            out[~wanted] = 2
            out[~wanted & (language == UNDETERMINED.encode())] = 1
        return out
