"""A compiled plan: opened in O(1), asked in O(1), needing numpy and the standard library alone.

On disk, `<plan id>/`: `plan.json` (canonical; its digest is the id and covers the arrays') and

    documents.npy        uint32[d, 3]  shard, document in the shard, tokens; the whole catalogue
    ids.npy              uint8[d, 16]  document ids          sources.npy  uint32[d]  into `sources`
    cell.npy  uint32[d]  into cells    cells.npy  uint32[c, 7]  codes of `dimensions`: for the books
    lane-<k>.windows.npy uint64[w + 1] offsets into pieces
    lane-<k>.pieces.npy  uint32[p, 3]  row of documents, first token in it, tokens
    lane-<k>.by_document.npy uint32[p] pieces by (document, start): the way back
    stage-<k>.ledger.npy int64[blocks + 1, slices]  windows given before each block edge
    masks.npy            int64[m, 2]  of an amended plan: row of documents, position from which on
    turns.*.npy          where plans hold conversations (`mixing.spoken`)

A *lane* is a slice at one sequence length and packing. A *position* is a slot in the sequence of
all stages, of the tokens of the stage's longest sequence: one sequence, or as many shorter ones of
one lane as it holds. Position -> stage -> block; the block's slots are permuted; the ledger turns a
slot into (lane, ordinals of its sequences); ordinal = epoch * windows + r; the epoch's permutation
turns r into a window. Each arrow is a bijection, so a document leads back to its positions.
Ordinals of a lane run on through the stages that share it: a later stage goes on where an earlier
one stopped.

Nothing above a stage depends on a later one, so changing a later stage leaves earlier positions
as they are (`prefix_digest`). Measured figures: benchmarks/feed.py.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from ..documents.errors import DamagedError, FormatError, StopError, UsageError
from ..documents.fingerprint import file_digest
from .order import NAME, Permutation, check_vectors, forward_each, permutation
from .spoken import Turns

FORMAT: Final = 1
AMENDED: Final = 2  # skips or masks, which a reader of format 1 would pass over
MIXED: Final = 3  # several sequence lengths in a stage: earlier readers take a slot for a sequence
SPOKEN: Final = 4  # tokens of conversations that are no targets
_ALWAYS: Final = {"arrays", "block", "bos", "dimensions", "lanes", "pad_id", "positions", "seed",
                  "shards", "slices", "sources", "stages", "tokenizer", "vectors"}  # fmt: skip
_ARRAYS: Final = {"documents", "ids", "sources", "cell", "cells"}  # of every plan
AGAIN: Final = (  # what mends a plan of another version
    "compile it again: gristmill run RECIPE --out RUN, or for another mixture gristmill mix plan "
    "RUN --mixture FILE; then delete this plan's folder"
)
ROW: Final = ("position", "stage", "slice", "lane", "epoch", "window")  # columns of `Plan.rows`


class Slot(NamedTuple):
    """A sequence of a position; ordinals into `Plan.stages`, `Plan.slices`, `Plan.lanes`."""

    position: int
    stage: int
    slice: int
    lane: int
    epoch: int
    window: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Lane:
    """A slice at one sequence length and packing; `windows` of them make an epoch."""

    slice: str
    sequence_length: int
    packing: str
    windows: int
    pieces: int
    documents: int
    tokens: int  # real ones, end-of-document tokens included

    def order(self, seed: int, epoch: int) -> Permutation:
        """The order of the lane's windows in one epoch."""
        return permutation(
            self.windows, seed, "epoch", self.slice, self.sequence_length, self.packing, epoch
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """One stage as compiled; lists run over its slices, sorted by name."""

    name: str
    first: int  # its first position
    windows: int  # positions
    sequence_length: int  # tokens of a position: the longest of its lanes'
    packing: str
    mask: str
    global_batch: int
    first_step: int  # by the plan's own batches
    asked_tokens: int
    slices: list[str]
    weights: list[str]  # as asked
    shares: list[int]  # as planned, of 2**32; at the stage's start
    end_shares: list[int]  # and at its end; between, linearly
    lanes: list[int]
    before: list[int]  # ordinal in each lane at which this stage starts
    max_epochs: list[int]


class Plan:
    """A plan folder; see the module's head. Safe to share between threads and to fork."""

    def __init__(self, folder: Path, content: dict[str, Any]) -> None:
        self.folder = folder
        self.content = content
        self.id: str = folder.name
        self.seed: int = content["seed"]
        self.block: int = content["block"]
        self.positions: int = content["positions"]
        self.lanes = [Lane(**lane) for lane in content["lanes"]]
        self.stages = [Stage(**stage) for stage in content["stages"]]
        self.slices: list[str] = sorted(content["slices"])
        self.shards: list[str] = [shard["name"] for shard in content["shards"]]
        self.sources: list[str | None] = content["sources"]
        self.documents = self._array("documents")
        self.ids = self._array("ids")
        self.document_sources = self._array("sources")
        self.cell, self.cells = self._array("cell"), self._array("cells")
        self.ledgers = [self._array(f"stage-{k}.ledger") for k in range(len(self.stages))]
        self.windows = [self._array(f"lane-{k}.windows") for k in range(len(self.lanes))]
        self.pieces = [self._array(f"lane-{k}.pieces") for k in range(len(self.lanes))]
        self.by_document = [self._array(f"lane-{k}.by_document") for k in range(len(self.lanes))]
        #: [low, high) positions that are passed over, ascending, apart; see `amend`.
        self.skips: list[tuple[int, int]] = [tuple(s) for s in content.get("skips", [])]
        none = np.zeros((0, 2), dtype=np.int64)
        self.masks = self._array("masks") if "masks" in content["arrays"] else none
        self.turns = Turns({n: self._array(n) for n in content["arrays"] if n.startswith("turns.")})
        self._slice_of = [self.slices.index(lane.slice) for lane in self.lanes]
        each = [[self.per_position(k, n) for n in s.lanes] for k, s in enumerate(self.stages)]
        self._of_stage = [
            np.array([stage.lanes, stage.before, per], dtype=np.int64)
            for stage, per in zip(self.stages, each, strict=True)
        ]
        self._epoch = np.array([lane.windows for lane in self.lanes], dtype=np.int64)

    @staticmethod
    def open(folder: Path | str, *, verify: bool = False) -> Plan:
        """Open a plan folder; `verify` hashes its arrays again, all of their bytes.

        UsageError when there is no plan, FormatError, DamagedError naming the file, StopError when
        this version would give another order.
        """
        folder = Path(folder).resolve()
        path = folder / "plan.json"
        if not path.is_file():
            raise UsageError(f"{folder}: no plan.json here; expected a folder of `mix plan`")
        data = path.read_bytes()
        if plan_id(data) != folder.name:
            raise DamagedError(
                f"{path}: its content has digest {plan_id(data)}, its folder says {folder.name}; "
                "compile the plan again"
            )
        content = json.loads(data)
        known = (FORMAT, AMENDED, MIXED, SPOKEN)
        if content.get("format") not in known or content.get("order") != NAME:
            found = (content.get("format"), content.get("order"))
            raise FormatError(
                f"{path}: format, order {found}; this version reads {known}, {NAME}; {AGAIN}"
            )
        if differing := _differing(content):
            raise FormatError(f"{path}: made by another version ({differing}); {AGAIN}")
        check_vectors(content["vectors"], str(path))
        for name, array in content["arrays"].items():
            file = folder / f"{name}.npy"
            size = file.stat().st_size if file.is_file() else -1
            if size != array["size"] or (verify and file_digest(file) != array["digest"]):
                what = "is missing" if size < 0 else "differs from what plan.json says"
                raise DamagedError(f"{file}: {what}; compile the plan again")
        return Plan(folder, content)

    def _array(self, name: str) -> np.ndarray:
        # A plain view of the map: slices of the subclass cost more.
        return np.asarray(np.load(self.folder / f"{name}.npy", mmap_mode="r"))

    def skipped(self, position: int) -> bool:
        """Is the position passed over by every loader."""
        return any(low <= position < high for low, high in self.skips)

    def served(self, stage: int) -> int:
        """Windows of a stage that are not skipped."""
        first, windows = self.stages[stage].first, self.stages[stage].windows
        spans = [(max(a, first), min(b, first + windows)) for a, b in self.skips]
        return windows - sum(b - a for a, b in spans if a < b)

    def masked(self, row: int, position: int) -> bool:
        """Is the document in `row` of `documents` left out at `position`."""
        if not len(self.masks):
            return False
        at = int(np.searchsorted(self.masks[:, 0], row))
        if at == len(self.masks):
            return False
        found, first = self.masks[at].tolist()
        return bool(found == row and first <= position)

    def stage_at(self, position: int) -> int:
        """Ordinal of the stage that holds `position`; IndexError outside the plan."""
        if 0 <= position < self.positions:
            for k, stage in enumerate(self.stages):
                if position < stage.first + stage.windows:
                    return k
        msg = f"position {position} is outside plan {self.id} of {self.positions} positions"
        raise IndexError(msg)

    def locate(self, position: int) -> list[Slot]:
        """The sequences at `position`; the same as rows of `rows`, without arrays."""
        k = self.stage_at(position)
        stage = self.stages[k]
        block, slot = divmod(position - stage.first, self.block)
        edge, counts = self.block_counts(k, block)
        j = self.block_order(k, block).forward(slot)
        i = 0
        while j >= counts[i]:
            j -= int(counts[i])
            i += 1
        number = stage.lanes[i]
        lane, each = self.lanes[number], self.per_position(k, number)
        first = stage.before[i] + (int(edge[i]) + j) * each
        slots = []
        for ordinal in range(first, first + each):
            epoch, r = divmod(ordinal, lane.windows)
            window = lane.order(self.seed, epoch).forward(r)
            slots.append(Slot(position, k, self._slice_of[number], number, epoch, window))
        return slots

    def per_position(self, stage: int, lane: int) -> int:
        """Sequences of a lane that fill a position of a stage."""
        return self.stages[stage].sequence_length // self.lanes[lane].sequence_length

    def rows(self, low: int, high: int) -> np.ndarray:
        """int64[sequences, 6] with columns `ROW`: those of positions low..high-1, in order."""
        if not 0 <= low <= high <= self.positions:
            msg = f"positions {low}..{high} are outside plan {self.id}: 0..{self.positions}"
            raise IndexError(msg)
        return self.rows_at(np.arange(low, high))

    def rows_at(self, positions: np.ndarray) -> np.ndarray:
        """int64[sequences, 6] with columns `ROW`; positions int64[k] ascend within the plan."""
        if not len(positions):
            return np.zeros((0, len(ROW)), dtype=np.int64)
        # columns: those of ROW as far as the lane's; then first ordinal, how many
        slots = np.zeros((len(positions), 5), dtype=np.int64)
        slots[:, 0] = positions
        for k, block, here in self._blocks(positions):
            stage = self.stages[k]
            edge, counts = self.block_counts(k, block)
            places = positions[here] - (stage.first + block * self.block)
            j = self.block_order(k, block).forward(places)
            ends = np.cumsum(counts)
            i = np.searchsorted(ends, j, side="right")
            lanes, before, each = self._of_stage[k][:, i]
            slots[here, 1] = k
            slots[here, 2] = lanes
            slots[here, 3] = before + (edge[i] + j - (ends - counts)[i]) * each
            slots[here, 4] = each
        each = slots[:, 4]
        of = np.repeat(np.arange(len(slots)), each)
        ordinal = slots[of, 3] + np.arange(len(of)) - (np.cumsum(each) - each)[of]
        out = np.zeros((len(of), len(ROW)), dtype=np.int64)
        out[:, [0, 1, 3]] = slots[of, :3]
        lanes = out[:, 3]
        out[:, 2] = np.array(self._slice_of, dtype=np.int64)[lanes]
        epochs, r = np.divmod(ordinal, self._epoch[lanes])
        out[:, 4] = epochs
        width = int(epochs.max()) + 1
        known, which = np.unique(lanes * width + epochs, return_inverse=True)
        orders = [self.lanes[n // width].order(self.seed, n % width) for n in known.tolist()]
        out[:, 5] = forward_each(orders, which, r)
        return out

    def _blocks(self, positions: np.ndarray) -> Iterator[tuple[int, int, slice]]:
        """(stage, block, where) of each part of the ascending positions that lies in one block."""
        low = 0
        while low < len(positions):
            k = self.stage_at(int(positions[low]))
            stage = self.stages[k]
            block = (int(positions[low]) - stage.first) // self.block
            size = min(self.block, stage.windows - block * self.block)
            end = int(np.searchsorted(positions, stage.first + block * self.block + size))
            yield k, block, slice(low, end)
            low = end

    def block_counts(self, stage: int, block: int) -> tuple[np.ndarray, np.ndarray]:
        """Windows of each slice before a block of a stage, and in it: int64[slices] each."""
        edges = np.asarray(self.ledgers[stage][block : block + 2])
        return edges[0], edges[1] - edges[0]

    def block_order(self, stage: int, block: int) -> Permutation:
        """The order of the slots of a block."""
        size = min(self.block, self.stages[stage].windows - block * self.block)
        return permutation(size, self.seed, "block", stage, block)

    def window_pieces(self, lane: int, window: int) -> np.ndarray:
        """uint32[k, 3] pieces of a window: row of `documents`, first token, tokens."""
        low, high = self.windows[lane][window : window + 2].tolist()
        return np.asarray(self.pieces[lane][low:high])

    def steps(self, global_batch: int | None = None) -> int:
        """Optimizer steps of the whole plan; the last may be short with a batch of one's own."""
        if global_batch is None:
            last = self.stages[-1]
            return last.first_step + last.windows // last.global_batch
        return -(-self.positions // global_batch)

    def step_span(self, step: int, global_batch: int | None = None) -> tuple[int, int]:
        """Positions [low, high) of a step: step * G onwards, or by the plan's own batches."""
        if not 0 <= step < self.steps(global_batch):
            last = self.steps(global_batch) - 1
            raise UsageError(f"step {step} is outside plan {self.id}; expected 0 to {last}")
        if global_batch is not None:
            return step * global_batch, min((step + 1) * global_batch, self.positions)
        stage = next(s for s in reversed(self.stages) if s.first_step <= step)
        low = stage.first + (step - stage.first_step) * stage.global_batch
        return low, low + stage.global_batch

    def step_of(self, position: int, global_batch: int | None = None) -> int:
        """The step that reads `position`; the inverse of `step_span`."""
        if global_batch is not None:
            return position // global_batch
        stage = self.stages[self.stage_at(position)]
        return stage.first_step + (position - stage.first) // stage.global_batch

    def prefix_digest(self, position: int) -> str:
        """Digest of the first `position` slots with all that their sequences hold, by id.

        Equal for two plans when training on either up to there is the same. O(position).
        """
        hasher = hashlib.blake2b(digest_size=16)
        shards = [(shard["name"], shard["digest"]) for shard in self.content["shards"]]
        for low in range(0, position, 1 << 16):
            for _, k, _, lane, epoch, window in self.rows(low, min(low + (1 << 16), position)):
                stage = self.stages[k]
                size = self.lanes[lane].sequence_length
                what = [stage.name, size, stage.mask, self.lanes[lane].slice]
                hasher.update(json.dumps([*what, int(epoch), int(window)]).encode())
                for row, start, length in self.window_pieces(lane, window).tolist():
                    shard, document, _ = self.documents[row].tolist()
                    piece = [*shards[shard], document, self.ids[row].tobytes().hex(), start, length]
                    piece += self.turns.unlearnt(row, start, start + length + 1)
                    hasher.update(json.dumps(piece).encode())
        return hasher.hexdigest()

    def steps_of_document(
        self, shard: str, document: int, global_batch: int | None = None
    ) -> list[Any]:
        """`trace.steps_of_document`."""
        from .trace import steps_of_document

        return steps_of_document(self, shard, document, global_batch)


def _differing(content: dict[str, Any]) -> str:
    """Which fields a plan of another version lacks, or has beyond what this one knows; or ""."""
    missing = sorted(_ALWAYS - content.keys()) or sorted(_ARRAYS - content["arrays"].keys())
    if missing:
        return f"no {', '.join(missing)}"
    for name, kind in (("lanes", Lane), ("stages", Stage)):
        known = {f.name for f in dataclasses.fields(kind)}
        for i, entry in enumerate(content[name]):
            if entry.keys() != known:
                less, more = sorted(known - entry.keys()), sorted(entry.keys() - known)
                said = [f"{word} {', '.join(f)}" for word, f in (("no", less), ("new", more)) if f]
                return f"{name}[{i}]: {'; '.join(said)}"
    return ""


def plan_id(data: bytes) -> str:
    """16 hex digits that name a plan: BLAKE2b of plan.json, which names each array's digest."""
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def same_order_or_stop(plan: Plan, position: int, digest: str) -> None:
    """StopError unless the slots around `position` are those that `digest` was taken of."""
    if state_digest(plan, position) != digest:
        raise StopError(
            f"plan {plan.id}: the windows around position {position} are not those that were "
            "trained on when the state was saved; the state is damaged, or was made by another "
            "version of gristmill"
        )


def state_digest(plan: Plan, position: int) -> str:
    """Digest of (plan, position, the slots within 8 of it): O(1), the same on every rank."""
    rows = plan.rows(max(0, position - 8), min(plan.positions, position + 8))
    data = f"{plan.id} {position} ".encode() + np.ascontiguousarray(rows, dtype="<i8").tobytes()
    return hashlib.blake2b(data, digest_size=8).hexdigest()
