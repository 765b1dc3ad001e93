"""Documents of one URL: the newest is kept.

URLs count as equal that differ in the scheme, the case of the host, a default port, a fragment or
a slash at the end of an empty path; paths and queries stay as they are, since servers may tell them
apart. The order is the date (an ISO date's digits; a document without one is the oldest), then the
representative order. As in `exact`, each URL counts as a set of one element.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..documents.exchange import Survey
from ..documents.stage import Measured, Stage
from .exact import ExactGroups, text_hashes
from .rank import hash_rows
from .scope import check_scope, within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..documents.exchange import AnyRound


def plain_urls(urls: pa.Array) -> pa.Array:
    """URLs as they are compared; null becomes empty."""
    text = pc.replace_substring_regex(urls.fill_null("").cast(pa.large_string()), r"(?s)#.*\z", "")
    text = pc.replace_substring_regex(text, r"\A[A-Za-z][A-Za-z0-9+.-]*://", "")
    parts = pc.extract_regex(text, r"(?s)\A(?P<host>[^/?]*)(?P<rest>.*)\z")
    host = pc.utf8_lower(pc.struct_field(parts, "host"))
    host = pc.replace_substring_regex(host, r":(80|443)\z", "")
    rest = pc.struct_field(parts, "rest")
    rest = pc.if_else(pc.equal(rest, "/"), "", rest)
    return pc.binary_join_element_wise(host, rest, pa.scalar("", pa.large_string()))


def dates(values: pa.Array) -> np.ndarray:
    """ISO dates and times as int64 YYYYMMDDhhmmss; 0 for anything else."""
    text = values.fill_null("").cast(pa.large_string())
    good = pc.match_substring_regex(text, r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.]*Z?)?\z")
    digits = pc.replace_substring_regex(text, r"[^0-9]", "")
    digits = pc.utf8_slice_codeunits(pc.utf8_rpad(digits, 14, "0"), 0, 14)
    return pc.if_else(good, digits, "0").cast(pa.int64()).to_numpy(zero_copy_only=False)


@dataclass(frozen=True, kw_only=True)
class UrlSurvey(Survey):
    """Scores `hash` uint64[rows, 2] of the URL, (0, 0) without one, and `date` int64[rows]."""

    name: ClassVar[str] = "url_survey"
    revision: ClassVar[int] = 1
    needs_text: ClassVar[bool] = False

    scope: str = "corpus"

    def measure(self, batch: pa.RecordBatch) -> Measured:
        """Hash every URL."""
        hashes = within(text_hashes(plain_urls(batch.column("url"))), batch, self.scope)
        return Measured({"hash": hashes, "date": dates(batch.column("date"))})


@dataclass(frozen=True, kw_only=True)
class UrlDuplicates:
    """Of the documents of one URL keep the newest."""

    name: ClassVar[str] = "url_duplicates"
    revision: ClassVar[int] = 1
    reasons: ClassVar[tuple[str, ...]] = ("keep", "url_duplicate")
    verdict_fields: ClassVar[frozenset[str]] = frozenset()

    scope: str = "corpus"  # corpus, crawl or source

    def __post_init__(self) -> None:
        check_scope(self.scope, self.name)

    @property
    def survey(self) -> Stage:
        """Hashes and dates; see `UrlSurvey`."""
        return UrlSurvey(scope=self.scope)

    @property
    def rounds(self) -> Sequence[AnyRound]:
        """One round, that of exact duplicates."""
        return (ExactGroups(),)

    @property
    def row_bytes(self) -> int:
        """One row a document that has a URL."""
        return 62

    def scatter(self, documents: pa.Table) -> pa.Table:
        """One row per document with a URL: the hash in two columns, the date, KEY and RANK."""
        return hash_rows(documents, "hash", "date")
