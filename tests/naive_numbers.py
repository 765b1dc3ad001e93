"""What groups of digits are that are no telephone number, in plain Python; for `naive_pii`."""

from __future__ import annotations

import re

YEAR = r"(?:18|19|20)\d\d"
MONTH, DAY, HOUR = r"(?:0?\d|1[0-2])", r"(?:0?\d|[12]\d|3[01])", r"(?:[01]?\d|2[0-4])"
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
    rf"{DAY}([./-]){DAY}\1{YEAR}(?:(?!\1)\D.*)?",
    rf"{YEAR}([./-]){MONTH}\1{DAY}(?:(?!\1)\D.*)?",
    rf"(?:{DAY}([./]){MONTH}|{MONTH}([./]){DAY})(?:\1|\2)\d\d(?:(?!\1|\2)\D.*)?",
    rf"{HOUR}\.[0-5]\d-{HOUR}\.[0-5]\d(?:[^.\d].*)?",
)


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
    if len(parts) > 2 and all(d in pii.SIZES.split() for d in parts[::2]):
        return True
    if len(parts) == 2:
        return False
    brackets = any(
        re.fullmatch(YEAR, d) and b == "(" and a == ")"
        for d, b, a in zip(parts[2::2], marks, marks[1:], strict=False)
    )
    said = said if not marks[-1] else said[:-1]
    return brackets or hours(said) or any(re.fullmatch(form, said) for form in MEASURED)
