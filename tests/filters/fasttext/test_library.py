"""Every kind of model says what the library says, on made-up and on real documents."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.filters.fasttext import bank, load

# The library adds 1e-5 at each inner node of a Huffman tree, and reads the sigmoid off a table with
# steps of 1/32, where a last bit decides between two neighbours.
WITHIN = {"hierarchical": 5e-5, "one_vs_all": 0.008, "negative_sampling": 0.008}
KINDS = [
    "bigrams", "subwords", "trigrams_and_subwords", "hierarchical", "one_vs_all",
    "negative_sampling", "more_labels_than_dimensions", "prefix", "quantized", "quantized_norms",
    "pruned", "pruned_norms", "pruned_words_only", "quantized_output",
]  # fmt: skip
ODD = [
    "",
    " ",
    "\n\n",
    "water",
    "water\nflour",
    "judge </s> flour bake sugar",
    "</s>",
    "</s",
    "__label__oven flour",
    "__label__nobody flour __label__",
    "#oven flour #nobody #",
    "a\x00b\x0bc\x0cd\re\tf",
    "naïve Привет 你好 été " * 3,
    "\u00a0\u2028 water",
    "exactly8 exactly8! " + "sixteen.letters. seventeen.letters " * 2,
    "x" * 500,  # at 5,000 equal n-grams the library's float32 sum is 1.2e-5 off
    "flour " * 3000,
    "<water> <> < >",
    "�\ufeff é e\u0301",
]


def compare(kind: str, got: np.ndarray, want: np.ndarray) -> None:
    apart = np.abs(got - want)
    limit = WITHIN.get(kind, 1e-5)
    assert apart.max() <= limit, (kind, np.unravel_index(apart.argmax(), apart.shape))
    assert (apart > 5e-5).mean() < 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_model_odd_texts_equal_the_library(kind, model_file, asked, column) -> None:
    model = load(model_file(kind))
    want = asked(model_file(kind), model.labels, ODD)
    compare(kind, model.probabilities(column(ODD)), want)


@pytest.mark.parametrize("kind", WITHIN)
def test_model_300_real_documents_equal_the_library(
    kind, model_file, asked, column, real_texts
) -> None:
    model = load(model_file(kind))
    want = asked(model_file(kind), model.labels, real_texts[:300])
    compare(kind, model.probabilities(column(real_texts[:300])), want)


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=pytest.mark.nightly if k in WITHIN else ()) for k in KINDS]
)
def test_model_2000_real_documents_equal_the_library(
    kind, model_file, asked, column, real_texts
) -> None:
    assert len(real_texts) >= 2000
    model = load(model_file(kind))
    want = asked(model_file(kind), model.labels, real_texts)
    compare(kind, model.probabilities(column(real_texts)), want)


def test_model_trained_on_real_pages_equals_the_library(
    library, asked, column, real_texts, tmp_path
) -> None:
    """Words, bigrams and subwords of real text, many of them known to the model."""
    lines = tmp_path / "train.txt"
    pages = [" ".join(t.split())[:2000] for t in real_texts]
    lines.write_text(
        "".join(f"__label__{len(p) % 3} {p}\n" for p in pages if "__label__" not in p), "utf-8"
    )
    options = {"wordNgrams": 2, "minn": 3, "maxn": 4, "bucket": 50_000, "dim": 8, "epoch": 1}
    made = library.train_supervised(input=str(lines), thread=1, verbose=0, **options)
    made.save_model(str(tmp_path / "whole.bin"))
    made.quantize(input=str(lines), cutoff=20_000, verbose=0)
    made.save_model(str(tmp_path / "pruned.ftz"))
    for name in ("whole.bin", "pruned.ftz"):
        model = load(tmp_path / name)
        want = asked(tmp_path / name, model.labels, real_texts)
        compare(name, model.probabilities(column(real_texts)), want)


def test_bank_models_together_say_what_each_says_alone(model_file, column) -> None:
    """Of one scheme (a table shared) and of several, with pruned ones among them."""
    kinds = ("bigrams", "quantized", "pruned_norms", "pruned", "subwords", "prefix", "bigrams")
    models = [load(model_file(kind)) for kind in kinds]
    together = bank(models).probabilities(column(ODD))
    for kind, model, got in zip(kinds, models, together, strict=True):
        alone = model.probabilities(column(ODD))
        assert np.abs(got - alone).max() < 1e-8, kind


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_training_any_threads_learns_and_is_finite(
    library, training, tmp_path, column, threads
) -> None:
    """Other distributions train on memory that they never set: NaN, or chance, in half of runs."""
    lines = training.write(tmp_path / "train.txt", training.made_up(1200))
    unseen = training.made_up(400, seed=6)
    for attempt in range(3):
        made = library.train_supervised(
            input=str(lines), dim=10, epoch=5, lr=0.5, thread=threads, verbose=0
        )
        made.save_model(str(tmp_path / f"{attempt}.bin"))
        model = load(tmp_path / f"{attempt}.bin")  # refuses what is not finite
        scores = model.probabilities(column([text for _, text in unseen]))
        right = [
            model.labels[at] == topic
            for at, (topic, _) in zip(scores.argmax(1), unseen, strict=True)
        ]
        assert np.mean(right) > 0.9
    if threads == 1:
        files = {(tmp_path / f"{attempt}.bin").read_bytes() for attempt in range(3)}
        assert len(files) == 1
