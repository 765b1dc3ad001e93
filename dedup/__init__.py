"""Exact and near duplicates, host caps: global stages whose every removal names a kept witness."""

from __future__ import annotations

from .curve import candidate_probability, expected_recall
from .exact import ExactDuplicates
from .host_cap import HostCap
from .near import NearDuplicates
from .paragraphs import RepeatedParagraphs
from .urls import UrlDuplicates

GLOBAL_STAGES: dict[str, type] = {
    stage.name: stage
    for stage in (ExactDuplicates, UrlDuplicates, NearDuplicates, HostCap, RepeatedParagraphs)
}

__all__ = [
    "GLOBAL_STAGES",
    "ExactDuplicates",
    "HostCap",
    "NearDuplicates",
    "RepeatedParagraphs",
    "UrlDuplicates",
    "candidate_probability",
    "expected_recall",
]
