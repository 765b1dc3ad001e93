"""What a crawl holds besides pages: nothing, no text, one giant, NULs; no rule may crash on it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from gristmill.documents.stage import checked_measure, checked_verdict
from gristmill.filters import C4, FineWebQuality, GopherQuality, GopherRepetition

STAGES = (
    GopherQuality(),
    GopherQuality(as_datatrove=True),
    GopherRepetition(),
    GopherRepetition(as_datatrove=True),
    C4(),
    C4(as_datatrove=True, terminal_punctuation=True),
    FineWebQuality(),
)
IDS = [f"{s.name}-{getattr(s, 'as_datatrove', False)}" for s in STAGES]


def codes(stage, column: pa.Array) -> list[str]:
    batch = pa.record_batch({"text": column})
    scores = checked_measure(stage, batch).scores
    return [stage.reasons[c] for c in checked_verdict(stage, scores, batch.num_rows)]


@pytest.mark.parametrize("stage", STAGES, ids=IDS)
def test_rules_no_rows_no_verdicts(stage) -> None:
    assert codes(stage, pa.array([], pa.large_string())) == []


@pytest.mark.parametrize("stage", STAGES, ids=IDS)
def test_rules_nulls_and_nothing_judged_alike(stage) -> None:
    empty = codes(stage, pa.array([""], pa.large_string()))
    column = pa.array([None, None, "", None], pa.large_string())
    assert codes(stage, column) == 4 * empty
    assert codes(stage, pa.nulls(3, pa.large_string())) == 3 * empty
    if stage.name != "gopher_repetition":  # nothing repeats in nothing
        assert empty != ["keep"]


@pytest.mark.parametrize("stage", STAGES, ids=IDS)
def test_rules_only_spaces_or_nuls_or_marks_judged(stage) -> None:
    column = pa.array([" \n\t \u3000\n", "\x00" * 200, "." * 200, "\ufffd\n" * 99], pa.string())
    assert len(codes(stage, column)) == 4


GIANT = 100_000_000  # bytes


@pytest.mark.parametrize("stage", STAGES, ids=IDS)
@pytest.mark.parametrize(
    "kind",
    ["one word", pytest.param("a text", marks=pytest.mark.nightly)],  # 60 s, 2.7 GB
)
def test_rules_a_giant_among_small_judged_as_alone(stage, kind: str) -> None:
    line = "It was the best of times, it was the worst of times; the age of wisdom. (1) [2]\n"
    giant = "x" * GIANT if kind == "one word" else line * (GIANT // len(line))
    small = "One line.\nAnd another, of five words."
    column = pa.array([small, giant, small], pa.large_string())
    measured = stage.measure(pa.record_batch({"text": column}))
    alone = stage.measure(pa.record_batch({"text": pa.array([small], pa.large_string())}))
    for name, values in measured.scores.items():
        assert values[0] == values[2] == alone.scores[name][0], name
    assert all((values >= 0).all() for values in measured.scores.values())
    assert stage.verdict(measured.scores).shape == (3,)
