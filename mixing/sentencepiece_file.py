"""Tokenizers as SentencePiece keeps them: a `.model` file. The library itself is the engine.

Nothing is converted: normalisation, the space before a text and the search for the best pieces are
the library's own, and so are the ids. A text is never cut (a piece would get a space before it), so
memory follows the longest document. Control symbols (`<s>`, `</s>`) come from no text; symbols that
the model's author let texts spell (`user_defined_symbols`) do, as in the library.
"""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path

from ..documents.errors import UsageError
from .encoder import Encoder, end_of, rows_flat


def load_sentencepiece(path: Path, raw: bytes, *, eos: str | None, bos: bool | None) -> Encoder:
    """Load it; arguments and errors as of `load_encoder`. `bos=True` writes the model's own."""
    try:
        import sentencepiece
    except ImportError as error:
        raise UsageError(
            f"{path}: a model of SentencePiece needs its library: "
            "pip install 'gristmill[sentencepiece]'"
        ) from error
    model = sentencepiece.SentencePieceProcessor()
    try:
        model.LoadFromSerializedProto(raw)
    except (RuntimeError, OSError) as error:
        raise UsageError(
            f"{path} is no tokenizer that is known here: not JSON, no lines of tiktoken's, and "
            f"SentencePiece says {error}"
        ) from error
    controls = {model.IdToPiece(i): i for i in range(model.GetPieceSize()) if model.IsControl(i)}
    if eos is None and model.eos_id() >= 0:
        eos = model.IdToPiece(model.eos_id())
    if bos and model.bos_id() < 0:
        raise UsageError(f"{path}: bos=True, but the model has no symbol for it")

    return Encoder(
        digest=hashlib.blake2b(raw, digest_size=16).hexdigest(),
        engine=f"sentencepiece {sentencepiece.__version__}",
        vocab_size=model.GetPieceSize(),
        eos_id=end_of(path, controls, eos),
        bos_id=model.bos_id() if bos else None,
        controls=controls,
        flat=partial(rows_flat, model.EncodeAsIds),
        cuts=False,
        whole=True,
    )
