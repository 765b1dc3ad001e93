"""Tokenizers as tiktoken keeps them: a `.tiktoken` file of ranks, a pattern, control tokens.

The file has a line for each token, `base64 rank`; what splits a text and which control tokens there
are is not in it, so a recipe says it. tiktoken itself gives the reference. The fast engine takes a
byte-level BPE made of the ranks: tiktoken merges the neighbours whose *joint* token has the lowest
rank, so every pair that makes a token is a merge, in the order of the tokens made; and a pre-token
that is in the vocabulary is one token, merges or not (`ignore_merges`).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from ..documents.errors import UsageError
from . import pieces
from .encoder import Encoder, end_of, fast_or_slow, rows_flat

PATTERNS: Final[Mapping[str, str]] = {
    "gpt2": pieces.GPT2,
    "cl100k": pieces.CL100K,
    "o200k": pieces.O200K,
    "qwen2": pieces.QWEN2,
}
_LINE: Final = re.compile(rb"[A-Za-z0-9+/]+={0,2} [0-9]+\r?\n?")


def is_tiktoken(raw: bytes) -> bool:
    """Is the first line a token and a rank."""
    return _LINE.fullmatch(raw[: raw.find(b"\n") + 1 or len(raw)]) is not None


def load_tiktoken(
    path: Path,
    raw: bytes,
    *,
    pattern: str | None,
    special: Mapping[str, int] | None,
    eos: str | None,
    bos: bool | None,
    allow_slow: bool,
) -> Encoder:
    """Load it; arguments and errors as of `load_encoder`."""
    try:
        import tiktoken
    except ImportError as error:
        raise UsageError(
            f"{path}: a file of tiktoken's needs its library: pip install 'gristmill[tiktoken]'"
        ) from error
    if bos:
        raise UsageError(f"{path}: bos=True, but a .tiktoken file has no template")
    if pattern is None:
        raise UsageError(
            f"{path}: the file does not say how texts are split: state `pattern`, one of "
            f"{', '.join(PATTERNS)} or a regular expression"
        )
    split = PATTERNS.get(pattern, pattern)
    ranks = _ranks(path, raw)
    controls = _controls(path, special or {}, ranks)
    try:
        library = tiktoken.Encoding(
            path.name, pat_str=split, mergeable_ranks=ranks, special_tokens=dict(controls)
        )
    except Exception as error:  # the library raises bare ValueError, and panics
        raise UsageError(f"{path}: tiktoken does not take it: {error}") from error

    slow = partial(rows_flat, library.encode_ordinary)
    name = f"tiktoken {tiktoken.__version__}"
    definition = json.dumps(_definition(ranks, split))
    flat, engine = fast_or_slow(path, definition, slow, name, allow_slow=allow_slow)
    return Encoder(
        digest=hashlib.blake2b(raw, digest_size=16).hexdigest(),
        engine=engine,
        vocab_size=max(*ranks.values(), *controls.values()) + 1,
        eos_id=end_of(path, controls, eos),
        bos_id=None,
        controls=controls,
        flat=flat,
        cuts=split in pieces.SPLITS,
    )


def _ranks(path: Path, raw: bytes) -> dict[bytes, int]:
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(raw.splitlines(), 1):
        if not line:
            continue
        try:
            token, rank = line.split()
            ranks[base64.b64decode(token, validate=True)] = int(rank)
        except (ValueError, binascii.Error) as error:
            raise UsageError(
                f"{path}: line {number} is {line[:60]!r}; expected a token in base64 and its rank"
            ) from error
    if missing := [b for b in range(256) if bytes([b]) not in ranks]:
        raise UsageError(
            f"{path}: {len(missing)} of the 256 bytes have no token, {missing[0]:#04x} first"
        )
    if len(set(ranks.values())) != len(ranks):
        raise UsageError(f"{path}: two tokens have one rank")
    return ranks


def _controls(path: Path, special: Mapping[str, int], ranks: Mapping[bytes, int]) -> dict[str, int]:
    taken = set(ranks.values())
    for name, number in special.items():
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 1 << 32:
            raise UsageError(f"{path}: special.{name}: found {number!r}; expected an id")
        if number in taken:
            raise UsageError(f"{path}: special.{name}: id {number} is another token's")
        taken.add(number)
    if not special:
        raise UsageError(
            f"{path}: the file names no control tokens: state `special`, name: id, the end of a "
            "document among them"
        )
    return {str(name): number for name, number in special.items()}


def _definition(ranks: Mapping[bytes, int], split: str) -> dict[str, Any]:
    """The same as a `tokenizer.json`."""
    letters = _letters()
    name = {token: "".join(letters[b] for b in token) for token in ranks}
    merges = [
        [name[left], name[right]]
        for token, _ in sorted(ranks.items(), key=lambda item: item[1])
        for left, right in _pairs(token, ranks)
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {
                    "type": "Split",
                    "pattern": {"Regex": split},
                    "behavior": "Isolated",
                    "invert": False,
                },
                {
                    "type": "ByteLevel",
                    "add_prefix_space": False,
                    "trim_offsets": True,
                    "use_regex": False,
                },
            ],
        },
        "post_processor": None,
        "decoder": {
            "type": "ByteLevel",
            "add_prefix_space": True,
            "trim_offsets": True,
            "use_regex": True,
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": True,
            "vocab": {name[token]: rank for token, rank in ranks.items()},
            "merges": merges,
        },
    }


def _pairs(token: bytes, ranks: Mapping[bytes, int]) -> Iterator[tuple[bytes, bytes]]:
    """The pairs of tokens that make a token, by their ranks."""
    found = [
        (ranks[token[:i]], ranks[token[i:]], i)
        for i in range(1, len(token))
        if token[:i] in ranks and token[i:] in ranks
    ]
    for _, _, i in sorted(found):
        yield token[:i], token[i:]


def _letters() -> list[str]:
    """GPT-2's letter for each byte, which `tokenizers` has kept."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [b for b in range(256) if b not in plain]
    return [chr(b) if b in plain else chr(256 + rest.index(b)) for b in range(256)]
