"""What each code point is to the filters: a table of 1,114,112 bytes, made from `characters.tsv`.

The ranges are data, not calls of `unicodedata`, because Python versions carry different Unicode
versions and the same text must give the same scores everywhere. `ranges()` made the file (Unicode
14.0) and a test compares the two. The flat table costs 1.1 MB once; a text touches only the few
cache lines of its own scripts. A two-level table was not needed.

Words are runs of NUMBER, LETTER and LATIN, extended by MARK; each UNSPACED is a word of its own.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

OTHER, SPACE, TERMINAL, QUOTE, CLOSER, MARK, NUMBER, LETTER, LATIN, UNSPACED = range(10)
NAMES = (
    "other space terminal quote closer mark number letter latin unspaced".split()  # noqa: SIM905
)

_FILE = Path(__file__).with_name("characters.tsv")
_SPACES = (
    "\t\n\v\f\r \x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007"
    "\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
# Sentence_Terminal of the Unicode character database, without extinct scripts.
_TERMINALS = (
    ".!?\u0589\u061d\u061e\u061f\u06d4\u0700\u0701\u0702\u07f9\u0964\u0965\u104a\u104b\u1362\u1367"
    "\u1368\u17d4\u17d5\u1803\u1809\u203c\u203d\u2047\u2048\u2049\u3002\ufe52\ufe56\ufe57\uff01"
    "\uff0e\uff1f\uff61"
)
_QUOTES = "\"'\u2019\u201d\u00bb\u203a\u300d\u300f\uff02\uff07\u2018\u201c"  # the last: German
_CLOSERS = ")]}\uff09\uff3d\uff5d\u3009\u300b\u3011\u3015"
_UNSPACED = (
    "CJK UNIFIED",
    "CJK COMPATIBILITY IDEOGRAPH",
    "HIRAGANA",
    "KATAKANA",
    "HALFWIDTH KATAKANA",
    "IDEOGRAPHIC",
    "THAI",
    "LAO",
    "KHMER",
    "MYANMAR",
)


def _class(code: int) -> int:
    char = chr(code)
    for chars, kind in (
        (_SPACES, SPACE),
        (_TERMINALS, TERMINAL),
        (_QUOTES, QUOTE),
        (_CLOSERS, CLOSER),
        ("\u200c\u200d", MARK),  # joiners stand inside words of Persian and Indic scripts
    ):
        if char in chars:
            return kind
    category = unicodedata.category(char)
    if category[0] == "M":
        return MARK
    if category[0] == "N":
        return NUMBER
    if category[0] != "L":
        return OTHER
    name = unicodedata.name(char, "")
    if name.startswith(_UNSPACED):
        return UNSPACED
    return LATIN if "LATIN" in name.split()[:2] or char in "ªº" else LETTER


def ranges() -> Iterator[tuple[int, int, int]]:
    """First and last code point and class of each run; class 0 is left out."""
    first, kind = 0, _class(0)
    for code in range(1, 0x110001):
        now = _class(code) if code < 0x110000 else -1
        if now != kind:
            if kind:
                yield first, code - 1, kind
            first, kind = code, now


@cache
def table() -> np.ndarray:
    """Class of each code point, uint8[0x110000], read-only."""
    out = np.zeros(0x110000, np.uint8)
    for line in _FILE.read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        first, last, name = line.split("\t")
        out[int(first, 16) : int(last, 16) + 1] = NAMES.index(name)
    out.flags.writeable = False
    return out
