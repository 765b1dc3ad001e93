"""PyTorch: workers read ahead, the order stays the plan's, the state stays four values.

`FeedDataLoader` is what a training loop iterates: the DataLoader's workers take the micro-batches
in turn (worker w of n the w-th, the (w + n)-th, ...), the DataLoader hands them out in turn, so the
order is that of no workers. Its state is `FeedLoader`'s, so it resumes in another world and with
other workers. `FeedDataset` alone fits torchdata's StatefulDataLoader, whose own state wants the
same number of workers again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from ...documents.errors import UsageError
from ..feed import TokenFeed
from ..loader import FeedLoader


class Items(Dataset[dict[str, Any]]):
    """A feed by position, for samplers that ask; what a sample looks like is the framework's."""

    def __init__(self, feed: TokenFeed) -> None:
        self.feed = feed

    def __len__(self) -> int:
        return len(self.feed)


class FeedDataset(IterableDataset[dict[str, Any]]):
    """The micro-batches of `loader` from its position on; use it with `batch_size=None`."""

    def __init__(self, loader: FeedLoader) -> None:
        super().__init__()
        self.loader = loader
        self._start = loader.state_dict()
        self._given = 0  # micro-batches that this worker has given since `_start`

    def __iter__(self) -> Iterator[dict[str, Any]]:
        worker = get_worker_info()
        nth, of = (0, 1) if worker is None else (worker.id, worker.num_workers)
        micros = self.loader.schedule().every(nth + self._given * of, of)
        for batch in self.loader.batches(micros):
            self._given += 1
            yield batch
        self._given = 0

    def state_dict(self) -> dict[str, Any]:
        """Of this worker: where all started, and how many micro-batches it has given since."""
        return {**self._start, "given": self._given}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on exactly behind the last micro-batch; the number of workers must be the same."""
        start = {k: v for k, v in state.items() if k != "given"}
        self.loader.load_state_dict(start)
        self._start, self._given = start, int(state["given"])


class FeedDataLoader:
    """`FeedLoader` with the workers of a DataLoader; batches hold tensors.

    `workers`: processes that read; `prefetch`: micro-batches that each reads ahead. `state_dict`
    and `load_state_dict` are those of `loader`: equal on all ranks, good for any world.
    """

    def __init__(
        self, loader: FeedLoader, *, workers: int = 0, prefetch: int = 2, pin_memory: bool = False
    ) -> None:
        if workers < 0 or prefetch < 1:
            raise UsageError(
                f"workers {workers}, prefetch {prefetch}: expected at least 0 workers and 1 batch"
            )
        self.loader = loader
        self.workers, self.prefetch, self.pin_memory = workers, prefetch, pin_memory

    @property
    def position(self) -> int:
        """Windows of whole steps that have been handed out."""
        return self.loader.position

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self._batches():
            self.loader.hand_out(batch)
            yield batch

    def _batches(self) -> Iterator[dict[str, Any]]:
        if not (self.workers or self.pin_memory):  # a DataLoader would only cost time
            for batch in self.loader.batches(self.loader.schedule().every(0, 1)):
                yield {
                    name: torch.from_numpy(value) if isinstance(value, np.ndarray) else value
                    for name, value in batch.items()
                }
            return
        yield from DataLoader(
            FeedDataset(self.loader),
            batch_size=None,
            num_workers=self.workers,
            prefetch_factor=self.prefetch if self.workers else None,
            pin_memory=self.pin_memory,
        )

    def state_dict(self) -> dict[str, Any]:
        """`{format, plan, position, digest}`."""
        return self.loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken."""
        self.loader.load_state_dict(state)
