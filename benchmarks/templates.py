"""Templates: injected families with known truth, real pages, hard negatives, speed.

    python benchmarks/templates.py [PART ...]

PART is one of injected, crawls, siblings, marks, sets, labels, negatives, rules, speed, memory (the
last only when named: a million pages). Real data from $GRISTMILL_DATA. `_templates.py` says what a
family is and what counts as a template page.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent))
import _negatives as hard
import _templates as inject

from gristmill.dedup import NearDuplicates
from gristmill.filters.templates import LineRules, Templates

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("GRISTMILL_DATA", ROOT.parent / "shared" / "data"))
STAGE = Templates()
FROZEN, REPORTED = 1, (2, 3)  # seeds of the generator
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


def marked(table, size):
    """bool[pages]: template pages, exemplars included; bool[pages]: removed."""
    page = inject.page_of(table)
    is_template, gone = np.zeros(size, bool), np.zeros(size, bool)
    gone[page] = table.column("code").to_numpy() != 0
    is_template[page] = gone[page] | table.column("exemplar").to_numpy(zero_copy_only=False)
    return is_template, gone


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


def _lines(text):
    return [line.strip() for line in text.split("\n") if line.strip()]


def _norm(text):
    return " ".join(inject.WORD.findall(text.lower()))


def siblings():
    """WCXB: each page's whole text, among 30 siblings: the same chrome around other articles.

    Chrome is every line of the page's text of which at most a fifth stands in its gold text.
    """
    from resiliparse.extract.html2text import extract_plain_text

    rows = inject.read_jsonl(DATA / "b-html-wcxb" / "dev.jsonl.gz")
    rows = [r for r in rows if r.get("html") and r["gold_text"].strip()]
    articles = inject.read_jsonl(DATA / "c-encyclopedia-enwiki" / "develop.jsonl.gz")
    pages, firsts, chrome_of = [], [], {}
    for number, row in enumerate(rows):
        text = extract_plain_text(row["html"], main_content=False, alt_texts=False)
        gold = _norm(row["gold_text"])
        lines = _lines(text)
        grams = _grams(gold)
        inside = [_inside(_norm(line), gold, grams) for line in lines]
        body = [k for k, v in enumerate(inside) if v]
        if not body:
            continue
        head = [line for line, v in zip(lines[: body[0]], inside, strict=False) if not v]
        tail = [line for line, v in zip(lines[body[0] :], inside[body[0] :], strict=True) if not v]
        host = f"w{number}.example"
        chrome_of[len(pages)] = {line for line, v in zip(lines, inside, strict=True) if not v}
        firsts.append((len(pages), row))
        for k in range(31):
            other = _lines(articles[(31 * number + k) % len(articles)]["text"])
            whole = text if k == 0 else "\n".join([*head, *other, *tail])
            pages.append(inject.Page(whole, f"https://{host}/{k}", host))
    # The page itself must not be the one that keeps the first occurrence.
    table = inject.run_stage(STAGE, pages)
    texts = inject.cut(STAGE, pages, table)
    _, gone = marked(table, len(pages))
    before = after = total = snippets = removed = chrome = chrome_left = dropped = 0
    for at, row in firsts:
        gold = _norm(row["gold_text"]).split()
        had, left = _norm(pages[at].text), "" if gone[at] else _norm(texts[at])
        dropped += gone[at]
        kept, was = _overlap(gold, left), _overlap(gold, had)
        before, after, total = before + was, after + kept, total + len(gold)
        for snippet in row["without"]:
            if _norm(snippet) and _norm(snippet) in had:
                snippets += 1
                removed += _norm(snippet) not in left
        for line in _lines(pages[at].text):
            if line in chrome_of[at]:
                chrome += len(_norm(line).split())
                chrome_left += len(_norm(line).split()) * (_norm(line) in left)
    print(f"{len(firsts)} pages with gold text, {dropped} dropped; of {before:,} gold words "
          f"{before - after:,} lost ({(before - after) / before:.3%}); of {snippets} `without` "
          f"snippets {removed} removed ({removed / snippets:.1%}); of {chrome:,} words of chrome "
          f"{1 - chrome_left / chrome:.1%} removed")  # fmt: skip


def _grams(text):
    words = text.split()
    return {tuple(words[i : i + 4]) for i in range(len(words) - 3)}


def _inside(line, gold, grams):
    """Whether a line is of the gold text: it stands there, or a fifth of its 4-grams do."""
    mine = _grams(line)
    return line in gold or (mine and 5 * len(mine & grams) > len(mine))


def _overlap(gold, text):
    return sum((Counter(gold) & Counter(text.split())).values())


def marks():
    """Real pages marked by hand: one municipality's, line by line (marks/helsingborg.jsonl)."""
    path = ROOT / "benchmarks" / "marks" / "helsingborg.jsonl"
    pages, sites = _helsingborg()
    table = inject.run_stage(STAGE, pages)
    texts = inject.cut(STAGE, pages, table)
    found, gone = marked(table, len(pages))
    words = [len(inject.WORD.findall(p.text)) for p in pages]
    left = [0 if gone[i] else len(inject.WORD.findall(t)) for i, t in enumerate(texts)]
    print(f"{len(pages)} pages of {sites} sites: {found.sum()} template pages, {gone.sum()} "
          f"removed; {sum(words):,} words, {sum(left):,} left")  # fmt: skip
    if not path.exists():
        print("no marks yet")
        return
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    by_line = defaultdict(set)
    for i, page in enumerate(pages):
        for line in _lines(page.text):
            by_line[_digest(line)].add(i)
    sums = defaultdict(int)
    lost = Counter()
    for row in rows:  # the page that has most of its lines: extraction may have changed since
        votes = Counter(i for digest in row["lines"] for i in by_line[digest])
        page = min(votes, key=lambda i: (-votes[i], i))
        kept = set() if gone[page] else {_digest(line) for line in _lines(texts[page])}
        for line in _lines(pages[page].text):
            side = row["lines"].get(_digest(line))
            if side:
                size = len(inject.WORD.findall(line))
                sums[side, "all"] += size
                sums[side, "left"] += size * (_digest(line) in kept)
                if side == "a" and _digest(line) not in kept:
                    lost[("page" if gone[page] else "line", pages[page].host)] += size
    print(f"article words lost, by what took them: {dict(lost)}")
    b, a = sums["b", "all"], sums["a", "all"]
    removed, kept = 1 - sums["b", "left"] / b, sums["a", "left"] / a
    print(f"{len(rows)} marked pages: of {b:,} words of boilerplate {removed:.1%} removed; "
          f"of {a:,} article words {kept:.2%} kept")  # fmt: skip


