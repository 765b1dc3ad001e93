"""Stages that look at one document. `STAGES` finds them by the name that recipes use."""

from __future__ import annotations

from typing import Any

from .c4 import C4
from .decontaminate import Decontaminate
from .fineweb import FineWebQuality
from .gopher_quality import GopherQuality
from .gopher_repetition import GopherRepetition
from .language import Language
from .long_range import LongRange
from .pii import PII
from .quality import Quality
from .rights import Rights
from .templates import LineRules
from .url import Url

STAGES: dict[str, type[Any]] = {
    stage.name: stage
    for stage in (
        Url,
        Rights,
        Language,
        GopherQuality,
        GopherRepetition,
        C4,
        FineWebQuality,
        LineRules,
        Quality,
        LongRange,
        PII,
        Decontaminate,
    )
}

__all__ = [
    "C4",
    "PII",
    "STAGES",
    "Decontaminate",
    "FineWebQuality",
    "GopherQuality",
    "GopherRepetition",
    "Language",
    "LineRules",
    "LongRange",
    "Quality",
    "Rights",
    "Url",
]
