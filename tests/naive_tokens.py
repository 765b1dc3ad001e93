"""Plain-Python twin of filters/_kernels_tokens.py: strings, lists and one regular expression."""

from __future__ import annotations

import re

from gristmill.filters._characters import NAMES, table
from gristmill.filters._kernels_tokens import FORM_ENDS, FORMS, KINDS, LONGEST, UNITS

FRONT, BACK, QUOTE, CURRENCY, ICON = 1, 2, 4, 8, 16
CONTRACTION = re.compile("(?i)([a-z]+?)(?:(n['’]t)|['’](?:ll|ve|re|d|m))", re.ASCII)  # noqa: RUF001
CITATION = re.compile(r"\[\d*\]|\[edit\]|\[citation needed\]", re.ASCII)
FACES = {a + b for a in ":;=" for b in "()DP]"} | {"(:", "(;", "(=", "):", ")=", "[:", "[="}
assert bytes(FORMS) == b"[edit][citation needed]"
assert FORM_ENDS[0] == 6


def kind(char: str) -> int:
    code = ord(char)
    if code < len(KINDS):
        return int(KINDS[code])
    return FRONT | BACK | ICON if 0x1F000 <= code < 0x1FB00 else 0


def class_of(char: str) -> str:
    return NAMES[table()[ord(char)]]


def alpha(char: str) -> bool:
    indic = class_of(char) == "mark" and 0x591 <= ord(char) < 0xE00
    return indic or class_of(char) in ("letter", "latin", "unspaced")


def digit(char: str) -> bool:
    return char in "0123456789" and char != ""


def upper(char: str) -> bool:
    c = ord(char)
    latin = (
        "A" <= char <= "Z"
        or (0xC0 <= c <= 0xDE and c != 0xD7)
        or (0x100 <= c < 0x180 and not c % 2)
    )
    return latin or 0x391 <= c <= 0x3AB or 0x400 <= c <= 0x42F


def small(char: str) -> bool:
    c = ord(char)
    latin = "a" <= char <= "z" or 0xDF <= c <= 0xFF or (0x100 <= c < 0x180 and c % 2 == 1)
    return latin or 0x3AC <= c <= 0x3CE or 0x430 <= c <= 0x45F


def lower(char: str) -> bool:
    return alpha(char) and not upper(char)


def front(s: str) -> int:
    dots = len(s) - len(s.lstrip("."))
    if dots:
        return dots if dots > 1 else 0
    if s[0] == "+":
        return 0 if digit(s[1:2]) else 1
    if s.startswith("……"):
        return 2
    return 1 if kind(s[0]) & FRONT else 0


def back(s: str) -> int:
    if not s:
        return 0
    dots = len(s) - len(s.rstrip("."))
    if dots > 1:
        return dots
    p = s[-2:-1]
    if dots:
        if not p:
            return 0
        plain = digit(p) or lower(p) or p in "%²-+" or (kind(p) & BACK and p not in "—–")  # noqa: RUF001
        return 1 if plain or (len(s) > 2 and upper(p) and upper(s[-3])) else 0
    if kind(s[-1]) & BACK:
        return 1
    if p and s[-1] in "sS" and p in "'’":  # noqa: RUF001
        return 2
    if p and digit(p) and (s[-1] == "+" or kind(s[-1]) & CURRENCY):
        return 1
    for n in range(1, 5):
        if len(s) > n and digit(s[-n - 1]) and not any(digit(c) for c in s[-n:]):
            return n if s[-n:] in UNITS else 0
    return 0


def address(s: str) -> bool:
    host = 0
    for i, char in enumerate(s):
        if char == "@":
            host = i + 1
        elif s.startswith("://", i):
            host = i + 3
        elif char == "/" and not (i and s[i - 1] in ":/"):
            break
    labels = re.split("[/?#:]", s[host:])[0].split(".")
    letter = re.compile("[a-z\u00df-\U0010ffff]+")
    fine = re.compile("[A-Za-z0-9_\u00a1-\U0010ffff-]+")
    if len(labels) < 2 or not all(fine.fullmatch(x) for x in labels):
        return False
    return len(labels[-1]) > 1 and letter.fullmatch(labels[-1]) is not None


def joint(s: str, t: int) -> int:
    c, a, b = s[t], s[t - 1 : t] or " ", s[t + 1 : t + 2] or " "
    if s.startswith("..", t):
        return len(s[t:]) - len(s[t:].lstrip("."))
    if c == "…" or kind(c) & ICON:
        return 1
    if c in "+-*^" and digit(a) and (digit(b) or b == "-"):
        return 1
    if c == ".":
        left, right = lower(a) or kind(a) & QUOTE, (alpha(b) and not small(b)) or kind(b) & QUOTE
        return int(bool(left and right))
    if c == ",":
        return int(alpha(a) and alpha(b))
    if not (alpha(a) or digit(a)):
        return 0
    if c in "-–—~":  # noqa: RUF001
        n = 1
        while not alpha(b) and c in "-—" and n < 3 and s[t + n : t + n + 1] == c:
            n += 1
        return n if t + n < len(s) and alpha(s[t + n]) else 0
    return int(c in ":<>=/" and alpha(b))


def peel(s: str) -> list[str]:
    """The tokens of what stands between spaces."""
    before: list[str] = []
    after: list[str] = []
    while s and s not in FACES:
        p = front(s)
        q = back(s[p:])
        if not p and not q:
            break
        if p:
            before.append(s[:p])
        if q:
            after.insert(0, s[len(s) - q :])
        s = s[p : len(s) - q]
    if not s:
        return before + after
    inner = CONTRACTION.fullmatch(s)
    if s in FACES or address(s):
        middle = [s]
    elif inner and len(inner[1]) >= 1:
        middle = [inner[1], s[len(inner[1]) :]]
    else:
        middle, begun, t = [], 0, 0
        while t < len(s):
            n = joint(s, t)
            if n and t > begun:
                middle += [s[begun:t], s[t : t + n]]
                begun = t + n
            t += n or 1
        middle += [s[begun:]] if s[begun:] else []
    return before + middle + after


def tokens(text: str, citations: bool = False) -> list[str]:
    """Tokens of a text; with `citations` as though citation marks were not there."""
    if citations:
        text = CITATION.sub("", text)
    out: list[str] = []
    run = ""
    for char in text + " ":
        ends = class_of(char) in ("space", "unspaced")
        if not ends:
            run += char
            continue
        out += ([run] if len(run) > LONGEST else peel(run)) if run else []
        run = ""
        if class_of(char) == "unspaced":
            out.append(char)
    return out
