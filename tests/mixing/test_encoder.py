"""The encoder: ids of `tokenizers`, plain text stays plain, pieces change nothing."""

# ruff: noqa: RUF001  (characters that look like others are the point)
from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gristmill.documents.errors import ContractError, StopError, UsageError
from gristmill.documents.fingerprint import file_digest
from gristmill.documents.text import from_buffers
from gristmill.mixing import encoder as module
from gristmill.mixing.encoder import OWN, OWN_DIGEST, load_encoder
from gristmill.mixing.pieces import GPT2, SPLITS, pieces
from gristmill.mixing.probe import chained_pairs

ENCODER = load_encoder()
FULL = json.loads(OWN.read_bytes())
REFERENCE = tokenizers.Tokenizer.from_str(json.dumps(FULL | {"added_tokens": []}))
# Where splits turn: letters, digits, marks, spaces of every kind, contractions, controls, planes.
_PIECES = """
a Z é 1 ² ' . - / < | > _ \u0301 漢 字 。 ， ก ี ה я 's 'LL 👍🏽 \u200d \U000e0067 \x00
<|endoftext|> <|system|> def {"a":1, http://a.b/?c=1
""".split()  # noqa: SIM905
_BLANKS = [*" \t\n\r\x1f\u00a0\u0085\u2028\u3000", "  ", "\r\n", "    return x\n", " f(x):\n"]
TURNS = st.sampled_from(_PIECES + _BLANKS)
ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=120)
CODE_LIKE = st.lists(TURNS, max_size=80).map("".join)


def column(texts):
    return pa.array(texts, pa.large_string())


def reference(text):
    return REFERENCE.encode(text, add_special_tokens=False).ids


def encoded(text, encoder=ENCODER):
    return encoder.encode(column([text]))[0].tolist()


def variant(tmp_path, **changes):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(FULL | changes), "utf-8")
    return path


def test_own_tokenizer_is_small_pinned_and_fast():
    assert OWN.stat().st_size <= 1_000_000
    assert ENCODER.digest == OWN_DIGEST == file_digest(OWN)
    assert ENCODER.engine.startswith("fastokens ")
    assert (ENCODER.vocab_size, ENCODER.eos_id, ENCODER.bos_id) == (16_384, 16_368, None)
    assert ENCODER.dtype == np.dtype("<u2")
    assert ENCODER.cuts


def test_own_card_states_the_files_digest_and_size():
    card = OWN.with_name("TOKENIZER.md").read_text("utf-8")
    assert OWN_DIGEST in card
    assert f"{OWN.stat().st_size:,} bytes" in card


@settings(max_examples=300)
@given(ANY)
def test_ids_of_random_unicode_equal_tokenizers(text):
    assert encoded(text) == reference(text)


@settings(max_examples=300)
@given(CODE_LIKE)
def test_ids_of_code_like_text_equal_tokenizers(text):
    assert encoded(text) == reference(text)


@settings(max_examples=30)
@given(CODE_LIKE, st.integers(1, 4000))
def test_ids_of_long_texts_equal_tokenizers(text, times):
    long = (text * times)[:100_000]  # the engine has another path above 64 KiB
    assert encoded(long) == reference(long)


@given(ANY | CODE_LIKE)
def test_ids_decode_to_the_text(text):
    assert REFERENCE.decode(encoded(text), skip_special_tokens=False) == text


def test_ids_do_not_hang_on_what_was_encoded_before():
    for text in (*chained_pairs(), *list(chained_pairs())[::-1]):
        assert encoded(text) == reference(text)


def test_own_golden_digest_is_that_of_tokenizers():
    slow = partial(module.rows_flat, reference)
    assert module.probe_digest(slow) == module.OWN_GOLDEN


def test_control_tokens_in_text_are_plain_text():
    names = [token["content"] for token in FULL["added_tokens"]]
    text = "before" + "".join(names) + "after"
    ids = encoded(text)
    assert not set(ENCODER.controls.values()).intersection(ids)
    assert REFERENCE.decode(ids) == text
    lone = ENCODER.count(column(["<|endoftext|>", "a <|endoftext|> b"]))
    assert lone.tolist() == [len(reference("<|endoftext|>")), len(reference("a <|endoftext|> b"))]
    assert lone[0] > 1  # as a control token it would be one


@given(st.lists(st.none() | ANY, max_size=12), st.data())
def test_encode_slices_nulls_and_empties_row_by_row(texts, data):
    start = data.draw(st.integers(0, len(texts)))
    stop = data.draw(st.integers(start, len(texts)))
    part = column(texts).slice(start, stop - start)
    ids, offsets = ENCODER.encode(part)
    rows = [reference(text or "") for text in texts[start:stop]]
    assert ids.dtype == ENCODER.dtype
    assert offsets.dtype == np.int64
    assert offsets.tolist() == np.cumsum([0, *map(len, rows)]).tolist()
    assert ids.tolist() == [i for row in rows for i in row]
    assert ENCODER.count(part).tolist() == [len(row) for row in rows]


