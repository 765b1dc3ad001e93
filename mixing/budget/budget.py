"""The arithmetic of a budget; every line says how it was come by.

    training FLOP   6 N D + 12 layers width pairs     N: active parameters, D: tokens processed
                    (PaLM, arXiv 2204.02311, appendix B, with the pairs counted, not bounded)
    hours           FLOP / (peak x MFU)               MFU counts no recomputation, so neither do we
    energy          hours x power x node overhead     of the machines; x PUE of the facility
    carbon, cost    energy x grid intensity; hours x price

Work lost to restarts and the energy of development (half as much again as the final training in
Morrison et al. 2025, arXiv 2503.05804) are lines of their own, unknown until stated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...documents.errors import UsageError
from ..fields import parse_tokens
from ..plan import Plan
from .constants import Constants, Range
from .pairs import attention_pairs, causal_pairs


@dataclass(frozen=True, kw_only=True, slots=True)
class StageCost:
    """What one stage computes. FLOP are exact whole numbers; None is unknown."""

    stage: str
    tokens: int  # slots processed, padding included
    sequence_length: int | None
    pairs: int | None  # query-key pairs of one layer
    dense_flop: int  # 6 N D
    attention_flop: int | None  # 12 layers width pairs


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """A budget: its stages, its totals (quantity, low, high, unit, how), its constants."""

    stages: list[StageCost]
    totals: list[dict[str, Any]]
    constants: list[dict[str, Any]]


def plan_stages(plan: Plan, constants: Constants) -> list[tuple[str, int, int, int]]:
    """(name, tokens, sequence length, pairs) of each stage of a plan."""
    pairs = attention_pairs(plan, constants.whole("attention_window"))
    return [
        (s.name, plan.served(k) * s.sequence_length, s.sequence_length, p)
        for k, (s, p) in enumerate(zip(plan.stages, pairs, strict=True))
    ]


def stated_stages(
    texts: Sequence[str], constants: Constants
) -> list[tuple[str, int, int | None, int | None]]:
    """Stages from `28.5T` or `1T@32Ki`: tokens, and the length of a document that sees itself.

    Without a length the pairs are unknown; with one they are as if every window were one document.
    """
    found: list[tuple[str, int, int | None, int | None]] = []
    for text in texts:
        size, at, length = text.partition("@")
        tokens = parse_tokens(_number(size), f"--tokens {text}")
        if not at:
            found.append((text, tokens, None, None))
            continue
        n = parse_tokens(_number(length), f"--tokens {text}")
        if n > 1 << 31:
            raise UsageError(f"--tokens {text}: a sequence of {n} tokens; expected at most 2Gi")
        whole, rest = divmod(tokens, n)
        window = constants.whole("attention_window")
        one, last = causal_pairs(np.array([n, rest]), window).tolist()
        found.append((text, tokens, n, whole * one + last))
    return found


def _number(text: str) -> str | int:
    """`28.5e12` as a whole number; anything else as it stands, for `parse_tokens` to judge."""
    try:
        value = float(text)
    except ValueError:
        return text
    return int(value) if value.is_integer() else text


def budget(
    stages: Sequence[tuple[str, int, int | None, int | None]], constants: Constants
) -> Budget:
    """Cost of `stages`, (name, tokens, sequence length, pairs) each; UsageError without N."""
    params = constants.whole("active_params")
    if params is None:
        raise UsageError(
            "active_params: not stated; expected --active-params N, the parameters that a token "
            "meets (all of a dense model's, the routed and shared ones of a mixture of experts)"
        )
    layers, width = constants.whole("layers"), constants.whole("width")
    costs = [
        StageCost(
            stage=name,
            tokens=tokens,
            sequence_length=length,
            pairs=pairs,
            dense_flop=6 * params * tokens,
            attention_flop=(
                None
                if layers is None or width is None or pairs is None
                else 12 * layers * width * pairs
            ),
        )
        for name, tokens, length, pairs in stages
    ]
    return Budget(stages=costs, totals=_totals(costs, constants), constants=constants.rows())


def _totals(costs: Sequence[StageCost], constants: Constants) -> list[dict[str, Any]]:
    get = constants.range
    rows: list[dict[str, Any]] = []

    def line(quantity: str, value: Range | None, unit: str, how: str) -> Range | None:
        low, high = value or (None, None)
        rows.append({"quantity": quantity, "low": low, "high": high, "unit": unit, "how": how})
        return value

    dense = sum(c.dense_flop for c in costs)
    known = [c.attention_flop for c in costs if c.attention_flop is not None]
    attention = sum(known) if len(known) == len(costs) else None
    flop = dense + (attention or 0)
    line("tokens processed", _exact(sum(c.tokens for c in costs)), "tokens", "padding included")
    line("dense compute", _exact(dense), "FLOP", "6 x active_params x tokens")
    how = "12 x layers x width x query-key pairs"
    line("attention compute", None if attention is None else _exact(attention), "FLOP", how)
    how = "dense + attention" if attention is not None else "dense alone: attention is unknown"
    line("training compute", _exact(flop), "FLOP", how)
    rate = _product(get("peak"), get("mfu"))
    hours = None if rate is None else _exact(flop).over(rate).times(_exact(1 / 3600))
    line("accelerator hours", hours, "h", "compute / (peak x mfu)")
    machines = _product(hours, get("power"), get("node_overhead"), _exact(1e-6))
    line("energy of the machines", machines, "MWh", "hours x power x node_overhead")
    facility = line("energy", _product(machines, get("pue")), "MWh", "machines x pue")
    line("carbon", _product(facility, get("carbon"), _exact(1e-3)), "t CO2e", "energy x carbon")
    line("cost", _product(hours, get("price")), "money", "hours x price")
    for extra in ("restarts", "development"):
        line(f"energy of {extra}", _product(facility, get(extra)), "MWh", f"energy x {extra}")
    return rows


def _exact(value: float) -> Range:
    return Range(value, value)


def _product(*factors: Range | None) -> Range | None:
    """Product of the factors; unknown when one is."""
    out = _exact(1)
    for factor in factors:
        if factor is None:
            return None
        out = out.times(factor)
    return out
