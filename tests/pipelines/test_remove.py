"""Take-downs reach everything that a run holds, and leave an old plan's order as it was."""

from __future__ import annotations

import json
import random
from fractions import Fraction

import numpy as np
import pyarrow.parquet as pq
import pytest

from gristmill.dedup.index import Index
from gristmill.documents.errors import UsageError
from gristmill.mixing import Plan, TokenFeed, steps_of_document
from gristmill.pipelines.find import corpus_ordinal, find, row_of
from gristmill.pipelines.indexing import add_run, ask, ask_text, near_pass, pieces
from gristmill.pipelines.joined import join_duplicates
from gristmill.pipelines.remove import Asked, Wanted, read_lists, remove
from gristmill.pipelines.run import open_run
from gristmill.pipelines.verify import verify_folder


def pairs(run):
    """Near duplicates: (id of the removed, id of its witness, their shards)."""
    names = {}
    for path in (run / "decisions" / "near_duplicates").glob("*.parquet"):
        for row in pq.read_table(path).to_pylist():
            if row["witness_id"] is not None:
                names[row["id"].hex()] = (row["witness_id"].hex(), row["witness_in"])
    return names


def kept(run, id_):
    opened = open_run(run)
    return [corpus_ordinal(opened, place) is not None for place in find(opened, id_)]


def holds(run, needle):
    """Files of the run (plans' ids aside) whose Parquet rows or bytes hold an id."""
    return [
        path.relative_to(run).as_posix()
        for path in run.rglob("*")
        if path.is_file()
        and "plans" not in path.parts
        and path.name != "removals.json"
        and _inside(path, needle)
    ]


def _inside(path, needle):
    if path.suffix != ".parquet":
        return needle in path.read_bytes()
    columns = pq.read_table(path).to_pydict().values()
    values = (value for column in columns for value in column)
    return any(v == needle or (isinstance(v, str) and needle.hex() in v) for v in values)


def test_removed_document_is_nowhere_and_its_duplicate_takes_its_place(copy, inline):
    opened = open_run(copy)
    old = Plan.open(next(p.parent for p in (copy / "plans").glob("*/plan.json")))
    for removed, (witness, shard) in sorted(pairs(copy).items()):  # noqa: B007 - the last is used
        (place,) = find(opened, witness)
        seen = steps_of_document(old, shard, corpus_ordinal(opened, place))
        if seen:
            break
    before = TokenFeed(old.folder, copy / "tokens")
    samples = {p: before[p] for p in range(0, len(before), 3)}
    at = sorted({s.position for s in seen})
    touched = {p: before[p] for p in at}
    executor = inline()
    report = remove(
        opened, Wanted(ids=frozenset({witness})), Asked(near="none", served=1), executor=executor
    )
    assert (report.named, report.near, report.unknown) == (1, 0, [])
    assert {key for step, key in executor.made if step == "read"} == {shard}  # no other is read
    assert holds(copy, bytes.fromhex(witness)) == []
    for asked in (witness, witness[:10]):
        with pytest.raises(
            UsageError, match=f"{witness} removed by `gristmill remove` on 20"
        ) as no:
            find(open_run(copy), asked)
        assert f"(removals.json; shard {shard})" in str(no.value)
    with pytest.raises(UsageError, match=r"took out 1 on 20.*maybe this one") as no:
        find(open_run(copy), "https://quay.example/saling/95")
    assert "did you mean" not in str(no.value)
    assert any(kept(copy, removed))  # the next in the cluster
    assert verify_folder(copy) == []
    # the old plan: same positions, the document's tokens gone, everything else bit for bit
    feed = TokenFeed(old.folder, copy / "tokens", verify="all")
    told = report.plans[old.id]
    assert told["documents"] == 1
    assert told["positions_masked"] == len({s.position for s in seen if s.step >= 1})
    assert told["steps_that_saw"] == ({witness: [0]} if any(s.step == 0 for s in seen) else {})
    for position, sample in samples.items():
        if position not in at:
            for name, values in sample.items():
                assert np.array_equal(feed[position][name], values), (position, name)
    assert at
    for position, sample in touched.items():
        now = feed[position]
        gone = (now["labels"] == -100) & (sample["labels"] != -100)
        spans = [s.length for s in seen if s.position == position]
        assert 0 < gone.sum() <= sum(spans)
        same = now["input_ids"] == sample["input_ids"]
        assert (~same).sum() <= sum(spans)
        assert np.array_equal(now["cu_seqlens"], sample["cu_seqlens"])
        assert np.array_equal(now["labels"][~gone], sample["labels"][~gone])


