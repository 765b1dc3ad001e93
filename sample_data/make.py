"""Make the sample data: `python sample_data/make.py [--out FOLDER]`.

Everything comes from one seed. The committed files are the truth: another zlib, zstd or Arrow may
pack the same content into other bytes, and then offsets in `facts.json` differ too.
"""

from __future__ import annotations

import argparse
import json
import re
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import brotli
from generator import agents, formats, planted, prose
from generator.corpus import ARTICLES, NOTES, WET_FILE, Corpus, build
from generator.grammar import Dice
from generator.pages import TEMPLATES, Page, render, slug
from generator.prose import LANGUAGES

SEED = "gristmill sample data 1"
DATE = "2024-08-14T09:30:00Z"
LICENSE = "Apache-2.0"
HERE = Path(__file__).resolve().parent
ENCODINGS = (  # language, charset, where it is declared, Content-Encoding, Transfer-Encoding
    ("de", "windows-1252", "header", "", ""),
    ("ru", "windows-1251", "meta", "", ""),
    ("ja", "shift_jis", "header", "", ""),
    ("zh", "gb18030", "header", "", "chunked"),
    ("fr", "utf-8", "header", "gzip", ""),
    ("es", "utf-8", "header", "br", ""),
    ("ar", "utf-8", "header", "", "chunked"),
)
OTHERS = (  # responses that are no documents: path, status, type, body
    ("old-front-page", "301 Moved Permanently", "text/html", b"", ("Location: /",)),
    ("gone", "404 Not Found", "text/html", b"<h1>Not found</h1><p>There is no such page.</p>", ()),
    ("logo.png", "200 OK", "image/png", b"\x89PNG\r\n\x1a\n" + bytes(range(256)), ()),
    ("map.pdf", "200 OK", "application/pdf", b"%PDF-1.4\n% no page\n%%EOF\n", ()),
)


def respond(page: Page, coded: tuple[str, ...] | None) -> bytes:
    """The response of a page, coded as one of ENCODINGS says."""
    if coded is None:
        return formats.http(render(page).encode())
    _, charset, where, content, transfer = coded
    body = render(page, charset).encode(charset)
    extra: list[str] = []
    if content:
        body = formats.gzip_member(body) if content == "gzip" else brotli.compress(body)
        extra.append(f"Content-Encoding: {content}")
    if transfer:
        body = formats.chunked(body)
        extra.append("Transfer-Encoding: chunked")
    kind = f"text/html; charset={charset}" if where == "header" else "text/html"
    return formats.http(body, content_type=kind, extra=tuple(extra))


