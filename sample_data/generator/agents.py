"""Runs of a coding agent on the small repository: read, edit, test, and what came of it.

Each case breaks one line of the repository; the tests of the sample data check that the broken
line makes the named test module fail and the right one lets it pass.
"""

from __future__ import annotations

import json
from typing import Any

from generator.grammar import HERE, Dice
from generator.prose import repository

CASES: list[dict[str, str]] = json.loads((HERE / "agent_cases.json").read_text(encoding="utf-8"))
SYSTEM = "You work on the repository granary. Use the tools. Change as little as you can."
OPENINGS = (
    "I will look at {path} first.",
    "Let me read {path}, where this seems to happen.",
    "The report points at {path}, so I start there.",
    "First I want to see what {path} does now.",
)
PLANS = (
    "The line `{bad}` cannot be right. It should be `{good}`.",
    "Here is the fault: `{bad}`. I will write `{good}` instead.",
    "`{bad}` explains what the report says; the fix is `{good}`.",
)
ENDINGS = (
    "All tests of the module pass. The change is one line in {path}.",
    "Fixed in {path}; the tests pass now.",
    "Done: {path} is mended and {test} is green.",
)


def tool(name: str, number: int, **arguments: Any) -> dict[str, Any]:
    """A call of a tool, its arguments as JSON text."""
    call = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": f"call_{number}", "type": "function", "function": call}


class Run:
    """The messages of one run in the making."""

    def __init__(self, issue: str) -> None:
        self.messages: list[dict[str, Any]] = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": issue},
        ]

    def step(self, say: str, name: str, result: str, **arguments: Any) -> None:
        """The assistant says something and calls a tool, which answers."""
        call = tool(name, len(self.messages), **arguments)
        self.messages.append({"role": "assistant", "content": say, "tool_calls": [call]})
        self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


def trajectory(dice: Dice, case: dict[str, str], variant: int) -> dict[str, Any]:
    """One run. Variants 0 and 1 are nearly the same, 2 takes a detour, 3 gives up."""
    files = dict(repository())
    path, good, bad, test = case["path"], case["good"], case["bad"], case["test"]
    broken = files[path].replace(good, bad)
    names = {"path": path, "good": good.strip(), "bad": bad.strip(), "test": test}
    failed = f"FAIL: {case['failing']} ({test})\nFAILED (failures=1)"
    command = f"python -m unittest {test}"
    run = Run(case["issue"])
    if variant == 2:
        listing = "\n".join(sorted(files))
        run.step("I do not know this repository yet.", "list_files", listing, directory=".")
        other = dice.pick([name for name in sorted(files) if name.startswith("granary/")])
        run.step(f"Perhaps {other} matters.", "read_file", files[other], path=other)
        run.step("It does not. Which test shows the fault?", "run", failed, command=command)
    say = OPENINGS[0 if variant < 2 else dice.between(2, 3)].format(**names)
    run.step(say, "read_file", broken, path=path)
    if variant == 3:
        found = files["tests/" + test.split(".")[1] + ".py"]
        say = f"The tests in {test} say what is expected."
        run.step(say, "read_file", found, path=f"tests/{test.split('.')[1]}.py")
    plan = PLANS[0 if variant < 2 else dice.between(1, 2)].format(**names)
    if variant == 3:
        note = f"{bad}  # look at this again"
        run.step(plan, "edit_file", "1 line changed", path=path, old=bad, new=note)
        run.step("Now the tests.", "run", failed, command=command)
        end = "The tests still fail and I do not see why. I leave the file as it was."
    else:
        run.step(plan, "edit_file", "1 line changed", path=path, old=bad, new=good)
        run.step("Now the tests.", "run", "OK", command=command)
        end = ENDINGS[variant if variant < 2 else dice.between(1, 2)].format(**names)
    run.messages.append({"role": "assistant", "content": end})
    return {
        "id": f"granary-{case['name']}-{variant}",
        "instance_id": f"granary-{case['name']}",
        "repo": "millpond/granary",
        "model": "sample-agent",
        "tools": ["list_files", "read_file", "edit_file", "run"],
        "messages": run.messages,
        "outcome": "failed" if variant == 3 else "resolved",
    }


def rendered(run: dict[str, Any]) -> str:
    """Contents and arguments of calls, a line break between any two: what Jaccard is taken of."""
    parts: list[str] = []
    for message in run["messages"]:
        parts.append(message["content"])
        parts += [call["function"]["arguments"] for call in message.get("tool_calls", [])]
    return "\n".join(parts)
