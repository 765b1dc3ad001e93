"""Fields of a mixture as a recipe states them; UsageError names the field and what was found."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from ..documents.errors import UsageError, did_you_mean

_SUFFIX: Final = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9, "t": 10**12}
_BINARY: Final = {"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40}


def mapping(value: Any, where: str) -> Mapping[Any, Any]:
    """A mapping of any keys."""
    if not isinstance(value, Mapping):
        raise UsageError(f"{where}: found {value!r}; expected a mapping")
    return value


def keys(value: Any, known: Sequence[str], where: str) -> Mapping[str, Any]:
    """A mapping of known keys."""
    found = mapping(value, where)
    for key in found:
        if key not in known:
            raise UsageError(f"{where}.{key}: unknown field{did_you_mean(str(key), known)}")
    return found


def whole(value: Any, where: str, low: int, high: int) -> int:
    """A whole number within bounds."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise UsageError(f"{where}: found {value!r}; expected a whole number from {low} to {high}")
    return value


def choice(value: Any, known: tuple[str, ...], where: str) -> str:
    """One of some words."""
    if value not in known:
        hint = did_you_mean(str(value), known)
        raise UsageError(f"{where}: found {value!r}; expected one of {', '.join(known)}{hint}")
    return str(value)


def is_number(value: Any) -> bool:
    """Whether it is a finite number, and no truth value."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and abs(value) < float("inf")


def ramp(value: Any, where: str) -> tuple[Fraction, Fraction]:
    """A weight, or the two between which it goes linearly; as decimal fractions, exactly."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        if len(value) != 2 or not all(is_number(v) and v >= 0 for v in value) or not any(value):
            raise UsageError(
                f"{where}: found {value!r}; expected a weight, or two: at the stage's start and "
                "end, one of them above 0"
            )
        return Fraction(str(value[0])), Fraction(str(value[1]))
    if not is_number(value) or value <= 0:
        raise UsageError(
            f"{where}: found {value!r}; expected a number above 0 "
            "(leave a slice out to give it nothing)"
        )
    return (Fraction(str(value)),) * 2


def share(value: Any, where: str) -> Fraction:
    """A share above 0 and at most 1, exactly as it is written."""
    if not is_number(value) or not 0 < value <= 1:
        raise UsageError(f"{where}: found {value!r}; expected a share of the stage, 0 to 1")
    return Fraction(str(value))


def parse_tokens(value: Any, where: str) -> int:
    """`4000000`, `"4M"`, `"1.5B"`, `"64Ki"`: a whole positive number of tokens."""
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d[\d_]*)(?:\.(\d+))?\s*([kmgbt]i?)?\s*", value, re.IGNORECASE)
        unit = (match[3] or "").lower() if match else ""
        scale = _SUFFIX.get(unit) or _BINARY.get(unit)
        if match and scale:
            digits = match[2] or ""
            number = int(match[1] + digits) * scale
            if number % 10 ** len(digits) == 0:
                value = number // 10 ** len(digits)
    if isinstance(value, float) and value.is_integer():  # YAML reads 4e9 as a float
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 1 << 62:
        raise UsageError(
            f"{where}: found {value!r}; expected a number of tokens such as 4000000, '4M', '1.5B'"
        )
    return value
