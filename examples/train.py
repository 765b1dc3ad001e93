"""A tiny language model trained through every stage of a plan; killed, it goes on where it was.

    make demo
    python examples/train.py runs/demo --out runs/train      (needs PyTorch; one core, minutes)

Each step appends `step,position,loss` to losses.csv, and a checkpoint holds model, optimiser and
the feed's four values. Give the command again after a kill: the loss curve is the one that an
unbroken training has, bit for bit. At the end the monitor says whether a token shard is out of
line, and which documents to look at.
"""

from __future__ import annotations

import argparse
import json
from itertools import pairwise
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from gristmill.mixing import FeedLoader, Monitor, TokenFeed
from gristmill.mixing.adapters.torch import FeedDataLoader

CHUNK = 256  # tokens whose logits are in memory at a time: 16 MB


class Tiny(nn.Module):
    """One attention layer between embedding and (tied) output; documents do not see each other."""

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embed.weight, std=0.02)
        self.mix = nn.Linear(width, 3 * width)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, ids: torch.Tensor, labels: torch.Tensor, edges: list[int]) -> torch.Tensor:
        """Losses [tokens] of windows laid end to end, cut at `edges`; 0 without a target."""
        x = self.embed(ids)
        q, k, v = self.mix(functional.layer_norm(x, x.shape[-1:])).chunk(3, -1)
        parts = [
            functional.scaled_dot_product_attention(
                *(t[None, None, low:high] for t in (q, k, v)), is_causal=True
            )[0, 0]
            for low, high in pairwise(edges)
        ]
        y = x + torch.cat(parts)
        pairs = zip(y.split(CHUNK), labels.split(CHUNK), strict=True)
        return torch.cat([checkpoint(self._loss, *pair, use_reentrant=False) for pair in pairs])

    def _loss(self, y: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        logits = functional.linear(y, self.embed.weight, self.bias)
        return functional.cross_entropy(logits, labels, reduction="none")


def losses_of(model: Tiny, batch: dict) -> torch.Tensor:
    """Mean loss of each window over its targets: float32[windows]."""
    ids, labels = batch["input_ids"], batch["labels"]
    each = model(ids.reshape(-1), labels.reshape(-1), batch["cu_seqlens"].tolist())
    return each.reshape(labels.shape).sum(1) / batch["loss_mask"].sum(1).clamp(min=1)


def train(plan: Path, tokens: Path, out: Path, *, vocabulary: int, width: int, workers: int) -> str:
    """Train to the plan's end, from the last checkpoint if there is one; what the monitor says."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # sums in one order: the same bits before and after a kill
    torch.use_deterministic_algorithms(mode=True)
    out.mkdir(parents=True, exist_ok=True)
    model = Tiny(vocabulary, width)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    loader = FeedDataLoader(FeedLoader(TokenFeed(plan, tokens)), workers=workers)
    monitor = Monitor(loader.loader.feed.plan)
    saved_at, curve = out / "checkpoint.pt", out / "losses.csv"
    lines: list[str] = []
    if saved_at.is_file():
        saved = torch.load(saved_at)
        model.load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        loader.load_state_dict(saved["feed"])
        monitor.load_state_dict(saved["monitor"])
        lines = saved["lines"]
    total = torch.zeros(())
    for batch in loader:
        each = losses_of(model, batch)
        each.mean().backward()
        total += each.sum().detach()
        monitor.add({"provenance": batch["provenance"].numpy()}, each.detach().numpy())
        if not batch["last"]:
            continue
        optimiser.step()
        optimiser.zero_grad()
        low, high = batch["positions"]
        lines.append(f"{len(lines)},{high},{float(total) / (int(high) - int(low)):.9f}")
        total = torch.zeros(())
        saved = {
            "model": model.state_dict(),
            "optimiser": optimiser.state_dict(),
            "feed": loader.state_dict(),
            "lines": lines,
            "monitor": monitor.state_dict(),
        }
        torch.save(saved, out / "checkpoint.new")
        (out / "checkpoint.new").replace(saved_at)
        curve.write_text("step,position,loss\n" + "\n".join(lines) + "\n", encoding="utf-8")
        print(lines[-1], flush=True)
    suspects = [s._asdict() for s in monitor.suspects()]
    return json.dumps(suspects, indent=2)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="a finished run folder")
    parser.add_argument("--out", type=Path, required=True, help="checkpoint and loss curve")
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--vocabulary", type=int, default=16_384, help="of the run's tokenizer")
    parser.add_argument("--workers", type=int, default=0, help="processes that read ahead")
    asked = parser.parse_args()
    plan = json.loads((asked.run / "plans" / "current.json").read_bytes())["plan"]
    said = train(
        asked.run / "plans" / plan,
        asked.run / "tokens",
        asked.out,
        vocabulary=asked.vocabulary,
        width=asked.width,
        workers=asked.workers,
    )
    print("token shards out of line:", said)


if __name__ == "__main__":
    main()
