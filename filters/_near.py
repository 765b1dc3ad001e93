"""Whether what differs from an evaluation item is the same question, or another one.

The words of both are aligned. Where in an item that is short at most two words stand for at most
two (or none), they must be words of form (`WORDS`, those of Gopher's stop lists, and those that one
in `FORM` items has), one word misspelt, or one written as two. Numbers never are: "a train travels
60 miles" with 90 is another question, in items of any length, and so is the boiling point of
ethanol. `first` and `1st` are one number, `1.50` and `1.5`, `1,000` and `1000`. What is a word of
its own is no misspelling: one that items have, one of the table of common words (Iceland of
Ireland, county of country), or, where two letters have changed places, one of `SWAPPED`: the table
has words of five languages, and `frist` is common in Swedish. Nor does one of `OPPOSED` stand for
another: `and` for `or`. Longer gaps say nothing: a copy may be cut short. Signs are compared apart,
in copies that are whole too, for tokens have none: with `x - 1` for `x + 1` it is another question.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from html import unescape
from typing import NamedTuple

import numpy as np

from .gopher_quality import stop_lists
from .templates.words import bits_of, common

WORDS = (
    "a an the this that these those is are was were be been do does did has have had will would "
    "can could may should shall of in on at to for from by with as into and or but if it its he "
    "she they his her their them you your we our i there than then so very also just"
)
TELLING = frozenset(["who", "when", "where", "why", "how", "not", "no", "never", "without"])
OPPOSED_WORDS = (
    "and or nor before after above below over under more less most least with without all some "
    "none any only first last"
)
OPPOSED = frozenset(OPPOSED_WORDS.split())
NUMBERS = {
    word: str(value)
    for words in (
        "zero one two three four five six seven eight nine ten eleven twelve",
        "0th first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth",
        "0th 1st 2nd 3rd 4th 5th 6th 7th 8th 9th 10th 11th 12th",
    )
    for value, word in enumerate(words.split())
}
# Words of content with two letters in other places, among 12,000 English ones and by hand; but for
# `untied`, which is mostly a misspelling.
SWAPPED_WORDS = (
    "act acts cat cats alter later angel angels angle angles arid raid arise arises arising raise "
    "raises raising arm ram art rat auction caution action cation beat beta brain brian calm clam "
    "carol carlo carter crater casual causal coast coats compliant complaint cops corps crops "
    "dairy diary denies denise dose east eats era ear exist exits field filed files flies fired "
    "fried gary gray handel handle lion loin lost lots marital martial marina marian meat meta "
    "median medina minute minuet nobel noble nuclear unclear own won pairs paris pest pets post "
    "pots prefect perfect quiet quite rogue rouge sacred scared salt slat satin stain sign signs "
    "signing sing sings singing silt slit silver sliver solo oslo spilt split star tsar sued used "
    "tide tied tilted titled tired tried tires tries trail trails trial trials treaties treatise "
    "tails bran barn board broad bolt blot warp wrap "
)
SWAPPED = frozenset(SWAPPED_WORDS.split())
SIGNS = {"+": "-", "-": "+", "<": ">", ">": "<"}  # each with the one that says otherwise
_SIGN = re.compile("[-+<>\u2212][ \t]*\\Z")
WIDEST = 400  # words of an item whose numbers are compared
FORM = 20  # of so many items one has a word of form, and five at least have it
_FEW = 2  # words that may stand for others
_LONG = 5  # letters of a word that may be misspelt; three where two change places
_PASSED = re.compile("[-\u2010]\\s*\\n\\s*|['\u2019\u00ad]")


def words_at(raw: bytes, places: np.ndarray) -> list[str]:
    """Words of a text whose first and last bytes are `places` int64[n, 2], as they compare.

    Digits are ASCII. A fraction has its point before it, and no zeros at its end.
    """
    said: list[str] = []
    end = 0
    for a, z in places.tolist():
        word = _PASSED.sub("", unescape(raw[a:z].decode("utf-8", "replace")))
        word = unicodedata.normalize("NFKC", word).casefold()
        if not word.isascii():
            word = "".join(str(unicodedata.decimal(c, c)) for c in word)
        if said and raw[end:a] == b"." and word.isdigit() and said[-1].isdigit():
            word = "." + word.rstrip("0")
        said.append(word)
        end = z
    return said


def signs_at(raw: bytes, places: np.ndarray) -> Counter[tuple[str, str]]:
    """Signs directly before the words at `places`, each with its word."""
    found: Counter[tuple[str, str]] = Counter()
    for (a, _), word in zip(places.tolist(), words_at(raw, places), strict=True):
        before = unescape(raw[max(0, a - 12) : a].decode("utf-8", "replace"))
        if sign := _SIGN.search(before):
            found[sign[0][0].replace("\u2212", "-"), word] += 1
    return found


def other_signs(item: Counter[tuple[str, str]], said: Counter[tuple[str, str]]) -> bool:
    """Whether a copy lacks a sign of the item and has the opposite one there; marks may be gone."""
    return any(
        said[sign, word] < count and said[SIGNS[sign], word] > item[SIGNS[sign], word]
        for (sign, word), count in item.items()
    )


class Words(NamedTuple):
    """Words of items that say little, and all that they have."""

    form: frozenset[str]
    known: frozenset[str]


def form_words(items: Iterable[Sequence[str]]) -> Words:
    """Words that say little: of stop lists, and those that many items have; and all words."""
    seen: Counter[str] = Counter()
    count = 0
    for words in filter(None, items):
        seen.update(set(words))
        count += 1
    least = max(5, -(-count // FORM))
    many = {w for w, n in seen.items() if n >= least and not any(c.isdigit() for c in w)}
    listed = {word for words in stop_lists().values() for word in words}
    return Words(frozenset(many | listed | set(WORDS.split())) - TELLING, frozenset(seen))


def same_numbers(item: list[str], said: list[str]) -> bool:
    """Whether no number of a long item is another one in `said`, words around it the same."""
    for tag, i, i_end, j, j_end in SequenceMatcher(None, item, said, autojunk=False).get_opcodes():
        mine, other = item[i:i_end], said[j:j_end]
        inside = i > 0 and i_end < len(item) and (mine + other)[0][:1] == "."  # 48.5 of 48
        few = (tag == "replace" or inside) and max(len(mine), len(other)) <= _FEW
        numbers = few and all(w.strip(".").isdigit() or w == "." for w in mine + other)
        if numbers and not _same_number(mine, other):
            return False
    return True


def _same_number(mine: list[str], other: list[str]) -> bool:
    """Whether these are one number, whatever is between its digits; a point may be gone."""
    if "".join(mine).rstrip(".") == "".join(other).rstrip("."):
        return True
    return len(mine) == len(other) and all(
        a == b or ((a[:1] == ".") != (b[:1] == ".") and _fraction(a) == _fraction(b))
        for a, b in zip(mine, other, strict=True)
    )


def _fraction(word: str) -> str:
    return word.lstrip(".").rstrip("0")


def same_question(item: list[str], said: list[str], words: Words) -> bool:
    """Whether `said`, a part of a text around a copy of the item, asks what the item asks."""
    matcher = SequenceMatcher(None, item, said, autojunk=False)
    for tag, i, i_end, j, j_end in matcher.get_opcodes():
        edge = i == 0 or i_end == len(item)
        mine, other = item[i:i_end], said[j:j_end]
        if tag == "equal" or (edge and (tag != "replace" or len(mine) > _FEW)):
            continue
        if edge:  # what stands around the copy is not of it
            other = other[-len(mine) :] if i == 0 else other[: len(mine)]
        if len(mine) <= _FEW and len(other) <= _FEW and not _alike(mine, other, words):
            return False
    return True


def _alike(mine: list[str], other: list[str], words: Words) -> bool:
    opposed, others = ([w for w in words_ if w in OPPOSED] for words_ in (mine, other))
    if opposed and others and opposed != others:
        return False
    if words.form.issuperset(mine + other) or _same_number(mine, other):
        return True
    return len(mine) == len(other) and all(
        a == b or NUMBERS.get(a, a) == NUMBERS.get(b, b) or _misspelt(a, b, words.known)
        for a, b in zip(mine, other, strict=True)
    )


def _misspelt(a: str, b: str, known: frozenset[str]) -> bool:
    """Whether one letter is more, less or another, or two have changed places; see the module."""
    if b in NUMBERS or any(c.isdigit() for c in a + b):
        return False
    at = next(
        (k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )
    swapped = a[at + 1 : at + 2] + a[at : at + 1] + a[at + 2 :] == b[at:] and len(a) == len(b)
    if min(len(a), len(b)) < (3 if swapped else _LONG) or (a[0] != b[0] and not swapped):
        return False
    if _spelled(a) == _spelled(b):
        return True
    if max(a, b) == min(a, b) + "d" and min(a, b)[-1] == "e":
        return True  # used of use
    if b in known or (b in SWAPPED if swapped else _common(b)):
        return False
    return swapped or a[at + 1 :] in (b[at + 1 :], b[at:]) or a[at:] == b[at + 1 :]


@lru_cache(maxsize=1 << 12)
def _common(word: str) -> bool:
    """Whether a word is in the table of common words of `templates`."""
    return not np.any(bits_of([word]) & ~common())


def _spelled(word: str) -> str:
    """As both sides of the Atlantic spell it, without the `s` of a plural."""
    return re.sub("our(?=.|$)", "or", re.sub("is(?=e|ing|ation)", "iz", word)).removesuffix("s")
