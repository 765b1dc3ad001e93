"""Recall where near duplicates hide among pages of one template, whose bands are hot.

    python benchmarks/dedup_hot.py [--pages 10000] [--words 200] [--shares 0,0.5,0.7,0.8,0.86]
                                   [--hot-cap 4096] [--dense 1000]

All pages share one template; the rest of each is its own, but that a fifth of the pages are copies
of another page in which up to a fiftieth of the words are exchanged, anywhere. Bands whose lanes
all come from the template are the same for thousands of pages: hot groups, of which only a star and
re-banded pairs are compared (`dedup.candidates`). The truth is the exact Jaccard of all pairs.
Against it stands the share of true pairs that agree in a band (what would be compared without
caps), that are compared, and of which one document goes.

`--dense N` measures one dense cluster instead: N variants of a text of 120 words, each with two
words exchanged: two that share no exchange are at 96 / 136 = 0.71, and every band is hot. It
prints, for several `group_cap`, the pairs compared, the documents kept, what the greedy cover over
all true pairs keeps, and how many of the kept have an earlier kept one at the threshold or above.
"""

from __future__ import annotations

import argparse
import random
from itertools import pairwise

import numpy as np
from _dedup import column_of, decide, documents_of

from gristmill.dedup import NearDuplicates, candidate_probability
from gristmill.dedup import _kernels_pairs as kernels
from gristmill.dedup.rank import column, matrix
from gristmill.dedup.verify import reaches, shingle_sets
from gristmill.documents.exchange import counts_of

STAGE = NearDuplicates()
EDGES = (0.8, 0.85, 0.9, 0.95, 1.01)
SHARES = "0,0.5,0.7,0.8,0.86"  # of a page's words, the template's; two pages at 0.75 at most


def pages(count, words, share):
    """Texts in random order; a copy's page is among them."""
    draw = random.Random(f"hot {share}")
    template = [f"t{draw.randrange(10**6)}" for _ in range(round(words * share))]
    own = count - count // 5
    found = [
        template + [f"w{draw.randrange(10**6)}" for _ in range(words - len(template))]
        for _ in range(own)
    ]
    for _ in range(count - own):
        copy = list(found[draw.randrange(own)])
        for _ in range(draw.randrange(words // 50 + 1)):
            copy[draw.randrange(words)] = f"x{draw.randrange(10**9)}"
        found.append(copy)
    draw.shuffle(found)
    return [" ".join(page) for page in found]


def truth(texts):
    """int64[pairs, 4]: a, b, shared, either of all pairs at the threshold or above."""
    sets = shingle_sets(column_of(texts), STAGE.ngram, STAGE.char_ngram)
    found = []
    for a in range(len(texts) - 1):
        after = np.arange(a + 1, len(texts))
        shared, either = np.zeros(len(after), np.int64), np.zeros(len(after), np.int64)
        kernels.intersections(*sets, np.full(len(after), a), after, shared, either)
        near = reaches(STAGE.threshold, shared, either)
        same = np.full(int(near.sum()), a)
        found.append(np.stack([same, after[near], shared[near], either[near]], axis=1))
    return np.concatenate(found)


def measure(texts, share, stage):
    pairs = truth(texts)
    seen = {}
    decided = decide(stage, texts, lambda step, _, made: seen.setdefault(step.name, made))
    made, (a, b) = seen["candidates"], pairs[:, :2].T
    keys = matrix(documents_of(STAGE, texts), "bands", STAGE.bands)
    agree = (keys[a] == keys[b]).any(axis=1)
    rows = np.sort(np.stack([column(made, "a_row"), column(made, "b_row")]).astype(np.int64), 0)
    compared = np.isin(a * len(texts) + b, rows[0] * len(texts) + rows[1])
    gone = np.zeros(len(texts), bool)
    gone[column(decided, "row")] = column(decided, "code") == 1
    counts = counts_of(made)
    print(
        f"\n{share:.0%} template: {counts['hot_groups']:,} hot groups of "
        f"{counts['hot_rows'] / max(1, counts['hot_groups']):,.0f} documents, "
        f"{counts['over_hot_cap_rows'] / max(1, counts['hot_rows']):.0%} of them above hot_cap, "
        f"{counts['pairs'] / len(texts):.1f} pairs compared a document"
    )
    print("  Jaccard        pairs   theory   agree in a band   compared   one went")
    near = pairs[:, 2] / pairs[:, 3]
    for low, high in pairwise(EDGES):
        part = (near >= low) & (near < high)
        odds = np.mean([candidate_probability(s, STAGE.bands, STAGE.rows) for s in near[part]])
        shares = (x[part].mean() for x in (agree, compared, gone[a] | gone[b]))
        print(f"  {low:.2f} - {min(high, 1):.2f} {part.sum():7,} {odds:8.4f}", end="")
        print("".join(f"{s:{w}.4f}" for s, w in zip(shares, (18, 11, 11), strict=True)))


def variants(count, words=120, exchanged=2):
    """Texts of one cluster, all near each other and none the centre."""
    draw = random.Random("dense")
    base = [f"w{draw.randrange(10**6)}" for _ in range(words)]
    for _ in range(count):
        text = list(base)
        for place in draw.sample(range(words), exchanged):
            text[place] = f"x{draw.randrange(10**9)}"
        yield " ".join(text)


def dense(count):
    texts = sorted(variants(count), key=lambda t: -len(t.encode()))  # ids go by rank
    near = [set() for _ in texts]
    pairs = truth(texts)
    for a, b in pairs[:, :2].tolist():
        near[b].add(a)
    best = set()
    for row, before in enumerate(near):
        if not before & best:
            best.add(row)
    print(f"{count:,} variants of a text, {len(pairs):,} pairs at {STAGE.threshold} or above")
    print("  group_cap   pairs compared   kept   of all pairs   kept beside an earlier kept one")
    for cap in (32, 64, 128, 256, 1024):
        seen = {}
        stage = NearDuplicates(group_cap=cap)
        decided = decide(
            stage, texts, lambda step, _, made, to=seen: to.setdefault(step.name, made)
        )
        kept = set(range(count))
        kept -= set(column(decided, "row")[column(decided, "code") == 1].tolist())
        left = sum(bool(near[row] & kept) for row in kept)
        compared = counts_of(seen["candidates"])["pairs"]
        print(f"  {cap:9,} {compared:16,} {len(kept):6,} {len(best):14,} {left:33,}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=10_000)
    parser.add_argument("--words", type=int, default=200)
    parser.add_argument("--shares", default=SHARES)
    parser.add_argument("--hot-cap", type=int, default=STAGE.hot_cap)
    parser.add_argument("--dense", type=int, help="variants in one cluster")
    asked = parser.parse_args()
    if asked.dense:
        dense(asked.dense)
        return
    print(f"{asked.pages:,} pages of {asked.words} words, a fifth of them copies")
    stage = NearDuplicates(hot_cap=asked.hot_cap)
    for share in map(float, asked.shares.split(",")):
        measure(pages(asked.pages, asked.words, share), share, stage)


if __name__ == "__main__":
    main()
