"""Lines that tell by themselves that they are no content."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.documents.edits import apply_edits
from gristmill.documents.errors import UsageError
from gristmill.documents.stage import checked_measure
from gristmill.filters.templates import LineRules

NAVIGATION = "Home\nAbout us\nNews\nContact us\nGardening\nOld maps"

PROSE = "The river is long.\n" * 6


def left(*texts, stage=None):
    """Texts without what is cut, and the scores."""
    column = pa.array(texts, pa.large_string())
    measured = checked_measure(stage or LineRules(), pa.record_batch({"text": column}))
    return apply_edits(column, measured.edits).to_pylist(), measured.scores


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("We use cookies. Read our privacy policy.", "notice"),
        ("Copyright 2024 by the authors, all rights reserved", "notice"),
        ("Share on Facebook Twitter Pinterest", "share_bar"),
        ("Tweet | Email | Print", "share_bar"),
        (NAVIGATION, "navigation"),
    ],
)
def test_line_rules_cut_what_is_no_content(line, kind):
    body = "The river is long.\n" * 4
    found, scores = left(f"{line}\n{body}It ends at the sea.", "Another text.")
    assert found == [f"{body}It ends at the sea.", "Another text."]
    assert scores[kind].tolist() == [line.count("\n") + 1, 0]


@pytest.mark.parametrize(
    "text",
    [
        "Bake the cookies for ten minutes.",
        "Her privacy mattered to her.",
        "Print the share of each heir on this page and send it by post.",
        "Home\nAbout us\nNews",
        "Share your thoughts on this with your doctor.",
        f"{PROSE}Like this\n{PROSE}Follow us\n{PROSE}",
        f"{PROSE}Privacy law made every browser ask before it takes cookies.\n{PROSE}",
        f"Privacy law and cookies\n{PROSE}Each browser asks before it takes cookies.\n{PROSE}",
        f"{PROSE}```\n{NAVIGATION}\ncopyright license\n```\n",
        f"{PROSE}\n    copyright license\n\n{PROSE}",
        "2 eggs\n1 lemon\nsalt\nbutter\nsugar\nmilk\nflour\ncream",
        "Tyger Tyger\nburning bright\nIn the forests\nof the night",
        "Cookies and privacy " + "are words of a long paragraph of content " * 10,
        "",
        "\n\n",
    ],
)
def test_line_rules_keep_content(text):
    assert left(text)[0] == [text]


def test_line_rules_drop_what_is_cut_to_its_last_word_and_nothing_else():
    texts = ["Tweet Share\n\n* * *\n", NAVIGATION, "", "* * *", "Tweet Share\nThe river is long.\n"]
    found, scores = left(*texts)
    assert [t.split() for t in found[:2]] == [["*", "*", "*"], []]
    assert scores["left"].tolist() == [0, 0, 0, 0, 1]
    codes = LineRules().verdict(scores)
    assert [LineRules.reasons[code] for code in codes] == ["emptied"] * 2 + ["keep"] * 3


def test_line_rules_slices_and_last_lines():
    column = pa.array(["x\n" * 3, "Good text.\nTweet Share"], pa.large_string())[1:]
    measured = checked_measure(LineRules(), pa.record_batch({"text": column}))
    assert apply_edits(column, measured.edits).to_pylist() == ["Good text.\n"]


@given(st.lists(st.text(alphabet="aé \n中|.", max_size=40), max_size=5))
def test_line_rules_any_text_keeps_the_contract_and_a_second_run_cuts_nothing(texts):
    more = [t + "\nTweet Share\n" + t for t in texts]
    found, _ = left(*more)
    assert left(*found)[0] == found


def test_line_rules_wrong_field_is_named():
    with pytest.raises(UsageError, match="run_lines is 0"):
        LineRules(run_lines=0)


def test_title_and_lists_of_words_between_paragraphs_stay():
    body = "The river is long and wide and goes down to the sea.\n" * 5
    words = "home\nhouse\nshop\nschool\nhelp\nnews\nblog\n"
    texts = [f"Privacy browser with cookies\n{body}", f"{body}{words}{body}"]
    found, _ = left(*texts)
    assert found == texts
    found, _ = left(f"{words}{body}")
    assert found == [body]
