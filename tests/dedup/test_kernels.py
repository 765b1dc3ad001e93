"""The kernels against their plain-Python twins, and the sketch against its theory."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gristmill.dedup import _kernels as kernels
from gristmill.dedup import _kernels_pairs as pair_kernels
from gristmill.dedup.curve import candidate_probability
from gristmill.dedup.exact import ExactSurvey
from gristmill.dedup.near import NearSurvey
from gristmill.dedup.verify import shingle_sets
from gristmill.documents.text import text_view

# Pieces that meet every rule of the tokens, among arbitrary bytes.
PIECES = st.sampled_from(
    [
        *("A", "word", "10", " ", "\n\t ", "É", "한국어", "😀"),  # words and what parts them
        *("中", "文字", "カナ", "ไทย", "က", "ខ", "𠀀"),  # tokens of their own
        *("\u00a0", "\u00b5", "\u2014", "\u2026", "\u3000", "\uff0c"),  # separators
    ]
)
TEXTS = st.one_of(
    st.binary(max_size=80),
    st.lists(PIECES, max_size=60).map(lambda parts: "".join(parts).encode()),
    st.lists(
        st.sampled_from([b"\xe4", b"\xe2\x80", b"\xc2", b"\xf0\xa0", b"a", b" ", b"\xef\xbc"])
    ).map(b"".join),
)
BATCHES = st.lists(st.one_of(st.none(), TEXTS), max_size=6)


def view(values, cut):
    column = pa.array(values, pa.large_binary())
    return text_view(column[cut:]), [value or b"" for value in values[cut:]]


@given(BATCHES, st.integers(0, 3))
def test_hash_texts_arbitrary_bytes_equals_twin(naive, values, cut):
    seen, texts = view(values, cut)
    out = np.ones((len(texts), 2), np.uint64)
    kernels.hash_texts(seen.data, seen.offsets, out)
    assert out.tolist() == [list(naive.murmur(naive.normalise(text))) for text in texts]


def test_hash_texts_published_vector_agrees():
    batch = pa.record_batch({"text": pa.array([" hello ", "", " \n "], pa.large_string())})
    found = ExactSurvey().measure(batch).scores["hash"]
    assert f"{found[0, 0]:016x}{found[0, 1]:016x}" == "cbd8a7b341bd9b025b1e906a48ae1d19"
    assert not found[1:].any()


@given(BATCHES, st.integers(0, 3), st.sampled_from([(5, 5, 16, 4), (1, 2, 8, 8), (3, 1, 6, 2)]))
def test_band_keys_arbitrary_bytes_equals_twin(naive, values, cut, sizes):
    ngram, char_ngram, k, bands = sizes
    seen, texts = view(values, cut)
    keys = np.ones((len(texts), bands), np.uint64)
    counts = np.ones(len(texts), np.int32)
    kernels.band_keys(seen.data, seen.offsets, ngram, char_ngram, k, keys, counts)
    assert counts.tolist() == [len(naive.shingles(t, ngram, char_ngram)) for t in texts]
    assert keys.tolist() == [naive.band_keys(t, ngram, char_ngram, k, bands) for t in texts]


def test_band_keys_sliced_columns_equal_whole():
    texts = ["one two three four five six", None, "", "seven " * 9, "日本語の文章です。" * 3]
    for kind in (pa.string(), pa.large_string()):
        whole = pa.record_batch({"text": pa.array(texts, kind)})
        expected = NearSurvey().measure(whole).scores["bands"]
        for start in range(len(texts) + 1):
            found = NearSurvey().measure(whole.slice(start)).scores["bands"]
            assert found.tolist() == expected[start:].tolist()


@given(BATCHES, st.integers(0, 3))
def test_shingle_sets_arbitrary_bytes_equals_twin(naive, values, cut):
    column = pa.array(values, pa.large_binary())[cut:]
    found, starts, ends = shingle_sets(column, 2, 3)
    for i, value in enumerate(values[cut:]):
        expected = sorted(set(naive.shingles(value or b"", 2, 3)))
        assert found[starts[i] : ends[i]].tolist() == expected
        assert len(expected) == len(naive.shingle_set(value or b"", 2, 3))


def run_sketch(shingles, k):
    lanes = np.empty(k, np.uint64)
    values = np.array(shingles, np.uint64)
    kernels.sketch(values, len(values), lanes, np.empty(kernels.DISTINCT, np.uint64))
    return lanes


@pytest.mark.parametrize("count", [0, 1, 2, 3, 20, 300])
@pytest.mark.parametrize("k", [1, 7, 64])
def test_sketch_set_sizes_equal_twin(naive, count, k):
    elements = [naive.fmix(i + 1) for i in range(count)]
    assert run_sketch(elements, k).tolist() == naive.sketch(set(elements), k)


def test_sketch_repeats_do_not_matter(naive):
    few = [naive.fmix(i) for i in range(12)]  # fmix(0) is 0, the mark of an empty slot
    assert run_sketch(few * 500, 256).tolist() == run_sketch(few, 256).tolist()
    many = [naive.fmix(i) for i in range(5000)]  # more than the table of distinct shingles takes
    big = 4 * 5000  # lanes: so many that later rounds are needed
    assert run_sketch(many * 2, big).tolist() == run_sketch(many, big).tolist()


def set_pairs(shared, own, count, seed):
    """`count` pairs of sets with `shared` common elements and `own` more on each side."""
    size = shared + 2 * own
    base = np.random.default_rng(seed).integers(0, 2**64, (count, size), np.uint64)
    return base[:, : shared + own], np.concatenate(
        (base[:, :shared], base[:, shared + own :]), axis=1
    )


@pytest.mark.parametrize(("shared", "own"), [(18, 2), (40, 10), (120, 80)])
def test_sketch_agreement_is_unbiased_and_sharper_than_independent(shared, own):
    pairs, k = 800, 256
    left, right = set_pairs(shared, own, pairs, seed=shared)
    agree = np.array(
        [(run_sketch(a, k) == run_sketch(b, k)).mean() for a, b in zip(left, right, strict=True)]
    )
    jaccard = shared / (shared + 2 * own)
    independent = jaccard * (1 - jaccard) / k
    assert abs(agree.mean() - jaccard) < 4 * (independent / pairs) ** 0.5
    assert agree.var() < 0.85 * independent  # published 0.5 to 0.66; a weak mixer gives 2 to 5


@pytest.mark.parametrize(("shared", "own"), [(18, 2), (17, 3), (40, 5), (36, 8)])
def test_sketch_bands_reach_the_theoretical_recall(shared, own):
    """18 of 20 common at n = 20 is where a one-multiply rehash loses 5 points."""
    pairs, bands, rows = 600, 32, 8
    left, right = set_pairs(shared, own, pairs, seed=own)
    hits = 0
    for a, b in zip(left, right, strict=True):
        same = (run_sketch(a, 256) == run_sketch(b, 256)).reshape(bands, rows)
        hits += bool(same.all(axis=1).any())
    expected = candidate_probability(shared / (shared + 2 * own), bands, rows)
    spread = (expected * (1 - expected) / pairs) ** 0.5
    assert hits / pairs > expected - 4 * spread - 0.005


EDGES = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.dictionaries(
            st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda e: e[0] < e[1]),
            st.integers(1, 6).flatmap(lambda e: st.tuples(st.integers(1, e), st.just(e))),
            max_size=30,
        ),
    )
)


@given(EDGES)
@settings(max_examples=200)
def test_components_and_cover_any_graph_equal_twin(naive, graph):
    size, edges = graph
    pairs = sorted(edges, key=lambda e: (e[1], e[0]))
    first = np.array([a for a, _ in pairs], np.uint32)
    second = np.array([b for _, b in pairs], np.uint32)
    shared = np.array([edges[e][0] for e in pairs], np.uint32)
    either = np.array([edges[e][1] for e in pairs], np.uint32)
    root, witness, proof = np.arange(size), np.empty(size, np.int64), np.zeros(size, np.int64)
    pair_kernels.unite(first, second, root)
    pair_kernels.settle(root)
    pair_kernels.cover(first, second, shared, either, witness, proof)
    assert root.tolist() == naive.components(size, pairs)
    expected = naive.cover(size, edges)
    assert witness.tolist() == [-1 if w is None else w for w in expected]
    for node, kept in enumerate(expected):
        if kept is not None:
            assert expected[kept] is None
            assert pairs[proof[node]] == (min(node, kept), max(node, kept))


@given(st.lists(st.sets(st.integers(0, 9)), min_size=1, max_size=5))
def test_intersections_any_sets_equal_twin(sets):
    values = np.array([x for s in sets for x in sorted(s)], np.uint64)
    ends = np.cumsum([len(s) for s in sets])
    starts = ends - [len(s) for s in sets]
    first, second = (a.ravel() for a in np.indices((len(sets), len(sets))))
    shared, either = np.zeros(len(first), np.int64), np.zeros(len(first), np.int64)
    pair_kernels.intersections(values, starts, ends, first, second, shared, either)
    assert shared.tolist() == [len(sets[a] & sets[b]) for a, b in zip(first, second, strict=True)]
    assert either.tolist() == [len(sets[a] | sets[b]) for a, b in zip(first, second, strict=True)]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(6, 11)), min_size=1, max_size=30),
    st.lists(st.integers(0, 50), min_size=12, max_size=12),
    st.integers(1, 120),
)
def test_chunk_ends_any_pairs_stay_within_budget(pairs, sizes, budget):
    first = np.array([a for a, _ in pairs], np.int64)
    second = np.array([b for _, b in pairs], np.int64)
    ends = np.empty(len(pairs), np.int64)
    chunks = pair_kernels.chunk_ends(first, second, np.array(sizes, np.int64), budget, ends)
    begin = 0
    for end in ends[:chunks].tolist():
        held = {node for pair in pairs[begin:end] for node in pair}
        assert end > begin
        assert (
            sum(sizes[node] for node in held) <= budget
            or len(held) == 2
            or not sum(sizes[node] for pair in pairs[begin : end - 1] for node in pair)
        )
        begin = end
    assert begin == len(pairs)


@given(
    st.lists(st.integers(0, 2**64 - 1), max_size=60),
    st.integers(0, 50),
    st.integers(0, 2**64 - 1),
    st.randoms(use_true_random=False),
)
@example([0, 2**64 - 1], 40, 2**64 - 1, random.Random(1))
def test_find_keys_any_keys_and_guesses_equal_binary_search(some, repeats, hot, draw):
    keys = np.sort(np.array([*some, *[hot] * repeats], np.uint64))
    near = [x + by for x in (hot, *some[:20]) for by in (-1, 0, 1) if 0 <= x + by < 2**64]
    wanted = np.array([0, 2**64 - 1, *near], np.uint64)
    around = np.array([draw.randrange(-3, len(keys) + 3) for _ in wanted], np.int64)
    low, high = np.zeros((2, len(wanted)), np.int64)
    pair_kernels.find_keys(keys, wanted, around, low, high)
    assert low.tolist() == np.searchsorted(keys, wanted).tolist()
    assert high.tolist() == np.searchsorted(keys, wanted, side="right").tolist()


def test_jaccard_edges_of_twin_counts_a_known_pair(naive):
    edges = naive.jaccard_edges([b"a b c d e f", b"A, b. c d e g", b"x"], Fraction(1, 3))
    assert edges == {(0, 1): (1, 3)}
