"""What `decontaminate` finds equals what plain Python finds."""

# ruff: noqa: RUF001 - full-width marks are those of the script

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.documents.stage import checked_measure
from gristmill.filters import Decontaminate, _kernels_items
from gristmill.filters._characters import table
from gristmill.filters._items import load_index


def batch_of(texts) -> pa.RecordBatch:
    return pa.record_batch({"text": pa.array(texts, pa.large_string())})


FEW = ("alpha", "beta", "gamma", "Delta", "é", "42", "字", "ไ", "e\u0301", "x_y", "-", "\xad")
FEW += ("al\xadpha", "\xad字\xad", "d'é", "al'pha'", "'42\u2019\xad字", "gam\u2019\u0301")
FEW += (
    "al-\npha",
    "be\u2010\r\n  ta",
    "gam\xad\nma",
    "x-\nY",
    "x-\n字",
    "-\n",
    "d&#39;&eacute;",
    "&quot;",
    "a&#x2019;&#98;c",
)
FEW += ("&#146;s", "&;", "&amp", "&#xD800;", "&apos;é", "字&#23383;", "&AMP;", "x-\n&eacute;")
FEW += (
    "Ｄｅｌｔａ＇",
    "＇ｂeta",
    "٤٢",
    "x+1",
    "x -\t1",
    "x &lt;1",
    "x>1",
    "4.20",
    "4.2",
    "1,000",
    "1000",
)
few_words = st.lists(st.sampled_from(FEW), max_size=40).map(" ".join)
choices = st.lists(st.lists(st.sampled_from(FEW), max_size=3).map(" ".join), max_size=5)


@settings(max_examples=150)
@given(
    st.lists(few_words, min_size=1, max_size=8),
    st.lists(choices, max_size=5),
    st.lists(few_words, max_size=3),
    st.integers(2, 4),
    st.data(),
)
def test_any_items_and_texts_equal_twin(naive, tmp_path_factory, items, added, more, n, data):
    twin = naive("naive_decontaminate")
    items = [item for item in items if item.strip()] or ["alpha"]
    path = tmp_path_factory.mktemp("twin") / "items.jsonl"
    added = (added + [[]] * len(items))[: len(items)]
    asked = zip(items, added, strict=True)
    path.write_text("".join(json.dumps({"question": q, "choices": c}) + "\n" for q, c in asked))
    options = {"ngram": n, "min_words": 4, "full_to": 6, "long_from": 20, "share": 0.4}
    near = data.draw(st.sampled_from(["spelling", "any"]))
    stage = Decontaminate(files=path, near=near, **options)
    index = load_index((path,), (), (n, 4, 6, 20), "x")
    every = [[q, *filter(None, c)] for q, c in zip(items, added, strict=True)]
    known = twin.index(every, n, 4, 6, 20, table())
    lines = [int(item.name.removeprefix("line ")) - 1 for item in index.items]
    assert lines == [place for place, *_ in known]
    assert index.words.tolist() == [words for _, words, *_ in known]
    assert index.sizes.tolist() == [size for _, _, size, *_ in known]
    plants = data.draw(st.lists(st.sampled_from([*items, *more]), max_size=5)) if more else items
    laid = [data.draw(st.permutations(i[1:])) for i in every]
    label = data.draw(st.sampled_from(["", "A. ", "x x x x ", "\n1) "]))
    quiz = "\n".join(label.join([i[0], *c]) for i, c in zip(every, laid, strict=True))
    texts = [None, " ".join(plants), quiz, *more]
    batch = batch_of(texts)
    low = data.draw(st.integers(0, 2))
    measured = checked_measure(stage, batch.slice(low))
    notes = dict(zip(measured.evidence.rows.tolist(), measured.evidence.notes, strict=True))
    for row, text in enumerate(texts[low:]):
        wanted = twin.find(
            text or "", known, n, lambda w: int(stage.needed(w)), table(), near != "any"
        )
        told = json.loads(notes[row])["items"] if row in notes else []
        assert measured.scores["items"][row] == len(wanted)
        for note in told:
            share, own, start, stop = wanted[int(note["item"].removeprefix("line ")) - 1]
            assert note.get("own_grams", note.get("differs")).split()[0] == str(own)
            assert (note["share"], note["bytes"]) == (share / 1000, [start, stop])


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 60)), min_size=1, max_size=60),
    st.integers(300, 1000),
    st.integers(2, 20),
)
def test_stretches_equal_twin(naive, steps, need, size):
    weights = [(k + 1, k % 2) for k in range(6)]
    places = np.cumsum([1 + step for _, step in steps])
    hits = [
        (g, int(at), int(at) * 3, int(at) * 3 + 2) for (g, _), at in zip(steps, places, strict=True)
    ]
    local, tokens, starts, stops = (np.array(v, np.int64) for v in zip(*hits, strict=True))
    told = (np.zeros(len(hits), np.int32), local.astype(np.int32), tokens, starts, stops)
    weight, own = (np.array(v, np.int64) for v in zip(*weights, strict=True))
    one = (np.array([v], np.int64) for v in (weight.sum(), own.sum()))
    about = (np.array([size]), np.array([need]), np.array([0, 6]), weight, own, *one)
    out, groups = np.zeros((len(hits), 3), np.int64), np.array([[0, len(hits)]])
    count = _kernels_items.stretches(
        groups, told, about, np.zeros(6, np.int64), np.zeros(6, np.int64), out
    )
    wanted = naive("naive_decontaminate").stretches(hits, weights, need, size)
    assert [tuple(span) for span in out[:count, 1:].tolist()] == wanted
