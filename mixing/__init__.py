"""Tokens, plan and feed. What a trainer imports needs numpy and the standard library alone.

`compile_plan` alone loads pyarrow and Numba, when it is asked for, so it is not in `__all__`;
`mixing.account`, `mixing.encoder` and `mixing.tokens` are imported by their own names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .feed import Sample, TokenFeed
from .loader import FeedLoader, carry_state
from .monitor import Monitor
from .plan import Plan
from .spec import MixSpec
from .trace import steps_of_document, trace

if TYPE_CHECKING:
    from .compiler import compile_plan as compile_plan  # a re-export

__all__ = [
    "FeedLoader",
    "MixSpec",
    "Monitor",
    "Plan",
    "Sample",
    "TokenFeed",
    "carry_state",
    "steps_of_document",
    "trace",
]


def __getattr__(name: str) -> Any:
    if name == "compile_plan":
        from .compiler import compile_plan

        return compile_plan
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
