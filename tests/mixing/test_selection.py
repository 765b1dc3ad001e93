from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.documents.errors import UsageError
from gristmill.mixing import MixSpec
from gristmill.mixing.selection import DIMENSIONS, Catalogue, length_bucket

ATTRIBUTES = {
    "quality.bucket": pa.int8(),
    "quality.format": pa.string(),
    "quality.edu_score": pa.float32(),
    "templates.exemplar": pa.bool_(),
    "cluster_size": pa.uint32(),
    "never.measured": pa.null(),
}
DOCUMENTS = [
    {"tokens": 1 + 37 * i % 200, "source": "ab"[i % 2], "quality.bucket": [None, -1, 3, 18][i % 4],
     "quality.format": [None, "article", "forum"][i % 3], "cluster_size": 1 + i % 5,
     "quality.edu_score": [None, 0.1, 0.7, 2.5][i // 2 % 4],
     "templates.exemplar": [True, False, None][i % 3]}
    for i in range(60)
]  # fmt: skip


def table(documents=DOCUMENTS):
    kinds = [("shard", pa.string()), ("doc", pa.uint32()), ("id", pa.binary(16))]
    kinds += [("tokens", pa.uint32())]
    kinds += [(n, pa.string()) for n in ("source", "language", "dump", "license")]
    rows = [{"shard": "s", "doc": i, "id": bytes(16), **d} for i, d in enumerate(documents)]
    return pa.Table.from_pylist(rows, pa.schema([*kinds, *ATTRIBUTES.items()]))


def select(predicate, documents=DOCUMENTS):
    spec = MixSpec.parse(
        {
            "slices": {"x": predicate},
            "stages": [{"name": "s", "tokens": 8, "sequence_length": 8, "weights": {"x": 1}}],
        }
    )
    catalogue = Catalogue(table(documents), spec.attributes)
    return catalogue, spec.slices["x"], catalogue.select(spec.slices["x"]).tolist()


@pytest.mark.parametrize(
    ("predicate", "holds"),
    [
        ({"quality.bucket": {"min": 3}}, lambda d: (d["quality.bucket"] or -9) >= 3),
        ({"quality.bucket": {"min": 2.5, "max": 17.9}}, lambda d: d["quality.bucket"] == 3),
        ({"quality.bucket": [-1, 18]}, lambda d: d["quality.bucket"] in (-1, 18)),
        ({"quality.bucket": None}, lambda d: d["quality.bucket"] is None),
        ({"quality.format": ["forum", None]}, lambda d: d["quality.format"] in ("forum", None)),
        ({"cluster_size": {"max": 2}}, lambda d: d["cluster_size"] <= 2),
        ({"length_bucket": {"min": 7}}, lambda d: d["tokens"] > 64),
        ({"length_bucket": [0, 1]}, lambda d: d["tokens"] <= 2),
        ({"templates.exemplar": True}, lambda d: d["templates.exemplar"] is True),
        ({"never.measured": [None]}, lambda d: True),
        # float32(0.7) is 0.69999998..., which is below 0.7, and the double that it is, is above
        ({"quality.edu_score": {"min": 0.7}}, lambda d: d["quality.edu_score"] == 2.5),
        ({"quality.edu_score": {"min": 0.69999}}, lambda d: (d["quality.edu_score"] or 0) >= 0.7),
        (
            {"source": "a", "quality.bucket": {"max": 3}, "max_tokens": 100},
            lambda d: (
                d["source"] == "a"
                and d["quality.bucket"] is not None
                and d["quality.bucket"] <= 3
                and d["tokens"] <= 100
            ),
        ),
    ],
)
def test_select_by_attributes_takes_what_matches(predicate, holds):
    found = select(predicate)[2]
    assert found == [i for i, d in enumerate(DOCUMENTS) if holds(d)]
    assert found


@given(
    values=st.lists(st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1)), min_size=1),
    low=st.one_of(st.none(), st.floats(-1e10, 1e10), st.integers(-(2**40), 2**40)),
    high=st.integers(-(2**40), 2**40),
)
def test_select_range_of_whole_numbers_is_exact(values, low, high):
    if low is not None and low > high:
        return
    documents = [{"tokens": 2, "cluster_size": v} for v in values]
    given_ = table([{**d, "cluster_size": 1} for d in documents])
    at = given_.column_names.index("cluster_size")
    given_ = given_.set_column(at, "cluster_size", pa.array(values, pa.int64()))
    spec = MixSpec.parse(
        {
            "slices": {"x": {"cluster_size": {"min": low, "max": high}}},
            "stages": [{"name": "s", "tokens": 8, "sequence_length": 8, "weights": {"x": 1}}],
        }
    )
    found = Catalogue(given_, spec.attributes).select(spec.slices["x"]).tolist()
    assert found == [
        i for i, v in enumerate(values) if v is not None and (low is None or v >= low) and v <= high
    ]


