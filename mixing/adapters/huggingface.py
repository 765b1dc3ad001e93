"""Hugging Face: a `Trainer` that reads the plan in its order.

    class Mine(InOrder, Trainer): ...
    Mine(model, args, train_dataset=FeedItems(feed)).train(resume_from_checkpoint=True)

A Trainer shuffles unless its sampler is sequential; with one, a process reads the plan in its order
and resumes by its own step count (tests/mixing/adapters/test_huggingface.py). Over several ranks
accelerate deals the micro-batches out; that was not tried. A micro-batch holds one sequence length:
its size times the world must divide the plan's `global_batch`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import SequentialSampler

from .torch import Items


class FeedItems(Items):
    """`items[p]`: input_ids, labels, position_ids; labels are shifted back by one.

    The models of `transformers` shift labels themselves: label i stands beside token i there. A
    token that the feed gives no target for (the first of a document) stays without one.
    """

    def __getitem__(self, position: int) -> dict[str, Any]:
        """The sample at `position`. The target of a window's last token is lost by the shift."""
        sample = self.feed[position]
        labels = torch.full((len(sample["labels"]),), -100)
        labels[1:] = torch.from_numpy(sample["labels"])[:-1]
        return {
            "input_ids": torch.from_numpy(sample["input_ids"]),
            "labels": labels,
            "position_ids": torch.from_numpy(sample["position_ids"]),
        }


class InOrder:
    """Mix into a `Trainer`, before it: positions in order, never shuffled."""

    def _get_train_sampler(self, train_dataset: Any = None) -> SequentialSampler:
        return SequentialSampler(train_dataset or self.train_dataset)  # type: ignore[attr-defined]
