"""`long_range`: its kernel beside the twin, and its scores of texts with known dependencies."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gristmill.documents.errors import UsageError
from gristmill.documents.stage import checked_measure, checked_verdict
from gristmill.filters import LongRange
from gristmill.filters.long_range import SCORES

# ruff: noqa: RUF001 - look-alike characters are what is tested
TINY = LongRange(segment=2, distance=2, min_letters=3)
PIECES = (
    *("river", "River", "bridge", "don't", "l’eau", "été", "ÉTÉ", "привет", "a", "of", "42nd"),
    *("utf8", "3.14", "naïve", "你好", "世界", "你", "ไทย", "e\u0301tude", ".", "\n"),
)
texts = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=80).map(" ".join),
    st.lists(st.sampled_from(PIECES), max_size=80).map("".join),
    st.lists(st.sampled_from([*(p.encode() for p in PIECES), b" ", b"\xff", b"\xe4"])).map(
        b"".join
    ),
)


def measured(stage: LongRange, values: list) -> dict[str, list[int]]:
    kind = pa.large_binary() if isinstance(values[0], bytes) else pa.large_string()
    found = checked_measure(stage, pa.record_batch({"text": pa.array(values, kind)}))
    return {name: column.tolist() for name, column in found.scores.items()}


def words(rng: random.Random, count: int) -> list[str]:
    """Made-up words of 8 letters."""
    return ["".join(rng.choices("abcdefghijklmnop", k=8)) for _ in range(count)]


def text_of(rng: random.Random, topics: list[list[str]], each: int) -> str:
    """`each` words of each topic in turn, drawn from its own words."""
    return " ".join(" ".join(rng.choices(topic, k=each)) for topic in topics)


@given(
    texts, st.integers(1, 3), st.integers(2, 4), st.integers(1, 5), st.sampled_from([0.3, 0.5, 1])
)
@example("river one bridge two river three four bridge river five", 1, 2, 3, 1)
@example("你好世界你好吗世界很好你好世界" * 3, 1, 2, 3, 1)
@example("aaa bbb ccc ddd aaa bbb ccc ddd eee", 1, 2, 3, 1)
def test_long_range_any_text_equals_twin(naive, text, segment, distance, letters, common) -> None:
    stage = LongRange(segment=segment, distance=distance, min_letters=letters, common=common)
    data = text if isinstance(text, bytes) else text.encode()
    twin = naive("naive_filters").long_range(data, stage)
    assert {name: v[0] for name, v in measured(stage, [text]).items()} == twin


def test_long_range_counts_by_hand() -> None:
    """Segments of one word: `river` in 0 and 3 (far), `bridge` in 1 and 2 (near)."""
    stage = LongRange(segment=1, distance=2, min_letters=3, common=1)
    found = measured(stage, ["river bridge Bridge river"])
    # 3 pairs of segments are near and 3 far; a segment has 1 term: a third of each is shared
    assert found == {"segments": [4], "near": [3333], "far": [3333], "score": [3333]}
    assert measured(stage, ["river bridge Bridge oceans"])["score"] == [0]


def test_long_range_one_subject_scores_above_many_joined_and_repeated() -> None:
    rng = random.Random(1)
    one, parts = words(rng, 600), [words(rng, 60) for _ in range(10)]
    stage = LongRange()
    page = " ".join(words(rng, 800))
    found = measured(
        stage,
        [
            text_of(rng, [one] * 10, 800),  # one subject throughout
            text_of(rng, parts, 800),  # ten subjects, one after the other
            " ".join([page] * 10),  # the same page ten times
            " ".join(words(rng, 8000)),  # no word twice
        ],
    )
    whole, joined, repeated, never = found["score"]
    assert found["segments"] == [125] * 4
    assert whole > 500
    assert max(joined, repeated, never) == 0
    assert found["near"][1] > found["near"][0]  # each part is closely knit


def test_long_range_scripts_without_spaces_scored_by_pairs_of_characters() -> None:
    rng = random.Random(2)

    def chinese(low: int) -> str:
        return "".join(chr(0x4E00 + low + rng.randrange(40)) for _ in range(1200))

    whole, joined = (
        "".join(chinese(0) for _ in range(8)),
        "".join(chinese(99 * i) for i in range(8)),
    )
    found = measured(LongRange(), [whole, joined])
    assert found["segments"] == [75, 75]  # 9,600 characters are 4,800 words
    assert found["score"][0] > 100
    assert found["score"][1] == 0


def test_long_range_short_and_missing_texts_have_no_score_and_stay() -> None:
    stage = LongRange(min_score=10_000)
    batch = pa.record_batch({"text": pa.array([None, "", "a few words", "word " * 4096])})
    scores = checked_measure(stage, batch).scores
    assert scores["segments"].tolist() == [0, 0, 0, 64]
    assert scores["score"].tolist() == [-1, -1, -1, 0]
    assert checked_verdict(stage, scores, 4).tolist() == [0, 0, 0, 1]
    assert not checked_verdict(LongRange(), scores, 4).any()


def test_long_range_limit_moves_without_text_and_is_told() -> None:
    texts = ["river bridge Bridge river", "river bridge Bridge oceans"]
    stage = LongRange(segment=1, distance=2, min_letters=3, common=1, min_score=3333)
    scores = stage.measure(pa.record_batch({"text": pa.array(texts)})).scores
    assert stage.verdict(scores).tolist() == [0, 1]
    assert stage.rules(scores)[0].told(1) == {"measured": 0, "at_least": 3333}
    assert {v.dtype for v in scores.values()} == {np.dtype(np.int32)}
    assert tuple(scores) == ("segments", "near", "far", "score") == SCORES


def test_long_range_neighbours_in_a_batch_change_nothing() -> None:
    rng = random.Random(3)
    values = [" ".join(rng.choices(PIECES, k=rng.randrange(120))) for _ in range(40)]
    together = measured(TINY, values)
    alone = [measured(TINY, [value]) for value in values]
    assert together == {name: [a[name][0] for a in alone] for name in SCORES}
    assert len(set(together["score"])) > 5


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"segment": 0}, "long_range.segment: found 0, expected 1 or more"),
        ({"distance": 1}, "long_range.distance: found 1, expected 2 or more"),
        ({"common": 1.5}, "long_range.common"),
        ({"min_score": -1}, "long_range.min_score"),
    ],
)
def test_long_range_wrong_field_named_in_error(fields, said) -> None:
    with pytest.raises(UsageError, match=said):
        LongRange(**fields)
