"""Train `mixing/tokenizer.json`: a small byte-level BPE, the same bytes on every run.

`python -m gristmill.mixing.train_tokenizer --data FOLDER` reads the sets of FOLDER that a model may
be trained on, writes the tokenizer and, beside it, TOKENIZER.md: what went in, by digest.

The split is Llama 3's pattern (one of those that `fastokens` scans without a regex engine); the
alphabet is all 256 bytes, so no text is unknown. Control tokens stand *above* the learned
vocabulary and outside the model: an encoder that is built without them cannot give one, whatever
the text says. Each set gives at most SHARE bytes, every n-th document, so that one language of
encyclopaedia does not fill the vocabulary. Few ids, because the file is part of the package.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zstandard

from ..documents.errors import UsageError
from ..documents.fingerprint import file_digest

VOCABULARY = 16_384  # ids, control tokens included: fits uint16 with room
SHARE = 12_000_000  # bytes of text that one set gives at most
PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CONTROL = (  # ids VOCABULARY - 16 upwards; the order is the format
    "<|endoftext|>",
    "<|pad|>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|tool_call|>",
    "<|tool_result|>",
    "<|end_of_turn|>",
    "<|file|>",
    "<|repository|>",
    *(f"<|reserved_{n}|>" for n in range(6)),
)
SETS = (  # folder, the licence of its text
    ("c-encyclopedia-enwiki", "CC BY-SA 3.0"),
    ("c-lecture-notes", "CC BY-SA 4.0"),
    ("c-register-web", "web text; annotations CC BY 4.0"),
    ("c-spam-spamassassin", "public domain"),
    ("c-textbooks-openstax", "CC BY 4.0"),
    ("labels", "web text; labels by the project"),
)


def set_files(data: Path) -> list[tuple[str, str, list[Path]]]:
    """Name, licence and files, in order, of every set; UsageError names a set that is missing."""
    found = []
    for name, licence in SETS:
        files = sorted(p for p in (data / name).glob("*.jsonl.*") if p.suffix in {".gz", ".zst"})
        if not files:
            raise UsageError(f"no *.jsonl.gz or .zst in {data / name}; --data names the folder")
        found.append((name, licence, files))
    return found


def texts_of(files: list[Path]) -> Iterator[str]:
    """Yield the `text` of every line of the files, in order."""
    for path in files:
        if path.suffix == ".zst":
            with path.open("rb") as raw, zstandard.ZstdDecompressor().stream_reader(raw) as stream:
                yield from (json.loads(line)["text"] for line in io.TextIOWrapper(stream, "utf-8"))
        else:
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                yield from (json.loads(line)["text"] for line in lines)


def chosen_texts(files: list[Path], share: int = SHARE) -> list[str]:
    """Take every n-th text with the least n at which the set is at most `share` bytes."""
    texts = [t.encode("utf-8", "replace").decode() for t in texts_of(files)]  # lone surrogates
    stride = -(-sum(len(t.encode()) for t in texts) // share) or 1
    return texts[::stride]


def train(texts: list[str], vocabulary: int = VOCABULARY) -> bytes:
    """Return the bytes of a `tokenizer.json` with `vocabulary` ids, CONTROL last among them."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PATTERN), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary - len(CONTROL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        max_token_length=24,  # bytes; longer ones are rules of dashes and boilerplate
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens(list(CONTROL))
    if tokenizer.get_vocab_size() != vocabulary:
        got = tokenizer.get_vocab_size()
        raise UsageError(f"the texts give {got} ids, {vocabulary} wanted; give more text")
    plain: dict[str, Any] = json.loads(tokenizer.to_str())
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode()


def card(sets: list[tuple[str, str, list[Path]]], used: list[tuple[int, int]], out: Path) -> str:
    """Return the text of TOKENIZER.md."""
    import tokenizers

    rows = "\n".join(
        f"| {name} | {licence} | {documents:,} | {size:,} |"
        for (name, licence, _), (documents, size) in zip(sets, used, strict=True)
    )
    digests = "\n".join(
        f"| {name}/{path.name} | {path.stat().st_size:,} | `{file_digest(path)}` |"
        for name, _, files in sets
        for path in files
    )
    controls = ", ".join(
        f"`{token}` {VOCABULARY - len(CONTROL) + n}" for n, token in enumerate(CONTROL)
    )
    return f"""# tokenizer.json

A byte-level BPE of {VOCABULARY:,} ids (uint16), made by this project, Apache-2.0. It is small on
purpose: the demo, the tests and exact counts need one without a download. For a model, bring the
tokenizer that the model will have. It has seen mostly English, with some Arabic, Catalan, French,
Portuguese and Swedish and a little Python; other scripts cost more tokens, never an unknown one.

- Split: Llama 3's pattern, then bytes. No normaliser, no template: `tokens` adds
  the end of document.
- Control tokens, outside the model, given by id and never by text: {controls}.
- Made by `python -m gristmill.mixing.train_tokenizer --data FOLDER` with tokenizers
  {tokenizers.__version__}; a second run gives the same bytes.
- Size {out.stat().st_size:,} bytes, BLAKE2b-128 `{file_digest(out)}`.

## What it was trained on

Every n-th document of each set, at most {SHARE:,} bytes of a set. Nothing of the texts is kept but
the merges.

| set | licence of the text | documents | bytes of text |
|---|---|---:|---:|
{rows}

| file | bytes | BLAKE2b-128 |
|---|---:|---|
{digests}
"""


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m gristmill.mixing.train_tokenizer")
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("tokenizer.json"))
    options = parser.parse_args(arguments)
    sets = set_files(options.data)
    texts: list[str] = []
    used = []
    for _, _, files in sets:
        chosen = chosen_texts(files)
        used.append((len(chosen), sum(len(t.encode()) for t in chosen)))
        texts += chosen
    options.out.write_bytes(train(texts))
    options.out.with_name("TOKENIZER.md").write_text(card(sets, used, options.out), "utf-8")


if __name__ == "__main__":
    main()
