"""A plan and its token shards as a map from position to sample; numpy and the standard library.

A position is all that is needed: no iterator, no random state, no index of an epoch. Boundaries
come from the plan, never from looking for an end token (a document may hold one). Every extent of
4 MiB is checked against its checksum when it is first touched (4,096 tokens are 8 kB of it, so a
training process pays once per extent and not per sample), and an error names the file, the extent
and the position before the trainer sees a token of it. Speed beside other readers:
benchmarks/feed_peers.py.

Targets are aligned: `labels[i]` is what follows `input_ids[i]`, or -100. With `mask: document`
every token of a document but its first is a target exactly once per epoch, whether packing cut
there or not: the token after a cut is fetched as the label of the last one before it.
"""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict

import numpy as np

from ..documents.errors import DamagedError, FormatError, StopError, UsageError
from .plan import Plan, Slot
from .remote import is_address
from .sequence import IGNORE, Arrays, Pool
from .shards import TokenShard

if TYPE_CHECKING:
    from .remote import Store

PROVENANCE: Final = (
    "position",
    "stage",
    "slice",
    "lane",
    "epoch",
    "window",  # of the first sequence, as epoch is
    "pieces",
    "real_tokens",
    "sequence_length",  # tokens of a sequence; a sample holds S / sequence_length of them
)  # columns of Sample["provenance"]; ordinals into the plan's lists
NOTHING: Final = [-1, -1, -1, -1, -1, -1, 0, 0, 0]  # of a sample that is all padding

REMOVED: Final = "removed.json"  # beside a plan: documents taken out of it (`mixing.removal`)
REMOVED_FORMAT: Final = 1

Verify = Literal["first", "all", "off"]


class Sample(TypedDict):
    """A position: S tokens, of one sequence or of several shorter ones end to end."""

    input_ids: np.ndarray  # int64[S]
    labels: np.ndarray  # int64[S], the next token or -100
    position_ids: np.ndarray  # int64[S], restart at each segment
    cu_seqlens: np.ndarray  # int32[segments + 1], 0 to S: documents and padding, or sequences
    loss_mask: np.ndarray  # bool[S], labels != -100
    provenance: np.ndarray  # int64[9], see PROVENANCE


def read_removed(plan_folder: Path) -> dict[str, Any] | None:
    """What was taken out of a plan: shard -> {digest, documents}; None when nothing was."""
    path = plan_folder / REMOVED
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        msg = f"{path}: not JSON ({error}); give `gristmill remove` its list again"
        raise DamagedError(msg) from error
    if content.get("format") != REMOVED_FORMAT:
        msg = f"{path}: format {content.get('format')}, this version reads {REMOVED_FORMAT}"
        raise FormatError(msg)
    return dict(content["shards"])


