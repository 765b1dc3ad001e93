"""Token shards: what is written balances, reads back, and shows each flipped byte."""

from __future__ import annotations

import hashlib
import json
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gristmill.documents.errors import (
    ContractError,
    DamagedError,
    FormatError,
    StopError,
)
from gristmill.documents.fingerprint import canonical
from gristmill.mixing import encoder as encoder_module
from gristmill.mixing import shards, tokens
from gristmill.mixing.encoder import load_encoder
from gristmill.mixing.shards import ShardPaths, TokenShard
from gristmill.mixing.tokens import TokenAccount, encode_shard

ENCODER = load_encoder()
TEXTS = ["Hello, world.", "", "a <|endoftext|> b", "漢字 👍🏽\n\n\tcode()", "x" * 5000, "end"]


def corpus_file(path, texts, **options):
    ids = [hashlib.blake2b(f"{n}".encode(), digest_size=16).digest() for n in range(len(texts))]
    table = pa.table(
        {
            "locator": pa.array([{"file": "f", "offset": n} for n in range(len(texts))]),
            "id": pa.array(ids, pa.binary(16)),
            "text": pa.array(texts, pa.large_string()),
        }
    )
    pq.write_table(table, path, **options)
    return ids


def written(prefix, corpus, encoder=ENCODER):
    p = ShardPaths.of(prefix)
    return encode_shard(corpus, encoder, p)


@pytest.fixture(name="shard")
def shard_fixture(tmp_path):
    """Prefix of a written shard of TEXTS in three row groups."""
    corpus_file(tmp_path / "c.parquet", TEXTS, row_group_size=2)
    written(tmp_path / "web.00001", tmp_path / "c.parquet")
    return tmp_path / "web.00001"


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=60), max_size=9))
def test_shard_gives_back_every_document(tmp_path, texts):
    names = corpus_file(tmp_path / "c.parquet", texts, row_group_size=4)
    account = written(tmp_path / "s", tmp_path / "c.parquet")
    shard = TokenShard.open(tmp_path / "s")
    counts = ENCODER.count(pa.array(texts, pa.large_string()))
    assert account == TokenAccount(
        documents=len(texts),
        text_tokens=int(counts.sum()),
        special_tokens=len(texts),
        bytes=sum(len(t.encode()) for t in texts),
    )
    assert shard.token_count == account.text_tokens + account.special_tokens
    assert [bytes(row) for row in shard.ids] == names
    for n, text in enumerate(texts):
        found = shard.tokens(*shard.span(n)).tolist()
        assert found == [*ENCODER.encode(pa.array([text]))[0].tolist(), ENCODER.eos_id]
    shard.verify()


def test_shard_has_one_end_for_each_document_and_none_from_text(shard):
    open_shard = TokenShard.open(shard)
    flat = np.fromfile(f"{shard}.bin", "<u2")
    assert np.flatnonzero(flat == ENCODER.eos_id).tolist() == (open_shard.ends - 1).tolist()
    assert len(flat) == open_shard.ends[-1] == open_shard.index["tokens"]


def test_shard_files_are_what_other_readers_expect(shard):
    ends = np.frombuffer((shard.parent / "web.00001.ends.npy").read_bytes()[128:], "<u8")
    assert ends.tolist() == TokenShard.open(shard).ends.tolist()  # datatrove's .ds.index
    index = json.loads((shard.parent / "web.00001.index.json").read_bytes())
    raw = (shard.parent / "web.00001.bin").read_bytes()
    assert (index["dtype"], index["size"]) == ("uint16", len(raw))
    assert index["digest"] == hashlib.blake2b(raw, digest_size=16).hexdigest()
    assert index["crc32"] == [zlib.crc32(raw)]
    assert index["tokenizer"] == ENCODER.digest
    assert index["engine"] == ENCODER.engine
    assert (shard.parent / "web.00001.index.json").read_bytes() == canonical(index) + b"\n"


def test_shard_bytes_do_not_hang_on_batches_or_runs(shard, tmp_path, monkeypatch):
    monkeypatch.setattr(tokens, "BATCH", 64)
    corpus_file(tmp_path / "again.parquet", TEXTS)
    written(tmp_path / "again", tmp_path / "again.parquet")
    for end in (".bin", ".ends.npy", ".ids.npy", ".unlearnt.npy", ".index.json"):
        first = (shard.parent / f"{shard.name}{end}").read_bytes()
        assert (tmp_path / f"again{end}").read_bytes() == first
    assert not list(tmp_path.glob("*.part"))


def test_shard_of_documents_over_many_parts_is_the_same(tmp_path, monkeypatch):
    texts = ["", "Some words, and more.\n" * 90, "", "x y " * 200, "end"]
    corpus_file(tmp_path / "c.parquet", texts)
    written(tmp_path / "whole", tmp_path / "c.parquet")
    monkeypatch.setattr(encoder_module, "PIECE", 50)
    monkeypatch.setattr(encoder_module, "GROUP", 120)
    assert len(list(ENCODER.parts(pa.array(texts)))) > 9
    written(tmp_path / "parts", tmp_path / "c.parquet")
    for end in (".bin", ".ends.npy", ".ids.npy", ".unlearnt.npy", ".index.json"):
        assert (tmp_path / f"parts{end}").read_bytes() == (tmp_path / f"whole{end}").read_bytes()


