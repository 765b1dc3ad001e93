"""Which documents there are, and what is planted in which of them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from generator import planted, prose
from generator.grammar import Dice
from generator.pages import HOSTS, Page, chrome, plain, slug, templated
from generator.prose import LANGUAGES, Document

LEVELS = (95, 85, 70, 50)  # percent of shared word 5-grams that near duplicates start from
WET_FILE = "wet/pages-00000.wet.gz"
ARTICLES = "encyclopedia/articles.parquet"
NOTES = "books/notes.jsonl.zst"
Ref = dict[str, str]


@dataclass
class Corpus:
    """Documents by file, and the facts about them, gathered while they are made."""

    web: list[Page] = field(default_factory=list)
    wet: list[tuple[str, str, str]] = field(default_factory=list)  # url, text, language
    articles: list[tuple[str, Document]] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)  # id, text
    facts: dict[str, Any] = field(default_factory=dict)
    free: list[int] = field(default_factory=list)  # pages of `web` that nothing is planted in

    def take(self, dice: Dice, kind: str) -> int:
        """Reserve a page of a kind that nothing is planted in yet."""
        fit = [index for index in self.free if self.web[index].document.kind == kind]
        index = dice.pick(fit)
        self.free.remove(index)
        return index


def web_pages(dice: Dice) -> list[Page]:
    """All pages of the twelve hosts, before anything is planted."""
    makers = {"recipe": prose.recipe, "thread": prose.thread, "documentation": prose.manual}
    pages = []
    for host, about in HOSTS.items():
        for number in range(about["pages"]):
            kind = about["kind"]
            if kind == "template":
                pages.append(templated(dice, host, number))
                continue
            if kind == "foreign":
                code = LANGUAGES[number % len(LANGUAGES)]
                document = prose.foreign(dice, code)
                path = f"{code}/{number // len(LANGUAGES) + 1}"
            else:
                if kind in makers:
                    document = makers[kind](dice)
                elif kind == "spam":
                    document = prose.spam(dice)
                elif kind == "thin":
                    document = prose.thin(dice, number)
                else:
                    document = prose.prose(dice, kind)
                path = f"{kind}/{number + 1}/{slug(document.title)}"
            pages.append(Page(f"https://{host}/{path}", document))
    return pages


def build(dice: Dice) -> Corpus:
    """Make all documents that facts are planted in."""
    corpus = Corpus(web=web_pages(dice))
    corpus.free = list(range(len(corpus.web)))
    for number in range(80):
        kind = dice.pick(["article", "blog", "news", "documentation"])
        document = prose.prose(dice, kind)
        town = prose.Writer(dice).place().lower()
        corpus.wet.append((f"https://{town}.example/{number}", document.text, "en"))
    for number in range(48):
        code = LANGUAGES[number % len(LANGUAGES)]
        text = prose.foreign(dice, code).text
        corpus.wet.append((f"https://{code}.pages.example/{number}", text, code))
    for number in range(90):
        document = prose.prose(dice, "article")
        corpus.articles.append((f"en-{number:04d}", document))
    for number in range(64):
        code = LANGUAGES[number % len(LANGUAGES)]
        corpus.articles.append((f"{code}-{number:04d}", prose.foreign(dice, code)))
    for number in range(10):
        corpus.notes.append((f"note-{number}", prose.prose(dice, "blog").text))
    _exact(dice, corpus)
    _near(dice, corpus)
    _personal(dice, corpus)
    _benchmark(dice, corpus)
    _copies(dice, corpus)
    _listed(corpus)
    return corpus


def _exact(dice: Dice, corpus: Corpus) -> None:
    groups: list[dict[str, Any]] = []

    def group(text: str, *members: tuple[str, str]) -> None:
        digest = hashlib.sha256(text.encode()).hexdigest()
        refs = [{"file": file, "id": name} for file, name in members]
        groups.append({"sha256": digest, "members": refs})

    first = corpus.web[corpus.take(dice, "article")]
    twin = Page(f"https://world.lantern.example/en/{slug(first.document.title)}", first.document)
    corpus.web.append(twin)
    group(first.document.text, ("web", first.url), ("web", twin.url))

    second = corpus.web[corpus.take(dice, "article")]
    url = f"https://mirror.example/{slug(second.document.title)}"
    corpus.wet.append((url, second.document.text, "en"))
    group(second.document.text, ("web", second.url), (WET_FILE, url))

    third = corpus.web[corpus.take(dice, "thread")]
    url = f"https://reposts.example/{slug(third.document.title)}"
    corpus.wet.append((url, third.document.text, "en"))
    corpus.notes.append(("note-copy-of-thread", third.document.text))
    members = (("web", third.url), (WET_FILE, url), (NOTES, "note-copy-of-thread"))
    group(third.document.text, *members)

    url, text, code = corpus.wet[3]
    again = url.replace(".example", "-again.example")
    corpus.wet.append((again, text, code))
    group(text, (WET_FILE, url), (WET_FILE, again))

    name, article = corpus.articles[5]
    corpus.notes.append(("note-copy-of-article", article.text))
    group(article.text, (ARTICLES, name), (NOTES, "note-copy-of-article"))

    for note in ("note-short-a", "note-short-b"):
        corpus.notes.append((note, "Back soon, tea first."))
    group("Back soon, tea first.", (NOTES, "note-short-a"), (NOTES, "note-short-b"))
    corpus.facts["exact_duplicates"] = groups


def _pair(left: Ref, right: Ref, texts: tuple[str, str], level: int | None) -> dict[str, Any]:
    shared, either = planted.overlap(*texts)
    row: dict[str, Any] = {"a": left, "b": right, "shared": shared, "either": either}
    return {**row, "jaccard": round(shared / either, 4), **({"level": level} if level else {})}


def _near(dice: Dice, corpus: Corpus) -> None:
    pairs = []
    for level in LEVELS:
        page = corpus.web[corpus.take(dice, "article")]
        copy = planted.near(dice, page.document, level, "history")
        url = f"https://world.lantern.example/en/{level}/{slug(page.document.title)}"
        corpus.web.append(Page(url, copy))
        refs = {"file": "web", "id": page.url}, {"file": "web", "id": url}
        pairs.append(_pair(*refs, (page.document.text, copy.text), level))

        document = prose.prose(dice, "news", "sailing")
        copy = planted.near(dice, document, level, "sailing")
        urls = [f"https://{name}.example/sailing/{level}" for name in ("quay", "pier")]
        corpus.wet += [(urls[0], document.text, "en"), (urls[1], copy.text, "en")]
        refs = {"file": WET_FILE, "id": urls[0]}, {"file": WET_FILE, "id": urls[1]}
        pairs.append(_pair(*refs, (document.text, copy.text), level))

        name, document = corpus.articles[10 + level // 5]
        copy = planted.near(dice, document, level, "geography")
        corpus.articles.append((f"{name}-near-{level}", copy))
        refs = {"file": ARTICLES, "id": name}, {"file": ARTICLES, "id": f"{name}-near-{level}"}
        pairs.append(_pair(*refs, (document.text, copy.text), level))
    chain = [prose.prose(dice, "article", "music")]
    chain += [planted.near(dice, chain[0], 86, "music")]
    chain += [planted.near(dice, chain[1], 86, "music")]
    names = [f"chain-{letter}" for letter in "abc"]
    corpus.articles += list(zip(names, chain, strict=True))
    for i, j in ((0, 1), (1, 2), (0, 2)):
        refs = {"file": ARTICLES, "id": names[i]}, {"file": ARTICLES, "id": names[j]}
        pairs.append(_pair(*refs, (chain[i].text, chain[j].text), None))
    corpus.facts["near_duplicates"] = pairs


def _plant(dice: Dice, corpus: Corpus, kind: str, sentence: str, at: int = 1) -> Ref:
    index = corpus.take(dice, kind)
    page = corpus.web[index]
    page.document = planted.insert(page.document, sentence, at)
    return {"file": "web", "id": page.url}


def _personal(dice: Dice, corpus: Corpus) -> None:
    rows = []
    items = [("email", value, "Write to {} if you want the drawings.") for value in planted.EMAILS]
    items += [("phone", value, "Call {} in the evening, please.") for value in planted.PHONES]
    items += [
        ("ip", value, "The old server still answers at {} on most days.")
        for value in planted.ADDRESSES
    ]
    for number, (kind, value, frame) in enumerate(items):
        place = ("thread", "blog", "news")[number % 3]
        ref = _plant(dice, corpus, place, frame.format(value))
        rows.append({**ref, "kind": kind, "value": value})
    corpus.facts["personal_data"] = rows


def _benchmark(dice: Dice, corpus: Corpus) -> None:
    rows = []
    (one, question, answer), (two, short, reply) = planted.BENCHMARK[0], planted.BENCHMARK[1]
    ref = _plant(dice, corpus, "blog", f"{question} The answer is {answer}.")
    rows.append({**ref, "item": one, "form": "question and answer, word for word"})
    ref = _plant(dice, corpus, "thread", f"{short} {reply}, I believe.")
    rows.append({**ref, "item": two, "form": "a question of ten words, and its answer"})
    three, question, _ = planted.BENCHMARK[3]
    changed = question.upper().replace("?", " ...").replace(".", ";")
    ref = _plant(dice, corpus, "news", f"{changed} Readers may write to us.")
    rows.append({**ref, "item": three, "form": "capitals and other punctuation"})
    four, question, answer = planted.BENCHMARK[5]
    url, text, code = corpus.wet[11]
    corpus.wet[11] = (url, f"{text}\n\n{question} {answer}.", code)
    rows.append({"file": WET_FILE, "id": url, "item": four, "form": "at the end of a page"})
    corpus.facts["benchmark"] = rows


def _copies(dice: Dice, corpus: Corpus) -> None:
    """Some pages of the WARC files stand in the WET too, with all that is around them."""
    rows = []
    for _ in range(24):
        page = corpus.web[corpus.take(dice, dice.pick(["article", "news", "blog", "template"]))]
        text = plain(page)
        corpus.wet.append((page.url, text.rstrip("\n"), page.document.language))
        refs = {"file": "web", "id": page.url}, {"file": WET_FILE, "id": page.url}
        rows.append(_pair(*refs, (page.document.text, text), None))
    corpus.facts["page_copies"] = rows


def _listed(corpus: Corpus) -> None:
    """Facts that follow from what kind of page each one is."""
    pages = corpus.web
    corpus.facts["boilerplate"] = [
        {
            "host": host,
            "line": line,
            "place": place,
            "pages": sum(page.host == host for page in pages),
        }
        for host in HOSTS
        for place, line in chrome(host)
    ]
    of_kind = {
        kind: sorted(page.url for page in pages if page.document.kind == kind)
        for kind in ("spam", "links", "stub", "filler", "bullets")
    }
    corpus.facts["spam"] = of_kind.pop("spam")
    corpus.facts["thin"] = of_kind
