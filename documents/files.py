"""Files that a stage reads: word lists, block lists, benchmarks, models.

A field made with `files_field` holds paths. A recipe states them relative to its own folder; in
fingerprints they count by their digest, so a list may move but may not change unnoticed. Contents
are read when first needed: `load()` of a stage, which the driver calls before any work starts, so
that a garbled list is an error at once and not after hours.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Any

import zstandard

from .errors import UsageError

FILES = "files"  # key in a field's metadata


def files_field() -> Any:
    """A field for any number of files or folders, none by default."""
    return field(default=(), metadata={FILES: True})


def as_paths(value: Any, where: str, folder: Path | None = None) -> tuple[Path, ...]:
    """One or more paths, relative to `folder`; UsageError for what is none or is not there."""
    given = (value,) if isinstance(value, (str, Path)) else value
    if not isinstance(given, (tuple, list)):
        msg = f"{where}: expected a path or a list of paths, found {given!r}"
        raise UsageError(msg)
    found = []
    for each in given:
        if not isinstance(each, (str, Path)) or not str(each):
            msg = f"{where}: expected a path, found {each!r}"
            raise UsageError(msg)
        path = (folder or Path()) / Path(each).expanduser()
        if not path.exists():
            msg = f"{where}: no file or folder {path}; paths are relative to the recipe's folder"
            raise UsageError(msg)
        found.append(path)
    return tuple(found)


def read_lines(path: Path, where: str) -> Iterator[tuple[int, str]]:
    """Number and text of each line that is not blank, without its line end; UTF-8.

    `.gz` and `.zst` are undone. UsageError when the file cannot be read, is no text, or is empty.
    """
    some = False
    number = 0
    try:
        with _opened(path) as file:
            for number, raw in enumerate(file, 1):
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
                if "\x00" in line:
                    msg = f"{where}: {path}:{number}: a NUL byte; expected a file of text"
                    raise UsageError(msg)
                if line:
                    some = True
                    yield number, line
    except UnicodeDecodeError as error:
        msg = f"{where}: {path}:{number}: not UTF-8 ({error.reason}); expected a file of text"
        raise UsageError(msg) from error
    except (OSError, EOFError, zstandard.ZstdError) as error:
        msg = f"{where}: {path}: cannot be read: {error}"
        raise UsageError(msg) from error
    if not some:
        msg = f"{where}: {path}: is empty; take it out of the recipe or mend it"
        raise UsageError(msg)


def _opened(path: Path) -> io.BufferedIOBase:
    if path.suffix == ".gz":
        return gzip.open(path, "rb")  # type: ignore[return-value]
    if path.suffix == ".zst":
        stream = zstandard.ZstdDecompressor().stream_reader(
            path.open("rb"), read_across_frames=True, closefd=True
        )
        return io.BufferedReader(stream)  # type: ignore[type-var,return-value]
    return path.open("rb")
