"""Token ids at scan speed, equal to `tokenizers` or not at all.

The engine is `fastokens`; benchmarks/tokens.py prints its MB/s beside those of `tokenizers`. It is
built *without* control tokens, so a literal `<|endoftext|>` in a text is plain text; `tokens`
places control ids. Equality with `tokenizers` is proven on a fixed probe whenever an encoder is
loaded, for our own tokenizer by the digest of the ids that `tokenizers` gives; what differs stops
the run unless slow work is asked for. One thread: workers are processes. FASTOKENS_BPE_THREADS is
read when the engine's pool starts, so it is set here, before the import (measured: no thread beside
the caller's; RAYON_NUM_THREADS=1 alone leaves a second).

Memory. A pre-token costs the engine many times its own bytes, and a batch some times: texts
go in by GROUP bytes, long ones in pieces, cut where no token of the known splits can stand on
both sides (`pieces`). Pieces leave a text's ids as they were: tests cut at every such place. Only
a stretch of LONGEST bytes without one (a run of one letter, say) is cut anyway: there, and only
there, ids can differ from those of `tokenizers`; they decode the same and are the same on every
run. Without that rule memory would follow the longest such stretch, many times over.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..documents.errors import ContractError, StopError, UsageError, did_you_mean
from ..documents.text import text_view
from .pieces import SPLITS, pieces, split_of
from .probe import PROBE, chained_pairs

GROUP = 4 << 20  # bytes of text that go to the engine at once
PIECE = 1 << 20  # bytes; longer texts are cut where it is safe
LONGEST = 2 << 20  # bytes without a safe place after which a text is cut anyway
OWN = Path(__file__).with_name("tokenizer.json")
# The probe's ids under our own tokenizer as `tokenizers` gives them (a test holds that): an engine
# that gives them is proven without asking it again, and both cannot change together.
OWN_DIGEST = "c0c1c6ae80fb38ff631862768d44db94"
OWN_GOLDEN = "34e7c55a95448271bcdfa4357b8db004"
_ENDS = ("<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|end▁of▁sentence|>", "[SEP]")

Flat = Callable[[list[str]], tuple[np.ndarray, np.ndarray]]  # ids uint32, int64 offsets


class Part(NamedTuple):
    """Ids of some rows in order, and where among them rows begin and end."""

    ids: np.ndarray  # uint32
    marks: np.ndarray  # int64 positions in `ids`, in order of rows: a row's begin, then its end
    ends: np.ndarray  # bool, per mark: an end; a row that goes on in the next part has it there


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """Text to ids with one tokenizer. Load it after a process has started, once in each."""

    digest: str  # BLAKE2b-128 of the tokenizer file
    engine: str  # name and version: `fastokens 0.3.5`
    vocab_size: int  # greatest id + 1
    eos_id: int  # ends every document
    bos_id: int | None  # begins every document, where the tokenizer's own template says so
    controls: Mapping[str, int] = field(repr=False)  # ids that no text gives, by name
    flat: Flat = field(repr=False)
    cuts: bool = field(repr=False)  # the split is one of those that `pieces.CUT` is proven for
    whole: bool = field(default=False, repr=False)  # texts are never cut, however long

    @property
    def dtype(self) -> np.dtype:
        """Little-endian uint16 where every id fits, else uint32."""
        return np.dtype("<u2" if self.vocab_size <= 1 << 16 else "<u4")

    def parts(self, column: pa.Array | pa.ChunkedArray) -> Iterator[Part]:
        """Encode a string column in parts of at most GROUP + LONGEST bytes of text.

        Nulls are empty. ContractError names the row whose text is not UTF-8. Under a split that
        is not one of `pieces.SPLITS`, texts up to LONGEST bytes stay whole.
        """
        view = text_view(column)
        offsets = view.offsets.tolist()
        piece = sys.maxsize if self.whole else PIECE if self.cuts else LONGEST
        texts: list[str] = []
        marks: list[int] = []  # pieces before a row's begin, then before its end
        ends: list[bool] = []
        held = 0
        for row in range(view.rows):
            first, last = offsets[row], offsets[row + 1]
            marks.append(len(texts))
            ends.append(False)
            whole = ((0, last - first),) if first < last <= first + piece else None
            for start, stop in whole or pieces(view.data[first:last], piece, LONGEST):
                try:
                    texts.append(view.data[first + start : first + stop].tobytes().decode())
                except UnicodeDecodeError as error:
                    raise ContractError(
                        f"row {row}: text is not UTF-8 at byte {start + error.start}; readers "
                        "repair text before it is written"
                    ) from error
                held += stop - start
                if held >= GROUP:
                    yield self._part(texts, marks, ends)
                    texts, marks, ends, held = [], [], [], 0
            marks.append(len(texts))
            ends.append(True)
        if marks:
            yield self._part(texts, marks, ends)

    def _part(self, texts: list[str], marks: list[int], ends: list[bool]) -> Part:
        ids, starts = self.flat(texts)
        return Part(ids, starts[np.array(marks, np.int64)], np.array(ends, np.bool_))

    def encode(self, column: pa.Array | pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
        """Return the ids of all rows, `dtype`[tokens], and int64[rows + 1] offsets into them."""
        ids, offsets, total = [], [np.zeros(1, np.int64)], 0
        for part in self.parts(column):
            ids.append(part.ids.astype(self.dtype))
            offsets.append(part.marks[part.ends] + total)
            total += len(part.ids)
        return np.concatenate([np.empty(0, self.dtype), *ids]), np.concatenate(offsets)

    def count(self, column: pa.Array | pa.ChunkedArray) -> np.ndarray:
        """Text tokens of each row, int64[rows]; null gives 0. Control ids are not in it."""
        ends, total = [np.zeros(1, np.int64)], 0
        for part in self.parts(column):
            ends.append(part.marks[part.ends] + total)
            total += len(part.ids)
        return np.diff(np.concatenate(ends))


def load_encoder(
    path: Path | None = None,
    *,
    eos: str | None = None,
    bos: bool | None = None,
    pattern: str | None = None,
    special: Mapping[str, int] | None = None,
    allow_slow: bool = False,
) -> Encoder:
    """Load a tokenizer's file (None: our own) and prove its fast engine against its own library.

    A `tokenizer.json`; a file of tiktoken's ranks, which needs `pattern` (how texts are split) and
    `special` (control tokens, name: id); a `.model` of SentencePiece. What it is, its bytes say.
    `eos` names the control token that ends a document, where the usual names do not find it. `bos`
    says whether documents begin with the control token that the tokenizer's template asks for; it
    must be said where there is one. UsageError: no such file or token, a template that documents
    cannot keep. StopError: the engines differ (`allow_slow` goes on with the library instead).

    Control tokens leave the vocabulary, special or not; only added runs of whitespace stay, which
    are text (GPT-NeoX).
    """
    from .tiktoken_file import is_tiktoken, load_tiktoken

    path = path or OWN
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} is not readable: {error}") from error
    if is_tiktoken(raw):
        said = {"pattern": pattern, "special": special, "eos": eos, "bos": bos}
        return load_tiktoken(path, raw, **said, allow_slow=allow_slow)  # type: ignore[arg-type]
    if pattern is not None or special is not None:
        raise UsageError(f"{path}: `pattern` and `special` are for files of tiktoken's ranks")
    if raw[:1] == b"\n" and raw.lstrip()[:1] != b"{":  # the first field of its message
        from .sentencepiece_file import load_sentencepiece

        return load_sentencepiece(path, raw, eos=eos, bos=bos)
    return _load_json(path, raw, eos=eos, bos=bos, allow_slow=allow_slow)


def libraries_of(path: Path | None) -> list[str]:
    """The libraries whose versions decide the ids of a tokenizer's file."""
    from .tiktoken_file import is_tiktoken

    with (path or OWN).open("rb") as file:
        start = file.read(1 << 12)
    if is_tiktoken(start):
        names = ["fastokens", "tiktoken"]
    elif start.lstrip()[:1] == b"{":
        names = ["fastokens", "tokenizers"]
    else:
        names = ["sentencepiece"]
    for name in names:
        if find_spec(name) is None:
            raise UsageError(f"{path} needs a library: pip install 'gristmill[{name}]'")
    return names


