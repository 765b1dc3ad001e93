"""Templates: boilerplate, fill-in lines and template pages, found across documents.

    scatter   every text once: its lines (words, masked words) and 24 anchors
    count     pages and hosts with the same line or anchor        (`templates.count`)
    gather    what that says of one page: boilerplate, family     (`templates.gather`)
    families  members laid over what their family shares          (`templates.families`)
    keepers   of each line the page that keeps it                 (`templates.keepers`)

MinHash misses template pages, because a slot breaks all n-grams over it: at 10 % of scattered slot
words two pages have Jaccard 0.42. Three things mend it. Words that fill slots are masked (numbers,
names, rare words), and runs of masked words are one item. Members are not compared with each
other but each with what a sample of the family shares, so that a slot that no mask hides costs one
n-gram and no pair. And what decides is what a page has of its own: `min_prose` words in lines of
prose that the template does not explain keep it, whatever its template is.

A family is found without comparing pages. An anchor (4 masked items in a row; the least 24 hashes
of a page) that pages share names the first of them; most of a page's anchors name the same page.

Three outcomes. Boilerplate lines are cut (reason `boilerplate`) where they stand in blocks, as the
host's pages have them: at the head or foot of a page; within it, only what half of the host's pages
have, and no sentences (clauses of a contract, warnings: a document with holes is worse than one
that repeats another). Of each line one page keeps it, which is not dropped here. What stays
whatever the host says: headings of what stays (marked `#`, or at most 4 words over a paragraph of 8
or a list), tables of which a row stays, lists of which half the items do, and code (between fences;
indented, after a blank line, in texts of which over a quarter is not; or lines that read so: see
`_kernels_marks`). On a host of fewer than `line_pages` pages no line can be counted; `lone:
line_rules` has its pages cut by `line_rules` (reasons `notice`, `share_bar`, `navigation`), which
look at nothing but the page.

Fill-in lines (one skeleton, a different fill on every page) are marked in scores and evidence: they
hold facts. Template pages go (reason `template`), but for `exemplars` of each family; `witness` is
the first of them, and `shared` of `either` words stand in lines of the template with a slot; lines
that all pages have word for word count on neither side.

Counted are distinct URLs, and families need as many distinct texts: copies and repeated crawls are
no template. Rows without a host skip host rules; rows without a URL are pages of their own.
`benchmarks/templates.py` has the figures.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from ...documents.edits import Edits
from ...documents.errors import UsageError, did_you_mean
from ...documents.stage import Evidence, Measured, Stage
from ...documents.text import TextView, text_view
from . import _kernels as kernels
from . import _kernels_url as kernels_url
from .count import Count
from .families import CHOICES, Families
from .gather import Gather
from .keepers import DECIDED, Keepers, Kept
from .laid import Lines, emptied, lines_of, strip
from .line_rules import KINDS, LineRules
from .rows import (
    ANCHOR,
    LINE,
    PAGE,
    ROWS,
    array,
    document_hash,
    documents_of,
    fraction,
    mark_of,
    mix,
    no_documents,
    places,
)
from .words import common, ignored, notices

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...documents.exchange import Round

LONE = ("keep", "line_rules")
BOUNDS = (  # a recipe has seen to it that these are whole numbers
    ("line_pages", 2, None), ("notice_hosts", 2, None), ("anchor_ngram", 2, 64),
    ("anchors", 4, 1024),  # each is a row of the exchange
    ("ngram", 2, 64), ("min_pages", 3, None), ("min_slotted", 0, None), ("min_prose", 0, None),
    ("exemplars", 1, None),
)  # fmt: skip
EMPTIED = 2  # place of that reason
EXCERPT = 120  # characters of a line that are shown


@dataclass(frozen=True, kw_only=True)
class TemplateSurvey:
    """Scores `host` and `page` uint64: hashes of host (0: none) and URL (of the id where none).

    http and https, `www.` or not, the usual port, a fragment, a slash at the end, campaigns and
    sessions in query or path, and the order of what a query has make no other page.
    """

    name: ClassVar[str] = "template_survey"
    revision: ClassVar[int] = 6
    reasons: ClassVar[tuple[str, ...]] = ("keep",)
    verdict_fields: ClassVar[frozenset[str]] = frozenset()
    needs_text: ClassVar[bool] = False

    def measure(self, batch: pa.RecordBatch) -> Measured:
        """Hash host and URL."""
        return Measured(
            {"host": _hashes(batch.column("host")), "page": _hashes(batch.column("url"))}
        )

    def verdict(self, scores: Mapping[str, np.ndarray]) -> np.ndarray:
        """Keep every row: the rounds decide."""
        return np.zeros(len(scores["page"]), np.uint8)


def _hashes(column: pa.Array) -> np.ndarray:
    view = text_view(column)
    out = np.zeros(view.rows, np.uint64)
    kernels_url.hash_addresses(view.data, view.offsets, ignored(), out)
    return out


@dataclass(frozen=True, kw_only=True)
class Templates:
    """Strip a host's boilerplate lines; drop pages filled in from a template, but for exemplars.

    `lone` says what is done with pages of hosts of which fewer than `line_pages` pages are seen:
    `keep` them, or cut them by `line_rules`.
    """

    name: ClassVar[str] = "templates"
    revision: ClassVar[int] = 9
    reasons: ClassVar[tuple[str, ...]] = ("keep", "template", "emptied")
    verdict_fields: ClassVar[frozenset[str]] = frozenset(
        {
            "line_pages", "line_share", "notice_hosts", "ngram", "min_pages", "min_share",
            "min_slotted", "min_prose", "cross_share", "exemplars", "choice", "lone",
        }
    )  # fmt: skip
    decided: ClassVar[pa.Schema] = DECIDED

    line_pages: int = 5  # pages of a host with a line, from which it may be boilerplate
    line_share: str = "0.25"  # and of the host's pages; exact: a decimal or a fraction
    notice_hosts: int = 10  # hosts with a notice, from which it is one wherever it stands
    anchor_ngram: int = 4  # masked items in an anchor
    anchors: int = 24  # of a page
    ngram: int = 5  # items, or words, by which a page is laid over its template
    min_pages: int = 10  # distinct URLs, and texts, of a family
    min_share: str = "0.3"  # of a page's words, in lines of the template with a slot; exact
    min_slotted: int = 20  # and so many of them
    min_prose: int = 60  # own words in lines of prose that save a page
    cross_share: str = "0.5"  # of a page's words, in its template, in a family of several hosts
    exemplars: int = 3  # template pages of a family that stay
    choice: str = "novelty"  # which of them: novelty, length or id
    lone: str = "keep"  # or line_rules, for pages of hosts of fewer than `line_pages`

    def __post_init__(self) -> None:
        for name in ("line_share", "min_share", "cross_share"):  # YAML reads 0.05 as a float
            object.__setattr__(self, name, str(getattr(self, name)))
            if not 0 < fraction(getattr(self, name)) <= 1:
                msg = (
                    f"templates: {name} is {getattr(self, name)!r}, expected a decimal or "
                    "fraction above 0 and at most 1, such as 0.5 or 1/2"
                )
                raise UsageError(msg)
        for name, least, most in BOUNDS:
            value = getattr(self, name)
            if value < least or (most is not None and value > most):
                allowed = f">= {least}" if most is None else f"{least} to {most:,}"
                msg = f"templates: {name} is {value}, expected {allowed}"
                raise UsageError(msg)
        for name, known in (("choice", CHOICES), ("lone", LONE)):
            value = getattr(self, name)
            if value not in known:
                msg = f"templates: no {name} {value!r}{did_you_mean(value, known)}"
                raise UsageError(msg)

    @property
    def threshold(self) -> str:
        """Least share of a removed page's words in lines with a slot, as `verify` asks.

        Lines that all pages have word for word count on neither side.
        """
        return self.min_share

    @property
    def survey(self) -> Stage:
        """Hashes of host and URL; see `TemplateSurvey`."""
        return TemplateSurvey()

    @property
    def rounds(self) -> Sequence[Round]:
        """Count, gather, families, keepers, kept."""
        return (
            Count(notice_hosts=self.notice_hosts),
            Gather(
                line_pages=self.line_pages,
                line_share=self.line_share,
                min_pages=self.min_pages,
                lone=self.lone != "keep",
            ),
            Families(
                ngram=self.ngram,
                min_pages=self.min_pages,
                min_share=self.min_share,
                min_slotted=self.min_slotted,
                min_prose=self.min_prose,
                cross_share=self.cross_share,
                exemplars=self.exemplars,
                choice=self.choice,
            ),
            Keepers(),
            Kept(),
        )

    @property
    def row_bytes(self) -> int:
        """60 for each of a page, its anchors and some 10 lines."""
        return 60 * (11 + self.anchors)

    def scatter(self, documents: pa.Table) -> pa.Table:
        """Rows of pages, lines and anchors: see `rows.ROWS`."""
        view = text_view(documents.column("text"))
        anchors = np.zeros((view.rows, self.anchors), np.uint64)
        counts = np.zeros((view.rows, 2), np.int32)
        used = view.data[view.offsets[0] : view.offsets[-1]]
        room = int(np.count_nonzero(used == 10)) + view.rows
        lines, marks = np.empty((room, 2), np.uint64), np.empty((room, 6), np.int32)
        texts = np.empty(view.rows, np.uint64)
        number = kernels.survey(
            view.data,
            view.offsets,
            common(),
            notices(),
            self.anchor_ngram,
            anchors,
            counts,
            lines,
            marks,
            texts,
        )
        lines, marks = lines[:number], marks[:number]
        host, page = array(documents, "host"), array(documents, "page")
        own = document_hash(*places(documents))
        page = np.where(page == 0, own, page)
        host_or_own = mix(np.where(host == 0, own, host))
        row, lane = np.nonzero(anchors)
        none = np.zeros(len(row), np.uint16)
        alone = np.zeros(view.rows, np.uint16)
        every = np.arange(view.rows)
        who = documents_of(documents), no_documents(number), no_documents(len(row))
        line_marks = mark_of(marks[:, 2], marks[:, 3])
        anchor_keys = mix(anchors[row, lane] ^ np.uint64(1))  # apart from lines of the same hash
        pieces: list[tuple[Any, ...]] = [
            (PAGE, every, host_or_own, texts, counts[:, 0], counts[:, 1], alone, alone),
            (LINE, marks[:, 0], mix(lines[:, 1]), lines[:, 0], marks[:, 1], line_marks,
             marks[:, 4], marks[:, 5]),
            (ANCHOR, row, anchor_keys, none, none, none, none, none),
        ]  # fmt: skip
        found = []
        for piece, document in zip(pieces, who, strict=True):
            kind, at, partition, value, words, mark, before, after = piece
            where = pa.array(at)
            columns = {
                "partition": pa.array(partition),
                "kind": pa.array(np.full(len(at), kind, np.uint8)),
                "shard": documents.column("shard").take(where),
                "row": documents.column("row").take(where),
                "host": pa.array(host[at]),
                "page": pa.array(page[at]),
                "value": pa.array(value.astype(np.uint64)),
                "words": pa.array(np.minimum(words, 0xFFFF).astype(np.uint16)),
                "mark": pa.array(mark.astype(np.uint16)),
                "before": pa.array(before.astype(np.uint16)),
                "after": pa.array(after.astype(np.uint16)),
                "document": document,
            }
            found.append(pa.table(columns, schema=ROWS))
        return pa.concat_tables(found)

    def cut(self, batch: pa.RecordBatch, found: pa.Table, rows: np.ndarray) -> Measured:
        """Boilerplate lines of pages that stay, lines by rule; how each stands to its template.

        Lines are found again by digest, with the kernel that counted them. Scores int32:
        `words`, `template_words`, `own_words` where the document is of a family, else 0;
        `fill_lines`, `fill_words`: marked, not cut; `exemplar`; float64 `template_share`; and the
        `decision`, uint8: a document that stays and of which no word is left is emptied.
        """
        counted = {n: np.zeros(batch.num_rows, np.int32) for n in COUNTED}
        exemplar = np.zeros(batch.num_rows, bool)
        text = batch.column("text").take(pa.array(rows))
        lines = lines_of(text)
        (*cuts, least), fills = self._lines(lines, found)
        at, starts, lengths, reasons = _with_rules(cuts, text, found)
        decision = np.zeros(batch.num_rows, np.uint8)
        decision[rows] = array(found, "code")
        decision[rows[emptied(lines, at, starts, lengths)]] = EMPTIED
        for name in ("words", "template_words", "own_words"):
            counted[name][rows] = array(found, name)
        exemplar[rows] = array(found, "exemplar")
        counted["fill_lines"][rows], counted["fill_words"][rows] = fills[:, 0], fills[:, 1]
        share = counted["template_words"] / np.maximum(counted["words"], 1)
        notes = _notes(found, text_view(text), (cuts[0], cuts[1], least), fills)
        edits = Edits(
            rows=rows[at],
            starts=starts,
            lengths=lengths,
            reasons=reasons.astype(np.uint8),
            reason_names=("boilerplate", *KINDS),
        )
        return Measured(
            {**counted, "exemplar": exemplar, "template_share": share, "decision": decision},
            edits,
            Evidence(rows.astype(np.int64), notes),
        )

    @staticmethod
    def _lines(lines: Lines, found: pa.Table) -> tuple[list[np.ndarray], np.ndarray]:
        """Cuts (rows, starts, lengths, least pages) and fill-in lines of some texts."""
        segments, gone_ends = _flat(found.column("segments"), _stays(found))
        gone = [segments.field(n).to_numpy(zero_copy_only=False) for n in ("line", "how", "pages")]
        filled, marked_ends = _flat(found.column("filled"), np.ones(lines.view.rows, bool))
        return strip(lines, (*gone, gone_ends), (filled.to_numpy(), marked_ends))


def _stays(found: pa.Table) -> np.ndarray:
    """Documents that lose lines: those that stay and are no exemplar, which stays whole."""
    return (array(found, "code") == 0) & ~array(found, "exemplar")


def _with_rules(cuts: list[np.ndarray], text: pa.Array, found: pa.Table) -> list[np.ndarray]:
    """Cuts (rows, starts, lengths) and, in order, what `line_rules` cuts of lone hosts' pages.

    The fourth array has the reasons: 0, or 1 and more for `KINDS`.
    """
    rows, starts, lengths = cuts
    lone = np.flatnonzero(array(found, "lone") & _stays(found))
    more = LineRules().measure(pa.record_batch({"text": text.take(pa.array(lone))})).edits
    if more is None:
        return [*cuts, np.zeros(len(rows), np.int64)]
    place, other = rows << 40 | starts, lone[more.rows] << 40 | more.starts
    before = np.searchsorted(place, other, "right")  # whole lines both: inside a cut, or apart
    ends = np.append(-1, place + lengths)
    apart = other >= ends[before]
    place = np.append(place, other[apart])
    order = np.argsort(place, kind="stable")
    reasons = np.append(np.zeros(len(rows), np.int64), more.reasons[apart].astype(np.int64) + 1)
    starts, lengths = np.append(starts, more.starts[apart]), np.append(lengths, more.lengths[apart])
    return [a[order] for a in (place >> 40, starts, lengths, reasons)]


COUNTED = ("words", "template_words", "own_words", "fill_lines", "fill_words")
NOTED = ["words", "template_words", "own_words", "exemplar"]


def _flat(column: pa.ChunkedArray, which: np.ndarray) -> tuple[pa.Array, np.ndarray]:
    """Values of a list column and the end of each row's; rows not in `which` have none."""
    lists = pa.concat_arrays([*column.chunks, pa.array([], column.type)])
    sizes = lists.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
    keep = np.repeat(which, sizes)
    return lists.flatten().filter(pa.array(keep)), np.cumsum(sizes * which)


