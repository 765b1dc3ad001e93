"""A crawl added to a run: what is computed again, by step, in tasks and CPU seconds.

200 hosts of 14 to 24 pages: a family of template pages on each (`_templates.py`), 3 articles, and
on half of the hosts a cookie notice that they share. Pages are dealt over 20 files, as a crawl
does, so that every shard has pages of nearly every host. Then one file comes: with one new host,
with 1 % and 10 % of hosts new, with new pages of 1 % of the hosts. Beside each stands a fresh run
over the same files, and the two run folders are compared byte for byte.
"""

from __future__ import annotations

import filecmp
import gzip
import json
import random
import shutil
import tempfile
from collections import defaultdict
from pathlib import Path

import _templates as inject
from _texts import DATA

from gristmill.pipelines.driver import run_recipe
from gristmill.pipelines.run import open_run
from gristmill.pipelines.tasks import perform, steps_of

HOSTS, FILES = 200, 20
NOTICE = "We use cookies to improve your experience; by continuing you accept our cookie policy."
RECIPE = """
name: added
root: {root}
sources: {{web: {{paths: ["*.jsonl.gz"], removal_cap: 1}}}}
shared: [exact_duplicates, templates, near_duplicates]
partitions: {partitions}
shard_bytes: 64 KiB
"""


class Inline:
    """Does tasks in this process and notes them."""

    def __init__(self):
        self.made = []

    def run(self, run_dir, step, keys, *, progress):
        for key in keys:
            perform(str(run_dir), step, key)
            self.made.append((step, key))
        return []

    def close(self):
        pass


def host_pages(material, number, *, first=0, pages=None):
    """Pages of one host as records."""
    draw = random.Random(number * 1000 + first)
    size = pages or draw.randrange(14, 25)
    host = f"h{number}.example"
    made = inject.family(
        material, number, pages=size - 3, share=0.1, single=True, hosts=1, draw=draw
    )
    texts = [p.text for p in made]
    while len(texts) < size:
        texts.append(material.articles[draw.randrange(len(material.articles))]["text"])
    for i, text in enumerate(texts, first):
        more = f"\n{NOTICE}" if number % 2 else ""
        yield {"text": f"{text}{more}", "url": f"https://{host}/{i}", "host": host}


def write(path, records):
    """One file of a crawl, the same bytes every time."""
    with path.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as file:
        file.writelines(json.dumps(r).encode() + b"\n" for r in records)


def mill(root, out, partitions):
    """Run the recipe; the tasks that were made, and the CPU seconds of each step's."""
    recipe = root.parent / "added.yaml"
    recipe.write_text(RECIPE.format(root=root, partitions=partitions))
    executor = Inline()
    run_recipe(recipe, out, executor=executor, say=lambda _: None)
    run = open_run(out)
    steps = {s.name: s for s in steps_of(run)}
    tasks, seconds = defaultdict(int), defaultdict(float)
    for step, key in executor.made:
        tasks[step] += 1
        seconds[step] += run.store.run_facts(steps[step].outputs(run, key)[0])["cpu_seconds"]
    return tasks, seconds


def differing(one, other):
    """Files of two run folders that differ, timings and the driver's notes aside."""
    names = {
        p.relative_to(root).as_posix()
        for root in (one, other)
        for p in root.rglob("*")
        if p.is_file() and not p.name.endswith(".run.json")
    }
    loose = {n for n in names if n.removesuffix(".json") in LOOSE}
    _, *wrong = filecmp.cmpfiles(one, other, names - loose, shallow=False)
    return sorted(n for each in wrong for n in each)


# Bytes with times in them, and where the run stands.
LOOSE = {"run", "inputs.seen", "report.html", "ledger.duckdb"}


def show(name, again, fresh):
    """A line for the whole and one for each step that was made again."""
    tasks, seconds = again
    all_tasks, all_seconds = fresh
    whole = sum(all_seconds.values())
    print(f"{name}: {sum(tasks.values()) / sum(all_tasks.values()):.1%} of tasks, "
          f"{sum(seconds.values()):.1f} of {whole:.1f} CPU seconds "
          f"({sum(seconds.values()) / whole:.1%})")  # fmt: skip
    for step in all_tasks:
        print(f"  {step:42} {tasks[step]:5} of {all_tasks[step]:5} tasks, "
              f"{seconds[step]:7.2f} of {all_seconds[step]:7.2f} s")  # fmt: skip


def added(partitions=16):
    """What a run with an added crawl computes, beside a fresh one."""
    material = inject.Material(DATA, 1)
    records = [r for h in range(HOSTS) for r in host_pages(material, h)]
    random.Random(1).shuffle(records)
    crawls = {
        "1 new host": list(host_pages(material, HOSTS)),
        "1 % new hosts": [r for h in range(HOSTS, HOSTS + 2) for r in host_pages(material, h)],
        "10 % new hosts": [r for h in range(HOSTS, HOSTS + 20) for r in host_pages(material, h)],
        "new pages of 1 % of the hosts": [
            r for h in (0, 1) for r in host_pages(material, h, first=1000, pages=20)
        ],
    }
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        base = top / "base"
        base.mkdir()
        for f in range(FILES):
            write(base / f"{f:02d}.jsonl.gz", records[f::FILES])
        first = mill(base, top / "run", partitions)
        print(f"{len(records):,} pages of {HOSTS} hosts in {FILES} files, {partitions} partitions: "
              f"{sum(first[1].values()):.1f} CPU seconds")  # fmt: skip
        for step, seconds in first[1].items():
            print(f"  {step:42} {first[0][step]:5} tasks, {seconds:7.2f} s", flush=True)
        for name, crawl in crawls.items():
            extra = base / "added.jsonl.gz"
            write(extra, crawl)
            shutil.copytree(top / "run", top / "again")
            again = mill(base, top / "again", partitions)
            fresh = mill(base, top / "fresh", partitions)
            show(f"{name} ({len(crawl)} pages)", again, fresh)
            left = differing(top / "again", top / "fresh")
            print(f"  files that are not those of the fresh run: {left or 'none'}", flush=True)
            shutil.rmtree(top / "again")
            shutil.rmtree(top / "fresh")
            extra.unlink()
