"""Runs of agents through a whole run: spans move with edits, books balance, near copies go."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.documents.errors import UsageError
from gristmill.ledger.writer import connect
from gristmill.mixing.encoder import load_encoder
from gristmill.mixing.shards import TokenShard
from gristmill.pipelines.run import open_run
from gristmill.pipelines.verify import verify

RECIPE = """
name: runs
root: data
sources:
  a:
    paths: [a.jsonl]
    reader: {text_field: null}
    converter: {trajectory: {outcome: verified}}
    stages: [pii]
turns: gristmill
shared:
  - near_duplicates
"""
KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
WORDS = [
    f"{a}{b}" for a in ["river", "stone", "cloud", "maple", "amber", "frost"] for b in "abcdefgh"
]


def trajectory(n, outcome="resolved", change=0):
    """A run whose texts no other has, but for `change` words of its second turn."""
    rng = np.random.default_rng(n)
    talk = [" ".join(rng.choice(WORDS, 60).tolist()) for _ in range(3)]
    words = talk[1].split()
    words[:change] = ["other"] * change
    call = {"name": "send", "arguments": json.dumps({"to": "jane.doe@corp-mail.com", "key": KEY})}
    return {
        "messages": [
            {"role": "user", "content": talk[0] + " 185.14.22.7 é"},
            {"role": "assistant", "content": " ".join(words), "tool_calls": [{"function": call}]},
            {"role": "tool", "content": f"sent to jane.doe@corp-mail.com {n}"},
            {"role": "assistant", "content": talk[2]},
        ],
        "outcome": outcome,
    }


ROWS = [
    trajectory(1),
    trajectory(2),
    trajectory(1, change=1),
    trajectory(3, outcome="failed"),
    trajectory(4, outcome="submitted"),
]


@pytest.fixture(name="run")
def run_fixture(tiny):
    return tiny(RECIPE, a=ROWS).out


def test_runs_verified_apart_and_masked_with_their_turns(run):
    (path,) = (run / "corpus").glob("*.parquet")
    rows = pq.read_table(path).to_pylist()
    assert len(rows) == 2  # of five: a near copy, one that failed, one that nothing verifies
    for row in rows:
        raw = row["text"].encode()
        said = [(t["role"], raw[t["body"] : t["stop"]].decode()) for t in row["turns"]]
        assert [role for role, _ in said] == [
            "user", "assistant", "call", "arguments", "tool", "assistant"
        ]  # fmt: skip
        assert said[0][1].endswith(" <IP> é")
        assert said[2][1] == "send"
        assert json.loads(said[3][1]) == {"to": "<EMAIL>", "key": "<KEY>"}
        assert said[4][1].startswith("sent to <EMAIL> ")
        assert said[5][1].split()[0] in WORDS
        assert row["text"].endswith(said[5][1] + "\n")
        heads = [raw[t["start"] : t["body"]].decode().strip() for t in row["turns"]]
        assert heads == ["## user", "## assistant", "### call:", "", "## tool", "## assistant"]


def test_runs_tokens_have_controls_by_id_and_the_loss_of_the_assistant(run):
    (path,) = (run / "tokens").glob("*.bin")
    shard = TokenShard.open(path.with_suffix(""))
    encoder = load_encoder()
    names = {i: n for n, i in encoder.controls.items()}
    learnt = np.ones(shard.token_count, bool)
    for start, stop in shard.unlearnt.tolist():
        learnt[start:stop] = False
    order = ["<|user|>", "<|end_of_turn|>", "<|assistant|>", "<|tool_call|>", "<|reserved_0|>"]
    order += [
        "<|end_of_turn|>",
        "<|tool_result|>",
        "<|end_of_turn|>",
        "<|assistant|>",
        "<|end_of_turn|>",
    ]
    flags = [False, False, False, True, True, True, False, False, False, True, True]
    for n in range(shard.documents):
        begin, end = shard.span(n)
        ids = shard.tokens(begin, end).tolist()
        placed = [(names[i], bool(learnt[begin + k])) for k, i in enumerate(ids) if i in names]
        assert placed == list(zip([*order, "<|endoftext|>"], flags, strict=True))
        assert not learnt[begin : begin + ids.index(encoder.controls["<|assistant|>"]) + 1].any()
    told = open_run(run).store.require(f"tokens/{path.name}").counts
    assert told["unlearnt_tokens"] == int((~learnt).sum())


def test_runs_books_balance_and_say_what_the_template_took(run):
    assert verify(open_run(run)) == []
    con = connect(run / "ledger.duckdb", read_only=True)
    flow = dict(
        con.execute(
            "SELECT account, (documents, bytes, tokens) FROM flow WHERE pass = 'tokens'"
        ).fetchall()
    )
    losses = con.execute(
        "SELECT reason, kind, count(*) FROM losses GROUP BY ALL ORDER BY 1"
    ).fetchall()
    (special, unlearnt) = con.execute(
        "SELECT sum(special_tokens), sum(unlearnt_tokens) FROM tokens"
    ).fetchall()[0]
    con.close()
    assert losses == [("failed", "dropped", 1), ("unverified", "dropped", 1)]
    assert special == 2 * 11
    assert unlearnt > 0
    (path,) = (run / "corpus").glob("*.parquet")
    texts = pq.read_table(path)["text"].to_pylist()
    gone = "## user\n\n\n\n## assistant\n\n\n\n### call: \n\n\n\n## tool\n\n\n\n## assistant\n\n\n"
    assert flow["in"][1] == sum(len(t.encode()) for t in texts)
    assert flow["stripped"][:2] == (2, 2 * len(gone))
    assert flow["kept"][1] == flow["in"][1] - 2 * len(gone)
    assert flow["in"][2] + flow["added"][2] == flow["kept"][2] + flow["stripped"][2]


def test_runs_without_turns_are_tokenised_as_text(tiny):
    run = tiny(RECIPE.replace("turns: gristmill\n", ""), a=ROWS).out
    (path,) = (run / "tokens").glob("*.bin")
    shard = TokenShard.open(path.with_suffix(""))
    assert shard.index["special_tokens"] == shard.documents == 2
    assert not len(shard.unlearnt)
    assert verify(open_run(run)) == []


def test_runs_with_another_template_make_tokens_again_alone(tiny):
    tiny(RECIPE, a=ROWS)
    again = tiny(
        RECIPE.replace("turns: gristmill", "turns: {preset: gristmill, loss: all}"), a=ROWS
    )
    assert {step for step, _ in again.made} == {"tokens"}
    (path,) = (again.out / "tokens").glob("*.bin")
    assert TokenShard.open(path.with_suffix("")).unlearnt.shape == (0, 2)


def test_runs_template_for_another_tokenizer_stops_before_any_work(tiny, tmp_path):
    with pytest.raises(UsageError, match=r"no control token '<\|im_start\|>'"):
        tiny(RECIPE.replace("gristmill", "chatml"), a=ROWS)
    assert not (tmp_path / "run").exists()


def test_runs_question_that_is_cut_is_no_turn_and_its_answer_no_target(tiny, tmp_path):
    asked = "Which gleaming marble cathedral beside the winding northern river was begun by bishop"
    asked += " Aldhelm during seven stormy winters"
    (tmp_path / "items.jsonl").write_text(json.dumps({"question": asked}) + "\n")
    talk = [asked, "Wells was.", "And another thing that I ask", "Another thing that I say"]
    roles = ["user", "assistant"] * 2
    rows = [
        {"messages": [{"role": r, "content": c} for r, c in zip(roles, talk[:n], strict=False)]}
        for n in (4, 1)
    ]
    recipe = RECIPE.replace("{trajectory: {outcome: verified}}", "trajectory").replace(
        "[pii]", f"[{{decontaminate: {{files: [{tmp_path}/items.jsonl], policy: cut}}}}]"
    )
    run = tiny(recipe.replace("shared:\n  - near_duplicates\n", ""), a=rows).out
    assert verify(open_run(run)) == []
    (path,) = (run / "tokens").glob("*.bin")
    shard = TokenShard.open(path.with_suffix(""))
    encoder = load_encoder()
    names = {i: n.strip("<|>") for n, i in encoder.controls.items()}
    learnt = np.ones(shard.token_count, bool)
    for start, stop in shard.unlearnt.tolist():
        learnt[start:stop] = False
    first = slice(*shard.span(0))
    placed = [names[i] for i in shard.tokens(first.start, first.stop).tolist() if i in names]
    turn = ["assistant", "end_of_turn"]
    assert placed == [*turn, "user", "end_of_turn", *turn, "endoftext"]
    told = [names.get(i, "") for i in shard.tokens(first.start, first.stop)[learnt[first]].tolist()]
    assert told.count("end_of_turn") == 1
    assert len(told) == 2 + len(encoder.encode(pa.array([talk[3]], pa.large_string()))[0])
    assert shard.documents == 1 or not learnt[slice(*shard.span(1))].any()
