"""How edits change the tokens of a text, without counting the whole text again.

No token of a known split stands on both sides of a safe place (`pieces.CUT`), so what lies beyond
the safe places around an edit has the same tokens before and after it. Only the stretches between
are counted, a small part of a text of which some lines were cut. They are put one after another,
one text a row: every stretch but the first begins with the space of a safe place, every one but the
last ends with its character, so the joints are safe places too.

Exact or not used: texts that an encoder might cut elsewhere (longer than PIECE, or of a split for
which no safe place is proven) are counted whole.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from ..documents.edits import Edits, apply_edits, pick
from ..documents.text import from_buffers, text_view
from .encoder import PIECE, Encoder


def token_deltas(encoder: Encoder, column: pa.Array, edits: Edits) -> np.ndarray:
    """Change of tokens by row and reason when edits are made reason by reason, in their order.

    int64[rows, reasons]: the tokens with the edits of reasons 0 to r less those with the edits of
    0 to r - 1.
    """
    deltas = np.zeros((len(column), len(edits.reason_names)), np.int64)
    if not len(edits.rows):
        return deltas
    changed = np.unique(edits.rows)
    text, mine = around(column, edits, longest=PIECE if encoder.cuts else 0)
    last = encoder.count(text)
    for reason in np.unique(edits.reasons).tolist():
        touched = np.unique(mine.rows[mine.reasons == reason])
        chosen = np.isin(mine.rows, touched) & (mine.reasons <= reason)
        some = pick(mine, chosen)
        some = replace(some, rows=np.searchsorted(touched, some.rows))
        counted = encoder.count(apply_edits(text.take(pa.array(touched)), some))
        deltas[changed[touched], reason] = counted - last[touched]
        last[touched] = counted
    return deltas


def around(
    column: pa.Array, edits: Edits, *, longest: int = PIECE
) -> tuple[pa.LargeStringArray, Edits]:
    """The stretches of each edited text, one text a row, and the edits as they stand in them.

    Whole texts where one is, or may become, longer than `longest` bytes.
    """
    from . import _kernels

    view = text_view(column)
    sizes = np.diff(view.offsets)
    grown = sizes.copy()
    np.add.at(grown, edits.rows, edits.inserted())
    changed, place = np.unique(edits.rows, return_inverse=True)
    out = np.empty(int(sizes[changed].sum()), np.uint8)
    ends = np.zeros(len(changed) + 1, np.int64)
    starts = np.empty(len(edits.rows), np.int64)
    # Copies, because read-only arrays would make a second version of the kernel.
    places = tuple(np.array(x, np.int64) for x in (edits.rows, edits.starts, edits.lengths))
    _kernels.stretches(view.data, view.offsets, places, grown > longest, out, ends, starts)
    text = from_buffers(out[: ends[-1]], ends)
    return text, replace(edits, rows=place.astype(np.int64), starts=starts)
