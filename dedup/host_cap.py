"""At most so many documents of a host: the first in a stated order, whatever the crawl's order.

A host with a million pages would teach its own manner. Which pages stay is decided over the whole
corpus, so that neither shards nor workers bear on it: one exchange row per document with a host,
partitioned by the host's hash, and one round. The witness of a removal is the last document of its
host that was kept; `shared` = `either` = 1, since both are of the one host.

`order: best` is the representative order (source priority, quality, length, id); `order: id` is a
sample: ids are hashes, so the pages that stay are of all lengths. A host is that of the URL, in
lower case without `www.`; sub-domains are hosts of their own. A round holds 62 bytes for each
document of its partition, and all of a host stand in one.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from ..documents.errors import UsageError
from ..documents.exchange import Survey
from ..documents.stage import Measured, Stage
from .rank import decisions, grouped, hash_rows, runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..documents.exchange import AnyRound, Texts

ORDERS = ("best", "id")


def _host_hash(host: str) -> tuple[int, int]:
    """128 bits of BLAKE2b as two integers; (0, 0) for no host."""
    host = host.lower().rstrip(".").removeprefix("www.")
    if not host:
        return 0, 0
    raw = hashlib.blake2b(host.encode("utf-8", "replace"), digest_size=16).digest()
    return int.from_bytes(raw[:8], "little"), int.from_bytes(raw[8:], "little")


@dataclass(frozen=True, kw_only=True)
class HostSurvey(Survey):
    """Score `host` uint64[rows, 2]: the 128-bit hash of the host; (0, 0) without one."""

    name: ClassVar[str] = "host_survey"
    revision: ClassVar[int] = 1
    needs_text: ClassVar[bool] = False

    def measure(self, batch: pa.RecordBatch) -> Measured:
        """Hash each distinct host once."""
        coded = batch.column("host").cast(pa.string()).fill_null("").dictionary_encode()
        names = [_host_hash(name) for name in coded.dictionary.to_pylist()]
        hashes = np.array(names, np.uint64).reshape(-1, 2)
        return Measured({"host": hashes[coded.indices.to_numpy(zero_copy_only=False)]})


@dataclass(frozen=True, kw_only=True)
class HostGroups:
    """The one round: of each host the first `at_most` documents stay."""

    name: ClassVar[str] = "hosts"
    at_most: int = 1000
    order: str = "best"

    def gather(self, rows: pa.Table, texts: Texts) -> pa.Table:
        """Rows of one partition -> DECISIONS for all documents of hosts that have too many."""
        found, group = grouped(rows, self.at_most)
        keys = (found.shard, found.low, found.high, group)
        ranked = np.lexsort(keys) if self.order == "id" else found.order(group)
        starts, sizes = runs(group[ranked])
        first = np.repeat(starts, sizes)
        place = np.arange(len(ranked)) - first  # in its host
        last = ranked[first + np.minimum(place, self.at_most - 1)]  # kept, for those behind it
        witness, root = np.empty(len(ranked), np.int64), np.empty(len(ranked), np.int64)
        witness[ranked] = np.where(place < self.at_most, -1, last)
        root[ranked] = ranked[first]
        one = np.ones(len(ranked), np.uint32)
        return decisions(found, witness, one, one, root)


@dataclass(frozen=True, kw_only=True)
class HostCap:
    """Keep at most `at_most` documents of each host; documents without a host all stay."""

    name: ClassVar[str] = "host_cap"
    revision: ClassVar[int] = 1
    reasons: ClassVar[tuple[str, ...]] = ("keep", "over_host_cap")
    verdict_fields: ClassVar[frozenset[str]] = frozenset({"at_most", "order"})

    at_most: int = 1000  # documents of a host
    order: str = "best"  # or "id": a sample without regard to length and quality

    def __post_init__(self) -> None:
        """Check the fields; UsageError names the one that is wrong."""
        if isinstance(self.at_most, bool) or not 1 <= self.at_most < 2**31:
            msg = f"host_cap.at_most: found {self.at_most!r}, expected a whole number "
            msg += f"from 1 to {2**31 - 1}"
            raise UsageError(msg)
        if self.order not in ORDERS:
            msg = f"host_cap.order: found {self.order!r}, expected one of {', '.join(ORDERS)}"
            raise UsageError(msg)

    @property
    def survey(self) -> Stage:
        """Hashes; see `HostSurvey`."""
        return HostSurvey()

    @property
    def rounds(self) -> Sequence[AnyRound]:
        """One round."""
        return (HostGroups(at_most=self.at_most, order=self.order),)

    @property
    def row_bytes(self) -> int:
        """One row a document."""
        return 54

    def scatter(self, documents: pa.Table) -> pa.Table:
        """One row per document with a host: the hash in two columns, KEY and RANK."""
        return hash_rows(documents, "host")
