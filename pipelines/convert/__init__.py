"""Records to drafts of documents. A recipe names one converter per source."""

from __future__ import annotations

from .cleaning import clean_text
from .issue import Issue
from .main_text import MainText
from .plain import PlainText
from .repository import Repository
from .trajectory import Trajectory

CONVERTERS: dict[str, type] = {
    kind.name: kind for kind in (MainText, PlainText, Repository, Trajectory, Issue)
}
"""By the name that stands in a recipe."""

__all__ = ["CONVERTERS", "Issue", "MainText", "PlainText", "Repository", "Trajectory", "clean_text"]
