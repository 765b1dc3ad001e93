"""The stage contract: whatever a stage gets wrong is named, never booked."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.documents.errors import ContractError
from gristmill.documents.fingerprint import digest, measure_fingerprint, verdict_fingerprint
from gristmill.documents.identity import IdMaker, shard_hash
from gristmill.documents.stage import Evidence, Measured, Stage, checked_measure, checked_verdict

BATCH = pa.record_batch({"text": pa.array(["a", "bb"], pa.large_string())})


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A stage that returns what it is told to."""

    name: ClassVar[str] = "given"
    revision: ClassVar[int] = 1
    reasons: ClassVar[tuple[str, ...]] = ("keep", "drop")
    verdict_fields: ClassVar[frozenset[str]] = frozenset({"limit"})
    measured: Measured = Measured({})
    codes: tuple[int, ...] = (0, 0)
    limit: int = 3

    def measure(self, batch):
        return self.measured

    def verdict(self, scores):
        return np.array(self.codes, np.uint8)


def test_stage_of_a_plain_dataclass_satisfies_the_protocol():
    assert isinstance(Given(), Stage)


@pytest.mark.parametrize(
    ("measured", "message"),
    [
        (Measured({"n": np.zeros(1, np.int32)}), "got 2 rows, score 'n' has 1"),
        (Measured({"n": np.array([0.0, np.nan])}), "not finite in row 1"),
        (Measured({"n": np.array(["a", "b"], object)}), "expected bool, int, float or S"),
        (Measured({}, evidence=Evidence(np.array([5]), ["x"])), "evidence"),
    ],
)
def test_checked_measure_broken_contract_is_named(measured, message):
    with pytest.raises(ContractError, match=message):
        checked_measure(Given(measured=measured), BATCH)


@pytest.mark.parametrize(("codes", "message"), [((0,), "got 2 rows"), ((0, 2), "code 2")])
def test_checked_verdict_broken_contract_is_named(codes, message):
    with pytest.raises(ContractError, match=message):
        checked_verdict(Given(codes=codes), {}, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    name: ClassVar[str] = "limit"
    revision: ClassVar[int] = 1
    verdict_fields: ClassVar[frozenset[str]] = frozenset({"limit"})
    size: int = 1
    limit: int = 3


def test_fingerprint_threshold_changes_the_verdict_alone():
    a, b = Limit(limit=3), Limit(limit=4)
    assert measure_fingerprint(a) == measure_fingerprint(b)
    assert verdict_fingerprint(a) != verdict_fingerprint(b)


def test_fingerprint_other_field_changes_the_measure():
    assert measure_fingerprint(Limit(size=1)) != measure_fingerprint(Limit(size=2))


def test_digest_order_of_keys_and_kind_of_sequence_do_not_matter():
    assert digest({"a": 1, "b": (1, 2)}) == digest({"b": [1, 2], "a": 1})
    assert digest(frozenset({"x", "y"})) == digest(["x", "y"])


def test_id_equal_triples_are_counted_and_parts_do_not_run_together():
    make = IdMaker("web")
    ids = [make("r", b"text"), make("r", b"text"), make("rt", b"ext"), make(None, b"text")]
    assert len(set(ids)) == 4
    again = IdMaker("web")
    assert [again("r", b"text"), again("r", b"text")] == ids[:2]
    assert IdMaker("wet")("r", b"text") != ids[0]


def test_shard_hash_is_fixed_for_ever():
    assert (
        shard_hash("web-0") == 8432348505418935828
    )  # stored in decisions: a change would orphan them


@given(st.text(max_size=5), st.none() | st.text(max_size=5), st.binary(max_size=40))
def test_ids_are_blake2b_of_each_part_after_its_length(source, identity, content):
    make = IdMaker(source)
    parts = (source.encode(), (identity or "").encode(), content)
    framed = b"".join(struct.pack("<Q", len(part)) + part for part in parts)
    for k in range(3):
        wanted = hashlib.blake2b(framed + struct.pack("<Q", k), digest_size=16).digest()
        assert make(identity, content) == wanted
