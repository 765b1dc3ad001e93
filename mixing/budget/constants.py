"""Constants with value, unit, source and basis; a value may be a range `low..high`.

Where a constant comes from, the first that states it: the command line (`assumed`), a file of the
user's (which must name its source), the tables beside this module by the name of an accelerator
or a grid (`published`). There is no default: MFU, PUE, price and the rest differ by a factor of two
between sites, and a number that nobody stated would be believed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final, NamedTuple

from ...documents.errors import UsageError, did_you_mean

BASES: Final = ("measured", "assumed", "published")


class Range(NamedTuple):
    """A positive quantity known to lie between two bounds, often equal."""

    low: float
    high: float

    def times(self, other: Range) -> Range:
        """Product of two ranges of positive numbers."""
        return Range(self.low * other.low, self.high * other.high)

    def over(self, other: Range) -> Range:
        """Quotient of two ranges of positive numbers."""
        return Range(self.low / other.high, self.high / other.low)


class Known(NamedTuple):
    """What may be stated: its unit, its bounds, and what it is."""

    unit: str
    low: float
    high: float
    what: str


KNOWN: Final[Mapping[str, Known]] = {
    "active_params": Known("parameters", 1, 1e18, "parameters that one token meets"),
    "layers": Known("layers", 1, 1e6, "layers with full or windowed attention"),
    "width": Known("dimensions", 1, 1e9, "attention heads x dimensions of a head"),
    "attention_window": Known("tokens", 1, 1e12, "furthest key; full attention without it"),
    "peak": Known("FLOP/s", 1, 1e30, "dense peak of one accelerator"),
    "mfu": Known("share of peak", 1e-6, 1, "model FLOP utilisation"),
    "power": Known("W", 1e-3, 1e9, "of one accelerator at work"),
    "node_overhead": Known("factor", 1, 100, "power of the node over its accelerators'"),
    "pue": Known("factor", 1, 100, "power of the facility over its machines'"),
    "carbon": Known("g CO2e/kWh", 0, 1e5, "of the electricity"),
    "price": Known("money/accelerator-hour", 0, 1e9, "of one accelerator"),
    "restarts": Known("share of the training", 0, 100, "lost to failures and rollbacks"),
    "development": Known("share of the training", 0, 100, "experiments and failed runs"),
}

WHOLE: Final = frozenset({"active_params", "layers", "width", "attention_window"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Constant:
    """One stated value. `basis` is one of `BASES`."""

    name: str
    value: Range
    source: str
    basis: str
    date: str | None = None


class Constants:
    """The constants of a budget by name; asking for one that nobody stated gives None."""

    def __init__(self, stated: Iterable[Constant]) -> None:
        self._stated: dict[str, Constant] = {}
        for constant in stated:
            self._stated.setdefault(constant.name, constant)  # the first to state it holds

    def range(self, name: str) -> Range | None:
        """The value of a constant, None where it is unknown."""
        found = self._stated.get(name)
        return None if found is None else found.value

    def whole(self, name: str) -> int | None:
        """The value of a constant that is a whole number."""
        found = self.range(name)
        return None if found is None else int(found.low)

    def rows(self) -> list[dict[str, Any]]:
        """Every constant, the unknown ones too: name, low, high, unit, basis, source, date."""
        return [
            {
                "constant": name,
                "low": None if found is None else found.value.low,
                "high": None if found is None else found.value.high,
                "unit": known.unit,
                "basis": "unknown" if found is None else found.basis,
                "source": known.what if found is None else found.source,
                "date": None if found is None else found.date,
            }
            for name, known in KNOWN.items()
            for found in [self._stated.get(name)]
        ]


def read_constants(
    pairs: Sequence[str] = (),
    *,
    file: Path | None = None,
    accelerator: str | None = None,
    grid: str | None = None,
) -> Constants:
    """Collect what is stated; UsageError names the constant, what was found and what is known.

    `pairs` are `name=value` or `name=low..high`. The file is YAML: `name: {value: 0.4, source: ...,
    basis: measured, date: 2026-03}`; a value may be `[low, high]`.
    """
    stated = [_pair(pair) for pair in pairs]
    if file is not None:
        stated += _file(file)
    if accelerator is not None:
        row = _row("accelerators.tsv", accelerator, "--accelerator")
        for name, column in (("peak", "peak"), ("power", "watts")):
            stated.append(_constant(name, row[column], row["source"], "published", accelerator))
    if grid is not None:
        row = _row("grids.tsv", grid, "--grid")
        source = f"Our World in Data from Ember, {row['name']}, location-based"
        stated.append(_constant("carbon", row["grams"], source, "published", "--grid", row["year"]))
    return Constants(stated)


def _pair(pair: str) -> Constant:
    name, sign, value = pair.partition("=")
    if not sign or not name:
        raise UsageError(f"--set {pair}: expected NAME=VALUE or NAME=LOW..HIGH")
    bounds = value.split("..") if ".." in value else value
    return _constant(name.strip(), bounds, "command line", "assumed", f"--set {name}")


def _file(path: Path) -> list[Constant]:
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"{path}: cannot be read as YAML: {error}") from None
    if not isinstance(content, Mapping):
        raise UsageError(f"{path}: found {type(content).__name__}; expected name: {{value: ...}}")
    found = []
    for name, fields in content.items():
        where = f"{path}: {name}"
        if not isinstance(fields, Mapping):
            raise UsageError(f"{where}: found {fields!r}; expected value, source, basis and date")
        for field in fields:
            if field not in ("value", "source", "basis", "date"):
                known = ("value", "source", "basis", "date")
                raise UsageError(f"{where}.{field}: unknown field{did_you_mean(str(field), known)}")
        source, basis = fields.get("source"), fields.get("basis", "assumed")
        if not isinstance(source, str) or not source:
            raise UsageError(f"{where}.source: found {source!r}; a constant says where it is from")
        if basis not in BASES:
            raise UsageError(f"{where}.basis: found {basis!r}; expected one of {', '.join(BASES)}")
        date = fields.get("date")
        found.append(
            _constant(str(name), fields.get("value"), source, basis, where, date and str(date))
        )
    return found


def _constant(
    name: str, value: Any, source: str, basis: str, where: str, date: str | None = None
) -> Constant:
    if name not in KNOWN:
        raise UsageError(f"{where}: no constant {name!r}{did_you_mean(name, KNOWN)}")
    known = KNOWN[name]
    expected = f"expected a number from {known.low:g} to {known.high:g} ({known.unit})"
    if name in WHOLE:
        expected = expected.replace("a number", "one whole number")
    bounds = list(value) if isinstance(value, (list, tuple)) else [value, value]
    try:
        low, high = (float(b) if not isinstance(b, bool) else math.nan for b in bounds)
    except (TypeError, ValueError):
        raise UsageError(f"{where}: found {value!r}; {expected}, or low..high") from None
    good = known.low <= low <= high <= known.high  # NaN is not
    if not good or (name in WHOLE and (low != high or low != int(low))):
        raise UsageError(f"{where}: found {value!r}; {expected}")
    return Constant(name=name, value=Range(low, high), source=source, basis=basis, date=date)


def _row(file: str, name: str, option: str) -> dict[str, str]:
    lines = resources.files(__package__).joinpath(file).read_text(encoding="utf-8").splitlines()
    head, *rest = (line.split("\t") for line in lines if not line.startswith("#"))
    rows = {fields[0]: dict(zip(head, fields, strict=True)) for fields in rest}
    if name not in rows:
        raise UsageError(
            f"{option} {name}: not in the table{did_you_mean(name, rows)}; "
            "state its constants with --set or --constants"
        )
    return rows[name]