def test_shard_of_several_extents_checks_each_once(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "EXTENT", 64)
    monkeypatch.setattr(tokens, "EXTENT", 64)
    texts = [f"document {n} of several, with words" for n in range(60)]
    corpus_file(tmp_path / "c.parquet", texts)
    written(tmp_path / "s", tmp_path / "c.parquet")
    raw = bytearray((tmp_path / "s.bin").read_bytes())
    index = json.loads((tmp_path / "s.index.json").read_bytes())
    assert index["crc32"] == [zlib.crc32(raw[at : at + 64]) for at in range(0, len(raw), 64)]
    raw[64 * 3 + 10] ^= 1
    (tmp_path / "s.bin").write_bytes(raw)
    shard = TokenShard.open(tmp_path / "s")
    assert len(shard.tokens(0, 96)) == 96  # extents 0, 1 and 2 of 32 tokens
    assert list(map(bool, shard._checked[:5])) == [True, True, True, False, False]
    for start, end in ((0, 97), (127, 128), (96, 97)):
        with pytest.raises(
            DamagedError, match=r"s\.bin: extent 3 .bytes 192 to 256, tokens from 96"
        ):
            shard.tokens(start, end)
    assert len(shard.tokens(0, shard.token_count, verify=False)) == shard.token_count
    assert len(shard.tokens(128, 140)) == 12
    with pytest.raises(DamagedError, match="extent 3"):
        shard.verify()


@pytest.mark.parametrize("end", [".bin", ".ends.npy", ".ids.npy", ".unlearnt.npy"])
@pytest.mark.parametrize("fault", ["flip", "cut", "grow"])
def test_shard_damage_anywhere_is_found_and_named(shard, end, fault):
    path = shard.parent / f"{shard.name}{end}"
    raw = bytearray(path.read_bytes())
    if fault == "flip":
        raw[len(raw) * 2 // 3] ^= 0x10
    elif fault == "cut":
        raw.pop()
    else:
        raw.append(0)
    path.write_bytes(raw)
    with pytest.raises(DamagedError, match=path.name):
        TokenShard.open(shard).verify()


def test_shard_missing_file_or_unknown_format_stops(shard):
    index = shard.parent / f"{shard.name}.index.json"
    kept = index.read_bytes()
    index.write_bytes(kept.replace(b'"format":2', b'"format":1'))
    with pytest.raises(FormatError, match="format 1"):
        TokenShard.open(shard)
    index.write_bytes(b"{}")
    with pytest.raises(DamagedError, match="not the index"):
        TokenShard.open(shard)
    index.write_bytes(kept)
    (shard.parent / f"{shard.name}.ids.npy").unlink()
    assert TokenShard.open(shard).documents == len(TEXTS)
    with pytest.raises(StopError, match=r"ids\.npy is missing"):
        TokenShard.open(shard).verify()
    with pytest.raises(StopError, match=r"other\.index\.json is missing"):
        TokenShard.open(shard.with_name("other"))


def test_shard_positions_outside_are_refused(shard):
    open_shard = TokenShard.open(shard)
    for start, end in ((-1, 3), (3, 2), (0, open_shard.token_count + 1)):
        with pytest.raises(IndexError):
            open_shard.tokens(start, end)
    with pytest.raises(IndexError):
        open_shard.span(len(TEXTS))
    with pytest.raises(ValueError, match="read-only"):
        open_shard.tokens(0, 3)[0] = 1


def test_shard_writes_begins_where_the_tokenizer_has_them(tmp_path):
    import dataclasses

    encoder = dataclasses.replace(ENCODER, bos_id=16_376)
    corpus_file(tmp_path / "c.parquet", TEXTS)
    account = written(tmp_path / "s", tmp_path / "c.parquet", encoder)
    shard = TokenShard.open(tmp_path / "s")
    assert account.special_tokens == 2 * len(TEXTS)
    for n, text in enumerate(TEXTS):
        body = ENCODER.encode(pa.array([text]))[0].tolist()
        assert shard.tokens(*shard.span(n)).tolist() == [16_376, *body, ENCODER.eos_id]


def test_shard_of_wide_ids_is_uint32(tmp_path):
    import dataclasses

    encoder = dataclasses.replace(ENCODER, vocab_size=70_000, eos_id=69_999)
    corpus_file(tmp_path / "c.parquet", TEXTS)
    written(tmp_path / "s", tmp_path / "c.parquet", encoder)
    shard = TokenShard.open(tmp_path / "s")
    assert shard.dtype == np.dtype("<u4")
    assert shard.tokens(*shard.span(1)).tolist() == [69_999]
    shard.verify()


def test_encode_text_that_gives_the_end_token_is_a_broken_contract(tmp_path):
    import dataclasses

    common = int(ENCODER.encode(pa.array(["a"]))[0][0])
    corpus_file(tmp_path / "c.parquet", ["a"])
    with pytest.raises(ContractError, match="end of a document"):
        written(tmp_path / "s", tmp_path / "c.parquet", dataclasses.replace(ENCODER, eos_id=common))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.parquet"]


def test_encode_unreadable_corpus_is_named(tmp_path):
    with pytest.raises(StopError, match=r"c\.parquet is missing"):
        written(tmp_path / "s", tmp_path / "c.parquet")
    corpus_file(tmp_path / "c.parquet", TEXTS)
    raw = bytearray((tmp_path / "c.parquet").read_bytes())
    (tmp_path / "c.parquet").write_bytes(raw[:-9])
    with pytest.raises(DamagedError, match=r"c\.parquet is not readable"):
        written(tmp_path / "s", tmp_path / "c.parquet")
    pq.write_table(pa.table({"text": ["a"]}), tmp_path / "c.parquet")
    with pytest.raises(StopError, match=r"no column \['id'\]"):
        written(tmp_path / "s", tmp_path / "c.parquet")
    pq.write_table(pa.table({"text": ["a"], "id": ["b"]}), tmp_path / "c.parquet")
    with pytest.raises(StopError, match="not 16 bytes"):
        written(tmp_path / "s", tmp_path / "c.parquet")
    assert [p.name for p in tmp_path.iterdir()] == ["c.parquet"]
