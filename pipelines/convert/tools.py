"""Calls of tools against what a row says of its tools.

Tools are stated as OpenAI has them (`{"type": "function", "function": {"name", "parameters"}}`), as
Anthropic (`{"name", "input_schema"}`), or by name alone. Schemas are JSON Schema, by the draft that
they name (2020-12 where they name none); what they refer to elsewhere is never fetched.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from ...documents.errors import UsageError
from .messages import list_in


class Tools:
    """The tools of a row by name; None where the row lists none: then nothing is checked."""

    def __init__(self, schemas: Mapping[str, str | None] | None) -> None:
        self._schemas = schemas  # name -> JSON text of its schema, where it has one

    @classmethod
    def of(cls, stated: Any) -> Tools:
        """From a row's field: a list, or the JSON text of one; what has no name is left out."""
        found: dict[str, str | None] = {}
        for tool in list_in(stated) or []:
            inner = tool.get("function", tool) if isinstance(tool, Mapping) else {"name": tool}
            name = inner.get("name") if isinstance(inner, Mapping) else None
            if isinstance(name, str):
                schema = inner.get("parameters", inner.get("input_schema"))
                known = isinstance(schema, (Mapping, bool))
                found[name] = json.dumps(schema, sort_keys=True) if known else None
        return cls(found or None)

    def look(self, name: list[str], arguments: str) -> tuple[str, str]:
        """`good`, `unchecked`, or what is wrong (`unknown_tool`, `not_json`, `bad_arguments`).

        The second text says more. A call without arguments has an empty object.
        """
        if self._schemas is None or not name:
            return "unchecked", ""
        if name[0] not in self._schemas:
            return "unknown_tool", name[0]
        try:
            given = json.loads(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError) as error:
            return "not_json", f"{name[0]}: {error}"
        if not isinstance(given, dict):
            return "not_json", f"{name[0]}: {type(given).__name__} where an object is expected"
        schema = self._schemas[name[0]]
        if schema is None:
            return "good", ""
        first_error = _validator(schema)
        if first_error is None:
            return "unchecked", ""
        wrong = first_error(given)
        return ("good", "") if wrong is None else ("bad_arguments", f"{name[0]}: {wrong}"[:300])


@lru_cache(maxsize=1024)
def _validator(schema: str) -> Callable[[Any], str | None] | None:
    """What gives the first error of a value, None for a good one; None for a bad schema."""
    try:
        import jsonschema_rs as js
    except ImportError as error:
        msg = "bad_calls needs jsonschema-rs: `pip install jsonschema-rs`, or state bad_calls: keep"
        raise UsageError(msg) from error

    try:
        # Patterns without look-behind run in linear time whatever a row's schema says.
        checker = js.validator_for(
            json.loads(schema), retriever=_nothing, pattern_options=js.RegexOptions()
        )
    except (js.ValidationError, js.ReferencingError, ValueError):
        return None

    def first(value: Any) -> str | None:
        for error in checker.iter_errors(value):
            return f"{'/'.join(map(str, error.instance_path))}: {error.message}"
        return None

    return first


def _nothing(uri: str) -> Any:
    msg = f"{uri} is not fetched"
    raise ValueError(msg)
