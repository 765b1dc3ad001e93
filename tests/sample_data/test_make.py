from __future__ import annotations

import re
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree
from resiliparse.parse.lang import detect_fast


@pytest.fixture(scope="module")
def remade(sample, load_sample, tmp_path_factory):
    out = tmp_path_factory.mktemp("remade")
    command = [sys.executable, str(sample.root / "make.py"), "--out", str(out)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return load_sample(out)


def test_remade_files_hold_what_the_committed_files_hold(sample, remade, gzip_members, jsonl_lines):
    for name in sample.facts["files"]:
        ours, theirs = sample.root / name, remade.root / name
        if name in sample.warc:
            contents = [
                [content for _, _, content in gzip_members(path.read_bytes())]
                for path in (ours, theirs)
            ]
            assert contents[0] == contents[1], name
        elif name.endswith(".parquet"):
            assert pq.read_table(ours).equals(pq.read_table(theirs)), name
        else:
            assert jsonl_lines(ours) == jsonl_lines(theirs), name


def test_remade_facts_are_the_same_but_for_offsets_in_packed_files(sample, remade):
    def without_offsets(facts: dict) -> dict:
        keep = dict(facts)
        for name in ("corrupt", "framing", "truncated"):
            packed = {"offset", "flipped", "length", "bytes"}
            keep[name] = {key: value for key, value in facts[name].items() if key not in packed}
        return keep

    assert without_offsets(remade.facts) == without_offsets(sample.facts)


def test_readme_states_every_file_and_its_documents(sample):
    text = (sample.root / "README.md").read_text(encoding="utf-8")
    for name, row in sample.facts["files"].items():
        assert re.search(rf"\| `{re.escape(name)}` \|.*\| {row['documents']} \|", text), name
    for name in sample.facts.keys() - {"format", "seed", "files", "languages"}:
        assert f"`{name}`" in text, name


def test_no_mail_phone_or_address_of_a_real_person(sample):
    whole = "\n".join(sample.texts.values())
    whole += "\n".join("\n".join(page.lines) for page in sample.pages.values())
    whole += "\n".join(str(row) for rows in sample.rows.values() for row in rows)
    mails = set(re.findall(r"[\w.+-]+@([\w-]+(?:\.[\w-]+)+)", whole))
    assert mails <= {"example.org", "example.com", "example.net"}
    planted = {row["value"] for row in sample.facts["personal_data"]}
    phones = set(
        re.findall(r"(?<![\w.-])(?:\+\d+ |\()?\d{2,4}\)?(?:[ -]\d{2,4}){1,4}(?![\w.-])", whole)
    )
    dates = re.compile(r"20\d\d-\d\d-\d\d")
    assert {phone for phone in phones if not dates.fullmatch(phone)} <= planted
    reserved = ("192.0.2.", "198.51.100.", "203.0.113.")
    hosts = re.findall(r"\b\d{1,3}(?:\.\d{1,3}){3}\b", whole)
    assert all(host.startswith(reserved) for host in hosts)
    sites = {host.rstrip(".") for host in re.findall(r"https?://([\w.-]+)", whole)}
    assert all(site.endswith(".example") for site in sites), sites


def test_extraction_gives_exact_duplicates_as_they_stand_elsewhere(sample):
    by_url = {
        record.url: record
        for name, rows in sample.warc.items()
        if name.startswith("web/")
        for record in rows
        if record.kind == "response"
    }
    seen = 0
    for group in sample.facts["exact_duplicates"]:
        for ref in group["members"]:
            if ref["file"] == "web":
                body = by_url[ref["id"]].body.partition(b"\r\n\r\n")[2]
                tree = HTMLTree.parse_from_bytes(body, "utf-8")
                assert extract_plain_text(tree, main_content=True) == sample.text(ref)
                seen += 1
    assert seen == 4


# Hindi is left out: this detector takes most Hindi, real pages too, for Nepali or Marathi.
@pytest.mark.parametrize("code", ["en", "de", "fr", "es", "ru", "zh", "ja", "ar"])
def test_language_detection_agrees_on_ordinary_pages(sample, code):
    facts = sample.facts
    skip = set(facts["spam"]) | {url for urls in facts["thin"].values() for url in urls}
    wrong, count = [], 0
    for name, languages in facts["languages"].items():
        short = "web" if name.startswith("web/") else name
        for item in languages.get(code, []):
            text = sample.texts[short, item].encode("utf-8", "replace").decode()
            if item in skip or len(text) < 200:
                continue
            count += 1
            wrong += [item] * (detect_fast(text)[0] != code)
    assert count >= 15
    assert wrong == []
