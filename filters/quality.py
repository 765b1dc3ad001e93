"""Quality: what classifiers say of a text, as attributes; a recipe decides what to drop.

Heads are models with a card (`_cards`): a fastText `.ftz` or `.bin` (`fasttext`), or a folder with
an ONNX or a sentence-transformers model (`_encoders`). Those that ship with the project are called
by name (`heads: [edu, know]`), others by path (`models: [mine.ftz]`; a head's name is its file's).

A head of degrees gives a score (the expected value of its labels), the probability that the card's
calibration makes of it, and a bucket from 0 to 19 by the card's frozen cut points. `bucket` is the
best over all heads, for each finds what the others miss (Nemotron-CC, Su et al. 2024, section 2.2:
three classifiers, maximum of 20 buckets). A head of kinds gives the likeliest label.

A fastText head knows the words that it was trained on and says of a text without them what it says
of nothing. So a text is not judged of which it knows too little: known words, and pairs of words,
for each word between blanks. Medians for the shipped heads (`benchmarks/quality.py known`): 1.3 in
English web pages, in capitals or not, 1.0 in code, 0.5 in French sentences, 0.2 in German, 0.1 in
Russian, 0 in Chinese. Nor is a text judged, by any head, that has fewer than `min_words` words (as
the rules count them, `_scan`): of a handful each decides alone, and "History of the company" came
into bucket 19. `benchmarks/quality.py short` measures what heads make of pieces of pages.

A head whose card says that it `reads` so many bytes is asked of a text's beginning and middle in
plain words (`_reading`), as it was trained; the others of the text as it stands.

fastText heads share one pass over the text and their scores are the same bits on any CPU, so that
no document changes its bucket from one machine to another. The libraries behind the other two
promise no such thing: their probabilities are rounded to 1/4096, which hides last bits but for
ties. Both models and cards bear on the fingerprint by digest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from ..documents.errors import UsageError, did_you_mean
from ..documents.files import FILES, as_paths, files_field
from ..documents.stage import Measured
from ._cards import BUCKETS, Card, card_path, read_card
from ._encoders import Encoder, encoder, is_encoder
from ._exact import below, check_counts, check_fractions, check_names, first_true
from ._reading import read
from ._scan import few_words
from .fasttext import Bank, Model, bank, load

SHIPPED = Path(__file__).with_name("models")
UNJUDGED = -1  # bucket and probability of a text that a head does not know
UNKNOWN = "unknown"  # and its label
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def shipped() -> dict[str, Path]:
    """Heads that come with the project, by name."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.ftz"))}


@dataclass(frozen=True, slots=True, eq=False)
class Heads:
    """Models ready to be asked together, with their cards."""

    names: tuple[str, ...]
    cards: tuple[Card, ...]
    fast: Mapping[int, tuple[Bank, tuple[int, ...]]]  # by `reads`: a bank, and which heads it holds
    slow: Mapping[int, Encoder]  # the others

    def ask(
        self, text: pa.Array | pa.ChunkedArray
    ) -> dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Of each fastText head: float32[rows, labels], its known features and the words of rows.

        Features and words, int64[rows], are of what the head reads.
        """
        found = {}
        for reads, (one, heads) in self.fast.items():
            probabilities, features, words = one.judge(read(text, reads) if reads else text)
            for at, each, count in zip(heads, probabilities, features, strict=True):
                found[at] = (each, count, words)
        return found

    def judge(
        self, text: pa.Array | pa.ChunkedArray, least: float
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Of each head, in the order of `names`: float32[rows, labels], and which rows it knows.

        A fastText head knows a text, bool[rows], with `least` known features for each word.
        """
        found = {}
        for at, (each, count, words) in self.ask(text).items():
            some = (words > 0) & ~below(count, words, least)
            found[at] = (each, some if least else np.ones(len(words), bool))
        for at, model in self.slow.items():
            found[at] = (model.probabilities(text), np.ones(len(text), bool))
        return [found[at] for at in range(len(self.names))]


