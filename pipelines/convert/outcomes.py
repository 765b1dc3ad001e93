"""What a row says of how a run ended: verified, failed, or neither.

Only words that say that something was checked count. `submitted` says that an agent stopped, which
says nothing of its patch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_GOOD = frozenset(
    {
        "true", "yes", "1", "1.0", "resolved", "passed", "pass", "success", "succeeded",
        "successful", "solved", "correct", "verified",
    }
)  # fmt: skip
_BAD = frozenset(
    {
        "false", "no", "0", "0.0", "unresolved", "not_resolved", "failed", "fail", "failure",
        "not_passed", "error", "unsolved",
        "incorrect", "wrong", "gave_up", "given_up", "timeout", "crashed",
    }
)  # fmt: skip
#: Under which names an object says how a run ended.
_NAMES = ("resolved", "passed", "success", "solved", "outcome", "status", "result", "reward")


def said_outcome(stated: Mapping[str, Any]) -> tuple[bool | None, str]:
    """True: verified; False: failed, if any field says so; None: nothing was checked. And why."""
    found = {path: verdict(value) for path, value in stated.items() if value is not None}
    told = ", ".join(f"{path}: {stated[path]!r}"[:80] for path in found) or "no outcome is stated"
    if False in found.values():
        return False, told
    return (True if True in found.values() else None), told


def verdict(value: Any) -> bool | None:
    """What one value says: of numbers 1 and 0 alone, as rewards have them; of an object its fields.

    A field of an object that says failed outweighs those that say otherwise.
    """
    if isinstance(value, Mapping):
        said = {
            verdict(value[n]) for n in _NAMES if not isinstance(value.get(n), (Mapping, type(None)))
        }
        return False if False in said else (True if True in said else None)
    if isinstance(value, (bool, int, float)):
        return bool(value) if value in (0, 1) else None
    if not isinstance(value, str):
        return None
    word = "_".join(value.lower().replace("-", " ").replace("_", " ").split())
    if word in _GOOD:
        return True
    return False if word in _BAD else None
