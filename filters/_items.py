"""Evaluation items from JSONL files, and the index of their grams.

A file is JSON objects, a line each, plain or `.gz` or `.zst`. What is looked for is the question:
the first of `QUESTION` that an object has, unless the recipe names fields. Where that is shorter
than `min_words`, the choices are added to it, or the answer where there are none. Such an item has
parts, which a text may number, mark or mix. An item that is still too short, or that consists of
what many others hold, cannot be told from ordinary text: how many is said.

Texts that three items or more share in 20 tokens or longer (an instruction, a passage) are left
out of an item when enough is left: the question alone is then looked for.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..documents.errors import UsageError
from ..documents.files import read_lines
from ..documents.fingerprint import path_digest
from ..documents.text import text_view
from . import _kernels_items as kernels
from ._characters import table
from ._near import WIDEST, Words, form_words, signs_at, words_at

QUESTION = ("question", "prompt", "problem", "query", "text", "input", "goal", "sentence")
MORE = ("choices", "options", "endings", "answers", "answer", "target", "completion")
_NAMES = ("id", "task_id", "question_id", "item_id", "qid", "uid", "_id", "name")
COMMON = 10  # a gram of more items than this says nothing
SHARED = 3  # items that share a passage
PASSAGE = 20  # tokens of one
LABELS = ("ABCDEFGHIJ", "123456789")  # of choices


class Item(NamedTuple):
    """One item: the file's name, its id (or line), its parts, and what may be added to these."""

    file: str
    name: str
    parts: tuple[str, ...]
    more: tuple[str, ...]

    @property
    def text(self) -> str:
        """All parts, a line each at least."""
        return "\n".join(self.parts)


@dataclass(frozen=True, slots=True)
class Index:
    """Grams of all items, as the kernels look them up."""

    items: list[Item]
    words: np.ndarray  # int64[items]: length; two characters without spaces are a word
    sizes: np.ndarray  # int64[items]: tokens
    own_grams: np.ndarray  # int64[items]
    lookup: tuple[np.ndarray, np.ndarray, np.ndarray]  # of `_kernels_items.scan`
    starts: np.ndarray  # int64[grams + 1] into the next two
    of: np.ndarray  # int32: items with the gram
    local: np.ndarray  # int32: its number in the item
    spelled: list[np.ndarray | None]  # hashes of its tokens, where it must be there word for word
    short: tuple[np.ndarray, ...]  # of `_kernels_copies.near`; no tokens for items that are long
    parts: tuple[np.ndarray, ...]  # of `_kernels_copies.laid_out`; none for items of one part
    said: list[list[str]]  # its words, where `short` has it or it has numbers; else none
    signs: list[Counter[tuple[str, str]]]  # `_near.signs_at` of those whose words are compared
    form: Words  # of items that `short` has, as `_near` counts them
    judged: tuple[np.ndarray, ...]  # bases, weights, own, total_weight, total_own
    notes: tuple[str, ...]


