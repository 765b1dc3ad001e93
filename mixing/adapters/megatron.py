"""Megatron: the plan's order behind Megatron's sampler.

`GPTDataset` over `.bin` and `.idx` shuffles for itself, and again whenever the length of the run
changes. `PlanDataset` has the keys of its samples and the plan's order: give it to
`build_pretraining_data_loader` with `--dataloader-type single`, and `consumed_samples` is the
position. Megatron reads labels under its loss mask, so where the feed says -100 they are 0.
"""

from __future__ import annotations

from typing import Any

import torch

from .torch import Items


class PlanDataset(Items):
    """`dataset[p]`: tokens, labels, position_ids int64[S], loss_mask float32[S]."""

    def __getitem__(self, position: int) -> dict[str, Any]:
        """The sample at `position`, boundaries as `cu_seqlens` where documents are masked."""
        sample = self.feed[position]
        mask = torch.from_numpy(sample["loss_mask"])
        return {
            "tokens": torch.from_numpy(sample["input_ids"]),
            "labels": torch.from_numpy(sample["labels"]).masked_fill(~mask, 0),
            "loss_mask": mask.float(),
            "position_ids": torch.from_numpy(sample["position_ids"]),
        }
