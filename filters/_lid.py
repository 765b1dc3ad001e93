"""Who says what language a text is in: Resiliparse's profiles, or a fastText model by path.

Both get a text as its pieces (`language.sampled`): a long one as several from fixed places. A text
of whose pieces no more than half are in one language is mixed, and its language `und`. Of 600 texts
of three languages, a third each, the detector finds 92% so; of 600 in one language it takes none
for mixed; of 1,485 English web pages 0.7% are `und` (`benchmarks/language.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
from resiliparse.parse.lang import detect_fast

from ..documents.errors import UsageError
from ..documents.text import from_buffers
from .fasttext import Bank, bank, load

UNDETERMINED = "und"
CODE = "S8"  # `eng_Latn`
_HERE = Path(__file__).parent
_NO_CUTOFF = 1 << 30  # the rank is a score; `max_rank` judges it
# A second language this near makes the detector look at the pieces of the text.
_NEAR = 100
_CELLS = 1 << 22  # probabilities held at once: 32 MB
# Function words that only one of the three has; the detector takes most Hindi for the others.
_DEVANAGARI = {
    "hi": frozenset(
        ["है", "हैं", "में", "और", "के", "की", "नहीं", "था", "थे", "इस", "यह", "ने", "पर", "भी"]
    ),
    "mr": frozenset(
        ["आहे", "आहेत", "आणि", "मध्ये", "होते", "होता", "नाही", "असे", "या", "हे", "ही", "आली", "केली"]
    ),
    "ne": frozenset(
        [
            "छ",
            "छन्",
            "र",
            "पनि",
            "गर्न",
            "गरेको",
            "भएको",
            "थियो",
            "हो",
            "मा",
            "लागि",
            "यो",
            "उनले",
            "छैन",
        ]
    ),
}


@cache
def _table(name: str) -> dict[str, str]:
    lines = (_HERE / name).read_text("utf-8").splitlines()
    return dict(line.split("\t") for line in lines if not line.startswith("#"))


def codes() -> dict[str, str]:
    """`eng_Latn`-style code for each code of the detector, from `languages.tsv`."""
    return _table("languages.tsv")


@dataclass(frozen=True, slots=True)
class Found:
    """The language of each text (S8; `und` where mixed) and how sure that is."""

    language: np.ndarray
    scores: Mapping[str, np.ndarray]


def _strings(data: np.ndarray, offsets: np.ndarray) -> list[str]:
    """All texts decoded at once; what is not UTF-8 comes as U+FFFD."""
    column = from_buffers(data, offsets)
    try:
        return column.to_pylist()
    except UnicodeDecodeError:
        return [
            raw.decode("utf-8", "replace") for raw in column.cast(pa.large_binary()).to_pylist()
        ]


def _detect(text: str) -> tuple[str, int, int]:
    """Code, rank and margin; among Hindi, Marathi and Nepali, function words decide."""
    two = detect_fast(text, cutoff=_NO_CUTOFF, n_results=2)
    (code, rank), (_, second) = cast("list[tuple[str, int]]", two)
    if code in _DEVANAGARI:
        words = text.split()
        hits = {c: sum(word in marks for word in words) for c, marks in _DEVANAGARI.items()}
        code = max(hits, key=lambda c: (hits[c], c == code))
    return code, rank, second - rank


def _majority(pieces: list[str]) -> tuple[str, int, int] | None:
    """What `_detect` says of the first piece in the language of most, None where there is none.

    Pieces are asked until that is sure: two of three in one language outvote the third.
    """
    first: dict[str, tuple[str, int, int]] = {}
    votes: Counter[str] = Counter()
    for piece in pieces:
        said = _detect(piece)
        code = said[0]
        first.setdefault(code, said)
        votes[code] += 1
        if 2 * votes[code] > len(pieces):
            return first[code]
    return None


def by_profiles(data: np.ndarray, bounds: np.ndarray, samples: int, skip: np.ndarray) -> Found:
    """Resiliparse's detector; `rank` (less is surer) and `margin` int32, -1 for `und`."""
    rows = len(skip)
    language = np.full(rows, UNDETERMINED, CODE)
    rank, margin = np.full(rows, -1, np.int32), np.full(rows, -1, np.int32)
    known = codes()
    for row, text in enumerate(_strings(data, bounds[::samples])):
        if skip[row]:
            continue
        code, distance, ahead = _detect(text)
        if code not in known:
            continue
        if ahead < _NEAR:
            edges = pairwise(bounds[row * samples : (row + 1) * samples + 1].tolist())
            pieces = [bytes(data[a:b]).decode("utf-8", "replace") for a, b in edges if a < b]
            if len(pieces) > 1:
                found = _majority(pieces)
                if found is None or found[0] not in known:
                    continue
                code, distance, ahead = found
        language[row], rank[row], margin[row] = known[code], distance, ahead
    return Found(language, {"rank": rank, "margin": margin})


