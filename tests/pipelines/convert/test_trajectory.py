"""Runs of agents as text."""

from __future__ import annotations

import json

import pytest

from gristmill.documents.errors import UsageError
from gristmill.documents.records import Draft, Loss
from gristmill.pipelines.convert import Trajectory
from gristmill.pipelines.readers import ReadAccount


def assert_apart(draft):
    """Turns are in order, apart, and inside the text."""
    at = 0
    for turn in draft.turns:
        assert at <= turn.start <= turn.body <= turn.stop
        at = turn.stop
    assert at <= len(draft.text.encode())


def said(draft):
    """Role, heading, what is said, whether it is learnt, of each turn."""
    raw = draft.text.encode()
    return [
        (t.role, raw[t.start : t.body].decode(), raw[t.body : t.stop].decode(), t.trained)
        for t in draft.turns
    ]


def run(build, **fields):
    return build.record("{the row}", fields=fields)


def test_trajectory_openai_messages(build):
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Fix it"}, {"type": "image_url"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"function": {"name": "bash", "arguments": '{"c":"ls"}'}}],
        },
        {"role": "tool", "content": "a.py\n"},
    ]
    out = build.draft(Trajectory(), run(build, messages=messages, resolved=False, model="m"))
    assert out.text == (
        "## system\n\nBe brief.\n\n## user\n\nFix it\n\n[image_url]\n\n"
        '## assistant\n\n### call: bash\n\n{"c":"ls"}\n\n## tool\n\na.py\n'
    )
    assert out.metadata == {
        "resolved": False,
        "model": "m",
        "outcome": {"resolved": False},
        "rendered": "messages",
        "messages": 4,
        "not_rendered": {"placeholder:image_url": 1},
    }


def test_trajectory_anthropic_blocks(build):
    messages = [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "name": "run", "input": {"b": 1, "a": "é"}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "content": [{"type": "text", "text": "ok"}]}],
        },
    ]
    out = build.draft(Trajectory(), run(build, messages=messages))
    assert out.text == (
        '## assistant\n\n### call: run\n\n{"a": "é", "b": 1}\n\n## user\n\n### result\n\nok\n'
    )


def test_trajectory_steps_and_nested_outcome(build):
    steps = [
        {"thought": "look", "action": "ls", "observation": "x"},
        {"action": "submit", "observation": ""},
    ]
    row = {"traj": {"trajectory": steps, "info": {"exit_status": "submitted"}}}
    out = build.draft(Trajectory(), run(build, **row))
    assert (
        out.text == "## assistant\n\nlook\n\n### call\n\nls\n\n## tool\n\nx\n\n"
        "## assistant\n\n### call\n\nsubmit\n"
    )
    assert out.metadata["outcome"] == {"traj.info.exit_status": "submitted"}
    assert "traj" not in out.metadata


def test_trajectory_log_that_is_text_already(build):
    by_field = build.draft(Trajectory(), run(build, text="# log\n", meta={"resolved": True}))
    by_record = build.draft(
        Trajectory(), build.record("# log\n", fields={"meta": {"resolved": True}})
    )
    assert by_field.text == by_record.text == "# log\n"
    assert by_field.metadata["outcome"] == {"meta.resolved": True}


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"text": 5},
        {"messages": ["hello"]},
        {"messages": [{"content": "x"}]},
        {"messages": [{"role": 3}]},
        {"messages": [{"role": "user", "content": 5}]},
        {"messages": [{"role": "a", "tool_calls": {"x": 1}}]},
        {"messages": [{"role": "a", "tool_calls": "[1"}]},
        {"messages": [{"role": "a", "function_call": "auto"}]},
        {"messages": [{"role": "a", "weight": 0.5}]},
        {"messages": [{"role": "a", "train": "no"}]},
        {"messages": [{"role": "a", "tool_calls": ["x"]}]},
        {"messages": [{"role": "a", "tool_calls": [{"function": {}}]}]},
        {"history": [{"action": 5}]},
    ],
)
def test_trajectory_malformed_is_bad_schema(build, row):
    loss = build.loss(Trajectory(), run(build, **row))
    assert (loss.reason, loss.kind) == ("bad_schema", "fault")
    assert loss.detail


