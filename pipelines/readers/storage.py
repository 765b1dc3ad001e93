"""Where stored bytes come from: local files, and any address that fsspec knows.

    crawl/a.warc.gz                    a file under the recipe's root
    s3://bucket/a.warc.gz              and gs://, hf://, https://, file://, memory://, ...

A file is read by ranges and never as a whole, so memory does not grow with it. A range that fails
is asked for again (five times within about three seconds, beside what the client does itself);
then the shard stops with the address in the message. What storage withholds is never a loss in
the books: the bytes are there, and the same command reads them later.

Keys and endpoints come from the environment (`AWS_*`, `FSSPEC_S3_ENDPOINT_URL`), never from a
recipe. A version of an object is its size with the etag (or time of change) that the store gives.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, Self, TypeVar

from ...documents.errors import StopError, UsageError

_T = TypeVar("_T")
ATTEMPTS = 5
_GAP = 1 << 20  # bytes between two reads that are fetched too, so that what is kept is one stretch
PAUSE = 0.2  # seconds before the second attempt, doubled before each further one
_MD5 = re.compile(r'"?[0-9a-f]{32}(?:-\d+)?"?')  # of the content, or of its parts
_HASHED = frozenset({"s3", "s3a", "gs", "gcs"})  # stores whose etag is such a digest
_ETAGS = ("ETag", "etag", "md5Hash", "blob_id")
_TIMES = ("LastModified", "Last-Modified", "last_modified", "mtime", "created")
_EXTRAS = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "hf": "huggingface_hub"}


class Stat(NamedTuple):
    """Size and version of a file. `version` is empty where nothing tells two of them apart."""

    size: int
    version: str
    tagged: bool = False  # the version is an etag: it changes whenever the bytes do
    content: bool = False  # equal etags mean equal bytes, wherever they stand


class Ranges(Protocol):
    """Random reads of one file."""

    size: int  # bytes of the whole file
    sequential: int  # most bytes that are worth one request while reads follow each other
    far: bool  # a second read costs as much as the first

    def read(self, at: int, size: int) -> bytes:
        """Bytes [at, at + size); fewer only behind the end. StopError when storage fails."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


def is_address(name: str) -> bool:
    """Whether `name` is an address and not a path."""
    return "://" in name


def key_of(file: str) -> str:
    """A file's name without its store: the part of an address behind the bucket or host."""
    if not is_address(file):
        return file
    scheme, _, rest = file.partition("://")
    return rest.lstrip("/") if scheme in {"file", "local", "memory"} else rest.partition("/")[2]


def filesystem(address: str) -> tuple[Any, str]:
    """The fsspec file system of an address and its path there; UsageError when there is none."""
    import fsspec

    if "::" in address:
        msg = f"{address}: chained addresses are not read; unpack or name the object itself"
        raise UsageError(msg)
    scheme = address.partition("://")[0]
    try:
        return fsspec.core.url_to_fs(address)  # type: ignore[no-any-return]
    except ImportError as error:
        extra = _EXTRAS.get(scheme, "its fsspec package")
        msg = f"{address}: reading {scheme}:// needs {extra}: `pip install {extra}` ({error})"
        raise UsageError(msg) from error
    except ValueError as error:
        msg = f"{address}: fsspec knows no {scheme}:// ({error})"
        raise UsageError(msg) from error


def persist(address: str, ask: Callable[[], _T]) -> _T:
    """Ask until there is an answer. FileNotFoundError passes; StopError when there is none."""
    for attempt in range(ATTEMPTS):
        try:
            return ask()
        except (FileNotFoundError, StopError):
            raise
        except Exception as error:  # every client has exceptions of its own
            if attempt + 1 == ATTEMPTS or isinstance(error, (PermissionError, NotImplementedError)):
                msg = (
                    f"{address}: cannot be read: {type(error).__name__}: {str(error)[:300]}. "
                    "Nothing was booked as lost; give the same command again when it can be."
                )
                raise StopError(msg) from error
            time.sleep(PAUSE * 2**attempt)
    raise AssertionError  # the last attempt returns or raises


def stat_of(info: Mapping[str, Any], address: str) -> Stat:
    """Size and version from what a file system says of an object."""
    size = info.get("size")
    if size is None:
        msg = f"{address}: the store does not say how large it is; fetch it and name the copy"
        raise UsageError(msg)
    tag = next((str(info[t]) for t in _ETAGS if info.get(t)), "")
    weak = tag.startswith("W/")  # says that the page means the same, not that its bytes are
    if tag and not weak:
        hashed = address.partition("://")[0] in _HASHED and bool(_MD5.fullmatch(tag))
        return Stat(int(size), tag, tagged=True, content=hashed)
    return Stat(int(size), next((str(info[t]) for t in _TIMES if info.get(t)), ""))


def stat_file(root: Path, file: str) -> Stat:
    """Size and version now. FileNotFoundError, or StopError when the store does not answer."""
    if not is_address(file):
        found = (root / file).stat()
        version = f"{found.st_mtime_ns}-{found.st_ctime_ns}-{found.st_ino}"
        return Stat(found.st_size, version)
    system, path = filesystem(file)
    return stat_of(persist(file, lambda: _fresh(system, path)), file)


def _fresh(system: Any, path: str) -> Mapping[str, Any]:
    system.invalidate_cache()  # listings are kept; a version must be the one that is there
    info: Mapping[str, Any] = system.info(path)
    return info


