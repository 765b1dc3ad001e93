"""A crawl that comes or goes: the bytes of a fresh run, and only what it touches made again."""

from __future__ import annotations

import gzip
import json
import random
import shutil

import pytest

from gristmill.documents.errors import StopError
from gristmill.pipelines.driver import run_recipe
from gristmill.pipelines.run import open_run
from gristmill.pipelines.status import status
from gristmill.pipelines.verify import verify
from gristmill.pipelines.why import why

RECIPE = """
name: added
sources: {web: {paths: ["data/*.jsonl.gz"], removal_cap: 1}}
shared: [exact_duplicates, {templates: {exemplars: 2}}, near_duplicates]
shard_bytes: 1
partitions: 8
"""


@pytest.fixture(name="crawl", scope="module")
def crawl_fixture(naive):
    """`crawl(host, first, pages)`: template pages and prose of one host, the same every time."""
    hosts = naive("made_hosts")

    def pages(host, first=0, number=14):
        draw = random.Random(f"{host} {first}")
        made = [hosts.filled(draw, i, host) for i in range(first, first + number)]
        made += [hosts.Doc(hosts.prose(draw, 120), f"https://{host}/p{first}", host)]
        return [{"text": d.text, "url": d.url, "host": d.host} for d in made]

    return pages


class Crawls:
    """A folder with crawls, and the runs over them."""

    def __init__(self, top, inline):
        self.top, self.inline = top, inline
        (top / "data").mkdir(parents=True)
        (top / "added.yaml").write_text(RECIPE)

    def put(self, **crawls):
        for name, rows in crawls.items():
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            # gzip, which is never split: a file is a shard
            (self.top / "data" / f"{name}.jsonl.gz").write_bytes(
                gzip.compress(lines.encode(), mtime=0)
            )

    def mill(self, name="run", **how):
        executor = self.inline(**how)
        out = self.top / name
        run_recipe(self.top / "added.yaml", out, executor=executor, say=lambda _: None)
        return executor.made


@pytest.fixture(name="base", scope="module")
def base_fixture(crawl, inline, tmp_path_factory):
    """Five hosts milled: two files of one host, and near copies across two others."""
    made = Crawls(tmp_path_factory.mktemp("base"), inline)
    near = [dict(r, url=r["url"] + "/b") for r in crawl("c.example")[-1:]]
    near[0]["text"] += " And once more."
    made.put(
        a0=crawl("a.example"),
        a1=crawl("a.example", 50, 9),
        b=crawl("b.example"),
        c=crawl("c.example"),
        d=[*crawl("d.example"), *near],
    )
    made.mill()
    return made


@pytest.fixture(name="crawls")
def crawls_fixture(base, inline, tmp_path):
    """A copy of the finished run and its crawls, with all times kept."""
    top = tmp_path / "top"
    made = Crawls(top, inline)
    shutil.copytree(base.top, top, dirs_exist_ok=True)
    return made


def change_new_host(crawls, crawl):
    crawls.put(e=crawl("e.example"))


def change_old_host(crawls, crawl):
    crawls.put(e=crawl("a.example", 100))


def change_copies(crawls, crawl):
    """Copies: exact, of one URL, near; and pages of two new hosts in two files."""
    (prose,) = crawl("b.example")[-1:]
    near = dict(prose, url="https://f.example/near", host="f.example", text=prose["text"] + " Yes.")
    crawls.put(e=[*crawl("b.example")[:3], dict(prose, text="Another text."), near])
    crawls.put(f=crawl("f.example"), g=crawl("g.example"))


def change_gone(crawls, _):
    (crawls.top / "data" / "c.jsonl.gz").unlink()


def change_replaced(crawls, crawl):
    (crawls.top / "data" / "a1.jsonl.gz").unlink()
    crawls.put(e=crawl("h.example"))


CHANGES = [change_new_host, change_old_host, change_copies, change_gone, change_replaced]


@pytest.mark.parametrize("change", CHANGES)
def test_run_over_changed_crawls_equals_a_fresh_one(mill, crawls, crawl, change):
    change(crawls, crawl)
    again = crawls.mill()
    fresh = crawls.mill("fresh")
    assert len(again) < len(fresh)
    left = mill.differing(mill.snapshot(crawls.top / "run"), mill.snapshot(crawls.top / "fresh"))
    assert [n for n in left if not n.startswith("manifest.jsonl")] == []  # it is appended to
    run = open_run(crawls.top / "run")
    assert verify(run) == []
    assert status(run)["complete"]


def test_run_over_an_added_crawl_killed_goes_on(mill, crawls, crawl):
    change_copies(crawls, crawl)
    with pytest.raises(StopError):
        crawls.mill(fail=("round-templates-pages", ""))
    crawls.mill()
    crawls.mill("fresh")
    left = mill.differing(mill.snapshot(crawls.top / "run"), mill.snapshot(crawls.top / "fresh"))
    assert [n for n in left if not n.startswith("manifest.jsonl")] == []


def test_added_host_leaves_old_shards_as_they_were_applied(crawls, crawl):
    old = set(open_run(crawls.top / "run").shards)
    crawls.put(e=[page for i in range(3) for page in crawl(f"e{i}.example", i, 0)])  # prose
    made = crawls.mill()
    (new,) = set(open_run(crawls.top / "run").shards) - old
    by_shard = {step: {k for s, k in made if s == step} for step, key in made if key == new}
    assert {"pass-templates", "account-templates", "pass-near_duplicates", "corpus"} <= set(
        by_shard
    )
    assert {k for keys in by_shard.values() for k in keys} == {new}  # fetched texts among them


def test_added_host_leaves_partitions_without_its_rows(crawls, crawl):
    crawls.put(e=crawl("e.example", 0, 0))
    made = crawls.mill()
    assert sum(s == "round-exact_duplicates-groups" for s, _ in made) == 1
    assert sum(s == "round-near_duplicates-verify" for s, _ in made) == 0


def test_added_pages_change_decisions_of_their_host_alone(crawls, crawl):
    before = open_run(crawls.top / "run")
    old = {n: s.extents[0].file for n, s in before.shards.items()}
    change_old_host(crawls, crawl)
    made = crawls.mill()
    applied = {old[k] for s, k in made if s == "pass-templates" and k in old}
    assert {f.rsplit("/", 1)[-1] for f in applied} <= {"a0.jsonl.gz", "a1.jsonl.gz"}
    (document,) = why(open_run(crawls.top / "run"), "https://a.example/3")["documents"]
    passes = {p["pass"]: p["stages"] for p in document["passes"]}
    told = next(s for s in passes["templates"] if s["stage"] == "templates")
    assert told["evidence"]["cluster_size"] == 14 + 9 + 14