def test_removed_by_url_and_host_with_proven_duplicates(copy, inline):
    opened = open_run(copy)
    for removed, (witness, shard) in sorted(pairs(copy).items()):  # noqa: B007 - the last is used
        (place,) = find(opened, witness)
        table = pq.read_table(copy / f"documents/{shard}.parquet")
        url = table["url"][place.row].as_py()
        if url is not None:
            break
    wanted = Wanted(urls=frozenset({url + "#here", "http://nowhere.example/"}))
    report = remove(opened, wanted, Asked(), executor=inline())
    assert report.named >= 1
    assert report.named + report.near >= 2  # the duplicate, whether of this URL or another
    assert report.unknown == ["http://nowhere.example/"]
    for id_ in (removed, witness):
        assert holds(copy, bytes.fromhex(id_)) == []
    host = table["host"][place.row].as_py()
    report = remove(open_run(copy), Wanted(hosts=frozenset({host})), Asked(), executor=inline())
    assert report.unknown == []
    for path in (copy / "documents").glob("*.parquet"):
        assert host not in pq.read_table(path)["host"].to_pylist()
    assert verify_folder(copy) == []
    again = remove(open_run(copy), Wanted(hosts=frozenset({host})), Asked(), executor=inline())
    assert (again.named, again.unknown) == (0, [host])


def test_removed_document_leaves_the_index_and_what_it_remembers(copy, inline, tmp_path):
    index = tmp_path / "index"
    assert add_run(index, open_run(copy))["removed"] > 0
    opened = open_run(copy)
    removed, (witness, shard) = min(pairs(copy).items())
    (place,) = find(opened, witness)
    text = pq.read_table(copy / f"documents/{shard}.parquet")["text"][place.row].as_py()
    assert witness in {m["id"] for m in ask_text(index, text)}
    assert holds(index, bytes.fromhex(witness)) != []
    asked = Asked(near="none", index=index)
    report = remove(opened, Wanted(ids=frozenset({witness})), asked, executor=inline())
    assert report.index == 1
    left = {m["id"] for m in ask_text(index, text)}
    assert witness not in left
    assert removed in left
    assert holds(index, bytes.fromhex(witness)) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [("zz\n", "'zz' is no id; expected 32 hex digits"), (None, "cannot be read as a list")],
)
def test_lists_that_are_wrong_are_refused(tmp_path, text, message):
    path = tmp_path / "ids"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError, match=message):
        read_lists(path, None, None)


def test_lists_pass_over_blanks_and_comments(tmp_path):
    path = tmp_path / "hosts"
    path.write_text("# ours\n\n a.example \n")
    assert read_lists(None, None, path).hosts == frozenset({"a.example"})
    with pytest.raises(UsageError, match="nothing to remove"):
        read_lists(None, None, None)
    with pytest.raises(UsageError, match="no such policy; did you mean 'proven'"):
        Asked(near="prove")


def test_removals_keep_ids_alone(copy, inline):
    witness = next(iter(pairs(copy).values()))[0]
    remove(open_run(copy), Wanted(ids=frozenset({witness})), Asked(near="none"), executor=inline())
    body = json.loads((copy / "removals.json").read_bytes())
    assert [i for ids in body["shards"].values() for i in ids] == [witness]
    assert set(body) == {"format", "shards"}


RECIPE = """
name: hops
root: data
sources: {a: {paths: [a.jsonl], converter: plain}, b: {paths: [b.jsonl], converter: plain}}
shared: [exact_duplicates, {near_duplicates: {threshold: "0.8"}}]
"""


def words(seed, count, changed=()):
    drawn = [f"w{random.Random(seed).randrange(9**6) + i * 9**6}" for i in range(count)]
    for at in changed:
        drawn[at] = f"other{at}"
    return " ".join(drawn)


def page(text, name):
    return {"text": text, "url": f"http://{name}.example/"}


def texts_of(out):
    return [
        text
        for path in sorted((out / "corpus").glob("*.parquet"))
        for text in pq.read_table(path)["text"].to_pylist()
    ]


def id_of(run, place):
    return row_of(run, f"documents/{place.shard}.parquet", place, ["id"])["id"].hex()


def corpus_of(out):
    tables = [pq.read_table(p, columns=["id", "url"]) for p in (out / "corpus").glob("*.parquet")]
    return {i: u for t in tables for i, u in zip(*t.to_pydict().values(), strict=True)}


@pytest.fixture
def hops(tiny):
    """Three copies; X with a copy K and a near copy Q; R1 and R2, of which K2 has the most."""
    x = words("x", 300)
    k2 = words("k", 300)
    rows = [page(words("t", 80), f"tri{i}") for i in range(3)]
    rows += [page(x, "x"), page(x, "k"), page(words("x", 298, [100]), "q")]
    rows += [page(k2, "k2")]
    rows += [
        page(words("k", 299, [20, 60, 100, 140, 180]), "r1"),
        page(words("k", 299, [40, 80, 120, 160, 200]), "r2"),
    ]
    return tiny(RECIPE, a=rows[:5], b=[*rows[5:], page(words("own", 90), "own")]).out


