"""Opt-out signals and licences: what counts as stated, and what a policy makes of it."""

# ruff: noqa: RUF001 - look-alike marks are what is tested

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.documents.errors import UsageError
from gristmill.documents.stage import checked_measure, checked_verdict
from gristmill.filters import Rights
from gristmill.filters._licences import _AROUND, folded, granted, licence_name
from gristmill.filters.rights import SIGNALS, directives


def batch_of(*metadata, licences=None) -> pa.RecordBatch:
    columns = {
        "text": pa.array(["" for _ in metadata], pa.large_string()),
        "license": pa.array(licences or [None for _ in metadata], pa.string()),
        "metadata": pa.array([json.dumps(m) for m in metadata], pa.string()),
    }
    return pa.record_batch(columns)


def judge(stage, batch) -> list[str]:
    scores = checked_measure(stage, batch).scores
    return [stage.reasons[c] for c in checked_verdict(stage, scores, batch.num_rows)]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("noai", {"noai"}),
        ("index, NoAI, noimageai", {"noai", "noimageai"}),
        ("none", {"noindex"}),
        ("noindex,noarchive", {"noindex", "noarchive"}),
        ("otherbot: noindex, noarchive", set()),
        ("otherbot: noai", {"noai"}),
        ("max-snippet: 20, noindex", {"noindex"}),
        ("unavailable_after: 25 Jun 2030 15:00:00 PST, noai", {"noai"}),
        ("noaim, xnoai, follow", set()),
        ("noai; noimageai", {"noai", "noimageai"}),
        ("noai noimageai", {"noai", "noimageai"}),
        ("index|noai", {"noai"}),
        ("'noai'.", {"noai"}),
        ("ｎｏａｉ", {"noai"}),
        ("no&#97;i", {"noai"}),
        ("noai&#8203;", {"noai"}),
        ("no\xadai, no\u200bimageai", {"noai", "noimageai"}),
        ("noai:1", {"noai"}),
        ("noai: true, noarchive", {"noai", "noarchive"}),
        ("index,follow,noai=1", {"noai"}),
        ("noai=0, noimageai: false", set()),
        ("noai: noimageai", {"noai", "noimageai"}),
        ("noai/noimageai", {"noai", "noimageai"}),
        ("[noai]", {"noai"}),
        ("noindex, googlebot: noai", {"noindex", "noai"}),
        ("tdm", set()),
        ("", set()),
    ],
)
def test_directives_of_a_robots_value(value, found):
    assert directives(value) == found


def test_rights_signals_drop_by_policy():
    batch = batch_of(
        {"robots": "noai"},
        {"x-robots-tag": "noimageai"},
        {"tdm-reservation": "1"},
        {"tdm-reservation": "0"},
        {"robots": 7, "tdm-reservation": None},
        {"title": "robots and tdm-reservation"},
    )
    assert judge(Rights(), batch) == ["opt_out", "keep", "opt_out", "keep", "keep", "keep"]
    assert judge(Rights(opt_out="keep"), batch) == ["keep"] * 6
    assert judge(Rights(signals=("noimageai",)), batch)[:3] == ["keep", "opt_out", "keep"]
    measured = checked_measure(Rights(), batch)
    assert [name for name in SIGNALS if measured.scores[name][0]] == ["noai"]
    assert measured.evidence.rows.tolist() == [0, 1, 2]
    assert json.loads(measured.evidence.notes[2]) == {"tdm-reservation": "1"}


