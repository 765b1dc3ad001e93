"""Thresholds on fractions, compared exactly: integers against the rational that a field spells.

`0.3` as a float is not three tenths, and a quotient is rounded again: 3 of 10 could fall on either
side. Counts are stored as integers, and `a/b > 0.3` is asked as `10 a > 3 b` in int64. The same
on every CPU, and a threshold can be moved without the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

import numpy as np

from ..documents.errors import UsageError

PLACES = 9  # decimal places of a threshold: counts up to 2^31 times 10^9 fit 63 bits


def rational(limit: float) -> tuple[int, int]:
    """Numerator and denominator of the decimal that `limit` is written as."""
    exact = Fraction(str(limit))
    return exact.numerator, exact.denominator


def above(part: np.ndarray, whole: np.ndarray, limit: float) -> np.ndarray:
    """Is part / whole > limit, exactly? bool[rows]; False where whole is 0."""
    top, bottom = rational(limit)
    return part.astype(np.int64) * bottom > whole.astype(np.int64) * top


def below(part: np.ndarray, whole: np.ndarray, limit: float) -> np.ndarray:
    """Is part / whole < limit, exactly? bool[rows]; False where whole is 0."""
    top, bottom = rational(limit)
    return part.astype(np.int64) * bottom < whole.astype(np.int64) * top


def _label(stage: object) -> str:
    return str(getattr(stage, "name", type(stage).__name__))


def check_fractions(stage: object, fields: Iterable[str], high: float = 1) -> None:
    """UsageError unless each field is a number (or tuple of them) from 0 to `high`.

    At most 9 decimal places, for the reason given at `PLACES`.
    """
    for name in fields:
        field = getattr(stage, name)
        for value in field if isinstance(field, tuple) else (field,):
            good = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not good or not 0 <= value <= high or 10**PLACES % rational(value)[1]:
                msg = (
                    f"{_label(stage)}.{name}: found {value!r}, expected a number from 0 to "
                    f"{high} with at most {PLACES} decimal places"
                )
                raise UsageError(msg)


def check_counts(stage: object, fields: Iterable[str]) -> None:
    """UsageError unless each field is a whole number from 0 to 2^31 - 1."""
    for name in fields:
        value = getattr(stage, name)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
            msg = (
                f"{_label(stage)}.{name}: found {value!r}, expected a whole number "
                f"from 0 to {2**31 - 1}"
            )
            raise UsageError(msg)


def first_true(rules: Mapping[int, np.ndarray], rows: int) -> np.ndarray:
    """Code of the first rule that holds in each row, uint8[rows]; 0 where none does."""
    codes = np.zeros(rows, np.uint8)
    for code, holds in rules.items():
        codes[(codes == 0) & holds] = code
    return codes


def columns(counts: np.ndarray, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Columns of a kernel's int32[rows, names] as scores."""
    return {name: np.ascontiguousarray(counts[:, at]) for at, name in enumerate(names)}