def read_heads(models: tuple[Path, ...]) -> Heads:
    """Read models and cards; UsageError names the file and what is wrong. Kept in memory."""
    stats = [(p, *_seen(p), *_seen(card_path(p))) for p in models]
    return _read(tuple(stats))


def _seen(path: Path) -> tuple[int, int]:
    if not path.exists():
        return (0, 0)
    found = path.stat()
    return found.st_size, found.st_mtime_ns


@lru_cache(maxsize=4)
def _read(stats: tuple[tuple[Path, int, int, int, int], ...]) -> Heads:
    fast: dict[int, dict[int, Model]] = {}
    slow: dict[int, Encoder] = {}
    cards = []
    for at, (path, *_) in enumerate(stats):
        if is_encoder(path):
            slow[at] = encoder(path, card_path(path))
            cards.append(read_card(path, slow[at].labels))
            if cards[-1].reads:
                msg = (
                    f"{card_path(path)}: reads: an encoder reads max_tokens of a text as it stands"
                )
                raise UsageError(msg)
        else:
            model = load(path)
            cards.append(read_card(path, model.labels))
            fast.setdefault(cards[-1].reads, {})[at] = model
    names = tuple(path.stem for path, *_ in stats)
    banks = {reads: (bank(list(of.values())), tuple(of)) for reads, of in fast.items()}
    return Heads(names, tuple(cards), banks, slow)


def _columns(name: str, card: Card) -> tuple[str, ...]:
    """Scores of a head, in the order of `Quality.measure`."""
    if card.values is None:
        return (name, f"{name}_probability")
    return (f"{name}_score", f"{name}_probability", f"{name}_bucket")


