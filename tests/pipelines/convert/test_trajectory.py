"""Runs of agents as text."""

from __future__ import annotations

import pytest

from gristmill.documents.records import Draft
from gristmill.pipelines.convert import Trajectory


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
        out.text == "## assistant\n\nlook\n\n### call\n\nls\n\n## tool\n\nx\n\n### call\n\nsubmit\n"
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
    out = list(Trajectory()(items))
    assert all(isinstance(o, Draft) for o in out)
    assert len(out) == account.records > 0
    assert sum("outcome" in o.metadata for o in out) > 200
