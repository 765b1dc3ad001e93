"""Batches of documents laid out for the encoder: segments of text, and the ids around them.

A plain document is one segment with its end token behind it (and a begin token before it). One
whose turns are laid out (`turns.Renderer`) is a segment for each part: its heading and the lines
between parts are not encoded, the template's ids take their place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from ..documents.text import from_buffers, text_view
from .encoder import Encoder, Part
from .turns import Renderer, Run, TurnSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """A batch as segments. A *mark* is the begin or the end of one: segment i has 2i and 2i + 1."""

    text: pa.Array  # strings[segments]
    document: np.ndarray  # int64[segments]: row of the batch
    run: np.ndarray  # bool[rows]: laid out by its turns
    learnt: np.ndarray  # bool[segments]
    ids: np.ndarray  # int64[k]: placed ids, in order of marks
    ids_learnt: np.ndarray  # bool[k]
    edges: np.ndarray  # int64[marks + 1] into `ids`
    written: np.ndarray  # int64[rows]: tokens of the template's own text

    def place(
        self, part: Part, first: int, dtype: np.dtype
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A part of the segments, whose first mark is `first`, with the ids that are placed.

        Gives flat ids, where in them documents end, and stretches int64[k, 2] without targets.
        """
        marks = slice(first, first + len(part.marks))
        low, high = int(self.edges[first]), int(self.edges[marks.stop])
        counts = np.diff(self.edges[first : marks.stop + 1])
        # np.insert keeps the order of what shares a place.
        values = self.ids[low:high].astype(dtype)
        flat = np.insert(part.ids.astype(dtype), np.repeat(part.marks, counts), values)
        after = part.marks + np.cumsum(counts)  # where in `flat` each mark's ids end
        segment = np.arange(marks.start, marks.stop) >> 1
        closes = np.append(self.document[1:] != self.document[:-1], [True])  # its document
        ends = after[part.ends & closes[segment]]
        if self.learnt.all() and self.ids_learnt[low:high].all():
            return flat, ends, np.zeros((0, 2), np.int64)
        # The text before a mark is its segment's where the mark ends one, else between: empty.
        edges = np.stack([after - counts, after], axis=1).reshape(-1)
        lengths = np.diff(edges, prepend=0, append=len(flat))
        tail = self._open(marks.stop)
        each = np.zeros(len(lengths), np.bool_)
        each[0:-1:2] = self.learnt[segment]
        each[-1] = tail
        out = np.repeat(each, lengths)
        own = np.repeat(after - np.cumsum(counts), counts)  # arange counts those before
        out[own + np.arange(high - low)] = self.ids_learnt[low:high]
        change = np.flatnonzero(np.diff(~out, prepend=False, append=False))
        return flat, ends, change.reshape(-1, 2)

    def _open(self, mark: int) -> bool:
        """Is the text after the last mark of a part, of a segment that goes on, a target."""
        return bool(self.learnt[mark >> 1]) if mark & 1 else True

    def count(self, part: Part, first: int, out: np.ndarray) -> None:
        """Add the part's tokens to those of each segment, int64[segments]."""
        edges = np.concatenate([[0], part.marks, [len(part.ids)]])
        between = np.diff(edges)  # tokens before each mark, and after the last
        segment = np.arange(first, first + len(part.marks) + 1) >> 1
        inside = (np.arange(first, first + len(part.marks) + 1) & 1) == 1
        np.add.at(out, segment[inside], between[inside])

    def booked(self, batch: pa.RecordBatch, counted: np.ndarray, encoder: Encoder) -> np.ndarray:
        """`TokenAccount.turns` of the batch, int64[6]; `counted`: tokens by segment."""
        rows = np.flatnonzero(self.run)
        out = np.zeros(6, np.int64)
        if not len(rows):
            return out
        texts = batch.column("text").take(pa.array(rows))
        whole = encoder.count(texts)
        mine = self.run[self.document]
        now = self.written.copy()
        np.add.at(now, self.document[mine], counted[mine])
        now = now[rows]
        sizes = np.diff(text_view(self.text).offsets)
        out[:] = (
            len(rows),
            np.diff(text_view(texts).offsets).sum(),
            sizes[mine].sum(),
            whole.sum(),
            np.maximum(whole - now, 0).sum(),
            np.maximum(now - whole, 0).sum(),
        )
        return out


