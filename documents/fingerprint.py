"""Fingerprints: what an output depends on, and nothing else.

Written literally in a configuration bears identity; paths, hosts, times and worker counts never do
(files count by their digest). The rule is marin's; the form is canonical JSON under BLAKE2b.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a trainer imports this module, and has no pyarrow
    from .exchange import GlobalStage
    from .stage import Stage


def canonical(value: Any) -> bytes:
    """Canonical JSON of plain values, dataclasses, tuples and sets; TypeError for anything else."""
    return _ENCODER.encode(value).encode()


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Path):
        return path_digest(value)
    msg = f"cannot fingerprint {type(value).__name__}: {value!r}"
    raise TypeError(msg)


# Made once: to make one took half the time of a small value.
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=_plain)


def digest(value: Any) -> str:
    """32 hex digits of BLAKE2b over the canonical JSON of `value`."""
    return hashlib.blake2b(canonical(value), digest_size=16).hexdigest()


def file_digest(path: Path) -> str:
    """32 hex digits of BLAKE2b over a file's bytes."""
    hasher = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            hasher.update(chunk)
    return hasher.hexdigest()


def path_digest(path: Path) -> str:
    """`file_digest`; of a folder, the digest of names and contents below it.

    Kept for as long as size and time of change stay: a fingerprint is asked for each shard.
    """
    if path.is_dir():
        below = sorted(p for p in path.rglob("*") if p.is_file())
        return digest([[p.relative_to(path).as_posix(), path_digest(p)] for p in below])
    seen = path.stat()
    return _digest_once(path, seen.st_size, seen.st_mtime_ns)


@lru_cache(maxsize=4096)
def _digest_once(path: Path, _size: int, _changed: int) -> str:
    return file_digest(path)


def measure_fingerprint(stage: Stage | GlobalStage) -> str:
    """What the scores of `stage` depend on: all fields but the thresholds."""
    fields = {
        f.name: getattr(stage, f.name)
        for f in dataclasses.fields(stage)  # type: ignore[arg-type]
        if f.name not in stage.verdict_fields and f.metadata.get("identity", True)
    }
    return digest(["measure", stage.name, stage.revision, fields])


def verdict_fingerprint(stage: Stage) -> str:
    """What the codes of `stage` depend on, given its scores."""
    fields = {
        f.name: getattr(stage, f.name)
        for f in dataclasses.fields(stage)  # type: ignore[arg-type]
        if f.metadata.get("identity", True)
    }
    return digest(["verdict", stage.name, stage.revision, fields])
