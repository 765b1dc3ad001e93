"""Every kernel against its plain-Python twin, on arbitrary text and on bytes that are not UTF-8."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gristmill.documents.stage import checked_measure
from gristmill.documents.text import text_view
from gristmill.filters import C4, FineWebQuality, GopherQuality, GopherRepetition, _scan
from gristmill.filters.gopher_quality import BULLETS, stop_lists

# Text with what the rules look for: few words, so that they repeat, and every kind of mark.
# ruff: noqa: RUF001, SIM905 - look-alike characters are what is tested; split() keeps it readable
PIECES = (
    *"a the Der und be x1 3.14 1,000 don't l’eau naïve Привет".split(),
    *"你 好 あ ไทย ภาษา ក្ម क्षेत्र".split(),
    *"internationalisation wordlonger sixteenthletters seventeenletters2".split(),
    *'字字 。 ！ . .. ... … ! ? " ” ) ] { } # - • | [1] []'.split(),
    *"[edit] [citation [x] needed] lorem ipsum JavaScript cookie policy privacy".split(),
    *(
        "terms of use",
        "citation needed]",
        "uses cookies",
        "lorem ipsum",
        "\n",
        "\n\n",
        " \n",
        "\r\n",
        " ",
        "\t",
    ),
    *("\u00a0", "\u3000", "\u2028", "\x00", "e\u0301", "\u0301", "\u200d", "Ⅷ", "٣٫٤", "ª"),
)
MARKED = (*"aB9éЖ字.,'’-–—…:;/@()[]+%$€°™s m\ufffd\u0301\n", "n't", "'ll", "km", "..", "://")
SPACES = re.compile(
    "[\t\n\v\f\r \x1c-\x1f\x85\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
)
words = st.lists(st.sampled_from(PIECES), max_size=60)
texts = st.one_of(words.map(" ".join), words.map("".join), st.text(max_size=80))
long_texts = st.builds(
    lambda a, n, b: (a * n + b)[:6000], st.one_of(words.map(" ".join)), st.integers(1, 6), texts
)
damaged = st.one_of(
    st.binary(max_size=80),
    st.lists(
        st.sampled_from([p.encode() for p in PIECES] + [b"\xff", b"\xe4", b"\xed\xa0\x80"])
    ).map(b"".join),
)
BULLET_CHARS = "".join(map(chr, BULLETS))


def batch_of(values, kind=None) -> pa.RecordBatch:
    kind = kind or (pa.large_binary() if isinstance(values[0], bytes) else pa.large_string())
    return pa.record_batch({"text": pa.array(values, kind)})


def row(measured, at: int = 0) -> dict[str, int]:
    return {name: int(values[at]) for name, values in measured.scores.items()}


def raw(text) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


def cut(measured) -> list[tuple[int, int, str]]:
    e = measured.edits
    reasons = [e.reason_names[r] for r in e.reasons]
    return list(zip(e.starts.tolist(), e.lengths.tolist(), reasons, strict=True))


@given(st.one_of(long_texts, damaged))
@example("well.known a'b 'a' 1.2.3 a1,2 ...a… ....... . . .\n-x\n •\n|\n# ...")
@example("a..\nb...\nc. . .\nd…  \ne .... \nf.…. \ng .. .")
@example("the be to of and that have with und der die")
@example("abcdefgh abcdefghi 12345678 the\u0301")
def test_quality_any_text_equals_twin(naive, text) -> None:
    twin = naive("naive_filters")
    assert row(GopherQuality().measure(batch_of([text]))) == twin.quality(
        raw(text), stop_lists(), BULLET_CHARS
    )


@given(st.one_of(long_texts, damaged))
@example("a b " * 40)
@example("\x00\x00\n\x00")
@example("a\n\na\n\na b\na\n \na b\na")
@example("你好吗我很好" * 9)
def test_repetition_any_text_equals_twin(naive, text) -> None:
    twin = naive("naive_filters")
    assert row(GopherRepetition().measure(batch_of([text]))) == twin.repetition(raw(text))


@given(st.one_of(long_texts, damaged), st.integers(0, 12))
@example("(he said.)\n[he said?]\nhe said).\nhe said. x", 5)
@example("he said.”\nhe said. \n\n  he said.\r\nno", 5)
def test_fineweb_any_text_equals_twin(naive, text, short) -> None:
    twin = naive("naive_filters")
    stage = FineWebQuality(short_line=short)
    assert row(stage.measure(batch_of([text]))) == twin.fineweb(raw(text), short)


@given(
    st.one_of(long_texts, damaged),
    st.builds(
        C4,
        max_word_chars=st.sampled_from([8, 30]),
        terminal_punctuation=st.booleans(),
        min_line_words=st.integers(0, 3),
        citations=st.booleans(),
    ),
)
@example("one two three. Four [12] five six!\n\nx\n\nuse Cookies now please\n", C4())
@example("a\n\n\nb\n \none two three\n\nx\n\n", C4())
def test_c4_any_text_equals_twin(naive, text, stage) -> None:
    counts, edits = naive("naive_filters").c4(raw(text), stage)
    batch = batch_of([text])
    utf8 = isinstance(text, str)  # the contract speaks of UTF-8; damaged bytes must only not crash
    measured = checked_measure(stage, batch) if utf8 else stage.measure(batch)
    assert row(measured) == counts
    assert cut(measured) == edits


STAGES = (GopherQuality(), GopherRepetition(), FineWebQuality(), C4())


@pytest.mark.parametrize("stage", STAGES, ids=lambda s: s.name)
@given(st.lists(st.one_of(st.none(), texts), max_size=6), st.data())
def test_batch_slices_and_nulls_measured_row_by_row(stage, values, data) -> None:
    whole = batch_of([None, *values, None], pa.large_string())
    low = data.draw(st.integers(0, whole.num_rows))
    part = whole.slice(low, data.draw(st.integers(0, whole.num_rows - low)))
    measured = checked_measure(stage, part)
    wanted = ([None, *values, None])[low : low + part.num_rows]
    for at, text in enumerate(wanted):
        alone = stage.measure(batch_of([text or ""]))
        assert row(measured, at) == row(alone)
        if alone.edits is not None:
            own = measured.edits.rows == at
            assert np.array_equal(measured.edits.starts[own], alone.edits.starts)
            assert np.array_equal(measured.edits.lengths[own], alone.edits.lengths)
            assert np.array_equal(measured.edits.reasons[own], alone.edits.reasons)
    assert stage.verdict(measured.scores).shape == (part.num_rows,)


def cut_by_kernel(text: str, citations: bool) -> list[str]:
    """Tokens of a text by the first bytes that the kernel marks."""
    data = text.encode()
    found: list[str] = []
    for scan, _ in _scan.scans(text_view(batch_of([text]).column("text"))):
        _scan.cut(scan, citations)
        bits = np.flatnonzero(np.unpackbits(scan.planes[1].view(np.uint8), bitorder="little"))
        ends = [*bits[1:], len(data)]
        for start, end in zip(bits, ends, strict=False):  # no bits: no tokens
            piece = data[start:end].decode()
            found.append(next(iter(SPACES.split(piece)), ""))
    return found


@given(st.one_of(long_texts, st.lists(st.sampled_from(MARKED)).map("".join)))
@example("don't I'll x's 10km 3.5kg. U.S. e.g. (see fig.1), and/or well-known state--of a...b")
@example("see http://www.example.com/a?b=c, or mail me@example.org. A.B c.D :) ): $5 5€ 100%")
def test_tokens_any_text_equals_twin(naive, text) -> None:
    assert cut_by_kernel(text, citations=False) == naive("naive_tokens").tokens(text)
