"""Labelled texts and the recipe of a head: what a training reads, checked before it starts."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml

from ...documents.errors import UsageError, did_you_mean
from ...documents.files import read_lines
from .._cards import MOST
from .._hosts import hosts
from .._reading import LEAST
from .annotate import digest_of

GRADED, NOMINAL = "graded", "nominal"


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """How a head is trained; a file of the same keys in `filters/models/`."""

    head: str  # its name
    texts: str  # JSONL of id and text, relative to the data folder
    labels: str  # CSV of id, site and labels; or `.jsonl`, as `annotate` writes it
    label: str  # the column
    site: str = "site"  # the column that no fold splits
    kind: str = GRADED  # whole numbers from 0, or `nominal`: names
    positive: int = 3  # grades from here on are good (AUC, average precision, calibration)
    format: int = 1
    reads: int = 6000  # bytes of a text, as `_reading` gives them; 0: all, as it stands
    bucket: int = 1 << 24  # what hashes of bigrams are taken modulo
    at_least: int = 3  # texts with a word, for a row in the model
    pairs_at_least: int = 3  # texts with a bigram
    word_share: float = (
        0.4  # of the variance of a text's features, for words; bigrams have the rest
    )
    power: float = 0.35  # how much rare features are played up
    burst: float = 1.0  # how much what repeats within a text is played down
    length_share: float = 0.02  # of the variance, for one over the length
    ridge: float = 0.3  # over a kernel with a mean diagonal of 1
    folds: int = 10  # of the scores that the softmax is fitted on
    also: str = ""  # other columns to learn beside, with commas between: numbers or names
    columns: int = 3  # of the model, beside the one of ones
    labelled_by: str = ""  # for the card: who gave the labels
    texts_are: str = ""  # for the card: of what kind the texts are, and so what the head knows

    def __post_init__(self) -> None:
        """Check the fields; UsageError names the one that is wrong."""
        checks = {
            "format": self.format == 1,
            "kind": self.kind in {GRADED, NOMINAL},
            "reads": self.reads == 0 or LEAST <= self.reads <= MOST,
            "bucket": 1 <= self.bucket < 1 << 30,
            "at_least": self.at_least >= 1,
            "word_share": 0 <= self.word_share <= 1,
            "ridge": self.ridge > 0,
            "folds": self.folds >= 2,
            "columns": self.columns >= 1,
        }
        for name, good in checks.items():
            if not good:
                msg = f"recipe: {name}: cannot be {getattr(self, name)!r}"
                raise UsageError(msg)


@dataclass(frozen=True, slots=True)
class Labelled:
    """Texts in the order of their ids, with what is known of each."""

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    sites: np.ndarray  # str[texts]
    types: np.ndarray  # str[texts]: page_type, "" where there is none
    labels: tuple[str, ...]  # the names, in order
    truth: np.ndarray  # int64[texts]: place in `labels`
    beside: np.ndarray  # float64[texts, n]: the columns of `also`, names as one of n
    digest: str  # sha256 over ids, texts, sites and labels
    unlabelled: int = 0  # texts left out, of which `annotate` has no label

    def take(self, rows: np.ndarray) -> Labelled:
        """Some of them."""
        return Labelled(
            tuple(self.ids[r] for r in rows),
            tuple(self.texts[r] for r in rows),
            self.sites[rows],
            self.types[rows],
            self.labels,
            self.truth[rows],
            self.beside[rows],
            self.digest,
            self.unlabelled,
        )


def read_recipe(path: Path) -> Recipe:
    """Read a recipe; UsageError names an unknown or a missing key."""
    try:
        given = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        msg = f"recipe {path}: cannot be read: {error}"
        raise UsageError(msg) from error
    known = {f.name: f for f in fields(Recipe)}
    if not isinstance(given, dict):
        msg = f"recipe {path}: expected keys and values, found {type(given).__name__}"
        raise UsageError(msg)
    for key in given:
        if key not in known:
            msg = f"recipe {path}: unknown key {key!r}{did_you_mean(str(key), known)}"
            raise UsageError(msg)
    typed = {"str": str, "int": int, "float": (int, float)}
    for key, value in given.items():
        wanted = typed[str(known[key].type)]
        if not isinstance(value, wanted) or isinstance(value, bool):  # type: ignore[arg-type]
            msg = f"recipe {path}: {key}: expected {known[key].type}, found {value!r}"
            raise UsageError(msg)
    try:
        return Recipe(**given)
    except TypeError as error:
        msg = f"recipe {path}: {str(error).split('__init__() ')[-1]}"
        raise UsageError(msg) from error


def read_labelled(texts: Path, labels: Path, recipe: Recipe) -> Labelled:
    """Join texts and labels by id, in the order of ids; UsageError where one misses the other.

    Texts that `annotate` has no label of (yet, or any more) are left out and counted.
    """
    found: dict[str, str] = {}
    stated: list[tuple[str, str]] = []  # site, URL
    for number, line in read_lines(texts, "texts"):
        try:
            entry = json.loads(line)
            found[entry["id"]] = str(entry["text"])
            stated.append((str(entry.get(recipe.site) or ""), str(entry.get("url") or "")))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            msg = f"{texts}:{number}: expected JSON with 'id' and 'text': {error!r}"
            raise UsageError(msg) from error
    without: set[str] = set()
    if ".jsonl" in labels.suffixes:
        place, named = hosts(pa.record_batch({"url": [url for _, url in stated]}))
        known = [site or named[k] for (site, _), k in zip(stated, place.tolist(), strict=True)]
        table = _annotated(labels, recipe, dict(zip(found, known, strict=True)), found)
        without = found.keys() - table.keys()
        if not table:
            msg = f"{labels}: no label of the texts in {texts}; `gristmill quality annotate` them"
            raise UsageError(msg)
    else:
        table = _by_hand(labels, recipe)
    missing = sorted((table.keys() ^ found.keys()) - without)
    if missing:
        msg = f"{texts}, {labels}: {len(missing)} ids stand in one alone, such as {missing[0]!r}"
        raise UsageError(msg)
    ids = tuple(sorted(table))
    names, truth = _truth([table[i][recipe.label] for i in ids], recipe, labels)
    of = [table[i][recipe.site] for i in ids]
    digest = hashlib.sha256()
    for i, site in zip(ids, of, strict=True):
        for part in (i, site, table[i][recipe.label], found[i]):
            digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    return Labelled(
        ids,
        tuple(found[i] for i in ids),
        np.array(of),
        np.array([table[i].get("page_type") or "" for i in ids]),
        names,
        truth,
        _beside([table[i] for i in ids], recipe, labels),
        digest.hexdigest(),
        len(without),
    )


def _by_hand(labels: Path, recipe: Recipe) -> dict[str, dict[str, Any]]:
    """Rows of a CSV file by id."""
    table: dict[str, dict[str, Any]] = {}
    raw = "\n".join(line for _, line in read_lines(labels, "labels"))
    for row in csv.DictReader(io.StringIO(raw)):
        for column in ("id", recipe.site, recipe.label):
            if not row.get(column):
                msg = (
                    f"{labels}: no {column!r} in {str(row)[:200]}; expected CSV with a head, or "
                    "what `quality annotate` writes, in a file named .jsonl"
                )
                raise UsageError(msg)
        table[row["id"]] = row
    return table


def _annotated(
    labels: Path, recipe: Recipe, sites: dict[str, str], texts: dict[str, str]
) -> dict[str, dict[str, Any]]:
    """Rows of `quality annotate` by id, the last of each, without failures and texts of before.

    The site is the row's, else that of its text: its `site`, the host of its `url`, or its id.
    """
    table: dict[str, dict[str, Any]] = {}
    for number, line in read_lines(labels, "labels"):
        try:
            row = json.loads(line)
            name = row["id"]
            if "failed" in row or (name in texts and row["text_sha256"] != digest_of(texts[name])):
                continue
            row[recipe.label] = str(row[recipe.label])
            row[recipe.site] = str(row.get(recipe.site) or sites.get(name) or name)
            table[name] = row
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            msg = (
                f"{labels}:{number}: expected a line of `quality annotate` with 'id' and "
                f"{recipe.label!r}: {error!r}"
            )
            raise UsageError(msg) from error
    return table


def _beside(rows: list[dict[str, Any]], recipe: Recipe, where: Path) -> np.ndarray:
    """The columns of `also` as numbers: as they are, or one of n."""
    found: list[np.ndarray] = [np.empty((len(rows), 0))]
    for name in filter(None, (part.strip() for part in recipe.also.split(","))):
        values = ["" if row.get(name) is None else str(row[name]) for row in rows]
        if not all(values):
            msg = f"{where}: also: {name}: no value for {rows[values.index('')]['id']}"
            raise UsageError(msg)
        if all(v.isdecimal() for v in values):
            found.append(np.array(values, np.float64)[:, None])
        else:
            kinds = np.unique(values)
            found.append((np.array(values)[:, None] == kinds).astype(np.float64))
    return np.concatenate(found, axis=1)


def _truth(values: list[str], recipe: Recipe, where: Path) -> tuple[tuple[str, ...], np.ndarray]:
    """Names of the labels in order and the place of each value; at least two must occur."""
    if recipe.kind == NOMINAL:
        names = tuple(sorted(set(values)))
        truth = np.array([names.index(v) for v in values], np.int64)
    else:
        try:
            truth = np.array([int(v) for v in values], np.int64)
        except ValueError as error:
            msg = f"{where}: {recipe.label}: expected whole numbers from 0: {error}"
            raise UsageError(msg) from error
        if truth.min() < 0 or truth.max() > 99:
            msg = f"{where}: {recipe.label}: expected grades from 0 to 99, found {truth.min()}"
            raise UsageError(msg)
        names = tuple(map(str, range(int(truth.max()) + 1)))
    if len(np.unique(truth)) < 2:
        msg = f"{where}: {recipe.label}: every text has the same label; nothing can be learnt"
        raise UsageError(msg)
    return names, truth
