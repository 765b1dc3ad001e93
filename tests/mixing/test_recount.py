"""Tokens recounted around edits: exactly those of the whole texts, under every known split."""

# ruff: noqa: RUF001  (characters that look like others are the point)
from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
import tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gristmill.documents.edits import Edits, apply_edits, pick
from gristmill.mixing import encoder as module
from gristmill.mixing import recount
from gristmill.mixing.encoder import OWN, load_encoder
from gristmill.mixing.pieces import CUT, GPT2, SPLITS
from gristmill.mixing.recount import around, token_deltas

ENCODER = load_encoder()
FULL = json.loads(OWN.read_bytes())
FILLS = (b"", b"[X]", b" ", "é 漢".encode())
WORDS = """
word Zoë it's 'll we'LL 1 23 4,5.6 - // ] ) 漢字 。 ， ка ก ี e\u0301 \u2028 \u00a0 👍🏽 x
""".split()  # noqa: SIM905
BLANKS = [" ", " ", " ", "  ", "\n", "\n\n", "\r\n", " \n ", "\t", "\u00a0", "\u3000", ""]
TEXT = st.lists(st.sampled_from(WORDS) | st.sampled_from(BLANKS), max_size=40).map("".join)
ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


def encoders():
    """Our vocabulary under each split, through `tokenizers`, and the fast engine."""
    for pattern in SPLITS:
        if pattern == GPT2:
            split = {"type": "ByteLevel", "use_regex": True, "add_prefix_space": False}
            split |= {"trim_offsets": True}
        else:
            split = json.loads(json.dumps(FULL["pre_tokenizer"]))
            split["pretokenizers"][0]["pattern"]["Regex"] = pattern
        made = tokenizers.Tokenizer.from_str(
            json.dumps(FULL | {"added_tokens": [], "pre_tokenizer": split})
        )
        ids = lambda text, made=made: made.encode(text, add_special_tokens=False).ids  # noqa: E731
        yield replace(ENCODER, flat=partial(module.rows_flat, ids))
    yield ENCODER


ENCODERS = list(encoders())


@st.composite
def edited(draw):
    """Texts, some null, and edits of three reasons on character boundaries; insertions too."""
    texts = draw(st.lists(st.one_of(st.none(), TEXT, ANY), min_size=1, max_size=4))
    items = []
    for row, text in enumerate(texts):
        raw = (text or "").encode()
        starts = [i for i in range(len(raw) + 1) if i == len(raw) or raw[i] & 0xC0 != 0x80]
        at = sorted(draw(st.lists(st.sampled_from(starts), max_size=8)))
        for a, b in zip(at[::2], at[1::2], strict=False):
            items.append((row, a, b - a, draw(st.integers(0, 2)), draw(st.integers(0, 3))))
    return texts, items


def edits_of(items):
    rows, starts, lengths, reasons, fills = (
        np.array([item[i] for item in items], np.int64) for i in range(5)
    )
    return Edits(
        rows=rows,
        starts=starts,
        lengths=lengths,
        reasons=reasons.astype(np.uint8),
        reason_names=("a", "b", "c"),
        replacements=FILLS,
        replacement=fills.astype(np.uint8),
    )


def column_of(texts):
    return pa.array(["skipped ", *texts], pa.large_string())[1:]


def counted_whole(encoder, column, edits):
    """Deltas by counting every text whole, after every reason."""
    counts = [encoder.count(column)]
    for reason in range(3):
        mended = apply_edits(column, pick(edits, edits.reasons <= reason))
        counts.append(encoder.count(mended))
    return np.diff(np.stack(counts), axis=0).T


@settings(max_examples=400)
@given(edited())
@example((["one two three four five"], [(0, 4, 3, 0, 0), (0, 13, 1, 1, 0)]))
@example((["a b", "a  b c"], [(0, 1, 0, 2, 2), (1, 2, 0, 0, 2), (1, 4, 0, 0, 1)]))
@example((["x it's we'll 12 it's"], [(0, 2, 4, 0, 0), (0, 12, 0, 1, 3)]))
def test_deltas_of_any_edits_equal_whole_recounts_under_every_split(case):
    texts, items = case
    column, edits = column_of(texts), edits_of(items)
    for encoder in ENCODERS:
        wanted = counted_whole(encoder, column, edits)
        assert np.array_equal(token_deltas(encoder, column, edits), wanted)


def test_deltas_of_real_cuts_count_little_text():
    text = "".join(f"Line {n}: it's {n * 7919} words, e.g. naïve 漢字。\n" for n in range(300))
    raw = text.encode()
    ends = [i + 1 for i, b in enumerate(raw) if b == 0x0A]
    items = [(0, ends[k], ends[k + 1] - ends[k], k % 3, 0) for k in range(0, 290, 20)]
    column, edits = column_of([text]), edits_of(items)
    near, _ = around(column, edits)
    assert len(near[0].as_py()) < len(text) / 6
    assert np.array_equal(
        token_deltas(ENCODER, column, edits), counted_whole(ENCODER, column, edits)
    )


def test_deltas_where_no_place_is_proven_count_whole_texts():
    column, edits = column_of(["one two three"]), edits_of([(0, 3, 4, 0, 0)])
    seen = []

    def flat(texts):
        seen.extend(texts)
        return ENCODER.flat(texts)

    unknown = replace(ENCODER, flat=flat, cuts=False)
    assert token_deltas(unknown, column, edits).tolist() == [[-1, 0, 0]]
    assert seen == ["one two three", "one three"]


@pytest.mark.parametrize(("longest", "whole"), [(8, True), (11, True), (12, False)])
def test_around_texts_that_an_encoder_cuts_itself_stay_whole(longest, whole):
    """9 bytes of text and 3 that come in: 12 are more than `longest` allows for."""
    column, edits = column_of(["a b c d e"]), edits_of([(0, 4, 1, 0, 1)])
    text, _ = around(column, edits, longest=longest)
    assert text.to_pylist() == (["a b c d e"] if whole else [" c d"])


@given(edited(), st.integers(0, 80))
@settings(max_examples=300)
def test_around_any_edits_equals_twin_and_cuts_only_at_proven_places(naive, case, longest):
    texts, items = case
    column, edits = column_of(texts), edits_of(items)
    text, moved = around(column, edits, longest=longest)
    wanted, starts = [], []
    for row in sorted({item[0] for item in items}):
        raw = (texts[row] or "").encode()
        mine = [item for item in items if item[0] == row]
        big = len(raw) + sum(len(FILLS[item[4]]) for item in mine) > longest
        safe = set() if big else {m.end() for m in CUT.finditer(raw)}
        part, places = naive("naive_mixing").stretches(raw, [i[1:3] for i in mine], safe)
        wanted.append(part)
        starts += places
    assert text.cast(pa.large_binary()).to_pylist() == wanted
    assert moved.starts.tolist() == starts


def test_deltas_without_edits_are_none():
    assert token_deltas(ENCODER, column_of(["a", None]), edits_of([])).tolist() == [[0] * 3] * 2
    assert recount.PIECE == module.PIECE
