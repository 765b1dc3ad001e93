"""URL lists, opt-outs, masking and decontamination: speed, what they find, what they flag wrongly.

    python benchmarks/guards.py            MB/s of each stage; datatrove's masking (e-mail and IP
                                           addresses alone) where it and `regex` are installed
    python benchmarks/guards.py recall     evaluation items planted in real texts, by length
    python benchmarks/guards.py layouts    items of multiple choice as pages lay them out
    python benchmarks/guards.py flags      texts flagged where nothing was planted, for reading
    python benchmarks/guards.py masks      what is masked in real texts, a sample for reading

Needs GRISTMILL_DATA (or ../shared/data): web pages, mails, code, and the items of GSM8K, MMLU, ARC,
HumanEval and MBPP. MB are 10^6 bytes of UTF-8; times are CPU time, the best of three.
"""

from __future__ import annotations

import json
import random
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from _texts import DATA, batch_of, best, rows_of

from gristmill.filters import PII, Decontaminate, Rights, Url
from gristmill.filters._items import load_index
from gristmill.filters.pii import KINDS

SETS = {
    "web pages": "labels/web_pages.jsonl.zst",
    "mails": "c-spam-spamassassin/develop.jsonl.gz",
    "code": "e-code-repos/develop.jsonl.gz",
    "many languages": "f-multilingual-hplt/develop_unlabelled.jsonl.gz",
}
MORE = {
    "textbooks": "c-textbooks-openstax",
    "encyclopaedia": "c-encyclopedia-enwiki",
    "lecture notes": "c-lecture-notes",
    "agent runs": "e-agent-aider",
}
LENGTHS = ((8, 8), (9, 9), (10, 12), (13, 20), (21, 35), (36, 60), (61, 120), (121, 9999))
EACH = 200  # items planted of a length, at most


def texts(path: Path) -> list[str]:
    """Texts of a file, or of all files of a folder."""
    files = sorted(path.glob("*.jsonl.*")) if path.is_dir() else [path]
    found = [item for file in files for item in rows_of(file)]
    return [str(i.get("text") or i.get("content") or json.dumps(i)) for i in found]


def megabytes(values: list[str]) -> float:
    """10^6 bytes of UTF-8."""
    return sum(len(v.encode()) for v in values) / 1e6


def speed() -> None:
    if not (DATA / "g-benchmarks").is_dir():
        print(
            f"no real texts at {DATA.name}/ (set GRISTMILL_DATA): only lists of hosts are measured"
        )
        addresses()
        return
    stage = Decontaminate(files=DATA / "g-benchmarks")
    start = time.process_time()
    print("; ".join(stage.load()), f"({time.process_time() - start:.1f} s)")
    print(f"{'texts':<16} {'MB':>6} {'pii':>8} {'datatrove':>10} {'decontaminate':>14}   MB/s")
    for name, path in SETS.items():
        values = texts(DATA / path)
        batch = batch_of(values)
        mb = megabytes(values)
        masks = best(lambda b=batch: PII().measure(b), 3)
        items = best(lambda b=batch: stage.measure(b), 3)
        theirs = datatrove(values)
        other = f"{theirs:10.2f}" if theirs else f"{'-':>10}"
        print(f"{name:<16} {mb:6.1f} {mb / masks:8.0f} {other} {mb / items:14.0f}")
    addresses()


def datatrove(values: list[str]) -> float:
    """MB/s of datatrove's PIIFormatter (e-mail and IP addresses alone); 0 where it is not there."""
    try:
        from datatrove.pipeline.formatters import PIIFormatter
    except ImportError:
        return 0
    formatter = PIIFormatter()
    some = values[:300]
    return megabytes(some) / best(lambda: [formatter.format(v) for v in some], 3)