def _digest(line):
    return hashlib.sha256(" ".join(line.split()).encode()).hexdigest()[:16]


def _helsingborg():
    """Main text of the municipality's pages, as `main_text` reads them."""
    from gristmill.documents.records import Draft, Locator, Record
    from gristmill.pipelines.convert.main_text import MainText

    rows = inject.read_jsonl(DATA / "b-html-templated-helsingborg" / "develop.jsonl.gz")
    pages = []
    for row in rows:
        raw = row["html"].encode() if "html" in row else base64.b64decode(row["html_b64"])
        record = Record(locator=Locator("x", 0), body=raw, charset="utf-8", url=row["url"])
        drafts = [d for d in MainText()(iter([record])) if isinstance(d, Draft)]
        pages += [inject.Page(d.text, row["url"], row["site"]) for d in drafts]
    return pages, len({p.host for p in pages})


def negatives():
    """Pages that look alike and are no template pages: false removals per 1,000, lines cut."""
    print("kind                     pages  removed  per 1,000  words cut")
    total = removed = 0
    for kind, found in hard.negatives(DATA).items():
        pages = hard.pages_of(kind, found)
        table = inject.run_stage(STAGE, pages)
        _, gone = marked(table, len(pages))
        texts = inject.cut(STAGE, pages, table)
        words = sum(len(inject.WORD.findall(t)) for t in found)
        left = [
            len(inject.WORD.findall(_body(t))) for t, g in zip(texts, gone, strict=True) if not g
        ]
        whole = sum(len(inject.WORD.findall(t)) for t, g in zip(found, gone, strict=True) if not g)
        print(f"{kind:22} {len(pages):7,} {gone.sum():8} {1000 * gone.mean():10.1f} "
              f"{(whole - sum(left)) / words:10.3%}")  # fmt: skip
        total, removed = total + len(pages), removed + gone.sum()
        for i in np.flatnonzero(gone)[:3] if os.environ.get("SHOW") else ():
            print("   ", repr(pages[i].text[:300]))
    print(f"all {total:,} pages: {1000 * removed / total:.2f} per 1,000")


def _body(text):
    """A page without the header and footer that `pages_of` gave it."""
    lines = text.split("\n")
    lines = lines[1:] if lines[0].startswith("Home · Index") else lines
    return "\n".join(x for x in lines if not x.startswith("All rights reserved. Read our"))


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


