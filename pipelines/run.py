"""A run as every process sees it: the recipe, the manifest, the passes, the files.

A worker opens it from the run folder alone, so tasks are three short strings on any executor.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property, lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..documents.errors import StopError, UsageError
from ..documents.fingerprint import canonical, digest
from ..documents.identity import shard_hash
from ..documents.stage import Stage
from .exchange import NONE, part_of_shard, power_of_two
from .lookup import Lookup
from .manifest import NAME as MANIFEST
from .manifest import Shard, read_manifest
from .passes import Pass
from .recipe import GlobalUse, Recipe, parse_recipe
from .store import Store, write_whole

if TYPE_CHECKING:
    from ..mixing.encoder import Encoder

RECIPE = "recipe.yaml"
PLACE = "run.json"  # where the inputs stand and which shards to go without: no identity
FAILED = "failed.json"  # what failed in the last command; gone when all went well
REMOVALS = "removals.json"  # documents that were taken down, by shard: they are read no more
GROUP = 1000  # shards per decision file, at most on average
_TOP = {
    "run.json", "recipe.yaml", "lock.json", "manifest.jsonl", "inputs.seen", "failed.json",
    "documents", "losses", "attributes", "accounts", "manifests", "exchange", "decisions", "corpus",
    "tokens", "plans", "removals.json", "launch", "ledger.duckdb", "report.html",
}  # fmt: skip


class Run:
    """One run folder, opened."""

    def __init__(self, root: Path) -> None:
        self.store = Store(root)
        place = _read_json(self.store.path(PLACE))
        text = self.store.path(RECIPE).read_text(encoding="utf-8")
        self.folder = Path(place["recipe_folder"])
        self.recipe: Recipe = parse_recipe(
            text, folder=self.folder, root=Path(place["root"]), where=RECIPE, need_root=False
        )
        self.without: frozenset[str] = frozenset(place.get("without", ()))
        self.manifest = read_manifest(self.store)
        self.shards: dict[str, Shard] = {
            s.name: s
            for s in sorted(self.manifest, key=lambda s: s.name)
            if s.duplicate_of is None and s.name not in self.without
        }
        self.removals = read_removals(self.store.path(REMOVALS))
        self.failed: set[str] = set()  # shards that failed in this command: the driver's memory
        self.troubles: list[dict[str, Any]] = []  # and all that failed: step, key, attempts, error

    @cached_property
    def passes(self) -> tuple[Pass, ...]:
        """The recipe cut at its global stages."""
        sources = self.recipe.sources
        stages: dict[str, list[Stage]] = {s.name: list(s.stages) for s in sources}
        applies: GlobalUse | None = None
        found: list[Pass] = []
        name = "base"
        for entry in [*self.recipe.shared, None]:
            if isinstance(entry, GlobalUse) or entry is None:
                if entry is not None:
                    for covered in entry.sources:
                        stages[covered].append(entry.stage.survey)
                each = {k: tuple(v) for k, v in stages.items()}
                found.append(Pass(name=name, applies=applies, stages=each, surveys=entry))
                stages = {s.name: [] for s in sources}
                applies = entry
                name = entry.stage.name if entry is not None else ""
            else:
                for each_source in stages.values():
                    each_source.append(entry)
        return tuple(found)

    def stages(self, which: Pass, shard: str) -> tuple[Stage, ...]:
        """The stages that a pass runs on a shard, the application of its decisions first."""
        own = which.stages[self.shards[shard].source]
        if which.applies is None or not self.covers(which.applies, shard):
            return own
        return (Lookup.load(self, which.applies, shard), *own)

    def covers(self, use: GlobalUse, shard: str) -> bool:
        """Whether a global stage covers the shard's source."""
        return self.shards[shard].source in use.sources

    def covered(self, use: GlobalUse) -> list[str]:
        """The shards that a global stage covers, in order."""
        return self._covered[use.stage.name]

    def decisions(self, use: GlobalUse, shard: str) -> str:
        """The decision file in which a shard's documents stand."""
        files = self.decision_files(use)
        return files[part_of_shard(shard, len(files))]

    def decision_files(self, use: GlobalUse) -> list[str]:
        """All decision files of a global stage, in order.

        A shard's is told by its hash: a shard that comes or goes moves no other, but for the few
        that make them a power of two more or less.
        """
        groups = power_of_two(-(-len(self.covered(use)) // GROUP), 1)
        return [f"decisions/{use.stage.name}/{g:05d}.parquet" for g in range(groups)]

    def decided(self, use: GlobalUse, shard: str) -> dict[str, str]:
        """The digest of the decisions on a shard, for the `inputs` of what applies them."""
        name = self.decisions(use, shard)
        each = self.store.require(name).counts.get("shards")
        if each is None:
            msg = f"{name}: an older version wrote it; give the same `run` command again"
            raise StopError(msg)
        return {f"{name}#{shard}": each.get(shard, NONE)}

    @cached_property
    def _covered(self) -> dict[str, list[str]]:
        """Of each global stage: every task asks how many they are."""
        uses = [p.surveys for p in self.passes if p.surveys is not None]
        return {u.stage.name: [s for s in self.shards if self.covers(u, s)] for u in uses}

    @cached_property
    def _by_hash(self) -> dict[int, str]:
        return {shard_hash(name): name for name in self.shards}

    def shard_of(self, number: int) -> str:
        """The shard of a hash."""
        return self._by_hash[number]

    @cached_property
    def encoder(self) -> Encoder:
        """The tokenizer of the run."""
        from ..mixing.encoder import load_encoder

        return load_encoder(self.recipe.tokenizer, **self.recipe.tokenizer_options)

    @cached_property
    def tokenizer_identity(self) -> list[Any]:
        """Digest of the tokenizer file and the engine, without loading either."""
        from ..documents.fingerprint import file_digest
        from ..mixing.encoder import OWN, libraries_of

        file = file_digest(self.recipe.tokenizer or OWN)
        options = dict(self.recipe.tokenizer_options)
        libraries = libraries_of(self.recipe.tokenizer)
        return [file, *self.versions(*libraries), options]

    @staticmethod
    def versions(*names: str) -> list[str]:
        """`name version` of libraries whose output matters."""
        return [f"{n} {_version(n)}" for n in names]


def read_removals(path: Path) -> dict[str, frozenset[bytes]]:
    """Ids that were taken down, by shard; StopError when the list is torn."""
    if not path.is_file():
        return {}
    found = _read_json(path).get("shards")
    if not isinstance(found, dict):
        msg = f"{path}: torn; give `gristmill remove` its lists again"
        raise StopError(msg)
    return {s: frozenset(bytes.fromhex(i) for i in ids) for s, ids in found.items()}


@lru_cache
def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError as error:
        msg = f"the recipe needs {name}, which is not installed: `pip install {name}`"
        raise UsageError(msg) from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        msg = (
            f"{path.parent}: no run in it (no {path.name}); `gristmill run RECIPE --out` makes one"
        )
        raise UsageError(msg) from None
    except ValueError as error:
        msg = f"{path}: not JSON ({error}); give the same `run` command again"
        raise StopError(msg) from error
    if not isinstance(found, dict):
        msg = f"{path}: expected an object; give the same `run` command again"
        raise StopError(msg)
    return found


def open_run(folder: Path) -> Run:
    """Open an existing run for reading; UsageError when the folder is none."""
    if not folder.is_dir():
        msg = f"no folder {folder}; `gristmill run RECIPE --out {folder}` makes one"
        raise UsageError(msg)
    return Run(folder)


def prepare(recipe: Recipe, recipe_folder: Path, out: Path, *, without: list[str]) -> Run:
    """Make `out` the run folder of `recipe` or take it up again; UsageError when another's."""
    place = out / PLACE
    if out.exists() and not out.is_dir():
        msg = f"--out {out}: is a file; expected a folder"
        raise UsageError(msg)
    held = _held(place)
    if held is not None:
        if held != recipe.name:
            msg = (
                f"--out {out}: belongs to recipe {held!r}, this is {recipe.name!r}; "
                "choose another folder, or start over with --fresh"
            )
            raise UsageError(msg)
    elif out.is_dir() and any(not _ours(p.name) for p in out.iterdir()):
        msg = f"--out {out}: holds files but no run; choose an empty or new folder"
        raise UsageError(msg)
    store = Store(out)
    where = {
        "recipe": recipe.name,
        "recipe_folder": str(recipe_folder.resolve()),
        "root": str(recipe.root.resolve()),
        "without": sorted(without),
    }
    write_whole(place, canonical(where))
    try:
        read_manifest(store)
    except StopError:
        store.path(MANIFEST).unlink()  # torn: it is made again
    content = recipe.text.encode()
    if not store.same(RECIPE, content):
        put(store, RECIPE, content)
    return Run(out)


def _held(place: Path) -> str | None:
    """Name of the recipe that a folder belongs to; None when nothing tells."""
    try:
        name = json.loads(place.read_bytes())["recipe"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return name if isinstance(name, str) else None


def _ours(name: str) -> bool:
    """Whether a file may be what a killed first command left."""
    return name.startswith((".", *_TOP))


def put(store: Store, name: str, content: bytes, inputs: Mapping[str, str] | None = None) -> None:
    """Write a small file of the driver's with its sidecar."""
    with store.writing(name) as temporary:
        temporary.write_bytes(content)
        store.commit(temporary, name, inputs=inputs or {}, fingerprint=digest(["driver", name]))
