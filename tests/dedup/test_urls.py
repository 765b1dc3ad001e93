"""Documents of one URL: the newest stays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from gristmill.dedup import UrlDuplicates
from gristmill.dedup.urls import dates, plain_urls
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
        ("3 Feb 2024", 0),
        ("2024-02-03T04:05:06+01:00", 0),
        (None, 0),
    ],
)
def test_dates_iso_alone_count(date, digits):
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
