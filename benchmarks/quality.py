"""Quality heads: MB/s of two heads together beside the library's own predict.

    python benchmarks/quality.py          speed
    python benchmarks/quality.py known    how much the shipped heads know of texts, by language
    python benchmarks/quality.py short    what they make of pieces of pages, by words
    python benchmarks/quality.py altered  what pages gain by signs, known sentences and repetition

Two heads of the size that quality filters have (dim 100, words and bigrams, 2,000,000 buckets: 837
MB each) are trained for one epoch on the texts with made-up labels: speed is what is asked here,
and the size is what costs. They are asked of whole texts, as the library is, and of texts as the
shipped heads read them (`_reading`: an excerpt in plain words, repeated ones thinned). The library
comes with `gristmill[quality]`. MB are 10^6 bytes of UTF-8 of whole texts; times are CPU time on
one core, the best of five (library: of two).
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from _texts import DATA, best, rows_of, texts

from gristmill.filters._reading import read
from gristmill.filters.fasttext import bank, load
from gristmill.filters.quality import Quality, read_heads, shipped

READS = 6000  # bytes of a text, as the shipped heads
SHAPE = {"dim": 100, "wordNgrams": 2, "bucket": 2_000_000, "epoch": 1, "thread": 1, "verbose": 0}


def train(values: list[str], folder: Path, every: int) -> Path:
    """A head whose labels are the texts' lengths modulo `every`."""
    import fasttext

    lines = folder / "lines.txt"
    with lines.open("w", encoding="utf-8") as file:
        for value in values:
            file.write(f"__label__{len(value) % every} {' '.join(value.split())[:4000]}\n")
    path = folder / f"head{every}.bin"
    fasttext.train_supervised(input=str(lines), **SHAPE).save_model(str(path))
    return path


def main() -> None:
    try:
        import fasttext
    except ImportError:
        sys.exit("this comparison needs the library: pip install 'gristmill[quality]'")
    name, values = texts()
    column = pa.array(values, pa.large_string())
    mb = sum(len(v.encode()) for v in values) / 1e6
    lines = [v.replace("\n", " ") + "\n" for v in values]
    with tempfile.TemporaryDirectory() as folder:
        paths = [train(values, Path(folder), every) for every in (2, 3)]
        theirs, said = 0.0, []
        for path in paths:
            model = fasttext.load_model(str(path))
            theirs += best(
                lambda model=model: [model.f.predict(x, 1, 0.0, "strict") for x in lines], 2
            )
            said.append([model.f.predict(x, 1, 0.0, "strict")[0] for x in lines])
            del model
        heads = [load(path) for path in paths]
    both = bank(heads)
    ours = best(lambda: both.probabilities(column))
    one = best(lambda: heads[0].probabilities(column))
    reading = best(lambda: both.probabilities(read(column, READS)))
    ask = read_heads(tuple(shipped().values())).ask
    own = best(lambda: ask(column).values())
    apart = 0.0
    for head, scores, told in zip(heads, both.probabilities(column), said, strict=True):
        at = [head.labels.index(label.removeprefix("__label__")) for _, label in told]
        found = np.take_along_axis(scores, np.array(at)[:, None], 1)[:, 0]
        apart = max(apart, float(np.abs(found + 1e-5 - [p for p, _ in told]).max()))
    print(f"{name}: {len(values):,} texts, {mb:.1f} MB; two heads of 2,000,000 buckets, dim 100")
    print(f"{'the library, one after the other':<36} {mb / theirs:8.1f} MB/s")
    print(f"{'gristmill, both in one pass':<36} {mb / ours:8.1f} MB/s  {theirs / ours:5.1f} x")
    print(f"{'gristmill, one of them':<36} {mb / one:8.1f} MB/s")
    print(f"{f'both, reading {READS:,} bytes of a text':<36} {mb / reading:8.1f} MB/s")
    print(f"{'the shipped heads, which read so':<36} {mb / own:8.1f} MB/s")
    print(f"largest difference of a probability: {apart:.1e}")