@pytest.mark.parametrize(
    ("stated", "name"),
    [
        ("https://creativecommons.org/licenses/by-nc-sa/3.0/de/", "cc-by-nc-sa-3.0"),
        ("CC BY-SA 4.0", "cc-by-sa-4.0"),
        ("cc-by-sa-4.0", "cc-by-sa-4.0"),
        ("CC BY-NonCommercial 4.0", "cc-by-nc-4.0"),
        ("CC BY Attribution-No Derivatives", "cc-by-nd"),
        ("CC BY Non-Commercial Share Alike v4.0", "cc-by-nc-sa-4.0"),
        ("https://creativecommons.org/licenses/by-nd-nc/1.0/", "cc-by-nc-nd-1.0"),
        ("ccbync", "cc-by-nc"),
        ("cc-by-ncx", "stated-cc-by-ncx"),
        ("CC BY license", "cc-by"),
        ("http://creativecommons.org/publicdomain/zero/1.0/", "cc-0-1.0"),
        ("https://creativecommons.org/publicdomain/mark/1.0/", "cc-mark-1.0"),
        ("CC0", "cc-0"),
        ("cc-0-1.0", "cc-0-1.0"),
        ("Apache-2.0", "apache-2.0"),
        ("MIT License", "mit-license"),
        ("Всё моё", "other"),
        ("Creative Commons Attribution 4.0 International", "cc-by-4.0"),
        ("Attribution 4.0 International", "cc-by-4.0"),
        ("Attribution-NonCommercial 4.0", "cc-by-nc-4.0"),
        ("Namensnennung - Nicht kommerziell - Keine Bearbeitungen 4.0", "cc-by-nc-nd-4.0"),
        ("Atribución-NoComercial-CompartirIgual 3.0 (CC)", "cc-by-nc-sa-3.0"),
        ("署名-非商业性使用 4.0", "cc-by-nc-4.0"),
        ("CC BY 4.0 NC", "cc-by-nc-4.0"),
        ("CC BY 4.0, not for commercial use", "cc-by-nc-4.0"),
        ("CC NC BY", "cc-by-nc"),
        ("CC-BY-NC4.0", "cc-by-nc-4.0"),
        ("CC BY 4.0 (text), CC BY-NC 4.0 (images)", "cc-by-nc-4.0"),
        ("CC BY 3.0 (text), CC BY 4.0 (images)", "cc-by"),
        ("CC BY 4.0, 2nd edition", "cc-by-4.0"),
        ("https://creativecommons.org/licenses/by%2Dnc/4.0/", "cc-by-nc-4.0"),
        ("https://creativecommons.org/licenses/by%252Dnc/4.0/", "cc-by-nc-4.0"),
        ("https://creativecommons.org/licenses/nc-sa/1.0/", "cc-nc-sa-1.0"),
        ("https://creativecommons.org/licenses/by/4.0/deed.sa", "cc-by-4.0"),
        ("CC BY&ndash;NC&nbsp;4.0", "cc-by-nc-4.0"),
        ("ＣＣ　ＢＹ－ＮＣ", "cc-by-nc"),
        ("C\u00adC BY-N\u200bC", "cc-by-nc"),
        ("cc_by_4_0", "cc-by-4.0"),
        ("not CC BY", "stated-not-cc-by"),
        ("CC BY 4.0 and GPL-3.0", "stated-cc-by-4.0-and-gpl-3.0"),
        ("© CC BY. All rights reserved", "stated-cc-by.-all-rights-reserve"),
        ("ODC-BY 1.0", "odc-by-1.0"),
        (" ", ""),
    ],
)
def test_licence_one_name_for_each_spelling(stated, name):
    assert licence_name(stated) == name


@pytest.mark.parametrize(
    "stated",
    [
        "CC BY 4.0, commercial use prohibited",
        "CC BY 4.0; commercial use requires permission",
        "CC BY 4.0 no AI training",
        "CC BY 4.0 for research use only",
        "CC BY 4.0 for personal use only",
        "CC BY 4.0 N.C.",
        "CC-BY-N-C-4.0",
        "CC BY-ΝС 4.0",
        "CC BY 4.0 (images)",
        "CC BY no changes allowed",
        "CC BY verbatim copies only",
        "Creative Commons Navngivelse-Ikkekommersiell 4.0 CC BY",
        "CC BY 4.0 ikke kommersiell",
        "CC BY 4.0 epäkaupallinen",
        "CC BY Gayriticari 4.0",
        "CC BY 4.0 Αναφορά-Μη εμπορική χρήση",
        "CC BY غير تجاري 4.0",
        "CC BY Phi thương mại 4.0",
        "CC BY Nemkereskedelmi 4.0",
        "CC BY 不可商用",
        "CC BY 禁止商业使用",
        "CC BY 商用不可",
        "CC BY 4.0 until 2020",
        "CC BY 4.0 is not granted",
        "CC-BY-like",
        "CC BY 40",
        "cc-by-4.0-gpl",
        "CC0 but all rights reserved",
        "cc-sampling-1.0",
        "§cc-plus",
        "CC BY 🅝🅒 4.0",
        "commercial use prohibited, CC-BY-4.0",
    ],
)
def test_licence_with_a_word_that_is_not_understood_is_granted_by_no_pattern(stated):
    name = licence_name(stated)
    assert name.startswith("stated-")
    assert len(name) <= 32
    for pattern in ("cc-by", "cc-by-*", "cc-*", "cc*", "c*", "*-4.0", "*cc-by*", "cc-0", "cc-0-*"):
        assert not granted(name, pattern)
    assert granted(name, name)
    assert granted(name, "*")