def addresses(hosts: int = 1_000_000, rows: int = 200_000) -> None:
    """`url` and `rights` on made-up rows: a tenth of the hosts listed, ten URLs a host."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "hosts").write_text("".join(f"site{i}.example\n" for i in range(hosts)))
        words = "\n".join(f"word{i}" for i in range(1000))
        for name in ("words", "soft", "sub"):
            (place / name).write_text(words.replace("word", name))
        urls = [
            f"https://www.site{i // 10 * 991 % (10 * hosts)}.example/one/two-three/page{i}.html"
            for i in range(rows)
        ]
        metadata = ['{"title":"x","robots":"noai"}' if i % 20 == 0 else "{}" for i in range(rows)]
        batch = pa.record_batch({"url": pa.array(urls), "metadata": pa.array(metadata)})
        lists = Url(domains=place / "hosts")
        start = time.process_time()
        lists.load()
        print(f"\n{hosts:,} hosts read in {time.process_time() - start:.1f} s of CPU")
        every = Url(
            domains=place / "hosts",
            words=place / "words",
            soft_words=place / "soft",
            subwords=place / "sub",
        )
        for name, stage in (
            ("url: hosts", lists),
            ("and 3,000 words", every),
            ("rights", Rights()),
        ):
            stage.verdict(stage.measure(batch).scores)
            seconds = best(lambda s=stage: s.verdict(s.measure(batch).scores), 3)
            print(f"{name:<16} {rows / seconds:12,.0f} documents/s")


def recall() -> None:
    """Each item in a real page, in each of `FORMS`; `named`: whole, and the evidence names it.

    Those of `OTHERS` ask something else, and are looked for with `near: any`.
    """
    stage = Decontaminate(files=DATA / "g-benchmarks")
    perturbed = Decontaminate(files=DATA / "g-benchmarks", near="any")
    limits = (stage.ngram, stage.min_words, stage.full_to, stage.long_from)
    index = load_index(stage.files, (), limits, f"{stage.name}.files")
    pages = [t for t in texts(DATA / SETS["web pages"]) if 3_000 < len(t) < 30_000]
    draw = random.Random(1)
    names = (*(form.__name__ for form in FORMS), "named")
    print(f"{'words':>9} {'items':>6}", *(f"{name:>10}" for name in names))
    for low, high in LENGTHS:
        which = np.flatnonzero((index.words >= low) & (index.words <= high)).tolist()
        which = draw.sample(which, min(EACH, len(which)))
        told = defaultdict(int)
        for form in FORMS:
            planted = []
            for at in which:
                page = draw.choice(pages)
                cut = page.find(" ", len(page) // 3)
                planted.append(f"{page[:cut]}\n{form(index.items[at].text)}\n{page[cut:]}")
            measured = (perturbed if form in OTHERS else stage).measure(batch_of(planted))
            notes = dict(zip(measured.evidence.rows.tolist(), measured.evidence.notes, strict=True))
            for row, at in enumerate(which):
                told[form.__name__] += row in notes
                item = index.items[at]
                if form is whole and row in notes:
                    found = [(i["file"], i["item"]) for i in json.loads(notes[row])["items"]]
                    told["named"] += (item.file, item.name) in found
        shares = (told[name] / max(1, len(which)) for name in names)
        print(f"{low:>4}-{high:<4} {len(which):6}", *(f"{share:10.1%}" for share in shares))


# Before the choices; each choice, with its label; between two; behind them; the order.
LAYOUTS = (
    ("\n", "{x}", "\n", "", 1),
    ("\n", "{A}. {x}", "\n", "", 1),
    (" ", "{A}. {x}", " ", "", 1),
    (" ", "({A}) {x}", " ", "", 1),
    ("\n", "{a}) {x}", "\n", "", 1),
    ("\n", "{n}. {x}", "\n", "", 1),
    ("\n", "- {x}", "\n", "", 1),
    (" [", '"{x}"', ", ", "]", 1),
    ("\nChoices:\n", "{A}: {x}", "\n", "\nAnswer: B", 1),
    ("\nAnswer: B\nOptions:\n", "{A}) {x}", "\n", "", 1),
    ("\n| ", "{A} | {x}", " |\n| ", " |", 1),
    ("\n", "{A}. {x}", "\n", "", -1),
)
ASKED = (("mmlu", 1, 4), ("mmlu", 5, 7), ("mmlu", 8, 9999), ("arc", 1, 9999))  # words
PLANTED = 300


def layouts() -> None:
    """Items of multiple choice in real pages, by words of the question; last, choices reversed."""
    stage = Decontaminate(files=DATA / "g-benchmarks")
    index = load_index(stage.files, (), (5, 8, 12, 25), f"{stage.name}.files")
    pages = [t for t in texts(DATA / SETS["web pages"]) if 3_000 < len(t) < 30_000]
    draw = random.Random(2)
    for file, low, high in ASKED:
        every = [
            (question, rest or item.more)
            for item in index.items
            if item.file.startswith(file)
            for question, *rest in [item.parts]
            if low <= len(re.findall(r"\w+", question)) <= high
        ]
        which = draw.sample(every, min(PLANTED, len(every)))
        print(f"{file}, questions of {low} to {high} words: {len(which)} of {len(every)}")
        for layout in LAYOUTS:
            planted = []
            for question, choices in which:
                page = draw.choice(pages)
                cut = page.find(" ", len(page) // 3)
                planted.append(f"{page[:cut]}\n{question}{laid(choices, layout)}\n{page[cut:]}")
            found = np.count_nonzero(stage.measure(batch_of(planted)).scores["items"])
            print(f"    {laid(('x', 'y'), layout)!r:<50} {found / len(which):.1%}")


def laid(choices: Sequence[str], layout: tuple[str, str, str, str, int]) -> str:
    """Choices as a layout has them."""
    before, one, between, behind, step = layout
    labels = zip("ABCDEFGHIJ", "abcdefghij", range(1, 11), choices[::step], strict=False)
    lines = [one.format(A=A, a=a, n=n, x=x) for A, a, n, x in labels]
    return f"{before}{between.join(lines)}{behind}"


def whole(text: str) -> str:
    """As it is."""
    return text


def capitals(text: str) -> str:
    """In capitals, marks gone."""
    return "".join(c if c.isalnum() or c.isspace() else " " for c in text).upper()


def changed(text: str) -> str:
    """Every fifteenth word is another."""
    return " ".join("other" if i % 15 == 7 else w for i, w in enumerate(text.split()))


def joined(text: str) -> str:
    """In capitals, marks gone, and apostrophes without a space in their place."""
    return capitals(text.replace("'", "").replace("\u2019", ""))


def hyphens(text: str) -> str:
    """A soft hyphen after every third letter of a word that has three more."""
    return re.sub(r"([^\W\d_]{3})(?=[^\W\d_]{3})", "\\1\u00ad", text)


def wide(text: str) -> str:
    """ASCII in full width."""
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


def one(text: str) -> str:
    """One word between the first and the last is another."""
    words = text.split()
    if len(words) > 2:
        words[random.Random(text).randrange(1, len(words) - 1)] = "other"
    return " ".join(words)


def misspelt(text: str) -> str:
    """Of one word between the first and the last, of six letters or more, two change places."""
    words = text.split()
    long = [k for k, w in enumerate(words[1:-1], 1) if len(w) > 5 and w.isalpha() and w[2] != w[3]]
    if long:
        at = random.Random(text).choice(long)
        word = words[at]
        words[at] = f"{word[:2]}{word[3]}{word[2]}{word[4:]}"
    return " ".join(words)


def broken(text: str) -> str:
    """Every tenth word, from the sixth on, is broken at a line's end."""
    words = text.split()
    for at in range(5, len(words), 10):
        if len(words[at]) > 3:
            words[at] = f"{words[at][:2]}-\n{words[at][2:]}"
    return " ".join(words)


