"""`sample` on stages that have nothing, or only flags, to show."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from gristmill.cli import app

SOURCE = "name: x\nroot: data\nsources: {a: {paths: [a.jsonl], converter: plain}}\n"
ITEM = "which of the seven lanterns on the harbour wall was lit before the storm came in that year"


def drawn(out, stage, *more):
    done = CliRunner().invoke(app, ["sample", str(out), "--stage", stage, *more])
    assert done.exit_code == 0, done.stderr
    return done


def test_sample_of_a_stage_that_touched_nothing_says_so(tiny):
    rows = [{"text": f"text number {n}"} for n in range(3)]
    out = tiny(SOURCE + "shared: [exact_duplicates, near_duplicates, templates]\n", a=rows).out
    for stage in ("exact_duplicates", "near_duplicates", "templates"):
        done = drawn(out, stage)
        assert done.stdout == ""
        assert done.stderr == f"{stage} dropped, cut or flagged none of 3 documents\n"
        assert drawn(out, stage, "--json").stdout == "[]\n"
    done = drawn(out, "exact_duplicates", "--reason", "exact_duplicate")
    assert done.stderr.endswith("none of 3 documents for exact_duplicate\n")


def test_sample_of_a_stage_that_only_flags_shows_what_it_flagged(tiny, tmp_path):
    (tmp_path / "items.jsonl").write_text(json.dumps({"question": ITEM}) + "\n")
    rows = [{"text": "A page about boats and nets."}, {"text": f"A page. {ITEM}"}]
    stage = f"{{decontaminate: {{files: [{tmp_path}/items.jsonl], policy: keep}}}}"
    out = tiny(SOURCE + f"shared: [{stage}]\n", a=rows).out
    (found,) = json.loads(drawn(out, "decontaminate", "--json").stdout)
    assert found["text"] == f"A page. {ITEM}"
    assert (found["verdict"], found["scores"]["items"]) == ("keep", 1)
    done = drawn(out, "decontaminate", "--reason", "contaminated")
    assert done.stderr.endswith("none of 2 documents for contaminated\n")
