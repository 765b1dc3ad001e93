from __future__ import annotations

import base64
import io
import json
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.documents.errors import StopError, UsageError
from gristmill.mixing import encoder as module
from gristmill.mixing.encoder import OWN, libraries_of, load_encoder
from gristmill.mixing.pieces import CL100K
from gristmill.mixing.probe import PROBE
from gristmill.mixing.tiktoken_file import _letters, _pairs

SPECIAL = {"<|endoftext|>": 16_368, "<|user|>": 16_371}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
SENTENCES = "the mill grinds grain slowly and the miller counts 1234 sacks; Größe, 玻璃, été."


@pytest.fixture(scope="module", name="ranks")
def ranks_fixture():
    """Our own tokenizer's tokens and ids, as tiktoken keeps them."""
    byte = {letter: b for b, letter in enumerate(_letters())}
    vocabulary = json.loads(OWN.read_text())["model"]["vocab"]
    return {bytes(byte[c] for c in token): rank for token, rank in vocabulary.items()}


@pytest.fixture(scope="module", name="ranked")
def ranked_fixture(ranks, tmp_path_factory):
    path = tmp_path_factory.mktemp("ranks") / "own.tiktoken"
    lines = [base64.b64encode(token) + b" %d" % rank for token, rank in ranks.items()]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


@pytest.fixture(scope="module", name="tik")
def tik_fixture(ranked):
    return load_encoder(ranked, pattern="cl100k", special=SPECIAL)


@pytest.fixture(scope="module", name="library")
def library_fixture(ranks):
    tiktoken = pytest.importorskip("tiktoken")
    return tiktoken.Encoding("own", pat_str=CL100K, mergeable_ranks=ranks, special_tokens=SPECIAL)


@pytest.fixture(scope="module", name="models", params=["unigram", "bpe"])
def models_fixture(request, tmp_path_factory):
    sentencepiece = pytest.importorskip("sentencepiece")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([SENTENCES, PROBE[3]] * 40),
        model_writer=model,
        model_type=request.param,
        vocab_size=400,
        byte_fallback=True,
        hard_vocab_limit=False,
        control_symbols=["<turn>"],
        minloglevel=2,
    )
    path = tmp_path_factory.mktemp("sp") / "small.model"
    path.write_bytes(model.getvalue())
    return path, sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def ids_of(encoder, texts):
    ids, offsets = encoder.encode(pa.array(texts, pa.large_string()))
    return [ids[a:b].tolist() for a, b in pairwise(offsets)]


def test_ranks_take_the_fast_engine_and_say_which(tik):
    assert tik.engine.startswith("fastokens ")
    assert tik.cuts
    assert tik.eos_id == SPECIAL["<|endoftext|>"]
    assert dict(tik.controls) == SPECIAL
    assert tik.bos_id is None
    assert tik.vocab_size == 16_372
    assert len(tik.digest) == 32


def test_ranks_give_the_ids_of_tiktoken_on_the_probe(tik, library):
    assert ids_of(tik, PROBE) == [library.encode_ordinary(text) for text in PROBE]


@given(texts=st.lists(TEXTS, max_size=4))
def test_ranks_give_the_ids_of_tiktoken(tik, library, texts):
    assert ids_of(tik, texts) == [library.encode_ordinary(text) for text in texts]


def test_control_tokens_in_text_are_plain_text(tik, library):
    (ids,) = ids_of(tik, ["<|endoftext|><|user|>"])
    assert not set(ids) & set(SPECIAL.values())
    assert library.decode(ids) == "<|endoftext|><|user|>"


def test_a_pattern_of_ones_own_is_proven_too(ranked, ranks):
    tiktoken = pytest.importorskip("tiktoken")
    split = r"\p{L}+| ?[^\p{L}]"
    encoder = load_encoder(ranked, pattern=split, special=SPECIAL)
    library = tiktoken.Encoding("x", pat_str=split, mergeable_ranks=ranks, special_tokens=SPECIAL)
    assert not encoder.cuts  # no safe place is known for it
    assert ids_of(encoder, PROBE) == [library.encode_ordinary(text) for text in PROBE]


