"""Heads behind heavier libraries: ONNX and sentence-transformers, with the interface of fastText's.

Each is a folder, so that its digest covers all that its answers depend on:

    ONNX                    model.onnx, tokenizer.json (as `optimum-cli export onnx` writes them);
                            the model's first output is float[texts, labels]
    sentence-transformers   as the library saves a model, and head.json: {"weights": float[labels,
                            dim], "bias": float[labels]}, a linear layer on the embedding

Labels stand in the card, as do two fields of these heads alone: `activation`, `softmax` (default),
`sigmoid` or `none`, and `max_tokens` (512). Texts go in batches of 32 of like length. Extras:
`gristmill[onnx]`, `gristmill[embeddings]`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..documents.errors import UsageError

BATCH = 32  # texts
_STEP = 4096  # probabilities are rounded to 1/4096
_CHARS_A_TOKEN = (
    12  # a text is cut at this many for each token that is read: far more than it needs
)
ACTIVATIONS = ("softmax", "sigmoid", "none")


def is_encoder(path: Path) -> bool:
    """Whether a path is one of these heads."""
    return path.is_dir()


@dataclass(frozen=True, slots=True, eq=False)
class Encoder:
    """A head whose `ask` gives logits float[texts, labels] for a list of texts."""

    labels: tuple[str, ...]
    activation: str
    max_tokens: int
    ask: Callable[[list[str]], np.ndarray]
    path: Path

    def probabilities(self, text: pa.Array | pa.ChunkedArray) -> np.ndarray:
        """float32[rows, labels]; nulls are empty texts."""
        limit = self.max_tokens * _CHARS_A_TOKEN
        values = [(value or "")[:limit] for value in text.to_pylist()]
        order = sorted(range(len(values)), key=lambda row: (len(values[row]), row))
        out = np.zeros((len(values), len(self.labels)), np.float32)
        for first in range(0, len(order), BATCH):
            rows = order[first : first + BATCH]
            logits = np.asarray(self.ask([values[row] for row in rows]), np.float64)
            if logits.shape != (len(rows), len(self.labels)):
                msg = (
                    f"{self.path}: the model gives {list(logits.shape)} for {len(rows)} texts, and "
                    f"its card has {len(self.labels)} labels"
                )
                raise UsageError(msg)
            if not np.isfinite(logits).all():
                msg = f"{self.path}: the model gives numbers that are not finite"
                raise UsageError(msg)
            out[rows] = np.rint(_activate(logits, self.activation) * _STEP) / _STEP
        return out


def _activate(logits: np.ndarray, activation: str) -> np.ndarray:
    if activation == "softmax":
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)
    return 1 / (1 + np.exp(-logits)) if activation == "sigmoid" else logits


def encoder(path: Path, card: Path) -> Encoder:
    """Open the model in a folder; UsageError says what is missing from it."""
    try:
        stated: dict[str, Any] = json.loads(card.read_text("utf-8"))
        labels = tuple(map(str, stated["labels"]))
        activation = stated.get("activation", "softmax")
        max_tokens = int(stated.get("max_tokens", 512))
    except OSError as error:
        msg = f"{card}: {error.strerror}: {path.name} needs a card beside it"
        raise UsageError(msg) from error
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        msg = (
            f"{card}: the card of {path.name} must state its labels, a list; where it has "
            "max_tokens, a whole number"
        )
        raise UsageError(msg) from error
    if activation not in ACTIVATIONS or max_tokens < 1:
        msg = f"{card}: activation {activation!r}, max_tokens {max_tokens}; expected {ACTIVATIONS}"
        raise UsageError(msg)
    if (path / "model.onnx").exists():
        ask = _onnx(path, max_tokens)
    elif (path / "modules.json").exists():
        ask = _embedding(path, max_tokens)
    else:
        msg = (
            f"{path}: no head: expected model.onnx and tokenizer.json, or a sentence-transformers "
            "model (modules.json) and head.json"
        )
        raise UsageError(msg)
    return Encoder(labels, activation, max_tokens, ask, path)


def _missing(path: Path, extra: str, error: Exception) -> UsageError:
    return UsageError(f"{path}: needs a library that is not here ({error}): gristmill[{extra}]")


def _onnx(path: Path, max_tokens: int) -> Callable[[list[str]], np.ndarray]:
    try:
        import onnxruntime
    except ImportError as error:
        raise _missing(path, "onnx", error) from error
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # workers are processes
        session = onnxruntime.InferenceSession(
            str(path / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # both raise classes of their own
        msg = f"{path}: model.onnx or tokenizer.json cannot be read: {error}"
        raise UsageError(msg) from error
    tokenizer.enable_truncation(max_tokens)
    tokenizer.enable_padding()
    wanted = [each.name for each in session.get_inputs()]

    def ask(texts: list[str]) -> np.ndarray:
        encoded = tokenizer.encode_batch(texts)
        given = {
            "input_ids": [e.ids for e in encoded],
            "attention_mask": [e.attention_mask for e in encoded],
            "token_type_ids": [e.type_ids for e in encoded],
        }
        return session.run(None, {n: np.array(given[n], np.int64) for n in wanted})[0]

    return ask


def _embedding(path: Path, max_tokens: int) -> Callable[[list[str]], np.ndarray]:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise _missing(path, "embeddings", error) from error
    try:
        head = json.loads((path / "head.json").read_text("utf-8"))
        weights, bias = (np.array(head[name], np.float64) for name in ("weights", "bias"))
        model = SentenceTransformer(str(path), device="cpu", local_files_only=True)
    except Exception as error:  # the library's own classes, of many kinds
        msg = f"{path}: not a sentence-transformers model with a head.json: {error}"
        raise UsageError(msg) from error
    model.max_seq_length = min(model.max_seq_length or max_tokens, max_tokens)

    def ask(texts: list[str]) -> np.ndarray:
        found = model.encode(texts, batch_size=BATCH, show_progress_bar=False)
        return np.asarray(found, np.float64) @ weights.T + bias

    return ask
