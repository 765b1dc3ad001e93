"""An issue, the files that its solution touches, and the patch, in one document.

    ## issue
    Splitting a price loses a penny ...

    ## files
    ==> granary/money.py <==
    (the file before the patch)

    ## patch
    diff --git a/granary/money.py b/granary/money.py

Rows are SWE-bench's, or of that shape. SWE-bench's own rows are a benchmark: its repositories are
held out unless a recipe says otherwise, and nothing that ships reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ...documents.files import files_field
from ...documents.records import Draft, Loss, Record, Skip
from .cleaning import clean_text, clean_values
from .held import HeldOut
from .plain import make_draft
from .repository import block_of, header_of

# A path in quotes has octal escapes (git's core.quotePath); such a file is not looked up.
_TOUCHED = re.compile(r"(?:---|\+\+\+) (?:[ab]/)?([^\t\r\n\"]+)")
_RENAMED = re.compile(r"rename (?:from|to) ([^\t\r\n\"]+)")
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """One document per issue: its text, the files that its patch touches, and the patch.

    `issue_fields` that are there stand below each other; the first of `patch_fields` that is not
    empty is the patch; `contents_field` maps paths to texts before the patch, or lists
    `{path, text}`: files that the patch does not touch stay away. Read such sources with
    `text_field: null`. Losses: `bad_schema`, and (`dropped`) `no_text` (no issue or no patch),
    `not_a_patch` (no hunk), `too_large` (above `max_bytes`), `held_out` as in `repository`.
    """

    name: ClassVar[str] = "issue"
    revision: ClassVar[int] = 2

    issue_fields: tuple[str, ...] = ("title", "problem_statement", "body")
    patch_fields: tuple[str, ...] = ("patch", "gold_patch", "diff")
    contents_field: str = "files"  # of a row: path -> text of the files touched
    license_field: str = "license"  # of a row: its licence
    repo_fields: tuple[str, ...] = ("repo", "instance_id")
    max_bytes: int = 1 << 20  # UTF-8 bytes of a document
    benchmarks: tuple[str, ...] = ("swe_bench",)  # repositories of these are held out
    held_out: tuple[Path, ...] = files_field()  # and those named here, one a line

    def __post_init__(self) -> None:
        HeldOut.check(self.benchmarks)

    def __call__(self, items: Iterator[Record | Loss | Skip]) -> Iterator[Draft | Loss | Skip]:
        """Losses and skips of the reader pass through."""
        held = HeldOut.of(self.benchmarks, self.held_out)
        for item in items:
            yield self._issue(item, held) if isinstance(item, Record) else item

    def _issue(self, record: Record, held: HeldOut) -> Draft | Loss:
        fields = record.fields
        repairs: dict[str, int] = {}

        def lost(reason: str, detail: str = "", kind: str = "dropped") -> Loss:
            return Loss(locator=record.locator, reason=reason, detail=detail, kind=kind)

        def clean(text: str) -> str:
            out, mended = clean_text(text)
            for what, times in mended.items():
                repairs[what] = repairs.get(what, 0) + times
            return out

        if name := held.found(fields.get(f) for f in self.repo_fields):
            return lost("held_out", name)
        said = [fields[f] for f in self.issue_fields if fields.get(f) is not None]
        patch = next((fields[f] for f in self.patch_fields if fields.get(f) not in (None, "")), "")
        given = _files(fields.get(self.contents_field))
        if given is None or not all(isinstance(s, str) for s in [*said, patch, *given.values()]):
            wanted = f"strings under {', '.join([*self.issue_fields, *self.patch_fields])}"
            detail = f"expected {wanted}, and files {{path: text}} under {self.contents_field}"
            return lost("bad_schema", detail, "fault")
        issue = "\n\n".join(filter(None, (clean(each).strip("\n") for each in said)))
        patch = clean(patch).strip("\n")
        if not issue.strip() or not patch.strip():
            return lost("no_text", "no issue" if not issue.strip() else "no patch")
        if (touched := touched_by(patch)) is None:
            return lost("not_a_patch", patch[:100])
        parts = [f"## issue\n\n{issue}\n\n"]
        listed: list[dict[str, Any]] = []
        at = len(parts[0].encode())
        for path in (p for p in touched if p in given):
            if not listed:
                parts.append("## files\n\n")
                at += len(parts[-1])
            text = clean(given[path])
            block = block_of(path, text)
            start = at + len(header_of(path).encode())
            listed.append({"path": path, "start": start, "bytes": len(text.encode())})
            parts.append(block)
            at += len(block.encode())
        text = "".join([*parts, f"## patch\n\n{patch}\n"])
        if (size := len(text.encode())) > self.max_bytes:
            return lost("too_large", f"{size:,} bytes of {self.max_bytes:,}")
        own = {*self.issue_fields, *self.patch_fields, self.contents_field}
        metadata: dict[str, Any] = clean_values({k: v for k, v in fields.items() if k not in own})
        stated = metadata.get(self.license_field)
        metadata |= {"touched": len(touched), "files": listed}
        return make_draft(
            record, text, metadata, repairs, stated if isinstance(stated, str) else None
        )


def touched_by(patch: str) -> list[str] | None:
    """Paths of a patch, once each in order; None without a hunk, rename or binary change.

    Lines of a hunk are passed over by its counts: a removed `-- x` looks like a file's header.
    """
    paths: dict[str, None] = {}
    changes = False
    old = new = 0  # lines of the hunk that are still to come
    for line in patch.split("\n"):
        if old > 0 or new > 0:
            sign = line[:1]
            if sign != "\\":  # "\ No newline at end of file"
                old -= sign != "+"
                new -= sign != "-"
        elif match := _HUNK.match(line):
            old, new = (int(n) if n is not None else 1 for n in match.groups())
            changes = True
        elif match := _TOUCHED.match(line):
            if match[1] != "/dev/null":
                paths[match[1]] = None
        elif match := _RENAMED.match(line):
            paths[match[1]] = None
            changes = True
        elif line.startswith("GIT binary patch"):
            changes = True
    return list(paths) if changes else None


def _files(value: Any) -> dict[str, Any] | None:
    """Texts by path; None for what is no such thing."""
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return {str(path): text for path, text in value.items()}
    if not isinstance(value, list) or not all(isinstance(f, Mapping) for f in value):
        return None
    return {str(f.get("path")): f.get("text", f.get("content")) for f in value}
