"""Text that is text already."""

from __future__ import annotations

from gristmill.pipelines.convert import PlainText


def test_plain_text_keeps_what_the_record_states(build):
    fields = {"license": "CC0", "n": [1, "a\0"]}
    item = build.record("a\r\nb", url="u", date="2024", identity="i\ud800", fields=fields)
    out = build.draft(PlainText(), item)
    assert (out.text, out.url, out.date, out.identity) == ("a\nb", "u", "2024", "i\ufffd")
    assert out.license == "CC0"
    assert out.metadata == {"license": "CC0", "n": [1, "a"]}
    assert out.repairs == {"crlf": 1}
    assert out.locator == item.locator


def test_plain_licence_that_is_no_string_is_metadata_only(build):
    out = build.draft(PlainText(), build.record("x", fields={"license": ["a", "b"]}))
    assert out.license is None
    assert out.metadata == {"license": ["a", "b"]}


def test_plain_without_text_is_dropped(build):
    for text in ("", " \n", "\0\ufeff"):
        loss = build.loss(PlainText(), build.record(text))
        assert (loss.reason, loss.kind) == ("no_text", "dropped")


def test_plain_of_a_page_names_the_converter_to_use(build):
    loss = build.loss(PlainText(), build.html("<p>x"))
    assert (loss.reason, loss.kind) == ("not_text", "dropped")
    assert "main_text" in loss.detail
