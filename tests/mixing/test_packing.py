from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.mixing import packing
from gristmill.mixing._kernels import best_fit
from gristmill.mixing.packing import pack

lengths_of = st.integers(1, 70).flatmap(
    lambda capacity: st.tuples(
        st.just(capacity), st.lists(st.integers(1, capacity), min_size=1, max_size=120)
    )
)


@given(case=lengths_of)
def test_best_fit_equals_twin(case, naive):
    capacity, lengths = case
    bins, used = best_fit(np.array(lengths, dtype=np.int64), capacity)
    assert (bins.tolist(), used) == naive("naive_mixing").best_fit(lengths, capacity)


def test_best_fit_long_capacity_sliced_input_equals_twin(naive):
    lengths = np.array([(i * i * 7919) % 65_536 + 1 for i in range(800)], dtype=np.int64)[100::3]
    bins, used = best_fit(np.ascontiguousarray(lengths), 65_536)
    assert (bins.tolist(), used) == naive("naive_mixing").best_fit(lengths.tolist(), 65_536)


@given(
    tokens=st.lists(st.integers(1, 200), min_size=1, max_size=80),
    window=st.integers(2, 90),
    kind=st.sampled_from(["concat", "best_fit"]),
    group=st.sampled_from([1, 7, 16_384]),
)
def test_pack_every_token_stands_in_one_window(tokens, window, kind, group):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "GROUP", group)
        offsets, pieces = pack(np.array(tokens), window, kind, "t")
    assert offsets[0] == 0
    assert offsets[-1] == len(pieces)
    assert (np.diff(offsets.astype(np.int64)) > 0).all()  # no empty window
    fill = np.add.reduceat(pieces[:, 2].astype(np.int64), offsets[:-1].astype(np.int64))
    assert fill.max() <= window
    seen = sorted((d, s + i) for d, s, n in pieces.tolist() for i in range(n))
    assert seen == [(d, i) for d, n in enumerate(tokens) for i in range(n)]
    if kind == "concat":
        assert (fill[:-1] == window).all()
    else:  # nothing is cut that fits; what does not is cut at multiples of the window
        assert all(start % window == 0 for _, start, _ in pieces.tolist())


@given(tokens=st.lists(st.integers(1, 50), min_size=1, max_size=60), window=st.integers(2, 60))
def test_pack_concat_equals_twin(tokens, window, naive):
    offsets, pieces = pack(np.array(tokens), window, "concat", "t")
    order = list(dict.fromkeys(pieces[:, 0].tolist()))  # as shuffled
    expected = naive("naive_mixing").concat([tokens[d] for d in order], window)
    found = [
        [(order.index(d), s, n) for d, s, n in pieces[a:b].tolist()]
        for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    ]
    assert found == expected


def test_pack_best_fit_appended_documents_leave_full_groups_alone(monkeypatch):
    monkeypatch.setattr(packing, "GROUP", 50)
    tokens = np.array([(i * 37) % 60 + 1 for i in range(130)])
    offsets, pieces = pack(tokens[:100], 64, "best_fit", "t")
    _, more = pack(tokens, 64, "best_fit", "t")
    assert (more[: len(pieces)] == pieces).all()
    assert len(offsets) > 2


def test_pack_best_fit_wastes_little_on_lognormal_lengths():
    # by quantiles, so that no generator's stream is needed: median 600, sigma about 1.3
    u = (np.arange(16_384) + 0.5) / 16_384
    tokens = (600 * (u / (1 - u)) ** 0.75).astype(np.int64) + 1
    offsets, pieces = pack(tokens, 8192, "best_fit", "t")
    windows = len(offsets) - 1
    padding = windows * 8192 - int(pieces[:, 2].sum())
    assert padding / (windows * 8192) < 0.002
    assert windows == -(-int(tokens.sum()) // 8192)  # as few as concatenation needs


def test_pack_shuffles_documents_across_the_group():
    tokens = np.full(2000, 10)
    _, pieces = pack(tokens, 100, "concat", "t")
    first = pieces[:10, 0].astype(int)
    assert np.ptp(first) > 500
    _, other = pack(tokens, 100, "concat", "u")
    assert (pieces[:, 0] != other[:, 0]).any()
