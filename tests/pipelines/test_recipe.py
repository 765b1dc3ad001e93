"""Recipes: what is right parses; what is wrong is one line that names the field and the nearest."""

from __future__ import annotations

import pytest

from gristmill.documents.errors import UsageError
from gristmill.pipelines.recipe import GlobalUse, load_recipe, parse_bytes, parse_recipe

GOOD = """
name: small
sources:
  a: {paths: ["a/*.jsonl"], converter: plain, stages: [{gopher_quality: {min_words: 5}}]}
  b: {paths: "b.jsonl", converter: plain, removal_cap: 1}
shared: [exact_duplicates, {near_duplicates: {threshold: "0.7", sources: [a]}}]
"""


def parse(text, tmp_path):
    return parse_recipe(text, folder=tmp_path, root=None, where="r.yaml")


def test_parse_recipe_good_recipe_builds_stages(tmp_path):
    recipe = parse(GOOD, tmp_path)
    assert [s.name for s in recipe.sources] == ["a", "b"]
    assert [s.priority for s in recipe.sources] == [0, 1]
    assert recipe.source("a").stages[0].min_words == 5
    uses = [e for e in recipe.shared if isinstance(e, GlobalUse)]
    assert [u.sources for u in uses] == [("a", "b"), ("a",)]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sources:", "sorces:", r"no key 'sorces'; did you mean 'sources'\?"),
        ("paths: [", "path: [", r"sources\.a: no key 'path'; did you mean 'paths'\?"),
        ("gopher_quality", "gopher_qualty", r"no stage 'gopher_qualty'; did you mean 'gopher_qual"),
        ("min_words", "min_word", r"gopher_quality: no field 'min_word'; did you mean 'min_words"),
        ("min_words: 5", "min_words: five", r"min_words: expected a whole number, found 'five'"),
        ("converter: plain, s", "converter: plan, s", r"no converter 'plan'; did you mean 'plain'"),
        ("exact_duplicates", "exact_duplicate", r"did you mean 'exact_duplicates'"),
        ("sources: [a]", "sources: [c]", r"near_duplicates\.sources: no source 'c'"),
        ("removal_cap: 1", "removal_cap: 2", r"removal_cap: expected a share from 0 to 1, found 2"),
        ("  a:", "  A b:", r"a source's name is made of a-z"),
        ('["a/*.jsonl"]', "[]", r"sources\.a\.paths: expected a path"),
        ("name: small", "format: 7", r"format 7, this version reads 1"),
        ("name: small", "name: [", "not YAML"),
        ("name: small", "root: nowhere", r"no folder .*nowhere; state it with --root"),
        (
            "shared: [",
            "shared: [gopher_quality, ",
            r"source 'a' meets stage 'gopher_quality' twice",
        ),
        ("min_words: 5", "stop_languages: [5]", "stop_languages: expected a list of names, found"),
        ("min_words: 5", "stop_languages: [[eng]]", r"a list of names, found \['eng'\]"),
        ("min_words: 5", "min_words: null", "min_words: expected a whole number, found nothing"),
        ("min_words: 5", "as_datatrove: 1", "as_datatrove: expected true or false, found 1"),
        ("gopher_quality: {min_words: 5}", "language: {model: []}", "model: expected one path"),
        ("gopher_quality: {min_words: 5}", "language: {keep: [5]}", "keep: expected a list of"),
        ("gopher_quality: {min_words: 5}", "language: {samples: 1073741824}", "1 to 1000 of at"),
        ("gopher_quality: {min_words: 5}", "rights: {signals: [5]}", "signals: expected a list of"),
        ("gopher_quality: {min_words: 5}", "c4: {javascript: [5]}", "javascript: expected a list"),
        ("gopher_quality: {min_words: 5}", "quality: {heads: [5]}", "heads: expected a list of"),
        (
            "gopher_quality: {min_words: 5}",
            "quality: {heads: edu, drop_labels: [kind: shop]}",
            r"drop_labels: expected a list of names, found .*; a text with a colon needs quotes",
        ),
        ("gopher_quality: {min_words: 5}", "decontaminate: {fields: [null]}", "names, found nothi"),
        ("gopher_quality: {min_words: 5}", "decontaminate: {fields: [q, '']}", "names, found ''"),
        ("gopher_quality: {min_words: 5}", "decontaminate: {ngram: 1000000000}", "ngram: found"),
        ("exact_duplicates,", "host_cap: {sources: [5]},", r"host_cap\.sources: no source 5"),
        ("exact_duplicates,", "host_cap: {sources: 5},", r"host_cap\.sources: no source 5"),
        ("exact_duplicates,", "host_cap: {at_most: null},", "whole number, found nothing"),
        ("exact_duplicates,", "host_cap: {at_most: 1000000000000},", "from 1 to 2147483647"),
        ("exact_duplicates,", "repeated_paragraphs: {at_most: 0},", "from 1 to 2147483647"),
        ("name: small", "memory: lots", r"memory: expected bytes like `256 MiB`"),
    ],
)
def test_parse_recipe_mistake_is_one_line_that_names_it(tmp_path, old, new, message):
    assert old in GOOD
    with pytest.raises(UsageError, match=message) as caught:
        parse(GOOD.replace(old, new, 1), tmp_path)
    assert "\n" not in str(caught.value).split("not YAML")[0]
    assert caught.value.exit_code == 2


def test_parse_recipe_one_name_is_a_list_of_one(tmp_path):
    stage = "language: {keep: eng_Latn}"
    recipe = parse(GOOD.replace("gopher_quality: {min_words: 5}", stage), tmp_path)
    assert recipe.source("a").stages[0].keep == ("eng_Latn",)
    uses = parse(GOOD.replace("[a]}}", "a}}"), tmp_path).shared
    assert uses[1].sources == ("a",)


def test_parse_recipe_two_models_where_one_is_asked_refused(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).touch()
    text = GOOD.replace("gopher_quality: {min_words: 5}", "language: {model: [one, two]}")
    with pytest.raises(UsageError, match=r"language\.model: expected one path, found 2"):
        parse(text, tmp_path)


def test_load_recipe_missing_file_names_the_nearest(tmp_path):
    (tmp_path / "demo.yaml").write_text(GOOD)
    with pytest.raises(UsageError, match=r"did you mean 'demo\.yaml'"):
        load_recipe(tmp_path / "dmeo.yaml")


def test_identity_formatting_and_comments_do_not_matter(tmp_path):
    same = "# comment\n" + GOOD.replace("name: small", 'name:   "small"')
    assert parse(GOOD, tmp_path).identity == parse(same, tmp_path).identity
    other = GOOD.replace("min_words: 5", "min_words: 6")
    assert parse(GOOD, tmp_path).identity != parse(other, tmp_path).identity


@pytest.mark.parametrize(
    ("text", "size"), [("7", 7), (9, 9), ("2 MiB", 2 << 20), ("1GiB", 1 << 30)]
)
def test_parse_bytes_units(text, size):
    assert parse_bytes(text, "x") == size
