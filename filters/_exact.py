"""Thresholds on fractions, compared exactly: integers against the rational that a field spells.

`0.3` as a float is not three tenths, and a quotient is rounded again: 3 of 10 could fall on either
side. Counts are stored as integers, and `a/b > 0.3` is asked as `10 a > 3 b` in int64. The same
on every CPU, and a threshold can be moved without the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ..documents.errors import UsageError

PLACES = 9  # decimal places of a threshold: counts up to 2^31 times 10^9 fit 63 bits


def rational(limit: float) -> tuple[int, int]:
    """Numerator and denominator of the decimal that `limit` is written as."""
    exact = Fraction(str(limit))
    return exact.numerator, exact.denominator


def above(part: np.ndarray, whole: np.ndarray, limit: float) -> np.ndarray:
    """Is part / whole > limit, exactly? bool[rows]; 0 / 0 is not, more / 0 is."""
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


def check_flags(stage: object, fields: Iterable[str]) -> None:
    """UsageError unless each field is true or false."""
    for name in fields:
        value = getattr(stage, name)
        if not isinstance(value, bool):
            msg = f"{_label(stage)}.{name}: found {value!r}, expected true or false"
            raise UsageError(msg)


def check_names(stage: object, fields: Iterable[str]) -> None:
    """Make each field, a string or a list of strings, a tuple; UsageError for anything else."""
    for name in fields:
        value = getattr(stage, name)
        every = (value,) if isinstance(value, str) else value
        if not isinstance(every, (tuple, list)) or not all(isinstance(v, str) for v in every):
            msg = f"{_label(stage)}.{name}: found {value!r}, expected a string or a list of strings"
            raise UsageError(msg)
        object.__setattr__(stage, name, tuple(every))


class Rule(NamedTuple):
    """A measured value against a threshold: `part`, or part / whole where there is a whole."""

    part: np.ndarray  # counts, one per row
    limit: float
    whole: np.ndarray | None = None
    least: bool = False  # the limit is the least that passes, not the most
    asked: np.ndarray | None = None  # bool[rows]: rows that the rule speaks of; None: all

    def broken(self) -> np.ndarray:
        """Rows that break the rule, bool[rows]."""
        if self.whole is not None:
            found = (below if self.least else above)(self.part, self.whole, self.limit)
        else:
            found = self.part < self.limit if self.least else self.part > self.limit
        return found if self.asked is None else found & self.asked

    def told(self, row: int) -> dict[str, object]:
        """What `why` says of a row: the value, what it is made of, and the threshold."""
        part = int(self.part[row])
        said: dict[str, object] = {"measured": part}
        if self.whole is not None and self.whole[row]:
            whole = int(self.whole[row])
            said = {"measured": round(part / whole, 4), "of": f"{part} / {whole}"}
        return said | {"at_least" if self.least else "at_most": self.limit}


def first_broken(rules: Sequence[Rule]) -> np.ndarray:
    """Code of the first rule that each row breaks, counted from 1, uint8[rows]; 0 if none."""
    broken = {code: rule.broken() for code, rule in enumerate(rules, 1)}
    return first_true(broken, len(rules[0].part))


def first_true(rules: Mapping[int, np.ndarray], rows: int) -> np.ndarray:
    """Code of the first rule that holds in each row, uint8[rows]; 0 where none does."""
    codes = np.zeros(rows, np.uint8)
    for code, holds in rules.items():
        codes[(codes == 0) & holds] = code
    return codes


def columns(counts: np.ndarray, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Columns of a kernel's int32[rows, names] as scores."""
    return {name: np.ascontiguousarray(counts[:, at]) for at, name in enumerate(names)}