class Layout:
    """Lays out the batches of a shard.

    `placed` counts control ids by id, `written` the tokens of a template's own text.
    """

    def __init__(self, encoder: Encoder, spec: TurnSpec | None) -> None:
        """UsageError when the template names a token that the encoder has not."""
        self._bos = [] if encoder.bos_id is None else [encoder.bos_id]
        self._eos = encoder.eos_id
        self._renderer = None
        if spec is not None:
            self._renderer = Renderer(
                spec,
                encoder.controls,
                lambda text: encoder.encode(pa.array([text], pa.large_string()))[0].tolist(),
            )
        self._controls = {*encoder.controls.values(), *self._bos, self._eos}
        self.placed: Counter[int] = Counter()
        self.written = 0

    def lay_out(self, batch: pa.RecordBatch) -> Laid:
        """The segments of a batch with columns `text` and perhaps `turns`."""
        text, rows = batch.column("text"), batch.num_rows
        run = np.zeros(rows, np.bool_)
        if self._renderer is not None and "turns" in batch.schema.names:
            run = batch.column("turns").is_valid().to_numpy(zero_copy_only=False)
        if not run.any():
            return self._plain(text, rows, run)
        view = text_view(text)
        offsets = view.offsets.tolist()
        pieces: list[np.ndarray] = []
        document: list[int] = []
        learnt: list[bool] = []
        placed: list[list[tuple[int, bool]]] = []  # by mark
        said = batch.column("turns").to_pylist()
        for row in range(rows):
            base, stop = offsets[row], offsets[row + 1]
            laid = self._run(said[row]) if run[row] else None
            if laid is None:
                spans, speaks, around = _whole(stop - base)
            else:
                spans, speaks, around = laid.spans, laid.learnt, laid.placed
            begin = [(i, speaks[0]) for i in self._bos]
            for i, (a, b) in enumerate(spans):
                pieces.append(view.data[base + a : base + b])
                placed += [[*begin, *around[i]], []]
                begin = []
            placed[-1] = [*around[-1], (self._eos, speaks[-1])]
            document += [row] * len(spans)
            learnt += speaks
        sizes = np.fromiter(map(len, pieces), np.int64, len(pieces))
        flat = list(chain.from_iterable(placed))
        ids = np.fromiter((i for i, _ in flat), np.int64, len(flat))
        control = np.isin(ids, list(self._controls))
        self.placed.update(ids[control].tolist())
        self.written += int((~control).sum())
        edges = np.append([0], np.cumsum([len(p) for p in placed]))
        mark = np.repeat(np.arange(len(placed)), np.diff(edges))
        written = np.bincount(np.array(document, np.int64)[mark[~control] >> 1], minlength=rows)
        return Laid(
            text=from_buffers(np.concatenate(pieces), np.append([0], np.cumsum(sizes))),
            document=np.array(document, np.int64),
            run=run,
            learnt=np.array(learnt, np.bool_),
            ids=ids,
            ids_learnt=np.fromiter((t for _, t in flat), np.bool_, len(flat)),
            edges=edges,
            written=written,
        )

    def _run(self, turns: Sequence[Mapping[str, Any]]) -> Run | None:
        """A conversation's segments; one of which nothing is left is plain."""
        laid = self._renderer.lay_out(turns) if self._renderer is not None else None
        return laid if laid is not None and laid.spans else None

    def _plain(self, text: pa.Array, rows: int, run: np.ndarray) -> Laid:
        """Each document a segment."""
        around = [*self._bos, self._eos]
        edges = np.zeros(2 * rows + 1, np.int64)
        np.cumsum(np.tile([len(self._bos), 1], rows), out=edges[1:])
        for each in around:
            self.placed[each] += rows
        return Laid(
            text=text,
            document=np.arange(rows),
            run=run,
            learnt=np.ones(rows, np.bool_),
            ids=np.tile(np.array(around, np.int64), rows),
            ids_learnt=np.ones(len(around) * rows, np.bool_),
            edges=edges,
            written=np.zeros(rows, np.int64),
        )


def _whole(size: int) -> tuple[list[tuple[int, int]], list[bool], list[list[tuple[int, bool]]]]:
    """A plain document of some bytes, in the form of a `Run`'s fields."""
    return [(0, size)], [True], [[], []]


def joined(spans: np.ndarray) -> np.ndarray:
    """Ascending stretches int64[k, 2] with those that touch made one."""
    if len(spans) < 2:
        return spans
    apart = spans[1:, 0] != spans[:-1, 1]
    firsts = np.append([True], apart)
    lasts = np.append(apart, [True])
    return np.stack([spans[firsts, 0], spans[lasts, 1]], axis=1)