def _notes(
    found: pa.Table, view: TextView, cuts: tuple[np.ndarray, ...], fills: np.ndarray
) -> list[str]:
    """What `why` shows of each document, as JSON: of each cut, by its start, the host's pages.

    Of several lines, the pages that have the line that the fewest have. Written by hand: the
    encoder takes a quarter of `cut`.
    """
    rows, starts, least = cuts
    ends = np.searchsorted(rows, np.arange(view.rows + 1)).tolist()
    pairs = zip(starts.tolist(), least.tolist(), strict=True)
    seen = [f'{{"start": {start}, "pages": {pages}}}' for start, pages in pairs]
    pages_of_host = array(found, "host_pages").tolist()
    template = zip(*(array(found, name).tolist() for name in NOTED), strict=True)
    both = zip(template, fills.tolist(), view.offsets[:-1].tolist(), strict=True)
    notes = []
    for row, ((words, told, own, exemplar), (lines, filled, begin, end), start) in enumerate(both):
        note = []
        first, last = ends[row], ends[row + 1]
        if first < last:
            note.append(
                f'"boilerplate": {{"pages_of_host": {pages_of_host[row]}, '
                f'"cuts": [{", ".join(seen[first:last])}]}}'
            )
        if words:
            note.append(
                f'"template": {{"words": {words}, "template_words": {told}, "own_words": {own}, '
                f'"exemplar": {"true" if exemplar else "false"}}}'
            )
        if lines:
            line = view.data[start + begin : start + end].tobytes().decode().strip()[:EXCERPT]
            note.append(
                f'"fill_in_lines": {{"lines": {lines}, "words": {filled}, '
                f'"first": {json.dumps(line)}}}'
            )
        notes.append(f"{{{', '.join(note)}}}")
    return notes
