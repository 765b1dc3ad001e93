"""Near duplicates: sketch, bands, candidates, exact verification, greedy cover.

    survey      every text once: 256 lanes of Fast Similarity Sketching -> 32 band keys
    candidates  documents of equal band key -> pairs                      (`dedup.candidates`)
    verify      their texts again -> edges of exact Jaccard >= threshold  (`dedup.verify`)
    components, label   edges of one connected component meet            (`dedup.components`)
    clusters    edges -> decisions, every removal with a kept witness     (`dedup.clusters`)

A pair of Jaccard s becomes a candidate with probability 1 - (1 - s**8)**32: 0.997 at 0.8, 0.85 at
0.7 (`dedup.curve`); no pair below the threshold is ever removed. The 14 x 8 bands of FineWeb find
0.924 at 0.8 and verify nothing.

What a shingle is: `ngram` words in a row, or `char_ngram` characters where most tokens are
characters of scripts without spaces; `_kernels` states the tokens. Texts of fewer tokens have
no shingles, hence no bands: `ExactDuplicates` covers them. The exchange takes 54 bytes for each of
32 bands of a document, 1.7 KB; the 32 keys are stored beside the other scores, 256 bytes.

Speed beside other sketches: benchmarks/dedup.py (a short text costs a whole sketch, at least
k log k). Recall against the exact join of all pairs: benchmarks/dedup_truth.py; all of 119 real
pairs at 0.80 to 0.85 were candidates, and 0.948 of 155 at 0.70 to 0.75, as theory says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from ..documents.errors import UsageError, did_you_mean
from ..documents.exchange import Survey
from ..documents.stage import Measured, Stage
from ..documents.text import text_view
from . import _kernels as kernels
from .candidates import Candidates
from .classic import signatures
from .clusters import Clusters
from .components import Components, Label
from .curve import check_not_swapped, check_sketch
from .rank import column, matrix, nodes
from .scope import check_exemplars, check_scope, within
from .verify import Verify

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..documents.exchange import AnyRound

PRESETS = {"default": (32, 8), "fineweb": (14, 8), "olmo3": (26, 11)}  # bands, rows


@dataclass(frozen=True, kw_only=True)
class NearSurvey(Survey):
    """Scores `bands` uint64[rows, bands] and `shingles` int32[rows] (with repeats; 0: no bands).

    `scheme: datasketch` adds `affine32` uint32[rows, k], the signatures (`dedup.classic`).
    """

    name: ClassVar[str] = "near_survey"
    revision: ClassVar[int] = 1

    ngram: int = 5  # words in a shingle
    char_ngram: int = 5  # characters in a shingle of a text without spaces
    k: int = 256  # lanes of the sketch
    bands: int = 32  # each of k / bands lanes
    scheme: str = "fss"
    scope: str = "corpus"

    def measure(self, batch: pa.RecordBatch) -> Measured:
        """Sketch every text."""
        column = batch.column("text")
        if self.scheme == "datasketch":
            return self._classic(batch)
        view = text_view(column)
        bands = np.empty((view.rows, self.bands), np.uint64)
        shingles = np.empty(view.rows, np.int32)
        kernels.band_keys(
            view.data, view.offsets, self.ngram, self.char_ngram, self.k, bands, shingles
        )
        return Measured({"bands": within(bands, batch, self.scope), "shingles": shingles})

    def _classic(self, batch: pa.RecordBatch) -> Measured:
        lanes, shingles = signatures(batch.column("text"), self.ngram, self.char_ngram, self.k)
        bands = np.empty((len(lanes), self.bands), np.uint64)
        kernels.band_lanes(lanes.astype(np.uint64), shingles, bands)
        bands = within(bands, batch, self.scope)
        return Measured({"bands": bands, "shingles": shingles, "affine32": lanes})


@dataclass(frozen=True, kw_only=True)
class NearDuplicates:
    """Remove documents of which a kept document has exact Jaccard >= `threshold`."""

    name: ClassVar[str] = "near_duplicates"
    revision: ClassVar[int] = 1
    reasons: ClassVar[tuple[str, ...]] = ("keep", "near_duplicate")
    verdict_fields: ClassVar[frozenset[str]] = frozenset(
        {"threshold", "group_cap", "hot_cap", "exemplars"}
    )

    ngram: int = 5  # words in a shingle
    char_ngram: int = 5  # characters in a shingle of a text without spaces
    preset: str = field(default="default", metadata={"identity": False})  # 32 x 8; fineweb: 14 x 8
    bands: int = 0  # 0: of the preset
    rows: int = 0  # lanes in a band; 0: of the preset
    k: int = 0  # lanes of the sketch; 0: bands * rows
    threshold: str = "0.8"  # Jaccard, exact: a decimal or a fraction; kept as text
    group_cap: int = 32  # documents of one band key that are compared all with all
    hot_cap: int = 4096  # documents of one band key above which sub-groups give stars alone
    scope: str = "corpus"  # corpus, crawl or source: documents of two are never compared
    exemplars: int = 1  # documents of a cluster that stay, if so many are in it
    scheme: str = "fss"  # Fast Similarity Sketching; datasketch: MinHash as datasketch 2 makes it

    def __post_init__(self) -> None:
        object.__setattr__(self, "threshold", str(self.threshold))  # YAML reads 0.8 as a float
        self._fill()
        for name, least in (
            ("ngram", 1), ("char_ngram", 1), ("bands", 1), ("rows", 1), ("group_cap", 2)
        ):  # fmt: skip
            if getattr(self, name) < least:
                msg = f"near_duplicates: {name} is {getattr(self, name)}, expected >= {least}"
                raise UsageError(msg)
        check_sketch(self.bands, self.rows, self.scheme, self.name)
        if self.bands * self.rows != self.k:
            msg = (
                f"near_duplicates: bands * rows = {self.bands} * {self.rows} = "
                f"{self.bands * self.rows}, expected k = {self.k}; set k: {self.bands * self.rows}"
            )
            raise UsageError(msg)
        if self.hot_cap < self.group_cap:
            msg = f"near_duplicates: hot_cap {self.hot_cap} is below group_cap {self.group_cap}"
            raise UsageError(msg)
        try:
            limit = Fraction(self.threshold)
        except (ValueError, ZeroDivisionError):
            limit = Fraction(0)
        if not (0 < limit <= 1 and limit.denominator <= 1 << 30):
            msg = (
                f"near_duplicates: threshold is {self.threshold!r}, expected a decimal or fraction "
                "above 0 and at most 1, such as 0.8 or 4/5"
            )
            raise UsageError(msg)

        check_scope(self.scope, self.name)
        check_exemplars(self.exemplars, self.name)
        check_not_swapped(self.bands, self.rows, float(limit), "near_duplicates")

    def _fill(self) -> None:
        """Bands, rows and lanes that are not stated come from the preset."""
        if self.preset not in PRESETS:
            msg = f"near_duplicates: unknown preset {self.preset!r}"
            raise UsageError(msg + did_you_mean(self.preset, PRESETS))
        for name, value in zip(("bands", "rows"), PRESETS[self.preset], strict=True):
            stated = getattr(self, name)
            if stated == 0:
                object.__setattr__(self, name, value)
            elif self.preset != "default" and stated != value:
                msg = (
                    f"near_duplicates: preset {self.preset!r} has {name} {value}, found {name}: "
                    f"{stated}; state the preset or bands and rows"
                )
                raise UsageError(msg)
        if self.k == 0:
            object.__setattr__(self, "k", self.bands * self.rows)

    @property
    def survey(self) -> Stage:
        """Band keys; see `NearSurvey`."""
        return NearSurvey(
            ngram=self.ngram,
            char_ngram=self.char_ngram,
            k=self.k,
            bands=self.bands,
            scheme=self.scheme,
            scope=self.scope,
        )

    @property
    def rounds(self) -> Sequence[AnyRound]:
        """Candidates, verify, components, label, clusters."""
        return (
            Candidates(group_cap=self.group_cap, hot_cap=self.hot_cap),
            Verify(ngram=self.ngram, char_ngram=self.char_ngram, threshold=self.threshold),
            Components(),
            Label(),
            Clusters(exemplars=self.exemplars),
        )

    @property
    def row_bytes(self) -> int:
        """54 for each band."""
        return 54 * self.bands

    def scatter(self, documents: pa.Table) -> pa.Table:
        """One row per band of each document that has shingles.

        `partition` is the band's key (it holds the band's number and is fully mixed), `next` the
        key of the band after it, by which hot groups split; then KEY and RANK.
        """
        some = column(documents, "shingles") > 0
        keys = matrix(documents, "bands", self.bands)[some]
        found = nodes(documents).take(some)
        columns = {
            "partition": pa.array(keys.ravel()),
            "next": pa.array(np.roll(keys, -1, axis=1).ravel()),
        }
        return pa.table(columns | found.take(np.repeat(np.arange(len(keys)), self.bands)).columns())