def references(text: str) -> str:
    """In quotes; what is no letter of ASCII, digit or space is a character reference."""
    plain = "".join(
        c if c.isascii() and (c.isalnum() or c.isspace()) else f"&#{ord(c)};" for c in text
    )
    return f"&ldquo;{plain.replace('&#38;', '&amp;').replace('&#39;', '&apos;')}&rdquo;"


FORMS = (whole, capitals, joined, misspelt, one, changed, broken, hyphens, wide, references)
OTHERS = (one, changed)


def flags() -> None:
    stage = Decontaminate(files=DATA / "g-benchmarks")
    stage.load()
    for name, path in (SETS | MORE).items():
        values = texts(DATA / path)
        measured = stage.measure(batch_of(values))
        rows = measured.evidence.rows.tolist()
        print(f"{name}: {len(rows)} of {len(values):,} texts")
        for row, note in list(zip(rows, measured.evidence.notes, strict=True))[:12]:
            item = json.loads(note)["items"][0]
            start, stop = item["bytes"]
            shown = values[row].encode()[start:stop].decode()[:100]
            print(f"    {item['file']} {item['item']} {item['words']} {item['share']}: {shown!r}")


def masks() -> None:
    draw = random.Random(5)
    for name, path in (SETS | MORE).items():
        values = texts(DATA / path)
        edits = PII().measure(batch_of(values)).edits
        for at, kind in enumerate(KINDS):
            found = np.flatnonzero(edits.reasons == at).tolist()
            print(f"{name}: {kind}: {len(found)} in {len(values):,} texts")
            for k in sorted(draw.sample(found, min(10, len(found)))):
                raw = values[edits.rows[k]].encode()
                start = int(edits.starts[k])
                stop = start + int(edits.lengths[k])
                before, after = (
                    piece.decode("utf-8", "ignore")
                    for piece in (raw[max(0, start - 30) : start], raw[stop : stop + 15])
                )
                print(f"    {before!r} [{raw[start:stop].decode()[:60]}] {after!r}")


if __name__ == "__main__":
    {"speed": speed, "recall": recall, "layouts": layouts, "flags": flags, "masks": masks}[
        sys.argv[1] if len(sys.argv) > 1 else "speed"
    ]()