def test_ranks_with_other_ids_stop_unless_slow_is_allowed(ranked, library, monkeypatch):
    right = module._fast_flat

    def off_by_one(definition):
        flat, version = right(definition)
        return (lambda texts: (flat(texts)[0] + np.uint32(1), flat(texts)[1])), version

    monkeypatch.setattr(module, "_fast_flat", off_by_one)
    with pytest.raises(StopError, match="must be those of `tiktoken`"):
        load_encoder(ranked, pattern="cl100k", special=SPECIAL)
    slow = load_encoder(ranked, pattern="cl100k", special=SPECIAL, allow_slow=True)
    assert slow.engine.startswith("tiktoken ")
    assert ids_of(slow, PROBE[:9]) == [library.encode_ordinary(text) for text in PROBE[:9]]


def test_pairs_of_a_token_are_all_its_splits_into_tokens():
    ranks = {b"a": 0, b"b": 1, b"c": 2, b"bc": 3, b"ab": 4, b"abc": 5}
    assert list(_pairs(b"abc", ranks)) == [(b"a", b"bc"), (b"ab", b"c")]
    assert list(_pairs(b"a", ranks)) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"special": SPECIAL}, "state `pattern`, one of gpt2, cl100k, o200k, qwen2"),
        ({"pattern": "cl100k"}, "names no control tokens"),
        ({"pattern": "cl100k", "special": {"<x>": 5}}, "id 5 is another token's"),
        ({"pattern": "cl100k", "special": {"<x>": "5"}}, r"special\.<x>: found '5'"),
        ({"pattern": "cl100k", "special": {"<x>": 99_999}}, "name the control token that ends"),
        ({"pattern": "cl100k", "special": SPECIAL, "eos": "<|usr|>"}, "did you mean '<|user|>'"),
        ({"pattern": "cl100k", "special": SPECIAL, "bos": True}, "has no template"),
        ({"pattern": "(", "special": SPECIAL}, "does not take it"),
    ],
)
def test_ranks_wrong_use_is_named(ranked, options, words):
    with pytest.raises(UsageError, match=words.replace("|", r"\|").replace("(", r"\(")):
        load_encoder(ranked, **options)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"IQ== 0\nIg== one\n", r"line 2 is b'Ig== one'"),
        (b"IQ== 0\nIg== 1\n", "254 of the 256 bytes have no token, 0x00 first"),
    ],
)
def test_ranks_torn_are_named(tmp_path, content, words):
    path = tmp_path / "torn.tiktoken"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=words):
        load_encoder(path, pattern="cl100k", special=SPECIAL)


def test_models_give_the_ids_of_sentencepiece(models):
    path, library = models
    encoder = load_encoder(path)
    assert encoder.engine.startswith("sentencepiece ")
    assert encoder.eos_id == library.eos_id()
    assert encoder.bos_id is None
    assert encoder.vocab_size == library.GetPieceSize()
    assert set(encoder.controls) >= {"<s>", "</s>", "<turn>"}
    assert ids_of(encoder, PROBE) == [library.EncodeAsIds(text) for text in PROBE]
    spelt = ids_of(encoder, ["</s><turn>"])[0]
    assert not set(spelt) & set(encoder.controls.values())
    assert load_encoder(path, bos=True).bos_id == library.bos_id()


def test_models_never_cut_a_text(models, monkeypatch):
    path, library = models
    monkeypatch.setattr(module, "LONGEST", 64)
    monkeypatch.setattr(module, "PIECE", 64)
    text = SENTENCES * 30
    assert ids_of(load_encoder(path), [text]) == [library.EncodeAsIds(text)]


def test_options_of_ranks_are_refused_for_other_files(models):
    for path in (models[0], OWN):
        with pytest.raises(UsageError, match="are for files of tiktoken's ranks"):
            load_encoder(path, pattern="cl100k")


def test_libraries_follow_the_bytes_not_the_name(ranked, models, tmp_path):
    for source, names in (
        (ranked, ["fastokens", "tiktoken"]),
        (models[0], ["sentencepiece"]),
        (OWN, ["fastokens", "tokenizers"]),
    ):
        path = tmp_path / "any.name"
        path.write_bytes(source.read_bytes())
        assert libraries_of(path) == names
    assert libraries_of(None) == ["fastokens", "tokenizers"]
