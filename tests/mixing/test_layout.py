"""Conversations as token shards, against a plain walk over their turns."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gristmill.documents.errors import DamagedError
from gristmill.documents.schema import TURNS
from gristmill.mixing import encoder as encoder_module
from gristmill.mixing import tokens
from gristmill.mixing.encoder import load_encoder
from gristmill.mixing.layout import joined
from gristmill.mixing.shards import ShardPaths, TokenShard
from gristmill.mixing.spoken import spoken_in
from gristmill.mixing.tokens import encode_shard
from gristmill.mixing.turns import LEVELS, TurnSpec

ENCODER = load_encoder()
C = ENCODER.controls
SPEC = TurnSpec.parse({"preset": "gristmill", "tool": {"head": ["<|tool_result|>"]}})
WORDS = ["look", " <|user|>", "漢字", "x = 1\n", "<|end_of_turn|>", "  ", "é"]
ROLES = [
    "system",
    "user",
    "assistant",
    "tool",
    "call",
    "arguments",
    "result",
    "text",
    "reasoning",
    "critic",
]


def ids_of(text):
    return ENCODER.encode(pa.array([text], pa.large_string()))[0].tolist()


@st.composite
def documents(draw):
    """(text, turns or None) of a document: headings, what is said, and lines between."""
    if draw(st.booleans()):
        return "".join(draw(st.lists(st.sampled_from(WORDS), max_size=4))), None
    text, turns = "", []
    for role in draw(st.lists(st.sampled_from(ROLES), max_size=6)):
        text += draw(st.sampled_from(["", "\n\n"]))
        start = len(text.encode())
        text += draw(st.sampled_from(["", f"## {role}\n\n"]))
        body = len(text.encode())
        text += "".join(draw(st.lists(st.sampled_from(WORDS), max_size=3)))
        turns.append((role, start, body, len(text.encode()), draw(st.booleans())))
    return text, turns


def naive(text, turns):
    """Ids of a document, each with whether it is a target."""
    if not turns or all(stop <= start for _, start, _, stop, _ in turns):
        return [(i, True) for i in [*ids_of(text), ENCODER.eos_id]]
    raw = text.encode()
    out, held = [], []
    level_of = [LEVELS.get(role, 0) for role, *_ in turns]
    last = True

    def close(level):
        while held and held[-1][0] >= level:
            out.extend(held.pop()[1])

    def around(role, where):
        spec = SPEC.roles
        body = spec.get(role) or (None if role in LEVELS else spec["other"])
        found = []
        for kind, value in getattr(body, where) if body else ():
            text = value.replace("{role}", role)
            found += [C[value]] if kind == "token" else ids_of(text)
        return found

    def open_(role, trained):
        level = LEVELS.get(role, 0)
        close(level)
        out.extend((i, trained and level > 0) for i in around(role, "head"))
        held.append((level, [(i, trained) for i in around(role, "tail")]))

    for n, (role, start, body, stop, trained) in enumerate(turns):
        inner = []
        for m in range(n + 1, len(turns)):
            if level_of[m] <= level_of[n]:
                break
            inner.append(turns[m][3] > turns[m][1])
        if stop <= start and not any(inner):
            continue
        if role in LEVELS and not held:
            open_("assistant" if trained else "user", trained)
        open_(role, trained)
        out.extend((i, trained) for i in ids_of(raw[body:stop].decode()))
        last = trained
    close(0)
    return [*out, (ENCODER.eos_id, last)]


def write(folder, docs, group=3):
    ids = [hashlib.blake2b(f"{n}".encode(), digest_size=16).digest() for n in range(len(docs))]
    names = ("role", "start", "body", "stop", "trained")
    turns = [t and [dict(zip(names, one, strict=True)) for one in t] for _, t in docs]
    table = pa.table(
        {
            "id": pa.array(ids, pa.binary(16)),
            "text": pa.array([t for t, _ in docs], pa.large_string()),
            "turns": pa.array(turns, TURNS),
        }
    )
    pq.write_table(table, folder / "c.parquet", row_group_size=group)
    account = encode_shard(folder / "c.parquet", ENCODER, ShardPaths.of(folder / "s"), turns=SPEC)
    return account, TokenShard.open(folder / "s")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(docs=st.lists(documents(), max_size=8), piece=st.sampled_from([None, 8]))
def test_layout_of_any_turns_equals_a_plain_walk(tmp_path, docs, piece):
    with pytest.MonkeyPatch.context() as patch:
        if piece:
            patch.setattr(encoder_module, "GROUP", piece)
            patch.setattr(tokens, "BATCH", 64)
        account, shard = write(tmp_path, docs)
    expected = [naive(*doc) for doc in docs]
    for n, mine in enumerate(expected):
        assert shard.tokens(*shard.span(n)).tolist() == [i for i, _ in mine]
    flags = [not t for mine in expected for _, t in mine]
    found = np.zeros(shard.token_count, bool)
    for start, stop in shard.unlearnt.tolist():
        found[start:stop] = True
    assert found.tolist() == flags
    assert account.unlearnt_tokens == sum(flags)
    controls = [i for mine in expected for i, _ in mine if i in C.values()]
    assert account.special_tokens == len(controls)
    assert shard.index["placed"] == {str(i): controls.count(i) for i in sorted(set(controls))}
    runs = [(d, e) for d, e in zip(docs, expected, strict=True) if d[1] is not None]
    now = [sum(i not in C.values() for i, _ in e) for _, e in runs]
    whole = [len(ids_of(text)) for (text, _), _ in runs]
    assert account.turns[0] == len(runs)
    assert account.turns[1] == sum(len(text.encode()) for (text, _), _ in runs)
    assert account.turns[3:] == (
        sum(whole),
        sum(max(w - n, 0) for w, n in zip(whole, now, strict=True)),
        sum(max(n - w, 0) for w, n in zip(whole, now, strict=True)),
    )
    shard.verify()
    said = spoken_in(shard)
    places = [(n, k) for n, mine in enumerate(expected) for k, _ in enumerate(mine)]
    got = {(n, k) for n, a, b in said.unlearnt.tolist() for k in range(a, b)}
    assert got == {place for place, gone in zip(places, flags, strict=True) if gone}
    assert [tuple(c) for c in said.controls.tolist()] == [
        (n, k)
        for n, mine in enumerate(expected)
        for k, (i, _) in enumerate(mine[:-1])
        if i in C.values()
    ]


def test_layout_text_that_spells_a_control_token_is_text(tmp_path):
    said = "<|assistant|> says <|end_of_turn|><|endoftext|>"
    turns = [("user", 0, 0, len(said), False)]
    _, shard = write(tmp_path, [(said, turns)])
    ids = shard.tokens(*shard.span(0)).tolist()
    assert ids == [C["<|user|>"], *ids_of(said), C["<|end_of_turn|>"], ENCODER.eos_id]
    assert shard.unlearnt.tolist() == [[0, len(ids)]]


def test_layout_without_a_template_leaves_the_text_as_it_stands(tmp_path):
    text = "## user\n\nhi\n"
    write(tmp_path, [(text, [("user", 0, 9, 11, False)])])
    encode_shard(tmp_path / "c.parquet", ENCODER, ShardPaths.of(tmp_path / "plain"))
    shard = TokenShard.open(tmp_path / "plain")
    assert shard.tokens(*shard.span(0)).tolist() == [*ids_of(text), ENCODER.eos_id]
    assert not len(shard.unlearnt)


def test_layout_damaged_stretches_are_refused(tmp_path):
    _, shard = write(tmp_path, [("abc", [("user", 0, 0, 3, False)])])
    path = shard.paths.unlearnt
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    with pytest.raises(DamagedError, match=path.name):
        _ = TokenShard.open(tmp_path / "s").unlearnt


def test_joined_makes_one_of_those_that_touch():
    spans = np.array([[0, 2], [2, 5], [7, 8], [8, 9], [10, 11]])
    assert joined(spans).tolist() == [[0, 5], [7, 9], [10, 11]]
    assert joined(spans[:0]).shape == (0, 2)
