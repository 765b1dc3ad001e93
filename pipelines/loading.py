"""YAML as recipes mean it: keys once, dates as text, and typed checks that name the field."""

from __future__ import annotations

from typing import Any

import yaml

from ..documents.errors import UsageError


class _Loader(yaml.SafeLoader):
    """Safe YAML without dates (`dump: 2024-05-01` is a name), where a key may stand once."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - as the base class has it
        first: [(tag, form) for tag, form in known if tag != "tag:yaml.org,2002:timestamp"]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping whose keys are different and are names."""
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = str(self.construct_object(key_node, deep=True))
            if key in seen:
                problem = f"key {key!r} stands twice"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key_node.start_mark)
            seen.add(key)
        return {str(k): v for k, v in super().construct_mapping(node, deep=deep).items()}


def load_yaml(text: str, where: str) -> Any:
    """Parse YAML; UsageError is one line with the place."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        at = f" line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        msg = f"{where}:{at} not YAML as expected: {error.problem}"
        raise UsageError(msg) from error
    except yaml.YAMLError as error:
        msg = f"{where}: not YAML: {' '.join(str(error).split())}"
        raise UsageError(msg) from error


def text_or_none(value: Any, where: str) -> str | None:
    """A name: text or a number; UsageError for lists, mappings and empty text."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or value == "":
        msg = f"{where}: expected a name, found {value!r}"
        raise UsageError(msg)
    return str(value)
