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
from gristmill.dedup.rank import column, matrix, nodes
from gristmill.dedup.verify import shingle_sets
from gristmill.documents.errors import DamagedError, StopError, UsageError

STAGE = NearDuplicates(group_cap=4, hot_cap=6)


def add(index, crawl):
    """Add a corpus of the tests' engine as one crawl."""
    writer = index.writer()
    for name, documents in zip(crawl.shards, crawl.surveyed(STAGE), strict=True):
        some = np.flatnonzero(column(documents, "shingles") > 0)
        taken = documents.take(some)
        texts = crawl.texts(column(taken, "shard"), column(taken, "row"))
        values, begins, ends = shingle_sets(texts, 5, 5)
        offsets = np.append(begins, ends[-1:] if len(ends) else 0)
        writer.add(name, nodes(taken), matrix(taken, "bands", STAGE.bands), (values, offsets))
    return index.add(writer)


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
        found = index.query(text)
        assert {m.id: (m.shared, m.either) for m in found} == expected
        shares = [Fraction(m.shared, m.either) for m in found]
        assert shares == sorted(shares, reverse=True)
    assert index.query("") == index.query("a b c") == []


def test_index_same_crawl_again_changes_nothing(made):
    index, _, crawl = made
    before = (index.folder / "index.json").read_bytes()
    assert add(index, crawl).num_rows == 0
    assert (index.folder / "index.json").read_bytes() == before


def test_index_shard_of_another_crawl_is_refused(made, corpus, doc):
    index, texts, _ = made
    with pytest.raises(UsageError, match="shard s1 is in run"):
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


def test_index_flipped_bit_is_found_by_check(made):
    run = made[0].runs[0]
    run.check()
    path = run.folder / "sets.bin"
    content = bytearray(path.read_bytes())
    content[40] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedError, match=r"sets.bin is not what run.json says"):
        run.check()


def test_index_nothing_there_says_what_makes_one(tmp_path):
    with pytest.raises(UsageError, match="no index in it; `gristmill dedup index"):
        Index.open(tmp_path)
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
    assert gone.isdisjoint({bytes.fromhex(m.id) for t in texts for m in index.query(t)})
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