def test_encode_takes_chunks_and_narrow_strings():
    chunks = pa.chunked_array([["one two"], [], ["three", None]], pa.string())
    ids, offsets = ENCODER.encode(chunks)
    assert ids.tolist() == reference("one two") + reference("three")
    assert offsets[-1] == offsets[-2] == len(ids)


def test_encode_of_text_that_is_not_utf8_names_the_row():
    broken = from_buffers(np.frombuffer(b"goodba\xffd", np.uint8), np.array([0, 4, 8]))
    with pytest.raises(ContractError, match="row 1: text is not UTF-8 at byte 2"):
        ENCODER.encode(broken)


def split_variants():
    """Our vocabulary under each split that `CUT` is said to be safe for."""
    for pattern in SPLITS:
        if pattern == GPT2:
            split = {"type": "ByteLevel", "use_regex": True, "add_prefix_space": False}
            split |= {"trim_offsets": True}
        else:
            split = json.loads(json.dumps(FULL["pre_tokenizer"]))
            split["pretokenizers"][0]["pattern"]["Regex"] = pattern
        yield tokenizers.Tokenizer.from_str(
            json.dumps(FULL | {"added_tokens": [], "pre_tokenizer": split})
        )


SPLIT_VARIANTS = list(split_variants())


@settings(max_examples=400)
@given(CODE_LIKE | ANY)
@example("a\r\n 1a1 a'sa's1'd .'s a.\n/b! \n 字 字\n字。。字，a ก я \u00a0 a\u00a0 \u2028a")
def test_pieces_cut_at_every_safe_place_keep_the_ids_of_every_known_split(text):
    data = np.frombuffer(text.encode(), np.uint8)
    spans = list(pieces(data, 1, 1 << 20))
    assert [start for start, _ in spans] == [0, *(stop for _, stop in spans)][: len(spans)]
    assert b"".join(data[a:b].tobytes() for a, b in spans) == text.encode()
    for tokenizer in SPLIT_VARIANTS:
        whole = tokenizer.encode(text, add_special_tokens=False).ids
        parts = [tokenizer.encode(data[a:b].tobytes().decode()).ids for a, b in spans]
        assert [i for part in parts for i in part] == whole


def test_pieces_of_ordinary_text_in_many_scripts_find_a_place_soon():
    for text in (
        "Plain words, and more. ",
        "一句話。另一句，",
        "Съешь ещё ",
        "गद्य और पद्य ",
        '{"a":1}',
    ):
        data = np.frombuffer((text * 100).encode(), np.uint8)
        longest = max(b - a for a, b in pieces(data, 200, 1 << 20))
        assert longest < 200 + len(text.encode())


@given(ANY, st.integers(1, 9))
def test_pieces_forced_apart_never_split_a_character(text, longest):
    data = np.frombuffer(text.encode(), np.uint8)
    parts = [data[a:b].tobytes().decode() for a, b in pieces(data, 1, longest)]
    assert "".join(parts) == text
    assert all(len(part.encode()) <= max(longest, 1) + 3 for part in parts)


def test_encode_of_a_long_document_in_pieces_equals_whole(monkeypatch):
    text = "".join(f"Line {n}: it's {n * 7919} words, e.g. naïve 漢字。\n" for n in range(3000))
    monkeypatch.setattr(module, "PIECE", 1000)
    monkeypatch.setattr(module, "GROUP", 5000)
    texts = ["", text, None, text[:77], "", text[5:]]
    ids, offsets = ENCODER.encode(column(texts))
    rows = [reference(t or "") for t in texts]
    assert ids.tolist() == [i for row in rows for i in row]
    assert np.diff(offsets).tolist() == [len(row) for row in rows]
    assert ENCODER.count(column(texts)).tolist() == [len(row) for row in rows]


def test_encode_of_a_run_without_a_safe_place_is_cut_and_decodes_the_same(monkeypatch):
    monkeypatch.setattr(module, "LONGEST", 4096)
    monkeypatch.setattr(module, "PIECE", 1024)
    text = "é" * 10_000
    assert REFERENCE.decode(encoded(text)) == text


def test_load_sets_one_thread_for_the_engine():
    script = (
        "import os, time\n"
        "from gristmill.mixing.encoder import load_encoder\n"
        "import pyarrow as pa\n"
        "encoder = load_encoder()\n"
        "encoder.count(pa.array(['some words and more of them ' * 200] * 2000))\n"
        "print(os.environ['FASTOKENS_BPE_THREADS'], len(os.listdir('/proc/self/task')))\n"
    )
    clean = {k: v for k, v in os.environ.items() if k != "FASTOKENS_BPE_THREADS"}
    if not Path("/proc/self/task").is_dir():
        pytest.skip("threads are counted in /proc")
    clean |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=clean, check=True
    )
    value, threads = result.stdout.split()
    assert value == "1"
    assert int(threads) <= 3  # Python, the engine's one, and Arrow may hold one


