from __future__ import annotations

import hashlib
import json
import re
from collections import Counter

import pytest


def shingles(text: str) -> set[tuple[str, ...]]:
    """Word 5-grams; a word is a lower-cased run of ASCII alphanumerics or non-ASCII letters."""
    words = re.findall(r"(?:[0-9a-z]|(?![\x00-\x7f_])[^\W\d_])+", text.lower())
    return set(zip(*(words[at:] for at in range(5)), strict=False))


def overlap(left: str, right: str) -> tuple[int, int]:
    a, b = shingles(left), shingles(right)
    return len(a & b), len(a | b)


def rendered(run: dict) -> str:
    parts = []
    for message in run["messages"]:
        parts.append(message["content"])
        parts += [call["function"]["arguments"] for call in message.get("tool_calls", [])]
    return "\n".join(parts)


def test_files_hold_the_documents_that_the_facts_count(sample):
    facts = sample.facts
    for name, row in facts["files"].items():
        if name in sample.warc:
            kinds = Counter(record.kind for record in sample.warc[name])
            broken = name.endswith("pages-00002.warc.gz")  # one response does not inflate
            assert kinds == Counter(row["records"]) - Counter(response=int(broken)), name
        if name in facts["languages"]:
            names = [item for items in facts["languages"][name].values() for item in items]
            assert len(names) == len(set(names)) == row["documents"]
            short = "web" if name.startswith("web/") else name
            assert all((short, item) in sample.texts for item in names), name
        else:
            assert len(sample.rows[name]) == row["documents"], name


def test_web_every_page_has_a_record_of_its_facts_and_no_other(sample):
    listed = {
        url
        for name, languages in sample.facts["languages"].items()
        for urls in languages.values()
        for url in urls
        if name.startswith("web/")
    }
    assert listed == set(sample.pages)
    hosts = Counter(url.split("/")[2] for url in listed)
    assert len(hosts) == 12
    assert all(host.endswith(".example") and count >= 20 for host, count in hosts.items())
    for name in sorted(sample.warc)[:3]:
        urls = sample.facts["languages"][name]["en"]
        assert max(Counter(url.split("/")[2] for url in urls).values()) >= 5, name


def test_volume_languages_and_length(sample):
    documents = sum(row["documents"] for row in sample.facts["files"].values())
    assert 600 <= documents <= 1000
    assert 1_500_000 <= sum(map(len, sample.texts.values())) <= 4_000_000
    codes = {code for languages in sample.facts["languages"].values() for code in languages}
    assert codes == {"en", "de", "fr", "es", "ru", "zh", "ja", "ar", "hi"}
    books = sample.rows["books/books.jsonl.zst"]
    lengths = sorted(len(row["text"].split()) for row in books)
    assert len([length for length in lengths if length >= 20_000]) >= 5
    assert lengths[-1] >= 60_000


def test_exact_duplicates_are_the_same_text_in_several_files(sample):
    groups = sample.facts["exact_duplicates"]
    for group in groups:
        for ref in group["members"]:
            digest = hashlib.sha256(sample.text(ref).encode()).hexdigest()
            assert digest == group["sha256"], ref
    files = {frozenset(ref["file"].split("/")[0] for ref in group["members"]) for group in groups}
    assert {"web", "wet", "books"} in files
    assert {"encyclopedia", "books"} in files


def test_near_duplicates_have_the_stated_jaccard(sample):
    pairs = sample.facts["near_duplicates"]
    for pair in pairs:
        counts = overlap(sample.text(pair["a"]), sample.text(pair["b"]))
        assert counts == (pair["shared"], pair["either"]), pair
        assert pair["jaccard"] == round(counts[0] / counts[1], 4)
        if "level" in pair:
            assert abs(100 * pair["jaccard"] - pair["level"]) < 3, pair
    levels = Counter((pair["a"]["file"], pair["level"]) for pair in pairs if "level" in pair)
    assert len(levels) == 12
    chain = [pair["jaccard"] for pair in pairs if "level" not in pair]
    assert chain[0] > 0.8
    assert chain[1] > 0.8
    assert chain[2] < 0.8


def test_page_copies_share_the_article_and_add_what_stands_around_it(sample):
    for pair in sample.facts["page_copies"]:
        article, page = sample.text(pair["a"]), sample.text(pair["b"])
        assert overlap(article, page) == (pair["shared"], pair["either"]), pair
        assert all(block in page for block in article.split("\n\n"))
        assert pair["jaccard"] > 0.8


def test_unrelated_documents_share_little(sample):
    facts = sample.facts
    skip = {ref["id"] for group in facts["exact_duplicates"] for ref in group["members"]}
    pairs = facts["near_duplicates"] + facts["page_copies"]
    skip |= {ref["id"] for pair in pairs for ref in (pair["a"], pair["b"])}
    skip |= {url for row in facts["templates"] for url in row["pages"]}
    skip |= set(facts["spam"]) | {url for urls in facts["thin"].values() for url in urls}
    sets = {
        key: shingles(text)
        for key, text in sample.texts.items()
        if key[1] not in skip and key[0].startswith(("web", "wet", "encyclopedia"))
    }
    seen: dict[tuple, list] = {}
    for key, grams in sets.items():
        for gram in grams:
            seen.setdefault(gram, []).append(key)
    shared: Counter = Counter()
    for keys in seen.values():
        if len(keys) < 40:
            shared.update((a, b) for i, a in enumerate(keys) for b in keys[i + 1 :])
    (a, b), most = max(
        shared.items(), key=lambda item: item[1] / len(sets[item[0][0]] | sets[item[0][1]])
    )
    assert most / len(sets[a] | sets[b]) < 0.25, (a, b)


