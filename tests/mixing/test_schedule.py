from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.mixing.schedule import Schedule


def walked(plan, position, batch, rank, world, micro):
    """The schedule by walking step by step."""
    out = []
    while position < plan.positions:
        skip = next((s for s in plan.skips if s[0] <= position < s[1]), None)
        if skip:
            position = skip[1]
            continue
        nearest = min([s[0] for s in plan.skips if s[0] > position], default=plan.positions)
        stage = next(s for s in plan.stages if position < s.first + s.windows)
        size = batch or stage.global_batch - (position - stage.first) % stage.global_batch
        limit = min(position + size, nearest)
        local = -(-size // world)
        micros = -(-local // micro)
        for m in range(micros):
            first = position + rank + m * micro * world
            wanted = range(first, first + micro * world, world)
            out.append((position, limit, wanted, m == micros - 1))
        position = limit
    return out


@given(st.data())
def test_schedule_by_number_is_the_walk(data):
    first, stages = 0, []
    for batch, steps in data.draw(
        st.lists(st.tuples(st.integers(1, 6), st.integers(1, 5)), min_size=1, max_size=3)
    ):
        windows = batch * steps
        stages.append(SimpleNamespace(first=first, windows=windows, global_batch=batch))
        first += windows
    edges = [e for s in stages for e in range(s.first, s.first + s.windows, s.global_batch)]
    edges.append(first)  # skips are whole steps of a stage
    picked = sorted(data.draw(st.lists(st.sampled_from(edges), unique=True, max_size=6)))
    skips = list(zip(picked[::2], picked[1::2], strict=False))
    plan = SimpleNamespace(stages=stages, positions=first, skips=skips)
    position = data.draw(st.integers(0, first))
    batch = data.draw(st.none() | st.integers(1, 9))
    world, micro = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
    rank = data.draw(st.integers(0, world - 1))
    schedule = Schedule(
        plan, position, global_batch=batch, rank=rank, world=world, micro_batch=micro
    )
    expected = walked(plan, position, batch, rank, world, micro)
    assert [tuple(m) for m in schedule.every(0, 1)] == expected
    assert len(schedule) == len(expected)
    of = data.draw(st.integers(1, 4))
    dealt = [list(schedule.every(n, of)) for n in range(of)]
    assert [tuple(dealt[i % of][i // of]) for i in range(len(expected))] == expected
    for number in (-1, len(expected)):
        with pytest.raises(IndexError, match="micro-batch"):
            schedule.at(number)
