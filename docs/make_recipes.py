"""Write docs/recipes.md from the classes that read recipes: `python docs/make_recipes.py`."""

from __future__ import annotations

import dataclasses
from inspect import cleandoc
from pathlib import Path

from gristmill.mixing.spec import MixSpec, SliceSpec, StageSpec
from gristmill.pipelines.readers import ReadOptions
from gristmill.pipelines.registry import known_converters, known_globals, known_stages

HEAD = """# Recipes

A recipe is one YAML file; it states all that bears on the result. Start from
[pipelines/recipes](../pipelines/recipes). This page is written by `python docs/make_recipes.py`.

## Top

| key | default | meaning |
|---|---|---|
| `format` | 1 | of the recipe |
| `name` | the file's name | a run folder belongs to one name |
| `root` | the recipe's folder | where the sources' paths start; `--root` overrides it |
| `sources` | required | by name, in order of priority: of duplicates the first is kept |
| `shared` | none | stages of all sources, after their own; global stages may name `sources` |
| `tokenizer` | our own | a `tokenizer.json` or a `.model` of SentencePiece, or \
`{path, eos, bos}`; ranks of tiktoken: `{path, pattern, special}`, the pattern `gpt2`, `cl100k`, \
`o200k`, `qwen2` or an expression, the special tokens `name: id` |
| `turns` | as text | how turns of conversations become tokens: a preset, or roles; see below |
| `mixture` | none | the plan of a training run |
| `shard_bytes` | 256 MiB | stored bytes of a shard |
| `memory` | 512 MiB | what a worker may plan for in a global round |
| `partitions` | from `memory` | of the exchange; never bears on a result |

## A source

| key | default | meaning |
|---|---|---|
| `paths` | required | files, folders, globs, `*.paths` lists or addresses (`s3://...`) |
| `converter` | `main_text` | how records become documents |
| `reader` | | options of reading |
| `stages` | none | stages of this source alone, in order |
| `dump`, `license` | none | what the source states of every document |
| `priority` | its place | lower is kept first |
| `removal_cap` | 0.9 | share of documents that a duplicate stage may remove; else it stops |
| `max_loss` | 0 | share that may be damaged before the exit code is 1 |

## Order

What drops documents stands before `near_duplicates`: a stage after it that drops what it kept takes
the whole cluster along, for the others are gone. `exact_duplicates` may stand first: a stage that
looks at text alone says the same of each copy. The end of `run`, the report, the ledger's table
`gone_clusters` and `why` say which clusters have none left, and which stage it was.
"""


TURNS = """## Turns

```yaml
turns:
  preset: gristmill   # for our own tokenizer; or chatml: <|im_start|>, <|im_end|>
  tool: {head: ["<|tool_result|>", {text: "\\n"}], tail: ["<|end_of_turn|>"]}
  loss: assistant     # or all
```

What `trajectory` reads has turns beside its text: who speaks, where the heading (`## user`) and
where what is said begins and ends. Cuts and masks of later stages move them. With `turns` the
tokens step encodes what is said, turn by turn, and places ids instead of headings; without, the
text as it stands. Strings are names of control tokens and are looked up in the tokenizer: one that
it lacks stops the run before any work. `{text: ...}` is encoded as text, with `{role}` filled in. A
control token that a document spells stays text.

Roles: `system`, `user`, `assistant`, `tool`, as the source has others, and `other` for any that
is not named; within a turn `call` (a tool's name), its `arguments`, `result` (in a user's turn),
`reasoning` and more `text`, which get nothing around them unless named. The preset `gristmill` ends
a call with `<|reserved_0|>`, a result with `<|reserved_1|>`, and has what a model thought between
`<|reserved_2|>` and `<|reserved_3|>`, so that all are parsed back from ids.

With `loss: assistant` targets are what the assistant says and calls, and the tails of its turns;
not heads of turns, which a model is given, nor calls that `bad_calls: untrained` found bad, nor
messages of `weight: 0` or `train: false`, nor what stands for content that is no text (`[image]`).
With `all` nothing is left out.
The books have a row `turns` for the headings that went, and `unlearnt_tokens` by shard.
"""


def table(kind: type) -> str:
    """Fields and defaults of a configuration class."""
    rows = ["| field | default |", "|---|---|"]
    for field in dataclasses.fields(kind):
        if not field.init or not field.metadata.get("as", field.name):
            continue
        given = field.default is not dataclasses.MISSING
        made = field.default_factory is not dataclasses.MISSING
        value = repr(field.default) if given else ("empty" if made else "required")
        value = value if len(value) <= 60 else value[:57] + "..."
        name = field.metadata.get("as", field.name)
        rows.append(f"| `{name}` | `{value}` |".replace("`required`", "required"))
    return "\n".join(rows) if len(rows) > 2 else "No fields."


def first_line(kind: type) -> str:
    """What a class is, by its docstring."""
    paragraphs = (kind.__doc__ or "").strip().split("\n\n")
    told = paragraphs if kind is StageSpec else paragraphs[:1]  # a stage's words need telling
    return "\n\n".join(part.strip().replace("\n    ", " ") for part in told)


def page() -> str:
    """The whole page."""
    parts = [HEAD, "### `reader`\n", first_line(ReadOptions) + "\n", table(ReadOptions)]
    groups = (
        ("Converters", known_converters()),
        ("Stages", known_stages()),
        ("Global stages", known_globals()),
    )
    for title, kinds in groups:
        parts.append(f"\n## {title}\n")
        parts += [f"### `{n}`\n\n{first_line(k)}\n\n{table(k)}\n" for n, k in kinds.items()]
    parts.append(TURNS)
    parts.append("## Mixture\n")
    mixture = (("the mixture", MixSpec), ("a slice", SliceSpec), ("a stage", StageSpec))
    parts += [f"### {title}\n\n{cleandoc(k.__doc__ or '')}\n\n{table(k)}\n" for title, k in mixture]
    return "\n".join(parts)


if __name__ == "__main__":
    Path(__file__).with_name("recipes.md").write_text(page(), encoding="utf-8")
