"""Documents of one URL: the newest is kept.

URLs count as equal that differ in the scheme, the case of the host, a default port, a fragment or
a slash at the end of an empty path; paths and queries stay as they are, since servers may tell them
apart. What names no host (a file name, an identifier such as `urn:x:Y`) stays as it is but for the
fragment. The order is the date, in UTC (`moment`), then the representative order; a document
without a date is the oldest, as is one whose date cannot be read: its evidence shows that, and the
sidecar of the shard's rows counts such documents (`dates_not_read`). As in `exact`, each URL counts
as a set of one element.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..documents.exchange import Survey, with_counts
from ..documents.stage import Evidence, Measured, Stage
from .exact import ExactGroups, text_hashes
from .rank import column, hash_rows
from .scope import check_scope, within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..documents.exchange import AnyRound


UNREAD = -1  # a date that is there and cannot be read
SCHEME = r"\A[A-Za-z][A-Za-z0-9+.-]*://"  # what a host follows


def plain_urls(urls: pa.Array) -> pa.Array:
    """URLs as they are compared; null becomes empty.

    Without a scheme and `//` the first part may be a file name or an id: its case stays.
    """
    text = pc.replace_substring_regex(urls.fill_null("").cast(pa.large_string()), r"(?s)#.*\z", "")
    named = pc.match_substring_regex(text, SCHEME)
    text = pc.replace_substring_regex(text, SCHEME, "")
    parts = pc.extract_regex(text, r"(?s)\A(?P<host>[^/?]*)(?P<rest>.*)\z")
    host = pc.struct_field(parts, "host")
    lower = pc.replace_substring_regex(pc.utf8_lower(host), r":(80|443)\z", "")
    host = pc.if_else(named, lower, host)
    rest = pc.struct_field(parts, "rest")
    rest = pc.if_else(pc.equal(rest, "/"), "", rest)
    return pc.binary_join_element_wise(host, rest, pa.scalar("", pa.large_string()))


def dates(values: pa.Array) -> np.ndarray:
    """Moments as int64 YYYYMMDDhhmmss in UTC; 0 without a date, UNREAD for one not understood.

    See `moment`; each distinct value is read once.
    """
    coded = values.cast(pa.large_string()).dictionary_encode()
    known = [moment(v) or UNREAD if v.strip() else 0 for v in coded.dictionary.to_pylist()]
    read = np.array([*known, 0], np.int64)
    return read[coded.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)]


def moment(text: str) -> int:
    """YYYYMMDDhhmmss in UTC of a date as pages and crawls state it, 0 for anything else.

    ISO 8601 with or without time, fraction and offset (none: UTC); a year or a month, which count
    as their first moment; 14 digits as in CDX files; seconds (9 or 10 digits) or milliseconds (12
    or 13) since 1970; dates of HTTP and mail (RFC 9110, RFC 5322). Fractions of seconds are cut.
    """
    text = text.strip()
    try:
        if re.fullmatch(r"[0-9]{4}(-[0-9]{2})?", text):
            found = datetime.fromisoformat((text + "-01-01")[:10])
        elif re.fullmatch(r"[0-9]{14}", text):
            found = datetime.fromisoformat(f"{text[:8]}T{text[8:]}")
        elif match := re.fullmatch(r"([0-9]{9,10})([0-9]{3})?(\.[0-9]+)?", text):
            found = datetime.fromtimestamp(int(match[1]), UTC)
        elif re.match(r"[0-9]{4}-?[0-9]{2}-?[0-9]{2}([T ]|\Z)", text, re.IGNORECASE):
            found = datetime.fromisoformat(re.sub(r" ?(UTC|GMT)\Z", "Z", text).upper())
        else:
            found = parsedate_to_datetime(text)
        found = found.astimezone(UTC) if found.tzinfo else found
    except (ValueError, OverflowError, TypeError, IndexError):
        return 0
    return int(found.strftime("%Y%m%d%H%M%S")) if found.year >= 1000 else 0


@dataclass(frozen=True, kw_only=True)
class UrlSurvey(Survey):
    """Scores `hash` uint64[rows, 2] of the URL, (0, 0) without one, and `date` int64[rows]."""

    name: ClassVar[str] = "url_survey"
    revision: ClassVar[int] = 2
    needs_text: ClassVar[bool] = False

    scope: str = "corpus"

    def measure(self, batch: pa.RecordBatch) -> Measured:
        """Hash every URL."""
        hashes = within(text_hashes(plain_urls(batch.column("url"))), batch, self.scope)
        found = dates(batch.column("date"))
        rows = np.flatnonzero(found == UNREAD)
        values = batch.column("date").take(pa.array(rows)).to_pylist()
        notes = [json.dumps({"date_not_read": value[:80]}) for value in values]
        return Measured({"hash": hashes, "date": found}, evidence=Evidence(rows, notes))


@dataclass(frozen=True, kw_only=True)
class UrlDuplicates:
    """Of the documents of one URL keep the newest."""

    name: ClassVar[str] = "url_duplicates"
    revision: ClassVar[int] = 2
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
        """One row per document with a URL: the hash in two columns, the date, KEY and RANK.

        Counts `dates_not_read`; those documents go as without a date.
        """
        found = column(documents, "date")
        at = documents.column_names.index("date")
        known = documents.set_column(at, "date", pa.array(np.maximum(found, 0)))
        unread = int((found == UNREAD).sum())
        return with_counts(hash_rows(known, "hash", "date"), dates_not_read=unread)
