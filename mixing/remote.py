"""Plans and token shards in an object store, read through a folder on the machine's own disk.

A window of 4,096 tokens is 8 kB, far less than a request to an object store is worth: what is
fetched is the extent of 4 MiB under one checksum, once per machine, into a sparse file of the
shard's size. Over an epoch a machine so fetches what it needs once, whatever the order; processes
share the folder, and what one of them left half written fails its checksum and is fetched again.
fsspec is imported here alone, when an address is given: a local feed needs numpy only.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, Final

from ..documents.errors import StopError, UsageError

ATTEMPTS: Final = 4  # 7 s of waiting between them, beside what the store's library waits itself
SMALL: Final = ("index.json", "ends.npy", "ids.npy", "unlearnt.npy")


class AbsentError(StopError):
    """The store answered, and has no such file."""


def is_address(place: Path | str) -> bool:
    """`s3://bucket/run/tokens` is an address, a path is not."""
    return isinstance(place, str) and "://" in place


class Store:
    """The folder at an address; what is read comes to lie in `cache`."""

    def __init__(self, address: str, cache: Path | str | None) -> None:
        if cache is None:
            raise UsageError(f"{address}: an address needs cache=FOLDER on a disk of this machine")
        self.address = address.rstrip("/")
        self.cache = Path(cache)
        self._connected: tuple[int, Any, str] | None = None
        self._connect()

    def _connect(self) -> tuple[Any, str]:
        """The file system and the folder in it; a forked process makes its own connection."""
        if self._connected is None or self._connected[0] != os.getpid():
            import fsspec

            try:
                system, root = fsspec.core.url_to_fs(self.address, skip_instance_cache=True)
            except (ImportError, ValueError) as error:
                raise UsageError(f"{self.address}: {error}") from None
            self._connected = os.getpid(), system, str(root).rstrip("/")
        return self._connected[1:]

    def mirror(self, name: str) -> Path:
        """Bring the file `name` to the cache, unless it is there; its path. StopError without."""
        path = self.cache / name
        if not path.is_file():
            self._put(path, self._ask(name, None, None))
        return path

    def mirror_shard(self, name: str) -> Path:
        """Bring what a token shard keeps beside its tokens, and make room for them; its prefix."""
        index, *_ = (self.mirror(f"{name}.{suffix}") for suffix in SMALL)
        size = json.loads(index.read_bytes())["size"]
        path = self.cache / f"{name}.bin"
        if not path.is_file():
            fresh = path.with_name(f".{path.name}.{os.getpid()}")
            with fresh.open("wb") as file:
                file.truncate(size)
            _keep_first(fresh, path)
        return self.cache / name

    def fetch(self, name: str, low: int, high: int) -> bytes:
        """Bytes low..high-1 of a file. StopError when the store does not give them."""
        data = self._ask(name, low, high)
        if len(data) != high - low:
            raise StopError(f"{self.address}/{name}: gave {len(data)} of {high - low} bytes")
        return data

    def _ask(self, name: str, low: int | None, high: int | None) -> bytes:
        system, root = self._connect()
        for attempt in range(ATTEMPTS):
            try:
                return bytes(system.cat_file(f"{root}/{name}", start=low, end=high))
            except FileNotFoundError:
                raise AbsentError(f"{self.address}/{name} is missing from the store") from None
            except Exception as error:  # what stores raise has no common root
                if attempt == ATTEMPTS - 1:
                    raise StopError(
                        f"{self.address}/{name}: {ATTEMPTS} attempts failed, the last with "
                        f"{type(error).__name__}: {error}"
                    ) from error
                time.sleep(1 << attempt)
        raise AssertionError

    def _put(self, path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        fresh.write_bytes(data)
        fresh.replace(path)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as its address: a worker process connects for itself."""
        return Store, (self.address, self.cache)


def _keep_first(fresh: Path, path: Path) -> None:
    """Give `fresh` its name unless another process was first: its file may hold tokens."""
    try:
        os.link(fresh, path)
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
