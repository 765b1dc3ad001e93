"""Templates: injected families with known truth, real pages, hard negatives, speed.

    python benchmarks/templates.py [PART ...]

PART is one of injected, crawls, siblings, marks, sets, labels, negatives, content, rules, speed,
added (a run to which a crawl is added: `_added.py`), memory (the last only when named: a million
pages). Real data from $GRISTMILL_DATA. `_templates.py` says what a family is and what counts as a
template page; `_pages.py` holds the parts on real pages, `_content.py` hosts whose content recurs.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent))
import _templates as inject
from _added import added
from _content import content
from _pages import labels, marks, negatives, sets, siblings
from _templates import STAGE, marked
from _texts import DATA, best, rows_of

from gristmill.dedup import NearDuplicates
from gristmill.filters.templates import LineRules

FROZEN, REPORTED = 1, (2, 3, 4, 5)  # seeds of the generator
GRID = [
    (single, share, size, hosts)
    for single in (True, False)
    for share in (0.01, 0.05, 0.1, 0.2, 0.3)
    for size, hosts in ((3, 1), (10, 1), (20, 1), (20, 20), (100, 1), (100, 100), (1000, 1))
]


def corpus(seed):
    """Pages of the grid, one family of 10,000, and pages of no template."""
    material = inject.Material(DATA, seed)
    grid = [*GRID, (True, 0.1, 10_000, 1)]
    pages = []
    for number, (single, share, size, hosts) in enumerate(grid):
        pages += inject.family(
            material, number, pages=size, share=share, single=single, hosts=hosts
        )
    return grid, [*pages, *inject.background(material)]


def control(pages, bands):
    """bool[pages]: pages that share a band key of MinHash (14 x 8) with another page."""
    stage = NearDuplicates(k=bands * 8, bands=bands, rows=8)
    keys = stage.survey.measure(inject.batch_of(pages)).scores["bands"]
    some = keys[:, 0] != 0
    values, place, number = np.unique(keys, return_inverse=True, return_counts=True)
    del values
    return some & (number[place.reshape(keys.shape)] > 1).any(axis=1)


def injected(seeds=(FROZEN, *REPORTED)):
    """Recall and precision by slot share and family, and what prose is lost."""
    for seed in seeds:
        grid, pages = corpus(seed)
        truth = np.array([p.template for p in pages])
        family = np.array([p.family for p in pages])
        start = time.perf_counter()
        table = inject.run_stage(STAGE, pages)
        seconds = time.perf_counter() - start
        found, gone = marked(table, len(pages))
        banded = control(pages, 14)
        print(f"\nseed {seed}{' (thresholds frozen on it)' if seed == FROZEN else ''}: "
              f"{len(pages):,} pages, {truth.sum():,} template pages, {seconds:.1f} s")  # fmt: skip
        sums = defaultdict(lambda: np.zeros(5, np.int64))
        for number, about in enumerate(grid):
            mine = family == number
            hit, all_, wrong = found & truth & mine, truth & mine, found & ~truth & mine
            row = [hit.sum(), all_.sum(), wrong.sum(), (banded & all_).sum(), mine.sum()]
            sums[about] += np.array(row)
        print("slots       share  pages hosts   template  found   recall  wrong  MinHash 14x8")
        for (single, share, size, hosts), (hit, all_, wrong, band, _) in sums.items():
            if all_:
                kind = "single" if single else "contiguous"
                print(f"{kind:10} {share:6.0%} {size:6,} {hosts:5} {all_:10,} {hit:6,} "
                      f"{hit / all_:8.3f} {wrong:6} {band / all_:10.3f}")  # fmt: skip
        asked = [v for k, v in sums.items() if 0.05 <= k[1] <= 0.2 and k[2] >= 20]
        hit, all_, wrong, band, _ = np.sum(asked, axis=0)
        of_none = found & (family < 0)
        print(f"5 to 20 %, families of 20 and more: recall {hit / all_:.4f}, precision "
              f"{hit / (hit + wrong + of_none.sum()):.4f}; mean of the families' recalls "
              f"{np.mean([v[0] / v[1] for v in asked if v[1]]):.4f}; MinHash recall "
              f"{band / all_:.4f}")  # fmt: skip
        print(f"all: recall {(found & truth).sum() / truth.sum():.4f}, precision "
              f"{(found & truth).sum() / found.sum():.4f}; of no template {of_none.sum()} of "
              f"{(family < 0).sum():,}")  # fmt: skip
        _prose(pages, table, gone, truth)


def _prose(pages, table, gone, truth):
    """Words of genuine prose lost, of pages that are no template pages."""
    texts = inject.cut(STAGE, pages, table)
    lost = total = 0
    for i, page in enumerate(pages):
        if truth[i]:
            continue
        blocks = page.spans if page.family >= 0 else [page.text]
        size = sum(len(inject.WORD.findall(b)) for b in blocks)
        total += size
        if gone[i]:
            lost += size
        elif page.family >= 0:
            lost += sum(len(inject.WORD.findall(b)) for b in blocks if b not in texts[i])
        else:
            lost += size - len(inject.WORD.findall(texts[i]))
    print(f"genuine prose: {lost:,} of {total:,} words lost ({lost / total:.3%})")


def crawls():
    """One page crawled ten times, twenty pages crawled ten times, and a second run over a first."""
    material = inject.Material(DATA, FROZEN)
    texts = material.articles[:20]
    for pages in (1, 20):
        many = [
            inject.Page(
                f"{t['text']}\nRead {i * 7 + n} times", f"https://a.example/{n}", "a.example"
            )
            for i in range(10)
            for n, t in enumerate(texts[:pages])
        ]
        table = inject.run_stage(STAGE, many)
        found, gone = marked(table, len(many))
        same = sum(p.text == t for p, t in zip(many, inject.cut(STAGE, many, table), strict=True))
        print(f"{pages} pages crawled ten times: {found.sum()} template pages, "
              f"{gone.sum()} removed, {same} of {len(many)} unchanged")  # fmt: skip
    _, pages = corpus(FROZEN)
    left = _left(pages)
    again = _left(left)
    words = sum(len(inject.WORD.findall(p.text)) for p in left)
    lost = words - sum(len(inject.WORD.findall(p.text)) for p in again)
    print(f"injected, twice: {len(pages):,} pages, {len(left):,} after one run, {len(again):,} "
          f"after the second, which removes {lost / words:.4%} of words")  # fmt: skip


def _left(pages):
    table = inject.run_stage(STAGE, pages)
    _, gone = marked(table, len(pages))
    texts = inject.cut(STAGE, pages, table)
    rest = zip(pages, texts, gone, strict=True)
    return [inject.Page(t, p.url, p.host) for p, t, g in rest if not g]


def rules():
    """`line_rules` on lines that people labelled clean or noise (a label a line, by language)."""
    sums = defaultdict(lambda: np.zeros(2, np.int64))
    for row in rows_of(DATA / "c-line-noise-turku" / "lines.jsonl.gz"):
        lines = [x.replace("\n", " ").strip() for x in row["text"]]
        marks_ = [int(x) for x in row["labels"]]
        batch = pa.record_batch({"text": pa.array(["\n".join(lines)], pa.large_string())})
        edits = LineRules().measure(batch).edits
        ends = np.cumsum([len(x.encode()) + 1 for x in lines])
        for at, reason in zip(edits.starts.tolist(), edits.reasons.tolist(), strict=True):
            sums[edits.reason_names[reason]][marks_[int(np.searchsorted(ends, at, "right"))]] += 1
        for mark in marks_:
            sums["all lines"][mark] += 1
    for name, (noise, clean) in sums.items():
        print(f"{name}: {noise:,} of noise, {clean:,} clean")


def speed():
    """Survey and apply, on pages of which half are of families; one core, CPU seconds."""
    material = inject.Material(DATA, FROZEN)
    pages = list(inject.background(material))
    for number in range(40):
        pages += inject.family(material, number, pages=50, share=0.1, single=True, hosts=1)
    batch = inject.batch_of(pages)
    size = batch.column("text").nbytes / 1e6
    documents = inject.documents_of(STAGE, pages, 1)
    rows = STAGE.scatter(documents)
    table = inject.run_stage(STAGE, pages, shards=1)
    table = table.take(pa.array(np.argsort(inject.page_of(table))))
    at = inject.page_of(table)
    near = NearDuplicates().survey
    times = {
        "survey (scatter)": best(lambda: STAGE.scatter(documents)),
        "apply (cut)": best(lambda: STAGE.cut(batch, table, at)),
        "beside them: near_duplicates' survey": best(lambda: near.measure(batch)),
    }
    for name, seconds in times.items():
        print(f"{name}: {size / seconds:.0f} MB/s")
    both = times["survey (scatter)"] + times["apply (cut)"]
    print(f"survey and apply together: {size / both:.0f} MB/s; {len(pages):,} pages, "
          f"{size:.0f} MB")  # fmt: skip
    many = rows.num_rows / len(pages)
    print(f"exchange: {many:.0f} rows, {rows.nbytes / len(pages):,.0f} bytes a page")
    start = time.process_time()
    found = rows
    column = batch.column("text")
    for step in STAGE.rounds:
        found = step.gather(found, lambda _, row: column.take(pa.array(row)))
        now = time.process_time()
        print(f"round {step.name}: {len(pages) / (now - start):,.0f} pages/s")
        start = now


def memory(pages=1_000_000, partitions=16, batch=20_000):
    """A million pages of one host, half of one family: peak memory with the exchange on disk."""
    material = inject.Material(DATA, FROZEN)
    base = [p.text for p in inject.family(material, 0, pages=2000, share=0.1, single=True, hosts=1)]
    other = [a["text"][:2500] for a in material.articles]
    start = time.perf_counter()

    def text_of(i):
        if i % 2:
            return base[i // 2 % len(base)].replace(" ", f" x{i} ", 1)
        return (
            f"{other[i // 2 % len(other)]}\nPage {i} of the host is unlike the others: {i * 7919}"
        )

    def texts(_, row):
        return pa.array([text_of(int(r)) for r in row], pa.large_string())

    with tempfile.TemporaryDirectory() as folder:
        files = [[] for _ in range(partitions)]

        def spill(table, name):
            part = (table.column("partition").to_numpy() >> np.uint64(40)) % np.uint64(partitions)
            for p in range(partitions):
                path = Path(folder) / f"{name}-{p}.arrow"
                some = table.filter(pa.array(part == p)).combine_chunks()
                with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, some.schema) as out:
                    out.write_table(some)
                files[p].append(path)

        for begin in range(0, pages, batch):
            some = [
                inject.Page(text_of(i), f"https://one.example/{i}", "one.example")
                for i in range(begin, begin + batch)
            ]
            documents = inject.documents_of(STAGE, some, 1, first=begin)
            spill(STAGE.scatter(documents), f"0-{begin}")
        print(f"scatter: {time.perf_counter() - start:.0f} s, {_rss():,} MB", flush=True)
        for number, step in enumerate(STAGE.rounds):
            before, files = files, [[] for _ in range(partitions)]
            count = Counter()
            for p, paths in enumerate(before):
                rows = pa.concat_tables(
                    [pa.ipc.open_file(pa.memory_map(str(x))).read_all() for x in paths]
                )
                made = step.gather(rows, texts)
                if number < len(STAGE.rounds) - 1:
                    spill(made, f"{number + 1}-{p}")
                else:
                    count.update(made.column("code").to_pylist())
                del rows, made
                for x in paths:
                    x.unlink()
            print(f"{step.name}: {time.perf_counter() - start:.0f} s, {_rss():,} MB", flush=True)
    print(f"{pages:,} pages of one host: {count[1]:,} removed; peak {_rss():,} MB of memory, "
          "mapped files of the exchange included")  # fmt: skip


def _rss():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


REAL = (siblings, marks, sets, labels, negatives, content, rules)
PARTS = {f.__name__: f for f in (injected, crawls, *REAL, speed, added, memory)}

if __name__ == "__main__":
    for part in sys.argv[1:] or [p for p in PARTS if p != "memory"]:
        print(f"\n== {part}")
        PARTS[part]()
