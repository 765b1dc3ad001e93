"""Runs of agents as text."""

from __future__ import annotations

import pytest

from gristmill.documents.errors import UsageError
from gristmill.documents.records import Draft, Loss
from gristmill.pipelines.convert import Trajectory


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


def test_trajectory_real_runs_all_render(real_data):
    from gristmill.pipelines.readers import ReadAccount, plan_extents, read_extent

    account = ReadAccount()
    plan = plan_extents(real_data, ["e-agent-aider/*.gz", "e-agent-sweagent/*.gz"])
    items = (
        i for s in plan for e in s for i in read_extent(real_data, e, account, text_field=None)
    )
    out = list(Trajectory(benchmarks=())(items))
    assert all(isinstance(o, Draft) for o in out)
    assert len(out) == account.records > 0
    assert sum("outcome" in o.metadata for o in out) > 200
    for draft in out:
        if draft.turns is not None:
            assert_apart(draft)
    assert sum(draft.turns is not None for draft in out) == 23


def test_trajectory_real_runs_on_a_benchmark_are_held_out_and_failed_ones_drop(real_data):
    from gristmill.pipelines.readers import ReadAccount, plan_extents, read_extent

    plan = plan_extents(real_data, ["e-agent-aider/*.gz"])
    rows = [
        i
        for s in plan
        for e in s
        for i in read_extent(real_data, e, ReadAccount(), text_field=None)
    ]
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
    [{"outcome": "good"}, {"bad_calls": "mask"}, {"benchmarks": ("swebench",)}],
)
def test_trajectory_unknown_choice_is_refused(options):
    with pytest.raises(UsageError, match=r"expected one of|no list 'swebench'; did you mean"):
        Trajectory(**options)
