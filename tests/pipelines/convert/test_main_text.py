"""Pages: charsets, what survives extraction, pages made to break it."""

from __future__ import annotations

import time

import pytest

from gristmill.documents.records import Locator, Loss, Record, Skip
from gristmill.pipelines.convert import MainText, PlainText, main_text

PARAGRAPH = "A paragraph with enough words in it to be the main content of a page. "
PAGE = "<html><head><title>T</title></head><body><main>{}</main></body></html>"


def test_main_text_keeps_headings_tables_code_and_title(build):
    body = (
        "<nav><a href=/>Home</a></nav><main><h1>Heading</h1><p>"
        + PARAGRAPH
        + "</p><ol><li>first</li><li>second</li></ol><table><tr><td>a</td><td>b</td></tr></table>"
        "<pre>def f(x):\n    return x</pre></main><footer>Copyright</footer>"
    )
    out = build.draft(MainText(), build.html(f"<title> The\ntitle </title>{body}", url="http://x"))
    lines = out.text.split("\n")
    for line in (
        "# Heading",
        PARAGRAPH.strip(),
        "1. first",
        "2. second",
        "def f(x):",
        "    return x",
    ):
        assert line in lines
    assert any(line.split() == ["a", "b"] for line in lines)
    assert out.metadata["cut"] == {"navigation": 4, "footer": 9}
    assert "Home" not in out.text
    assert out.metadata["title"].split() == ["The", "title"]
    assert out.url == "http://x"


@pytest.mark.parametrize(
    ("body", "charset", "used"),
    [
        ("Größe naïve Ünïcode".encode(), "utf-8", "utf-8"),
        ("Größe naïve Ünïcode".encode("cp1252"), "iso-8859-1", "cp1252"),
        (b"\xef\xbb\xbf" + "Größe naïve Ünïcode".encode(), "iso-8859-1", "utf-8"),
        (
            b'<meta charset="windows-1252">' + "Größe naïve Ünïcode".encode("cp1252"),
            "",
            "cp1252",
        ),
        (b"\xff\xfe" + "Größe naïve Ünïcode".encode("utf-16-le"), "", "utf-16-le"),
        ("Größe naïve Ünïcode".encode(), "no-such-charset", "utf-8"),
        ("Größe naïve Ünïcode".encode(), "", "utf-8"),
    ],
)
def test_main_text_finds_the_charset(build, body, charset, used):
    if body.startswith(b"\xff\xfe"):
        page = b"\xff\xfe" + PAGE.format(f"<p>{PARAGRAPH}Größe naïve Ünïcode</p>").encode(
            "utf-16-le"
        )
    else:
        mark = b"\xef\xbb\xbf" if body.startswith(b"\xef\xbb\xbf") else b""
        head, _, text = body.removeprefix(mark).rpartition(b">")
        meta = head + b">" if head else b""
        page = mark + meta + f"<main><p>{PARAGRAPH}".encode() + text + b"</p></main>"
    out = build.draft(MainText(), build.html(page, charset=charset))
    assert "Größe naïve Ünïcode" in out.text
    assert out.metadata["charset"] == used


def test_main_text_one_wrong_byte_does_not_spoil_a_utf8_page(build):
    page = PAGE.format(f"<p>{PARAGRAPH * 20} Größe</p>").encode() + b"<p>\xc3"
    out = build.draft(MainText(), build.html(page, charset="utf-8"))
    assert "Größe" in out.text
    assert out.repairs == {"undecoded": 1}


def test_main_text_wrong_label_is_not_believed(build):
    page = PAGE.format(f"<p>{'Übergrößenträger naïf, déjà vu. ' * 30}</p>").encode("cp1252")
    out = build.draft(MainText(), build.html(page, charset="utf-8"))
    assert "Übergrößenträger" in out.text
    assert "\ufffd" not in out.text


def test_main_text_nul_does_not_end_the_page(build):
    """Case 15."""
    page = PAGE.format(f"<p>{PARAGRAPH}before\0after</p><p>{PARAGRAPH}the tail</p>")
    out = build.draft(MainText(), build.html(page))
    assert "beforeafter" in out.text
    assert "the tail" in out.text
    assert out.repairs == {"nul": 1}