def open_file(root: Path, file: str) -> Ranges:
    """Open for reading by ranges; StopError when it is not there any more."""
    try:
        return Remote(file) if is_address(file) else Local(root / file)
    except FileNotFoundError as error:
        msg = f"{file}: is not there any more; give the same command again to plan without it"
        raise StopError(msg) from error
    except OSError as error:  # may not be read, a folder by now, too many open files
        msg = f"{file}: cannot be opened: {error.strerror or error}; try again when it can be"
        raise StopError(msg) from error


class Local:
    """A file on a mounted file system."""

    sequential = 1 << 20
    far = False

    def __init__(self, path: Path | IO[bytes]) -> None:
        self._file = path.open("rb", buffering=0) if isinstance(path, Path) else path
        self.size = os.fstat(self._file.fileno()).st_size

    def read(self, at: int, size: int) -> bytes:
        """See `Ranges`."""
        parts: list[bytes] = []
        while size > 0:  # a network file system may give less than was asked for
            try:
                part = os.pread(self._file.fileno(), size, at)
            except OSError as error:
                msg = f"{self._file.name}: cannot be read at byte {at}: {error}"
                raise StopError(msg) from error
            if not part:
                break
            parts.append(part)
            at += len(part)
            size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Remote:
    """An object behind an address. A server without ranges is copied to a temporary file first."""

    sequential = 16 << 20

    def __init__(self, address: str) -> None:
        self._address = address
        self._system, self._path = filesystem(address)
        self._copy: Local | None = None
        info = persist(address, lambda: _fresh(self._system, self._path))
        self._stat = stat_of(info, address)
        self.size = self._stat.size
        if address.startswith(("http://", "https://")) and not persist(address, self._ranged):
            self._copy = persist(address, self._fetch)
        self.far = self._copy is None

    def _ranged(self) -> bool:
        """Whether the server serves ranges; one that does not answers with the whole body."""
        with self._system.open(self._path, "rb", cache_type="none") as file:
            if not file.seekable():
                return False
            file.seek(self._stat.size // 2)
            try:
                file.read(1)
            except ValueError:  # fsspec: "the HTTP server doesn't appear to support range requests"
                return False
        return True

    def _fetch(self) -> Local:
        file = tempfile.TemporaryFile()  # noqa: SIM115 - `close` ends it
        with self._system.open(self._path, "rb", block_size=0) as stream:
            while part := stream.read(1 << 20):
                file.write(part)
        file.flush()
        if os.fstat(file.fileno()).st_size != self._stat.size:
            msg = f"{file.tell()} of {self._stat.size} bytes came"
            raise OSError(msg)
        return Local(file)

    def read(self, at: int, size: int) -> bytes:
        """See `Ranges`."""
        size = min(size, self._stat.size - at)
        if size <= 0:
            return b""
        return (
            self._copy.read(at, size)
            if self._copy
            else persist(self._address, lambda: self._range(at, size))
        )

    def _range(self, at: int, size: int) -> bytes:
        data: bytes = self._system.cat_file(self._path, start=at, end=at + size)
        if len(data) != size:
            msg = f"{len(data)} bytes came where {size} were asked for, at byte {at}"
            raise OSError(msg)
        return data

    def close(self) -> None:
        """Say whether the object was changed while it was read: StopError if so."""
        if self._copy:
            self._copy.close()
            return
        with contextlib.suppress(FileNotFoundError):
            if stat_file(Path(), self._address) != self._stat:
                msg = f"{self._address}: was changed while it was read; give the command again"
                raise StopError(msg)


class Kept:
    """One stretch of a far file in a temporary file, so that it can be read again; grows by reads.

    Where the disk is full the rest is fetched again.
    """

    def __init__(self, ranges: Ranges, at: int, data: bytes | memoryview) -> None:
        self._ranges = ranges
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - `close` ends it
        self._start = at
        self._size = 0
        self._keep(data)

    def _keep(self, data: bytes | memoryview) -> None:
        with contextlib.suppress(OSError):
            self._size += os.pwrite(self._file.fileno(), data, self._size)

    def read(self, at: int, size: int) -> bytes:
        """See `Ranges`."""
        begin = at - self._start
        gap = begin - self._size
        if begin < 0 or gap > _GAP:
            return self._ranges.read(at, size)
        if gap > 0:  # who walks headers leaps over a block
            more = self._ranges.read(at - gap, gap + size)
            self._keep(more)
            return more[gap:]
        held = os.pread(self._file.fileno(), min(size, self._size - begin), begin)
        if len(held) == size:
            return held
        more = self._ranges.read(at + len(held), size - len(held))
        self._keep(more)
        return held + more

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


class RangeFile(io.RawIOBase):
    """`Ranges` as a file object, for Arrow."""

    def __init__(self, ranges: Ranges) -> None:
        self._ranges = ranges
        self._size = ranges.size
        self._at = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move; nothing is read."""
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        """Where the next read starts."""
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer`."""
        data = self._ranges.read(self._at, len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def read(self, size: int | None = -1) -> bytes:
        """One range."""
        left = max(0, self._size - self._at)
        data = self._ranges.read(self._at, left if size is None or size < 0 else min(size, left))
        self._at += len(data)
        return data

    def __enter__(self) -> Self:
        return self
