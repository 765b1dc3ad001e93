"""Real pages under `templates`: chrome and articles by gold text, marks, labels; what must stay.

The parts of `templates.py` that read no injected family; each prints its own table.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections import Counter, defaultdict
from dataclasses import replace

import _negatives as hard
import _templates as inject
import numpy as np
from _templates import STAGE, marked
from _texts import DATA, ROOT, rows_of

from gristmill.filters.templates import Templates


def siblings():
    """WCXB: each page's whole text, among 30 siblings: the same chrome around other articles.

    Chrome is every line of the page's text of which at most a fifth stands in its gold text; a line
    of up to 3 words (an item of a menu, a word that the article has too) is chrome unless it stands
    within two lines of a longer one that is none.
    """
    from resiliparse.extract.html2text import extract_plain_text

    rows = rows_of(DATA / "b-html-wcxb" / "dev.jsonl.gz")
    rows = [r for r in rows if r.get("html") and r["gold_text"].strip()]
    articles = list(rows_of(DATA / "c-encyclopedia-enwiki" / "develop.jsonl.gz"))
    pages, firsts, chrome_of = [], [], {}
    for number, row in enumerate(rows):
        text = extract_plain_text(row["html"], main_content=False, alt_texts=False)
        gold = _norm(row["gold_text"])
        lines = _lines(text)
        grams = _grams(gold)
        inside = _of_gold(lines, gold, grams)
        body = [k for k, v in enumerate(inside) if v]
        if not body:
            continue
        head = [line for line, v in zip(lines[: body[0]], inside, strict=False) if not v]
        tail = [line for line, v in zip(lines[body[0] :], inside[body[0] :], strict=True) if not v]
        host = f"w{number}.example"
        chrome_of[len(pages)] = {line for line, v in zip(lines, inside, strict=True) if not v}
        firsts.append((len(pages), row))
        for k in range(31):
            at = (31 * number + k) % len(articles)
            # The page itself must not be the one that keeps its chrome: one sibling says more.
            most = len(text.split()) if k == 1 else 0
            other = _lines(articles[at]["text"])
            while sum(len(x.split()) for x in other) < most:
                at = (at + 1) % len(articles)
                other += _lines(articles[at]["text"])
            whole = text if k == 0 else "\n".join([*head, *other, *tail])
            pages.append(inject.Page(whole, f"https://{host}/{k}", host))
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


def _lines(text):
    return [line.strip() for line in text.split("\n") if line.strip()]


def _norm(text):
    return " ".join(inject.WORD.findall(text.lower()))


def _grams(text):
    words = text.split()
    return {tuple(words[i : i + 4]) for i in range(len(words) - 3)}


def _of_gold(lines, gold, grams):
    """Of each line whether it is of the gold text."""
    inside = [_inside(_norm(line), gold, grams) for line in lines]
    long = [v and len(_norm(x).split()) > 3 for x, v in zip(lines, inside, strict=True)]
    return [v and any(long[max(0, i - 2) : i + 3]) for i, v in enumerate(inside)]


def _inside(line, gold, grams):
    """Whether a line is of the gold text: it stands there, or a fifth of its 4-grams do."""
    mine = _grams(line)
    return line in gold or (mine and 5 * len(mine & grams) > len(mine))


def _overlap(gold, text):
    return sum((Counter(gold) & Counter(text.split())).values())


def marks(shares=(STAGE.line_share, "0.5", "0.05")):
    """Real pages marked by hand: one municipality's, line by line (marks/helsingborg.jsonl)."""
    path = ROOT / "benchmarks" / "marks" / "helsingborg.jsonl"
    pages, sites = _helsingborg()
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    by_line = defaultdict(set)
    for i, page in enumerate(pages):
        for line in _lines(page.text):
            by_line[_digest(line)].add(i)
    words = sum(len(inject.WORD.findall(p.text)) for p in pages)
    for share in shares:
        stage = replace(STAGE, line_share=share)
        table = inject.run_stage(stage, pages)
        texts = inject.cut(stage, pages, table)
        found, gone = marked(table, len(pages))
        left = sum(len(inject.WORD.findall(t)) for t, g in zip(texts, gone, strict=True) if not g)
        print(f"line_share {share}: {len(pages)} pages of {sites} sites: {found.sum()} template "
              f"pages, {gone.sum()} removed; {words:,} words, {left:,} left")  # fmt: skip
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

    pages = []
    for row in rows_of(DATA / "b-html-templated-helsingborg" / "develop.jsonl.gz"):
        raw = row["html"].encode() if "html" in row else base64.b64decode(row["html_b64"])
        record = Record(locator=Locator("x", 0), body=raw, charset="utf-8", url=row["url"])
        drafts = [d for d in MainText()(iter([record])) if isinstance(d, Draft)]
        pages += [inject.Page(d.text, row["url"], row["site"]) for d in drafts]
    return pages, len({p.host for p in pages})