def _load_json(
    path: Path, raw: bytes, *, eos: str | None, bos: bool | None, allow_slow: bool
) -> Encoder:
    import tokenizers

    try:
        full = json.loads(raw)
        added = list(full.get("added_tokens") or [])
    except (ValueError, AttributeError) as error:
        raise UsageError(f"{path} is not a readable tokenizer.json: {error}") from error
    controls = {t["content"]: int(t["id"]) for t in added if t["special"] or t["content"].strip()}
    kept = [t for t in added if t["content"] not in controls]
    plain = full | {"added_tokens": kept, "truncation": None, "padding": None}
    definition = json.dumps(plain | {"post_processor": None})
    try:
        # `tokenizers` numbers added tokens anew unless the model knows their ids.
        for token in kept:
            plain["model"]["vocab"][token["content"]] = token["id"]
        reference = tokenizers.Tokenizer.from_str(json.dumps(plain))
    except Exception as error:  # the library raises bare Exception
        raise UsageError(f"{path} is not a tokenizer that `tokenizers` loads: {error}") from error

    if full["model"].get("dropout"):
        raise UsageError(
            f"{path} drops merges at random (model.dropout): ids would differ each run"
        )

    digest = hashlib.blake2b(raw, digest_size=16).hexdigest()
    eos_id = end_of(path, controls, eos)
    bos_id = _bos(path, reference, eos_id, bos)
    slow = partial(rows_flat, lambda text: reference.encode(text, add_special_tokens=False).ids)
    name = f"tokenizers {tokenizers.__version__}"
    golden = OWN_GOLDEN if digest == OWN_DIGEST else None
    flat, engine = fast_or_slow(path, definition, slow, name, golden=golden, allow_slow=allow_slow)
    _check_probe(path, golden, flat, set(controls.values()))
    known = max(max(reference.get_vocab().values(), default=-1), *controls.values())
    return Encoder(
        digest=digest,
        engine=engine,
        vocab_size=known + 1,
        eos_id=eos_id,
        bos_id=bos_id,
        controls=controls,
        flat=flat,
        cuts=not kept and full.get("normalizer") is None and split_of(full) in SPLITS,
    )