@pytest.mark.parametrize(
    ("predicate", "words"),
    [
        ({"quality.bucket": {}}, "x.quality.bucket: found {}; expected min, max or both"),
        ({"quality.bucket": {"mn": 1}}, "x.quality.bucket.mn: unknown field; did you mean 'min'"),
        ({"quality.bucket": {"min": "a"}}, "x.quality.bucket.min: found 'a'; expected a number"),
        ({"quality.bucket": {"min": 2, "max": 1}}, "x.quality.bucket: max 1 is below min 2"),
        ({"quality.bucket": []}, "x.quality.bucket: found []; expected a list of names or numbers"),
        ({"quality.bucket": ["high"]}, "quality.bucket: found 'high'; documents have numbers"),
        ({"quality.format": [3]}, "quality.format: found 3; documents have one of article, forum"),
        ({"quality.format": {"min": 3}}, "quality.format is one of article, forum; it has no min"),
        (
            {"cluster_sise": {"max": 2}},
            "x.cluster_sise: unknown field; did you mean 'cluster_size'",
        ),
    ],
)
def test_select_wrong_attribute_is_named(predicate, words):
    with pytest.raises(UsageError, match=re.escape(words)):
        select(predicate)


def test_why_empty_says_what_documents_have():
    catalogue, spec, found = select({"quality.bucket": {"min": 19}})
    assert found == []
    assert catalogue.why_empty(spec) == "documents have quality.bucket -1 to 18"
    catalogue, spec, found = select({"quality.format": ["artcle"]})
    assert found == []
    assert catalogue.why_empty(spec) == (
        "no document has quality.format 'artcle'; did you mean 'article'?"
    )


def test_length_bucket_is_exact_at_its_edges():
    tokens = [1, 2, 3, 4, 5, 2**31, 2**31 + 1, 2**32 - 1]
    assert length_bucket(np.array(tokens)).tolist() == [0, 1, 2, 2, 3, 31, 32, 32]


@pytest.mark.parametrize("limit", [24, 0])
def test_cells_lead_back_to_each_documents_values(limit, monkeypatch):
    from gristmill.mixing import selection

    numbered = selection._numbered
    if not limit:  # the way of many distinct values
        monkeypatch.setattr(selection, "_numbered", lambda key, size: numbered(key, 1 << 30))
    catalogue = Catalogue(table())
    arrays, names = catalogue.arrays(), catalogue.dimensions()
    assert list(names) == list(DIMENSIONS)
    for i, document in enumerate(DOCUMENTS):
        codes = arrays["cells"][arrays["cell"][i]].tolist()
        values = {n: names[n][c] for n, c in zip(names, codes, strict=True)}
        assert values == {
            "source": document["source"],
            "language": None,
            "dump": None,
            "license": None,
            "page_format": document["quality.format"],
            "quality_bucket": document["quality.bucket"],
            "length_bucket": int(length_bucket(np.array([document["tokens"]]))[0]),
        }
    assert len(np.unique(arrays["cells"], axis=0)) == len(arrays["cells"])
