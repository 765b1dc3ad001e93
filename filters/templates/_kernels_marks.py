"""Kernel of the template stage: by what it looks like, what each line may be.

Plain-Python twin: tests/naive_templates.py.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# Bits: nothing but blanks; begins with ``` or ~~~; indented like code; begins with - * or +; reads
# as code; begins with # or |; an item of a list
BLANK, FENCE, DEEP, BULLET, READS, HASH, BAR, ITEM = (1 << _bit for _bit in range(8))
INDENT = 4  # blanks, or a tab; a line after so many may be code
STARTS = (  # of lines of code
    "#include #define #import #pragma import from using package public private static const def "
    "class function func return export struct >>> $ git cd pip npm sudo apt docker make curl conda"
)
CLAUSES = (
    "SELECT FROM WHERE INSERT UPDATE DELETE CREATE JOIN VALUES"  # unless in a title in capitals
)
# In brackets behind a word, where they open no call: `item(s)`, `Copyright(c)`
ENDINGS = "s es e n en er in innen c C r R tm TM"


def _sized(words: str, after: bytes) -> np.ndarray:
    """Words, each with `after` behind it, each after its length; uint8."""
    each = [w.encode() + after for w in words.split()]
    return np.array([b for w in each for b in (len(w), *w)], np.uint8)


_STARTS, _CLAUSES, _ENDINGS = _sized(STARTS, b" "), _sized(CLAUSES, b" "), _sized(ENDINGS, b")")
_FIRST = np.zeros(256, np.uint8)  # bytes with which they begin: 1 of the first, 2 of the second
_FIRST[[ord(w[0]) for w in STARTS.split()]] = 1
_FIRST[[ord(w[0]) for w in CLAUSES.split()]] = 2
# Of a byte: white space, a letter or numeral of ASCII or _, one at which a look at others is due
SPACE, NAME, SIGN = 1, 2, 4
_CLASS = np.zeros(256, np.uint8)
_CLASS[[9, 11, 12, 13, 32]] = SPACE
_CLASS[[*range(48, 58), *range(65, 91), *range(97, 123)]] = NAME
_CLASS[[ord(c) for c in "!&(+-:="]] = SIGN
_CLASS[ord("_")] = NAME | SIGN


@njit(cache=True, nogil=True)
def _starts(data, here, end, words):
    """Whether a line begins with one of some words; the byte after it, or -1."""
    at = 0
    while at < len(words):
        size = words[at]
        k = 0
        while k < size and here + k < end and data[here + k] == words[at + 1 + k]:
            k += 1
        if k == size:
            return here + size
        at += 1 + size
    return -1


@njit(cache=True, nogil=True)
def _call(data, at, end):
    """Whether the bracket at `at`, behind a name, opens arguments: `f("a", b)`, `f(x)`, `f()`.

    Not `item(s)`, `Cart(0)`, `Share(opens in a window)`, `Smith(2020, p. 4)`.
    """
    k = at + 1
    if k < end and data[k] in (34, 38, 39, 41, 42, 91, 123):  # " & ' ) * [ {
        return True
    numeral = True
    while k < end and data[k] != 41 and _CLASS[data[k]] != SPACE:
        numeral &= 48 <= data[k] <= 57 or data[k] in (44, 46)
        k += 1
    if k == end or numeral:
        return False
    if data[k] == 41:
        return _starts(data, at + 1, end, _ENDINGS) < 0
    return data[k - 1] == 44


@njit(cache=True, nogil=True)
def _sign_of_code(data, at, here, end, lower):
    """Whether the sign at `at` stands as in code; `lower`: the line begins with a small letter."""
    c = data[at]
    one = data[at - 1] if at > here else 32
    two = data[at + 1] if at + 1 < end else 32
    if c == 40:
        return _CLASS[one] & NAME != 0 and _call(data, at, end)
    if c == 95:  # __init__, but no line to write on
        return two == 95 and at + 2 < end and data[at + 2] != 95 and _CLASS[data[at + 2]] == NAME
    if c == 45:  # p->x, but not Home->News; an option
        if two == 62:
            third = data[at + 2] if at + 2 < end else 32
            return _CLASS[one] != SPACE and _CLASS[third] & NAME != 0 and not 65 <= third <= 90
        if one == 60:  # <- assigns
            return two == 32
        if one != 32:
            return False
        third = data[at + 2] if at + 2 < end else 32
        if two == 45:
            return 97 <= third <= 122
        return lower and _CLASS[two] == NAME and third == 32
    if c == 58 and one == 34:  # "name": of JSON
        return True
    if c == 58:  # :: between names, :=
        third = data[at + 2] if at + 2 < end else 32
        return two == 61 or (two == 58 and _CLASS[one] & NAME != 0 and _CLASS[third] & NAME != 0)
    if c == 38:
        return two == 38
    if c != 61:  # != and +=
        return two == 61 and at > here
    if one == 32 and two == 32:
        return at > here + 1 and at + 2 < end
    if two != 61 or at == here or one == 61:
        return False
    third = data[at + 2] if at + 2 < end else 61
    return third != 61 and not (third == 32 and at + 3 >= end)


@njit(cache=True, nogil=True)
def _reads_as_code(data, here, end):
    """Whether a line, white space around it left out, reads as code.

    It ends with `;`, `{` or `}`; stands between backticks; begins as of `STARTS`, with a clause of
    SQL, a comment or a tag; or has a sign that prose does not: a comparison, an assignment, a call,
    an option.
    """
    first, last = data[here], data[end - 1]
    if last in (59, 123, 125) or (first == 96 and last == 96):
        return True
    two = data[here + 1] if here + 1 < end else 32
    if first == 47 and two in (42, 47):
        return True
    if first == 60 and (two == 47 or 65 <= two <= 90 or 97 <= two <= 122):
        return True
    if _FIRST[first] & 1 and _starts(data, here, end, _STARTS) >= 0:
        return True
    if _FIRST[first] & 2:
        after = _starts(data, here, end, _CLAUSES)
        if 0 <= after < end and not (after + 1 < end and 65 <= data[after + 1] <= 90):
            return True
    lower = 97 <= first <= 122
    for at in range(here, end):
        if _CLASS[data[at]] & SIGN and _sign_of_code(data, at, here, end, lower):
            return True
    return False


@njit(cache=True, nogil=True)
def _in_list(data, here, end):
    """Whether a line begins as an item: `- * +`, a bullet or a number, and a blank."""
    at = here
    if data[at] in (42, 43, 45):
        at += 1
    elif data[at] == 0xE2 and at + 2 < end and data[at + 1] == 0x80 and data[at + 2] == 0xA2:
        at += 3
    else:
        while at < end and at < here + 3 and 48 <= data[at] <= 57:
            at += 1
        if at in (here, end) or data[at] not in (41, 46):
            return False
        at += 1
    return at < end and data[at] == 32


@njit(cache=True, nogil=True)
def marks(data, lines, out):
    """The bits of each line into `out` uint8[lines]; `lines` as of `_kernels.lines_of`."""
    for i in range(len(lines)):
        begin, end = lines[i, 0], lines[i, 1]
        here = begin
        while here < end and _CLASS[data[here]] == SPACE:
            here += 1
        while end > here and (data[end - 1] == 10 or _CLASS[data[end - 1]] == SPACE):
            end -= 1
        if here == end:
            out[i] = BLANK
            continue
        c = data[here]
        found = 0
        if c in (96, 126) and here + 2 < end and data[here + 1] == data[here + 2] == c:
            k = here + 3
            while k < end and data[k] == c:
                k += 1
            while k < end and data[k] != 96:  # no fence has backticks behind it: ```so```
                k += 1
            found |= FENCE if k == end or c == 126 else 0
        if here - begin >= INDENT or (here > begin and data[begin] == 9):
            found |= DEEP
        if c in (42, 43, 45):
            found |= BULLET
        if c == 35:
            found |= HASH
        if c == 124:
            found |= BAR
        if _in_list(data, here, lines[i, 1]):
            found |= ITEM
        if _reads_as_code(data, here, end):
            found |= READS
        out[i] = found