def fast_or_slow(
    path: Path,
    definition: str,
    slow: Flat,
    name: str,
    *,
    golden: str | None = None,
    allow_slow: bool,
) -> tuple[Flat, str]:
    """The fast engine for a `tokenizer.json`, proven against `slow`; and its name and version.

    StopError where it is not equal; with `allow_slow` it is `slow` itself, by its `name`. `golden`:
    the digest of what `slow` gives for the probe, where that is known.
    """
    library = name.partition(" ")[0]
    try:
        fast, version = _fast_flat(definition)
        if golden is None or probe_digest(fast) != golden:
            _prove(fast, slow, library)
    except StopError as error:
        if not allow_slow:
            raise StopError(
                f"{path}: {error}; ids must be those of `{library}`: take another version of "
                "fastokens, or allow the slow engine (many times slower)"
            ) from error
        return slow, name
    return fast, f"fastokens {version}"


def end_of(path: Path, controls: Mapping[str, int], eos: str | None) -> int:
    """The id that ends a document: the control token of that name, or of a usual one."""
    if eos is not None:
        if eos not in controls:
            raise UsageError(f"{path} has no control token {eos!r}{did_you_mean(eos, controls)}")
        return controls[eos]
    for name in _ENDS:
        if name in controls:
            return controls[name]
    known = ", ".join(sorted(controls)[:20]) or "none"
    raise UsageError(f"{path}: name the control token that ends a document (eos); it has: {known}")