def _texts(value: Any) -> Iterator[str]:
    """All strings of a value that are text: of choices `{"text": ..., "label": ...}` the text."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key in ("stem", "text"):
            if key in value:
                yield from _texts(value[key])
                break
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _field(item: dict[str, Any], path: str) -> tuple[str, ...]:
    value: Any = item
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return tuple(filter(None, _texts(value)))


def read_items(path: Path, fields: tuple[str, ...], where: str) -> Iterator[Item]:
    """The items of a file; UsageError names the line that is none, and the fields that it has."""
    for number, line in read_lines(path, where):
        place = f"{where}: {path}:{number}"
        try:
            item = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{place}: not JSON ({error}); expected an object a line") from error
        if not isinstance(item, dict):
            raise UsageError(f"{place}: expected an object, found {type(item).__name__}")
        found = [_field(item, name) for name in fields or QUESTION]
        if fields:
            parts = tuple(part for field in found for part in field)
        else:
            parts = ("\n".join(next(filter(None, found), ())),)
        if not any(map(str.strip, parts)):
            asked = "fields" if fields else "known fields"
            has = ", ".join(sorted(item)[:12])
            msg = (
                f"{place}: none of the {asked} {', '.join(fields or QUESTION)} holds text; it has "
            )
            raise UsageError(f"{msg}{has or 'none'}; name them with `fields`")
        name = next((str(item[key]) for key in _NAMES if item.get(key) not in (None, "")), "")
        # The key is not behind the choices wherever a page has them.
        more = () if fields else next(filter(None, (_field(item, key) for key in MORE)), ())
        yield Item(path.name, name or f"line {number}", parts, more)


def load_index(
    files: tuple[Path, ...],
    fields: tuple[str, ...],
    limits: tuple[int, int, int, int],
    where: str,
) -> Index:
    """Read once as long as the contents of the files stay.

    `limits`: tokens of a gram, least words of an item, up to how many words an item must be there
    word for word, and from how many on it is long. Word for word so must one of which fewer than
    the least words are not common to many.
    """
    every = tuple(f for path in files for f in _below(path, where))
    return _load(every, fields, limits, where, tuple(path_digest(f) for f in every))


def _below(path: Path, where: str) -> list[Path]:
    if path.is_file():
        return [path]
    found = sorted(
        p for p in path.rglob("*") if p.name.endswith((".jsonl", ".jsonl.gz", ".jsonl.zst"))
    )
    if not found:
        raise UsageError(f"{where}: {path}: no .jsonl, .jsonl.gz or .jsonl.zst in this folder")
    return found


@lru_cache(maxsize=2)
def _load(
    files: tuple[Path, ...],
    fields: tuple[str, ...],
    limits: tuple[int, int, int, int],
    where: str,
    _digests: tuple[str, ...],
) -> Index:
    n, min_words, *_ = limits
    items = [item for path in files for item in read_items(path, fields, where)]
    words = _words(_tokens([item.text for item in items]))
    for at in np.flatnonzero(words < min_words).tolist():
        items[at] = items[at]._replace(parts=items[at].parts + items[at].more)
    tokens = _tokens([item.text for item in items])
    words = _words(tokens)
    seen: set[bytes] = set()
    keep = []
    short = 0
    for at in range(len(items)):
        own = tokens.hashes[tokens.of(at)]
        if words[at] < min_words or len(own) < n:
            short += 1
        elif own.tobytes() not in seen:
            seen.add(own.tobytes())
            keep.append(at)
    return _build(items, tokens, np.array(keep, np.int64), limits, short)


class _Tokens(NamedTuple):
    """The tokens of all items, one item after the other."""

    raw: bytes  # the texts
    hashes: np.ndarray  # uint64
    free: np.ndarray  # bool: of a script without spaces
    places: np.ndarray  # int64[tokens, 2]: first and last byte of each
    ends: np.ndarray  # int64[items + 1]
    begins: np.ndarray  # int64[items]: first byte of each item

    def of(self, item: int) -> slice:
        return slice(int(self.ends[item]), int(self.ends[item + 1]))


def _tokens(texts: list[str]) -> _Tokens:
    view = text_view(pa.array(texts, pa.large_string()))
    room = int(view.offsets[-1] - view.offsets[0]) if len(texts) else 0
    hashes, free = np.empty(room, np.uint64), np.empty(room, np.bool_)
    places, ends = np.empty((room, 2), np.int64), np.zeros(len(texts) + 1, np.int64)
    size = kernels.tokens(view.data, view.offsets, table(), hashes, free, ends, places)
    raw, begins = view.data.tobytes(), view.offsets[:-1].astype(np.int64)
    return _Tokens(raw, hashes[:size], free[:size], places[:size], ends, begins)


def _part_bounds(item: Item, tokens: _Tokens, at: int) -> np.ndarray:
    """Bounds of an item's parts that have tokens, among its tokens."""
    begins = np.cumsum([0, *(len(part.encode()) + 1 for part in item.parts[:-1])])
    mine = tokens.places[tokens.of(at), 0]
    return np.unique(np.append(np.searchsorted(mine, tokens.begins[at] + begins), len(mine)))


def _labelled(items: list[Item], keep: list[int], n: int) -> dict[int, np.ndarray]:
    """Grams of items of parts as they are where these are numbered, uint64 by item."""
    rows = [at for at in keep if len(items[at].parts) > 1]
    lines = [
        "\n".join(
            [items[at].parts[0], *map(" ".join, zip(labels, items[at].parts[1:], strict=False))]
        )
        for at in rows
        for labels in LABELS
    ]
    tokens = _tokens(lines)
    listed = np.empty(len(tokens.hashes), np.uint64)
    kernels.grams(tokens.hashes, tokens.ends, n, listed)
    each = len(LABELS)
    return {
        at: np.setdiff1d(
            listed[tokens.ends[k * each] : tokens.ends[(k + 1) * each]], np.zeros(1, np.uint64)
        )
        for k, at in enumerate(rows)
    }


