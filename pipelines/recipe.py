"""Recipes: what goes in, which stages each source has, and the mixture that comes out.

A recipe is one YAML file. It states everything that bears on the result; workers, executors and
folders are given at the command line and never change a byte.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..documents.errors import UsageError, did_you_mean
from ..documents.fingerprint import digest
from ..documents.stage import Stage
from ..mixing.fields import whole
from ..mixing.spec import MixSpec
from ..mixing.turns import TurnSpec
from .exchange import MOST
from .loading import load_yaml, text_or_none
from .readers import ReadOptions
from .registry import build_named, known_converters, known_globals, known_stages, split_entry

FORMAT = 1
_UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One kind of input and the stages that it alone goes through."""

    name: str
    paths: tuple[str, ...]  # relative to the recipe's root: files, folders, globs
    priority: int  # of duplicates the lowest is kept
    converter: Any  # pipelines.convert
    reader: Mapping[str, Any] = field(default_factory=dict)
    stages: tuple[Stage, ...] = ()
    dump: str | None = None
    license: str | None = None
    removal_cap: float = 0.9  # share of documents that one duplicate stage may remove
    max_loss: float = 0.0  # share of decoded bytes that may be damaged


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalUse:
    """A global stage in the shared list, with the sources that it covers."""

    stage: Any  # documents.exchange.GlobalStage
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A parsed recipe. `root` is where the paths start; it bears no identity."""

    name: str
    root: Path
    sources: tuple[Source, ...]
    shared: tuple[Any, ...]  # Stage | GlobalUse
    tokenizer: Path | None  # None: our own
    tokenizer_options: Mapping[str, Any]  # eos, bos, ...: of mixing.encoder.load_encoder
    turns: TurnSpec | None  # how turns of conversations become tokens; None: as text
    mixture: Mapping[str, Any] | None
    shard_bytes: int  # stored bytes per shard
    memory: int  # bytes per worker that a global round may plan for
    partitions: int | None  # of the exchange; None: from rows and `memory`
    text: str  # as given

    def source(self, name: str) -> Source:
        """The source of this name."""
        return next(s for s in self.sources if s.name == name)

    @property
    def identity(self) -> str:
        """Digest of what the recipe says, its formatting aside."""
        return digest(load_yaml(self.text, self.name))


_TOP = {
    "format", "name", "root", "sources", "shared", "tokenizer", "turns", "mixture", "shard_bytes",
    "memory", "partitions",
}  # fmt: skip
_SOURCE = {
    "paths", "converter", "reader", "stages", "dump", "license", "priority", "removal_cap",
    "max_loss",
}  # fmt: skip


def load_recipe(path: Path, *, root: Path | None = None) -> Recipe:
    """Read and check a recipe; UsageError names the field, what was found and what is known.

    `root` overrides the recipe's own `root`, which is relative to the recipe's folder.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        msg = f"no recipe at {path}{did_you_mean(path.name, _siblings(path))}"
        raise UsageError(msg) from None
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path}: cannot be read as a recipe: {error}"
        raise UsageError(msg) from error
    return parse_recipe(text, folder=path.parent, root=root, where=path.name)


def _siblings(path: Path) -> list[str]:
    return [p.name for p in path.parent.glob("*.yaml")] if path.parent.is_dir() else []


def parse_recipe(
    text: str, *, folder: Path, root: Path | None, where: str, need_root: bool = True
) -> Recipe:
    """Parse a recipe's text; see `load_recipe`. A finished run needs its root no more."""
    raw = load_yaml(text, where)
    top = _mapping(raw, where, _TOP)
    if top.get("format", FORMAT) != FORMAT:
        msg = f"{where}: format {top['format']}, this version reads {FORMAT}"
        raise UsageError(msg)
    sources = _mapping(top.get("sources"), f"{where}: sources", None)
    if not sources:
        msg = f"{where}: sources: empty; a recipe needs at least one source"
        raise UsageError(msg)
    parsed = tuple(
        _source(name, body, order, f"{where}: sources.{name}", folder)
        for order, (name, body) in enumerate(sources.items())
    )
    tokenizer, tokenizer_options = _tokenizer(top.get("tokenizer"), folder, where)
    base = root if root is not None else folder / str(top.get("root", "."))
    if need_root and not base.is_dir():
        msg = f"{where}: root: no folder {base}; state it with --root"
        raise UsageError(msg)
    names = tuple(s.name for s in parsed)
    shared = _shared(top.get("shared") or [], names, f"{where}: shared", folder)
    _no_repeats(parsed, shared, where)
    return Recipe(
        name=text_or_none(top.get("name"), f"{where}: name") or where.removesuffix(".yaml"),
        root=base,
        sources=parsed,
        shared=shared,
        tokenizer=tokenizer,
        tokenizer_options=tokenizer_options,
        turns=(
            TurnSpec.parse(top["turns"], f"{where}: turns")
            if top.get("turns") is not None
            else None
        ),
        mixture=_mixture(top.get("mixture"), parsed, f"{where}: mixture"),
        shard_bytes=parse_bytes(top.get("shard_bytes", "256 MiB"), f"{where}: shard_bytes"),
        memory=parse_bytes(top.get("memory", "512 MiB"), f"{where}: memory"),
        partitions=(
            whole(top["partitions"], f"{where}: partitions", 1, MOST)
            if top.get("partitions") is not None
            else None
        ),
        text=text,
    )


