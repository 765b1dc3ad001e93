"""The template stage in a run: the planted hosts, the books, the same bytes, kill and resume."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.pipelines.driver import run_recipe
from gristmill.pipelines.run import open_run
from gristmill.pipelines.tasks import perform
from gristmill.pipelines.verify import verify
from gristmill.pipelines.why import why

SAMPLE = Path(__file__).resolve().parents[2] / "sample_data"
RECIPE = f"""
name: templates
root: {SAMPLE}
shard_bytes: 100 KiB
sources:
  web:
    paths: ["web/pages-0000[0-2].warc.gz"]
    converter: main_text
    max_loss: 0.05
shared: [exact_duplicates, {{templates: {{exemplars: 2}}}}, near_duplicates]
"""


class Shuffled:
    """An executor in this process; stops after `most` tasks, as if it were killed."""

    def __init__(self, seed=0, most=None):
        self.random = random.Random(seed)
        self.most = most
        self.done = 0

    def run(self, run_dir, step, keys, *, progress):
        shuffled = list(keys)
        self.random.shuffle(shuffled)
        for key in shuffled:
            if self.done == self.most:
                raise KeyboardInterrupt
            perform(str(run_dir), step, key)
            self.done += 1
        return []

    def close(self):
        pass


def mill_it(folder, **how):
    folder.mkdir(parents=True, exist_ok=True)
    recipe = folder / "templates.yaml"
    recipe.write_text(RECIPE)
    executor = Shuffled(**how)
    run_recipe(recipe, folder / "run", executor=executor, say=lambda _: None)
    return folder / "run", executor.done


@pytest.fixture(name="made", scope="module")
def made_fixture(tmp_path_factory):
    return mill_it(tmp_path_factory.mktemp("templates"))


@pytest.fixture(name="facts", scope="module")
def facts_fixture():
    return json.loads((SAMPLE / "facts.json").read_text())["templates"]


def told(run, url):
    """What the stage said of a page."""
    (document,) = why(open_run(run), url)["documents"]
    passes = {p["pass"]: p["stages"] for p in document["passes"]}
    return next(s for s in passes["templates"] if s["stage"] == "templates")


def test_run_planted_templates_go_and_own_prose_stays(made, facts):
    run, _ = made
    for host in facts:
        verdicts = {u: told(run, u) for u in host["pages"]}
        saved = set(host["with_own_text"])
        gone = {u for u, t in verdicts.items() if t["verdict"] == "template"}
        exemplars = {u for u, t in verdicts.items() if t["scores"]["exemplar"]}
        assert len(exemplars) == 2
        assert gone | exemplars == set(host["pages"]) - saved
        one = verdicts[min(gone)]
        assert one["scores"]["template_share"] > 0.9
        assert one["evidence"]["fill_in_lines"]["lines"] >= 1
        assert one["evidence"]["witness_id"] in {
            why(open_run(run), u)["documents"][0]["document"]["id"] for u in exemplars
        }


def test_run_books_balance_to_the_last_token(made):
    run, _ = made
    assert verify(open_run(run)) == []


def test_run_any_order_and_kill_same_bytes(mill, made, tmp_path):
    run, tasks = made
    for most in (tasks // 2, tasks // 4):  # in the middle of the stage and after it
        with pytest.raises(KeyboardInterrupt):
            mill_it(tmp_path, seed=1, most=most)
    again, more = mill_it(tmp_path, seed=2)
    assert 0 < more < tasks
    assert mill.differing(mill.snapshot(run), mill.snapshot(again)) == []


def test_verify_names_a_page_that_its_template_does_not_explain(made, tmp_path):
    import duckdb

    from gristmill.pipelines.witness import check_decisions

    run = open_run(made[0])
    use = run.passes[1].surveys
    name = run.decisions(use, next(iter(run.shards)))
    path = run.store.path(name)
    before, stamp = path.read_bytes(), path.stat()
    table = pq.read_table(path)
    shared = table.column("shared").to_pylist()
    first = next(i for i, v in enumerate(shared) if v is not None)
    shared[first] = 1
    at = table.column_names.index("shared")
    field = table.schema.field("shared")
    table = table.set_column(at, field, pa.array(shared, field.type))
    try:
        pq.write_table(table, path)
        found = list(check_decisions(run, duckdb.connect(), use, "exact_duplicates", "templates"))
    finally:
        path.write_bytes(before)
    assert stamp.st_size == len(before)
    assert [what for _, what in found if "less alike than 3/10" in what]


def test_sample_shows_a_template_with_its_slots_fills_and_pages(made, facts):
    from gristmill.pipelines.sample import sample

    found = sample(open_run(made[0]), stage="templates", n=3)
    assert sorted(f["pages"][0]["url"].split("/")[2] for f in found) == sorted(
        h["host"] for h in facts
    )
    for family in found:
        assert family["documents"] >= 40
        assert family["removed"] + family["exemplars"] + family["kept_for_own_prose"] >= 40
        host = next(h for h in facts if h["host"] in family["pages"][0]["url"])
        values = host["pages"][family["pages"][0]["url"]]
        shown = [v for k, v in values.items() if k != "number" and f"⟦{v}⟧" in family["template"]]
        assert len(shown) >= 4  # values stand in slots of their own
        assert family["slots"] >= 4
        fills = [tuple(p["fills"]) for p in family["pages"]]
        assert len(set(fills)) == len(fills) > 1
    cuts = sample(open_run(made[0]), stage="templates", reason="boilerplate", n=2)
    assert [c["verdict"] for c in cuts] == ["keep", "keep"]


def test_ledger_and_report_list_the_largest(made, facts):
    import duckdb

    con = duckdb.connect(str(made[0] / "ledger.duckdb"), read_only=True)
    rows = con.execute("SELECT host, removed, exemplars, own_prose FROM templates").fetchall()
    con.close()
    assert {r[0] for r in rows} == {h["host"] for h in facts}
    assert all(r[2:] == (2, 4) for r in rows if r[0] != "shop.hearthware.example")
    page = (made[0] / "report.html").read_text()
    assert "<h2>Templates</h2>" in page
    assert all(h["host"] in page for h in facts)


FRAMED = """
name: framed
root: data
sources: {a: {paths: [a.jsonl], converter: plain, max_loss: 0}}
shared: [templates]
"""
HEADER = ["Home · Recipes · Songs · About us", "Find a dish", "Write to those who cook"]
FOOTER = "All that you read on this page may be copied by people who ask before they do."


def test_run_boilerplate_is_cut_and_told(tiny, ask, naive):
    hosts, draw = naive("made_hosts"), random.Random(11)
    own = [hosts.prose(draw, 80 + i) for i in range(20)]
    rows = [
        {"text": "\n".join([*HEADER, text, FOOTER]), "url": f"https://a.example/{i}"}
        for i, text in enumerate(own)
    ]
    out = tiny(FRAMED, a=rows).out
    left = [
        text
        for path in sorted((out / "corpus").glob("*.parquet"))
        for text in pq.read_table(path)["text"].to_pylist()
    ]
    header, footer = "\n".join(HEADER) + "\n", f"\n{FOOTER}"
    bare = sorted(t.removeprefix(header).removesuffix(footer).removesuffix("\n") for t in left)
    assert bare == sorted(own)  # of each line one page keeps it
    assert [sum(line in text for text in left) for line in (*HEADER, FOOTER)] == [1, 1, 1, 1]
    lost = sum(len(row["text"].encode()) for row in rows) - sum(len(t.encode()) for t in left)
    said = "SELECT account, reason, documents, bytes FROM flow WHERE stage = 'templates'"
    books = {(account, reason): rest for account, reason, *rest in ask(out, said)}
    assert books["stripped", "boilerplate"] == [19, lost]
    assert books["kept", ""] == [20, sum(len(t.encode()) for t in left)]
    assert set(books) == {("in", ""), ("kept", ""), ("stripped", "boilerplate")}
    assert verify(open_run(out)) == []
    keeper = next(i for i, text in enumerate(own) if header + text + footer in left)
    for i in range(20):
        stage = told(out, f"https://a.example/{i}")
        cuts = {cut["text"] for cut in stage["cuts"] if cut["reason"] == "boilerplate"}
        assert any(FOOTER.startswith(cut[:60]) for cut in cuts) == (i != keeper)
        if i != keeper:
            note = stage["evidence"]["boilerplate"]
            assert note["pages_of_host"] == 20
            assert {cut["pages"] for cut in note["cuts"]} == {20}


@pytest.mark.parametrize(
    ("stage", "host"),
    [
        ("templates", "a.example"),
        ("{templates: {lone: line_rules}}", "b.example"),
        ("line_rules", "b.example"),
    ],
)
def test_run_drops_and_books_a_page_of_which_no_word_is_left(tiny, ask, naive, stage, host):
    hosts, draw = naive("made_hosts"), random.Random(12)
    bar = "Share Tweet Facebook"
    rows = [
        {"text": "\n".join([bar, hosts.prose(draw, 80 + i)]), "url": f"https://a.example/{i}"}
        for i in range(20)
    ]
    rows.append({"text": f"{bar}\n\n", "url": f"https://{host}/bar"})
    out = tiny(FRAMED.replace("[templates]", f"[{stage}]"), a=rows).out
    assert verify(open_run(out)) == []
    left = [
        text
        for path in sorted((out / "corpus").glob("*.parquet"))
        for text in pq.read_table(path)["text"].to_pylist()
    ]
    assert len(left) == 20
    assert all(text.split() for text in left)
    name = "line_rules" if stage == "line_rules" else "templates"
    said = f"SELECT account, reason, documents, bytes, tokens FROM flow WHERE stage = '{name}'"
    books = {(account, reason): rest for account, reason, *rest in ask(out, said)}
    into, kept, gone = books["in", ""], books["kept", ""], books["dropped", "emptied"]
    cut = [rest for (account, _), rest in books.items() if account == "stripped"]
    assert [into[0], gone[0]] == [kept[0] + 1, 1]
    assert into[1:] == [kept[k] + gone[k] + sum(c[k] for c in cut) for k in (1, 2)]
    assert gone[1] == (0 if stage == "templates" else 1)  # the blank line below the bar
    (document,) = why(open_run(out), f"https://{host}/bar")["documents"]
    told_ = next(s for p in document["passes"] for s in p["stages"] if s["stage"] == name)
    assert told_["verdict"] == "emptied"
    assert told_["cuts"][0]["text"].startswith(bar)
