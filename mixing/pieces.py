"""Where a long text may be cut without changing a single id: between pre-tokens, whatever follows.

A byte-level BPE never merges over the borders of its split, so a text can be encoded in pieces cut
at borders. Finding one border needs no run of the split: for the four patterns that nearly all
open models use, two neighbouring characters can be enough to know. `CUT` lists such pairs; a test
cuts random text at *every* one of them and compares with the whole under all four patterns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + TAIL
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + TAIL
SPLITS = (GPT2, CL100K, O200K, QWEN2)

# No pre-token of SPLITS holds both sides of these places, and none that ends here looks ahead: only
# whitespace does (`\s+(?!\S)`), and the byte before is never of whitespace. After letters `'` is
# left out (contractions); before a space the lead bytes C2, E1, E2 and E3 are, where whitespace
# beyond ASCII begins. E5-E8 are Han throughout, letters to every version of Unicode.
CUT = re.compile(
    rb"[A-Za-z](?=[\n\r\t -&(-@\[-`{-~])|[0-9](?=[\n A-Za-z])|[!-/:-@\[-`{-~](?= )"
    rb"|[\xe5-\xe8][\x80-\xbf]{2}(?=[ \n]|\xe3\x80\x82|\xef\xbc\x8c)"
    rb"|[\xc3-\xdf][\x80-\xbf](?= )|\xe0[\xa0-\xbf][\x80-\xbf](?= )"
)


def pieces(data: np.ndarray, piece: int, longest: int) -> Iterator[tuple[int, int]]:
    """Spans that cover `data` (uint8, UTF-8), each at least `piece` bytes but for the last.

    A span ends at the first safe place after `piece` bytes, at the latest after `longest`
    of them, there at the end of a character.
    """
    longest = max(longest, piece)
    start = 0
    while len(data) - start > piece:
        found = CUT.search(data, start + piece - 1, min(start + longest, len(data)))  # type: ignore[call-overload]
        if found:
            stop = found.end()
        elif len(data) - start <= longest:
            break
        else:
            stop = start + longest
            while data[stop] & 0xC0 == 0x80:  # inside a character
                stop += 1
                if stop == len(data):
                    break
        if stop >= len(data):
            break
        yield start, stop
        start = stop
    if start < len(data):
        yield start, len(data)


def split_of(full: dict[str, Any]) -> str | None:
    """Give the pattern of a byte-level pre-tokenizer, None where it is of another kind."""
    match full.get("pre_tokenizer"):
        case {"type": "ByteLevel", "use_regex": True, "add_prefix_space": False}:
            return GPT2
        case {
            "type": "Sequence",
            "pretokenizers": [
                {
                    "type": "Split",
                    "pattern": {"Regex": str(pattern)},
                    "behavior": "Isolated",
                    "invert": False,
                },
                {"type": "ByteLevel", "use_regex": False, "add_prefix_space": False},
            ],
        }:
            return pattern
    return None