def known() -> None:
    """Known features for each word, the median over texts, of the head that knows least."""
    heads = read_heads(tuple(shipped().values()))
    pages = texts()[1]
    sets = {"web pages": pages, "the same in capitals": [page.upper() for page in pages]}
    for row in rows_of(DATA / "f-multilingual-lingua" / "sentences.jsonl.gz"):
        if row["lang"] in ("en", "fr", "de", "ru", "zh"):
            sets.setdefault(f"sentences, {row['lang']}", []).append(row["text"])
    code = rows_of(DATA / "e-code-repos" / "develop.jsonl.gz")
    sets["code"] = [str(row.get("text") or row.get("content") or "") for row in code]
    for name, values in sets.items():
        asked = heads.ask(pa.array(values, pa.large_string())).values()
        least = min(
            float(np.median(n[some] / w[some])) for _, n, w in asked if (some := w > 0).any()
        )
        print(f"{name:<24} {len(values):6,} texts {least:6.2f}")


def buckets(values: list[str]) -> dict[str, np.ndarray]:
    """Of each shipped head of degrees the buckets of texts, however short, int64[texts]."""
    stage = Quality(heads=("edu", "know"), min_words=0)
    batch = pa.record_batch({"text": pa.array(values, pa.large_string())})
    scores = stage.measure(batch).scores
    return {head: scores[f"{head}_bucket"].astype(int) for head in stage.heads}


def altered() -> None:
    """By how many buckets pages rise when something is added to them, on the mean and at most."""
    name, pages = texts()
    lesson = (
        "Photosynthesis and respiration: how plants, algae and bacteria convert light energy into "
        "chemical energy. Lesson for students.\n"
    )
    history = (
        "World War II history. He died in 1945 in Berlin. The first president of the country.\n"
    )
    ways: dict[str, Callable[[str], str]] = {
        "twice": lambda page: f"{page}\n{page}",
        "20 times": lambda page: f"{page}\n" * 20,
        "signs at the end": lambda page: page + " <>{}[]()" * 12,
        "tags at the end": lambda page: page + "\n" + "<p></p>" * 30,
        "numbers at the end": lambda page: page + "\n" + " ".join(map(str, range(100))),
        "a lesson's first lines": lambda page: lesson + page,
        "history in front": lambda page: history + page,
    }
    rows = rows_of(DATA / "c-web-text-samples" / "samples.jsonl.gz")
    others = [page for row in rows if len(page := row["text"]) > 200]
    brief = [page for page in pages if 300 < len(page) < 2500]
    for title, some in (
        (f"{name}, all", pages),
        ("of 300 to 2,500 characters", brief),
        ("others", others),
    ):
        before = buckets(some)
        print(f"{title}: {len(some):,}")
        for way, change in ways.items():
            said = [f"  {way:<24}"]
            for head, after in buckets([change(page) for page in some]).items():
                rise = (after - before[head])[(after >= 0) & (before[head] >= 0)]
                said.append(f"{head} {rise.mean():+5.1f} at most {rise.max():+3}")
            print("   ".join(said))


def short() -> None:
    """Buckets of pieces of pages, from their 60th word on, beside those of the pages.

    Pages of 300 words or more: those that the shipped heads were trained on, where they are there.
    """
    name, pages = texts()
    words = [split for page in pages if len(split := page.split()) >= 300]
    whole = buckets([" ".join(page) for page in words])
    print(f"{name}: {len(words):,} texts; correlation with the page's bucket, share in bucket 19")
    for count in (3, 5, 10, 20, 30, 50, 80, 128, 240):
        piece = buckets([" ".join(page[60 : 60 + count]) for page in words])
        said = [f"{count:4} words"]
        for head in whole:
            known = (piece[head] >= 0) & (whole[head] >= 0)
            alike = np.corrcoef(piece[head][known], whole[head][known])[0, 1]
            said.append(f"{head} {alike:5.2f} {np.mean(piece[head] == 19):6.1%}")
        print("   ".join(said))


if __name__ == "__main__":
    {"known": known, "short": short, "altered": altered}.get("".join(sys.argv[1:]), main)()
