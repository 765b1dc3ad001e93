"""Calls against the tools that a row lists."""

from __future__ import annotations

import json

import pytest

from gristmill.pipelines.convert import Trajectory
from gristmill.pipelines.convert.tools import Tools

READ = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "lines": {"type": "integer", "minimum": 1}},
    "required": ["path"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def tools():
    pytest.importorskip("jsonschema_rs")
    return Tools.of(
        [
            {"type": "function", "function": {"name": "read", "parameters": READ}},
            {"name": "write", "input_schema": READ},
            {"name": "bad", "parameters": {"type": 5}},
            {"name": "far", "parameters": {"$ref": "http://x.example/schema.json"}},
            "bare",
        ]
    )


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("read", '{"path": "a", "lines": 2}', "good"),
        ("write", '{"path": "a"}', "good"),
        ("read", '{"lines": 2}', "bad_arguments"),
        ("read", '{"path": "a", "lines": 0}', "bad_arguments"),
        ("read", '{"path": "a", "mode": 1}', "bad_arguments"),
        ("read", "", "bad_arguments"),
        ("read", "{'path': 'a'}", "not_json"),
        ("read", "[1]", "not_json"),
        ("red", "{}", "unknown_tool"),
        ("bad", "{}", "unchecked"),
        ("far", "{}", "unchecked"),
    ],
)
def test_call_against_its_schema(tools, name, arguments, kind):
    found, why = tools.look([name], arguments)
    assert found == kind
    assert bool(why) == (kind not in ("good", "unchecked"))


@pytest.mark.parametrize(
    ("stated", "name", "arguments", "kind"),
    [
        (["ls", "cat"], ["ls"], '{"any": 1}', "good"),
        (["ls", "cat"], ["rm"], "{}", "unknown_tool"),
        (["ls"], ["ls"], "{", "not_json"),
        ('["ls"]', ["rm"], "{}", "unknown_tool"),
        (["ls"], [], "ls -la", "unchecked"),  # a step: a command line, no call by name
        (None, ["ls"], "{", "unchecked"),
        ([], ["ls"], "{", "unchecked"),
        ("no json", ["ls"], "{", "unchecked"),
        ("[" * 10**6, ["ls"], "{", "unchecked"),
        ([{"x": 1}, 5], ["ls"], "{", "unchecked"),
    ],
)
def test_call_of_tools_without_schemas(stated, name, arguments, kind):
    assert Tools.of(stated).look(name, arguments)[0] == kind


def row(build, arguments):
    calls = [{"function": {"name": "ls", "arguments": "{}"}}, {"name": "ls", "input": arguments}]
    messages = [{"role": "assistant", "content": "a", "tool_calls": calls}]
    return build.record("{the row}", fields={"messages": messages, "tools": ["ls"]})


def test_bad_call_stays_in_sight_and_out_of_the_loss(build):
    out = build.draft(Trajectory(bad_calls="untrained"), row(build, "{"))
    assert [(t.role, t.trained) for t in out.turns] == [
        ("assistant", True),
        ("call", True),
        ("arguments", True),
        ("call", False),
        ("arguments", False),
    ]
    assert out.metadata["calls"] == {"good": 1, "not_json": 1}
    kept = build.draft(Trajectory(), row(build, "{"))
    assert all(t.trained for t in kept.turns)
    assert kept.text == out.text
    assert "calls" not in kept.metadata


def test_bad_call_can_drop_its_run(build):
    loss = build.loss(Trajectory(bad_calls="drop"), row(build, "{"))
    assert (loss.reason, loss.kind) == ("bad_call", "dropped")
    assert loss.detail.startswith("not_json: ls: ")
    good = build.draft(Trajectory(bad_calls="drop"), row(build, json.dumps({})))
    assert good.metadata["calls"] == {"good": 2}
