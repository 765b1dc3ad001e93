"""Files that are not what they should be: a message with the byte, what was found, the cure."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys

import numpy as np
import pytest

from gristmill.documents.errors import UsageError
from gristmill.filters.fasttext import load
from gristmill.filters.fasttext.parse import parse

DIM = 3


@pytest.fixture
def saved(tmp_path):
    """Write bytes to a file and give its path."""

    def write(raw: bytes, name: str = "head.bin"):
        (tmp_path / name).write_bytes(raw)
        return tmp_path / name

    return write


def refusal(path) -> str:
    with pytest.raises(UsageError) as caught:
        load(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_model_by_hand_scores_as_by_hand(saved, small_model, column) -> None:
    model = load(saved(small_model()))
    assert model.labels == ("a", "b")
    got = model.probabilities(column(["", "river"]))
    # "": the row of "</s>" alone, (0, .1, .2): logits 0 and .3.
    assert got[0] == pytest.approx([1 / (1 + np.exp(0.3)), 1 / (1 + np.exp(-0.3))], abs=1e-7)
    assert got.dtype == np.float32


def test_model_truncated_anywhere_is_refused(saved, small_model) -> None:
    raw = small_model(kept=[(3, 0), (1, 1)])
    for size in range(len(raw)):
        message = refusal(saved(raw[:size]))
        assert "truncated" in message or "begins with" in message or "empty" in message
    assert "Copy the model again" in refusal(saved(raw[:-1]))


def test_model_with_a_byte_changed_is_refused_or_read(saved, small_model, column) -> None:
    """No flipped byte crashes the process or takes memory that the file could not fill."""
    raw = small_model(kept=[(3, 0), (1, 1)])
    draw = np.random.default_rng(1)
    for at in range(len(raw)):
        for value in (255, int(draw.integers(0, 255))):
            path = saved(raw[:at] + bytes([value]) + raw[at + 1 :])
            try:
                model = load(path)
            except UsageError:
                continue
            assert np.isfinite(model.probabilities(column(["river bank", ""]))).all()


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "an empty file"),
        (b"2000 300\nthe 0.1 0.2\n", ".vec file"),
        (gzip.compress(b"x" * 100, mtime=0), "unpack it first"),
        (b"PK\x03\x04" + bytes(50), "unpack it first"),
        (b"<html>not found</html>", "begins with 3c 68 74 6d, expected ba 16 4f 2f"),
        ({"number": 13}, "format 13 at byte 4; this version reads 11 and 12"),
        ({"more": b"more"}, "4 bytes after the output matrix"),
        ({"args": {"model": 2}}, "word vectors (skipgram), not a classifier"),
        ({"args": {"dim": 0}}, "at byte 8: found dim = 0; expected 1 to"),
        ({"args": {"loss": 9}}, "at byte 32: found loss = 9"),
        ({"args": {"bucket": 0}}, "n-grams hash into them"),
        ({"args": {"bucket": 9}}, "an input matrix of 6 rows; expected 11 at least"),
        ({"kept": [(3, 0), (9, 1)]}, "a kept bucket beyond"),
        ({"rows": np.full((6, DIM), np.nan)}, "row 0 of the input matrix is not finite"),
    ],
)
def test_file_that_is_no_model_named_with_the_cure(saved, small_model, raw, says) -> None:
    if isinstance(raw, dict):
        more = raw.pop("more", b"")
        raw = small_model(**raw) + more
    assert says in refusal(saved(raw))


def test_file_missing_or_folder_named(tmp_path) -> None:
    assert "No such file" in refusal(tmp_path / "none.ftz")
    assert "directory" in refusal(tmp_path)


def test_word_vectors_of_the_library_refused(library, training, tmp_path) -> None:
    lines = training.write(tmp_path / "lines.txt", training.made_up(50))
    made = library.train_unsupervised(str(lines), dim=4, epoch=1, thread=1, minCount=1, verbose=0)
    made.save_model(str(tmp_path / "vectors.bin"))
    assert "word vectors (skipgram)" in refusal(tmp_path / "vectors.bin")


@pytest.mark.parametrize("kind", ["pruned_norms", "quantized_output"])
def test_quantized_model_truncated_is_refused(kind, model_file, saved) -> None:
    raw = model_file(kind).read_bytes()
    for size in np.linspace(1, len(raw) - 1, 60).astype(int):
        assert "truncated" in refusal(saved(raw[:size])) or size < 4


def test_format_11_has_no_subwords(saved, small_model) -> None:
    old = parse(saved(small_model(number=11, args={"maxn": 3, "minn": 2})))
    assert (old.maxn, parse(saved(small_model(args={"maxn": 3}), "b.bin")).maxn) == (0, 3)


def test_document_of_100_mb_is_scored(saved, small_model, column) -> None:
    model = load(saved(small_model(args={"minn": 2, "maxn": 3})))
    text = b"river bank " * (100_000_000 // 11)
    long, short = model.probabilities(column([text, b"river bank " * 1000]))
    assert long == pytest.approx(short, abs=1e-3)
    one_word = model.probabilities(column([b"x" * 10_000_000]))
    assert np.isfinite(one_word).all()


def test_probabilities_same_bytes_on_a_cpu_without_vectors(saved, small_model) -> None:
    """Compiled for a plain CPU and for this one: no last bit may differ."""
    path = saved(small_model(args={"minn": 2, "maxn": 3}))
    code = (
        "import sys, pyarrow as pa; from gristmill.filters.fasttext import load;"
        "texts = [' '.join(f'w{i * k % 97} river' for i in range(k)) for k in range(40)];"
        "print(load(sys.argv[1]).probabilities(pa.array(texts)).tobytes().hex())"
    )
    said = set()
    for cpu in ({"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}, {}):
        command = [sys.executable, "-c", code, str(path)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, env={**os.environ, **cpu}
        )
        said.add(done.stdout)
    assert len(said) == 1