def test_trajectory_without_messages_is_dropped(build):
    assert build.loss(Trajectory(), run(build, messages=[])).reason == "no_text"


def test_trajectory_real_runs_all_render(real_rows):
    account = ReadAccount()
    rows = real_rows("e-agent-aider/*.gz", "e-agent-sweagent/*.gz", account=account)
    out = list(Trajectory(benchmarks=())(iter(rows)))
    assert all(isinstance(o, Draft) for o in out)
    assert len(out) == account.records > 0
    assert sum("outcome" in o.metadata for o in out) > 200
    for draft in out:
        if draft.turns is not None:
            assert_apart(draft)
    assert sum(draft.turns is not None for draft in out) == 23


def test_trajectory_real_runs_on_a_benchmark_are_held_out_and_failed_ones_drop(real_rows):
    rows = real_rows("e-agent-aider/*.gz")
    held = list(Trajectory()(iter(rows)))
    kept = [r for r, o in zip(rows, held, strict=True) if isinstance(o, Draft)]
    assert [r.fields["instance_id"] for r in kept] == ["README"]  # all others are SWE-bench's
    assert {(o.reason, o.kind) for o in held if isinstance(o, Loss)} == {("held_out", "dropped")}
    kept = list(Trajectory(benchmarks=(), outcome="verified")(iter(rows)))
    good = [r.fields["meta"].get("resolved") for r in rows]
    assert [isinstance(o, Draft) for o in kept] == [
        bool(g) and r.fields["meta"].get("test_outcome") is not False
        for g, r in zip(good, rows, strict=True)
    ]
    assert {o.reason for o in kept if isinstance(o, Loss)} <= {"failed", "unverified"}
    assert 0 < sum(isinstance(o, Draft) for o in kept) < len(kept)


def test_trajectory_turns_say_who_speaks_and_what_is_learnt(build):
    messages = [
        {"role": "developer", "content": "Be \u0065\u0301 brief.\r\n"},
        {"role": "Human", "content": "\x00"},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {"function": {"name": "ls", "arguments": {"b": "\u00e9"}}},
                {"function": {"name": "pwd"}},
            ],
        },
        {"role": "assistant", "content": "no", "weight": 0, "tool_calls": [{"name": "x"}]},
        {"role": "critic", "content": "hm"},
    ]
    out = build.draft(Trajectory(), run(build, messages=messages))
    assert said(out) == [
        ("system", "## developer\n\n", "Be \u00e9 brief.", False),
        ("user", "## Human", "", False),
        ("assistant", "## assistant\n\n", "I look.", True),
        ("call", "### call: ", "ls", True),
        ("arguments", "", '{"b": "\u00e9"}', True),
        ("call", "### call: ", "pwd", True),
        ("assistant", "## assistant\n\n", "no", False),
        ("call", "### call: ", "x", False),
        ("critic", "## critic\n\n", "hm", False),
    ]
    assert_apart(out)


def test_trajectory_results_in_a_users_turn_are_not_learnt(build):
    messages = [
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "a"},
                {"type": "text", "text": "b"},
                {"type": "tool_use", "name": "run", "input": {}},
                {"type": "text", "text": "after"},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "content": "ok"},
                {"type": "text", "text": "go on"},
            ],
        },
    ]
    out = build.draft(Trajectory(), run(build, messages=messages))
    assert said(out) == [
        ("assistant", "## assistant\n\n", "a\n\nb", True),
        ("call", "### call: ", "run", True),
        ("arguments", "", "{}", True),
        ("text", "", "after", True),
        ("user", "## user", "", False),
        ("result", "### result\n\n", "ok", False),
        ("text", "", "go on", False),
    ]