@pytest.mark.parametrize("depth", [300, 1_500, 100_000])
@pytest.mark.parametrize("closed", [True, False])
def test_main_text_deep_nesting_keeps_the_middle_and_the_tail(build, depth, closed):
    """Case 16, and depths at which a walk that recurses ends, or takes minutes."""
    before = "".join(f"<p>{n} before. {PARAGRAPH}</p>" for n in range(3))
    after = "".join(f"<p>{n} after. {PARAGRAPH}</p>" for n in range(3))
    deep = "<div>" * depth + f"<p>deep. {PARAGRAPH}</p>" + "</div>" * (depth if closed else 0)
    start = time.process_time()
    out = build.draft(MainText(), build.html(f"<body>{before}{deep}{after}</body>"))
    assert time.process_time() - start < 30  # a hang, not a verdict
    for words in ("0 before.", "2 before.", "deep.", "0 after.", "2 after."):
        assert words in out.text


def test_main_text_huge_colspan_does_not_blow_up(build):
    """Case 17."""
    table = (
        "<table><tr><td colspan=9007199254740991 rowspan=9007199254740991>cell</td></tr></table>"
    )
    out = build.draft(
        MainText(), build.html(PAGE.format(f"<p>{PARAGRAPH}</p>{table}<p>{PARAGRAPH}tail</p>"))
    )
    assert "cell" in out.text
    assert "tail" in out.text
    assert len(out.text) < 1_000


@pytest.mark.parametrize("page", ["", "<html></html>", "<script>x()</script>", "\0\0"])
def test_main_text_page_without_text_is_dropped(build, page):
    loss = build.loss(MainText(), build.html(page))
    assert (loss.reason, loss.kind) == ("no_text", "dropped")


def test_main_text_exception_of_the_library_is_a_row(build, monkeypatch):
    def fail(*_args, **_options):
        raise RuntimeError("broken\ud800 tree")

    monkeypatch.setattr(main_text, "read_page", fail)
    loss = build.loss(MainText(), build.html(PAGE))
    assert (loss.reason, loss.kind) == ("extract_error", "fault")
    assert loss.detail.startswith("RuntimeError: broken")


def test_main_text_plain_lines_without_markdown(build):
    page = PAGE.format(f"<h2>Heading</h2><p>{PARAGRAPH}</p><ul><li>item</ul>")
    out = build.draft(MainText(markdown=False), build.html(page))
    assert out.text.split("\n") == ["Heading", "", PARAGRAPH.strip(), "", "item"]


def test_main_text_states_date_language_licence_and_formulas(build):
    page = (
        '<html lang="de-AT"><head><meta name="date" content="2024-05-06T07:08:09Z"></head><body>'
        f"<p>{PARAGRAPH}<math><mi>x</mi></math></p>"
        '<a rel=license href="https://creativecommons.org/licenses/by/4.0/">Lizenz</a></body>'
    )
    said = build.draft(MainText(), build.html(page)).metadata
    assert said["language"] == "de-AT"
    assert said["published"] == "2024-05-06"
    assert said["license_hint"] == "cc-by-4.0"
    assert said["formulas"] == 1


@pytest.mark.parametrize(
    ("links", "hint"),
    [
        (("licenses/by/4.0", "licenses/by-nc/4.0"), "cc-by-nc-4.0"),
        (("licenses/by-nc/3.0", "licenses/by-sa/4.0"), "cc-by-nc-3.0"),
        (("publicdomain/zero/1.0", "licenses/by/4.0"), "cc-by-4.0"),
        (("publicdomain/zero/1.0", "terms"), "cc-0-1.0"),
        (("terms",), None),
    ],
)
def test_main_text_of_several_licences_states_the_most_restricted(build, links, hint):
    anchors = "".join(f'<a href="https://creativecommons.org/{link}/">x</a>' for link in links)
    said = build.draft(MainText(), build.html(f"<body><p>{PARAGRAPH}</p>{anchors}</body>"))
    assert said.metadata.get("license_hint") == hint