@pytest.mark.parametrize(
    ("stated", "name"),
    [
        ("This work is licensed under a Creative Commons Attribution 4.0 International License.",
         "cc-by-4.0"),
        ("Licensed under the Creative Commons Attribution-ShareAlike 3.0 Unported licence",
         "cc-by-sa-3.0"),
        ("Text is available under CC BY-SA 4.0", "cc-by-sa-4.0"),
        ("https://creativecommons.org/licenses/by/4.0/legalcode", "cc-by-4.0"),
        ("https://creativecommons.org/licenses/by/4.0/deed.zh-hans", "cc-by-4.0"),
        ("http://www.creativecommons.org/licenses/by/2.0/uk/", "cc-by-2.0"),
        ("CC0 1.0 Universal (CC0 1.0) Public Domain Dedication", "cc-0-1.0"),
        ("cc-mark-1.0", "cc-mark-1.0"),
        ("© CC BY 4.0", "cc-by-4.0"),
        ("SPDX-License-Identifier: CC-BY-4.0", "cc-by-4.0"),
        ("Creative Commons Attribution-NonCommercial-NoDerivatives 4.0 International License",
         "cc-by-nc-nd-4.0"),
        ("Creative Commons Namensnennung - Weitergabe unter gleichen Bedingungen 4.0 International",
         "cc-by-sa-4.0"),
        ("Licence Creative Commons Attribution - Partage dans les mêmes conditions 4.0",
         "cc-by-sa-4.0"),
        ("Licencia Creative Commons Reconocimiento 4.0 Internacional", "cc-by-4.0"),
        ("Creative Commons Attribuzione - Condividi allo stesso modo 4.0 Internazionale",
         "cc-by-sa-4.0"),
        ("Лицензия Creative Commons Атрибуция 4.0 Международная", "cc-by-4.0"),
        ("CC 署名 4.0 国际 许可协议", "cc-by-4.0"),
        ("クリエイティブ・コモンズ 表示 4.0 国際 ライセンス (CC BY 4.0)", "cc-by-4.0"),
    ],
)  # fmt: skip
def test_licence_words_that_restrict_nothing_may_stand_around_it(stated, name):
    assert licence_name(stated) == name


ALIEN = st.text(st.characters(categories=["Ll", "Lo"]), min_size=4, max_size=12).filter(
    lambda word: not set(folded(word).split()) <= _AROUND
)


@given(ALIEN)
def test_licence_with_any_unknown_word_is_not_freer_than_stated(word):
    assert not granted(licence_name(f"CC BY 4.0 {word}"), "cc-by")


BETWEEN = st.text(
    st.sampled_from("-_/,;:|+&. \t\n\xa0\xad\u200b\u2010\u2011\u2013\u2014\u2212\u3000")
)
GAPS = BETWEEN.filter(lambda s: s.strip("\xad\u200b")) | st.sampled_from(
    ["%2D", "%252D", "%20", "&nbsp;", "&#45;", " and ", ", ", " 4.0 ", "/4.0/"]
)


@given(st.lists(st.tuples(GAPS, st.sampled_from(["NC", "nd", "Sa"])), max_size=3), BETWEEN)
def test_licence_restriction_after_any_gap_is_in_its_name(limits, gap):
    """Passed over it would make the licence freer than it is."""
    said = {code.lower() for _, code in limits}
    name = licence_name(f"CC{gap}BY{''.join(map(''.join, limits))}")
    assert name.split("-")[1] == "by"
    assert said == set(name.split("-")) & {"nc", "nd", "sa"}
    for pattern in ("cc-by", "cc-by-*", "cc-by-**", "cc-b*", "cc-by-*0", "cc-by*4.0"):
        assert not (said and granted(name, pattern))


@pytest.mark.parametrize(
    "stated", ["cc " * 40_000, "by nc sa " * 20_000, "attribution " * 9_000, "%25" * 40_000]
)
def test_licence_of_a_long_statement_is_named(stated):
    """A search from each of its words would not end."""
    assert licence_name(stated)