@dataclass(frozen=True, slots=True, eq=False)
class LanguageModel:
    """A fastText model whose labels are languages; `codes` in the order of its labels."""

    bank: Bank
    codes: tuple[str, ...]


def read_model(path: Path) -> LanguageModel:
    """Read a model (lid.176, GlotLID, OpenLID, one's own); UsageError for what is none."""
    seen = path.stat() if path.exists() else None
    return _read(path, *(seen.st_size, seen.st_mtime_ns) if seen else (0, 0))


@lru_cache(maxsize=2)
def _read(path: Path, _size: int, _changed: int) -> LanguageModel:
    model = load(path)
    known = {**codes(), **_table("languages_lid176.tsv")}
    found = tuple(known.get(label, label) for label in model.labels)
    if odd := [c for c in found if not c.isascii() or not 0 < len(c) <= int(CODE[1:])]:
        msg = (
            f"{path}: label {odd[0]!r} is no language: expected codes like `en` or `eng_Latn`. "
            "A head of quality belongs in the stage `quality`"
        )
        raise UsageError(msg)
    return LanguageModel(bank([model]), found)


def by_model(
    data: np.ndarray, bounds: np.ndarray, samples: int, skip: np.ndarray, lid: LanguageModel
) -> Found:
    """A fastText model: `score`, the likeliest's probability, and `margin` to the next, float32.

    Probabilities are the mean over a text's pieces; both are 0 for `und`.
    """
    names = sorted(set(lid.codes))
    at = [names.index(code) for code in lid.codes]
    rows = len(skip)
    best, agree = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    score, margin = np.zeros(rows), np.zeros(rows)
    some = (np.diff(bounds) > 0).reshape(rows, samples)
    pieces = some.sum(axis=1)
    step = max(1, _CELLS // (samples * len(names)))
    for first in range(0, rows, step):
        part = slice(first, min(rows, first + step))
        edges = np.unique(bounds[part.start * samples : part.stop * samples + 1])
        asked = lid.bank.probabilities(from_buffers(data, edges))[0]
        each = asked[:, [at.index(place) for place in range(len(names))]].astype(np.float64)
        for label, place in enumerate(at):  # labels of one language together
            if label != at.index(place):
                each[:, place] += asked[:, label]
        owner = np.repeat(np.arange(part.stop - part.start), pieces[part])
        mean = np.zeros((part.stop - part.start, len(names)))
        before = np.cumsum(pieces[part]) - pieces[part]
        for k in range(pieces[part].max(initial=0)):  # in their order: the same sum everywhere
            having = np.flatnonzero(pieces[part] > k)
            mean[having] += each[before[having] + k]
        mean /= np.maximum(pieces[part], 1)[:, None]
        votes = np.zeros(mean.shape, np.int64)
        np.add.at(votes, (owner, each.argmax(axis=1)), 1)
        best[part], agree[part] = votes.argmax(axis=1), votes.max(axis=1)
        own = np.arange(len(mean)), best[part]
        score[part] = mean[own]
        mean[own] = 0
        margin[part] = score[part] - mean.max(axis=1)
    good = ~skip & (2 * agree > pieces)
    return Found(
        np.where(good, np.array(names, CODE)[best], np.array(UNDETERMINED, CODE)),
        {
            "score": np.where(good, score, 0).astype(np.float32),
            "margin": np.where(good, margin, 0).astype(np.float32),
        },
    )


def known_codes(lid: LanguageModel | None) -> Sequence[str]:
    """What `keep` may name."""
    return (*(lid.codes if lid else codes().values()), UNDETERMINED)
