"""The one exception tree. A message says what was found, what was expected, where, and the cure.

GristmillError
├── UsageError      wrong recipe, path or argument: a person must act         exit 2
├── StopError       the run cannot go on: something it needs is missing       exit 3
│   ├── DamagedError    an output's bytes are not what its sidecar says
│   └── FormatError     a file states a format number that this version does not know
└── ContractError   a stage broke the contract of `documents.stage`: a bug    exit 3

Bad *data* is never an exception: it becomes a row in the books (`documents.losses`).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class GristmillError(Exception):
    """Root of the tree; `exit_code` is what the command line returns."""

    exit_code = 3


class UsageError(GristmillError):
    """A person must change a recipe, a path or an argument."""

    exit_code = 2


class StopError(GristmillError):
    """The run cannot go on; what is done stays valid and the same command resumes."""


class DamagedError(StopError):
    """An output's bytes differ from what its sidecar recorded."""


class FormatError(StopError):
    """A file of a format number that this version does not read."""


class ContractError(GristmillError):
    """A stage returned something that the stage contract forbids."""


def did_you_mean(found: object, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the nearest known name, or the list of known names."""
    names = sorted(known)
    near = difflib.get_close_matches(str(found), names, n=1, cutoff=0.5)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; known: {', '.join(names)}" if names else ""
