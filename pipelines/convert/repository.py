"""Files of a repository to one document, so that a model sees them beside each other.

Consecutive records of one repository become one text: files in the order of their paths, or so that
each stands after what it imports (`imports`), each under a line `==> path <==`. One that is larger
than `max_bytes` is cut between files into parts of about equal weight in reading order.
`metadata["files"]` says where each file's text stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from ...documents.errors import UsageError, did_you_mean
from ...documents.files import files_field
from ...documents.records import Draft, Locator, Loss, Record, Skip
from .cleaning import clean_line, clean_text, clean_values
from .held import HeldOut
from .imports import import_order, imports_of
from .licences import is_licence, licence_of_files

_ORDERS = ("path", "imports")
_HELD = 256 << 20  # bytes of text gathered before a repository without end is written in pieces


@dataclass(slots=True)
class _File:
    path: str
    text: str
    size: int  # UTF-8 bytes of the block: header line, text, line ends
    repairs: dict[str, int]
    record: Record


@dataclass(slots=True)
class _Gathered:
    name: str
    files: list[_File] = field(default_factory=list)
    size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """One document per repository, or per part of a large one.

    Records need string fields `repo_field` and `path_field` (`bad_schema` otherwise); a file
    without text is `no_text` (`dropped`). A draft's locator is that of its first file, its span the
    sum of all of them, `records` their number. Fields that all files share go into the metadata.

    `order: imports` puts a file behind what it imports (`imports.py` says of which languages), and
    the metadata count imports found and files that import each other in a circle. Where the source
    states no licence, it is that of the repository's licence files, if they are known ones;
    `licence_files` in the metadata has it either way. Repositories of `benchmarks` (lists that
    ship) and `held_out` (files of `owner/name` lines) are left out, file by file (`held_out`,
    dropped).
    """

    name: ClassVar[str] = "repository"
    revision: ClassVar[int] = 4

    repo_field: str = "repo"  # of a row: the repository
    path_field: str = "path"  # of a row: the file in it
    license_field: str = "license"  # of a row: its licence
    max_bytes: int = 1 << 20  # UTF-8 bytes of one document; a larger file is a part of its own
    order: str = "path"  # or "imports": a file behind what it imports
    benchmarks: tuple[str, ...] = ("swe_bench",)  # repositories of these are held out
    held_out: tuple[Path, ...] = files_field()  # and those named here, one a line

    def __post_init__(self) -> None:
        if self.order not in _ORDERS:
            msg = f"order: found {self.order!r}; expected one of {', '.join(_ORDERS)}"
            raise UsageError(msg + did_you_mean(self.order, _ORDERS))
        HeldOut.check(self.benchmarks)

    def __call__(self, items: Iterator[Record | Loss | Skip]) -> Iterator[Draft | Loss | Skip]:
        """Losses and skips of the reader pass through at once."""
        held: _Gathered | None = None
        out = HeldOut.of(self.benchmarks, self.held_out)
        for item in items:
            if not isinstance(item, Record):
                yield item
                continue
            if name := out.found([item.fields.get(self.repo_field)]):
                yield Loss(locator=item.locator, reason="held_out", detail=name, kind="dropped")
                continue
            file = self._file(item)
            if isinstance(file, Loss):
                yield file
                continue
            name = str(item.fields[self.repo_field])
            if held is not None and (held.name != name or held.size > _HELD):
                yield from self._drafts(held)
                held = None
            held = held or _Gathered(name)
            held.files.append(file)
            held.size += file.size
        if held is not None:
            yield from self._drafts(held)

    def _file(self, record: Record) -> _File | Loss:
        repo = record.fields.get(self.repo_field)
        path = record.fields.get(self.path_field)
        if not (isinstance(repo, str) and isinstance(path, str) and record.text is not None):
            detail = f"expected strings {self.repo_field!r} and {self.path_field!r} and a text"
            return Loss(locator=record.locator, reason="bad_schema", detail=detail)
        text, repairs = clean_text(record.text)
        repairs |= record.repairs
        if not text.strip():
            return Loss(locator=record.locator, reason="no_text", kind="dropped")
        path = " ".join(clean_text(path)[0].split("\n"))
        block = block_of(path, text)
        return _File(path, text, len(block.encode()), repairs, record)

    def _drafts(self, held: _Gathered) -> Iterator[Draft]:
        held.files.sort(key=lambda f: f.path)  # stable: equal paths stay in the order read
        about: dict[str, Any] = {}
        if self.order == "imports":
            imports = imports_of([(f.path, f.text) for f in held.files], held.name)
            order, circular = import_order([f.path for f in held.files], imports)
            held.files = [held.files[i] for i in order]
            about = {"imports": sum(map(len, imports)), "circular": circular}
        licence = licence_of_files((f.path, f.text) for f in held.files if is_licence(f.path))
        if licence is not None:
            about["licence_files"] = licence
        parts: list[list[_File]] = []
        count = max(1, -(-held.size // self.max_bytes))
        aim = held.size / count
        size = 0
        for file in held.files:
            if not parts or size + file.size > self.max_bytes or size >= aim:
                parts.append([])
                size = 0
            parts[-1].append(file)
            size += file.size
        for number, files in enumerate(parts, 1):
            yield self._draft(held.name, files, {**about, "part": number, "parts": len(parts)})

    def _draft(self, name: str, files: list[_File], about: dict[str, Any]) -> Draft:
        blocks: list[str] = []
        listed: list[dict[str, Any]] = []
        repairs: dict[str, int] = {}
        at = 0
        for file in files:
            block = block_of(file.path, file.text)
            head = len(header_of(file.path).encode())
            where = file.record.locator
            listed.append(
                {
                    "path": file.path,
                    "start": at + head,
                    "bytes": len(file.text.encode()),
                    "locator": [where.file, where.offset, where.inner, where.span],
                }
            )
            blocks.append(block)
            at += file.size
            for kind, times in file.repairs.items():
                repairs[kind] = repairs.get(kind, 0) + times
        first = files[0].record
        span = sum(f.record.locator.span for f in files)
        at_first = first.locator
        shared = self._shared(files)
        stated = shared.get(self.license_field)
        stated = stated if isinstance(stated, str) and stated else about.get("licence_files")
        clean_name = clean_line(name) or ""
        return Draft(
            locator=Locator(at_first.file, at_first.offset, at_first.inner, span),
            text="".join(blocks),
            url=clean_line(first.url) if len({f.record.url for f in files}) == 1 else None,
            date=clean_line(first.date) if len({f.record.date for f in files}) == 1 else None,
            license=stated,
            identity=clean_name if about["parts"] == 1 else f"{clean_name}#{about['part']}",
            metadata={**shared, **about, "files": listed},
            repairs=repairs,
            records=len(files),
        )

    def _shared(self, files: list[_File]) -> dict[str, Any]:
        """Fields that have the same value in all files."""
        first = files[0].record.fields
        same = {
            k: v
            for k, v in first.items()
            if k != self.path_field and all(f.record.fields.get(k) == v for f in files)
        }
        return clean_values(same)


def header_of(path: str) -> str:
    """The line above a file."""
    return f"==> {path} <==\n"


def block_of(path: str, text: str) -> str:
    """A file under its line, with a blank line behind it."""
    return header_of(path) + text + ("\n" if text.endswith("\n") else "\n\n")
