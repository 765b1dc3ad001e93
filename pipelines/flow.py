"""Flow: what came in, was added, kept, stripped and dropped, by stage, language and reason.

`in + added = kept + stripped + dropped` for bytes and tokens; documents are in, kept or dropped (in
`stripped` and `added` the documents are those touched).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Languages(NamedTuple):
    """The language of each row: names, each once, and int[rows] into them."""

    names: list[str]
    which: np.ndarray


class Flow:
    """Sums of (documents, bytes, tokens) by (stage, language, account, reason)."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str, str, str], list[int]] = {}

    def book(
        self,
        stage: str,
        language: str | None,
        account: str,
        reason: str,
        documents: int,
        size: int,
        tokens: int,
    ) -> None:
        """Add to one account."""
        entry = self._sums.setdefault((stage, language or "", account, reason), [0, 0, 0])
        entry[0] += documents
        entry[1] += size
        entry[2] += tokens

    def book_rows(
        self,
        stage: str,
        language: Languages,
        rows: np.ndarray,
        account: str,
        reason: str,
        size: np.ndarray,
        tokens: np.ndarray,
    ) -> None:
        """Add the rows of a mask, bool[n], by their language."""
        names, which = language.names, language.which[rows]
        documents = np.bincount(which, minlength=len(names))
        sizes = np.bincount(which, size[rows], len(names)).astype(np.int64)
        counts = np.bincount(which, tokens[rows], len(names)).astype(np.int64)
        for i in np.flatnonzero(documents).tolist():
            amounts = int(documents[i]), int(sizes[i]), int(counts[i])
            self.book(stage, names[i], account, reason, *amounts)

    def rows(self) -> list[list[Any]]:
        """All sums as rows, sorted."""
        return [[*key, *value] for key, value in sorted(self._sums.items())]