def test_trajectory_steps_have_a_turn_for_every_call(build):
    steps = [{"action": "ls", "observation": "x"}]
    out = build.draft(Trajectory(), run(build, history=steps))
    assert [(t.role, t.trained) for t in out.turns] == [
        ("assistant", True),
        ("call", True),
        ("arguments", True),
        ("tool", False),
    ]


@pytest.mark.parametrize(
    ("row", "any_", "not_failed", "verified"),
    [
        ({"outcome": "resolved"}, None, None, None),
        ({"resolved": True}, None, None, None),
        ({"resolved": 1.0}, None, None, None),
        ({"meta": {"resolved": False, "test_outcome": True}}, None, "failed", "failed"),
        ({"outcome": "gave up"}, None, "failed", "failed"),
        ({"info": {"exit_status": "submitted"}}, None, None, "unverified"),
        ({"outcome": 0.5}, None, None, "unverified"),
        ({"resolved": "1"}, None, None, None),
        ({"resolved": "yes"}, None, None, None),
        ({"outcome": {"resolved": True, "tests": 5}}, None, None, None),
        ({"outcome": {"resolved": True, "status": "failed"}}, None, "failed", "failed"),
        ({"outcome": {"resolved": None}}, None, None, "unverified"),
        ({"reward": 1.0}, None, None, None),
        ({"reward": "0"}, None, "failed", "failed"),
        ({}, None, None, "unverified"),
    ],
)
def test_trajectory_outcome_is_believed_where_something_was_checked(
    build, row, any_, not_failed, verified
):
    item = run(build, messages=[{"role": "user", "content": "x"}], **row)
    for outcome, reason in (("any", any_), ("not_failed", not_failed), ("verified", verified)):
        (out,) = Trajectory(outcome=outcome)(iter([item]))
        assert getattr(out, "reason", None) == reason
        if reason:
            assert out.kind == "dropped"
            assert out.detail


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"repo": "Django/django"}, "django/django"),
        ({"repo": "https://github.com/sympy/sympy.git"}, "sympy/sympy"),
        (
            {"repo": "astropy/astropy-14365_x", "instance_id": "astropy__astropy-14365"},
            "astropy/astropy",
        ),
        (
            {"meta": {"instance_id": "scikit-learn__scikit-learn-25500"}},
            "scikit-learn/scikit-learn",
        ),
        ({"repo": "mine/django"}, None),
    ],
)
def test_trajectory_on_a_benchmarks_repository_is_held_out(build, row, name):
    item = run(build, messages=[{"role": "user", "content": "x"}], **row)
    (out,) = Trajectory()(iter([item]))
    assert (getattr(out, "reason", None), getattr(out, "detail", None)) == (
        ("held_out", name) if name else (None, None)
    )
    assert isinstance(build.draft(Trajectory(benchmarks=()), item), Draft)


def test_trajectory_on_a_repository_of_ones_own_list_is_held_out(build, tmp_path):
    (tmp_path / "held.txt").write_text("# ours\nMine/Secret\n")
    held = Trajectory(held_out=(tmp_path / "held.txt",), benchmarks=())
    item = run(build, messages=[{"role": "user", "content": "x"}], repo="mine/secret")
    assert build.loss(held, item).reason == "held_out"


@pytest.mark.parametrize(
    "options",
    [
        {"outcome": "good"},
        {"bad_calls": "mask"},
        {"reasoning": "no"},
        {"benchmarks": ("swebench",)},
    ],
)
def test_trajectory_unknown_choice_is_refused(options):
    with pytest.raises(UsageError, match=r"expected one of|no list 'swebench'; did you mean"):
        Trajectory(**options)


USER = {"role": "user", "content": "go"}


def assistant(**fields):
    return {"role": "assistant", **fields}


