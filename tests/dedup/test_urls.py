"""Documents of one URL: the newest stays."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from gristmill.dedup import UrlDuplicates
from gristmill.dedup.urls import UNREAD, dates, plain_urls
from gristmill.documents.errors import UsageError


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("https://Example.org/A?b=C#part", "example.org/A?b=C"),
        ("http://example.org", "example.org"),
        ("http://example.org/", "example.org"),
        ("http://example.org:80/x/", "example.org/x/"),
        ("https://example.org:443", "example.org"),
        ("http://example.org:8080/", "example.org:8080"),
        ("http://example.org/?q=http://other.org/#x", "example.org/?q=http://other.org/"),
        ("//example.org/a\nb", "//example.org/a\nb"),
        ("Report-A.PDF", "Report-A.PDF"),
        ("Data/Report.txt#page=2", "Data/Report.txt"),
        ("urn:isbn:Abc", "urn:isbn:Abc"),
        ("", ""),
        (None, ""),
    ],
)
def test_plain_urls(url, plain):
    assert plain_urls(pa.array([url], pa.string())).to_pylist() == [plain]


@pytest.mark.parametrize(
    ("date", "digits"),
    [
        ("2024-02-03T04:05:06Z", 20240203040506),
        ("2024-02-03", 20240203000000),
        ("2024-02-03 04:05:06.789", 20240203040506),
        ("2024-02-03T04:05:06+01:00", 20240203030506),
        ("2024-06-01T00:00:00+00:00", 20240601000000),
        ("2024-06-01T01:30:00.123456789-0230", 20240601040000),
        ("2024-06-01T00:00:00.5+00:00", 20240601000000),
        ("2024-06-01t00:00:00z", 20240601000000),
        ("2024-06-01 00:00:00 UTC", 20240601000000),
        ("2024-06", 20240601000000),
        ("2024", 20240101000000),
        ("20240601", 20240601000000),
        ("20240601123456", 20240601123456),
        ("1717200000", 20240601000000),
        ("1012010112", 20020126015512),
        ("1717200000123", 20240601000000),
        ("1717200000.75", 20240601000000),
        ("Sat, 01 Jun 2024 02:00:00 GMT", 20240601020000),
        ("Sat, 1 Jun 2024 02:00:00 +0200", 20240601000000),
        ("2024-13-01", UNREAD),
        ("2024-06-01T25:00:00", UNREAD),
        ("last Tuesday", UNREAD),
        ("Thu, 99 Foo 2024", UNREAD),
        ("0001-01-01T00:00:00+10:00", UNREAD),
        ("12345", UNREAD),
        (" ", 0),
        (None, 0),
    ],
)
def test_dates_are_read_in_utc_or_told_apart(date, digits):
    assert dates(pa.array([date], pa.string())).tolist() == [digits]


def test_url_newest_is_kept_whatever_else(corpus, doc, key):
    url = "http://a.example/page"
    docs = [
        doc(text="old but long and good", url=url, date="2023-01-01", priority=0, quality=9),
        doc(text="new", url="https://a.example/page#top", date="2024-01-01", priority=3),
        doc(text="undated", url=url),
        doc(text="elsewhere", url="http://a.example/Page", date="2022-01-01"),
        doc(text="no address"),
        doc(text="no address either"),
    ]
    for seed in range(3):
        found = corpus(docs, seed).decide(UrlDuplicates(), partitions=2)
        assert {p[1]: r["code"] for p, r in found.items()} == {key(0): 1, key(1): 0, key(2): 1}
        assert found["shard", key(0)]["witness_id"] == key(1)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("2023-01-01", "2024-06-01T00:00:00+00:00"),
        ("2024-06-01T00:30:00+01:00", "2024-06-01T00:00:00Z"),  # 23:30 the day before, in UTC
        ("2024-05-31", "2024-06"),
        ("2024-05-31T23:59:59.9+00:00", "1717200000"),
        ("Fri, 31 May 2024 23:00:00 GMT", "2024-06-01"),
        ("the other day", "1999-01-01"),
    ],
)
def test_url_newest_is_kept_however_its_date_is_written(corpus, doc, key, older, newer):
    url = "http://a.example/"
    docs = [doc(text="the longer of both", url=url, date=older), doc(text="x", url=url, date=newer)]
    found = corpus(docs).decide(UrlDuplicates())
    assert [found["shard", key(i)]["code"] for i in range(2)] == [1, 0]


def test_url_survey_tells_a_date_that_it_cannot_read():
    batch = pa.record_batch(
        {
            "text": pa.array(["", "", ""], pa.large_string()),
            "url": pa.array(["http://c.example/"] * 3, pa.string()),
            "date": pa.array(["2024", "one day", None], pa.string()),
        }
    )
    found = UrlDuplicates().survey.measure(batch)
    assert found.scores["date"].tolist() == [20240101000000, UNREAD, 0]
    assert found.evidence.rows.tolist() == [1]
    assert [json.loads(n) for n in found.evidence.notes] == [{"date_not_read": "one day"}]


def test_url_same_date_goes_by_representative_order(corpus, doc, key):
    docs = [doc(text="short", url="http://b.example/"), doc(text="longer", url="http://b.example")]
    found = corpus(docs).decide(UrlDuplicates())
    assert [found["shard", key(i)]["code"] for i in range(2)] == [1, 0]


def test_url_survey_needs_no_text():
    batch = pa.record_batch(
        {"text": pa.array([""], pa.large_string())}
        | {n: pa.array([v], pa.string()) for n, v in (("url", "http://c.example/"), ("date", None))}
    )
    assert UrlDuplicates().survey.measure(batch).scores["hash"].any()
    assert UrlDuplicates().survey.needs_text is False
    with pytest.raises(UsageError, match="unknown scope 'crawls'; did you mean 'crawl'"):
        UrlDuplicates(scope="crawls")
    assert np.dtype(np.int64) == dates(pa.array([], pa.string())).dtype
