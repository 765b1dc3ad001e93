"""Lines that tell by themselves that they are no content: notices, share bars, navigation.

For hosts of which too few pages are seen to count lines: `templates` with `lone: line_rules` asks
these rules there and nowhere else. As a stage they look at every page, for recipes without
`templates`.

C4 drops lines that mention JavaScript or cookie policies; here one such word is not enough (a
recipe has cookies), and a notice stands at the head or foot of a page that says nothing of the kind
elsewhere (an article on privacy does), and is not its title. Lines of navigation alone never go: a
run of short lines does, where several name the parts of a site and no prose stands before it, or
none after it (a lesson has lists of words). Code is left alone. `benchmarks/templates.py rules`
measures it on lines that people labelled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
import pyarrow as pa

from ...documents.edits import Edits
from ...documents.errors import UsageError
from ...documents.stage import Measured
from .._exact import check_counts
from ._kernels_lines import FOOT, HEAD, PARAGRAPH
from .laid import Lines, Words, in_code, lines_of, words_of
from .words import bits_of, held, notices

SHARES = (
    "share tweet facebook twitter pinterest whatsapp linkedin email print reddit telegram tumblr "
    "instagram youtube follow like pin send this on via x us mail teilen partager compartir dela"
)
NETWORKS = (
    "share tweet facebook twitter pinterest whatsapp linkedin reddit telegram tumblr instagram "
    "youtube teilen partager compartir dela"
)
PARTS = (
    "home about us contact login log in sign up register search menu faq help blog news shop cart "
    "sitemap careers jobs privacy terms account subscribe newsletter events gallery services "
    "products support kontakt impressum startseite accueil inicio hem"
)
RESERVED = "reserved vorbehalten réservés reservados riservati voorbehouden"
TITLE = 12  # words; a page's first line, of at most so many and without a stop, is its title


@cache
def _table(words: str) -> np.ndarray:
    return bits_of(words.split())


@dataclass(frozen=True, kw_only=True, slots=True)
class LineRules:
    """Cut notices, share bars, navigation of all pages (`templates: {lone: line_rules}`: of few).

    For recipes without `templates`, which counts the lines of a host and asks these rules only
    where too few of its pages are seen. Scores int32: lines cut by each rule, and lines with words
    that are `left`; a document of which none is left is dropped as `emptied`.
    """

    name: ClassVar[str] = "line_rules"
    revision: ClassVar[int] = 5
    reasons: ClassVar[tuple[str, ...]] = ("keep", "emptied")
    verdict_fields: ClassVar[frozenset[str]] = frozenset()

    notice_words: int = 2  # words of notices in a line (cookies, privacy, reserved ...)
    notice_length: int = 60  # words; a longer line is no notice
    share_length: int = 8  # words; all name networks or ask to share, and one does either alone
    run_lines: int = 6  # short lines in a row that may be navigation
    run_length: int = 3  # words; a line of so many is short
    run_parts: int = 3  # lines of them that name a part of a site

    def __post_init__(self) -> None:
        """Check the fields; UsageError names the one that is wrong."""
        check_counts(self, self.__slots__)
        for name in self.__slots__:
            if getattr(self, name) < 1:
                msg = f"line_rules: {name} is {getattr(self, name)}, expected >= 1"
                raise UsageError(msg)

    def measure(self, batch: pa.RecordBatch) -> Measured:
        """Look at each line that has words."""
        words = words_of(batch.column("text"))
        rows = np.repeat(np.arange(words.view.rows), np.diff(words.ends, prepend=0))
        lines = words.places[:, 2]
        change = np.ones(len(rows), bool)
        change[1:] = (rows[1:] != rows[:-1]) | (lines[1:] != lines[:-1])
        first = np.flatnonzero(change)
        every = lines_of(batch.column("text"))
        kind = self._kinds(words, every, first, rows[first], lines[first])
        cut = kind > 0
        starts, lengths = _spans(words, first[cut], rows[first[cut]])
        counts = {
            name: np.bincount(rows[first[kind == k]], minlength=words.view.rows).astype(np.int32)
            for k, name in enumerate(KINDS, 1)
        }
        counts["left"] = np.bincount(rows[first[~cut]], minlength=words.view.rows).astype(np.int32)
        edits = Edits(
            rows=rows[first[cut]],
            starts=starts,
            lengths=lengths,
            reasons=(kind[cut] - 1).astype(np.uint8),
            reason_names=KINDS,
        )
        return Measured(counts, edits)

    def verdict(self, scores: Mapping[str, np.ndarray]) -> np.ndarray:
        """Drop what is cut to its last word."""
        gone = np.sum([scores[name] for name in KINDS], axis=0) > 0
        return (gone & (scores["left"] == 0)).astype(np.uint8)

    def _kinds(
        self, words: Words, every: Lines, first: np.ndarray, row: np.ndarray, line: np.ndarray
    ) -> np.ndarray:
        """Rule that each line with words falls under, from 1; 0: none."""
        if not len(first):
            return np.zeros(0, np.int64)
        size = np.diff(np.append(first, len(words.words)))

        def told(table: np.ndarray) -> np.ndarray:
            return np.add.reduceat(held(table, words.words), first)

        prose = ~in_code(every)[np.append(0, every.ends)[row] + line]
        notice = (told(notices()) >= self.notice_words) & (size <= self.notice_length) & prose
        title = _title(words, row, first, size) & (told(_table(RESERVED)) == 0)
        notice &= _at_an_end(row, notice) & ~title
        share = (told(_table(SHARES)) == size) & (size >= 2) & (size <= self.share_length) & prose
        share &= told(_table(NETWORKS)) > 0
        short = (size <= self.run_length) & prose
        part = short & (told(_table(PARTS)) == size)
        # Short lines in a row, without a line between them, of one text.
        breaks = np.ones(len(first), bool)
        breaks[1:] = (row[1:] != row[:-1]) | (line[1:] != line[:-1] + 1) | (short[1:] != short[:-1])
        begin = np.flatnonzero(breaks)
        number = np.diff(np.append(begin, len(first)))
        run = (number >= self.run_lines) & (
            np.add.reduceat(part.astype(np.int64), begin) >= self.run_parts
        )
        run &= ~_between(row, size >= PARAGRAPH)[begin]
        navigation = short & np.repeat(run, number)
        return np.select([notice, share, navigation], [1, 2, 3], 0)


KINDS = ("notice", "share_bar", "navigation")


def _at_an_end(row: np.ndarray, notice: np.ndarray) -> np.ndarray:
    """Lines at the head or foot of a text without such `notice` lines between, bool[lines]."""
    most = np.bincount(row)
    at = np.arange(len(row)) - (np.cumsum(most) - most)[row]
    head, foot = np.minimum(HEAD, most // 4)[row], np.minimum(FOOT, most // 4)[row]
    end = (at < head) | (at >= most[row] - foot)
    elsewhere = np.bincount(row, notice & ~end, len(most)) > 0
    return end & ~elsewhere[row]


def _title(words: Words, row: np.ndarray, first: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Lines that are a page's title, bool[lines]."""
    found = np.zeros(len(row), bool)
    found[:1] = True
    found[1:] = row[1:] != row[:-1]
    after = words.places[first + size - 1, 1]  # the byte after the last word
    inside = np.minimum(after, len(words.view.data) - 1)
    stop = (after < words.view.offsets[row + 1]) & np.isin(words.view.data[inside], STOPS)
    return found & (size <= TITLE) & ~stop


STOPS = (33, 46, 58, 59)


def _between(row: np.ndarray, prose: np.ndarray) -> np.ndarray:
    """Lines with a line of prose of their text before and after them, bool[lines]."""
    place = np.arange(len(row))
    starts = np.searchsorted(row, row)  # rows ascend
    before = np.maximum.accumulate(np.where(prose, place, -1)) >= starts
    after = np.minimum.accumulate(np.where(prose, place, len(row))[::-1])[::-1]
    return before & (after < np.searchsorted(row, row, "right"))


def _spans(words: Words, first: np.ndarray, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bytes of the lines that hold words `first`, line feed included, counted in their texts."""
    data, offsets = words.view.data, words.view.offsets
    feeds = np.flatnonzero(data == 10)
    at = words.places[first, 0]
    before = np.searchsorted(feeds, at)
    start = np.where(before > 0, feeds[np.maximum(before - 1, 0)] + 1, 0) if len(feeds) else at * 0
    start = np.maximum(start, offsets[row])
    end = offsets[row + 1].copy()
    inside = before < len(feeds)
    end[inside] = np.minimum(end[inside], feeds[before[inside]] + 1)
    return start - offsets[row], end - start