class TokenFeed:
    """`feed[p]` is the sample at position p; `len(feed)` the positions of the plan.

    `verify`: "first" checks plan arrays now and each token extent at its first touch, "all"
    checks every extent of every shard now, "off" trusts them. Safe in threads and after a fork.
    Either folder may be an address (`s3://...`) when `cache` names a folder on a local disk;
    what comes from a store is always checked.
    """

    def __init__(
        self,
        plan_folder: Path | str,
        tokens_folder: Path | str,
        verify: Verify = "first",
        *,
        cache: Path | str | None = None,
    ) -> None:
        if verify not in {"first", "all", "off"}:
            raise UsageError(f"verify: found {verify!r}; expected 'first', 'all' or 'off'")
        self.cache = cache
        self.plan = Plan.open(_local_plan(plan_folder, cache), verify=verify != "off")
        self._removed = read_removed(self.plan.folder)
        if self._removed is not None:
            tokens_folder = _own_tokens(plan_folder, tokens_folder)
        self._store: Store | None = None
        if is_address(tokens_folder):
            from .remote import Store

            verify = "first" if verify == "off" else verify
            self._store = Store(str(tokens_folder), cache)
        self.tokens_folder = tokens_folder if self._store else Path(tokens_folder)
        self.verify: Verify = verify
        self.pad_id: int = self.plan.content["pad_id"]
        self._masks = len(self.plan.masks) > 0
        self._turns = bool(self.plan.turns)
        self._shards: dict[int, TokenShard] = {}
        self._pool = Pool()
        self._lock = Lock()
        if verify == "all":
            for number in range(len(self.plan.shards)):
                self._shard(number).verify()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as its paths: a worker process opens the files itself."""
        again = partial(TokenFeed, cache=self.cache)
        return again, (self.plan.folder, self.tokens_folder, self.verify)

    def __len__(self) -> int:
        return self.plan.positions

    def token_dtype(self) -> np.dtype:
        """The narrowest type that holds every id: the widest of the shards, and the padding's."""
        sizes = [self._shard(k).dtype for k in range(len(self.plan.shards))]
        return np.result_type(np.min_scalar_type(self.pad_id), np.uint16, *sizes)

    def __getitem__(self, position: int) -> Sample:
        """Sample at `position`; IndexError outside, DamagedError for corrupt tokens."""
        sequences = self.plan.locate(int(position))
        arrays = Arrays(
            1, self.plan.stages[sequences[0].stage].sequence_length, self.pad_id, self._pool
        )
        provenance = self._fill(sequences, arrays)
        arrays.finish()
        return Sample(
            input_ids=arrays.ids[0],
            labels=arrays.labels[0],
            position_ids=arrays.places[0],
            cu_seqlens=np.array(arrays.edges, dtype=np.int32),
            loss_mask=arrays.labels[0] != IGNORE,
            provenance=np.array(provenance, dtype=np.int64),
        )

    def batch(self, positions: range, limit: int, rows: np.ndarray | None = None) -> dict[str, Any]:
        """The samples at `positions`, stacked; padding without targets from `limit` on.

        All below `limit` have one sequence length, that of position `limit - 1`. `rows`: what
        `Plan.rows_at` gives for them, where it is known already.
        """
        real = range(positions.start, min(positions.stop, limit), positions.step)
        if rows is None:
            rows = self.plan.rows_at(np.array(real, dtype=np.int64))
        length = self.plan.stages[self.plan.stage_at(limit - 1)].sequence_length
        arrays = Arrays(len(positions), length, self.pad_id, self._pool)
        sequences = map(Slot._make, rows.tolist())
        provenance = [
            self._fill(list(found), arrays) for _, found in groupby(sequences, key=itemgetter(0))
        ]
        for _ in range(len(real), len(positions)):
            arrays.open(inside=False)
            arrays.close(length)
            provenance.append(NOTHING)
        arrays.finish()
        return {
            "input_ids": arrays.ids,
            "labels": arrays.labels,
            "position_ids": arrays.places,
            "loss_mask": arrays.labels != IGNORE,
            "provenance": np.array(provenance, dtype=np.int64),
            "cu_seqlens": np.array(arrays.edges, dtype=np.int32),
        }

    def _fill(self, sequences: list[Slot], arrays: Arrays) -> list[int]:
        """Write the sequences of a position; its provenance."""
        plan, first = self.plan, sequences[0]
        stage = plan.stages[first.stage]
        size = plan.lanes[first.lane].sequence_length
        shards, verify = self._shards, self.verify != "off"
        count = real = 0
        try:
            for slot in sequences:
                pieces = plan.window_pieces(slot.lane, slot.window)
                documents = plan.documents[pieces[:, 0]].tolist()
                arrays.open(inside=stage.mask == "document")
                for (row, start, length), place in zip(pieces.tolist(), documents, strict=True):
                    if self._masks and plan.masked(row, first.position):
                        arrays.blank(length)
                        continue
                    number, document, tokens = place
                    shard = shards.get(number) or self._shard(number)
                    stop = start + length
                    upto = stop if stop == tokens else stop + 1  # the last one's label as well
                    found = shard.part(document, tokens, start, upto, verify=verify)
                    following = IGNORE if stop == tokens else found.item(length)
                    target = not (self._removed and self._gone(place))
                    spans = plan.turns.unlearnt(row, start, upto) if self._turns else ()
                    arrays.text(found[:length], following, target=target, unlearnt=spans)
                    real += length
                arrays.close(size)
                count += len(documents)
        except DamagedError as error:
            where = f"position {first.position} (stage {stage.name!r}, plan {plan.id})"
            raise DamagedError(f"{where}: {error}") from error
        return [*first, count, real, size]

    def _gone(self, place: list[int]) -> bool:
        """Whether a document was taken out of the plan: its tokens are no targets."""
        number, document, _ = place
        told = (self._removed or {}).get(self.plan.shards[number])
        return told is not None and document in told["documents"]

    def _shard(self, number: int) -> TokenShard:
        with self._lock:
            if number not in self._shards:
                self._shards[number] = self._open(number)
            return self._shards[number]

    def _open(self, number: int) -> TokenShard:
        name = self.plan.shards[number]
        if self._store is not None:
            prefix = self._store.mirror_shard(name)
            shard = TokenShard.open(prefix, partial(self._store.fetch, f"{name}.bin"))
        else:
            shard = TokenShard.open(Path(self.tokens_folder) / name)
        plan = self.plan.content
        told = (self._removed or {}).get(self.plan.shards[number])
        for what, expected in (
            ("digest", told["digest"] if told else plan["shards"][number]["digest"]),
            ("tokenizer", plan["tokenizer"]),
        ):
            if shard.index[what] != expected:
                raise StopError(
                    f"{shard.paths.index}: {what} {shard.index[what]}, plan {self.plan.id} was "
                    f"compiled for {expected}; these are other tokens. Compile the plan again, or "
                    "point to the tokens that it was compiled for"
                )
        return shard


def _own_tokens(plan_folder: Path | str, tokens_folder: Path | str) -> Path | str:
    """The tokens that stand beside a plan out of which documents were taken."""
    if is_address(plan_folder):
        return f"{str(plan_folder).rstrip('/')}/tokens"
    own = Path(plan_folder) / "tokens"
    return own if own.is_dir() else tokens_folder  # a worker knows the plan by its mirror


def _local_plan(place: Path | str, cache: Path | str | None) -> Path | str:
    """The plan's folder on this machine: brought from a store when `place` is an address."""
    if not is_address(place):
        return place
    from .remote import AbsentError, Store

    address, _, name = str(place).rstrip("/").rpartition("/")
    store = Store(address, cache)
    content = json.loads(store.mirror(f"{name}/plan.json").read_bytes())
    for array in content["arrays"]:
        store.mirror(f"{name}/{array}.npy")
    with suppress(AbsentError):  # most plans have none
        store.mirror(f"{name}/{REMOVED}")
    return store.cache / name
