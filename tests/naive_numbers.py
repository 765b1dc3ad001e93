"""What groups of digits are that are no telephone number, in plain Python; for `naive_pii`."""

from __future__ import annotations

import re

YEAR = r"(?:18|19|20)\d\d"
MONTH, DAY, HOUR = r"(?:0?\d|1[0-2])", r"(?:0?\d|[12]\d|3[01])", r"(?:[01]?\d|2[0-4])"
ANY_YEAR = r"(?:1[348]|19|2[045])\d\d"  # Gregorian, Persian and Islamic, Buddhist
WORD = re.compile(rb"[A-Za-z0-9_]")
QUARTER = r"(?:[01]\d|2[0-3])(?:00|15|30|45)"
BYTE = r"(?:[01]?\d?\d|2[0-4]\d|25[0-5])"
MEASURED = (
    r"\d\.\d\d?(?!\d).*",
    r"\d+\.\d\d?|\d\.\d{3,8}",
    r"\d+\.\d\d-\d+\.\d\d",
    rf"{YEAR}.(?<! )\d\d",
    rf"{YEAR}(?:.{YEAR})*",
    rf"(?=.*\d{{3}}){BYTE}(?:\.{BYTE}){{3}}",
    r"[1-9]\d{0,2}(?:.000)+",
    r"\d(?:\.\d{3})+",
    r"[1-9]\d(?:\.\d{3})+\.000",
    rf"{DAY}([./-]){DAY}\1{ANY_YEAR}(?:(?!\1)\D.*)?",
    rf"{ANY_YEAR}([./-]){MONTH}\1{DAY}(?:(?!\1)\D.*)?",
    rf"(?:09\d|1[0-2]\d)/{MONTH}/{DAY}(?:[^/\d].*)?",
    rf"(?:{DAY}([./]){MONTH}|{MONTH}([./]){DAY})(?:\1|\2)\d\d(?:(?!\1|\2)\D.*)?",
    rf"{HOUR}\.[0-5]\d-{HOUR}\.[0-5]\d(?:[^.\d].*)?",
)


def luhn(digits: str) -> bool:
    total = 0
    for t, d in enumerate(map(int, reversed(digits))):
        total += d if t % 2 == 0 else sum(divmod(2 * d, 10))
    return total % 10 == 0


ISSUERS = (
    r"4(\d{12}|\d{15}|\d{18})",
    r"5[1-5]\d{14}",
    r"3[47]\d{13}",
    r"(6011|64[4-9]\d|65\d\d|62\d\d)\d{12,15}",
    r"(30[0-5]|36\d|38\d)\d{11}",
)


def issued(digits: str) -> bool:
    four = int(digits[:4])
    if 2221 <= four <= 2720:
        return len(digits) == 16
    if 3528 <= four <= 3589 and len(digits) >= 16:
        return True
    return any(re.fullmatch(form, digits) for form in ISSUERS)


GROUP = re.compile(rb"\d{1,20}")
GAP = re.compile(rb"[ ()./-]{1,3}(?=\d)")


def number(w: bytes, i: int, least: int):
    """End, and the number as text: 1 for a lone digit, marks by their first (` - ` is a dash)."""
    total, end, p = 0, None, i
    parts: list[str] = []
    while True:
        m = GROUP.match(w, p)
        size = m.end() - p
        if total + size > 15:
            break
        total += size
        end = m.end()
        marks = re.compile(rb"[ ()./-]{0,3}").match(w, end).group() if size < 20 else b""
        parts += [m.group().decode(), marks.decode()]
        gap = GAP.match(w, end) if size < 20 else None
        if not gap or (total >= 10 and gap.group() != b"-"):
            break
        p = gap.end()
        if total >= 6 and re.compile(rb"(?:18|19|20)\d\d[-./]\d\d?(?!\d)").match(w, p):
            break
        if re.compile(rb"\d\d?:\d\d(?!\d)").match(w, p):
            break
    return None if end is None or total < least or WORD.match(w, end) else (end, parts)


def hours(said: str) -> bool:
    """8-12/13-17 and 0900-1730, each later than that before."""
    two = re.fullmatch(r"(\d\d?)-(\d\d?)[/ ](\d\d?)-(\d\d?)", said)
    if two:
        a, b, c, d = map(int, two.groups())
        return a < b <= 24 and c < d <= 24
    one = re.fullmatch(rf"({QUARTER})-({QUARTER}|2400)", said)
    return one is not None and int(one[1]) < int(one[2])


def measured(parts: list[str], pii) -> bool:
    marks = [m[1] if m[:1] == " " and len(m) > 1 else m[:1] for m in parts[1::2]]
    said = "".join(d + m for d, m in zip(parts[::2], marks, strict=True))
    sizes = [int(d) for d in parts[::2]]
    ordered = sorted(set(sizes)) in (sizes, sizes[::-1])
    known = len(sizes) > 1 and all(d in pii.SIZES.split() for d in parts[::2])
    if known and (ordered or len(sizes) == 2 or max(sizes) > 999):
        return True
    if len(parts) == 2:
        return False
    brackets = any(
        re.fullmatch(YEAR, d) and b == "(" and a == ")"
        for d, b, a in zip(parts[2::2], marks, marks[1:], strict=False)
    )
    said = said if not marks[-1] else said[:-1]
    return brackets or hours(said) or any(re.fullmatch(form, said) for form in MEASURED)


def counted(parts: list[str]) -> bool:
    """Whether a number may be a quantity: a short one, thousands, a size, a range."""
    digits = parts[::2]
    a = len(digits[0])
    if len(digits) == 1 and a > 9:
        return False
    if a > 1 and digits[0][0] == "0":
        return False
    sizes = [len(d) for d in digits[1:]]
    if len(digits) == 2 and abs(a - sizes[0]) < 2:
        return True
    return (a < 4 and set(sizes) <= {3}) or (a == 4 and set(sizes) == {4}) or len(digits) == 1
