"""What a plan costs: FLOP, accelerator hours, energy, carbon and money, each constant named.

`budget.py` does the arithmetic, `constants.py` knows what is stated and by whom, `pairs.py` counts
the query-key pairs of a plan's attention. What nobody stated stays unknown; it is never 0.
"""

from __future__ import annotations

from .budget import Budget, budget, plan_stages, stated_stages
from .constants import Constants, read_constants
from .pairs import attention_pairs, causal_pairs

__all__ = [
    "Budget",
    "Constants",
    "attention_pairs",
    "budget",
    "causal_pairs",
    "plan_stages",
    "read_constants",
    "stated_stages",
]
