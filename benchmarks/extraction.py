r"""Main text: gristmill beside Resiliparse and trafilatura, by type of page, quality beside speed.

    python benchmarks/extraction.py [--half dev|held|both] [--no-peer] [--worst N]

Pages with a gold text from GRISTMILL_DATA or ../shared/data: WCXB (7 types), scrapinghub's article
benchmark, Mozilla's readability pages (their gold is HTML, read by Resiliparse as plain text).
Sites are cut in two by a hash of the host (of the page's name where it has none): rules were tuned
on `dev` alone, so `held` is the figure to believe.

Per page: F1, precision and recall of the multiset of words (`\w+`, lower case) of the text against
the gold; F1 of the multiset of word 4-grams, which also sees order; both averaged over pages. `in`
and `out`: shares of WCXB's phrases that must and must not be in the text. `code`: share of lines
of <pre> (10 characters or more) that the text has with their indentation, over pages whose gold
has their words; `tex`: share of formulas with stated TeX (annotations, math/tex scripts) found in
the text, over pages that have any.

Pages a second are of CPU, one core, from the decoded page to the text; what ours does besides
(title, date, licence, accounts of what was cut) is in. The peers run in the same run: Resiliparse
in this process, trafilatura in an environment of its own below --cache (made by pip on first use).
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

from gristmill.pipelines.convert.page import read_page

ROOT = Path(__file__).resolve().parents[1]
SETS = (
    "b-html-wcxb/dev.jsonl.gz",
    "b-html-scrapinghub-aeb/pages.jsonl.gz",
    "b-html-readability/mozilla.jsonl.gz",
)
PEER = ("trafilatura==2.3.1", "lxml_html_clean")  # it does not import without the second
WORD = re.compile(r"\w+")
Row = dict[str, object]


def half(url: str) -> str:
    """`dev` or `held`, by the host: the pages of one site are all in one."""
    host = (urlsplit(url).hostname or url).removeprefix("www.")
    digest = hashlib.blake2b(host.encode(), digest_size=8).digest()
    return "dev" if digest[0] % 2 == 0 else "held"


def load(data: Path) -> list[Row]:
    rows: list[Row] = []
    for name in SETS:
        if not (data / name).is_file():
            print(f"no {data / name}: left out")
            continue
        kind = name.split("/")[0].split("-")[2]
        with gzip.open(data / name, "rt", encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                html = row.get("html") or base64.b64decode(row["html_b64"]).decode(
                    "utf-8", "replace"
                )
                gold = row.get("gold_text")
                if gold is None:
                    gold = plain(HTMLTree.parse(row["gold_html"]), main=False)
                url = row.get("url") or "http://" + row["id"]
                rows.append({
                    "id": row["id"], "half": half(url), "html": html, "gold": gold,
                    "type": row["page_type"] if kind == "wcxb" else kind, "wcxb": kind == "wcxb",
                    "in": row.get("with") or [], "out": row.get("without") or [],
                })  # fmt: skip
    return rows


def plain(tree: HTMLTree, *, main: bool) -> str:
    return extract_plain_text(tree, main_content=main, preserve_formatting=True, alt_texts=False)


def ours(html: str) -> str:
    return read_page(html).text


def resiliparse(html: str) -> str:
    return plain(HTMLTree.parse(html), main=True)


def timed(extract: Callable[[str], str], rows: list[Row]) -> tuple[list[str], list[float]]:
    extract("<html><body><p>Warm.</p></body></html>")
    texts, seconds = [], []
    for row in rows:
        begun = time.process_time()
        texts.append(extract(str(row["html"])))
        seconds.append(time.process_time() - begun)
    return texts, seconds


def trafilatura(rows: list[Row], cache: Path) -> tuple[list[str], list[float]]:
    """Its texts and seconds. RuntimeError with the installer's last line where it cannot be had."""
    folder = cache / "trafilatura"
    python = folder / "bin" / "python"
    ready = folder / "ready"
    if not ready.is_file() or ready.read_text() != " ".join(PEER):
        venv.create(folder, with_pip=True, clear=True)
        done = subprocess.run(
            [python, "-m", "pip", "install", "-q", *PEER],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1])
        ready.write_text(" ".join(PEER))
    side = Path(__file__).parent / "peers" / "trafilatura_side.py"
    pages = "".join(json.dumps(row["html"]) + "\n" for row in rows)
    done = subprocess.run(
        [python, side], input=pages, capture_output=True, text=True, encoding="utf-8", check=True
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return [text for text, _ in found], [spent for _, spent in found]


def overlap(mine: Counter, gold: Counter) -> tuple[float, float, float]:
    """F1, precision, recall of two multisets."""
    common = sum((mine & gold).values())
    have, want = sum(mine.values()), sum(gold.values())
    if not have and not want:
        return 1.0, 1.0, 1.0
    return 2 * common / (have + want), common / max(1, have), common / max(1, want)


def shingles(words: list[str]) -> Counter:
    return Counter(zip(words, words[1:], words[2:], words[3:], strict=False))


def squeeze(text: str) -> str:
    return " ".join(text.split())


def retention(row: Row, text: str) -> dict[str, float]:
    """`code` and `tex` of one page, each only if it has any."""
    html = str(row["html"])
    found: dict[str, float] = {}
    tree = HTMLTree.parse(html)
    if tree.body is None:
        return found
    if "<pre" in html:
        gold = squeeze(str(row["gold"]))
        lines = [
            line.rstrip()
            for pre in tree.body.query_selector_all("pre")
            for line in pre.text.split("\n")
            if len(line.strip()) >= 10 and squeeze(line) in gold
        ]
        if lines:
            have = {line.rstrip() for line in text.split("\n")}
            found["code"] = sum(line in have for line in lines) / len(lines)
    if "application/x-tex" in html or "math/tex" in html:
        nodes = tree.body.query_selector_all(
            'annotation[encoding="application/x-tex"], script[type^="math/tex"]'
        )
        formulas = [squeeze(node.text) for node in nodes]
        inner = [re.sub(r"^\{\\displaystyle (.*)\}$", r"\1", f).strip() for f in formulas]
        inner = [f for f in inner if f]
        if inner:
            have_text = squeeze(text)
            found["tex"] = sum(f in have_text for f in inner) / len(inner)
    return found


def judge(rows: list[Row], texts: list[str]) -> list[dict[str, float]]:
    marks = []
    for row, text in zip(rows, texts, strict=True):
        words, gold = WORD.findall(text.lower()), WORD.findall(str(row["gold"]).lower())
        f1, precision, recall = overlap(Counter(words), Counter(gold))
        mark = {"F1": f1, "prec": precision, "rec": recall}
        mark["F1x4"] = overlap(shingles(words), shingles(gold))[0]
        flat = " ".join(words)
        for name in ("in", "out"):
            phrases = [" ".join(WORD.findall(str(p).lower())) for p in row[name]]  # type: ignore[attr-defined]
            if phrases:
                mark[name] = sum(p in flat for p in phrases) / len(phrases)
        marks.append(mark | retention(row, text))
    return marks


def mean(values: list[float]) -> str:
    return f"{sum(values) / len(values):6.3f}" if values else "     -"


COLUMNS = ("F1", "prec", "rec", "F1x4", "in", "out", "code", "tex")


def table(
    title: str, rows: list[Row], sides: dict[str, tuple[list[dict[str, float]], list[float]]]
) -> None:
    print(f"\n{title}\n{'':29}{'pages':>6}" + "".join(f"{c:>7}" for c in COLUMNS) + "  pages/s")
    groups = {str(row["type"]): False for row in rows}
    names = sorted(n for n in groups if n not in {"scrapinghub", "readability"})
    names += ["WCXB, all types"] + [n for n in ("scrapinghub", "readability") if n in groups]
    for name in names:
        at = [
            k for k, row in enumerate(rows)
            if (row["wcxb"] if name.startswith("WCXB") else row["type"] == name)
        ]  # fmt: skip
        if not at:
            continue
        for side, (marks, seconds) in sides.items():
            cells = [mean([marks[k][c] for k in at if c in marks[k]]) for c in COLUMNS]
            speed = len(at) / max(1e-9, sum(seconds[k] for k in at))
            print(
                f"{name:16} {side:12}{len(at):>6}"
                + "".join(f" {c}" for c in cells)
                + f" {speed:8.0f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description="main text: quality and speed beside the peers")
    default = Path(os.environ.get("GRISTMILL_DATA", ROOT.parent / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=default)
    place = Path(tempfile.gettempdir()) / "gristmill-benchmarks"
    parser.add_argument("--cache", type=Path, default=place, help="where the peer is installed")
    parser.add_argument("--half", choices=["dev", "held", "both"], default="both")
    parser.add_argument("--no-peer", action="store_true", help="without trafilatura")
    parser.add_argument("--worst", type=int, default=0, help="name our N worst pages of `dev`")
    options = parser.parse_args()
    rows = load(options.data)
    if not rows:
        print("no pages with a gold text: set GRISTMILL_DATA")
        return
    results = {"gristmill": timed(ours, rows), "resiliparse": timed(resiliparse, rows)}
    if not options.no_peer:
        try:
            results["trafilatura"] = trafilatura(rows, options.cache)
        except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
            print(f"trafilatura is left out: {error}")
    judged = {side: (judge(rows, texts), spent) for side, (texts, spent) in results.items()}
    parts = {
        "dev": "Sites that rules were tuned on", "held": "Sites held out", "both": "All sites",
    }  # fmt: skip
    for part, title in parts.items():
        if options.half not in {part, "both"}:
            continue
        at = [k for k, row in enumerate(rows) if part in {"both", row["half"]}]
        pick = {s: ([m[k] for k in at], [t[k] for k in at]) for s, (m, t) in judged.items()}
        table(title, [rows[k] for k in at], pick)
    if options.worst:
        marks = judged["gristmill"][0]
        dev = [k for k, row in enumerate(rows) if row["half"] == "dev"]
        for k in sorted(dev, key=lambda k: marks[k]["F1"])[: options.worst]:
            print(f"{marks[k]['F1']:.3f} {rows[k]['type']:14} {rows[k]['id']}")


if __name__ == "__main__":
    sys.exit(main())
