"""The index: adding crawls one by one equals a batch; queries equal all pairs; damage is named."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.dedup import NearDuplicates
from gristmill.dedup.index import Index
from gristmill.dedup.index_query import query
from gristmill.dedup.rank import column, matrix, nodes
from gristmill.dedup.verify import shingle_sets
from gristmill.documents.errors import DamagedError, StopError, UsageError
from gristmill.pipelines.indexing import index_problems

STAGE = NearDuplicates(group_cap=4, hot_cap=6)


def add(index, crawl, covered=()):
    """Add a corpus of the tests' engine as one crawl."""
    writer = index.writer()
    for name, documents in zip(crawl.shards, crawl.surveyed(STAGE), strict=True):
        some = np.flatnonzero(column(documents, "shingles") > 0)
        taken = documents.take(some)
        texts = crawl.texts(column(taken, "shard"), column(taken, "row"))
        values, begins, ends = shingle_sets(texts, 5, 5)
        offsets = np.append(begins, ends[-1:] if len(ends) else 0)
        writer.add(name, nodes(taken), matrix(taken, "bands", STAGE.bands), (values, offsets))
    return index.add(writer, covered)


def versions(seed, families, members):
    """Versions of some texts, few words apart, dealt over shards of three crawls."""
    draw = random.Random(seed)
    for family in range(families):
        base = [f"f{family}w{draw.randrange(10**6)}" for _ in range(60)]
        for _ in range(draw.randrange(1, members + 1)):
            text = list(base)
            for _ in range(draw.choice([0, 0, 1, 1, 2])):
                text[draw.randrange(60)] = f"x{draw.randrange(10**6)}"
            yield " ".join(text)


def plain(table):
    return table.drop_columns(["row"])


@given(st.integers(0, 10**6), st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_index_any_split_into_crawls_equals_a_batch(corpus, doc, tmp_path_factory, seed, crawls):
    draw = random.Random(seed)
    texts = [*versions(seed, 6, 12), "too short", ""]
    docs = [
        doc(
            text=text, shard=f"c{(crawl := draw.randrange(crawls))}s{draw.randrange(2)}",
            id=draw.randbytes(16), priority=draw.randrange(2), quality=draw.randrange(-1, 3),
        )
        for text in texts
    ]  # fmt: skip
    del crawl
    batch = plain(corpus(docs).run(STAGE))
    index = Index.make(tmp_path_factory.mktemp("index") / "i", STAGE)
    told = {}
    for number in range(crawls):
        mine = [d for d in docs if d.shard.startswith(f"c{number}")]
        earlier = {(r["shard"], r["id"]): r["code"] for r in index.decisions().to_pylist()}
        known = {h for r in index.runs for h in r.shard_hashes.tolist()}
        if mine:
            changed = add(index, corpus(mine)).to_pylist()
            now = {(r["shard"], r["id"]): r for r in index.decisions().to_pylist()}
            codes = {key: row["code"] for key, row in now.items()}
            flipped = {
                key
                for key in earlier.keys() | codes.keys()
                if key[0] in known and earlier.get(key, 0) != codes.get(key, 0)
            }
            assert flipped <= {(r["shard"], r["id"]) for r in changed}
            assert all(r["shard"] in known for r in changed)
            told |= {(r["shard"], r["id"]): r["code"] for r in changed}
    assert plain(Index.open(index.folder).decisions()).equals(batch)
    for key, code in told.items():
        (row,) = [r for r in batch.to_pylist() if (r["shard"], r["id"]) == key] or [{"code": 0}]
        assert row["code"] == code


@pytest.fixture
def made(corpus, doc, tmp_path):
    texts = list(versions("query", 8, 5))
    docs = [doc(text=t, shard=f"s{i % 3}") for i, t in enumerate(texts)]
    index = Index.make(tmp_path / "index", STAGE)
    crawl = corpus(docs)
    add(index, crawl)
    return index, texts, crawl


def test_query_names_every_near_document_with_its_exact_jaccard(made, naive, key):
    index, texts, _ = made
    sets = [naive.shingle_set(t.encode()) for t in texts]
    for text in [*texts[:10], texts[0] + " and more", "nothing like it in any of them at all"]:
        mine = naive.shingle_set(text.encode())
        expected = {
            key(i).hex(): (len(mine & other), len(mine | other))
            for i, other in enumerate(sets)
            if Fraction(len(mine & other), len(mine | other)) >= Fraction("0.8")
        }
        found = query(index, text)
        assert {m.id: (m.shared, m.either) for m in found} == expected
        shares = [Fraction(m.shared, m.either) for m in found]
        assert shares == sorted(shares, reverse=True)
    assert query(index, "") == query(index, "a b c") == []


def test_index_same_crawl_again_changes_nothing(made):
    index, _, crawl = made
    before = (index.folder / "index.json").read_bytes()
    assert add(index, crawl).num_rows == 0
    assert (index.folder / "index.json").read_bytes() == before


def test_index_shard_of_another_crawl_is_refused(made, corpus, doc):
    index, texts, _ = made
    with pytest.raises(UsageError, match=r"shard s1 is in run .* already, and so is s0"):
        add(index, corpus([doc(text=texts[0] + " x", shard="s1")]))
    assert len(list((index.folder / "runs").iterdir())) == 1


def test_index_other_settings_are_refused(made):
    with pytest.raises(UsageError, match=r"near_duplicates.threshold: '0.8', the run has '0.9'"):
        made[0].check_same(NearDuplicates(threshold="0.9", group_cap=4, hot_cap=6))


@pytest.mark.parametrize("name", ["keys.bin", "sets.bin", "run.json"])
def test_index_missing_or_cut_run_is_named_and_rebuilt_alone(made, corpus, doc, name):
    index, texts, crawl = made
    add(index, corpus([doc(text=texts[0], shard="other")]))
    expected = index.decisions()
    first, second = index.about["runs"]
    stamp = (index.folder / "runs" / second / "keys.bin").stat().st_mtime_ns
    path = index.folder / "runs" / first / name
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(DamagedError, match=f"run {first} of the index"):
        Index.open(index.folder)
    for file in path.parent.iterdir():
        file.unlink()
    path.parent.rmdir()
    healed = Index.open(index.folder, missing=True)
    assert add(healed, crawl).num_rows == 0
    assert Index.open(index.folder).decisions().equals(expected)
    assert (index.folder / "runs" / second / "keys.bin").stat().st_mtime_ns == stamp


def flip(path):
    content = bytearray(path.read_bytes())
    for at in range(0, len(content), 64):
        content[at] ^= 0x55
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["documents", "keys", "owners", "sets", "ends"])
def test_index_flipped_bits_are_named_by_queries_and_mended_by_the_crawl(made, name):
    index, texts, crawl = made
    expected, run = index.decisions(), index.about["runs"][0]
    flip(index.folder / "runs" / run / f"{name}.bin")
    assert [run in line and f"{name}.bin" in line for line in index_problems(index.folder)] == [
        True
    ]
    with pytest.raises(DamagedError, match=rf"run {run} of the index: {name}.bin is not what"):
        query(Index.open(index.folder), texts[0])
    add(Index.open(index.folder, missing=True), crawl)
    assert index_problems(index.folder) == []
    assert Index.open(index.folder).decisions().equals(expected)


