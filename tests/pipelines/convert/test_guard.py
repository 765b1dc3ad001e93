"""Extraction in a child: same results, and a page that ends it costs that page alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gristmill.documents.records import Draft, Locator, Loss, Record, Skip
from gristmill.pipelines.convert import MainText, guard


@pytest.fixture
def awkward(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setattr(guard, "CPU_SECONDS", 1)
    guard.close()
    from guard_converters import Awkward

    yield Awkward(str(tmp_path / "marks"))
    guard.close()


def pages(*bodies):
    return [
        Record(locator=Locator("f", n, 0, 10), body=body.encode()) for n, body in enumerate(bodies)
    ]


def outcome(items):
    return [i.text if isinstance(i, Draft) else i.reason for i in items]


@pytest.mark.parametrize(
    ("body", "reason"),
    [("spin", "extract_hang"), ("die", "extract_crash"), ("leave", "extract_crash")],
)
def test_guard_page_that_ends_the_child_is_one_fault(awkward, body, reason):
    given = pages("a", body, "b", "c")
    got = list(guard.guarded(awkward, iter(given)))
    assert outcome(got) == ["a", reason, "b", "c"]
    assert isinstance(got[1], Loss)
    assert (got[1].kind, got[1].locator) == ("fault", given[1].locator)
    assert "2 times" in got[1].detail


def test_guard_page_that_waits_for_ever_is_a_hang(awkward, monkeypatch):
    monkeypatch.setattr(guard, "_WIDER", 1)
    assert outcome(guard.guarded(awkward, iter(pages("a", "sleep", "b")))) == [
        "a",
        "extract_hang",
        "b",
    ]


def test_guard_child_that_dies_once_is_asked_again(awkward):
    assert outcome(guard.guarded(awkward, iter(pages("a", "once", "b")))) == ["a", "once", "b"]
    assert Path(awkward.marks).stat().st_size == 2


def test_guard_many_bad_pages_and_order(awkward):
    bodies = ["die" if n % 5 == 0 else f"p{n}" for n in range(23)]
    got = outcome(guard.guarded(awkward, iter(pages(*bodies))))
    assert got == ["extract_crash" if b == "die" else b for b in bodies]


def test_guard_exception_of_the_converter_is_raised_here(awkward):
    with pytest.raises(ValueError, match="raise"):
        list(guard.guarded(awkward, iter(pages("a", "raise"))))
    assert outcome(guard.guarded(awkward, iter(pages("a")))) == ["a"]


def test_guard_passes_what_is_no_page(awkward):
    skip = Skip(reason="request", span=5)
    loss = Loss(locator=Locator("f", 1), reason="bad_framing")
    text = Record(locator=Locator("f", 2), text="t")
    items = [skip, *pages("a"), loss, text, *pages("b")]
    got = list(guard.guarded(awkward, iter(items)))
    assert (got[0], got[2]) == (skip, loss)
    assert [i.text for i in got if isinstance(i, Draft)] == ["a", "text", "b"]


def test_guard_gives_what_the_converter_gives():
    html = [f"<html><title>t{n}</title><body><p>{'word ' * n}</p>" for n in range(60)]
    items = pages(*html)
    got = list(guard.guarded(MainText(), iter(items)))
    assert got == list(MainText()(iter(items)))
    child = guard.Child.running().pid
    guard.close()
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
