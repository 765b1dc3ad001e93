"""Repositories as documents."""

from __future__ import annotations

import random

import pytest

from gristmill.documents.records import Draft, Locator, Loss, Skip
from gristmill.pipelines.convert import Repository


@pytest.fixture
def file(build):
    def make(repo, path, text, inner=0, span=10, **more):
        fields = {"repo": repo, "path": path, **more}
        return build.record(text, inner=inner, span=span, fields=fields)

    return make


def test_repository_files_stand_in_path_order_under_their_paths(file):
    items = [
        file("a/b", "z.py", "last", 0, license="MIT", language="Python"),
        file("a/b", "a.py", "first\n", 10, license="MIT", language="C"),
        file("c/d", "x", "other", 20),
    ]
    one, two = Repository()(iter(items))
    assert one.text == "==> a.py <==\nfirst\n\n==> z.py <==\nlast\n\n"
    assert (one.identity, one.records, one.license) == ("a/b", 2, "MIT")
    assert one.locator == Locator("f", 0, 10, 20)
    assert one.metadata["repo"] == "a/b"
    assert "language" not in one.metadata
    assert (two.identity, two.records, two.license) == ("c/d", 1, None)
    for listed, text in zip(one.metadata["files"], ("first\n", "last"), strict=True):
        raw = one.text.encode()[listed["start"] : listed["start"] + listed["bytes"]]
        assert raw.decode() == text


def test_repository_above_the_limit_is_cut_between_files(file):
    rng = random.Random(1)
    sizes = [rng.randint(1, 3_000) for _ in range(200)]
    items = [file("r", f"{n:03}", "é" * s, n * 10) for n, s in enumerate(sizes)]
    items.append(file("r", "100 giant", "x" * 20_000, 9_999))
    out = list(Repository(max_bytes=10_000)(iter(items)))
    assert [d.identity for d in out] == [f"r#{n}" for n in range(1, len(out) + 1)]
    assert all(d.metadata["parts"] == len(out) for d in out)
    paths = [f["path"] for d in out for f in d.metadata["files"]]
    assert paths == sorted(i.fields["path"] for i in items)
    assert all(len(d.text.encode()) <= 10_000 or d.records == 1 for d in out)
    assert sum(d.records for d in out) == 201
    assert sum(d.locator.span for d in out) == 2_010
    for draft in out:
        for listed in draft.metadata["files"]:
            raw = draft.text.encode()[listed["start"] :][: listed["bytes"]]
            assert set(raw.decode()) <= {"é", "x"}


def test_repository_conserves_records_and_spans_among_losses(file, build):
    loss = Loss(locator=Locator("f", 5, 0, 7), reason="bad_json")
    items = [
        file("r", "b", "two"),
        loss,
        file("r", "a", " \n"),
        build.record("no fields"),
        Skip(reason="blank", span=1, records=0),
        file("r", "a\nb", "one"),
        file("r", 7, "path is a number"),
    ]
    out = list(Repository()(iter(items)))
    (draft,) = [o for o in out if isinstance(o, Draft)]
    assert draft.text.startswith("==> a b <==\none")
    assert [o.reason for o in out if isinstance(o, Loss)] == [
        "bad_json",
        "no_text",
        "bad_schema",
        "bad_schema",
    ]
    spans = sum(o.span if isinstance(o, Skip) else o.locator.span for o in out)
    assert spans == 10 * 5 + 7 + 1


def test_repository_field_names_are_options(build):
    item = build.record("t", fields={"project": "p", "file": "f"})
    (out,) = Repository(repo_field="project", path_field="file")(iter([item]))
    assert (out.identity, out.text) == ("p", "==> f <==\nt\n\n")
