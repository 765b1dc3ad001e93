"""Opt-out signals and licences: what counts as stated, and what a policy makes of it."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from gristmill.documents.errors import UsageError
from gristmill.documents.stage import checked_measure, checked_verdict
from gristmill.filters import Rights
from gristmill.filters.rights import SIGNALS, directives, licence_name


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
        ("cc-by-ncx", "cc-by-ncx"),
        ("CC BY license", "cc-by"),
        ("http://creativecommons.org/publicdomain/zero/1.0/", "cc-0-1.0"),
        ("https://creativecommons.org/publicdomain/mark/1.0/", "cc-mark-1.0"),
        ("CC0", "cc-0"),
        ("cc-0-1.0", "cc-0-1.0"),
        ("Apache-2.0", "apache-2.0"),
        ("MIT License", "mit-license"),
        ("Всё моё", "other"),
        (" ", ""),
    ],
)
def test_licence_one_name_for_each_spelling(stated, name):
    assert licence_name(stated) == name


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
    ],
)
def test_rights_wrong_fields_are_named(fields, said):
    with pytest.raises(UsageError, match=said):
        Rights(**fields)
