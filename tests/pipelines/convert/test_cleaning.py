"""The one policy for text."""

from __future__ import annotations

import json
import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.pipelines.convert import CONVERTERS, clean_text
from gristmill.pipelines.convert._kernels import look
from gristmill.pipelines.convert.cleaning import _classes, clean_line, clean_values

AWKWARD = (
    "\ud800\udfff\0\ufeff\r\n\x0b\x0c\x85\u2028\x01\x1f\x7f\x81\x92a\u0301\u0323\u212b\uac00\u11a8"
)
ANY = st.text(st.characters() | st.sampled_from(AWKWARD), max_size=20)


@pytest.mark.parametrize(
    ("given_", "text", "repairs"),
    [
        ("plain\nétext", "plain\nétext", {}),
        ("a\ud800b\udfff", "a\ufffdb\ufffd", {"surrogate": 2}),  # case 14
        ("a\0b\0", "ab", {"nul": 2}),  # case 15
        ("\ufeffa\ufeffb", "ab", {"bom": 2}),  # case 20
        ("a\x0bb\x0cc\x85d\u2028e\u2029", "a\nb\nc\nd\ne\n", {"line": 5}),
        ("\x01a\x1f\x7fb\tc\x81", "ab\tc", {"control": 4}),
        ("don\x92t \x80", "don\u2019t \u20ac", {"c1": 2}),
        ("e\u0301 \u212b", "\xe9 \xc5", {"nfc": 1}),
        ("\u212b", "\xc5", {"nfc": 1}),
        ("e\0\u0301", "\xe9", {"nul": 1, "nfc": 1}),  # what stood between them is gone
        ("\u0958", "\u0915\u093c", {"nfc": 1}),  # excluded from composition: NFC takes it apart
        ("a\r\nb\rc\r\r\n", "a\nb\nc\n\n", {"crlf": 2, "cr": 2}),
        ("", "", {}),
    ],
)
def test_clean_text_repairs_and_counts(given_, text, repairs):
    assert clean_text(given_) == (text, repairs)


@given(ANY)
def test_clean_text_is_storable_stable_and_counts_only_changes(text):
    out, repairs = clean_text(text)
    out.encode()
    assert "\0" not in out
    assert "\r" not in out
    assert unicodedata.is_normalized("NFC", out)
    assert all(c in "\t\n" or unicodedata.category(c) != "Cc" for c in out)
    assert clean_text(out) == (out, {})
    assert all(count > 0 for count in repairs.values())
    assert bool(repairs) == (out != text)


VALUES = st.recursive(st.text(max_size=5) | ANY | st.floats() | st.none(), st.lists, max_leaves=4)


@settings(max_examples=40)
@given(st.dictionaries(ANY, VALUES, max_size=3))
def test_clean_values_are_one_json_object(values):
    out = clean_values(values)
    assert json.loads(json.dumps(out, allow_nan=False, ensure_ascii=False).encode()) == out


def test_clean_line_of_nothing_is_none():
    assert clean_line(None) is None
    assert clean_line(" \0\r\n") is None
    assert clean_line(" http://x\ud800 ") == "http://x\ufffd"


def test_converters_stand_under_their_own_names():
    assert sorted(CONVERTERS) == ["issue", "main_text", "plain", "repository", "trajectory"]
    for name, kind in CONVERTERS.items():
        assert kind.name == name
        assert isinstance(kind.revision, int)


def test_clean_line_address_stays_as_it_is():
    for address in ("https://x.example/rados\u030c/", "https://x.example/\x94jag\x94/"):
        assert clean_line(address) == address
        assert clean_text(address)[0] != address
    assert clean_line(" https://x.example/\ud800\0 ") == "https://x.example/\ufffd"


JOINING = {
    part
    for code in range(sys.maxunicode + 1)
    if not 0xD800 <= code < 0xE000
    for part in unicodedata.normalize("NFD", chr(code))[1:]
}
MARKS = "".join(
    map(chr, [*range(0x300, 0x370), *range(0x5B0, 0x5C0), *range(0x64B, 0x656), 0x1D165])
)


def kernel(text: str) -> int:
    raw = text.encode()
    data = np.frombuffer(raw, np.uint8)
    return int(look(data, np.frombuffer(raw, np.uint64, len(raw) // 8), _classes()))


def test_look_every_character_of_unicode_as_its_tables_say(naive):
    twin = naive("naive_convert").look
    classes = _classes()
    for code in range(sys.maxunicode + 1):
        if 0xD800 <= code < 0xE000 or code < 128:
            continue
        char = chr(code)
        known = int(classes[code]) if code < len(classes) else 0
        assert twin(char, JOINING) == (16 << known - 252 if known >= 252 else 0), hex(code)
        assert known >= 252 or known == unicodedata.combining(char), hex(code)


CLEAN = st.text(
    st.sampled_from("ab \t\n\xe9\xdf\u5c71\uac01\U0001f600\U000e0100" + MARKS), max_size=40
)


@given(ANY.filter(lambda t: not any(0xD800 <= ord(c) < 0xE000 for c in t)) | CLEAN)
def test_look_says_what_the_walk_over_characters_says(naive, text):
    assert kernel(text) == naive("naive_convert").look(text, JOINING)


@given(CLEAN, st.integers(0, 70), st.sampled_from("\0\x7f\x85\u2028\ufeff\u0958\u0301\r\x0b\x92"))
def test_look_finds_one_character_wherever_it_stands(text, before, char):
    alone = kernel(char)
    assert alone
    assert kernel("a" * before + char + text) & alone
    assert kernel(text + "a" * before + char) & alone


@given(CLEAN)
def test_look_text_that_stays_comes_back_as_the_same_object(text):
    if not kernel(text):
        assert unicodedata.is_normalized("NFC", text)
        assert clean_text(text)[0] is text
        assert clean_text(text, text.encode())[0] is text