def test_main_text_states_what_a_page_forbids_and_its_licence_link(build):
    page = (
        "<html><head><meta name=robots content=noai><META CONTENT='noimageai, nofollow' "
        'NAME="ROBOTS"><meta name="tdm-reservation" content="1">'
        '<meta name="tdm-policy" content="https://a.example/policy.json"></head><body>'
        f'<p>{PARAGRAPH} <a href="https://creativecommons.org/licenses/by-nc/4.0/">picture</a>'
        '<a href="https://creativecommons.org/publicdomain/zero/1.0/" rel="license">own</a></body>'
    )
    said = build.draft(MainText(), build.html(page, fields={"x-robots-tag": "noai"})).metadata
    assert said["robots"] == "noai, noimageai, nofollow"
    assert (said["tdm-reservation"], said["tdm-policy"]) == ("1", "https://a.example/policy.json")
    assert said["license_link"] == "https://creativecommons.org/publicdomain/zero/1.0/"
    assert (said["license_hint"], said["x-robots-tag"]) == ("cc-0-1.0", "noai")


@pytest.mark.parametrize(
    ("metas", "robots"),
    [
        ('<meta name=" robots " content=" noai ">', "noai"),
        ('<meta name="robots" content="no&#97;i">', "noai"),
        ('<meta name="googlebot" content="noai">', "googlebot: noai"),
        (
            '<meta name="GPTBot" content="noindex"><meta name="robots" content="noarchive">',
            "noarchive, gptbot: noindex",
        ),
        ('<meta name="googlebot" content="index, max-snippet:-1">', None),
        ('<meta name="bottom" content="no sale">', None),
    ],
)
def test_main_text_states_what_robots_are_told(build, metas, robots):
    page = f"<html><head>{metas}</head><body><p>{PARAGRAPH}</p></body></html>"
    said = build.draft(MainText(), build.html(page)).metadata
    assert said.get("robots") == robots


def test_main_text_passes_text_records_losses_and_skips(build):
    loss = Loss(locator=Locator("f", 1), reason="bad_framing")
    items = [build.record("some text", fields={"k": 1}), loss, Skip(reason="request", span=3)]
    out = list(MainText()(iter(items)))
    assert out == list(PlainText()(iter(items)))
    assert out[1:] == items[1:]
    assert out[0].text == "some text"


def test_main_text_real_pages_give_text(build, real_data):
    from gristmill.pipelines.readers import ReadAccount, plan_extents, read_extent

    root = real_data / "a-warc-built"
    account = ReadAccount()
    extents = [e for s in plan_extents(root, ["pages-00003.warc.gz"]) for e in s]
    out = list(MainText()(i for e in extents for i in read_extent(root, e, account)))
    account.check()
    total = sum(i.span if isinstance(i, Skip) else i.locator.span for i in out)
    assert total == account.decoded_bytes
    assert sum(hasattr(i, "text") for i in out) > 0.9 * account.records


def test_main_text_body_of_plain_text_is_no_markup():
    """`reader: {format: text}` with this converter: `<`, indentation and lines are the text's."""
    body = b"if a < b and c > d:\r\n    return <T>(a)\n\n  1. one\n"
    record = Record(locator=Locator("f", 0, 0, len(body)), body=body, media_type="text/plain")
    (made,) = MainText()(iter([record]))
    (plain,) = PlainText()(iter([record]))
    assert made == plain
    assert made.text == "if a < b and c > d:\n    return <T>(a)\n\n  1. one\n"


def test_main_text_what_is_cut_from_a_page_is_no_repair(build):
    page = PAGE.format(f"<script>\x01 e\u0301 \ufeff</script><p>{PARAGRAPH}don\x92t e\u0301</p>")
    out = build.draft(MainText(), build.html(page))
    assert out.text.endswith("don\u2019t \xe9")
    assert out.repairs == {"c1": 1, "nfc": 1}


def test_main_text_page_of_too_many_tags_is_not_parsed():
    body = b"<html><body>" + b"<b>" * main_text.MAX_TAGS
    record = Record(
        locator=Locator("f", 0, 0, len(body)), body=body, media_type="text/html", url="u"
    )
    (loss,) = MainText()(iter([record]))
    assert (loss.reason, loss.kind, loss.url) == ("too_many_nodes", "fault", "u")
    assert str(main_text.MAX_TAGS) in loss.detail
