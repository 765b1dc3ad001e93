"""Edits: applied as plain Python would, and refused when they break the contract."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.documents import _kernels
from gristmill.documents.edits import Edits, apply_edits, moved, pick
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


@given(cases(), st.data())
def test_moved_counts_the_bytes_of_what_began_before_each_place(case, data):
    texts, items = case
    fill = (b"", b"[X]")
    edits = edits_of(items, fill) if items else edits_of([(0, 0, 0, 0)], fill)
    pairs = [(row, place) for row, t in enumerate(texts) for place in range(len(t) + 1)]
    asked = data.draw(st.permutations(pairs))
    got = moved(edits, *(np.array(c, np.int64) for c in zip(*asked, strict=True)))
    for (row, place), found in zip(asked, got.tolist(), strict=True):
        began = list(range(len(texts[row])))  # by byte of the new text
        for _, start, length, which in reversed([i for i in items if i[0] == row]):
            began[start : start + length] = [start] * len(fill[which])
        assert found == sum(b < place for b in began)


@given(
    st.binary(max_size=40),
    st.lists(st.integers(0, 40), max_size=8),
    st.lists(st.binary(max_size=12), min_size=1, max_size=3),
    st.integers(0, 40),
    st.data(),
)
def test_splice_any_cuts_equal_twin(naive, data, points, fills, read, draw):
    """Any bytes, from any place of a shared buffer on, with fills of any length."""
    read = min(read, len(data))
    at = sorted(min(max(p, read), len(data)) for p in points)
    pairs = list(zip(at[::2], at[1::2], strict=False))
    which = [draw.draw(st.integers(0, len(fills) - 1)) for _ in pairs]
    cuts = [(a, b - a, w) for (a, b), w in zip(pairs, which, strict=True)]
    wanted = naive("naive_documents").splice(data, read, len(data), cuts, fills)
    got, done = spliced(data, read, cuts, fills, len(wanted))
    assert done
    assert got == wanted
    assert not spliced(data, read, cuts, fills, len(wanted) + 1)[1]
    if wanted:
        assert not spliced(data, read, cuts, fills, len(wanted) - 1)[1]


@pytest.mark.parametrize("cuts", [[(3, 1, 0), (2, 1, 0)], [(0, 9, 0)], [(5, 0, 0)], [(0, -1, 0)]])
def test_splice_cuts_out_of_order_or_bounds_refused(cuts):
    left = 4 - sum(n for _, n, _ in cuts)
    assert not spliced(b"abcd", 0, cuts, [b""], max(left, 0))[1]


def spliced(data, read, cuts, fills, room):
    starts, lengths, which = zip(*cuts, strict=True) if cuts else ((), (), ())
    out = np.zeros(room, np.uint8)
    places = np.array(starts, np.int64), np.array(lengths, np.int64), np.array(which, np.uint8)
    bounds = np.cumsum([0, *map(len, fills)])
    text = np.frombuffer(b"".join(fills), np.uint8)
    view = np.frombuffer(data, np.uint8)
    done = _kernels.splice(view, read, len(data), places, (text, bounds), out)
    return out.tobytes(), done


def test_apply_edits_of_a_row_past_its_end_is_refused():
    with pytest.raises(ContractError, match="inside the text"):
        apply_edits(pa.array(["abcd"], pa.large_string()), edits_of([(0, 2, 3, 0)]))


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
