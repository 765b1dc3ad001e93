"""What a head reads of a text: its beginning and middle, in plain words, repeated ones thinned.

A head that was trained on texts as `read` gives them is asked of texts as `read` gives them; its
card says so (`"reads": 6000`, bytes). The result is a text again, which the fastText library takes
as well: tokens with blanks between.

- Of a text above `limit` bytes, the first two thirds of `limit` and one from its middle: what a
  labeller reads of a long page.
- Words are letters and digits, in lower case (ASCII and Latin-1), each digit a 0; every other sign
  is a token of its own, the end of a line `\u00b6` (of a text with words). No token starts
  with fastText's `__label__`.
- Of the occurrences of a token the 1st, 2nd, 4th, 8th and so on stay: a word that stands c times is
  written 1 + log2(c) times. Without it (TF-IDF takes logarithms) what a text repeats drowns the
  rest, and stuffing pays.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..documents.text import text_view
from . import _kernels_reading as kernels

LEAST = 3  # bytes: two thirds and a third


def read(text: pa.Array | pa.ChunkedArray, limit: int) -> pa.Array:
    """The words of each text, large_string[rows]; `limit` in bytes, at least 3."""
    view = text_view(text)
    sizes = np.minimum(np.diff(view.offsets), limit)
    out = np.empty(3 * int(sizes.sum()) + 16, np.uint8)
    bounds = np.zeros(view.rows + 1, np.int64)
    most = int(sizes.max(initial=0))
    room = 1 << (2 * most + 1).bit_length()
    tables = np.zeros(room, np.uint64), np.zeros(room, np.int64), np.empty(most, np.int64)
    kernels.read(view.data, view.offsets, limit, out, bounds, *tables)
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(out[: bounds[-1]])]
    return pa.Array.from_buffers(pa.large_string(), view.rows, buffers)