def test_rights_licences_asked_for():
    link = "https://creativecommons.org/licenses/by/4.0/"
    batch = batch_of(
        {},
        {"license_link": link},
        {"license_hint": "cc-by-4.0"},
        {"license_link": link},
        {"license_link": "/terms"},
        licences=[None, None, None, "MIT", None],
    )
    stage = Rights(licences=("cc-by", "cc-0"))
    scores = checked_measure(stage, batch).scores
    assert scores["origin"].tolist() == [0, 2, 3, 1, 2]
    assert scores["licence"].tolist() == [b"", b"cc-by-4.0", b"cc-by-4.0", b"mit", b"terms"]
    assert judge(stage, batch) == [
        "unlicensed",
        "keep",
        "unlicensed",
        "other_licence",
        "other_licence",
    ]
    trusting = Rights(licences="cc-by", trust_links=True, unlicensed="keep")
    assert judge(trusting, batch)[:3] == ["keep", "keep", "keep"]
    assert judge(Rights(), batch) == ["keep"] * 5
    assert judge(Rights(licences="mit"), batch.slice(0, 0)) == []


@pytest.mark.parametrize(
    ("pattern", "kept"),
    [
        ("cc-by", ["CC BY", "CC BY 4.0"]),
        ("cc-by-4.0", ["CC BY 4.0"]),
        ("cc-by-nc-nd", ["CC BY-NC-ND 4.0"]),
        ("cc-*", ["CC BY", "CC BY 4.0", "CC BY-NC-ND 4.0", "CC0"]),
        ("cc-by-*", ["CC BY", "CC BY 4.0"]),
        ("cc-by*", ["CC BY", "CC BY 4.0"]),
        ("cc-by-nc-*", []),
        ("cc-by-**", ["CC BY", "CC BY 4.0"]),
        ("cc-by-*4.0", ["CC BY 4.0"]),
        ("cc-b*", ["CC BY", "CC BY 4.0"]),
        ("cc-by-nc-nd-*", ["CC BY-NC-ND 4.0"]),
        ("*-4.0", ["CC BY 4.0", "CC BY-NC-ND 4.0"]),
        ("mit", ["MIT"]),
    ],
)
def test_rights_pattern_takes_versions_and_no_other_licence(pattern, kept):
    stated = ["CC BY", "CC BY 4.0", "CC BY-NC-ND 4.0", "CC0", "MIT", "版权所有"]
    judged = judge(
        Rights(licences=pattern, unlicensed="keep"), batch_of(*[{}] * 6, licences=stated)
    )
    assert [s for s, reason in zip(stated, judged, strict=True) if reason == "keep"] == kept


@pytest.mark.parametrize(
    "metadata",
    [
        {"Robots": "noai"},
        {"X-Robots-Tag": ["index", "noai"]},
        {"robots": "noai; noimageai"},
        {"tdm-reservation": True},
        {"tdm-reservation": 1},
        {"TDM-Reservation": "1, 1"},
        {"tdm-reservation": ["0", "1"]},
        {"tdm-reservation": 1.0},
        {"tdm-reservation": "'1'; policy=x"},
        {"tdm-reservation": "１"},
        {"tdm-reservation": "\u200b1"},
        {"tdm-reservation": "&#49;"},
        {"tdm_reservation": "1"},
        {"x-robots-tag ": "noai"},
    ],
)
def test_rights_signals_in_any_spelling_count(metadata):
    assert judge(Rights(), batch_of(metadata)) == ["opt_out"]


@pytest.mark.parametrize("value", ["0", 0, False, None, "10", "0, 0", ""])
def test_rights_no_reservation_is_none(value):
    assert judge(Rights(), batch_of({"tdm-reservation": value})) == ["keep"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"opt_out": "ignore"}, "rights.opt_out: found 'ignore', expected drop or keep"),
        ({"unlicensed": True}, "rights.unlicensed"),
        ({"signals": ("noia",)}, "no signal 'noia'; did you mean 'noai'"),
        ({"licences": ("CC BY",)}, "expected a name like cc-by-4.0"),
        ({"licences": None}, "rights.licences: found None, expected a string or a list"),
        ({"trust_links": "no"}, "rights.trust_links"),
    ],
)
def test_rights_wrong_fields_are_named(fields, said):
    with pytest.raises(UsageError, match=said):
        Rights(**fields)
