"""Kernel of the template stage: by what it looks like, what each line may be.

Plain-Python twin: tests/naive_templates.py.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# Bits: nothing but blanks; begins with ``` or ~~~; indented like code; begins with - * or +; reads
# as code; begins with # or |; an item of a list; begins as lines of code do, and menus; a fence of
# ~; one with nothing behind it; <pre> opens, and closes
BLANK, FENCE, DEEP, BULLET, READS, HASH, BAR, ITEM = (1 << _bit for _bit in range(8))
OPENS, TILDE, BARE, PRE, PRE_END = (1 << _bit for _bit in range(8, 13))
LENGTH = 16  # bits below the number of signs of a fence
MOST = 8  # signs of a fence; in real sets they have 3 or 4, and rules of mails 9 to 70
INDENT = 4  # blanks, or a tab; a line after so many may be code
STARTS = "#include #define #import #pragma const def func struct >>> pip npm sudo conda"  # of code
# And of menus in small letters (`return policy`, `from our blog`): these ask for another sign
OPENERS = (
    "import from using package public private static class function return export git cd apt "
    "docker make curl $"
)
COMMANDS = (  # which need none
    "git add|git clone|git commit|git push|git pull|git status|git init|git checkout|git branch|"
    "git log|git diff|git merge|git rebase|git fetch|git stash|git config|git remote|git revert|"
    "git reset|git reflog|git cherry-pick|git show|git tag|git rm|git mv|make install|"
    "apt install|apt update|apt upgrade|apt remove|docker run|docker build|docker pull|docker push|"
    "docker ps|docker exec|docker compose|using namespace|package main|export default"
)
CLAUSES = (
    "SELECT FROM WHERE INSERT UPDATE DELETE CREATE JOIN VALUES"  # unless in a title in capitals
)
# In brackets behind a word, where they open no call: `item(s)`, `Copyright(c)`
ENDINGS = "s es e n en er in innen c C r R tm TM"


def _sized(words: list[str], after: bytes) -> np.ndarray:
    """Words, each with `after` behind it, each after its length; uint8."""
    each = [w.encode() + after for w in words]
    return np.array([b for w in each for b in (len(w), *w)], np.uint8)


_STARTS, _OPENERS = _sized(STARTS.split(), b" "), _sized(OPENERS.split(), b" ")
_CLAUSES, _ENDINGS = _sized(CLAUSES.split(), b" "), _sized(ENDINGS.split(), b")")
_COMMANDS = _sized(COMMANDS.split("|"), b"")
_IMPORT, _AS = _sized(["import"], b""), _sized(["as"], b"")
_PRE_OPENS, _PRE_CLOSES = _sized(["pre"], b""), _sized(["/pre"], b"")
# Bytes with which they begin: 1 of the first, 2 of clauses, 4 of openers
_FIRST = np.zeros(256, np.uint8)
for _bit, _words in ((1, STARTS), (2, CLAUSES), (4, OPENERS)):
    _FIRST[[ord(w[0]) for w in _words.split()]] |= _bit
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
        if one == 60:  # <- assigns, but leads back where a line begins so
            return two == 32 and at - 1 > here
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
def _whole(data, at, end, words):
    """Whether some words stand at `at` and end there."""
    after = _starts(data, at, end, words)
    return after == end or (after >= 0 and _CLASS[data[after]] == SPACE)


@njit(cache=True, nogil=True)
def _signed(data, here, at, end):
    """Whether a line that begins with one of `OPENERS`, and `at` goes on, is code for all that.

    It is a command; has a name with _, an assignment, a variable or a path of a shell, a string at
    its end; goes on in the next line; or one thing follows the word, a path, an address or a name
    with a dot (`return self.x`, but not `return to our-shop.example`). And `from x import`, `import
    x as`.
    """
    first, last = data[here], data[end - 1]
    if last in (40, 92) or _whole(data, here, end, _COMMANDS):
        return True
    if first == 36:
        return data[at] in (46, 47, 126) or 97 <= data[at] | 32 <= 122
    gap = at  # after the first thing behind the word
    while gap < end and _CLASS[data[gap]] != SPACE:
        gap += 1
    for k in range(at, end):
        c = data[k]
        one = data[k - 1]
        two = data[k + 1] if k + 1 < end else 32
        if c == 95 and (_CLASS[one] == NAME or _CLASS[two] == NAME):
            return True
        if c == 61 and _CLASS[one] & NAME and two != 61 and _CLASS[two] != SPACE:
            return True
        if c == 36 and (two in (40, 123) or 97 <= two | 32 <= 122):
            return True
        if c == 47 and one == 46:
            return True
        if c in (34, 39) and c == last and k + 1 < end and _CLASS[one] == SPACE:
            return True
        named = _CLASS[one] & _CLASS[data[k - 2]] & NAME != 0 and 97 <= two | 32 <= 122
        if gap == end and c == 46 and k > at + 1 and named:
            return True
        if gap == end and c == 47 and two == 47:
            return True
    if gap == end:
        return data[at] in (47, 126) or last == 47 or (data[at] == last == 46 and end - at == 2)
    while gap < end and _CLASS[data[gap]] == SPACE:
        gap += 1
    if first == 102 and data[here + 1] == 114:  # from, no function
        return _whole(data, gap, end, _IMPORT)
    return first == 105 and _whole(data, gap, end, _AS)


@njit(cache=True, nogil=True)
def _reads_as_code(data, here, end):
    """What a line tells of code, white space around it left out: `READS`, `OPENS` or 0.

    It reads as code where it ends with `;`, `{` or `}`; stands between backticks; begins as of
    `STARTS`, with a clause of SQL, a comment or a tag; or has a sign that prose does not: a
    comparison, an assignment, a call, an option.
    """
    first, last = data[here], data[end - 1]
    if last in (59, 123, 125) or (first == 96 and last == 96):
        return READS
    two = data[here + 1] if here + 1 < end else 32
    if first == 47 and two in (42, 47):
        return READS
    if first == 60 and (two == 47 or 65 <= two <= 90 or 97 <= two <= 122):
        return READS
    if _FIRST[first] & 1 and _starts(data, here, end, _STARTS) >= 0:
        return READS
    if _FIRST[first] & 2:
        after = _starts(data, here, end, _CLAUSES)
        if 0 <= after < end and not (after + 1 < end and 65 <= data[after + 1] <= 90):
            return READS
    lower = 97 <= first <= 122
    for at in range(here, end):
        if _CLASS[data[at]] & SIGN and _sign_of_code(data, at, here, end, lower):
            return READS
    if _FIRST[first] & 4:
        after = _starts(data, here, end, _OPENERS)
        if after >= 0:
            return READS if _signed(data, here, after, end) else OPENS
    return 0


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
def _fence(data, here, end):
    """What a line tells of a fence: 0, or `FENCE` with what goes with it.

    Nothing closes a fence that is shorter than what opened it, or has a name behind it. Behind one
    of backticks no backtick stands (```so```), behind one of tildes no tilde (~~~ News ~~~). Over
    `MOST` signs are a rule.
    """
    c = data[here]
    k = here
    while k < end and data[k] == c:
        k += 1
    size = k - here
    found = FENCE | size << LENGTH
    if c == 126:
        found |= TILDE
    if k == end:
        found |= BARE
    while k < end and data[k] != c:
        k += 1
    return found if 3 <= size <= MOST and k == end else 0


@njit(cache=True, nogil=True)
def _tag(data, at, end, name):
    """Whether a tag opens at `at`, whose name, of small letters, is the one of `_sized`."""
    for k in range(1, len(name)):
        if at + k >= end or (data[at + k] | 32 if name[k] >= 97 else data[at + k]) != name[k]:
            return False
    after = at + len(name)
    return data[at] == 60 and (after >= end or data[after] == 62 or _CLASS[data[after]] == SPACE)


@njit(cache=True, nogil=True)
def _pre(data, here, end):
    """Whether <pre> opens or closes in a line: `PRE` where it begins it, `PRE_END` at its end."""
    opens = _tag(data, here, end, _PRE_OPENS)
    if not opens and data[end - 1] != 62 and not _tag(data, here, end, _PRE_CLOSES):
        return 0
    for k in range(here, end):
        if data[k] == 60 and _tag(data, k, end, _PRE_CLOSES):
            return 0 if opens else PRE_END
    return PRE if opens else 0


@njit(cache=True, nogil=True)
def marks(data, lines, out):
    """The bits of each line into `out` uint32[lines]; `lines` as of `_kernels.lines_of`."""
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
        if c in (96, 126):
            found |= _fence(data, here, end)
        if c == 60 or data[end - 1] == 62:
            found |= _pre(data, here, end)
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
        out[i] = found | _reads_as_code(data, here, end)