def test_trajectory_function_call_is_a_call_and_is_checked(build):
    call = {"name": "f", "arguments": '{"zz": 1}'}
    messages = [USER, assistant(content=None, function_call=call)]
    tools = [{"name": "g"}]
    out = build.draft(Trajectory(bad_calls="untrained"), run(build, messages=messages, tools=tools))
    assert said(out)[1:] == [
        ("assistant", "## assistant", "", True),
        ("call", "### call: ", "f", False),
        ("arguments", "", '{"zz": 1}', False),
    ]
    assert out.metadata["calls"] == {"unknown_tool": 1}
    assert "not_rendered" not in out.metadata


@pytest.mark.parametrize(
    "message",
    [
        assistant(reasoning_content="I think.", content="four"),
        assistant(content=[{"type": "thinking", "thinking": "I think."}, {"text": "four"}]),
        assistant(
            reasoning="I think.",
            content=[{"type": "reasoning", "text": "I think."}, {"type": "text", "text": "four"}],
        ),
    ],
)
def test_trajectory_reasoning_is_a_part_or_dropped_and_counted(build, message):
    item = run(build, messages=[USER, message])
    assert said(build.draft(Trajectory(), item))[1:] == [
        ("assistant", "## assistant", "", True),
        ("reasoning", "### reasoning\n\n", "I think.", True),
        ("text", "", "four", True),
    ]
    out = build.draft(Trajectory(reasoning="drop"), item)
    assert said(out)[1:] == [("assistant", "## assistant\n\n", "four", True)]
    assert out.metadata["not_rendered"] == {"reasoning_dropped": 1}
    assert out.repairs["not_rendered"] == 1


def test_trajectory_what_is_not_read_is_counted_and_placeholders_are_not_learnt(build):
    messages = [
        USER | {"name": "bob", "score": 3, "note": "", "refusal": "I will not."},
        assistant(content=[{"type": "sound"}, {"type": "thinking", "signature": "x"}, "yes"]),
        assistant(content=None, function_call={"name": "f"}, tool_calls=[{"name": "g"}]),
    ]
    out = build.draft(Trajectory(), run(build, messages=messages))
    assert said(out)[2:4] == [("text", "", "[sound]", False), ("text", "", "yes", True)]
    assert out.metadata["not_rendered"] == {
        "placeholder:sound": 1,
        "reasoning_withheld": 1,
        "unread:function_call": 1,
        "unread:refusal": 1,
    }


def test_trajectory_empty_turns_of_the_assistant_are_none(build):
    empty = [assistant(content=c) for c in (None, "", " \n", [], "\x00")]
    call = assistant(content="", tool_calls=[{"name": "x"}])
    out = build.draft(Trajectory(), run(build, messages=[USER, *empty, call, *empty]))
    assert [t.role for t in out.turns] == ["user", "assistant", "call"]
    assert out.metadata["not_rendered"] == {"empty_turn": 10}
    assert out.text == "## user\n\ngo\n\n## assistant\n\n### call: x\n"


@pytest.mark.parametrize(
    ("fields", "learnt"),
    [
        ({"weight": w}, bool(n))
        for n, all_ in enumerate([(0, 0.0, "0", False, "False"), (1, 1.0, "1", True, None)])
        for w in all_
    ]
    + [({"train": False}, False), ({"train": "true"}, True), ({"train": True, "weight": 0}, False)],
)
def test_trajectory_weight_in_any_spelling(build, fields, learnt):
    out = build.draft(Trajectory(), run(build, messages=[USER, assistant(content="a", **fields)]))
    assert out.turns[1].trained is learnt
    assert "not_rendered" not in out.metadata


def test_trajectory_messages_and_calls_as_json_text(build):
    calls = json.dumps([{"function": {"name": "f", "arguments": "{}"}}])
    plain = [USER, assistant(content="x", tool_calls=json.loads(calls))]
    texts = [USER, assistant(content="x", tool_calls=calls)]
    wanted = build.draft(Trajectory(), run(build, messages=plain))
    for given in (texts, json.dumps(plain), json.dumps(texts)):
        out = build.draft(Trajectory(), run(build, messages=given))
        assert (out.text, out.turns) == (wanted.text, wanted.turns)