@dataclass(frozen=True, kw_only=True, slots=True)
class Quality:
    """Score texts by heads; drop those whose best bucket is below `min_bucket` (0: none).

    Scores, for a head of degrees: `<head>_score` and `<head>_probability` float32, `<head>_bucket`
    int8; for a head of kinds: `<head>` its label (S) and `<head>_probability`; and `bucket` int8,
    the best of all heads of degrees. Where a head does not judge (it knows fewer features for each
    word than `min_known`, or there are fewer words than `min_words`), bucket and probability are
    -1 and the label is `unknown`; the score is what the head says of the little that there is.
    """

    heads: tuple[str, ...] = ()  # shipped, by name
    models: tuple[Path, ...] = files_field()  # others: .ftz, .bin or a folder, card beside it
    min_bucket: int = 0  # of 20
    drop_labels: tuple[str, ...] = ()  # `head: label`, of heads of kinds
    min_known: float = 0.75  # known features for each word, to be judged by a fastText head
    min_words: int = 30  # to be judged by any head; of scripts without spaces, characters
    unjudged: str = "keep"  # or "drop": texts that no head of degrees judges
    cards: tuple[Path, ...] = field(default=(), init=False, metadata={FILES: True})

    name: ClassVar[str] = "quality"
    revision: ClassVar[int] = 5
    reasons: ClassVar[tuple[str, ...]] = ("keep", "low_bucket", "label", "unjudged")
    verdict_fields: ClassVar[frozenset[str]] = frozenset({"min_bucket", "drop_labels", "unjudged"})

    def __post_init__(self) -> None:
        """Check the fields and find the models; UsageError names what is wrong."""
        check_counts(self, ("min_bucket", "min_words"))
        check_fractions(self, ("min_known",))
        if self.unjudged not in ("keep", "drop"):
            msg = f"{self.name}.unjudged: found {self.unjudged!r}, expected keep or drop"
            raise UsageError(msg)
        if self.min_bucket >= BUCKETS:
            msg = f"{self.name}.min_bucket: found {self.min_bucket}, expected 0 to {BUCKETS - 1}"
            raise UsageError(msg)
        check_names(self, ("heads", "drop_labels"))
        for head in self.heads:
            if head not in shipped():
                msg = f"{self.name}.heads: no head {head!r} ships"
                raise UsageError(msg + did_you_mean(head, shipped()))
        models = as_paths(self.models, f"{self.name}.models")
        models = (*(shipped()[h] for h in self.heads), *models)
        models = tuple(dict.fromkeys(models))
        if not models:
            msg = f"{self.name}: no head named{did_you_mean('', shipped())}"
            raise UsageError(msg)
        names = [path.stem for path in models]
        for path in models:
            if not _NAME.fullmatch(path.stem) or names.count(path.stem) > 1:
                msg = (
                    f"{self.name}.models: {path}: a head is called by its file, {path.stem!r}: "
                    "expected a name of its own, of a-z, 0-9 and _"
                )
                raise UsageError(msg)
        object.__setattr__(self, "models", models)
        object.__setattr__(self, "cards", tuple(p for m in models if (p := card_path(m)).exists()))

    def load(self) -> tuple[str, ...]:
        """Read models and cards; UsageError for a wrong one; what they are."""
        found = read_heads(self.models)
        asked = "min_bucket" if self.min_bucket else "unjudged" if self.unjudged == "drop" else ""
        if asked and all(card.values is None for card in found.cards):
            msg = f"{self.name}.{asked}: no head gives a bucket: {', '.join(found.names)}"
            raise UsageError(msg)
        taken = {"bucket": "the best bucket"}
        for name, card in zip(found.names, found.cards, strict=True):
            for score in _columns(name, card):
                if score in taken:
                    msg = (
                        f"{self.name}: head {name!r} has a score {score!r}, and so has "
                        f"{taken[score]}; give the head's files another name"
                    )
                    raise UsageError(msg)
                taken[score] = f"head {name!r}"
        for entry in self.drop_labels:
            head, _, label = entry.partition(":")
            kinds = {
                n: c.labels
                for n, c in zip(found.names, found.cards, strict=True)
                if c.values is None
            }
            if head.strip() not in kinds or label.strip() not in kinds[head.strip()]:
                known = [f"{n}: {label}" for n, labels in kinds.items() for label in labels]
                msg = f"{self.name}.drop_labels: no {entry!r}{did_you_mean(entry, known)}"
                raise UsageError(msg)
        return tuple(
            f"{name}: {len(card.labels)} {'kinds' if card.values is None else 'degrees'}"
            for name, card in zip(found.names, found.cards, strict=True)
        )

    def measure(self, batch: pa.RecordBatch) -> Measured:
        """Ask every head of every text."""
        found = read_heads(self.models)
        text = batch.column("text")
        scores: dict[str, np.ndarray] = {}
        enough = ~few_words(text, self.min_words)
        best = np.full(batch.num_rows, UNJUDGED, np.int8)
        made: tuple[np.ndarray, ...]
        every = zip(found.names, found.cards, found.judge(text, self.min_known), strict=True)
        for name, card, (probabilities, knows) in every:
            known = knows & enough
            if card.values is None:
                labels = np.array([label.encode("ascii") for label in (*card.labels, UNKNOWN)])
                at = probabilities.argmax(axis=1)
                chance = np.take_along_axis(probabilities, at[:, None], 1)[:, 0]
                made = (labels[np.where(known, at, len(card.labels))], chance)
            else:
                score = card.score(probabilities)
                bucket = np.where(known, card.bucket(score), UNJUDGED).astype(np.int8)
                made = (score.astype(np.float32), card.calibrated(score), bucket)
                best = np.maximum(best, bucket)
            scores |= zip(_columns(name, card), made, strict=True)
            chance = scores[f"{name}_probability"]
            scores[f"{name}_probability"] = np.where(known, chance, np.float32(UNJUDGED))
        return Measured({**scores, "bucket": best})

    def verdict(self, scores: Mapping[str, np.ndarray]) -> np.ndarray:
        """Drop what no head puts in `min_bucket` or above, and the labels of `drop_labels`.

        Texts that no head of degrees judges go where `unjudged` says so, whatever `min_bucket` is.
        """
        unjudged = scores["bucket"] == UNJUDGED
        low = ~unjudged & (scores["bucket"] < self.min_bucket)
        label = np.zeros(len(low), bool)
        for entry in self.drop_labels:
            head, _, which = (part.strip() for part in entry.partition(":"))
            label |= scores[head] == which.encode()
        return first_true({1: low, 2: label, 3: unjudged & (self.unjudged == "drop")}, len(low))