def _words(tokens: _Tokens) -> np.ndarray:
    """Length of each row in words; two characters of a script without spaces count as one."""
    halves = np.concatenate([[0], np.cumsum(np.where(tokens.free, 1, 2))])
    return np.asarray((halves[tokens.ends[1:]] - halves[tokens.ends[:-1]]) // 2, np.int64)


def _length(free: np.ndarray) -> int:
    """Length in words of tokens that are, or are not, of a script without spaces."""
    return int(np.where(free, 1, 2).sum()) // 2


def _covered(grams: np.ndarray, size: int, n: int) -> np.ndarray:
    """Which of `size` tokens stand in one of the `grams`, bool by first token."""
    steps = np.zeros(size + 1, np.int64)
    at = np.flatnonzero(grams)
    np.add.at(steps, at, 1)
    np.add.at(steps, at + n, -1)
    return np.asarray(np.cumsum(steps[:-1]) > 0)


def _without_passages(
    df: np.ndarray, free: np.ndarray, size: int, n: int, min_words: int
) -> np.ndarray:
    """Which of an item's grams are looked for, bool; `df` of the gram at each token, 0: none."""
    shared = np.zeros(size, bool)
    grams = size - n + 1
    edge = np.flatnonzero(np.diff(np.concatenate([[0], (df[:grams] >= SHARED), [0]])))
    for start, stop in zip(edge[::2], edge[1::2], strict=True):
        if stop - start + n - 1 >= PASSAGE:
            shared[start : stop + n - 1] = True
    left = ~shared
    if _length(free[left]) < min_words:
        left[:] = True
    sums = np.concatenate([[0], np.cumsum(left)])
    return np.asarray(sums[n:] - sums[:-n] == n)


def _build(
    items: list[Item],
    tokens: _Tokens,
    keep: np.ndarray,
    limits: tuple[int, int, int, int],
    short: int,
) -> Index:
    """The index over the items `keep`; see the module."""
    n, min_words, full_to, long_from = limits
    all_grams = np.empty(len(tokens.hashes), np.uint64)
    kernels.grams(tokens.hashes, tokens.ends, n, all_grams)
    lists = [all_grams[tokens.of(at)] for at in keep.tolist()]
    distinct = [np.unique(g[: len(g) - n + 1]) for g in lists]
    labelled = _labelled(items, keep.tolist(), n)
    own_known, own_df = _counted(distinct)
    more_known, more_df = _counted(list(labelled.values()))
    known = np.union1d(own_known, more_known)
    df, with_labels = np.zeros((2, len(known)), np.int64)
    df[np.searchsorted(known, own_known)] = own_df
    with_labels[np.searchsorted(known, more_known)] = more_df
    weight_of = [0] + [
        (((len(keep) + 1) ** 64) // d**64).bit_length() - 1 if d <= COMMON else 0
        for d in range(1, int(df.max(initial=0)) + 1)
    ]
    none = np.zeros(0, np.int64)
    weights = np.array(weight_of, np.int64)  # 64 log2((items + 1) / df), in whole numbers
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    spelled: list[np.ndarray | None] = []
    near: list[np.ndarray] = []
    parts: list[np.ndarray] = []  # bounds, where there are several
    said: list[list[str]] = []
    signs: list[Counter[tuple[str, str]]] = []
    chosen, lengths, sizes = [], [], []
    common = 0
    for at, listed in zip(keep.tolist(), lists, strict=True):
        number = every = np.searchsorted(known, listed[: len(listed) - n + 1])
        alone = tokens.free[tokens.of(at)]
        asked = _without_passages(df[number], alone, len(listed), n, min_words)
        inside = _covered(asked, len(listed), n)
        telling = _covered(asked & (df[number] <= COMMON), len(listed), n)
        number = np.unique(number[asked])
        number = number[df[number] <= COMMON]
        if not len(number) or not weights[df[number]].any():
            common += 1
            continue
        own = df[number] == df[number].min()
        # Grams with labels lead to an item; they say nothing of how much of it is there.
        more = np.setdiff1d(np.searchsorted(known, labelled.get(at, none)), every)
        more = more[df[more] + with_labels[more] <= COMMON]
        pointing = np.zeros(len(more), np.int64)
        heavy = np.append(weights[df[number]], pointing)
        found.append((np.append(number, more), heavy, np.append(own, pointing > 0)))
        chosen.append(at)
        sizes.append(int(inside.sum()))
        lengths.append(_length(alone[inside]))
        common_form = _length(alone[telling]) < min_words
        whole = lengths[-1] <= full_to or common_form
        mine = tokens.hashes[tokens.of(at)][inside]
        joined = bool(inside[inside.argmax() :][: sizes[-1]].all())  # no passage in its middle
        spelled.append(mine if whole and joined else None)
        loose = joined and lengths[-1] < long_from and not common_form
        near.append(mine if loose else mine[:0])
        bounds = _part_bounds(items[at], tokens, at)
        apart = len(bounds) > 2 and bool(inside.all()) and sizes[-1] <= WIDEST
        parts.append(bounds if apart else bounds[:1])
        where = tokens.places[tokens.of(at)][inside]
        read = words_at(tokens.raw, where) if loose or sizes[-1] <= WIDEST else []
        said.append(read if loose or any(map(str.isdigit, read)) else [])
        signs.append(signs_at(tokens.raw, where[: len(read)]))
    bases = np.zeros(len(found) + 1, np.int64)
    np.cumsum([len(number) for number, _, _ in found], out=bases[1:])
    flat = np.concatenate([none, *(number for number, _, _ in found)])
    heavy = np.concatenate([none, *(weight for _, weight, _ in found)])
    owned = np.concatenate([none, *(own for _, _, own in found)]).astype(np.int64)
    of = np.repeat(np.arange(len(found)), np.diff(bases))
    order = np.argsort(flat, kind="stable")
    starts = np.searchsorted(flat[order], np.arange(len(known) + 1)).astype(np.int64)
    totals = [np.array([v[a:b].sum() for a, b in _pairs(bases)], np.int64) for v in (heavy, owned)]
    notes = [f"{len(found):,} of {len(items):,} items are looked for"]
    if short:
        notes.append(f"{short:,} are shorter than {min_words} words, or than {n} tokens")
    if len(keep) + short < len(items):
        notes.append(f"{len(items) - short - len(keep):,} repeat another word for word")
    if common:
        notes.append(f"{common:,} consist of what more than {COMMON} others hold")
    return Index(
        items=[items[at] for at in chosen],
        words=np.array(lengths, np.int64),
        sizes=np.array(sizes, np.int64),
        own_grams=totals[1],
        lookup=_lookup(known, np.diff(starts) > 0),
        starts=starts,
        of=of[order].astype(np.int32),
        local=(order - bases[of[order]]).astype(np.int32),
        spelled=spelled,
        short=_frames(near),
        parts=_flat_parts([tokens.hashes[tokens.of(at)] for at in chosen], parts),
        said=said,
        signs=signs,
        form=form_words(read for read, mine in zip(said, near, strict=True) if len(mine)),
        judged=(bases, heavy, owned, *totals),
        notes=("; ".join(notes),),
    )


def _counted(lists: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The grams of all lists, ascending, and in how many each is."""
    none = np.zeros(0, np.uint64)
    return np.unique(np.concatenate([none, *lists]), return_counts=True)


def _flat_parts(mine: list[np.ndarray], bounds: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Tokens of all parts, their bounds, and the bounds of each item's parts among these."""
    ends = np.zeros(len(bounds) + 1, np.int64)
    np.cumsum([len(b) - 1 for b in bounds], out=ends[1:])
    flat = np.concatenate(
        [np.zeros(0, np.uint64), *(m[: b[-1]] for m, b in zip(mine, bounds, strict=True))]
    )
    sizes = np.concatenate([np.zeros(0, np.int64), *map(np.diff, bounds)])
    return flat, np.append(0, np.cumsum(sizes)).astype(np.int64), ends


def _frames(short: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tokens of all short items, their bounds, and which may be another word, bool.

    Not where two items are one but for that word: what is left is a form of question then.
    """
    bounds = np.zeros(len(short) + 1, np.int64)
    np.cumsum([len(tokens) for tokens in short], out=bounds[1:])
    seen: dict[tuple[int, bytes], int] = {}
    keys = []
    for tokens in short:
        own = tokens.copy()
        for at in range(len(own)):
            own[at] = 0
            key = at, own.tobytes()
            seen[key] = seen.get(key, 0) + 1
            keys.append(key)
            own[at] = tokens[at]
    flat = np.concatenate([np.zeros(0, np.uint64), *short])
    return flat, bounds, np.array([seen[key] == 1 for key in keys], np.bool_)


def _pairs(bases: np.ndarray) -> Iterator[tuple[int, int]]:
    return zip(bases[:-1].tolist(), bases[1:].tolist(), strict=True)


def _lookup(known: np.ndarray, used: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bitmap, slots and numbers of the grams that are used: half full at most."""
    count = max(1, int(used.sum()))
    size = 1 << max(6, (2 * count - 1).bit_length())
    slots, numbers = np.zeros(size, np.uint64), np.zeros(size, np.int32)
    bitmap = np.zeros(max(1, size * 8 // 64), np.uint64)
    kernels.enter(known, used, bitmap, slots, numbers)
    return bitmap, slots, numbers