def test_importing_mixing_takes_neither_arrow_nor_engines():
    script = (
        "import sys, gristmill.mixing, gristmill.mixing.shards\n"
        "print(sorted({'pyarrow', 'fastokens', 'tokenizers', 'numba'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_load_unequal_engine_stops_unless_slow_is_allowed(monkeypatch):
    right = module._fast_flat

    def off_by_one(definition):
        flat, version = right(definition)

        def wrong(texts):
            ids, offsets = flat(texts)
            return ids + (ids == ids.max(initial=0)), offsets

        return wrong, version

    monkeypatch.setattr(module, "_fast_flat", off_by_one)
    with pytest.raises(StopError, match=r"fastokens gives .* tokenizers .* allow the slow engine"):
        load_encoder()
    slow = load_encoder(allow_slow=True)
    assert slow.engine == f"tokenizers {tokenizers.__version__}"
    text = "a <|endoftext|> b\n漢字"
    assert encoded(text, slow) == reference(text)


def test_load_other_ids_for_our_own_tokenizer_stop(monkeypatch):
    monkeypatch.setattr(module, "OWN_GOLDEN", "0" * 32)
    with pytest.raises(StopError, match="an engine changed"):
        load_encoder()


def template(before, after):
    pieces = [{"SpecialToken": {"id": name, "type_id": 0}} for name in before]
    pieces.append({"Sequence": {"id": "A", "type_id": 0}})
    pieces += [{"SpecialToken": {"id": name, "type_id": 0}} for name in after]
    ids = {t["content"]: t["id"] for t in FULL["added_tokens"]}
    names = {n: {"id": n, "ids": [ids[n]], "tokens": [n]} for n in (*before, *after)}
    pair = [*pieces, {"Sequence": {"id": "B", "type_id": 1}}]
    return {"type": "TemplateProcessing", "single": pieces, "pair": pair, "special_tokens": names}


def test_load_template_that_begins_documents_must_be_decided(tmp_path):
    path = variant(tmp_path, post_processor=template(["<|file|>"], []))
    with pytest.raises(UsageError, match=r"begins every document with .*16376.*bos=True"):
        load_encoder(path)
    assert load_encoder(path, bos=True).bos_id == 16_376
    assert load_encoder(path, bos=False).bos_id is None
    assert encoded("a b", load_encoder(path, bos=True)) == reference("a b")
    with pytest.raises(UsageError, match="no token before a document"):
        load_encoder(bos=True)


def test_load_template_that_documents_cannot_keep_is_refused(tmp_path):
    ends = variant(tmp_path, post_processor=template([], ["<|endoftext|>"]))
    assert load_encoder(ends).bos_id is None
    for before, after in ((["<|file|>", "<|user|>"], []), ([], ["<|user|>"])):
        with pytest.raises(UsageError, match="can have one id before"):
            load_encoder(variant(tmp_path, post_processor=template(before, after)))


def test_load_end_of_document_is_found_or_named(tmp_path):
    assert load_encoder(eos="<|end_of_turn|>").eos_id == 16_375
    with pytest.raises(UsageError, match=r"did you mean '<\|endoftext\|>'"):
        load_encoder(eos="<|endoftex|>")
    with pytest.raises(UsageError, match="name the control token that ends a document"):
        load_encoder(variant(tmp_path, added_tokens=FULL["added_tokens"][1:]))


def test_load_truncation_in_the_file_does_not_cut_documents(tmp_path):
    limit = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
    text = "one two three four five six"
    assert encoded(text, load_encoder(variant(tmp_path, truncation=limit))) == reference(text)


def test_load_random_merges_are_refused(tmp_path):
    with pytest.raises(UsageError, match="at random"):
        load_encoder(variant(tmp_path, model=FULL["model"] | {"dropout": 0.1}))


@pytest.mark.parametrize("content", [b"", b"[1]", b'{"model": 1}', b"\xff"])
def test_load_what_is_no_tokenizer_is_one_clear_error(tmp_path, content):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"tokenizer\.json is not"):
        load_encoder(path)
    with pytest.raises(UsageError, match="absent"):
        load_encoder(tmp_path / "absent.json")


def test_load_added_runs_of_spaces_stay_text(tmp_path):
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": True}
    spaces = {"id": 16_384, "content": " " * 9, "special": False} | plain
    path = variant(tmp_path, added_tokens=[*FULL["added_tokens"], spaces])
    encoder = load_encoder(path)
    assert 16_384 in encoded("a" + " " * 9 + "b", encoder)
    assert encoder.vocab_size == 16_385
    assert not encoder.cuts
