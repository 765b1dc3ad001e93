"""Issue, touched files and patch as one document."""

from __future__ import annotations

import pytest

from gristmill.documents.records import Draft
from gristmill.pipelines.convert import Issue
from gristmill.pipelines.convert.issue import touched_by

PATCH = """diff --git a/a.py b/a.py
--- a/a.py
+++ b/a.py
@@ -1 +1 @@
-x = é
+x = 2
diff --git a/new.py b/new.py
--- /dev/null
+++ b/new.py
@@ -0,0 +1 @@
+y
"""


def row(build, **fields):
    given = {"title": "Broken", "body": "It is.\r\n", "patch": PATCH, "repo": "me/app", "n": 5}
    return build.record("{the row}", fields=given | fields)


def test_issue_patch_and_the_files_that_it_touches(build):
    out = build.draft(Issue(), row(build, files={"b.py": "no", "a.py": "x = é"}, license="MIT"))
    assert out.text == (
        "## issue\n\nBroken\n\nIt is.\n\n## files\n\n==> a.py <==\nx = é\n\n## patch\n\n" + PATCH
    )
    (listed,) = out.metadata["files"]
    raw = out.text.encode()[listed["start"] :][: listed["bytes"]]
    assert (listed["path"], raw.decode()) == ("a.py", "x = é")
    assert out.metadata["touched"] == 2
    assert (out.metadata["n"], out.license) == (5, "MIT")
    assert not {"title", "body", "patch"} & set(out.metadata)
    assert out.repairs["crlf"] == 1
    assert out.turns is None


def test_issue_without_files_has_issue_and_patch_alone(build):
    listed = [{"path": "c.py", "content": "z"}]
    out = build.draft(Issue(), row(build, files=listed, problem_statement="Why?"))
    assert out.text == "## issue\n\nBroken\n\nWhy?\n\nIt is.\n\n## patch\n\n" + PATCH
    assert out.metadata["files"] == []


@pytest.mark.parametrize(
    ("patch", "touched"),
    [
        ("--- a/s.sql\n+++ b/s.sql\n@@ -1,2 +1 @@\n--- other.py\n x\n", ["s.sql"]),
        ("--- a/s\n+++ b/s\n@@ -0,0 +1 @@\n+++ z\n\\ No newline\n--- a/t\n+++ b/t\n", ["s", "t"]),
        ("similarity index 100%\nrename from o.py\nrename to n.py\n", ["o.py", "n.py"]),
        ("Binary\nGIT binary patch\n", []),
        ("--- a/x\n+++ b/x\n", None),
    ],
)
def test_touched_by_counts_lines_of_hunks(patch, touched):
    assert touched_by(patch) == touched


def test_issue_first_patch_that_is_not_empty_wins(build):
    out = build.draft(Issue(), row(build, patch="", gold_patch=PATCH))
    assert out.text.endswith("## patch\n\n" + PATCH)


@pytest.mark.parametrize(
    ("fields", "reason", "kind"),
    [
        ({"repo": "sympy/sympy"}, "held_out", "dropped"),
        ({"instance_id": "django__django-1"}, "held_out", "dropped"),
        ({"patch": 5}, "bad_schema", "fault"),
        ({"files": 5}, "bad_schema", "fault"),
        ({"files": {"a.py": None}}, "bad_schema", "fault"),
        ({"patch": None}, "no_text", "dropped"),
        ({"title": None, "body": " \n"}, "no_text", "dropped"),
        ({"patch": "see above"}, "not_a_patch", "dropped"),
        ({"files": {"a.py": "x" * 900}}, "too_large", "dropped"),
    ],
)
def test_issue_that_is_none_is_booked(build, fields, reason, kind):
    loss = build.loss(Issue(max_bytes=800), row(build, **fields))
    assert (loss.reason, loss.kind) == (reason, kind)


def test_issues_of_a_benchmark_are_held_out_unless_asked_for(real_rows):
    rows = real_rows("e-issues-swebench-lite/*.gz")
    assert {o.reason for o in Issue()(iter(rows))} == {"held_out"}
    assert all(isinstance(o, Draft) for o in Issue(benchmarks=())(iter(rows)))
