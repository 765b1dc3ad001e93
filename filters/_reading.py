"""What a head reads of a text: its beginning and middle, in plain words, repeated ones thinned.

A head that was trained on texts as `read` gives them is asked of texts as `read` gives them; its
card says so (`"reads": 6000`, bytes). The result is a text again, which the fastText library takes
as well: tokens with blanks between.

- Of a text above `limit` bytes, the first two thirds of `limit` and one from its middle: what a
  labeller reads of a long page. A run of blanks counts one byte: it hides nothing behind it.
- Words are letters and digits, in lower case (ASCII and Latin-1), each digit a 0; every other sign
  is a token of its own, the end of a line `\u00b6` (of a text with words; of a run of them two). No
  token starts with fastText's `__label__`.
- The words of the first 150 bytes come once more, before all, marked with @: a title says more.
- A word that was said before, after the same 31 tokens (digits as they are), is left out: a text
  that repeats its lines or paragraphs says little more than it says once.
- Of the occurrences of a token the 1st, 2nd, 4th, 8th and so on stay: a word that stands c times is
  written 1 + log2(c) times. Without it (TF-IDF takes logarithms) what a text repeats drowns the
  rest, and stuffing pays.
- What comes to fewer than 128 tokens is written again and again until it has as many, 8 times at
  most. That changes no mean of its words but one over their number, by which a head knows the
  length: what is shorter than nearly all labelled pages (5 % of them come to fewer than 156,
  `benchmarks/heads.py lengths`) is none the worse for it, down to 16 tokens.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..documents.text import text_view
from . import _kernels_reading as kernels

LEAST = 3  # bytes: two thirds and a third
FRONT = 150  # bytes whose words come once more, marked
WINDOW = 32  # words in a row that are said once
LEAST_WORDS, MOST_TIMES = 128, 8  # of a text that is short


def read(text: pa.Array | pa.ChunkedArray, limit: int) -> pa.Array:
    """The words of each text, large_string[rows]; `limit` in bytes, at least 3."""
    view = text_view(text)
    sizes = np.minimum(np.diff(view.offsets), limit + 1)
    out = np.empty(4 * int(sizes.sum() + np.minimum(sizes, FRONT).sum()) + 16, np.uint8)
    bounds, words = np.zeros(view.rows + 1, np.int64), np.zeros(view.rows, np.int64)
    most = 3 * int(sizes.max(initial=0)) // 2 + FRONT + 2  # tokens of a text
    room = 1 << (5 * most // 4).bit_length()
    counted = np.zeros(room, np.uint64), np.zeros(room, np.int64), np.empty(most, np.int64)
    seen = np.zeros(room, np.uint64), np.empty(most, np.int64), np.empty(WINDOW, np.uint64)
    kernels.read(view.data, view.offsets, limit, FRONT, out, bounds, words, *counted, *seen)
    if (short := (words > 0) & (words < LEAST_WORDS)).any():
        once, ends = out, bounds
        out = np.empty(int((np.diff(ends) * np.where(short, MOST_TIMES, 1)).sum()), np.uint8)
        bounds = np.zeros_like(ends)
        kernels.again(once, ends, words, LEAST_WORDS, MOST_TIMES, out, bounds)
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(out[: bounds[-1]])]
    return pa.Array.from_buffers(pa.large_string(), view.rows, buffers)
