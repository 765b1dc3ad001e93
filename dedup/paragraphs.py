"""Paragraphs that many documents share: stripped beyond a count, the documents stay.

Cookie notices, share buttons, licence texts: a paragraph (or line) that stands in more documents
than `at_most` is cut from all but the first `at_most` in representative order, as CCNet and
RefinedWeb do with lines and Dolma with paragraphs. Equal is as in `exact`: but for white space, by
a 128-bit hash. Within a document nothing is counted twice, so a refrain is no repetition here
(`gopher_repetition` judges it). Paragraphs of fewer than `min_bytes` bytes, white space around them
not counted, stay: headings, numbers, "Yes." are no boilerplate because others wrote them too. A
document of which nothing is left is dropped as `emptied`.

    scatter   every distinct paragraph of a document -> a row of 70 bytes
    count     rows of one paragraph -> the documents that lose it
    collect   what a document loses -> its decision, a list of 64-bit hashes

A document names what it loses by hash, never by place, so decisions need no text; the pass that
applies them splits and hashes only documents that lose something.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from ..documents.edits import Edits
from ..documents.errors import UsageError, did_you_mean
from ..documents.exchange import DECISIONS, Survey
from ..documents.stage import Evidence, Measured, Stage
from ..documents.text import text_view
from . import _kernels as kernels
from ._kernels_pairs import paragraph_ends
from .rank import Nodes, column, decisions, document_keys, nodes, runs
from .scope import check_scope, within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..documents.exchange import AnyRound, Texts

UNITS = {"line": 1, "paragraph": 2}  # line ends in a row that end one


@dataclass(frozen=True, kw_only=True)
class Paragraphs:
    """The paragraphs of some texts: stretches that cover them, separators included."""

    owner: np.ndarray  # int64[n], row of the text
    start: np.ndarray  # int64[n], byte in the text
    size: np.ndarray  # int64[n], bytes
    own: np.ndarray  # int64[n], bytes without white space at both ends
    hashes: np.ndarray  # uint64[n, 2]; (0, 0) for one without content


def split(texts: pa.LargeStringArray, unit: str) -> Paragraphs:
    """Split and hash every text."""
    view = text_view(texts)
    size = int(view.offsets[-1] - view.offsets[0]) if view.rows else 0
    ends = np.empty(size + view.rows, np.int64)
    counts = np.zeros(view.rows, np.int64)
    total = paragraph_ends(view.data, view.offsets, UNITS[unit], ends, counts)
    first = view.offsets[:1] if view.rows else np.zeros(1, np.int64)
    edges = np.concatenate((first, ends[:total]))
    hashes = np.zeros((total, 2), np.uint64)
    kernels.hash_texts(view.data, edges, hashes)
    own = np.empty(total, np.int64)
    kernels.own_bytes(view.data, edges, own)
    owner = np.repeat(np.arange(view.rows), counts)
    return Paragraphs(
        owner=owner,
        start=edges[:-1] - view.offsets[owner],
        size=np.diff(edges),
        own=own,
        hashes=hashes,
    )


@dataclass(frozen=True, kw_only=True)
class ParagraphSurvey(Survey):
    """Score `scope` uint64[rows]: what keeps documents of two scopes apart; 1 for the corpus."""

    name: ClassVar[str] = "paragraph_survey"
    revision: ClassVar[int] = 1
    needs_text: ClassVar[bool] = False

    scope: str = "corpus"

    def measure(self, batch: pa.RecordBatch) -> Measured:
        """Name the scope; texts are seen when rows are scattered."""
        return Measured({"scope": within(np.ones(batch.num_rows, np.uint64), batch, self.scope)})


@dataclass(frozen=True, kw_only=True)
class Count:
    """Rows of equal paragraphs -> (document, paragraph) beyond the first `at_most` documents."""

    name: ClassVar[str] = "count"
    at_most: int = 1

    def gather(self, rows: pa.Table, texts: Texts) -> pa.Table:
        """Rows (partition, rest, KEY, RANK) -> rows by document (partition, hash, KEY, RANK)."""
        found, head, rest = nodes(rows), column(rows, "partition"), column(rows, "rest")
        order = np.lexsort((rest, head))
        _, sizes = runs(head[order], rest[order])
        order = order[np.repeat(sizes > self.at_most, sizes)]
        found, head, rest = found.take(order), head[order], rest[order]
        order = found.order(head, rest)
        starts, sizes = runs(head[order], rest[order])
        place = np.arange(len(order)) - np.repeat(starts, sizes)
        over = order[place >= self.at_most]
        gone = found.take(over)
        columns = {"partition": pa.array(document_keys(gone)), "hash": pa.array(head[over])}
        return pa.table(columns | gone.columns())


@dataclass(frozen=True, kw_only=True)
class Collect:
    """Rows of equal documents -> decisions: all are kept, each with the hashes that it loses."""

    name: ClassVar[str] = "collect"

    def gather(self, rows: pa.Table, texts: Texts) -> pa.Table:
        """Rows (partition, hash, KEY, RANK) -> `RepeatedParagraphs.decided`."""
        found, hashes = nodes(rows), column(rows, "hash")
        order = np.lexsort((hashes, found.low, found.high, found.shard))
        found, hashes = found.take(order), hashes[order]
        starts, _ = runs(found.shard, found.high, found.low)
        each: Nodes = found.take(starts)
        size = len(starts)
        none, one = np.full(size, -1, np.int64), np.ones(size, np.uint32)
        table = decisions(each, none, one, one, np.arange(size))  # sorted by (shard, id), as here
        lists = pa.ListArray.from_arrays(
            pa.array(np.append(starts, len(hashes)).astype(np.int32)), pa.array(hashes)
        )
        return table.append_column(CUT, lists)


CUT = pa.field("cut", pa.list_(pa.uint64()))


@dataclass(frozen=True, kw_only=True)
class RepeatedParagraphs:
    """Cut paragraphs that more than `at_most` documents have from all but the first of those."""

    name: ClassVar[str] = "repeated_paragraphs"
    revision: ClassVar[int] = 2
    reasons: ClassVar[tuple[str, ...]] = ("keep", "emptied")
    verdict_fields: ClassVar[frozenset[str]] = frozenset()
    decided: ClassVar[pa.Schema] = pa.schema([*DECISIONS, CUT])

    unit: str = "paragraph"  # between blank lines; or line
    at_most: int = 1  # documents that keep a paragraph
    min_bytes: int = 40  # shorter ones stay; white space at both ends does not count
    scope: str = "corpus"  # corpus, crawl or source

    def __post_init__(self) -> None:
        check_scope(self.scope, self.name)
        if self.unit not in UNITS:
            hint = did_you_mean(self.unit, UNITS)
            msg = f"{self.name}: unknown unit {self.unit!r}{hint}; one of {', '.join(UNITS)}"
            raise UsageError(msg)
        for name, least in (("at_most", 1), ("min_bytes", 0)):
            if not least <= (value := getattr(self, name)) < 2**31:
                msg = f"{self.name}.{name}: found {value!r}, expected a whole number "
                msg += f"from {least} to {2**31 - 1}"
                raise UsageError(msg)

    @property
    def survey(self) -> Stage:
        """Scopes alone."""
        return ParagraphSurvey(scope=self.scope)

    @property
    def rounds(self) -> Sequence[AnyRound]:
        """Count, collect."""
        return (Count(at_most=self.at_most), Collect())

    @property
    def row_bytes(self) -> int:
        """70 for each of some 16 paragraphs."""
        return 1120

    def scatter(self, documents: pa.Table) -> pa.Table:
        """One row per distinct paragraph of a document: its hash in two columns, KEY and RANK."""
        found = split(documents.column("text").combine_chunks(), self.unit)
        some = (found.hashes.any(axis=1)) & (found.own >= self.min_bytes)
        owner, hashes = found.owner[some], found.hashes[some]
        order = np.lexsort((hashes[:, 1], hashes[:, 0], owner))
        starts, _ = runs(owner[order], hashes[order, 0], hashes[order, 1])
        order = order[starts]
        salt = column(documents, "scope")[owner[order]]
        columns = {
            "partition": pa.array(hashes[order, 0]),
            "rest": pa.array(hashes[order, 1] ^ salt),
        }
        return pa.table(columns | nodes(documents).take(owner[order]).columns())

    def cut(self, batch: pa.RecordBatch, found: pa.Table, rows: np.ndarray) -> Measured:
        """Edits of the paragraphs that each document loses; score `paragraphs_cut` int32[rows].

        `decision` uint8[rows] is 1 where no paragraph with content is left.
        """
        texts = batch.column("text").take(pa.array(rows))
        parts = split(texts, self.unit)
        lists = found.column("cut").combine_chunks()
        wanted = [set(hashes) for hashes in lists.to_pylist()]
        places = zip(parts.owner.tolist(), parts.hashes[:, 0].tolist(), strict=True)
        gone = np.array([value in wanted[row] for row, value in places], bool)
        gone &= parts.own >= self.min_bytes
        owner = parts.owner[gone]
        number = np.bincount(owner, minlength=len(rows)).astype(np.int32)
        cut = np.zeros(batch.num_rows, np.int32)
        cut[rows] = number
        left = parts.hashes.any(axis=1) & ~gone
        emptied = (number > 0) & (np.bincount(parts.owner[left], minlength=len(rows)) == 0)
        decision = np.zeros(batch.num_rows, np.uint8)
        decision[rows] = emptied
        edits = Edits(
            rows=rows[owner],
            starts=parts.start[gone],
            lengths=parts.size[gone],
            reasons=np.zeros(len(owner), np.uint8),
            reason_names=("repeated_paragraph",),
        )
        some = np.flatnonzero(number)
        notes = [json.dumps({"paragraphs_cut": int(number[i])}) for i in some]
        scores = {"paragraphs_cut": cut, "decision": decision}
        return Measured(scores, edits, Evidence(rows[some], notes))
