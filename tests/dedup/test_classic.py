"""`scheme: datasketch` against a plain twin; benchmarks/dedup_truth.py holds it to the library."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.dedup import NearDuplicates
from gristmill.dedup.classic import lean_minhash, permutations, signatures
from gristmill.documents.errors import UsageError
from gristmill.documents.fingerprint import measure_fingerprint

PIECES = st.sampled_from(
    [*("A", "word", "10", " ", "\n\t ", "É", "한국어"), *("中", "文字", "ไทย", "\u00a0", "\u2014")]
)
TEXTS = st.one_of(
    st.binary(max_size=90), st.lists(PIECES, max_size=40).map(lambda p: "".join(p).encode())
)
FINEWEB = NearDuplicates(preset="fineweb", scheme="datasketch")


@given(st.lists(st.one_of(st.none(), TEXTS), max_size=5), st.integers(0, 2))
def test_signatures_arbitrary_bytes_equal_twin(naive, values, cut):
    column = pa.array(values, pa.large_binary())[cut:]
    found, counts = signatures(column, 3, 2, 16)
    twin = [naive.datasketch(value or b"", 3, 2, 16) for value in values[cut:]]
    assert found.tolist() == [lanes for lanes, _ in twin]
    assert counts.tolist() == [count for _, count in twin]


@pytest.mark.parametrize("size", [0, 1, 54, 55, 56, 63, 64, 65, 119, 120, 200])
def test_signatures_any_block_length_equal_twin(naive, size):
    """SHA-1 pads at 55, 56, 63 and 64 bytes in four ways."""
    text = (b"x" * size + b" y z") if size else b"y z"
    found, _ = signatures(pa.array([text], pa.large_binary()), 2, 2, 4)
    assert found[0].tolist() == naive.datasketch(text, 2, 2, 4)[0]


def test_permutations_are_those_that_datasketch_draws():
    """The first of num_perm=128, printed by datasketch 2.0.0."""
    factors, summands = permutations(128)
    assert [int(factors[0]), int(factors[-1])] == [3582191691, 348755713]
    assert [int(summands[0]), int(summands[-1])] == [214548472, 1195370327]


def test_lean_minhash_bytes_are_those_of_datasketch():
    """Seed, minus the number of lanes, the code of affine32, the lanes."""
    signature = np.array([1, 2**32 - 1], np.uint32)
    assert lean_minhash(signature) == struct.pack("<qiB2I", 1, -2, 1, 1, 2**32 - 1)


def test_scheme_datasketch_finds_what_fss_finds(corpus, doc):
    """Fewer bands and other hashes; the same proof."""
    base = " ".join(f"w{i}" for i in range(200))
    docs = [doc(text=base), doc(text=base + " x"), doc(text="short"), doc(text=base[::-1])]
    found = corpus(docs).decide(FINEWEB)
    assert sorted(row["code"] for row in found.values()) == [0, 1]
    (documents,) = corpus(docs).surveyed(FINEWEB)
    assert documents["affine32"].type == pa.list_(pa.uint32(), 112)
    assert documents["bands"][2].as_py() == [0] * 14  # a text without a shingle has no bands


def test_preset_is_short_for_its_bands_and_rows():
    plain = NearDuplicates(bands=14, rows=8, scheme="datasketch")
    assert (FINEWEB.bands, FINEWEB.rows, FINEWEB.k) == (14, 8, 112)
    assert measure_fingerprint(FINEWEB) == measure_fingerprint(plain)
    with pytest.raises(UsageError, match="did you mean 'fineweb'"):
        NearDuplicates(preset="finweb")
    with pytest.raises(UsageError, match="preset 'fineweb' has bands 14, found bands: 20"):
        NearDuplicates(preset="fineweb", bands=20)


def test_swapped_bands_and_rows_are_refused():
    with pytest.raises(
        UsageError, match=r"8 bands of 32 rows find 0.6% .* State bands: 32, rows: 8"
    ):
        NearDuplicates(bands=8, rows=32)
    with pytest.raises(UsageError, match="are they swapped"):
        NearDuplicates(bands=8, rows=16)  # a published benchmark's setting
    assert NearDuplicates(bands=20, rows=13).k == 260  # low recall, but no mirror image
