"""Names in a recipe to classes, and options to fields, with a message that names the nearest."""

from __future__ import annotations

import dataclasses
import re
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
            if fields[key].default != () and len(paths) != 1:
                msg = f"{where}.{key}: expected one path, found {len(paths)}"
                raise UsageError(msg)
            values[key] = paths if fields[key].default == () else paths[0]
            continue
        values[key] = _checked(value, str(fields[key].type), f"{where}.{key}")
    try:
        return kind(**values)
    except UsageError as error:
        msg = str(error) if where in str(error) else f"{where}: {error}"
        raise UsageError(msg) from error
    except (TypeError, ValueError) as error:
        msg = f"{where}: {error}"
        raise UsageError(msg) from error


_SAID = {"str": "name", "int": "whole number", "float": "number"}
_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str, int, float),  # YAML reads `threshold: 0.8` as a number; so is it meant
    "int": (int,),
    "float": (int, float),
}


def _checked(value: Any, kind: str, where: str) -> Any:
    """A value of the field's annotation, a list as a tuple; UsageError says what is expected.

    One name where a list is asked is a list of one, as with files.
    """
    kind, *or_none = kind.split(" | None")
    if value is None and or_none:
        return None
    if match := re.fullmatch(r"tuple\[(\w+), \.\.\.\]", kind):
        inner, many = match[1], f"a list of {_SAID.get(match[1], 'path')}s"
        given = value if isinstance(value, (list, tuple)) else [value]
        return tuple(_one(each, inner, many, where) for each in given)
    said = _SAID.get(kind)
    return _one(value, kind, f"a {said}" if said else "true or false", where)


def _one(value: Any, kind: str, expected: str, where: str) -> Any:
    if kind == "bool":
        good = isinstance(value, bool)
    elif kind in _TYPES:
        # in a list of names a number is a slip; alone it may be text that YAML took for one
        types = (str,) if kind == "str" and expected.startswith("a list") else _TYPES[kind]
        good = isinstance(value, types) and not isinstance(value, bool)
        good = good and (value != "" or not expected.startswith("a list"))
    else:
        good = isinstance(value, Path)
    if good:
        return value
    hint = "; a text with a colon needs quotes" if isinstance(value, Mapping) else ""
    found = "nothing" if value is None else repr(value)
    msg = f"{where}: expected {expected}, found {found}{hint}"
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
