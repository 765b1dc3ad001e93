"""Drop texts that hold evaluation items, or cut the items out.

Items come from JSONL files by path (`_items`), texts are compared with them by grams of `ngram`
tokens. An item is found in a text when, within a stretch of twice its length, both are true:

- the grams that only it holds (or that the fewest items hold) are there to a share of `need`;
- and so are all its grams, each weighted by its inverse document frequency over the items.

`need` falls with the item's length: all of an item up to `full_to` words, `share` of it from
`long_from` words on, linearly between. An item of up to `full_to` words must moreover be there word
for word, and so must one that mostly consists of what many items hold. Or, of an item of fewer than
`long_from` words, all must be there but for one word between its first and its last: another, two
(`don t`), none, or one more. Not where items are told apart by that
word (`Which of the following is an example of ...`), and where a gram that is left says something.
What is changed in an item of fewer than `long_from` words must be spelling or a word of form
(`_near`): with another content word or number it is another question, which a page may ask; and so
is an item of any length up to 400 tokens with another number in the place of one of its own (by
value: `1.50` is `1.5`), or with `-` for `+`. With
`near: any` each of these counts too, so that items perturbed on purpose are found.
So an item of nine words is found, a long one also with changes, and an instruction or passage that
items share flags none of them. IDF-weighted scores with a threshold by length are the idea of
`decon` (Olmo 3, 2025); the conditions and their exactness (whole numbers throughout) are ours. Case
and marks do not count, nor do soft hyphens, apostrophes inside words, hyphens that break a word at
a line's end, the width of letters, and whether they are character references (`&eacute;`).

An item of parts (a question too short to be looked for alone, and its choices) is also found where
the question is whole and behind it all choices are, in any order, with up to five tokens before
each: numbers, bullets, `Answer: B`. A gram must lead there: of the parts, or of them numbered.

Every occurrence is cut, and then what the cuts join, until nothing is found.

What it cannot see: paraphrase, translation, items shorter than `min_words`, two changes in an item
of up to about 20 words, in one of eight or nine a change in the middle, where no gram is left; a
short question with fewer choices, or with a change in it and numbers before these; a compound
broken at its own hyphen at a line's end; of another question like an item and a changed
copy of it in one text the copy, if it comes second.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ..documents.edits import Edits, apply_edits
from ..documents.errors import UsageError
from ..documents.files import as_paths, files_field
from ..documents.stage import Evidence, Measured
from ..documents.text import TextView, from_buffers, text_view
from . import _kernels_copies as copies
from . import _kernels_items as kernels
from ._characters import table
from ._exact import check_counts, check_fractions, check_names, rational
from ._items import Index, load_index
from ._near import other_signs, same_numbers, same_question, signs_at, words_at

MOST_TOKENS = 100  # of a gram: an item with one changed word must keep some
PASSES = 16  # over a text that is cut, at least; copies side by side take two
REREAD = 256 << 20  # bytes that may be read again for one text; what is longer has PASSES
SHOWN = 5  # items that evidence names
LAID_OUT = -1  # in place of the own grams of an item whose parts stand apart


@dataclass(frozen=True, kw_only=True, slots=True)
class Decontaminate:
    """Find evaluation items of JSONL files in texts: drop the text, or cut the passage.

    Scores: `items` int32 (found), `words` int32 (of the longest), `share` int16 (thousandths of the
    one best covered).
    """

    files: tuple[Path, ...] = files_field()  # .jsonl, plain or .gz or .zst, or folders of them
    fields: tuple[str, ...] = ()  # those that make the item, dots for nested; empty: the question
    policy: str = "drop"  # or "cut": the passage; or "keep": attributes alone
    ngram: int = 5  # tokens
    min_words: int = 8  # shorter items are not looked for
    full_to: int = 12  # words: up to here all of an item must be there
    long_from: int = 25  # words: from here on `share` of it
    share: float = 0.4  # of the weight of its grams
    near: str = "spelling"  # what may differ in a shorter item; or "any": numbers and content too

    name: ClassVar[str] = "decontaminate"
    revision: ClassVar[int] = 8
    reasons: ClassVar[tuple[str, ...]] = ("keep", "contaminated")
    verdict_fields: ClassVar[frozenset[str]] = frozenset()
    flag: ClassVar[str] = "items"  # the score that marks what `keep` leaves: `sample` shows these

    def __post_init__(self) -> None:
        """Check the fields; UsageError names the one that is wrong."""
        check_counts(self, ("ngram", "min_words", "full_to", "long_from"))
        check_fractions(self, ("share",))
        object.__setattr__(self, "files", as_paths(self.files, f"{self.name}.files"))
        check_names(self, ("fields",))
        if self.policy not in ("drop", "cut", "keep"):
            msg = f"{self.name}.policy: found {self.policy!r}, expected drop, cut or keep"
            raise UsageError(msg)
        if self.near not in ("spelling", "any"):
            msg = f"{self.name}.near: found {self.near!r}, expected spelling or any"
            raise UsageError(msg)
        if not 2 <= self.ngram <= min(self.min_words, MOST_TOKENS):
            msg = f"{self.name}.ngram: found {self.ngram}, expected 2 to "
            msg += f"{min(self.min_words, MOST_TOKENS)} (no more than min_words, and {MOST_TOKENS})"
            raise UsageError(msg)
        if not self.full_to < self.long_from or not self.share:
            msg = f"{self.name}: expected full_to below long_from, and a share above 0"
            raise UsageError(msg)
        if not self.files:
            msg = f"{self.name}.files: none; expected the JSONL files of evaluation items"
            raise UsageError(msg)

    def _index(self) -> Index:
        where = f"{self.name}.files"
        limits = (self.ngram, self.min_words, self.full_to, self.long_from)
        return load_index(self.files, self.fields, limits, where)

    def load(self) -> tuple[str, ...]:
        """Read the items; UsageError for a garbled file; how many cannot be looked for."""
        return self._index().notes

    def needed(self, words: np.ndarray) -> np.ndarray:
        """Thousandths of an item of so many words that must be there, int64."""
        top, bottom = rational(self.share)
        least = -(-1000 * top // bottom)
        over = np.clip(words - self.full_to, 0, self.long_from - self.full_to)
        return np.asarray(1000 - (1000 - least) * over // (self.long_from - self.full_to))

    def measure(self, batch: pa.RecordBatch) -> Measured:
        """Find items in each text."""
        index = self._index()
        view = text_view(batch.column("text"))
        rows, items, best, cuts = self._find(view, index, kernels.AGAIN)
        scores: dict[str, np.ndarray] = {
            "items": np.bincount(rows, minlength=view.rows).astype(np.int32),
            "words": np.zeros(view.rows, np.int32),
            "share": np.zeros(view.rows, np.int16),
        }
        np.maximum.at(scores["words"], rows, index.words[items].astype(np.int32))
        np.maximum.at(scores["share"], rows, best[:, 0].astype(np.int16))
        distinct, first = np.unique(rows, return_index=True)
        stops = np.append(first[1:], len(rows))[: len(first)]
        notes = [_note(index, items[a:z], best[a:z]) for a, z in zip(first, stops, strict=True)]
        edits = self._edits(view, index, cuts) if self.policy == "cut" else None
        return Measured(scores, edits=edits, evidence=Evidence(distinct, notes))

    def verdict(self, scores: Mapping[str, np.ndarray]) -> np.ndarray:
        """Drop texts with an item, where that is the policy."""
        return ((scores["items"] > 0) & (self.policy == "drop")).astype(np.uint8)

    def _find(
        self, view: TextView, index: Index, again: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Rows and items int64[k] that belong together, by row, and what `judge` said, int64[k, 4].

        And where all occurrences are, int64[m, 3]: row, first and last byte; see `_passages`.
        """
        needed = self.needed(index.words)
        rows, items, places, groups, best, every = _find(view, index, self.ngram, needed, again)
        whole = _spelled_out(view, index, rows, items, best)
        if self.near == "spelling":
            _other_questions(view, index, rows, items, best, np.flatnonzero(best[:, 0] > 0))
        hits = np.repeat(items, np.diff(groups)).astype(np.int32), places
        apart = _laid_out(view, index, (rows, items, groups), hits, best)
        almost = _but_one(view, index, self.ngram, (rows, items, groups), hits, best)
        almost = np.concatenate([almost, apart])
        if self.near == "spelling":
            _other_questions(view, index, rows, items, best, np.unique(almost[:, 0]))
            almost = almost[best[almost[:, 0], 0] > 0]
        almost[:, 0] = rows[almost[:, 0]]
        if self.policy != "cut":
            every = np.zeros((0, 3), np.int64)
        loose = np.array([index.spelled[i] is None for i in items[every[:, 0]].tolist()], bool)
        every = every[loose & (best[every[:, 0], 0] > 0)]
        every[:, 0] = rows[every[:, 0]]
        good = best[:, 0] > 0
        cuts = _passages(np.concatenate([every, *whole, almost]))
        return rows[good], items[good], best[good], cuts

    def _edits(self, view: TextView, index: Index, cuts: np.ndarray) -> Edits:
        """Cut what was found until nothing is, for what a cut joins may be an item again.

        Only texts that were just cut are read again. A changed copy of an item goes one at a pass,
        so a text has passes for `REREAD` bytes, `PASSES` at least; one that still holds items then
        is cut whole, so that the cost has a bound.
        """
        text = from_buffers(view.data, view.offsets)
        sizes = np.diff(view.offsets)
        passes = np.maximum(PASSES, REREAD // np.maximum(sizes, 1))
        fresh, left = np.unique(cuts[:, 0]), np.zeros(0, np.int64)
        for turn in count(1):
            if not len(fresh):
                break
            held = cuts[np.isin(cuts[:, 0], fresh)]
            held[:, 0] = np.searchsorted(fresh, held[:, 0])
            rest = text_view(apply_edits(text.take(pa.array(fresh)), _as_edits(held)))
            *_, more = self._find(rest, index, 1)
            more = _before_cuts(more, held)
            more[:, 0] = fresh[more[:, 0]]
            fresh = np.unique(more[:, 0])
            cuts = _passages(np.concatenate([cuts, more]))
            spent = passes[fresh] <= turn
            fresh, left = fresh[~spent], np.concatenate([left, fresh[spent]])
        whole = np.column_stack([left, np.zeros(len(left), np.int64), sizes[left]])
        return _as_edits(_passages(np.concatenate([cuts, whole])))


def _find(
    view: TextView, index: Index, n: int, needed: np.ndarray, again: int
) -> tuple[np.ndarray, ...]:
    """Groups of hits of one row and one item: rows and items int64[k], by row.

    Also the tokens of all hits int64, bounds int64[k + 1] into these, what `judge` said of each,
    int64[k, 4], and what `stretches` said: int64[m, 3], of which of the k, first and last byte.
    """
    room = 1024 + int(view.offsets[-1] - view.offsets[0]) // 128
    grams = len(index.starts) - 1
    while True:
        out = (
            np.empty(room, np.int64),
            np.empty(room, np.int64),
            np.empty(room, np.int32),
            np.empty(room, np.int64),
            np.empty(room, np.int64),
        )
        last = np.full(max(1, grams), -1, np.int64)
        hits = kernels.scan(view.data, view.offsets, table(), n, index.lookup, last, again, out)
        if hits <= room:
            break
        room = hits
    rows, places, gram, starts, stops = (values[:hits] for values in out)
    each = index.starts[gram + 1] - index.starts[gram]
    hit = np.repeat(np.arange(hits), each)
    nth = np.arange(len(hit)) - np.repeat(np.cumsum(each) - each, each)
    posting = index.starts[gram[hit]] + nth
    item = index.of[posting]
    order = np.lexsort((places[hit], item, rows[hit]))
    hit, item, posting = hit[order], item[order], posting[order]
    change = np.flatnonzero((np.diff(rows[hit]) != 0) | (np.diff(item) != 0)) + 1
    groups = np.concatenate([[0], change, [len(hit)]]) if len(hit) else np.zeros(1, np.int64)
    judged = np.zeros((len(groups) - 1, 4), np.int64)
    told = (item, index.local[posting], places[hit], starts[hit], stops[hit])
    widest = int(np.diff(index.judged[0]).max(initial=1))
    bases, weights, own, *totals = index.judged
    about = (index.sizes, needed, bases, weights, own, *totals)
    counts, where = np.zeros((2, widest), np.int64)
    kernels.judge(groups.astype(np.int64), told, about, counts, judged)
    good = np.flatnonzero(judged[:, 0] > 0)
    at = groups[good]
    bounds = np.column_stack([at, groups[1:][good]]).astype(np.int64)
    every = np.empty((len(hit), 3), np.int64)
    count = kernels.stretches(bounds, told, about, counts, where, every)
    every[:count, 0] = good[every[:count, 0]]
    at = groups[:-1]
    owner = rows[hit[at]], item[at].astype(np.int64)
    return *owner, places[hit], groups.astype(np.int64), judged, every[:count]


def _spelled_out(
    view: TextView, index: Index, rows: np.ndarray, items: np.ndarray, best: np.ndarray
) -> list[np.ndarray]:
    """Look for items that must be whole word by word; int64[m, 3]: row, first and last byte.

    Where one stands, `best` gets its first and last byte; where none does, a share of 0. A text is
    read again only for these.
    """
    all_of_them = [np.zeros((0, 3), np.int64)]
    held = -1
    for k in np.flatnonzero(best[:, 0] > 0).tolist():
        row, wanted = int(rows[k]), index.spelled[items[k]]
        if wanted is None:
            continue
        if row != held:
            held = row
            hashes, places = _tokens_of(view, row)
        at = np.flatnonzero(hashes[: max(0, len(hashes) - len(wanted) + 1)] == wanted[0])
        for t in range(1, len(wanted)):
            at = at[hashes[at + t] == wanted[t]]
        if not len(at):
            best[k, 0] = 0
            continue
        starts, stops = places[at, 0], places[at + len(wanted) - 1, 1]
        best[k, 2:4] = starts[0], stops[0]
        all_of_them.append(np.column_stack([np.full(len(at), row), starts, stops]))
    return all_of_them


def _laid_out(
    view: TextView,
    index: Index,
    found: tuple[np.ndarray, ...],
    hits: tuple[np.ndarray, ...],
    best: np.ndarray,
) -> np.ndarray:
    """Look for items of parts that nothing was found of; as `_but_one`."""
    _, items, _ = found
    asked = np.flatnonzero((best[:, 0] == 0) & (np.diff(index.parts[2])[items] > 0))

    def look(hashes: np.ndarray, bounds: np.ndarray, out: np.ndarray) -> None:
        copies.laid_out(hashes, bounds, hits, index.parts, out)

    spans = _token_by_token(view, found, asked, look)
    best[spans[:, 0], 0], best[spans[:, 0], 1] = 1000, LAID_OUT
    best[spans[:, 0], 2:4] = spans[:, 1:]
    return spans


def _but_one(
    view: TextView,
    index: Index,
    n: int,
    found: tuple[np.ndarray, ...],
    hits: tuple[np.ndarray, ...],
    best: np.ndarray,
) -> np.ndarray:
    """Look for short items that nothing was found of, but for one word; int64[m, 3].

    Of each which of the `found`, first and last byte; `best` gets these and its share.
    """
    _, items, _ = found
    sizes = np.diff(index.short[1])[items]
    asked = np.flatnonzero((best[:, 0] == 0) & (sizes > 0))

    def look(hashes: np.ndarray, bounds: np.ndarray, out: np.ndarray) -> None:
        copies.near(hashes, bounds, hits, index.short, n, out)

    spans = _token_by_token(view, found, asked, look)
    held = spans[:, 0]
    best[held, 0], best[held, 1] = (sizes[held] - 1) * 1000 // sizes[held], 0
    best[held, 2:4] = spans[:, 1:]
    return spans


def _token_by_token(
    view: TextView,
    found: tuple[np.ndarray, ...],
    asked: np.ndarray,
    look: Callable[[np.ndarray, np.ndarray, np.ndarray], None],
) -> np.ndarray:
    """Which of the groups `asked` the kernel `look` finds, int64[m, 3]; first and last byte.

    A text is read again only for these.
    """
    rows, _, groups = found
    spans = [np.zeros((0, 3), np.int64)]
    edges = np.flatnonzero(np.diff(rows[asked], prepend=-1))
    for mine in np.split(asked, edges[1:]) if len(asked) else ():
        hashes, where = _tokens_of(view, int(rows[mine[0]]))
        out = np.empty((len(mine), 2), np.int64)
        look(hashes, np.column_stack([groups[mine], groups[mine + 1]]), out)
        there = out[:, 0] >= 0
        first, last = out[there].T
        spans.append(np.column_stack([mine[there], where[first, 0], where[last - 1, 1]]))
    return np.concatenate(spans)


def _other_questions(
    view: TextView,
    index: Index,
    rows: np.ndarray,
    items: np.ndarray,
    best: np.ndarray,
    asked: np.ndarray,
) -> None:
    """Of those `asked`, set the share to 0 where a copy asks something else.

    Its words are compared where it is not whole, its signs in any case.
    """
    loose = np.diff(index.short[1])[items] > 0
    held = -1
    for k in asked.tolist():
        signs, read = index.signs[items[k]], index.said[items[k]] if best[k, 0] < 1000 else []
        row, size = int(rows[k]), int(index.sizes[items[k]])
        if not read and not signs:
            continue
        if row != held:
            held = row
            _, places = _tokens_of(view, row)
            raw = view.data[view.offsets[row] : view.offsets[row + 1]].tobytes()
        first = int(np.searchsorted(places[:, 1], best[k, 2], side="right"))
        last = int(np.searchsorted(places[:, 0], best[k, 3]))
        more = size if best[k, 1] > 0 else 0  # found by its grams: its ends may lie further
        copy, around = places[first:last], places[max(0, first - more) : last + more]
        said = words_at(raw, around)
        same = not signs or not all(other_signs(signs, signs_at(raw, at)) for at in (copy, around))
        if same and read:
            same = same_question(read, said, index.form) if loose[k] else same_numbers(read, said)
        if not same:
            best[k, :2] = 0


def _tokens_of(view: TextView, row: int) -> tuple[np.ndarray, np.ndarray]:
    """Hashes of a row's tokens, and the first and last byte of each in the row, int64[n, 2]."""
    bounds = view.offsets[row : row + 2]
    room = int(bounds[1] - bounds[0])
    hashes, free = np.empty(room, np.uint64), np.empty(room, np.bool_)
    places, ends = np.empty((room, 2), np.int64), np.zeros(2, np.int64)
    size = kernels.tokens(view.data, bounds, table(), hashes, free, ends, places)
    return hashes[:size], places[:size] - bounds[0]


def _by(own: int, of: int) -> dict[str, str]:
    """How an item was found: by its own grams, or word by word with one other, or in parts."""
    if own == LAID_OUT:
        return {"differs": "layout"}
    return {"own_grams": f"{own} of {of}"} if own else {"differs": "one word"}


def _note(index: Index, items: np.ndarray, best: np.ndarray) -> str:
    """What `why` shows: the items found, the longest first."""
    order = np.lexsort((items, -index.words[items]))[:SHOWN]
    told: list[dict[str, Any]] = [
        {
            "file": index.items[items[i]].file,
            "item": index.items[items[i]].name,
            "words": int(index.words[items[i]]),
            **_by(int(best[i, 1]), int(index.own_grams[items[i]])),
            "share": int(best[i, 0]) / 1000,
            "bytes": [int(best[i, 2]), int(best[i, 3])],
        }
        for i in order.tolist()
    ]
    return json.dumps({"found": len(items), "items": told}, ensure_ascii=False)


def _passages(spans: np.ndarray) -> np.ndarray:
    """Stretches int64[n, 3] (row, first and last byte), in order, joined where they meet."""
    rows, starts, stops = spans[np.lexsort((spans[:, 1], spans[:, 0]))].T
    width = int(stops.max(initial=0)) + 1
    reached = np.maximum.accumulate(rows * width + stops)
    first = np.flatnonzero(np.append(True, (rows * width + starts)[1:] > reached[:-1])[: len(rows)])
    ends = np.append(first[1:], len(rows))[: len(first)] - 1
    return np.column_stack([rows[first], starts[first], reached[ends] - rows[first] * width])


def _before_cuts(spans: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """Stretches of texts that were cut, as stretches of the texts before; both by row."""
    out = spans.copy()
    for row in np.unique(spans[:, 0]).tolist():
        _, starts, stops = cuts[cuts[:, 0] == row].T
        gone = np.cumsum(stops - starts)
        at = starts - gone + (stops - starts)  # of each cut in the text that is left
        mine = spans[:, 0] == row
        for side, within in ((1, 0), (2, 1)):  # the last byte is that before the end
            place = spans[mine, side] - within
            cut = np.searchsorted(at, place, side="right")
            out[mine, side] = place + np.append(0, gone)[cut] + within
    return out


def _as_edits(cuts: np.ndarray) -> Edits:
    return Edits(
        rows=cuts[:, 0].copy(),
        starts=cuts[:, 1].copy(),
        lengths=cuts[:, 2] - cuts[:, 1],
        reasons=np.zeros(len(cuts), np.uint8),
        reason_names=("evaluation_item",),
    )