def write_web(out: Path, dice: Dice, corpus: Corpus, facts: dict[str, Any]) -> None:
    """Three WARC files; a member of the last has a flipped byte."""
    coded: dict[str, tuple[str, ...]] = {}
    facts["encodings"] = []
    for how in ENCODINGS:
        index = next(i for i in corpus.free if corpus.web[i].document.language == how[0])
        corpus.free.remove(index)
        url = corpus.web[index].url
        coded[url] = how
        names = ("charset", "declared_in", "content_encoding", "transfer_encoding")
        facts["encodings"].append({"url": url, **dict(zip(names, how[1:], strict=True))})
    victim = corpus.web[corpus.take(dice, "documentation")].url
    order = dice.some(corpus.web, len(corpus.web))
    facts["not_documents"] = []
    for number in range(3):
        name = f"web/pages-{number:05d}.warc.gz"
        warc = formats.Warc(dice, DATE)
        warc.info(name.partition("/")[2])
        pages = [page for page in order if page.url != victim][number::3]
        if number == 2:
            pages.insert(len(pages) // 2, next(page for page in order if page.url == victim))
        for page in pages:
            response = respond(page, coded.get(page.url))
            index = warc.exchange(page.url, response, seconds=dice.between(40, 900))
            if page.url == victim:
                start = sum(map(len, warc.members[:index]))
                warc.members[index], at = formats.flip_byte(warc.members[index])
                row = {"file": name, "url": victim, "offset": start, "flipped": start + at}
                facts["corrupt"] = {**row, "length": len(warc.members[index])}
        if number == 0:
            for path, status, kind, body, extra in OTHERS:
                url = f"https://news.harbourpost.example/{path}"
                response = formats.http(body, content_type=kind, status=status, extra=extra)
                warc.exchange(url, response, seconds=12)
                facts["not_documents"].append(
                    {"file": name, "url": url, "status": int(status[:3]), "type": kind}
                )
        (out / name).write_bytes(b"".join(warc.members))
        good = [page for page in pages if page.url != victim]
        book(facts, name, dict(warc.kinds), [(page.url, page.document.language) for page in good])
        if number == 2:
            facts["files"][name]["faults"] = 1


def write_truncated(out: Path, dice: Dice, facts: dict[str, Any]) -> None:
    """A WARC file whose last response breaks off."""
    name = "web/truncated.warc.gz"
    warc = formats.Warc(dice, DATE)
    warc.info("truncated.warc.gz")
    pages = []
    for number in range(8):
        document = prose.prose(dice, "article")
        url = f"https://encyclopedia.lantern.example/late/{number}/{slug(document.title)}"
        pages.append(Page(url, document))
    for page in pages:
        last = warc.exchange(page.url, respond(page, None), seconds=55)
    start = sum(map(len, warc.members[:last]))
    cut = start + len(warc.members[last]) * 2 // 5
    (out / name).write_bytes(b"".join(warc.members)[:cut])
    whole = [(page.url, "en") for page in pages[:-1]]
    kinds = {"warcinfo": 1, "request": 8, "response": 7, "metadata": 7}
    book(facts, name, kinds, whole)
    facts["files"][name]["faults"] = 1
    facts["truncated"] = {
        "file": name,
        "survive": [url for url, _ in whole],
        "cut": pages[-1].url,
        "offset": start,
        "bytes": cut,
    }


def write_wet(out: Path, dice: Dice, corpus: Corpus, facts: dict[str, Any]) -> None:
    """One WET file; a record in its middle claims more bytes than it has."""
    warc = formats.Warc(dice, DATE)
    warc.info("pages-00000.wet.gz")
    liar = next(url for url, _, _ in corpus.wet[70:] if url.endswith("/71"))
    good = []
    for url, text, code in dice.some(corpus.wet, len(corpus.wet)):
        body = (text + "\n").encode()
        headers = {"WARC-Target-URI": url, "Content-Type": "text/plain"}
        claim = len(body) + 4321 if url == liar else None
        if claim:
            facts["framing"] = {
                "file": WET_FILE,
                "url": url,
                "offset": warc.offset,
                "claimed": claim,
                "actual": len(body),
            }
        else:
            good.append((url, code))
        warc.add("conversion", headers, body, claim=claim)
    (out / WET_FILE).write_bytes(b"".join(warc.members))
    book(facts, WET_FILE, dict(warc.kinds), good)
    facts["files"][WET_FILE]["faults"] = 1


def write_books(out: Path, dice: Dice, facts: dict[str, Any]) -> None:
    """Long documents: books of chapters, and longer reads in every language."""
    books = [("book", prose.book(dice, size)) for size in (60_000, 42_000, 30_000, 24_000, 20_500)]
    books += [("story", prose.book(dice, dice.between(1500, 4500))) for _ in range(24)]
    books += [("reader", prose.foreign(dice, code, 30, 45)) for code in LANGUAGES * 2]
    lines, seen = [], []
    for number, (kind, document) in enumerate(books):
        name = f"{kind}-{number:02d}"
        author = prose.Writer(dice).person()
        row = {"id": name, "title": document.title, "author": author, "text": document.text}
        lines.append(formats.json_line({**row, "license": LICENSE, "language": document.language}))
        seen.append((name, document.language))
    formats.write_zstd(out / "books/books.jsonl.zst", lines)
    book(facts, "books/books.jsonl.zst", {"lines": len(lines)}, seen)


def write_notes(out: Path, corpus: Corpus, facts: dict[str, Any]) -> None:
    """Short notes, and among them every line that is not what it should be."""
    good = [formats.json_line({"id": name, "text": text}) for name, text in corpus.notes]
    marked = "The tag <|endoftext|> ends nothing here: it is three words between two bars. "
    story = [text.split("\n\n")[1] for _, text in corpus.notes[:3]]
    odd: list[tuple[str, bytes]] = [
        ("not_json", b'{"id": "note-torn", "text": "the line breaks off he\n'),
        ("not_object", b'["a list", "where an object should be"]\n'),
        ("text_not_string", b'{"id": "note-number", "text": 123}\n'),
        ("text_null", b'{"id": "note-null", "text": null}\n'),
        ("invalid_utf8", b'{"id": "note-bytes", "text": "\xff\xfe two bytes that are no UTF-8"}\n'),
        ("empty_text", formats.json_line({"id": "note-empty", "text": ""})),
        ("control_token", formats.json_line({"id": "note-token", "text": marked + story[0]})),
        ("nul", formats.json_line({"id": "note-nul", "text": f"before\0after. {story[1]}"})),
        (
            "lone_surrogate",
            b'{"id": "note-surrogate", "text": "half a pair \\ud83d and then '
            + json.dumps(story[2])[1:-1].encode()
            + b'"}\n',
        ),
    ]
    lines, facts["lines"] = [], []
    while good or odd:
        if good:
            lines.append(good.pop(0))
        if odd and len(lines) % 2:
            kind, line = odd.pop(0)
            lines.append(line)
            found = re.search(rb'"id": "([^"]+)"', line)
            name = found.group(1).decode() if found else None
            facts["lines"].append({"file": NOTES, "line": len(lines), "kind": kind, "id": name})
    formats.write_zstd(out / NOTES, lines)
    named = [row["id"] for row in facts["lines"][5:]]
    readable = [name for name, _ in corpus.notes] + named
    book(facts, NOTES, {"lines": len(lines)}, [(name, "en") for name in readable])
    facts["files"][NOTES]["faults"] = 5


def write_rest(out: Path, dice: Dice, corpus: Corpus, facts: dict[str, Any]) -> None:
    """Encyclopaedia, code repository, agent runs, benchmark."""
    rows = [
        {
            "id": name,
            "title": document.title,
            "text": document.text,
            "url": f"https://articles.lantern.example/{name}",
            "language": document.language,
            "license": LICENSE,
            "date": f"2024-0{dice.between(1, 7)}-{dice.between(10, 28)}",
        }
        for name, document in corpus.articles
    ]
    formats.write_parquet(out / ARTICLES, rows)
    book(facts, ARTICLES, {"rows": len(rows)}, [(row["id"], row["language"]) for row in rows])
    kinds = {"py": "Python", "md": "Markdown", "toml": "TOML", "csv": "CSV"}
    code = [
        {
            "id": f"millpond/granary:{path}",
            "repo": "millpond/granary",
            "commit": "3f0c9a7e51d24b86a7c0e2d19b5f48c6a1e7d035",
            "path": path,
            "license": LICENSE,
            "language": kinds[path.rpartition(".")[2]],
            "text": text,
        }
        for path, text in prose.repository()
    ]
    write_gzip(out / "code/repository.jsonl.gz", code)
    book(facts, "code/repository.jsonl.gz", {"lines": len(code)}, [])
    runs = [agents.trajectory(dice, case, variant) for case in agents.CASES for variant in range(4)]
    write_gzip(out / "agent/trajectories.jsonl.gz", runs)
    book(facts, "agent/trajectories.jsonl.gz", {"lines": len(runs)}, [])
    facts["agent_runs"] = {
        "outcomes": dict(sorted(Counter(run["outcome"] for run in runs).items())),
        "near_identical": [],
    }
    for first, second in zip(runs[::4], runs[1::4], strict=True):
        shared, either = planted.overlap(agents.rendered(first), agents.rendered(second))
        row = {"a": first["id"], "b": second["id"], "shared": shared, "either": either}
        facts["agent_runs"]["near_identical"].append({**row, "jaccard": round(shared / either, 4)})
    items = [
        dict(zip(("id", "question", "answer"), item, strict=True)) for item in planted.BENCHMARK
    ]
    (out / "benchmark.jsonl").write_bytes(b"".join(map(formats.json_line, items)))
    book(facts, "benchmark.jsonl", {"lines": len(items)}, [])


def write_gzip(path: Path, rows: list[dict[str, Any]]) -> None:
    """JSON lines in one gzip member."""
    path.write_bytes(formats.gzip_member(b"".join(map(formats.json_line, rows))))


def book(
    facts: dict[str, Any], name: str, records: dict[str, int], seen: list[tuple[str, str]]
) -> None:
    """Note what a file holds: records by kind, documents that a reader should give."""
    languages: dict[str, list[str]] = {}
    for document, code in seen:
        languages.setdefault(code, []).append(document)
    count = len(seen) or sum(records.values())
    facts["files"][name] = {"records": records, "documents": count, "faults": 0}
    if languages:
        facts["languages"][name] = dict(sorted(languages.items()))


def templates(corpus: Corpus) -> list[dict[str, Any]]:
    """The templates, and what stands in the slots of each page."""
    rows = []
    for host, template in TEMPLATES.items():
        pages = sorted(
            (page for page in corpus.web if page.host == host), key=lambda page: page.url
        )
        own = [page.url for page in pages if len(page.document.blocks) == len(template["lines"])]
        slots = {page.url: page.slots for page in pages}
        rows.append(
            {"host": host, "lines": template["lines"], "pages": slots, "with_own_text": own}
        )
    return rows


def make(out: Path) -> dict[str, Any]:
    """Write all files under a folder and give the facts."""
    for folder in ("web", "wet", "books", "encyclopedia", "code", "agent"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    dice = Dice(SEED)
    corpus = build(dice)
    facts: dict[str, Any] = {"format": 1, "seed": SEED, "files": {}, "languages": {}}
    facts |= corpus.facts
    facts["templates"] = templates(corpus)
    write_web(out, dice, corpus, facts)
    write_truncated(out, dice, facts)
    write_wet(out, dice, corpus, facts)
    write_books(out, dice, facts)
    write_notes(out, corpus, facts)
    write_rest(out, dice, corpus, facts)
    text = json.dumps(facts, ensure_ascii=False, indent=1)
    (out / "facts.json").write_text(text + "\n", encoding="utf-8")
    return facts


def main() -> None:
    """Read the command line and say what was made."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write to")
    out = parser.parse_args().out
    facts = make(out)
    for name, row in facts["files"].items():
        size = (out / name).stat().st_size
        print(f"{name:32} {size:9,} bytes {row['documents']:5} documents")
    print(f"zlib {zlib.ZLIB_RUNTIME_VERSION}")


if __name__ == "__main__":
    main()