def sets():
    """What is removed of sets that hold copies, revisions and articles; the notes say why."""
    for name, path, host in (
        ("PEP revisions", "d-dup-pep-revisions/develop.jsonl.gz", "peps.example"),
        ("planted article pairs", "d-dup-minhash-articles/articles_1000.jsonl.gz", "a.example"),
        ("encyclopaedia, one host", "c-encyclopedia-enwiki/develop.jsonl.gz", "wiki.example"),
        ("encyclopaedia, a host each", "c-encyclopedia-enwiki/develop.jsonl.gz", None),
    ):
        rows = inject.read_jsonl(DATA / path)
        pages = [
            inject.Page(r["text"], f"https://{host or i}/{i}", host or f"h{i}.example")
            for i, r in enumerate(rows)
        ]
        table = inject.run_stage(STAGE, pages)
        found, gone = marked(table, len(pages))
        texts = inject.cut(STAGE, pages, table)
        words = sum(len(inject.WORD.findall(p.text)) for p in pages)
        cut = Counter()
        for page, text, g in zip(pages, texts, gone, strict=True):
            if not g and text != page.text:
                cut.update((Counter(_lines(page.text)) - Counter(_lines(text))).elements())
        lost = sum(len(inject.WORD.findall(line)) * n for line, n in cut.items())
        print(f"{name}: {len(pages):,} pages, {found.sum()} template pages, {gone.sum()} removed; "
              f"{sum(cut.values()):,} lines cut ({lost / words:.3%} of words): "
              f"{[(line[:40], n) for line, n in cut.most_common(5)]}")  # fmt: skip
        if os.environ.get("SHOW"):
            told = dict(zip(inject.page_of(table).tolist(), table.to_pylist(), strict=True))
            for i in np.flatnonzero(found)[:12]:
                print(
                    "   ",
                    {
                        k: told[i][k]
                        for k in ("words", "template_words", "own_words", "cluster_size")
                    },
                    repr(pages[i].text[:160]),
                )


def labels():
    """Agreement with the `templ` labels: of single pages, by a reader who saw no sibling."""
    import csv

    with (DATA / "labels" / "web_pages.csv").open() as file:
        judged = {r["id"]: r for r in csv.DictReader(file)}
    pages, marks_ = [], []
    for row in inject.read_jsonl(DATA / "labels" / "web_pages.jsonl.zst"):
        label = judged[row["id"]]
        pages.append(
            inject.Page(row["text"], f"https://{label['site']}/{row['id']}", label["site"])
        )
        marks_.append(int(label["templ"]))
    marks_ = np.array(marks_)
    table = inject.run_stage(STAGE, pages)
    found, _ = marked(table, len(pages))
    texts = inject.cut(STAGE, pages, table)
    touched = np.array([t != p.text for p, t in zip(pages, texts, strict=True)])
    hosts = Counter(p.host for p in pages)
    many = np.array([hosts[p.host] >= 4 for p in pages])
    print(f"{len(pages):,} pages of {len(hosts):,} sites; {many.sum()} stand beside three others")
    print("templ  pages  template pages  lines cut  on sites of 4 and more: pages, lines cut")
    for value in range(3):
        mine = marks_ == value
        print(f"{value:5} {mine.sum():6} {(found & mine).sum():15} {(touched & mine).sum():10} "
              f"{(many & mine).sum():12} {(touched & mine & many).sum():10}")  # fmt: skip
    ruled = Templates(lone="line_rules")
    texts = inject.cut(ruled, pages, inject.run_stage(ruled, pages))
    few = np.array([hosts[p.host] < ruled.line_pages for p in pages])
    size = np.array([len(inject.WORD.findall(p.text)) for p in pages])
    left = np.array([len(inject.WORD.findall(t)) for t in texts])
    print(f"lone: line_rules, {few.sum():,} pages of hosts of fewer than {ruled.line_pages}: lines "
          f"cut on {(few & (left < size)).sum()}, {(size - left)[few].sum() / size[few].sum():.3%} "
          "of words")  # fmt: skip


def rules():
    """`line_rules` on lines that people labelled clean or noise (a label a line, by language)."""
    rows = inject.read_jsonl(DATA / "c-line-noise-turku" / "lines.jsonl.gz")
    sums = defaultdict(lambda: np.zeros(2, np.int64))
    for row in rows:
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
        "survey (scatter)": _best(lambda: STAGE.scatter(documents)),
        "apply (cut)": _best(lambda: STAGE.cut(batch, table, at)),
        "beside them: near_duplicates' survey": _best(lambda: near.measure(batch)),
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


def _best(function, times=5):
    """CPU seconds of the fastest call."""
    function()
    spent = []
    for _ in range(times):
        start = time.process_time()
        function()
        spent.append(time.process_time() - start)
    return min(spent)


def memory(pages=1_000_000, partitions=16, batch=20_000):
    """A million pages of one host, half of one family: peak memory with the exchange on disk."""
    import resource
    import tempfile

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
    del resource


def _rss():
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


PARTS = {
    f.__name__: f
    for f in (injected, crawls, siblings, marks, sets, labels, negatives, rules, speed, memory)
}

if __name__ == "__main__":
    for part in sys.argv[1:] or [p for p in PARTS if p != "memory"]:
        print(f"\n== {part}")
        PARTS[part]()
