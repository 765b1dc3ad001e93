"""What `why` shows of a text that broke a rule: the line, paragraph or n-gram, `WIDEST` at most.

Asked for one document at a time, so nothing is stored for it and measuring costs nothing more.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa

from ..documents.text import text_view
from ._scan import cut, scans

WIDEST = 160  # characters


def short(text: str) -> str:
    """The text on one line, cut off after `WIDEST` characters."""
    text = " ".join(text[: 4 * WIDEST].split())
    return text if len(text) <= WIDEST else text[:WIDEST] + "…"


def first(pieces: Iterable[str], which: Callable[[str], bool]) -> str | None:
    """The first piece that is so."""
    found = next((piece for piece in pieces if piece.strip() and which(piece)), None)
    return None if found is None else short(found)


def repeated(pieces: Iterable[str]) -> str | None:
    """The piece that stands there most often, if more than once."""
    counts = Counter(piece.strip() for piece in pieces if piece.strip())
    if not counts:
        return None
    piece, times = counts.most_common(1)[0]
    return f"{times} times: {short(piece)}" if times > 1 else None


def paragraphs(text: str) -> list[str]:
    """What stands between lines with nothing on them."""
    return re.split(r"\n\s*\n", text)


def n_gram(text: str, n: int, tokens: bool) -> str | None:
    """The n-gram that stands there most often, if more than once."""
    words = words_of(text, tokens)
    counts = Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
    if not counts:
        return None
    gram, times = counts.most_common(1)[0]
    return f"{times} times: {short(' '.join(gram))}" if times > 1 else None


def words_of(text: str, tokens: bool) -> list[str]:
    """Words of a text, as the kernels find them."""
    found: list[str] = []
    for scan, _ in scans(text_view(pa.array([text], pa.large_string()))):
        if tokens:
            cut(scan)
        inside, starts = (
            np.unpackbits(scan.planes[which].view(np.uint8), bitorder="little") for which in (0, 1)
        )
        data = text.encode()
        for at in np.flatnonzero(starts).tolist():
            end = at + 1
            while end < len(data) and not starts[end] and (inside[end] or data[end] >> 6 == 2):
                end += 1
            found.append(data[at:end].decode("utf-8", "replace"))
    return found
