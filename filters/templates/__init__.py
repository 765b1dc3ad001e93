"""Templated text removed, across documents: boilerplate lines, fill-in lines, template pages."""

from __future__ import annotations

from .line_rules import LineRules
from .templates import Templates

__all__ = ["LineRules", "Templates"]
