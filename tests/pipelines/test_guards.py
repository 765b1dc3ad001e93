"""Stages that read files, in a run: errors before any work, and what a changed list makes anew."""

from __future__ import annotations

import json

import pytest

ITEM = "how many loaves does the baker of quillbrook sell before noon on a rainy market day"
RECIPE = """
name: guards
sources:
  pages:
    paths: [pages.jsonl]
    converter: plain
    stages:
      - url: {domains: lists/hosts, words: lists/words}
      - rights
      - decontaminate: {files: items.jsonl, policy: cut}
      - pii
shared: [{host_cap: {at_most: 2}}]
"""


@pytest.fixture(name="recipe")
def recipe_fixture(tmp_path):
    pages = [
        {"id": str(i), "text": f"page {i} of the host, mail x{i}@y.com {ITEM}? end " * 2}
        | {"url": f"http://{host}.example/{i}"}
        for i, host in enumerate(["good", "bad", "good", "good", "casino-x", "other"])
    ]
    pages[5]["robots"] = "noai"
    (tmp_path / "pages.jsonl").write_text("".join(json.dumps(p) + "\n" for p in pages))
    (tmp_path / "items.jsonl").write_text(json.dumps({"id": "q1", "question": ITEM}) + "\n")
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "hosts").write_text("0.0.0.0 bad.example\n")
    (tmp_path / "lists" / "words").write_text("casino\n")
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    return tmp_path / "recipe.yaml"


def test_run_with_lists_books_what_they_do_and_follows_their_contents(mill, recipe):
    out = recipe.parent / "run"
    done = mill.command("run", recipe, "--out", out, "--workers", 1)
    assert done.returncode == 0, done.stderr
    assert "url: 1 hosts, 0 URLs" in done.stderr
    assert "decontaminate: 1 of 1 items are looked for" in done.stderr
    assert "2 of 6 documents left" in done.stderr
    told = mill.command("ledger", out, "--by", "stage,reason", "--format", "json")
    rows = {(r["stage"], r["reason"]): r for r in json.loads(told.stdout)}
    dropped = {k: r["documents_dropped"] for k, r in rows.items() if r["documents_dropped"]}
    assert dropped == {
        ("url", "listed_domain"): 1,
        ("url", "word"): 1,
        ("rights", "opt_out"): 1,
        ("host_cap", "over_host_cap"): 1,
    }
    assert rows["pii", "email"]["bytes_stripped"] > 0
    assert rows["decontaminate", "evaluation_item"]["bytes_stripped"] > 0
    assert mill.command("verify", out).returncode == 0
    why = mill.command("why", out, "http://good.example/0", "--json").stdout
    assert '"q1"' in why
    again = mill.command("run", recipe, "--out", out, "--workers", 1)
    assert "pass-base: " not in again.stderr  # all is there
    (recipe.parent / "lists" / "hosts").write_text("0.0.0.0 bad.example\nother2.example\n")
    third = mill.command("run", recipe, "--out", out, "--workers", 1)
    assert "pass-base: 1 made" in third.stderr


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("lists/hosts", None, "no file or folder"),
        ("lists/words", "", "lists/words: is empty"),
        ("items.jsonl", '{"frage": "x"}\n', "items.jsonl:1: none of the known fields"),
    ],
)
def test_run_with_a_bad_list_says_so_before_any_work(mill, recipe, name, text, said):
    path = recipe.parent / name
    path.unlink() if text is None else path.write_text(text)
    done = mill.command("run", recipe, "--out", recipe.parent / "run", "--workers", 1)
    assert done.returncode == 2
    assert said in done.stderr
    assert not (recipe.parent / "run").exists()
