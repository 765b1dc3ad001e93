"""Charsets: what labels mean on the web, which label is believed, what a few wrong bytes do."""

from __future__ import annotations

import pytest

from gristmill.pipelines.convert.charsets import decode, decode_plain

WIDER = [
    ("shift_jis", "cp932", "髙島屋①㈱\uff5e\uff0d"),
    ("x-sjis", "cp932", "髙島屋"),
    ("euc-kr", "cp949", "똠방각하 펲시콜라"),
    ("ks_c_5601-1987", "cp949", "똠방각하"),
    ("big5", "big5hkscs", "我哋嘅嘢喺呢度"),
    ("gb2312", "gb18030", "镕基€𠀀"),
    ("gbk", "gb18030", "朱镕基"),
    ("x-mac-cyrillic", "mac-cyrillic", "Привет, мир"),
    ("koi8-r", "koi8-r", "Привет ╔"),
    ("iso-8859-1", "cp1252", "“café” 5 €"),
    ("iso-8859-11", "cp874", "สวัสดี"),
    ("iso-2022-jp", "iso2022_jp", "日本語の文章です"),
]


@pytest.mark.parametrize(("label", "codec", "text"), WIDER)
def test_charset_label_means_what_it_means_on_the_web(label, codec, text):
    body = f"<p>{text * 4}".encode(codec)
    assert decode(body, label)[::2] == (f"<p>{text * 4}", 0)
    meta = f'<meta charset="{label}">'
    assert decode(meta.encode() + body, "")[::2] == (f"{meta}<p>{text * 4}", 0)


def test_charset_euc_jp_has_the_letters_of_nec_and_ibm():
    """Rows 13 and 89 to 92; 髙 is row 92, cell 66 (index jis0208 of WHATWG)."""
    body = b"\xad\xa1\xad\xa2 \xfc\xe2 \xa1\xc1 \xad\xea" + "日本".encode("euc_jp")
    assert decode(body, "euc-jp") == ("①② 髙 \uff5e ㈱日本", "euc_jp", 0)


@pytest.mark.parametrize(
    ("label", "body", "text"),
    [
        ("gbk", b"\x80100 " + "元".encode("gbk"), "€100 元"),
        ("big5", b"\xa3\xe1" + "元".encode("big5"), "€元"),
        ("windows-1252", b"caf\xe9 \x81\x9d", "café \x81\x9d"),
        ("windows-1255", "שלום".encode("cp1255") + b"\x81", "שלום\x81"),
    ],
)
def test_charset_bytes_without_a_letter_in_pythons_codec_have_the_webs(label, body, text):
    assert decode(body, label)[::2] == (text, 0)


@pytest.mark.parametrize(
    ("label", "codec", "text"),
    [
        ("shift_jis", "cp932", "日本語の文章です。"),
        ("euc-jp", "euc_jp", "日本語の文章です。"),
        ("euc-kr", "cp949", "한국어 문서입니다. "),
        ("big5", "big5hkscs", "這是一個香港網頁。"),
        ("gb18030", "gb18030", "天地玄黄宇宙洪荒。"),
        ("utf-8", "utf-8", "日本語の文章です。"),
    ],
)
@pytest.mark.parametrize("where", ["header", "meta", "xml"])
def test_charset_label_that_fails_in_one_place_is_believed(label, codec, text, where):
    head = {"header": "", "meta": f"<meta charset={label}>", "xml": f"<?xml encoding='{label}'?>"}
    body = head[where].encode() + (text * 50).encode(codec) + b"\xff\n" + text.encode(codec)
    got, used, bad = decode(body, label if where == "header" else "")
    assert used in {codec, label}
    assert got == f"{head[where]}{text * 50}\ufffd\n{text}"
    assert bad == 1


