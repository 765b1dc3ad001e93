"""Block lists: every form of a host that means a listed one, and every form of a list."""

# ruff: noqa: RUF001 - look-alike characters are what is tested

from __future__ import annotations

import gzip
import hashlib
import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.documents.errors import UsageError
from gristmill.documents.fingerprint import measure_fingerprint
from gristmill.documents.stage import checked_measure, checked_verdict
from gristmill.filters import Url
from gristmill.filters._hosts import host_of, hosts, key_of, parents
from gristmill.filters._lists import url_keys


def batch_of(*urls, hosts=None) -> pa.RecordBatch:
    columns = {
        "text": pa.array(["" for _ in urls], pa.large_string()),
        "url": pa.array(urls, pa.string()),
        "host": pa.array(hosts or [None for _ in urls], pa.string()),
    }
    return pa.record_batch(columns)


def judge(stage, *urls, **more) -> list[str]:
    batch = batch_of(*urls, **more)
    scores = checked_measure(stage, batch).scores
    return [stage.reasons[c] for c in checked_verdict(stage, scores, batch.num_rows)]


@pytest.fixture(name="write")
def write_fixture(tmp_path):
    def write(name: str, text: str | bytes):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


LISTED = (
    "http://bad.example/",
    "https://www.bad.example/page?x=1#y",
    "http://a.b.bad.example",
    "HTTP://BAD.Example:8080/",
    "http://user:pa@ss@bad.example/",
    "http://bad.example./",
    "//bad.example/x",
    "bad.example/x",
    "  http://bad.example/x",
    "http://b%61d.example/",
    "http:\\\\bad.example\\x",
    "http://bücher.example/",
    "http://xn--bcher-kva.example/",
    "http://BÜCHER。example/",
    "http://93.184.215.14:80/x",
    "http://[2001:DB8::1]:80/x",
)
FREE = (
    "http://notbad.example/",
    "http://bad.example.com/",
    "http://example/",
    "http://good.example/bad.example",
    "http://good.example/?u=http://bad.example/",
    "http://good.example/#@bad.example",
    "http://bad.example@good.example/",
    "http://4.93.184.215/",
    "mailto:someone",
    "",
    None,
)


def test_url_every_spelling_of_a_listed_host_is_found(write):
    path = write("hosts", "bad.example\nbücher.example\n93.184.215.14\n[2001:db8::1]\n")
    stage = Url(domains=path)
    assert judge(stage, *LISTED) == ["listed_domain"] * len(LISTED)
    assert judge(stage, *FREE) == ["keep"] * len(FREE)
    assert judge(stage, None, None, hosts=["x.bad.example", "good.example"]) == [
        "listed_domain",
        "keep",
    ]


def test_url_hosts_file_comments_adblock_and_wildcards(write):
    text = (
        "# a list\n! another comment\n[Adblock Plus 2.0]\n127.0.0.1 localhost\n::1 localhost\n"
        "0.0.0.0 one.example two.example # both\n||three.example^\n||four.example^$third-party\n"
        "*.five.example\n.six.example\nhttp://seven.example/\nEight.Example.\n"
    )
    stage = Url(domains=write("hosts.gz", gzip.compress(text.encode())))
    names = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
    assert judge(stage, *(f"http://www.{n}.example/" for n in names)) == ["listed_domain"] * 8
    assert judge(stage, "http://localhost/", "http://example/") == ["keep", "keep"]


def test_url_folder_of_categories_gives_domains_and_urls(write, tmp_path):
    write("ut/adult/domains", "adult.example\n")
    write(
        "ut/adult/urls", "free.example/adult\nwww.free.example/one/two.html\nfree.example/q?x=1\n"
    )
    write("ut/games/domains", "games.example\n")
    write("ut/games/urls", "")
    stage = Url(domains=tmp_path / "ut")
    urls = (
        "http://x.adult.example/",
        "http://games.example/x",
        "http://free.example/adult/page?q=1",
        "https://www.free.example/adult",
        "http://free.example/adultery",
        "http://free.example/one/two.html?x",
        "http://free.example/one/",
        "http://free.example/q?x=2",
        "http://www.free.example/%71?x=1#top",
    )
    assert judge(stage, *urls) == ["listed_domain"] * 2 + ["listed_url"] * 2 + [
        "keep",
        "listed_url",
        "keep",
        "keep",
        "listed_url",
    ]
    measured = checked_measure(stage, batch_of(*urls))
    notes = dict(zip(measured.evidence.rows.tolist(), measured.evidence.notes, strict=True))
    assert json.loads(notes[0]) == {"domain": "adult.example", "list": "adult/domains"}
    assert json.loads(notes[2])["url_list"] == "adult/urls"
    assert 4 not in notes


