"""Quality heads: MB/s of two heads together beside the library's own predict.

    python benchmarks/quality.py          speed
    python benchmarks/quality.py known    how much the shipped heads know of texts, by language

Two heads of the size that quality filters have (dim 100, words and bigrams, 2,000,000 buckets: 837
MB each) are trained for one epoch on the texts with made-up labels: speed is what is asked here,
and the size is what costs. The library comes with `gristmill[quality]`. MB are 10^6 bytes of UTF-8;
times are CPU time on one core, the best of five (library: of two).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from _texts import DATA, best, rows_of, texts

from gristmill.filters.fasttext import bank, load
from gristmill.filters.quality import read_heads, shipped

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
    apart = 0.0
    for head, scores, told in zip(heads, both.probabilities(column), said, strict=True):
        at = [head.labels.index(label.removeprefix("__label__")) for _, label in told]
        found = np.take_along_axis(scores, np.array(at)[:, None], 1)[:, 0]
        apart = max(apart, float(np.abs(found + 1e-5 - [p for p, _ in told]).max()))
    print(f"{name}: {len(values):,} texts, {mb:.1f} MB; two heads of 2,000,000 buckets, dim 100")
    print(f"{'the library, one after the other':<36} {mb / theirs:8.1f} MB/s")
    print(f"{'gristmill, both in one pass':<36} {mb / ours:8.1f} MB/s  {theirs / ours:5.1f} x")
    print(f"{'gristmill, one of them':<36} {mb / one:8.1f} MB/s")
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


if __name__ == "__main__":
    known() if sys.argv[1:] == ["known"] else main()