@pytest.mark.parametrize("name", ["keys", "nexts", "owners", "documents", "sets"])
def test_index_flipped_bits_stop_the_next_crawl(made, corpus, doc, name):
    index, texts, _ = made
    flip(index.folder / "runs" / index.about["runs"][0] / f"{name}.bin")
    before = (index.folder / "index.json").read_bytes()
    with pytest.raises(DamagedError, match=f"run {index.about['runs'][0]} of the index"):
        add(Index.open(index.folder), corpus([doc(text=t, shard="new") for t in texts]))
    assert (index.folder / "index.json").read_bytes() == before


@pytest.mark.parametrize("kind", ["pairs", "decisions", "changed"])
def test_index_damaged_books_are_named_and_mended_by_any_crawl(made, corpus, doc, kind):
    index, texts, crawl = made
    expected = index.decisions()
    (path,) = (index.folder / kind).iterdir()
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert [line.startswith(f"{kind}/000001") for line in index_problems(index.folder)] == [True]
    if kind != "changed":
        with pytest.raises(DamagedError, match=r"is not what index.json says"):
            add(Index.open(index.folder), corpus([doc(text=texts[0], shard="new")]))
    add(Index.open(index.folder), crawl)
    assert index_problems(index.folder) == []
    assert Index.open(index.folder).decisions().equals(expected)


def test_index_nothing_there_says_what_makes_one(tmp_path):
    with pytest.raises(UsageError, match="no index in it; `gristmill dedup index"):
        Index.open(tmp_path)
    index = Index.make(tmp_path / "made", STAGE)
    path = index.folder / "index.json"
    path.write_text(path.read_text().replace('"0.8"', '"0.7"'))
    with pytest.raises(DamagedError, match="not what was written"):
        Index.open(index.folder)
    (tmp_path / "index.json").write_text("{")
    with pytest.raises(StopError, match="not JSON"):
        Index.open(tmp_path)


