"""Training the tokenizer: the same bytes on every run, control tokens above the model."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys

import pytest
import zstandard

from gristmill.documents.errors import UsageError
from gristmill.mixing.encoder import OWN
from gristmill.mixing.train_tokenizer import (
    CONTROL,
    PATTERN,
    SETS,
    VOCABULARY,
    chosen_texts,
    set_files,
    texts_of,
    train,
)

TEXTS = [
    f"word{n % 97} and {n * 7919} others, naïve 漢字; def f{n}(x): return x\n" for n in range(900)
]


def test_train_gives_the_wanted_ids_with_controls_last():
    made = json.loads(train(TEXTS, 400))
    assert len(made["model"]["vocab"]) == 400 - len(CONTROL)
    assert [t["content"] for t in made["added_tokens"]] == list(CONTROL)
    assert [t["id"] for t in made["added_tokens"]] == list(range(400 - len(CONTROL), 400))
    assert not set(CONTROL) & set(made["model"]["vocab"])


def test_train_gives_the_same_bytes_for_any_hash_seed_and_thread_count():
    script = (
        "import hashlib\n"
        "from gristmill.mixing.train_tokenizer import train\n"
        "texts = [f'word{n % 97} and {n * 7919} others {n}\\n' for n in range(3000)]\n"
        "print(hashlib.sha256(train(texts, 600)).hexdigest())\n"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", script],
            env=os.environ | {"PYTHONHASHSEED": seed, "RAYON_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, threads in (("1", "1"), ("2", "2"), ("3", "3"))
    }
    assert len(digests) == 1


def test_train_on_too_little_text_says_so():
    with pytest.raises(UsageError, match="give more text"):
        train(["a b c"], 400)


def test_own_file_is_of_this_pattern_and_these_controls():
    own = json.loads(OWN.read_bytes())
    assert own["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] == PATTERN
    assert [t["content"] for t in own["added_tokens"]] == list(CONTROL)
    assert len(own["model"]["vocab"]) + len(CONTROL) == VOCABULARY


def test_texts_are_read_in_order_and_thinned_evenly(tmp_path):
    lines = "".join(json.dumps({"text": f"text {n}"}) + "\n" for n in range(10)).encode()
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines))
    (tmp_path / "b.jsonl.zst").write_bytes(zstandard.compress(lines))
    files = [tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl.zst"]
    assert list(texts_of(files)) == [f"text {n}" for n in range(10)] * 2
    assert len(chosen_texts(files, 120)) == 20  # 20 texts of 6 bytes fit as they are
    assert chosen_texts(files, 119) == [f"text {n}" for n in range(0, 10, 2)] * 2


def test_missing_set_is_named(tmp_path):
    with pytest.raises(UsageError, match=SETS[0][0]):
        set_files(tmp_path)