def test_charset_multi_byte_label_over_accents_of_windows_1252_is_not_believed():
    body = b"plain words and more of them, " * 200 + b"caf\xe9. d\xe9j\xe0. na\xefve."
    text, used, bad = decode(body, "euc-kr")
    assert text.endswith("café. déjà. naïve.")
    assert (used, bad) == ("cp1252", 0)


LETTERS = "Съешь ещё этих мягких французских булок, да выпей чаю. "


@pytest.mark.parametrize(
    ("head", "codec"),
    [
        ("<!-- <meta charset=windows-1251> --><meta charset=koi8-r>", "koi8-r"),
        ("<!--><meta charset=koi8-r><!-- <meta charset=windows-1251>", "koi8-r"),
        ("<?xml version='1.0' encoding=\"koi8-r\"?>", "koi8-r"),
        ("\n<?xml version='1.0' encoding='koi8-r' standalone='no'?>", "koi8-r"),
        ("<?xml version='1.0' encoding='koi8-r'?><meta charset=windows-1251>", "cp1251"),
        ("<meta charset=utf-16>", "utf-8"),
        ("<?xml version='1.0' encoding='utf-16'?>", "utf-8"),
    ],
)
def test_charset_of_the_page_itself(head, codec):
    text = head + LETTERS
    assert decode(text.encode(codec), "") == (text, codec, 0)


@pytest.mark.parametrize(
    "header", ["iso-8859-1", "windows-1251", "windows-1256", "shift_jis", "gbk", "us-ascii"]
)
@pytest.mark.parametrize("says", ["<meta charset=utf-8>", '<?xml encoding="UTF-8"?>'])
def test_charset_page_that_is_the_utf8_it_says_beats_the_header(header, says):
    text = f"{says}{'words ' * 200}é"
    assert decode(text.encode(), header) == (text, "utf-8", 0)


def test_charset_header_beats_a_page_that_is_not_the_utf8_it_says():
    text = f"<meta charset=utf-8>{LETTERS}"
    assert decode(text.encode("cp1251"), "windows-1251") == (text, "cp1251", 0)
    ascii_only = "<meta charset=utf-8>words"
    assert decode(ascii_only.encode(), "windows-1251") == (ascii_only, "cp1251", 0)


def test_charset_mark_of_utf8_over_another_charset_is_not_believed():
    assert decode(b"\xef\xbb\xbf" + (LETTERS * 9).encode("cp1251"), "windows-1251") == (
        LETTERS * 9,
        "cp1251",
        0,
    )


@pytest.mark.parametrize("label", ["", "utf-8", "shift_jis", "foo", "hz-gb-2312", "replacement"])
def test_charset_no_page_is_lost_to_replacement_characters(label):
    body = b"<p>" + bytes(range(0x80, 0x100)) * 4
    text, _, bad = decode(body, label)
    assert text.count("\ufffd") == bad
    assert bad * 4 < len(text)


def test_charset_replacement_characters_of_the_page_are_no_damage():
    body = ("\ufffd" * 90 + "Größe").encode()
    assert decode(body + b"\xc3", "utf-8") == (body.decode() + "\ufffd", "utf-8", 1)


@pytest.mark.parametrize(
    ("codec", "text"),
    [
        ("utf-8", "Größe und Übermut"),
        ("cp1252", "Être ou ne pas être, là est la question — à"),
        ("cp1251", LETTERS * 5),
        ("cp932", "色は匂へど散りぬるを我が世誰ぞ常ならむ①②カタカナ。" * 10),
        ("gb18030", "天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往。" * 10),
    ],
)
def test_charset_of_a_plain_text_is_detected(codec, text):
    assert decode_plain(text.encode(codec))[::2] == (text, 0)


def test_charset_stated_of_a_plain_text_outlives_a_cut_letter():
    assert decode_plain("Größe".encode()[:3], "utf-8") == ("Gr\ufffd", "utf-8", 1)
    assert decode_plain(LETTERS.encode("koi8-r"), "koi8-r") == (LETTERS, "koi8-r", 0)