def test_boilerplate_lines_stand_on_every_page_of_their_host(sample):
    for row in sample.facts["boilerplate"]:
        pages = [page for url, page in sample.pages.items() if url.split("/")[2] == row["host"]]
        # Pages of the truncated file come on top; the one with the flipped byte is missing.
        late = sum(url.split("/")[2] == row["host"] for url in sample.facts["truncated"]["survive"])
        lost = sample.facts["corrupt"]["url"].split("/")[2] == row["host"]
        assert len(pages) == row["pages"] + late - lost, row
        assert all(row["line"] in page.lines for page in pages), row
    places = Counter(row["place"] for row in sample.facts["boilerplate"])
    assert set(places) == {"cookie", "header", "nav", "footer", "article"}


def test_templates_filled_with_the_slots_give_the_pages(sample):
    assert len(sample.facts["templates"]) == 3
    for row in sample.facts["templates"]:
        for url, slots in row["pages"].items():
            want = [line.format_map(slots) for line in row["lines"]]
            blocks = sample.pages[url].blocks
            assert blocks[: len(want)] == want, url
            assert len(blocks) - len(want) == (url in row["with_own_text"]), url
        assert len(row["pages"]) == 40
        assert len(row["with_own_text"]) == 4


def test_spam_says_few_words_again_and_again(sample):
    assert len(sample.facts["spam"]) == 24
    for url in sample.facts["spam"]:
        words = sample.texts["web", url].split()
        assert len(set(words)) * 10 < len(words), url


def test_thin_pages_are_what_they_are_listed_as(sample):
    thin = sample.facts["thin"]
    assert {kind: len(urls) for kind, urls in thin.items()} == dict.fromkeys(thin, 6)
    assert all(len(sample.texts["web", url].split()) < 30 for url in thin["stub"])
    assert all("Lorem ipsum" in sample.texts["web", url] for url in thin["filler"])
    for url in thin["bullets"]:
        assert all(block.startswith("•") for block in sample.pages[url].blocks[1:])


def test_personal_data_stands_in_the_stated_pages_and_nowhere_else(sample):
    rows = sample.facts["personal_data"]
    assert Counter(row["kind"] for row in rows) == {"email": 3, "phone": 5, "ip": 4}
    for row in rows:
        found = {key for key, text in sample.texts.items() if row["value"] in text}
        assert found == {(row["file"], row["id"])}, row


def test_benchmark_questions_are_pasted_as_stated(sample):
    def bare(text: str) -> str:
        return " ".join(re.findall(r"[a-z0-9]+", text.lower()))

    items = {row["id"]: row for row in sample.rows["benchmark.jsonl"]}
    leaked = sample.facts["benchmark"]
    assert len(leaked) == 4
    for row in leaked:
        assert bare(items[row["item"]]["question"]) in bare(sample.text(row)), row
    clean = set(items) - {row["item"] for row in leaked}
    whole = bare("\n".join(sample.texts.values()))
    assert not [name for name in clean if bare(items[name]["question"]) in whole]
    short = items["sample-02"]["question"]
    assert len(short.split()) < 13


def test_encodings_are_as_declared(sample):
    by_url = {record.url: record for rows in sample.warc.values() for record in rows
              if record.kind == "response"}  # fmt: skip
    for row in sample.facts["encodings"]:
        head, _, body = by_url[row["url"]].body.partition(b"\r\n\r\n")
        assert (f"charset={row['charset']}" in head.decode()) == (row["declared_in"] == "header")
        for name in ("content_encoding", "transfer_encoding"):
            header = name.replace("_", "-").title()
            assert (f"{header}: {row[name]}\r\n" in head.decode() + "\r\n") == bool(row[name])
        if row["charset"] != "utf-8" and not row["transfer_encoding"]:
            with pytest.raises(UnicodeDecodeError):
                body.decode()


def test_responses_that_are_no_documents_are_listed(sample):
    for row in sample.facts["not_documents"]:
        record = next(
            record
            for record in sample.warc[row["file"]]
            if record.url == row["url"] and record.kind == "response"
        )
        assert f"HTTP/1.1 {row['status']} ".encode() in record.body
        assert row["url"] not in sample.pages
        assert f"Content-Type: {row['type']}\r\n".encode() in record.body


def test_agent_runs_outcomes_and_near_identical_pairs(sample):
    runs = {row["id"]: row for row in sample.rows["agent/trajectories.jsonl.gz"]}
    facts = sample.facts["agent_runs"]
    assert Counter(run["outcome"] for run in runs.values()) == facts["outcomes"]
    assert len(facts["near_identical"]) == 10
    for pair in facts["near_identical"]:
        counts = overlap(rendered(runs[pair["a"]]), rendered(runs[pair["b"]]))
        assert counts == (pair["shared"], pair["either"])
        assert pair["jaccard"] > 0.85


def test_agent_runs_are_well_formed(sample):
    for run in sample.rows["agent/trajectories.jsonl.gz"]:
        roles = [message["role"] for message in run["messages"]]
        assert roles[:3] == ["system", "user", "assistant"]
        open_calls: set[str] = set()
        for message in run["messages"]:
            for call in message.get("tool_calls", []):
                assert call["function"]["name"] in run["tools"]
                assert isinstance(json.loads(call["function"]["arguments"]), dict)
                open_calls.add(call["id"])
            if message["role"] == "tool":
                open_calls.remove(message["tool_call_id"])
        assert not open_calls
