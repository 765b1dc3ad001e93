"""For each rule a text that just passes and one that just fails, made by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest

from gristmill.documents.edits import apply_edits
from gristmill.documents.errors import UsageError
from gristmill.documents.stage import Stage, checked_measure, checked_verdict
from gristmill.filters import C4, STAGES, FineWebQuality, GopherQuality, GopherRepetition


def reason(stage: Stage, text: str) -> str:
    batch = pa.record_batch({"text": pa.array([text], pa.large_string())})
    scores = checked_measure(stage, batch).scores
    return stage.reasons[checked_verdict(stage, scores, 1)[0]]


def edited(stage: C4, text: str) -> str:
    batch = pa.record_batch({"text": pa.array([text], pa.large_string())})
    edits = checked_measure(stage, batch).edits
    assert edits is not None
    return apply_edits(batch.column("text"), edits)[0].as_py()


def distinct(n: int) -> list[str]:
    """`n` different words of five letters."""
    return ["w" + "".join("abcdefghij"[int(d)] for d in f"{i:04d}") for i in range(n)]


def lines_of(words: list[str], each: int, end: str = ".") -> str:
    rows = [words[i : i + each] for i in range(0, len(words), each)]
    return "\n".join(" ".join(r) + end for r in rows)


STOPS = ["the", "and"]
PROSE = [*STOPS, *distinct(48)]  # 50 words of 4.92 letters on average

QUALITY = [
    (" ".join(PROSE), "keep"),
    (" ".join(PROSE[:49]), "few_words"),
    (" ".join([*STOPS, *distinct(99_998)]), "keep"),
    (" ".join([*STOPS, *distinct(99_999)]), "many_words"),
    (" ".join(["the", "and"] + ["abc"] * 48), "keep"),  # a mean of 3
    (" ".join(["the", "and"] + ["abc"] * 47 + ["ab"]), "short_words"),
    (" ".join(["with", "that"] + ["a" * 10] * 36 + ["a" * 11] * 12), "keep"),  # 10 exactly
    (" ".join(["with", "that"] + ["a" * 10] * 35 + ["a" * 11] * 13), "long_words"),
    (" ".join(PROSE) + "#####", "keep"),  # 5 of 50 words
    (" ".join(PROSE) + "######", "hashes"),
    (" ".join(f"{w}..." if i < 5 else w for i, w in enumerate(PROSE)), "keep"),
    (" ".join(f"{w}…" if i < 6 else w for i, w in enumerate(PROSE)), "ellipses"),
    (
        "\n\n".join(
            ("- " if i < 9 else "") + " ".join(PROSE[5 * i : 5 * i + 5]) for i in range(10)
        ),
        "keep",
    ),
    ("\n\n".join("• " + " ".join(PROSE[5 * i : 5 * i + 5]) for i in range(10)), "bullet_lines"),
    ("\n".join(" ".join(PROSE[5 * i : 5 * i + 5]) + "..." * (i < 3) for i in range(10)), "keep"),
    (
        "\n".join(" ".join(PROSE[5 * i : 5 * i + 5]) + " …" * (i < 4) for i in range(10)),
        "ellipsis_lines",
    ),
    (" ".join([*PROSE[:40], *["1234"] * 10]), "keep"),  # 40 of 50 words hold a letter
    (" ".join([*PROSE[:40], *["1234"] * 10, "|"]), "few_alphabetic_words"),
    (" ".join(["the", *distinct(49)]), "few_stop_words"),
    (" ".join(["the", "the", *distinct(48)]), "few_stop_words"),  # different ones
    (" ".join(["The", "AND", *distinct(48)]), "keep"),
    (" ".join(["le", "et", *distinct(48)]), "keep"),
    (" ".join(["le", "auf", *distinct(48)]), "few_stop_words"),  # of one list
    ("слово " * 50, "keep"),  # no list for the script
    ("汉字" * 25, "keep"),  # a character is a word
    ("汉字" * 24 + "汉", "few_words"),
]


@pytest.mark.parametrize(
    ("text", "wanted"), QUALITY, ids=[f"{i}-{r}" for i, (_, r) in enumerate(QUALITY)]
)
def test_gopher_quality_at_threshold_judged(text: str, wanted: str) -> None:
    assert reason(GopherQuality(), text) == wanted


def test_gopher_quality_marks_counted_when_asked() -> None:
    passes = ", ".join(PROSE[:49]) + " " + PROSE[49]  # 50 words with letters, 48 commas
    assert reason(GopherQuality(), passes) == "keep"
    assert reason(GopherQuality(as_datatrove=True), passes) == "few_alphabetic_words"


def test_gopher_quality_english_lists_alone_drop_french() -> None:
    text = " ".join(["le", "et", *distinct(48)])
    assert reason(GopherQuality(stop_languages=("eng",)), text) == "few_stop_words"


def filled(repeats: list[str], chars: int, at: str = "\n") -> str:
    """`repeats`, then filler of words that never recur, `chars` code points in all."""
    body = at.join(repeats) + at
    filler = " ".join(distinct(2000))
    return body + filler[: chars - len(body)]


W = distinct(3000)[2000:]


def grams(n: int, times: int) -> str:
    """An n-gram of five-letter words `times` times, a different word after each."""
    gram = " ".join(W[:n])
    return " ".join(f"{gram} {W[100 + i]}" for i in range(times)) + " "


REPETITION = [
    # 3 of 10 lines stood before (short, so that characters do not count); then 4 of 11
    ("\n".join(["x", "x", "x", "x", *(w * 9 for w in W[:6])]), "keep"),
    ("\n".join(["x", "x", "x", "x", "x", *(w * 9 for w in W[:6])]), "duplicate_lines"),
    ("\n\n".join(["x", "x", "x", "x", *(w * 9 for w in W[:6])]), "keep"),
    ("\n\n".join(["x", "x", "x", "x", "x", *(w * 9 for w in W[:6])]), "duplicate_paragraphs"),
    # 20 of 100 code points in a line that stood before
    ("\n".join(["a" * 20, "a" * 20, "b" * 28, "c" * 29]), "keep"),
    ("\n".join(["a" * 20, "a" * 20, "b" * 28, "c" * 28]), "duplicate_line_chars"),
    ("\n\n".join(["a" * 20, "a" * 20, "b" * 27, "c" * 27]), "keep"),
    ("\n\n".join(["a" * 20, "a" * 20, "b" * 27, "c" * 26]), "duplicate_paragraph_chars"),
    # an n-gram of five-letter words, 6 n - 1 code points, so many times in so many
    (filled([grams(2, 4)], 220, ""), "keep"),  # 44 of 220
    (filled([grams(2, 4)], 219, ""), "top_2_gram"),
    (filled([grams(3, 9)], 850, ""), "keep"),  # 153 of 850: 18%
    (filled([grams(3, 9)], 849, ""), "top_3_gram"),
    (filled([grams(4, 8)], 1150, ""), "keep"),  # 184 of 1150: 16%
    (filled([grams(4, 8)], 1149, ""), "top_4_gram"),
    # the words alone, 5 n, of occurrences after the first: for 5 words 15%, ... for 10 words 10%
    (filled([grams(5, 10)], 1500, ""), "keep"),
    (filled([grams(5, 10)], 1499, ""), "duplicate_5_grams"),
    (filled([grams(6, 8)], 1500, ""), "keep"),
    (filled([grams(6, 8)], 1499, ""), "duplicate_6_grams"),
    (filled([grams(7, 14)], 3500, ""), "keep"),
    (filled([grams(7, 14)], 3499, ""), "duplicate_7_grams"),
    (filled([grams(8, 4)], 1000, ""), "keep"),
    (filled([grams(8, 4)], 999, ""), "duplicate_8_grams"),
    (filled([grams(9, 12)], 4500, ""), "keep"),
    (filled([grams(9, 12)], 4499, ""), "duplicate_9_grams"),
    (filled([grams(10, 3)], 1000, ""), "keep"),
    (filled([grams(10, 3)], 999, ""), "duplicate_10_grams"),
    (" ".join(W[:4]), "keep"),  # each n-gram once: nothing is repeated
    ("", "keep"),
]


@pytest.mark.parametrize(
    ("text", "wanted"), REPETITION, ids=[f"{i}-{r}" for i, (_, r) in enumerate(REPETITION)]
)
def test_gopher_repetition_at_threshold_judged(text: str, wanted: str) -> None:
    assert reason(GopherRepetition(), text) == wanted


LONG = " ".join(W[:8])  # 47 code points
FINEWEB = [
    ("\n".join([LONG + "."] + [f"{LONG} {w}" for w in W[20:27]]), "keep"),  # 1 of 8: 12.5%
    ("\n".join([LONG + "."] + [f"{LONG} {w}" for w in W[20:28]]), "few_terminal_lines"),
    (f'{LONG}."\n{LONG} x', "keep"),
    ("\n".join([f"{i:02d}" + "x" * 27 + "." for i in range(2)] + [LONG + "."]), "keep"),  # 2 of 3
    ("x " * 14 + "xx\n" + "y " * 14 + "y.", "short_lines"),
    ("x " * 15 + "x\n" + "y " * 14 + "y.", "keep"),
    (f"a.\na.\n{LONG}. " + "x" * 149, "keep"),  # 2 of 200 code points, not above 1%
    (f"a.\na.\n{LONG}. " + "x" * 99, "duplicate_chars"),
    ("\n".join([f"{w * 7} a b" + "." for w in W[:10]] + ["x" * 40 + " c"]), "line_breaks"),
    ("\n".join([f"{w * 7} a b" + "." for w in W[:10]] + ["x " * 40]), "keep"),
    (" \n\t\n", "empty"),
    ("", "empty"),
]


@pytest.mark.parametrize(
    ("text", "wanted"), FINEWEB, ids=[f"{i}-{r}" for i, (_, r) in enumerate(FINEWEB)]
)
def test_fineweb_at_threshold_judged(text: str, wanted: str) -> None:
    assert reason(FineWebQuality(), text) == wanted


FIVE = "One two three.\nTwo three four.\nThree four five.\nFour five six.\nFive six seven.\n"
C4_PAGES = [
    (FIVE, "keep"),
    (FIVE[15:], "few_sentences"),
    ("One two. Three four! Five six? Seven eight. Nine ten.", "keep"),
    ("One two. Three four! Five six? Seven eight. nine ten.", "few_sentences"),
    ("一二三。四五六\uff01七八九\uff1f十。百千万", "keep"),
    (FIVE + "a Lorem Ipsum dolor", "lorem_ipsum"),
    (FIVE + "a lorem  ipsum dolor", "keep"),
    (FIVE + "if (x) { y }", "curly_bracket"),
    (FIVE + "{ x", "keep"),  # its line goes first
    (FIVE + "enable javascript { x", "keep"),
]


@pytest.mark.parametrize(
    ("text", "wanted"), C4_PAGES, ids=[f"{i}-{r}" for i, (_, r) in enumerate(C4_PAGES)]
)
def test_c4_page_at_threshold_judged(text: str, wanted: str) -> None:
    assert reason(C4(), text) == wanted


C4_LINES = [
    ("keep one two\nHome page\nkeep three four", "keep one two\nkeep three four"),
    ("a b c\n\nMenu\n\nd e f", "a b c\n\nd e f"),  # one blank line of the two goes
    ("a b c\nMenu\n\nd e f", "a b c\n\nd e f"),
    ("Menu\r\na b c", "a b c"),
    ("see this now [1] and[23] that[edit].", "see this now  and that."),
    ("a[x] b[] c[citation needed] d[1", "a[x] b c d[1"),
    ("please enable JavaScript now\na b c", "a b c"),
    ("our site uses Cookies, fine\na b c", "a b c"),
    ("accept the Terms of\u00a0use here", "accept the Terms of\u00a0use here"),
    (f"a b {'x' * 1000}\nc d {'y' * 1001}", f"a b {'x' * 1000}\n"),
    ("汉字汉字\n汉字\n" + "汉" * 1001, "汉字汉字\n" + "汉" * 1001),
]


@pytest.mark.parametrize(("text", "wanted"), C4_LINES, ids=range(len(C4_LINES)))
def test_c4_lines_cut_as_stated(text: str, wanted: str) -> None:
    assert edited(C4(), text) == wanted


def test_c4_terminal_punctuation_cuts_lines_without() -> None:
    text = 'One two three.\nno end here\n"quoted to the end"\ntails off here...\nand said so [4].'
    wanted = 'One two three.\n"quoted to the end"\nand said so .'
    assert edited(C4(terminal_punctuation=True), text) == wanted


def test_c4_edits_and_kept_bytes_cover_the_text() -> None:
    text = "a b c [1]\nMenu\n\nuses cookies and more\nd e f\n"
    batch = pa.record_batch({"text": pa.array([text], pa.large_string())})
    edits = C4().measure(batch).edits
    assert edits is not None
    assert len(text) - int(edits.lengths.sum()) == len(edited(C4(), text))


@pytest.mark.parametrize(
    "name", ["c4", "fineweb_quality", "gopher_quality", "gopher_repetition", "language"]
)
def test_stage_thresholds_move_without_text(name: str) -> None:
    """`measure` reads no verdict field, and each one is a field."""
    stage = STAGES[name]()
    fields = {f.name for f in dataclasses.fields(stage)}
    assert stage.verdict_fields <= fields
    batch = pa.record_batch({"text": pa.array([FIVE, "", "x"], pa.large_string())})
    strict = {}
    for field in stage.verdict_fields - {"keep"}:
        value = getattr(stage, field)
        strict[field] = (0,) * len(value) if isinstance(value, tuple) else type(value)(0)
    other = dataclasses.replace(stage, **strict)
    before, after = stage.measure(batch).scores, other.measure(batch).scores
    assert all(np.array_equal(before[k], after[k]) for k in before)
    assert before.keys() == after.keys()


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: GopherQuality(max_bullet_lines=1.5), "max_bullet_lines"),
        (lambda: GopherQuality(min_words=-1), "min_words"),
        (lambda: GopherQuality(min_stop_words=5), "min_stop_words"),
        (lambda: GopherQuality(stop_languages=("enf",)), "did you mean 'eng'"),
        (lambda: GopherRepetition(top_n_grams=(0.1, 0.2)), "top_n_grams"),
        (lambda: GopherRepetition(duplicate_n_grams=(0.1, 0.2, 0, 0, 0, float("nan"))), "nan"),
        (lambda: FineWebQuality(max_short_lines=0.12345678901), "decimal places"),
        (lambda: FineWebQuality(short_line=3.5), "short_line"),
        (lambda: C4(policy=("é!",)), "policy"),
    ],
)
def test_stage_wrong_field_named_in_error(make, field: str) -> None:
    with pytest.raises(UsageError, match=field):
        make()


def test_rules_tell_value_and_threshold_of_each_reason() -> None:
    batch = pa.record_batch({"text": pa.array(["- a b c\n- a b c\n- d {", ""], pa.large_string())})
    for stage in (GopherQuality(), GopherRepetition(), C4(), FineWebQuality()):
        scores = stage.measure(batch).scores
        rules = stage.rules(scores)
        assert len(rules) == len(stage.reasons) - 1
        codes = stage.verdict(scores)
        for row in range(2):
            broken = [bool(rule.broken()[row]) for rule in rules]
            assert codes[row] == (broken.index(True) + 1 if True in broken else 0)
        told = dict(zip(stage.reasons[1:], (rule.told(0) for rule in rules), strict=True))
        if stage.name == "gopher_repetition":
            assert told["duplicate_lines"] == {"measured": 0.3333, "of": "1 / 3", "at_most": 0.3}
            assert stage.show("- a b c\n- a b c\n- d {", "duplicate_lines") == "2 times: - a b c"
            assert stage.show("- a b c\n- a b c\n- d {", "top_2_gram") == "2 times: a b"
        if stage.name == "c4":
            assert stage.show("x\n- d {", "curly_bracket") == "- d {"


def test_as_datatrove_counts_tokens_sentences_and_all_lines() -> None:
    """By hand, after spaCy: marks, contractions and units apart; a line of spaces is a line."""
    batch = pa.record_batch({"text": pa.array(["I don't know, 5km (yes). So well-known"])})
    scores = GopherQuality(as_datatrove=True).measure(batch).scores
    # I do n't know , 5 km ( yes ) . So well - known
    assert (int(scores["words"][0]), int(scores["symbol_words"][0])) == (10, 5)
    assert int(scores["alphabetic_words"][0]) == 9
    line = pa.record_batch({"text": pa.array(["he went.[3] she came. so...On it.Then U.S. no"])})
    assert int(C4(as_datatrove=True).measure(line).scores["sentences"][0]) == 4
    lines = pa.record_batch({"text": pa.array(["a\n \n \na \n\n\na"])})
    scores = GopherRepetition(as_datatrove=True).measure(lines).scores
    assert (int(scores["lines"][0]), int(scores["duplicate_lines"][0])) == (5, 2)
    assert int(scores["paragraphs"][0]) == 2
