"""Injected templates: real pages with slots, filled from lists, beside real pages without.

A family is a real page of which a share of words are slots, single words or stretches of 2 to 8.
Each page fills them anew with numbers, dates, prices, names (titles of articles) or rare words, and
has 0 to 200 words of real prose of its own (sentences of one encyclopaedia article, in paragraphs
between two lines of the template). Truth: a page of a family with fewer than 60 words of its own
prose is a template page; all other pages are not.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from _texts import rows_of

from gristmill.documents.edits import apply_edits
from gristmill.documents.identity import shard_hash
from gristmill.documents.stage import checked_measure
from gristmill.filters.templates import Templates

STAGE = Templates()  # as it ships
WORD = re.compile(r"\w+")
MONTHS = ("January", "March", "April", "May", "June", "August", "October", "December")


@dataclass
class Page:
    text: str
    url: str
    host: str
    family: int = -1  # -1: of no template
    own: int = 0  # words of its own prose
    kind: str = ""  # of a page of no template
    spans: list = field(default_factory=list)  # own prose: the texts of its paragraphs

    @property
    def template(self):
        return self.family >= 0 and self.own < 60


class Material:
    """Real pages for templates, articles for prose, lists for slots."""

    def __init__(self, data, seed):
        self.draw = random.Random(seed)
        articles = list(rows_of(data / "c-encyclopedia-enwiki" / "develop.jsonl.gz"))
        web = list(rows_of(data / "labels" / "web_pages.jsonl.zst"))
        self.draw.shuffle(articles)
        self.draw.shuffle(web)
        # A page that serves as a template is no background, and an article gives one page prose.
        good = [
            w["text"]
            for w in web
            if 100 <= len(w["text"].split()) <= 1000 and w["text"].count("\n") >= 5
        ]
        half = len(good) // 2
        self.templates, self.background = good[:half], good[half:]
        self.articles = articles[:2000]
        self.prose = [p for p in (sentences(a["text"]) for a in articles[2000:]) if p]
        titles = [a["title"] for a in articles]
        words = Counter(w for a in articles for w in set(WORD.findall(a["text"])))
        self.names = [
            t for t in titles if re.fullmatch(r"[A-Z][\w .'-]+", t) and len(t.split()) <= 3
        ]
        self.rare = sorted(
            w for w, n in words.items() if w.isalpha() and w.islower() and len(w) > 4 and n <= 6
        )
        self.draw.shuffle(self.rare)
        self.next = 0

    def slot(self, draw, kind):
        """One fill of a kind."""
        if kind == "number":
            return str(draw.randrange(10 ** draw.randrange(1, 6)))
        if kind == "price":
            return f"${draw.randrange(1000)}.{draw.randrange(100):02d}"
        if kind == "date":
            return f"{draw.randrange(1, 29)} {draw.choice(MONTHS)} {draw.randrange(1950, 2026)}"
        if kind == "name":
            return draw.choice(self.names)
        return draw.choice(self.rare)

    def own_prose(self, words):
        """About `words` words of sentences of an article that no other page has."""
        out, count = [], 0
        while count < words:
            for sentence in self.prose[self.next % len(self.prose)]:
                size = len(WORD.findall(sentence))
                if count + size > words:
                    if (
                        words - count >= 8
                    ):  # the last one is cut, so that the length is what was asked
                        ends = [m.end() for m in WORD.finditer(sentence)]
                        out.append(sentence[: ends[words - count - 1]] + ".")
                    count = words
                    break
                out.append(sentence)
                count += size
            self.next += 1
        return out


def sentences(text):
    return [s for s in re.split(r"(?<=[.!?])\s+", text.replace("\n", " ")) if len(s.split()) >= 5]


def slots_of(draw, text, share, single):
    """Places of slots: (first byte, byte after, kind), disjoint, covering `share` of the words."""
    words = [(m.start(), m.end()) for m in WORD.finditer(text)]
    wanted = max(1, round(share * len(words)))
    taken = [False] * len(words)
    found = []
    while wanted > 0:
        size = 1 if single else min(draw.randrange(2, 9), max(int(wanted), 2))
        at = draw.randrange(max(1, len(words) - size))
        span = range(at, min(at + size, len(words)))
        if any(taken[i] for i in span) or "\n" in text[words[span[0]][0] : words[span[-1]][1]]:
            wanted -= 0.01
            continue
        for i in span:
            taken[i] = True
        wanted -= len(span)
        kind = (
            draw.choice(["number", "price", "date", "name", "rare"])
            if not single
            else draw.choice(["number", "name", "name", "rare"])
        )
        found.append((words[span[0]][0], words[span[-1]][1], kind, len(span)))
    return sorted(found)


def family(material, number, *, pages, share, single, hosts, prose=(0, 200), draw=None):
    """The pages of one family."""
    draw = draw or material.draw
    base = material.templates[number % len(material.templates)]
    slots = slots_of(draw, base, share, single)
    for i in range(pages):
        parts, read = [], 0
        for start, end, kind, size in slots:
            fill = material.slot(draw, kind)
            if single:
                fill = fill.split()[0] if kind != "price" else fill
            elif kind == "rare":
                fill = " ".join(material.slot(draw, kind) for _ in range(size))
            parts += [base[read:start], fill]
            read = end
        text = "".join([*parts, base[read:]])
        own = material.own_prose(draw.randrange(prose[0], prose[1] + 1)) if prose[1] else []
        lines = text.split("\n")
        blocks = []
        while own:
            size = draw.randrange(2, 5)
            blocks.append(" ".join(own[:size]))
            own = own[size:]
        at = draw.randrange(len(lines) + 1)
        lines[at:at] = blocks
        host = f"f{number}-{i % hosts}.example"
        yield Page(
            text="\n".join(lines),
            url=f"https://{host}/{number}/{i}",
            host=host,
            family=number,
            own=sum(len(WORD.findall(b)) for b in blocks),
            spans=blocks,
        )


def background(material):
    """Real pages of no template: articles of an encyclopaedia on one host, pages of the web."""
    for i, article in enumerate(material.articles):
        yield Page(article["text"], f"https://wiki.example/{i}", "wiki.example", kind="article")
    for i, text in enumerate(material.background):
        yield Page(text, f"https://b{i}.example/", f"b{i}.example", kind="web")


def run_stage(stage, pages, *, shards=4):
    """Run the stage over pages in memory, as `pipelines` does: its decisions as a table."""
    by_shard = [list(range(s, len(pages), shards)) for s in range(shards)]
    hashes = {shard_hash(f"s{s}"): s for s in range(shards)}

    def texts(shard, row):
        rows = zip(shard.tolist(), row.tolist(), strict=True)
        return pa.array([pages[by_shard[hashes[s]][r]].text for s, r in rows], pa.large_string())

    tables = []
    for name, s in hashes.items():
        rows = by_shard[s]
        documents = documents_of(stage, [pages[i] for i in rows], name, ids=rows)
        tables.append(stage.scatter(documents))
    rows = pa.concat_tables(tables)
    for step in stage.rounds:
        rows = step.gather(rows, texts)
    return rows


def documents_of(stage, pages, shard, *, ids=None, first=0):
    """What `scatter` takes: KEY, RANK, the survey's scores and texts."""
    batch = batch_of(pages)
    rows = np.arange(first, first + len(pages)) if ids is None else np.arange(len(pages))
    ids = rows.tolist() if ids is None else ids
    columns = {
        "shard": pa.array(np.full(len(pages), shard, np.uint64)),
        "id": pa.array([i.to_bytes(16, "big") for i in ids], pa.binary(16)),
        "row": pa.array(rows.astype(np.uint32)),
        "priority": pa.array(np.zeros(len(pages), np.uint16)),
        "quality": pa.array(np.full(len(pages), -1, np.int32)),
        "bytes": pa.array([len(p.text.encode()) for p in pages], pa.uint32()),
    }
    scores = checked_measure(stage.survey, batch).scores
    return pa.table(
        columns | {k: pa.array(v) for k, v in scores.items()} | {"text": batch.column("text")}
    )


def batch_of(pages):
    """A batch of documents."""
    return pa.record_batch({
        "text": pa.array([p.text for p in pages], pa.large_string()),
        "url": pa.array([p.url for p in pages], pa.string()),
        "host": pa.array([p.host for p in pages], pa.string()),
    })  # fmt: skip


def page_of(table):
    """The page number of each decision."""
    return np.array([int.from_bytes(i, "big") for i in table.column("id").to_pylist()], np.int64)


def marked(table, size):
    """bool[pages]: template pages, exemplars included; bool[pages]: removed."""
    page = page_of(table)
    is_template, gone = np.zeros(size, bool), np.zeros(size, bool)
    gone[page] = table.column("code").to_numpy() != 0
    is_template[page] = gone[page] | table.column("exemplar").to_numpy(zero_copy_only=False)
    return is_template, gone


def cut(stage, pages, table):
    """The texts of all pages with their boilerplate cut."""
    order = np.argsort(page_of(table), kind="stable")
    table = table.take(pa.array(order))
    batch = batch_of(pages)
    measured = stage.cut(batch, table, page_of(table))
    return apply_edits(batch.column("text"), measured.edits).to_pylist()