def negatives():
    """Pages that look alike and are no template pages: false removals per 1,000, lines cut.

    `60 own`: of those removed, how many have 60 words that the page kept which is most like them
    lacks; with fewer a page of an injected family counts as a template page.
    """
    print("kind                     pages  removed  per 1,000  60 own  lines cut  words cut")
    total = removed = unlike = 0
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
        cut = Counter()
        for had, text, g in zip(found, texts, gone, strict=True):
            cut += Counter() if g else Counter(_lines(had)) - Counter(_lines(text))
        own_words = _own_words(found, gone)
        own = [o for o in own_words if o >= 60]
        print(f"{kind:22} {len(pages):7,} {gone.sum():8} {1000 * gone.mean():10.1f} {len(own):7} "
              f"{cut.total():10,} {(whole - sum(left)) / words:10.3%}")  # fmt: skip
        total, removed, unlike = total + len(pages), removed + gone.sum(), unlike + len(own)
        shown = sorted(zip(own_words, np.flatnonzero(gone), strict=True), reverse=True)[:3]
        for number, i in shown if os.environ.get("SHOW") else ():
            print("   ", number, "own words:", repr(found[i][:300]))
    print(f"all {total:,} pages: {1000 * removed / total:.2f} per 1,000; with 60 own words "
          f"{unlike} ({1000 * unlike / total:.2f} per 1,000)")  # fmt: skip


def _own_words(texts, gone):
    """Of each text that goes, how many words the one that stays and lacks fewest of them lacks."""
    bags = [Counter(w.lower() for w in inject.WORD.findall(t)) for t in texts]
    stay = np.flatnonzero(~gone)
    return [min((bags[i] - bags[j]).total() for j in stay) for i in np.flatnonzero(gone)]


def _body(text):
    """A page without the header and footer that `pages_of` gave it."""
    lines = text.split("\n")
    lines = lines[1:] if lines[0].startswith("Home · Index") else lines
    return "\n".join(x for x in lines if not x.startswith("All rights reserved. Read our"))


def sets():
    """What is removed of sets that hold copies, revisions and articles; the notes say why."""
    for name, path, host in (
        ("PEP revisions", "d-dup-pep-revisions/develop.jsonl.gz", "peps.example"),
        ("planted article pairs", "d-dup-minhash-articles/articles_1000.jsonl.gz", "a.example"),
        ("encyclopaedia, one host", "c-encyclopedia-enwiki/develop.jsonl.gz", "wiki.example"),
        ("encyclopaedia, a host each", "c-encyclopedia-enwiki/develop.jsonl.gz", None),
    ):
        pages = [
            inject.Page(r["text"], f"https://{host or i}/{i}", host or f"h{i}.example")
            for i, r in enumerate(rows_of(DATA / path))
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
    for row in rows_of(DATA / "labels" / "web_pages.jsonl.zst"):
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
