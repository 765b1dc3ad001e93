"""Repeated paragraphs: what is cut, from whom, and that nothing else moves."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.dedup import RepeatedParagraphs
from gristmill.dedup._kernels import own_bytes
from gristmill.dedup._kernels_pairs import paragraph_ends
from gristmill.documents.edits import apply_edits
from gristmill.documents.errors import UsageError
from gristmill.documents.stage import checked_measure
from gristmill.documents.text import text_view

NOTICE = "We use cookies to make this site work, and to see how it is used."
PIECES = st.sampled_from([b"a", b"b", b"\n", b"\n", b" ", b"\t", b"\r", "é".encode()])
TEXTS = st.lists(PIECES, max_size=30).map(b"".join)


@given(
    st.lists(st.one_of(st.none(), TEXTS), max_size=5), st.integers(0, 2), st.sampled_from([1, 2])
)
def test_paragraph_ends_arbitrary_texts_equal_twin(naive, values, cut, blank):
    view = text_view(pa.array(values, pa.large_binary())[cut:])
    size = int(view.offsets[-1] - view.offsets[0]) if view.rows else 0
    ends, counts = np.empty(size + view.rows, np.int64), np.zeros(view.rows, np.int64)
    total = paragraph_ends(view.data, view.offsets, blank, ends, counts)
    twin = [naive.paragraphs(value or b"", blank) for value in values[cut:]]
    assert counts.tolist() == [len(parts) for parts in twin]
    edges = [int(view.offsets[0]) if view.rows else 0, *ends[:total].tolist()]
    found = [view.data[a:b].tobytes() for a, b in pairwise(edges)]
    assert found == [part for parts in twin for part in parts]
    own = np.empty(total, np.int64)
    own_bytes(view.data, np.array(edges, np.int64), own)
    assert own.tolist() == [naive.own_bytes(part) for part in found]


def stripped(corpus, docs, stage, **kwargs):
    """Texts after the stage, through `cut` as the pass calls it."""
    found = corpus(docs).run(stage, **kwargs)
    assert not found["code"].to_numpy().any()
    out = []
    for i, doc in enumerate(docs):
        batch = pa.record_batch({"text": pa.array([doc.text], pa.large_string())})
        key = i.to_bytes(16, "big")
        mine = found.filter(pa.array([k == key for k in found["id"].to_pylist()], pa.bool_()))
        rows = np.arange(mine.num_rows)
        measured = stage.cut(batch, mine, rows)
        measured.edits.check(batch.column("text"), stage.name)
        assert (measured.scores["paragraphs_cut"] > 0).tolist() == [mine.num_rows > 0]
        out.append(apply_edits(batch.column("text"), measured.edits)[0].as_py())
    return out


@pytest.mark.parametrize("at_most", [1, 2, 5])
@pytest.mark.parametrize("partitions", [1, 3])
def test_paragraph_stays_in_the_first_documents_alone(corpus, doc, at_most, partitions):
    docs = [doc(text=f"Story {i}.\n\n{NOTICE}\n\nEnd of {i}.", quality=9 - i) for i in range(5)]
    found = stripped(corpus, docs, RepeatedParagraphs(at_most=at_most), partitions=partitions)
    for i, text in enumerate(found):
        expected = docs[i].text if i < at_most else f"Story {i}.\n\nEnd of {i}."
        assert text == expected


def test_paragraphs_equal_but_for_white_space_are_one(corpus, doc):
    wrapped = NOTICE.replace(" to ", "\n  to ")
    docs = [doc(text=f"one\n\n{NOTICE}\n\nx", quality=1), doc(text=f"two\n \n{wrapped}\r\n\r\nx")]
    assert stripped(corpus, docs, RepeatedParagraphs()) == [docs[0].text, "two\n \nx"]


def test_lines_are_cut_where_lines_are_asked_for(corpus, doc):
    docs = [doc(text=f"a\n{NOTICE}\nb", quality=1), doc(text=f"c\n{NOTICE}\n{NOTICE}")]
    stage = RepeatedParagraphs(unit="line")
    assert stripped(corpus, docs, stage) == [docs[0].text, "c\n"]
    assert stripped(corpus, docs, RepeatedParagraphs()) == [d.text for d in docs]


def test_repeats_within_a_document_and_short_paragraphs_stay(corpus, doc):
    docs = [doc(text=f"{NOTICE}\n\n{NOTICE}"), doc(text="Yes.\n\nNo."), doc(text="Yes.\n\nMaybe.")]
    assert corpus(docs).run(RepeatedParagraphs()).num_rows == 0
    cut = stripped(corpus, docs, RepeatedParagraphs(min_bytes=1))
    assert cut == [docs[0].text, "No.", docs[2].text]  # the longer document comes first


def test_scope_keeps_paragraphs_of_two_crawls_apart(corpus, doc):
    docs = [doc(text=f"{i}\n\n{NOTICE}", dump=dump) for i, dump in enumerate("aabb")]
    found = stripped(corpus, docs, RepeatedParagraphs(scope="crawl"))
    assert [NOTICE in text for text in found] == [True, False, True, False]
    assert sum(NOTICE in t for t in stripped(corpus, docs, RepeatedParagraphs())) == 1


@pytest.mark.parametrize(
    "place", ["{}\n\nOwn {}.", "Own {1}.\n\n{0}", "\n\n\n {}\n\n\n\n\nOwn {}."]
)
@pytest.mark.parametrize(("min_bytes", "cut"), [(19, True), (20, False)])
def test_whether_a_short_paragraph_is_cut_hangs_on_its_own_bytes(
    corpus, doc, place, min_bytes, cut
):
    short = "Share with a friend"  # 19 bytes
    docs = [doc(text=f"{short}\n\nFirst.", quality=1), doc(text=place.format(short, "text"))]
    found = stripped(corpus, docs, RepeatedParagraphs(min_bytes=min_bytes))
    assert found[0] == docs[0].text
    assert (short not in found[1]) is cut


@pytest.mark.parametrize(
    ("text", "emptied"),
    [(NOTICE, 1), (f"\n\n{NOTICE}\n \n{NOTICE}\n\n", 1), (f"{NOTICE}\n\nOwn.", 0)],
)
def test_document_of_which_nothing_is_left_is_dropped(corpus, doc, text, emptied):
    docs = [doc(text=f"{NOTICE}\n\nFirst.", quality=1), doc(text=text)]
    found = corpus(docs).run(RepeatedParagraphs())
    batch = pa.record_batch({"text": pa.array([d.text for d in docs], pa.large_string())})
    measured = RepeatedParagraphs().cut(batch, found, np.array([1]))
    assert measured.scores["decision"].tolist() == [0, emptied]
    assert RepeatedParagraphs.reasons[1] == "emptied"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"unit": "lines"}, "unknown unit 'lines'; did you mean 'line'"),
        ({"at_most": 0}, "at_most: found 0, expected a whole number from 1"),
        ({"scope": "all"}, "unknown scope 'all'"),
    ],
)
def test_wrong_settings_are_refused(fields, message):
    with pytest.raises(UsageError, match=message):
        RepeatedParagraphs(**fields)


def test_survey_of_no_rows_keeps_the_contract():
    batch = pa.record_batch({"text": pa.array([], pa.large_string())})
    assert checked_measure(RepeatedParagraphs().survey, batch).scores["scope"].dtype == np.uint64
