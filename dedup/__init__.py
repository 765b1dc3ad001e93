"""Exact and near duplicates: global stages whose every removal names a kept witness."""

from __future__ import annotations

from .curve import candidate_probability, expected_recall
from .exact import ExactDuplicates
from .near import NearDuplicates

GLOBAL_STAGES: dict[str, type] = {stage.name: stage for stage in (ExactDuplicates, NearDuplicates)}

__all__ = [
    "GLOBAL_STAGES",
    "ExactDuplicates",
    "NearDuplicates",
    "candidate_probability",
    "expected_recall",
]
