"""Names in a recipe to classes, and options to fields, with a message that names the nearest."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..documents.errors import UsageError, did_you_mean
from ..documents.files import FILES, as_paths


def known_stages() -> dict[str, type]:
    """Stages that look at one document."""
    from ..filters import STAGES

    return dict(STAGES)


def known_globals() -> dict[str, type]:
    """Stages that need the whole corpus."""
    from ..dedup import GLOBAL_STAGES
    from ..filters.templates import Templates

    return {**GLOBAL_STAGES, Templates.name: Templates}


def known_converters() -> dict[str, type]:
    """Converters from records to documents."""
    from .convert import CONVERTERS

    return dict(CONVERTERS)


def split_entry(entry: Any, where: str) -> tuple[str, dict[str, Any]]:
    """A list entry is a name or one `name: {options}`."""
    if isinstance(entry, str):
        return entry, {}
    if isinstance(entry, Mapping) and len(entry) == 1:
        name, options = next(iter(entry.items()))
        if options is None:
            return str(name), {}
        if isinstance(options, Mapping):
            return str(name), {str(k): v for k, v in options.items()}
    msg = f"{where}: expected a name or one `name: {{options}}`, found {entry!r}"
    raise UsageError(msg)


def build(kind: type, options: Mapping[str, Any], where: str, folder: Path | None = None) -> Any:
    """Make a configuration dataclass from recipe options; UsageError names the field.

    Files (`documents.files`) are taken relative to `folder`, the recipe's.
    """
    fields = {f.name: f for f in dataclasses.fields(kind) if f.init}
    values: dict[str, Any] = {}
    for key, value in options.items():
        if key not in fields:
            msg = f"{where}: no field {key!r}{did_you_mean(key, fields)}"
            raise UsageError(msg)
        if fields[key].metadata.get(FILES) and value is not None:
            paths = as_paths(value, f"{where}.{key}", folder)
            values[key] = paths if fields[key].default == () else paths[0]
            continue
        values[key] = tuple(value) if isinstance(value, list) else value
        _check_kind(values[key], fields[key], f"{where}.{key}")
    try:
        return kind(**values)
    except UsageError as error:
        msg = str(error) if where in str(error) else f"{where}: {error}"
        raise UsageError(msg) from error
    except (TypeError, ValueError) as error:
        msg = f"{where}: {error}"
        raise UsageError(msg) from error


def _check_kind(value: Any, field: dataclasses.Field[Any], where: str) -> None:
    """Compare with the type of the field's default; None and unions are left to the class."""
    default = field.default
    if default is dataclasses.MISSING or default is None or value is None:
        return
    expected: type | tuple[type, ...] = type(default)
    if expected is float or (expected is int and "float" in str(field.type)):
        expected = (int, float)
    good = isinstance(value, expected) and (not isinstance(value, bool) or expected is bool)
    if not good and not (isinstance(default, str) and isinstance(value, (int, float))):
        msg = f"{where}: expected {type(default).__name__} like {default!r}, found {value!r}"
        raise UsageError(msg)


def build_named(
    kinds: Mapping[str, type], entry: Any, where: str, what: str, folder: Path | None = None
) -> Any:
    """Make the stage or converter that a recipe entry names."""
    name, options = split_entry(entry, where)
    if name not in kinds:
        msg = f"{where}: no {what} {name!r}{did_you_mean(name, kinds)}"
        raise UsageError(msg)
    return build(kinds[name], options, f"{where}.{name}", folder)
