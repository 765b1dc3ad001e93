"""Edits: applied as plain Python would, and refused when they break the contract."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.documents.edits import Edits, apply_edits, pick
from gristmill.documents.errors import ContractError


def edits_of(items, replacements=(b"",)):
    """From a list of (row, start, length, replacement)."""
    rows, starts, lengths, which = (np.array(c, np.int64) for c in zip(*items, strict=True))
    return Edits(
        rows=rows,
        starts=starts,
        lengths=lengths,
        reasons=np.zeros(len(rows), np.uint8),
        reason_names=("cut",),
        replacements=replacements,
        replacement=which.astype(np.uint8),
    )


def naive_apply(texts, items, replacements):
    out = [t.encode() for t in texts]
    for row, start, length, which in reversed(items):
        out[row] = out[row][:start] + replacements[which] + out[row][start + length :]
    return out


@st.composite
def cases(draw):
    texts = draw(st.lists(st.text("ab \n", max_size=12), min_size=1, max_size=5))
    items = []
    for row, text in enumerate(texts):
        cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=4)))
        pairs = zip(cuts[::2], cuts[1::2], strict=False)
        items += [(row, a, b - a, draw(st.integers(0, 1))) for a, b in pairs]
    return texts, items


@given(cases())
def test_apply_edits_any_edits_equal_plain_python(case):
    texts, items = case
    column = pa.array(["skipped", *texts], pa.large_string()).slice(1)
    fill = (b"", b"[X]")
    edits = edits_of(items, fill) if items else edits_of([(0, 0, 0, 0)], fill)
    edits.check(column, "test")
    got = apply_edits(column, edits).cast(pa.large_binary()).to_pylist()
    assert got == naive_apply(texts, items, fill)


@given(cases())
def test_inserted_minus_lengths_is_the_change_of_bytes(case):
    texts, items = case
    if not items:
        return
    column = pa.array(texts, pa.large_string())
    edits = edits_of(items, (b"", b"[X]"))
    after = sum(len(t) for t in apply_edits(column, edits).cast(pa.large_binary()).to_pylist())
    before = sum(len(t.encode()) for t in texts)
    assert after - before == int((edits.inserted() - edits.lengths).sum())


@pytest.mark.parametrize(
    "items",
    [
        [(0, 0, 99, 0)],
        [(1, 0, 1, 0)],
        [(0, 2, 2, 0), (0, 3, 1, 0)],
        [(0, 3, 1, 0), (0, 0, 1, 0)],
        [(0, -1, 1, 0)],
    ],
)
def test_check_out_of_bounds_or_overlapping_is_refused(items):
    with pytest.raises(ContractError, match="sorted"):
        edits_of(items).check(pa.array(["abcd"]), "stage")


def test_check_half_a_character_is_refused():
    with pytest.raises(ContractError, match="character"):
        edits_of([(0, 1, 1, 0)]).check(pa.array(["äb"]), "stage")


def test_pick_keeps_the_masked_edits():
    edits = edits_of([(0, 0, 1, 0), (0, 2, 1, 0)])
    left = pick(edits, np.array([False, True]))
    assert apply_edits(pa.array(["abc"], pa.large_string()), left).to_pylist() == ["ab"]
