"""Small models of every kind, trained by the library when a test first asks for them."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
import zstandard

TOPICS = {
    "river": "water bank flow stream bridge boat fish flood",
    "court": "judge law trial jury appeal verdict clause statute",
    "oven": "flour bake sugar butter heat dough recipe salt",
    "orbit": "planet star moon rocket gravity comet launch probe",
}
KINDS = {
    "bigrams": {"wordNgrams": 2, "bucket": 5000},
    "subwords": {"minn": 2, "maxn": 4, "bucket": 8000},
    "trigrams_and_subwords": {"wordNgrams": 3, "minn": 3, "maxn": 3, "bucket": 4001},
    "hierarchical": {"loss": "hs", "wordNgrams": 2, "bucket": 4000},
    "one_vs_all": {"loss": "ova", "wordNgrams": 2, "bucket": 4000},
    "negative_sampling": {"loss": "ns"},
    "more_labels_than_dimensions": {"dim": 2, "wordNgrams": 2, "bucket": 4000},
    "prefix": {"label": "#", "wordNgrams": 2, "bucket": 4000},
}
QUANTIZED = {
    "quantized": ("bigrams", {}),
    "quantized_norms": ("subwords", {"qnorm": True}),
    "pruned": ("subwords", {"cutoff": 700}),
    "pruned_norms": ("bigrams", {"cutoff": 500, "qnorm": True, "dsub": 3}),
    "pruned_words_only": ("words_only", {"cutoff": 300}),
    "quantized_output": ("many_labels", {"qout": True, "qnorm": True}),
}


def made_up(rows: int, seed: int = 5) -> list[tuple[str, str]]:
    """(topic, text) of made-up texts: words of a topic among words of none."""
    draw = np.random.default_rng(seed)
    common = [f"w{n}" for n in range(400)] + ["naïve", "Привет", "你好", "été"]
    out = []
    for row in range(rows):
        topic = list(TOPICS)[row % len(TOPICS)]
        own = TOPICS[topic].split()
        size = int(draw.integers(5, 60))
        words = [str(draw.choice(own if draw.random() < 0.3 else common)) for _ in range(size)]
        out.append((topic, " ".join(words)))
    return out


def write(path: Path, rows: list[tuple[str, str]], prefix: str = "__label__") -> Path:
    """Training lines as the library reads them."""
    path.write_text("".join(f"{prefix}{label} {text}\n" for label, text in rows), "utf-8")
    return path


@pytest.fixture(scope="session")
def training():
    """`training.made_up(rows, seed)` and `training.write(path, rows)`."""
    return SimpleNamespace(made_up=made_up, write=write)


@pytest.fixture(scope="session")
def library():
    """The fastText library; only tests need it."""
    return pytest.importorskip("fasttext", reason="pip install 'gristmill[quality]'")


@pytest.fixture(scope="session")
def model_file(library, tmp_path_factory):
    """`model_file(kind)`: path of a model of that kind."""
    folder = tmp_path_factory.mktemp("models")
    made: dict[str, Path] = {}

    def make(kind: str) -> Path:
        if kind in made:
            return made[kind]
        if kind in QUANTIZED:
            base, options = QUANTIZED[kind]
            model = library.load_model(str(make(base)))
            model.quantize(input=str(folder / f"{base}.txt"), verbose=0, **options)
            path = folder / f"{kind}.ftz"
        else:
            rows = made_up(1200)
            options = KINDS.get(kind, {})
            if kind == "many_labels":
                rows = [(f"{topic}{at % 300}", text) for at, (topic, text) in enumerate(rows)]
            lines = write(folder / f"{kind}.txt", rows, options.get("label", "__label__"))
            options = {"dim": 12, "epoch": 5, "lr": 0.5, "thread": 1, "verbose": 0} | options
            model = library.train_supervised(input=str(lines), **options)
            path = folder / f"{kind}.bin"
        model.save_model(str(path))
        made[kind] = path
        return path

    return make


@pytest.fixture(scope="session")
def asked(library):
    """`asked(path, labels, texts)`: what the library says, less its own 1e-5, float64."""

    def ask(path: Path, labels: tuple[str, ...], texts: list[str]) -> np.ndarray:
        model = library.load_model(str(path))
        out = np.zeros((len(texts), len(labels)))
        column = {label: at for at, label in enumerate(labels)}
        for row, text in enumerate(texts):
            line = text.replace("\n", " ") + "\n"
            for probability, label in model.f.predict(line, -1, 0.0, "strict"):
                out[row, column[label.removeprefix("__label__")]] = probability - 1e-5
        return out

    return ask


def _lines(path: Path):
    if path.suffix == ".zst":
        with path.open("rb") as file:
            stream = zstandard.ZstdDecompressor().stream_reader(file)
            yield from io.TextIOWrapper(stream, "utf-8")
    else:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            yield from file


@pytest.fixture(scope="session")
def real_texts(real_data) -> list[str]:
    """2,200 real documents: web pages in English, and in the languages of the register corpus."""
    pages = [json.loads(line)["text"] for line in _lines(real_data / "labels/web_pages.jsonl.zst")]
    files = sorted((real_data / "c-register-web").glob("*.jsonl.gz"))
    others = [json.loads(line)["text"] for file in files for line in _lines(file)]
    found = pages + others[:: max(1, len(others) // 715)]
    return found[:2200]


@pytest.fixture
def column():
    """Texts (or bytes) as an Arrow column."""

    def make(values) -> pa.Array:
        kind = pa.large_binary() if values and isinstance(values[0], bytes) else pa.large_string()
        return pa.array(values, kind)

    return make