def _tokenizer(value: Any, folder: Path, where: str) -> tuple[Path | None, dict[str, Any]]:
    """A path relative to the recipe, or `{path, eos, bos, pattern, special}`."""
    if value is None:
        return None, {}
    given = {"path": value} if isinstance(value, str) else value
    options = _mapping(given, f"{where}: tokenizer", {"path", "eos", "bos", "pattern", "special"})
    path = folder / str(options.pop("path", ""))
    if not path.is_file():
        msg = f"{where}: tokenizer: no file {path}; expected a tokenizer's file"
        raise UsageError(msg)
    return path, options


def _mapping(value: Any, where: str, known: set[str] | None) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        msg = f"{where}: expected `key: value` lines, found {type(value).__name__}"
        raise UsageError(msg)
    for key in value:
        if known is not None and key not in known:
            msg = f"{where}: no key {key!r}{did_you_mean(str(key), known)}"
            raise UsageError(msg)
    return {str(k): v for k, v in value.items()}


def _source(name: str, body: Any, order: int, where: str, folder: Path) -> Source:
    if not re.fullmatch(r"[a-z0-9][a-z0-9_]*", name):
        msg = f"{where}: a source's name is made of a-z, 0-9 and _; found {name!r}"
        raise UsageError(msg)
    given = _mapping(body, where, _SOURCE)
    paths = given.get("paths")
    if isinstance(paths, str):
        paths = [paths]
    if not isinstance(paths, list) or not paths:
        msg = f"{where}.paths: expected a path or a list of paths, found {paths!r}"
        raise UsageError(msg)
    for share in ("removal_cap", "max_loss"):
        value = given.get(share, 0)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            msg = f"{where}.{share}: expected a share from 0 to 1, found {value!r}"
            raise UsageError(msg)
    reader = _mapping(given.get("reader") or {}, f"{where}.reader", None)
    try:
        ReadOptions.of(reader)
    except UsageError as error:
        msg = f"{where}: {error}"
        raise UsageError(msg) from error
    stages = given.get("stages") or []
    if not isinstance(stages, list):
        msg = f"{where}.stages: expected a list of stages, found {stages!r}"
        raise UsageError(msg)
    return Source(
        name=name,
        paths=tuple(str(p) for p in paths),
        priority=whole(given.get("priority", order), f"{where}.priority", 0, 65535),
        converter=build_named(
            known_converters(),
            given.get("converter", "main_text"),
            f"{where}.converter",
            "converter",
            folder,
        ),
        reader=reader,
        stages=tuple(
            build_named(known_stages(), e, f"{where}.stages[{i}]", "stage", folder)
            for i, e in enumerate(stages)
        ),
        dump=text_or_none(given.get("dump"), f"{where}.dump"),
        license=text_or_none(given.get("license"), f"{where}.license"),
        removal_cap=float(given.get("removal_cap", 0.9)),
        max_loss=float(given.get("max_loss", 0.0)),
    )


def _shared(entries: Any, sources: tuple[str, ...], where: str, folder: Path) -> tuple[Any, ...]:
    if not isinstance(entries, list):
        msg = f"{where}: expected a list of stages, found {type(entries).__name__}"
        raise UsageError(msg)
    everything = known_stages() | known_globals()
    built: list[Any] = []
    for i, entry in enumerate(entries):
        name, options = split_entry(entry, f"{where}[{i}]")
        if name not in known_globals():
            built.append(build_named(everything, entry, f"{where}[{i}]", "stage", folder))
            continue
        covers = options.pop("sources", None) or list(sources)
        covers = covers if isinstance(covers, list) else [covers]
        for covered in covers:
            if covered not in sources:
                hint = did_you_mean(covered, sources)
                msg = f"{where}[{i}].{name}.sources: no source {covered!r}{hint}"
                raise UsageError(msg)
        stage = build_named(everything, {name: options}, f"{where}[{i}]", "stage", folder)
        built.append(GlobalUse(stage=stage, sources=tuple(covers)))
    return tuple(built)


def _mixture(value: Any, sources: tuple[Source, ...], where: str) -> Mapping[str, Any] | None:
    """Check the mixture before any work: a typo must not show after days of it."""
    if value is None:
        return None
    spec = MixSpec.parse(value, where=where)
    names = [s.name for s in sources]
    for name, piece in spec.slices.items():
        for source in piece.source or ():
            if source is not None and source not in names:
                hint = did_you_mean(source, names)
                msg = f"{where}.slices.{name}.source: no source {source!r}{hint}"
                raise UsageError(msg)
    return dict(value)


def _no_repeats(sources: tuple[Source, ...], shared: tuple[Any, ...], where: str) -> None:
    """A stage's columns bear its name, so it may stand once on the way of a document."""
    for source in sources:
        names = [s.name for s in source.stages]
        for entry in shared:
            if isinstance(entry, GlobalUse):
                if source.name in entry.sources:
                    names += [entry.stage.name, entry.stage.survey.name]
            else:
                names.append(entry.name)
        for name in names:
            if names.count(name) > 1:
                msg = f"{where}: source {source.name!r} meets stage {name!r} twice; once is allowed"
                raise UsageError(msg)


def parse_bytes(value: Any, where: str) -> int:
    """`268435456`, `256 MiB`, `1GiB` to bytes."""
    match = re.fullmatch(r"(\d+)\s*(\w*)", str(value).strip())
    if not match or match[2] not in _UNITS or isinstance(value, bool) or not int(match[1]):
        msg = f"{where}: expected bytes like `256 MiB`, found {value!r}"
        raise UsageError(msg)
    return int(match[1]) * _UNITS[match[2]]