def _bos(path: Path, reference: Any, eos_id: int, bos: bool | None) -> int | None:
    """Give the id that begins a document; refuse a template that asks for more than one."""
    body = reference.encode("a", add_special_tokens=False).ids
    whole = reference.encode("a", add_special_tokens=True).ids
    at = next((n for n in range(len(whole)) if whole[n : n + len(body)] == body), None)
    before, after = (whole[:at], whole[at + len(body) :]) if at is not None else (whole, [])
    if at is None or len(before) > 1 or after not in ([], [eos_id]):
        raise UsageError(
            f"{path}: its template turns {body} into {whole}; a document can have one id before it "
            f"and the end id {eos_id} after it"
        )
    if before and bos is None:
        raise UsageError(
            f"{path}: its template begins every document with {reference.id_to_token(before[0])!r}"
            f" (id {before[0]}); say bos=True to write it, bos=False to leave it out"
        )
    if bos and not before:
        raise UsageError(f"{path}: bos=True, but its template has no token before a document")
    return before[0] if bos else None


def _fast_flat(definition: str) -> tuple[Flat, str]:
    """Give the fast engine and its version; StopError where it does not take this tokenizer."""
    os.environ.setdefault("FASTOKENS_BPE_THREADS", "1")
    try:
        # From text, not from the file: from_file also takes in a tokenizer_config.json beside it.
        from importlib.metadata import version

        from fastokens._native import Tokenizer

        engine = Tokenizer.from_json_str(definition)
    except Exception as error:  # the library raises ValueError and worse
        raise StopError(f"fastokens does not take it ({error})") from error

    def flat(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        ids, offsets = engine.encode_batch_flat(texts)
        return np.frombuffer(ids, "<u4"), np.frombuffer(offsets, "<u8").astype(np.int64)

    return flat, version("fastokens")


def rows_flat(
    encode: Callable[[str], Sequence[int]], texts: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Ids of all texts and their offsets, by a library that takes one text."""
    # One by one: a batch would start a pool of threads of its own.
    rows = [encode(text) for text in texts]
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    return np.fromiter((i for row in rows for i in row), np.uint32, offsets[-1]), offsets


def _probed(flat: Flat) -> Iterator[tuple[list[str], np.ndarray, np.ndarray]]:
    """Texts of the probe with their ids and offsets; chained pairs one by one, in order."""
    for texts in (PROBE, *([pair] for pair in chained_pairs())):
        yield texts, *flat(texts)


def probe_digest(flat: Flat) -> str:
    """32 hex digits of BLAKE2b over the ids of all texts of the probe and where each ends."""
    hasher = hashlib.blake2b(digest_size=16)
    for _, ids, ends in _probed(flat):
        hasher.update(ends.astype("<i8").tobytes() + ids.astype("<u4").tobytes())
    return hasher.hexdigest()


def _prove(fast: Flat, slow: Flat, name: str) -> None:
    """StopError names the first text of the probe whose ids differ."""
    for texts, found, found_ends in _probed(fast):
        right, right_ends = slow(texts)
        for n, text in enumerate(texts):
            a = found[found_ends[n] : found_ends[n + 1]]
            b = right[right_ends[n] : right_ends[n + 1]]
            if not np.array_equal(a, b):
                raise StopError(
                    f"fastokens gives {a[:8].tolist()} for {text[:40]!r}, {name} {b[:8].tolist()}"
                )


def _check_probe(path: Path, golden: str | None, flat: Flat, controls: set[int]) -> None:
    """StopError where text gives a control id, or our own tokenizer gives other ids than it did."""
    ids, _ = flat(PROBE)
    if hit := controls.intersection(np.unique(ids).tolist()):
        raise StopError(
            f"{path}: text gives the control ids {sorted(hit)}; the vocabulary is unfit"
        )
    if golden is not None and (found := probe_digest(flat)) != golden:
        raise StopError(
            f"{path}: the probe's ids hash to {found}, not {golden}: an engine changed; "
            "install the versions of requirements.lock"
        )