@pytest.mark.parametrize("near", ["proven", "cluster"])
def test_removal_follows_decisions_until_nothing_is_added(hops, inline, near):
    opened = open_run(hops)
    before = texts_of(hops)
    assert len(before) == 4  # one of each group, and one of its own
    groups = (["tri0", "tri1", "tri2"], ["x", "k", "q"], ["r1", "k2", "r2"], ["own"])
    ids = {name: find(opened, f"http://{name}.example/")[0] for g in groups for name in g}
    ids = {n: (at.shard, bytes.fromhex(id_of(opened, at))) for n, at in ids.items()}
    for group in groups:
        for name in group:
            found = {ids[name][0]: {ids[name][1]}}
            join_duplicates(opened, found, whole=near == "cluster")
            assert {i for some in found.values() for i in some} == {ids[n][1] for n in group}
    wanted = Wanted(urls=frozenset(f"http://{name}.example/" for name in ("tri2", "q", "r1")))
    report = remove(opened, wanted, Asked(near=near), executor=inline())
    assert (report.named, report.near, report.entered) == (3, 6, [])
    assert len(texts_of(hops)) == 1
    assert set(texts_of(hops)) < set(before)
    assert verify_folder(hops) == []


@pytest.mark.parametrize(
    ("name", "stages"),
    [
        ("tri", ["exact_duplicates"]),  # the second copy; it stands for the third
        ("x", ["exact_duplicates"]),  # its copy, which then stands for the near one
        ("k2", ["near_duplicates"] * 2),  # two that were never near each other
    ],
)
def test_removal_without_duplicates_tells_what_enters_and_why(hops, inline, name, stages):
    before = corpus_of(hops)
    (taken,) = [i for i, url in before.items() if url.startswith(f"http://{name}")] or [
        i for i, url in before.items() if url in ("http://k.example/", "http://x.example/")
    ]
    texts = texts_of(hops)
    wanted = Wanted(ids=frozenset({taken.hex()}))
    report = remove(open_run(hops), wanted, Asked(near="none"), executor=inline())
    assert [told["stage"] for told in report.entered] == stages
    assert {told["id"] for told in report.entered} == {
        i.hex() for i in corpus_of(hops).keys() - before.keys()
    }
    for told in report.entered:
        verbatim = told["stage"] == "exact_duplicates"
        assert (told["witness"], told["verbatim"]) == (taken.hex(), verbatim)
        assert told["reason"] == told["stage"][:-1]
        assert (told["jaccard"] is None) is verbatim
        assert verbatim or Fraction(told["jaccard"]) >= Fraction("0.8")
    assert (sorted(texts_of(hops)) == sorted(texts)) is (stages == ["exact_duplicates"])


def test_removed_before_leaves_an_index_that_is_named_later(copy, inline, tmp_path):
    index = tmp_path / "index"
    add_run(index, open_run(copy))
    rows = [
        row
        for path in sorted((copy / "documents").glob("*.parquet"))
        for row in pq.read_table(path, columns=["id", "url"]).to_pylist()
        if row["url"]
    ]
    held = Index.open(index).holds({r["id"] for r in rows})
    id_, url = next((r["id"], r["url"]) for r in rows if r["id"] in held)
    wanted, lines = Wanted(urls=frozenset({url})), []
    remove(open_run(copy), wanted, Asked(near="none"), executor=inline())
    assert Index.open(index).holds({id_}) == {id_}
    asked = Asked(near="none", index=index)
    again = remove(open_run(copy), wanted, asked, executor=inline(), say=lines.append)
    assert (again.named, again.unknown) == (0, [url])
    assert again.index >= 1
    assert "1 URLs and hosts could not be looked up" in lines[-1]
    assert holds(index, id_) == []
    assert Index.open(index).holds({id_}) == set()


def test_removed_by_id_leaves_an_index_to_which_another_run_gave_it(copy, inline, tmp_path):
    index = Index.make(tmp_path / "index", near_pass(open_run(copy))[0].stage)
    writer = index.writer()
    _, found, keys, sets = next(pieces(open_run(copy)))
    other = found._replace(high=found.high + np.uint64(1))
    writer.add("other-000000000000", other, keys, sets)
    index.add(writer)
    id_ = index.runs[0].ids()[0].as_py()
    wanted = Wanted(ids=frozenset({id_.hex(), "0" * 32}))
    asked = Asked(near="none", index=index.folder)
    report = remove(open_run(copy), wanted, asked, executor=inline())
    assert (report.named, report.index, report.unknown) == (0, 1, ["0" * 32])
    assert Index.open(index.folder).holds({id_}) == set()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "too short to be a near duplicate"),
        (b"one two three", "no 5 words in a row"),
        (b"caf\xe9 one two three four five", "cannot be read as text in UTF-8"),
    ],
)
def test_query_text_that_cannot_be_compared_is_refused(copy, tmp_path, raw, message):
    Index.make(tmp_path / "index", near_pass(open_run(copy))[0].stage)
    path = tmp_path / "text"
    path.write_bytes(raw)
    with pytest.raises(UsageError, match=message):
        list(ask(tmp_path / "index", str(path), None))
