"""How `long_range` tells long documents from joined ones, and its speed.

    python benchmarks/long_range.py            AUC on every set, and MB/s
    python benchmarks/long_range.py choose     fields beside each other, on the books alone

Positives are stretches of long documents, of one length (books: 12 of each at most, laws 2, others
1). Against them stand, of the same length, in code points:

- encyclopedia, web: short documents, drawn at random, one after the other;
- exchanged: pieces of a sixteenth from the positives of the same set, each from another stretch in
  turn (of one document or not; where there are fewer than 16 stretches they recur);
- repeated: one encyclopedia article again and again.

Laws are German; their joined short documents are English, so only `exchanged` is of one language.
Chinese: encyclopedia articles against short ones;
they are so few that the figure says little. AUC is the share of pairs of a positive and a
control in which the positive scores higher, ties a half. Needs GRISTMILL_DATA.
"""

from __future__ import annotations

import os
import random
import sys
from itertools import cycle, islice

from _texts import DATA, batch_of, best, rows_of

from gristmill.filters import LongRange

SETS = {  # file, stretches of a document at most, code points of one
    "books": ("h-long-books/books", 12, 64_000),
    "laws": ("h-long-gesetze-de/laws", 2, 64_000),
    "peps": ("h-long-peps/peps", 1, 48_000),
    "rfcs": ("h-long-rust-rfcs/rfcs", 1, 48_000),
    "Chinese": ("f-multilingual-zhwiki/zhwiki", 1, 12_000),
}
PIECES, CONTROLS = 16, 100


def read(name: str) -> list[str]:
    """Texts of a set."""
    return [str(row["text"]) for row in rows_of(DATA / f"{name}.jsonl.gz")]


def stretches(texts: list[str], most: int, size: int) -> list[str]:
    """Up to `most` whole stretches of each text, evenly apart."""
    found = []
    for text in texts:
        count = len(text) // size
        some = sorted({at * count // min(most, count) for at in range(min(most, count))})
        found += [text[at * size : (at + 1) * size] for at in some]
    return found


def joined(rng: random.Random, short: list[str], size: int) -> str:
    """Short texts one after the other."""
    text = ""
    while len(text) < size:
        text += rng.choice(short) + "\n\n"
    return text[:size]


def exchanged(rng: random.Random, whole: list[str], size: int) -> str:
    """Pieces of stretches, each of another one."""
    each = size // PIECES
    chosen = rng.sample(whole, min(PIECES, len(whole)))
    places = rng.sample(range(PIECES), PIECES)
    pieces = zip(islice(cycle(chosen), PIECES), places, strict=True)
    return "".join(text[at * each : (at + 1) * each] for text, at in pieces)


def scores(stage: LongRange, texts: list[str]) -> tuple[list[int], list[int]]:
    """The score of each text, and `far`, of which it is made."""
    found = stage.measure(batch_of(texts)).scores
    return found["score"].tolist(), found["far"].tolist()


def auc(high: list[int], low: list[int]) -> float:
    """Share of pairs in which `high` is above `low`; ties are a half."""
    return sum((a > b) + 0.5 * (a == b) for a in high for b in low) / (len(high) * len(low))


def groups(name: str) -> dict[str, list[str]]:
    """Positives and controls of a set, the same in every run."""
    path, most, size = SETS[name]
    rng = random.Random(f"long range {name}")
    texts = read(path)
    short = {"encyclopedia": read("c-encyclopedia-enwiki/develop")}
    if name == "Chinese":
        short = {"encyclopedia": [text for text in texts if len(text) < 3_000]}
    else:
        short["web"] = read("c-web-text-samples/samples")
    short = {kind: [t for t in few if len(t) < 8_000] for kind, few in short.items()}
    whole = stretches(texts, most, size)
    found = {"long": whole}
    for kind, few in short.items():
        found[kind] = [joined(rng, few, size) for _ in range(CONTROLS)]
    found["exchanged"] = [exchanged(rng, whole, size) for _ in range(CONTROLS)]
    found["repeated"] = [
        ((text + "\n\n") * (1 + size // len(text)))[:size]
        for text in rng.sample(short["encyclopedia"], CONTROLS)
    ]
    return found


def table(title: str, stage: LongRange, found: dict[str, list[str]]) -> None:
    """A line for each control."""
    high, far = scores(stage, found["long"])
    middle, none = sorted(high)[len(high) // 2], high.count(-1)
    print(f"{title}\n  long          {len(high):4} texts  median {middle:4}  too short {none}")
    for kind, texts in list(found.items())[1:]:
        low, low_far = scores(stage, texts)
        middle = sorted(low)[len(low) // 2]
        said = f"AUC {auc(high, low):.3f}  of far alone {auc(far, low_far):.3f}"
        print(f"  {kind:<13} {len(low):4} texts  median {middle:4}  {said}")


def choose() -> None:
    """Fields one by one, on the books, on which the defaults were chosen."""
    found = groups("books")
    for fields in (
        {},
        *({"min_letters": letters} for letters in (5, 7, 8)),
        *({"common": share} for share in (0.25, 1)),
        {"segment": 32, "distance": 64},
        {"segment": 128, "distance": 16},
    ):
        table(str(fields or "defaults"), LongRange(**fields), found)


def main() -> None:
    print(f"load average {os.getloadavg()[0]:.1f}")
    if sys.argv[1:] == ["choose"]:
        return choose()
    for name in SETS:
        table(name, LongRange(), groups(name))
    laws, pages = read(SETS["laws"][0]), read("c-encyclopedia-enwiki/develop")
    for title, texts in (("laws", laws), ("encyclopedia, short", pages)):
        batch, stage = batch_of(texts), LongRange()
        mb = sum(len(text.encode()) for text in texts) / 1e6
        seconds = best(lambda stage=stage, batch=batch: stage.measure(batch))
        print(f"{title}: {mb:.1f} MB, {mb / seconds:.0f} MB/s of CPU time on one core")
    return None


if __name__ == "__main__":
    main()
