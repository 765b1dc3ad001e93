"""A real Trainer reads the plan in order, and goes on in it, where transformers is installed."""

from __future__ import annotations

import importlib.util

import pytest

from gristmill.mixing import TokenFeed

pytestmark = [
    pytest.mark.trainers,
    pytest.mark.skipif(
        not importlib.util.find_spec("transformers") or not importlib.util.find_spec("accelerate"),
        reason="transformers is not installed: it wants older tokenizers than the project",
    ),
    pytest.mark.filterwarnings("ignore"),
]
BATCH, STEPS = 2, 20  # windows of a micro-batch; two of them make a step


@pytest.fixture(scope="module", name="feed")
def feed_fixture(naive, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trainer")
    return TokenFeed(naive("naive_mixing").make_plan(folder), folder / "tokens")


def trained(feed, out, seen, *, steps, resume):
    """Train to step `steps`; every row that the model meets is appended to `seen`."""
    import torch
    from transformers import Trainer, TrainingArguments

    from gristmill.mixing.adapters.huggingface import FeedItems, InOrder

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))

        def forward(self, input_ids, labels, position_ids):
            seen.extend(input_ids.tolist())
            return {"loss": (self.weight - 1).square().sum()}

    class Mine(InOrder, Trainer):
        pass

    args = TrainingArguments(
        output_dir=str(out),
        per_device_train_batch_size=BATCH,
        gradient_accumulation_steps=2,
        max_steps=steps,
        save_steps=5,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    Mine(Model(), args, train_dataset=FeedItems(feed)).train(resume_from_checkpoint=resume)


def test_trainer_order_is_the_plans_also_after_a_resume(feed, tmp_path):
    expected = [feed[p]["input_ids"].tolist() for p in range(2 * BATCH * STEPS)]
    whole = []
    trained(feed, tmp_path / "whole", whole, steps=STEPS, resume=None)
    assert whole == expected
    parts = []
    trained(feed, tmp_path / "parts", parts, steps=10, resume=None)
    trained(feed, tmp_path / "parts", parts, steps=STEPS, resume=True)
    assert parts == expected