def test_url_hashed_list_finds_the_hosts_it_hides(write):
    hidden = "".join(f"{key_of(h):016x}\n" for h in ("bad.example", "worse.example"))
    stage = Url(hashes=write("hashes", "# BLAKE2b-64\n" + hidden))
    assert judge(stage, "http://x.worse.example/", "http://good.example/") == [
        "listed_domain",
        "keep",
    ]
    digest = hashlib.blake2b(b"bad.example", digest_size=8).hexdigest()
    assert f"{key_of('bad.example'):016x}" == digest  # what anyone can make


def test_url_words_hard_soft_and_inside(write):
    stage = Url(
        words=write("hard", "casino\nпорно\n"),
        soft_words=write("soft", "girls\nhot\nlive\n"),
        subwords=write("sub", "xxvid\nxxvideo\nporn\n"),
        soft_limit=2,
    )
    cases = {
        "http://a.example/best-Casino-x": "word",
        "http://a.example/casinos": "keep",
        "http://a.example/%D0%BF%D0%BE%D1%80%D0%BD%D0%BE": "word",
        "http://hot.example/girls": "soft_words",
        "http://hot.example/hot/hot": "keep",
        "http://myp0rn.example/": "keep",
        "http://a.example/p-o-r-n": "subword",
        "http://axxvideos.example/": "subword",
    }
    assert judge(stage, *cases) == list(cases.values())
    lenient = Url(words=stage.words, soft_words=stage.soft_words, soft_limit=3)
    assert measure_fingerprint(lenient) == measure_fingerprint(
        Url(words=stage.words, soft_words=stage.soft_words)
    )
    assert judge(lenient, "http://hot.example/girls", "http://hot.example/live-girls") == [
        "keep",
        "soft_words",
    ]


def test_url_missing_address_dropped_only_when_asked():
    assert judge(Url(need_url=True), None, "", "http://a.example") == ["no_url", "no_url", "keep"]
    assert judge(Url(), None) == ["keep"]
    empty = batch_of().slice(0, 0)
    assert checked_measure(Url(), empty).scores["host"].shape == (0,)


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("domains", "", "is empty"),
        ("domains", "casino\npoker\nslots\n", "3 of 3 lines are not hosts"),
        ("domains", b"\x1f\x8b\x08garbled", "not UTF-8"),
        ("domains", "<html><body>Not found</body></html>", "1 of 1 lines are not hosts"),
        ("hashes", "bad.example\n", "not 16 hex digits"),
        ("words", "two words\n", "not one word"),
        ("urls", "bad.example\n", "not URLs with a path"),
    ],
)
def test_url_bad_list_is_an_error_that_names_it(write, field, text, said):
    stage = Url(**{field: write("list.txt", text)})
    with pytest.raises(UsageError, match=rf"url.{field}: .*list.txt.*{said}"):
        stage.load()


def test_url_few_garbled_lines_are_said_and_passed_over(write):
    good = "".join(f"h{i}.example\n" for i in range(30))
    stage = Url(domains=write("list.txt", good + "what is this\n"))
    assert stage.load() == (
        "list.txt: 1 of 31 lines are not hosts, first line 31",
        "30 hosts, 0 URLs",
    )


def test_url_missing_files_and_folders_are_named(tmp_path):
    with pytest.raises(UsageError, match=r"url.domains: no file or folder .*nowhere"):
        Url(domains=tmp_path / "nowhere")
    with pytest.raises(UsageError, match="no file called `domains` or `urls`"):
        Url(domains=tmp_path).load()
    with pytest.raises(UsageError, match=r"url.soft_limit"):
        Url(soft_limit=0)


@given(st.text(max_size=60))
def test_host_of_any_text_is_stable(text):
    host = host_of(text)
    assert host == host.strip(".")
    if host and not host.startswith("["):
        assert all(part and host.endswith(part) for part in parents(host))


@given(st.lists(st.one_of(st.none(), st.text(max_size=40)), max_size=8))
def test_url_any_text_as_address_is_measured(urls):
    checked_measure(Url(), batch_of(*urls))


@pytest.mark.parametrize(
    "url",
    [
        "http://site.org/./bad/",
        "http://site.org/x/../bad/a",
        "http://site.org/bad\n",
        "http:/site.org/bad",
        "HTTPS:site.org/bad",
        "http://site.org\\bad\\a",
    ],
)
def test_url_keys_as_browsers_read_it(url):
    assert "site.org/bad" in url_keys(url)
    assert hosts(pa.record_batch({"url": pa.array([url])}))[1] == ["site.org"]
