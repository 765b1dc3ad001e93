"""What a plan knows of conversations: which tokens are no targets, where control tokens stand.

Token shards say it by position (`shards`, `turns`); a plan takes it over by document, so that its
digest covers the loss and its accounts need no token. Of documents laid out by their turns alone:

    turns.rows      uint32[r]         rows of `documents`, ascending
    turns.edges     uint64[r + 1, 2]  where each document's entries begin in the two below
    turns.unlearnt  uint32[k, 2]      tokens [start, stop) of the document that are no targets
    turns.controls  uint32[m]         tokens of it that are control tokens, but its first and last
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from .shards import TokenShard

NAMES: Final = ("rows", "edges", "unlearnt", "controls")
STEP: Final = 1 << 22  # tokens that are looked through at once


class Spoken(NamedTuple):
    """Entries by document, ascending; `documents` int64: ordinals in a shard, or rows of a plan."""

    unlearnt: np.ndarray  # int64[k, 3]: document, start, stop
    controls: np.ndarray  # int64[m, 2]: document, token


def spoken_in(shard: TokenShard) -> Spoken:
    """The entries of a token shard; empty where no document was laid out by turns."""
    ends = shard.ends.astype(np.int64)
    begins = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
    spans = shard.unlearnt.astype(np.int64)
    first = np.searchsorted(ends, spans[:, 0], side="right")
    last = np.searchsorted(ends, spans[:, 1] - 1, side="right")
    each = last - first + 1  # a stretch may run on into the next document
    which = np.repeat(np.arange(len(spans)), each)
    document = first[which] + np.arange(len(which)) - np.repeat(np.cumsum(each) - each, each)
    start = np.maximum(spans[which, 0], begins[document]) - begins[document]
    stop = np.minimum(spans[which, 1], ends[document]) - begins[document]
    places = _controls(shard, begins, ends)
    at = np.searchsorted(ends, places, side="right")
    return Spoken(
        np.stack([document, start, stop], axis=1), np.stack([at, places - begins[at]], axis=1)
    )


def _controls(shard: TokenShard, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Positions of control tokens but those that begin and end documents: int64[m], ascending."""
    placed = {int(i): n for i, n in shard.index.get("placed", {}).items()}
    edges = 1 if shard.index["bos_id"] is None else 2
    if sum(placed.values()) <= edges * shard.documents:
        return np.zeros(0, np.int64)
    ids = np.array(sorted(placed), shard.dtype)
    found = [np.zeros(0, np.int64)]
    for low in range(0, shard.token_count, STEP):
        tokens = shard.tokens(low, min(low + STEP, shard.token_count))
        found.append(np.flatnonzero(np.isin(tokens, ids)) + low)
    places = np.concatenate(found)
    own = np.isin(places, ends - 1)
    return places[~(own | np.isin(places, begins))] if edges == 2 else places[~own]


def arrays_of(
    shards: Sequence[str], shard: np.ndarray, doc: np.ndarray, held: Mapping[str, Spoken]
) -> dict[str, np.ndarray]:
    """The arrays of a plan over documents (ordinal of `shards`, `doc`); none without an entry."""
    unlearnt, controls = [np.zeros((0, 3), np.int64)], [np.zeros((0, 2), np.int64)]
    for number, name in enumerate(shards):
        entries = held.get(name)
        if entries is None:
            continue
        low, high = np.searchsorted(shard, [number, number + 1])
        mine = doc[low:high].astype(np.int64)
        for out, given in ((unlearnt, entries.unlearnt), (controls, entries.controls)):
            place = np.searchsorted(mine, given[:, 0])
            there = place < len(mine)
            there[there] = mine[place[there]] == given[there, 0]
            out.append(np.concatenate([low + place[there, None], given[there, 1:]], axis=1))
    spans, places = np.concatenate(unlearnt), np.concatenate(controls)
    rows = np.union1d(spans[:, 0], places[:, 0])
    if not len(rows):
        return {}
    edges = np.zeros((len(rows) + 1, 2), np.int64)
    edges[:-1, 0] = np.searchsorted(spans[:, 0], rows)
    edges[:-1, 1] = np.searchsorted(places[:, 0], rows)
    edges[-1] = len(spans), len(places)
    return {
        "turns.rows": rows.astype(np.uint32),
        "turns.edges": edges.astype(np.uint64),
        "turns.unlearnt": spans[:, 1:].astype(np.uint32),
        "turns.controls": places[:, 1].astype(np.uint32),
    }


class Turns:
    """The arrays of an open plan; all empty where it has no conversation."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self.rows = arrays.get("turns.rows", np.zeros(0, np.uint32))
        self._edges = arrays.get("turns.edges", np.zeros((1, 2), np.uint64))
        self._unlearnt = arrays.get("turns.unlearnt", np.zeros((0, 2), np.uint32))
        self._controls = arrays.get("turns.controls", np.zeros(0, np.uint32))

    def __bool__(self) -> bool:
        return len(self.rows) > 0

    def unlearnt(self, row: int, start: int, stop: int) -> list[list[int]]:
        """Stretches [a, b) of the tokens start..stop-1 of a document that are no targets.

        Counted from `start`.
        """
        at = int(np.searchsorted(self.rows, row))
        if at == len(self.rows) or self.rows[at] != row:
            return []
        low, high = self._edges[at : at + 2, 0].tolist()
        spans = np.clip(self._unlearnt[low:high].astype(np.int64), start, stop) - start
        return spans[spans[:, 0] < spans[:, 1]].tolist()

    def spans(self, base: np.ndarray) -> np.ndarray:
        """All stretches, int64[k, 2], in one long row of the documents that begin at `base`."""
        each = np.diff(self._edges[:, 0].astype(np.int64))
        begin = np.repeat(base[self.rows.astype(np.int64)], each)
        return self._unlearnt.astype(np.int64) + begin[:, None]

    def places(self, base: np.ndarray) -> np.ndarray:
        """All control tokens, int64[m], in one long row of the documents that begin at `base`."""
        each = np.diff(self._edges[:, 1].astype(np.int64))
        return self._controls.astype(np.int64) + np.repeat(base[self.rows.astype(np.int64)], each)
