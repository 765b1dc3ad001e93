"""Repositories as documents."""

from __future__ import annotations

import random

import pytest

from gristmill.documents.errors import UsageError
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


def test_repository_in_the_order_of_imports(file):
    items = [
        file("r", "a.py", "import z\n"),
        file("r", "b.py", "import c\n"),
        file("r", "c.py", "import b\n"),
        file("r", "z.py", "print(1)\n"),
    ]
    (out,) = Repository(order="imports")(iter(items))
    assert [f["path"] for f in out.metadata["files"]] == ["b.py", "c.py", "z.py", "a.py"]
    assert (out.metadata["imports"], out.metadata["circular"]) == (3, 2)
    (plain,) = Repository()(iter(items))
    assert "imports" not in plain.metadata
    again = Repository(order="imports")(iter(items[::-1]))
    assert next(again).text == out.text


def test_repository_of_a_benchmark_is_held_out_file_by_file(file, tmp_path):
    (tmp_path / "ours.txt").write_text("mine/secret\n")
    items = [
        file("Pallets/flask", "a", "x"),
        file("pallets/flask", "b", "x"),
        file("mine/secret", "c", "y"),
    ]
    out = list(Repository(held_out=(tmp_path / "ours.txt",))(iter(items)))
    assert [(o.reason, o.kind) for o in out] == [("held_out", "dropped")] * 3
    (kept, *_) = Repository(benchmarks=())(iter(items))
    assert isinstance(kept, Draft)


@pytest.mark.parametrize(("stated", "licence"), [({}, "Zlib"), ({"license": "MIT"}, "MIT")])
def test_repository_licence_is_the_stated_one_or_that_of_its_file(file, stated, licence):
    text = (
        "The origin of this software must not be misrepresented. Altered source versions must be "
        "plainly marked as such."
    )
    items = [file("r", "LICENSE", text, **stated), file("r", "a.py", "x", **stated)]
    (out,) = Repository()(iter(items))
    assert (out.license, out.metadata["licence_files"]) == (licence, "Zlib")


def test_repository_unknown_order_is_refused():
    with pytest.raises(UsageError, match=r"order: found 'import'.*did you mean 'imports'"):
        Repository(order="import")
