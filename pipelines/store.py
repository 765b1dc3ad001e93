"""A run folder: files, each with a sidecar that says what it was made from.

`<f>.json` is deterministic: inputs by digest, fingerprint, the file's digest and size, counts, and
a digest of the sidecar itself, so that a flipped byte in the books shows as well.
`<f>.run.json` is not: timings, host, CPU. A file is valid when its sidecar names these inputs and
this fingerprint and the size is right; nothing else means "done".

Writing: temporary name, flush to disk, old sidecar away, rename, new sidecar last. A crash at any
point leaves a file without a valid sidecar, which is made again. Two writers of one output are
harmless: both write the same bytes under names of their own before the rename.
"""

from __future__ import annotations

import json
import os
import platform
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..documents.errors import DamagedError, FormatError, StopError
from ..documents.fingerprint import canonical, file_digest
from ..documents.fingerprint import digest as value_digest

FORMAT = 1  # of sidecars
_HOST = platform.node().replace(".", "_") or "host"
_DAY = 86_400  # seconds
_TEMPORARY = re.compile(r"\.([^.]+)-(\d+)-[0-9a-f]{8}\.tmp$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidecar:
    """What a file was made from, and what it is."""

    file: str  # relative to the run, with forward slashes
    fingerprint: str
    inputs: Mapping[str, str]  # name -> digest
    digest: str  # BLAKE2b-128 of the file
    size: int  # bytes
    counts: Mapping[str, Any] = field(default_factory=dict)


class Store:
    """The files of one run, by name relative to its folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._cache: dict[str, tuple[int, Sidecar]] = {}

    def path(self, name: str) -> Path:
        """Where the file stands."""
        return self.root / name

    def sidecar(self, name: str) -> Sidecar | None:
        """The sidecar of `name`, or None when there is none or it is not whole."""
        path = self.root / f"{name}.json"
        try:
            stamp = path.stat().st_mtime_ns
            cached = self._cache.get(name)
            if cached and cached[0] == stamp:
                return cached[1]
            raw = json.loads(path.read_bytes())
            number, own = raw.pop("format"), raw.pop("self")
            found = Sidecar(**raw)
            if own != value_digest(raw):
                return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        if number != FORMAT:
            msg = f"{path}: format {number}, this reads {FORMAT}; use the version that wrote it"
            raise FormatError(msg)
        self._cache[name] = (stamp, found)
        return found

    def present(self, name: str) -> Sidecar | None:
        """The sidecar of `name` if the file is there with the size that it states."""
        side = self.sidecar(name)
        if side is None:
            return None
        try:
            size = (self.root / name).stat().st_size
        except OSError:
            return None
        return side if size == side.size else None

    def valid(self, name: str, inputs: Mapping[str, str], fingerprint: str) -> bool:
        """Whether `name` was made from these inputs under this fingerprint and is still there."""
        side = self.present(name)
        return (
            side is not None
            and side.fingerprint == fingerprint
            and dict(side.inputs) == dict(inputs)
        )

    def same(self, name: str, content: bytes) -> bool:
        """Whether the file is whole and holds just these bytes."""
        try:
            return self.present(name) is not None and (self.root / name).read_bytes() == content
        except OSError:
            return False

    def require(self, name: str) -> Sidecar:
        """The sidecar of a file that must be there; StopError names the missing piece."""
        side = self.present(name)
        if side is None:
            msg = (
                f"{name} is missing or not whole in {self.root}; give the same `run` command again"
            )
            raise StopError(msg)
        return side

    def digests(self, *names: str) -> dict[str, str]:
        """Digests of files that must be there, for the `inputs` of what is made from them."""
        return {name: self.require(name).digest for name in names}

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        """A temporary path beside `name`; removed unless `commit` took it."""
        target = self.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = _temporary(target)
        try:
            yield temporary
        finally:
            temporary.unlink(missing_ok=True)

    @contextmanager
    def scratch(self, name: str) -> Iterator[Path]:
        """A temporary folder beside `name`, gone afterwards."""
        target = self.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        folder = _temporary(target)
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def commit(
        self,
        temporary: Path,
        name: str,
        *,
        inputs: Mapping[str, str],
        fingerprint: str,
        counts: Mapping[str, Any] | None = None,
        run: Mapping[str, Any] | None = None,
    ) -> Sidecar:
        """Make a finished temporary file the output `name`; its sidecar is written last."""
        side = Sidecar(
            file=name,
            fingerprint=fingerprint,
            inputs=dict(inputs),
            digest=file_digest(temporary),
            size=temporary.stat().st_size,
            counts=dict(counts or {}),
        )
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        target = self.root / name
        Path(f"{target}.json").unlink(missing_ok=True)
        temporary.replace(target)
        write_whole(Path(f"{target}.run.json"), canonical(dict(run or {})), durable=False)
        body = {n: getattr(side, n) for n in Sidecar.__dataclass_fields__}
        body |= {"format": FORMAT, "self": value_digest(body)}
        write_whole(Path(f"{target}.json"), canonical(body))
        return side

    def adopt(
        self,
        file: Path,
        name: str,
        *,
        inputs: Mapping[str, str],
        fingerprint: str,
        run: Mapping[str, Any] | None = None,
    ) -> None:
        """Make a finished file, such as one from `scratch`, the output `name`."""
        with self.writing(name) as temporary:
            file.replace(temporary)
            self.commit(temporary, name, inputs=inputs, fingerprint=fingerprint, run=run)

    def run_facts(self, name: str) -> dict[str, Any]:
        """Timings of the task that wrote `name`; empty when they are gone."""
        try:
            found = json.loads((self.root / f"{name}.run.json").read_bytes())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def names(self, folder: str) -> list[str]:
        """Files with a sidecar below `folder`, sorted."""
        base = self.root / folder
        found = (p.relative_to(self.root).as_posix()[:-5] for p in base.rglob("*.json"))
        return sorted(
            n for n in found if not n.endswith(".run") and not n.split("/")[-1].startswith(".")
        )

    def check_bytes(self, name: str) -> None:
        """Hash the file again; DamagedError names it when it is not what the sidecar says."""
        side = self.sidecar(name)
        if side is None:
            msg = f"{name}: its sidecar {name}.json is missing or not readable"
            raise DamagedError(msg)
        path = self.root / name
        if not path.is_file():
            msg = f"{name}: the file is missing, its sidecar is there"
            raise DamagedError(msg)
        found = file_digest(path)
        if found != side.digest:
            msg = f"{name}: digest {found}, its sidecar says {side.digest}; delete it and run again"
            raise DamagedError(msg)


def _temporary(target: Path) -> Path:
    """A name beside `target` that tells who writes it: host, process, and a random part."""
    who = f"{_HOST}-{os.getpid()}-{secrets.token_hex(4)}"
    return target.with_name(f".{target.name}.{who}.tmp")


def sweep(root: Path) -> None:
    """Remove what killed processes left: temporary files of dead processes of this host.

    Of other hosts only files older than a day go: their writers cannot be asked.
    """
    for path in root.rglob(".*.tmp"):
        named = _TEMPORARY.search(path.name)
        if named is None:
            continue  # somebody else's
        host, pid = named.groups()
        try:
            old = time.time() - path.stat().st_mtime > _DAY
            if not old and (host != _HOST or _runs(int(pid))):
                continue
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        except OSError:  # its writer was quicker
            continue


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def write_whole(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Write by temporary name and rename: readers see the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary(path)
    with temporary.open("wb") as file:
        file.write(content)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    temporary.replace(path)