def test_drop_documents_leave_the_index_as_if_they_had_never_been_in_it(made, corpus, doc, key):
    index, texts, _ = made
    gone = {key(i) for i in range(0, len(texts), 3)}
    assert index.drop(gone) == len(gone)
    left = [
        doc(text=t, shard=f"s{i % 3}", id=key(i)) for i, t in enumerate(texts) if key(i) not in gone
    ]
    assert plain(Index.open(index.folder).decisions()).equals(plain(corpus(left).run(STAGE)))
    assert gone.isdisjoint({bytes.fromhex(m.id) for t in texts for m in query(index, t)})
    opened = Index.open(index.folder)
    held = {i for run in opened.runs for i in run.nodes(np.arange(run.count)).ids().to_pylist()}
    assert len(held) == len(left)
    tables = [
        pq.read_table(p) for f in ("decisions", "changed") for p in (index.folder / f).iterdir()
    ]
    for table in tables:
        held |= {
            i
            for name in table.column_names
            if pa.types.is_fixed_size_binary(table[name].type)
            for i in table[name].to_pylist()
        }
    assert len(tables) == 2
    assert held.isdisjoint(gone)


def test_index_crawl_made_again_replaces_what_it_was(made, corpus, doc, key):
    index, texts, _ = made
    add(index, corpus([doc(text=t, shard="other", id=key(100 + i)) for i, t in enumerate(texts)]))
    kept = [(i, t) for i, t in enumerate(texts) if i % 3 == 1]  # all of s0 and s2 is gone
    again = corpus([doc(text=t, shard="s1", id=key(i)) for i, t in kept])
    changed = add(index, again, ["s0", "s1", "s2"])
    both = [doc(text=t, shard="s1", id=key(i)) for i, t in kept]
    both += [doc(text=t, shard="other", id=key(100 + i)) for i, t in enumerate(texts)]
    opened = Index.open(index.folder)
    assert plain(opened.decisions()).equals(plain(corpus(both).run(STAGE)))
    assert len(opened.runs) == len(list((index.folder / "runs").iterdir())) == 2
    gone = {key(i) for i in range(len(texts)) if i % 3 != 1}
    assert opened.holds(gone) == set()
    assert gone.isdisjoint(changed["id"].to_pylist() + changed["witness_before"].to_pylist())
    assert [p.stem for p in (index.folder / "changed").iterdir()] == ["000003"]


def test_drop_killed_anywhere_goes_on(made, monkeypatch, key):
    index, texts, _ = made
    whole, gone = Index._decide, {key(i) for i in range(0, len(texts), 3)}

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Index, "_decide", killed)  # the new run stands, no decision
    with pytest.raises(KeyboardInterrupt):
        index.drop(gone)
    monkeypatch.setattr(Index, "_decide", whole)
    index = Index.open(index.folder)
    sweep = Index._sweep
    monkeypatch.setattr(Index, "_sweep", killed)  # decided, the old run stands
    with pytest.raises(KeyboardInterrupt):
        index.drop(gone)
    monkeypatch.setattr(Index, "_sweep", sweep)
    index = Index.open(index.folder)
    assert index.drop(gone) == 0
    assert index.holds(gone) == set()
    assert [p.name for p in (index.folder / "runs").iterdir()] == index.about["runs"]
    assert [p.stem for p in (index.folder / "decisions").iterdir()] == ["000002"]


def test_drop_all_documents_of_all_runs_leaves_an_empty_index(made, corpus, doc, key):
    index, texts, _ = made
    second = corpus(
        [doc(text=texts[0], shard="x", id=key(100)), doc(text="a b c d e f", shard="x")]
    )
    add(index, second)
    ids = {i for run in index.runs for i in run.ids().to_pylist()}
    assert index.drop(ids) == len(texts) + 2
    opened = Index.open(index.folder)
    assert (opened.starts[-1], opened.decisions().num_rows, query(opened, texts[0])) == (0, 0, [])
    add(opened, second)
    assert [m.crawl for m in query(opened, texts[0])] == [opened.about["runs"][-1]]


def test_index_within_sources_is_not_asked_about_texts_of_none(tmp_path):
    index = Index.make(tmp_path / "index", NearDuplicates(scope="source"))
    with pytest.raises(UsageError, match=r"scope: source, where texts of one scope alone"):
        query(Index.open(index.folder), "one two three four five six")
    with pytest.raises(UsageError, match=r"near_duplicates.scope: 'source', the run has 'corpus'"):
        index.check_same(NearDuplicates())
