"""Flow: what came in, was added, kept, stripped and dropped, by stage, language and reason.

`in + added = kept + stripped + dropped` for bytes and tokens; documents are in, kept or dropped (in
`stripped` and `added` the documents are those touched).
"""

from __future__ import annotations

from typing import Any

import numpy as np


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
        language: np.ndarray,
        rows: np.ndarray,
        account: str,
        reason: str,
        size: np.ndarray,
        tokens: np.ndarray,
    ) -> None:
        """Add the rows of a mask, bool[n], by their language, object[n]."""
        if not rows.any():
            return
        names, which = np.unique(language[rows].astype(str), return_inverse=True)
        sizes = np.bincount(which, size[rows], len(names)).astype(np.int64)
        counts = np.bincount(which, tokens[rows], len(names)).astype(np.int64)
        documents = np.bincount(which, minlength=len(names))
        for i, name in enumerate(names.tolist()):
            self.book(
                stage, name, account, reason, int(documents[i]), int(sizes[i]), int(counts[i])
            )

    def rows(self) -> list[list[Any]]:
        """All sums as rows, sorted."""
        return [[*key, *value] for key, value in sorted(self._sums.items())]
