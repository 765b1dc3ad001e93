"""What a row says of how a run ended: verified, failed, or neither.

Only words that say that something was checked count. `submitted` says that an agent stopped, which
says nothing of its patch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_GOOD = frozenset(
    {"true", "resolved", "passed", "pass", "success", "succeeded", "solved", "correct"}
)
_BAD = frozenset(
    {
        "false", "unresolved", "not_resolved", "failed", "fail", "failure", "error", "unsolved",
        "incorrect", "wrong", "gave_up", "given_up", "timeout", "crashed",
    }
)  # fmt: skip


def said_outcome(stated: Mapping[str, Any]) -> tuple[bool | None, str]:
    """True: verified; False: failed, if any field says so; None: nothing was checked. And why."""
    found = {path: verdict(value) for path, value in stated.items() if value is not None}
    told = ", ".join(f"{path}: {stated[path]!r}"[:80] for path in found) or "no outcome is stated"
    if False in found.values():
        return False, told
    return (True if True in found.values() else None), told


def verdict(value: Any) -> bool | None:
    """What one value says; of numbers 1 and 0 alone, as rewards have them."""
    if isinstance(value, (bool, int, float)):
        return bool(value) if value in (0, 1) else None
    if not isinstance(value, str):
        return None
    word = "_".join(value.lower().replace("-", " ").replace("_", " ").split())
    if word in _GOOD:
        return True
    return False if word in _BAD else None
