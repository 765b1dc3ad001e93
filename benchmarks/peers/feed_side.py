"""One way of reading the same tokens, timed; runs in the peers' environment.

    python feed_side.py make FOLDER            writes litdata's copy of the tokens
    python feed_side.py WHAT FOLDER BATCHES    prints one line of JSON

FOLDER: `npy` (raw uint16, windows in the plan's order), `mds`, `litdata`, `plan` (a link to the
plan), `tokens`, and `path/gristmill`, a link to this project. Batches hold 8 windows of 4,096.
"""

from __future__ import annotations

import json
import sys
import time
import types
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path

STARTED = time.perf_counter()
BATCH, LENGTH = 8, 4096
PART = 1 << 24  # tokens that one call writes


def memmap(folder: Path) -> Iterator:
    """PyTorch's own: a map, a random sampler, default collation."""
    import numpy as np
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Windows(Dataset):
        def __init__(self) -> None:
            self.windows = windows(folder)

        def __len__(self) -> int:
            return len(self.windows)

        def __getitem__(self, i: int) -> torch.Tensor:
            return torch.from_numpy(self.windows[i].astype(np.int64))

    return iter(DataLoader(Windows(), batch_size=BATCH, shuffle=True))


def mosaic(folder: Path) -> Iterator:
    # torchvision from the index and torch of another build do not load together; text needs none
    for name in ("", ".datasets", ".transforms", ".transforms.functional"):
        module = types.ModuleType(f"torchvision{name}")
        module.__spec__ = ModuleSpec(module.__name__, None)
        module.VisionDataset, module.to_tensor = object, None
        sys.modules[module.__name__] = module
    import streaming
    import torch

    (local,) = (p.parent for p in (folder / "mds").rglob("index.json"))
    dataset = streaming.StreamingDataset(local=str(local), batch_size=BATCH, shuffle=True)
    for batch in torch.utils.data.DataLoader(dataset, batch_size=BATCH):
        yield batch["input_ids"].to(torch.int64)


def litdata(folder: Path) -> Iterator:
    import torch
    from litdata import StreamingDataLoader, StreamingDataset, TokensLoader

    dataset = StreamingDataset(
        str(folder / "litdata"), item_loader=TokensLoader(block_size=LENGTH), shuffle=True
    )
    for batch in StreamingDataLoader(dataset, batch_size=BATCH):
        yield batch.to(torch.int64)


def ours(folder: Path, *, torch: bool) -> Iterator:
    sys.path.insert(0, str(folder / "path"))
    from gristmill.mixing import FeedLoader, TokenFeed

    loader = FeedLoader(TokenFeed(folder / "plan", folder / "tokens"), micro_batch=BATCH)
    if not torch:
        return iter(loader)
    from gristmill.mixing.adapters.torch import FeedDataLoader

    return iter(FeedDataLoader(loader))


SIDES = {
    "memmap": memmap,
    "mosaicml-streaming": mosaic,
    "litdata": litdata,
    "gristmill": lambda folder: ours(folder, torch=False),
    "gristmill-torch": lambda folder: ours(folder, torch=True),
}


def windows(folder: Path):
    import numpy as np

    tokens = np.memmap(next((folder / "npy").rglob("*.npy")), np.uint16, "r")
    return tokens.reshape(-1, LENGTH)


def part(asked: tuple[str, int]) -> Iterator:
    import torch

    folder, low = asked
    for window in windows(Path(folder))[low >> 12 : (low + PART) >> 12]:
        yield torch.from_numpy(window.copy())


def make(folder: Path) -> None:
    """The format of litdata, by its own writer: chunks of 64 MB."""
    from litdata import TokensLoader, optimize

    optimize(
        fn=part,
        inputs=[(str(folder), low) for low in range(0, len(windows(folder)) << 12, PART)],
        output_dir=str(folder / "litdata"),
        chunk_bytes="64MB",
        item_loader=TokensLoader(block_size=LENGTH),
        num_workers=1,
    )


def main() -> None:
    what, folder = sys.argv[1], Path(sys.argv[2])
    if what == "make":
        make(folder)
        return
    batches = SIDES[what](folder)
    next(batches)
    first = time.perf_counter() - STARTED
    count = int(sys.argv[3])
    for _ in range(count):  # warm: all that is paid once per file, extent or process
        next(batches)
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(count):
        next(batches)
    told = {
        "first": first,
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "tokens": count * BATCH * LENGTH,
    }
    print(json.dumps(told), flush=True)
    sys.exit(0)


if __name__ == "__main__":
    main()
