"""Exact duplicates: equal texts but for white space.

Normalisation: runs of ASCII white space become one space, and white space at both ends goes; case
and all else stay. So a text that was wrapped anew is a duplicate and one that shouts is not.
The text is then hashed to 128 bits (MurmurHash3 x64 128, seed 0, as published). Among 10**10
documents the odds that any two differing texts agree are about 1.5e-19; it is not a cryptographic
hash, and somebody who sets out to can make two texts of their own that agree.

Empty texts are never duplicates of each other. One exchange row per document, one round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from ..documents.exchange import Survey
from ..documents.stage import Measured, Stage
from ..documents.text import text_view
from . import _kernels as kernels
from .rank import decisions, grouped, hash_rows, runs
from .scope import check_exemplars, check_scope, within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..documents.exchange import AnyRound, Texts


def text_hashes(texts: pa.Array) -> np.ndarray:
    """128-bit hash of each text, uint64[rows, 2]; see `_kernels.hash_texts`."""
    view = text_view(texts)
    hashes = np.zeros((view.rows, 2), np.uint64)
    kernels.hash_texts(view.data, view.offsets, hashes)
    return hashes


@dataclass(frozen=True, kw_only=True)
class ExactSurvey(Survey):
    """Score `hash` uint64[rows, 2]: the 128-bit hash; (0, 0) for a text without content."""

    name: ClassVar[str] = "exact_survey"
    revision: ClassVar[int] = 1

    scope: str = "corpus"

    def measure(self, batch: pa.RecordBatch) -> Measured:
        """Hash every text."""
        return Measured({"hash": within(text_hashes(batch.column("text")), batch, self.scope)})


@dataclass(frozen=True, kw_only=True)
class ExactGroups:
    """The one round: groups of equal hash keep their first document."""

    name: ClassVar[str] = "groups"
    exemplars: int = 1  # documents of a group that stay

    def gather(self, rows: pa.Table, texts: Texts) -> pa.Table:
        """Rows of one partition -> DECISIONS for all documents that have an equal.

        The witness of a removal is the group's first document: the newest where rows have a `date`,
        else in representative order. `shared` = `either` = 1, since each text counts as a set of
        one element, its normalised self.
        """
        found, group = grouped(rows, 1)
        starts, sizes = runs(group)
        root = np.repeat(starts, sizes)
        witness = np.where(np.arange(len(root)) - root < self.exemplars, -1, root)
        one = np.ones(len(root), np.uint32)
        return decisions(found, witness, one, one, root)


@dataclass(frozen=True, kw_only=True)
class ExactDuplicates:
    """Remove documents whose text equals, but for white space, that of a document kept."""

    name: ClassVar[str] = "exact_duplicates"
    revision: ClassVar[int] = 1
    reasons: ClassVar[tuple[str, ...]] = ("keep", "exact_duplicate")
    verdict_fields: ClassVar[frozenset[str]] = frozenset({"exemplars"})

    scope: str = "corpus"  # corpus, crawl or source
    exemplars: int = 1  # copies of a text that stay

    def __post_init__(self) -> None:
        check_scope(self.scope, self.name)
        check_exemplars(self.exemplars, self.name)

    @property
    def survey(self) -> Stage:
        """Hashes; see `ExactSurvey`."""
        return ExactSurvey(scope=self.scope)

    @property
    def rounds(self) -> Sequence[AnyRound]:
        """One round."""
        return (ExactGroups(exemplars=self.exemplars),)

    @property
    def row_bytes(self) -> int:
        """One row a document."""
        return 54

    def scatter(self, documents: pa.Table) -> pa.Table:
        """One row per document with content: the hash in two columns, KEY and RANK."""
        return hash_rows(documents, "hash")
