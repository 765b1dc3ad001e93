"""Fields of every filter: what is of a wrong kind is named, never a traceback."""

from __future__ import annotations

import dataclasses
import math

import pytest

from gristmill.documents.errors import UsageError
from gristmill.filters import STAGES

FIELDS = [
    (stage, field.name)
    for stage in STAGES.values()
    for field in dataclasses.fields(stage)
    if field.init
]
ODD = (None, 5, -1, "", "x", True, 1.5, math.nan, [None], [5], {}, b"x", (1, 2), object())


@pytest.mark.parametrize(("stage", "field"), FIELDS, ids=[f"{s.name}-{f}" for s, f in FIELDS])
def test_field_of_any_kind_is_taken_or_named(stage, field):
    for value in ODD:
        try:
            stage(**{field: value})
        except UsageError as error:
            assert stage.name in str(error)  # noqa: PT017 - or it is taken
