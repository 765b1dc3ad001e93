"""What each byte of a text is to the rules, as bits: found once, then counted 64 bytes at a time.

A scan has one row of 64-bit masks per kind of byte (`PLANES`); each text begins at a block of its
own and has a clear bit behind its last byte. The rules count words, letters and lines by the bits
of a mask instead of by a step, and a branch that cannot be foretold, for each word.

Words. A word is a run of letters, numbers and marks. An apostrophe between two letters and a full
stop or comma between two digits stay inside (a light form of Unicode's UAX #29). Scripts written
without spaces (Han, kana, Thai, Lao, Khmer, Myanmar) count each character as one word. Characters
are code points; a byte that is not UTF-8 counts as one U+FFFD. Lines end with U+000A.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..documents.text import TextView, text_view
from . import _kernels_scan, _kernels_tokens
from ._characters import table

PLANES = (
    "word",  # every byte of a word of a spaced script
    "start",  # its first byte; and that of a character of a script without spaces
    "unspaced",  # first byte of a character of a script without spaces
    "letter",  # every byte of a letter of a spaced script
    "latin",  # the same, of Latin script
    "number",  # every byte of a number
    "visible",  # every byte that is not space
    "terminal",  # first byte of a mark that ends sentences, outside words
    "more",  # bytes of a character after its first
    "dots",  # first byte of U+2026
    "line",  # line feeds
)
LONG = 32  # bytes of a word and what stands around it; few words have more
CHUNK = 1 << 17  # bytes of text scanned at once: text and masks stay in a core's own cache


class Scan(NamedTuple):
    """Rows of a batch with their masks: text `row` has its first block at blocks[row]."""

    data: np.ndarray  # uint8[bytes]
    offsets: np.ndarray  # int64[rows + 1] into data
    planes: np.ndarray  # uint64[len(PLANES), blocks]
    blocks: np.ndarray  # int64[rows]


def scans(view: TextView) -> Iterator[tuple[Scan, slice]]:
    """Scans of some rows each, about `CHUNK` bytes or one text, and which rows they are."""
    offsets = view.offsets
    sizes = np.diff(offsets) // 64 + 1
    ends = np.cumsum(sizes)
    planes = np.empty((len(PLANES), 0), np.uint64)
    low = 0
    while low < view.rows:
        high = int(np.searchsorted(offsets, offsets[low] + CHUNK, "right")) - 1
        high = min(max(high, low + 1), view.rows)
        blocks = ends[low:high] - sizes[low:high]
        blocks -= blocks[0]
        need = int(blocks[-1] + sizes[high - 1])
        if planes.shape[1] < need:
            planes = np.empty((len(PLANES), need), np.uint64)
        part = offsets[low : high + 1]
        _kernels_scan.scan(view.data, part, blocks, table(), planes)
        yield Scan(view.data, part, planes, blocks), slice(low, high)
        low = high


def few_words(text: pa.Array | pa.ChunkedArray, least: int) -> np.ndarray:
    """Which texts have fewer than `least` words, bool[rows].

    What has as many in its first bytes is read no further; a cut makes no word of what is none.
    """
    if not least:
        return np.zeros(len(text), bool)
    whole = text.cast(pa.large_binary())
    sizes = np.asarray(pc.fill_null(pc.binary_length(whole), 0))
    few = _words(pc.binary_slice(whole, 0, LONG * least)) < least
    if (more := few & (sizes > LONG * least)).any():
        few[more] = _words(whole.filter(pa.array(more))) < least
    return few


def _words(text: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Words of each text, int64[rows]."""
    view = text_view(text)
    out = np.zeros(view.rows, np.int64)
    for scan, rows in scans(view):
        used = scan.blocks[-1] + (scan.offsets[-1] - scan.offsets[-2]) // 64 + 1
        out[rows] = np.add.reduceat(
            np.bitwise_count(scan.planes[PLANES.index("start"), :used]), scan.blocks, dtype=np.int64
        )
    return out


def cut(scan: Scan, citations: bool = False) -> None:
    """Make words tokens, marks and all; `citations`: as though there were no citation marks."""
    kinds, units = _kernels_tokens.KINDS, _kernels_tokens.UNIT_KEYS
    _kernels_tokens.tokens(*scan, table(), kinds, units, citations)
