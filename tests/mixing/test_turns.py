"""A recipe's turns: what is refused, which ids stand where, and what is learnt."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tokenizers import Tokenizer

from gristmill.documents.errors import StopError, UsageError
from gristmill.mixing.encoder import OWN, load_encoder
from gristmill.mixing.turns import PRESETS, Renderer, TurnSpec

CONTROLS = {"<s>": 1, "<u>": 2, "<a>": 3, "<call>": 4, "</call>": 5, "<end>": 6, "<other>": 7}
SPEC = {
    "system": {"head": ["<s>"], "tail": ["<end>"]},
    "user": {"head": ["<u>"], "tail": ["<end>"]},
    "assistant": {"head": ["<a>", {"text": "{role}\n"}], "tail": ["<end>"]},
    "call": {"head": ["<call>"], "tail": ["</call>"]},
}


def turn(role, start, body, stop, trained=None):
    trained = role in ("assistant", "call", "arguments") if trained is None else trained
    return {"role": role, "start": start, "body": body, "stop": stop, "trained": trained}


def renderer(spec=SPEC, **more):
    return Renderer(TurnSpec.parse(spec | more), CONTROLS, lambda text: [100 + len(text)])


def flat(run):
    """Ids, and ("span", begin, end) for text, each with whether it is learnt."""
    out = []
    for i, span in enumerate(run.spans):
        out += [*run.placed[i], (("span", *span), run.learnt[i])]
    return [*out, *run.placed[-1]]


def test_turns_calls_close_within_their_turn_and_heads_of_turns_are_given():
    turns = [
        turn("user", 0, 8, 20),
        turn("assistant", 22, 36, 40),
        turn("call", 42, 52, 56),
        turn("arguments", 58, 58, 70),
        turn("call", 72, 82, 85),
        turn("user", 87, 95, 99),
    ]
    assert flat(renderer().lay_out(turns)) == [
        (2, False),
        (("span", 8, 20), False),
        (6, False),
        (3, False),
        (110, False),  # "assistant\n", as text
        (("span", 36, 40), True),
        (4, True),
        (("span", 52, 56), True),
        (("span", 58, 70), True),
        (5, True),
        (4, True),
        (("span", 82, 85), True),
        (5, True),
        (6, True),
        (2, False),
        (("span", 95, 99), False),
        (6, False),
    ]


def test_turns_loss_all_leaves_nothing_out():
    run = renderer(loss="all").lay_out([turn("user", 0, 8, 20), turn("assistant", 22, 36, 40)])
    assert run.learnt == [True, True]
    assert [t for at in run.placed for _, t in at] == [True] * 5


def test_turns_cut_whole_are_gone_unless_something_within_is_left():
    turns = [
        turn("user", 5, 5, 5),
        turn("assistant", 5, 5, 5),
        turn("call", 5, 5, 5),
        turn("arguments", 5, 5, 9),
        turn("call", 9, 9, 9),
        turn("system", 9, 9, 9),
    ]
    run = renderer().lay_out(turns)
    assert run.spans == [(5, 5), (5, 5), (5, 9)]
    assert [i for at in run.placed for i, _ in at] == [3, 110, 4, 5, 6]


def test_turns_part_without_a_turn_opens_one():
    run = renderer().lay_out([turn("call", 0, 4, 6)])
    assert [i for at in run.placed for i, _ in at] == [3, 110, 4, 5, 6]


def test_turns_unknown_role_takes_other_or_stops():
    with pytest.raises(StopError, match=r"role 'critic'.*turns\.critic or turns\.other"):
        renderer().lay_out([turn("critic", 0, 1, 2)])
    other = renderer(other={"head": ["<other>", {"text": "{role}"}]})
    run = other.lay_out([turn("critic", 0, 1, 2)])
    assert run.placed == [[(7, False), (106, False)], []]


def test_turns_token_that_the_tokenizer_lacks_is_named_never_text():
    with pytest.raises(UsageError, match=r"turns.user: .*no control token '<usr>'.*<u>"):
        renderer(user={"head": ["<usr>"]})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("chatmll", "no preset 'chatmll'; did you mean 'chatml'"),
        ({}, "names no role"),
        (5, "expected a preset or roles"),
        ({"user": []}, "turns.user: found"),
        ({"user": {"heads": []}}, "turns.user.heads: unknown field"),
        ({"user": {"head": "<u>"}}, "turns.user.head: .*expected a list"),
        ({"user": {"head": [{"txt": "a"}]}}, "expected a control token or"),
        ({"user": {"head": [5]}}, "expected a control token or"),
        ({"preset": "chatml", "loss": "user"}, "turns.loss: .*assistant, all"),
    ],
)
def test_turns_malformed_is_refused_with_its_place(spec, message):
    with pytest.raises(UsageError, match=message):
        TurnSpec.parse(spec)


def test_turns_preset_can_be_amended():
    spec = TurnSpec.parse({"preset": "chatml", "call": {"head": ["<call>"]}})
    assert spec.roles["call"].head == (("token", "<call>"),)
    assert set(spec.roles) == set(PRESETS["chatml"])


def test_turns_of_our_preset_are_parsed_back_from_ids():
    encoder = load_encoder()
    text = "look\nhmbash{}\nls{}I seeoutthanks"
    texts = ["look\n", "hm", "bash", "{}\n", "ls", "{}", "I see", "out", "thanks"]
    roles = ["assistant", "reasoning", "call", "arguments", "call", "arguments", "text"]
    at, turns = 0, []
    for role, piece in zip([*roles, "result", "text"], texts, strict=True):
        if role == "result":
            turns.append(turn("user", at, at, at))
        turns.append(turn(role, at, at, at + len(piece)))
        at += len(piece)
    assert "".join(texts) == text

    def encode(piece):
        return encoder.encode(pa.array([piece], pa.large_string()))[0].tolist()

    run = Renderer(TurnSpec.parse("gristmill"), encoder.controls, encode).lay_out(turns)
    names = {i: n for n, i in encoder.controls.items()}
    plain = Tokenizer.from_file(str(OWN))
    found, ids = [], []  # (control ids before, text): what a reader of ids alone sees
    for i, span in enumerate([*run.spans, (0, 0)]):
        ids += [n for n, _ in run.placed[i]] + encode(text[slice(*span)])
    said: list[int] = []
    for i in ids:
        if i in names:
            found += [plain.decode(said)] * bool(said) + [names[i].strip("<|>")]
            said = []
        else:
            said.append(i)
    assert found == [
        "assistant", "look\n", "reserved_2", "hm", "reserved_3",
        "tool_call", "bash\n{}\n", "reserved_0", "tool_call", "ls\n{}", "reserved_0", "I see",
        "end_of_turn", "user", "tool_result", "out", "reserved_1", "thanks",
        "end_of_turn",
    ]  # fmt: skip
