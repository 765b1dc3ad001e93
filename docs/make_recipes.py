"""Write docs/recipes.md from the classes that read recipes: `python docs/make_recipes.py`."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import tokenize
from inspect import cleandoc
from pathlib import Path

from gristmill.mixing.spec import MixSpec, SliceSpec, StageSpec
from gristmill.pipelines.readers import ReadOptions
from gristmill.pipelines.registry import known_converters, known_globals, known_stages

HEAD = """# Recipes

A recipe is one YAML file; it states all that bears on the result. Start from
[pipelines/recipes](../pipelines/recipes). This page is written by `python docs/make_recipes.py`;
the third column of a table of fields is what the source says beside the field.

Files that a stage reads (lists, benchmarks, models) are named relative to the recipe's folder; the
`paths` of a source start at `root`.

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
| `partitions` | from documents and `memory` | of the exchange; never bears on a result |

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


TEMPLATES = """## Templated text

`templates` stands after `exact_duplicates` and `url_duplicates`, before `near_duplicates`. It
counts lines of a host over distinct URLs (campaigns and sessions in a query name no page), and
gives three outcomes:

- **Boilerplate lines are cut** (reason `boilerplate`): lines that `line_share` of the host's
  pages have, and at least `line_pages`, in blocks that follow each other on nearly all of them,
  at the head or foot of a page; between lines of the page's own only blocks that half of the
  host's pages have, and no sentences. One page keeps each line: of those that the stage does not
  drop the one with most in lines of its own. A stage after it may drop that page; its books have
  it. A line with a word of notices (cookies, rights) that `notice_hosts` hosts have goes at the
  head or foot of any page.
- **Fill-in lines are marked** (scores `fill_lines`, `fill_words`), not cut: one form, another
  fill on every page.
- **Template pages are dropped** (reason `template`), but for `exemplars` of a family, by
  `choice`: `novelty` (most words that are not the template's), `length` or `id`. A family has
  `min_pages` URLs and as many texts. A page of it goes if `min_share` of its words, and
  `min_slotted` of them, stand in lines of the template with a slot, and fewer than `min_prose`
  words are its own: in lines of 5 words and more, or where three lines in a row are its own,
  numbers apart; or, on a card of ten lines of label and value and more, in values of three words
  and more, numbers apart. A sentence inside a line of the template is the page's own, too: of its
  words, two and one in six are common ones, or rare ones that come again in the family, as many
  words of a language do. In families of several hosts `cross_share` of its words must be the
  template's. Tables of numbers under a shared form so go, with all their figures; `min_prose: 0`
  drops no page at all.

What is cut too much: the usual mends are a higher `line_share` (`0.9`: what nine in ten pages
have) and a lower `min_prose`, for pages. Pages of hosts of fewer than `line_pages` pages stay as
they are, or `lone: line_rules` cuts them by what the lines say. All fields but `anchor_ngram` and
`anchors` may change without a new survey of the texts.

```console
gristmill sample RUN --stage templates  # the largest families: a text with its slots, fills, pages
gristmill sample RUN --stage templates --reason boilerplate  # documents that lost lines, and which
gristmill why RUN ID  # each cut, how many pages have it; words of the template and of its own
```

The report lists the largest families. Scores (`templates.template_share`, `fill_words`,
`exemplar`) and `cluster_size` make slices of a mixture.
"""


MASKS = """## Personal data

`pii` masks what has the form of an address, a number or a key; the head of `filters/pii.py` states
each rule and what it leaves. Some choices:

- A handle of the fediverse (`@joe@mastodon.social`) is masked as an e-mail address is, since it
  names a person in the same form: `@<EMAIL>`. A bare `@joe` stays.
- Most national telephone numbers are found behind a word for one alone;
  `filters/number_labels.tsv` has these words by language. Behind such a word stay dates with
  marks, hours, prices, decimals, sizes of screens and bands of radio (`Phone 2024-10-12 10:30`,
  `Mobile 1299.00`, `GSM 900/1800`).
- `&nbsp;`, `&shy;`, `&#8203;`, `&#64;` and the like within an address or a number go with it.
  `&amp;` is read once, as a reader does: `&amp;nbsp;` is no space.
- `reserved: true` masks names kept for examples and private addresses too, `at_most` drops lists
  of addresses, and `null` for a kind leaves it alone.
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


def remarks(kind: type) -> dict[str, str]:
    """What the source says of each field of a class, beside it in the same line."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if not dataclasses.is_dataclass(base):
            continue
        lines = inspect.getsource(base).splitlines()
        said = {}
        for token in tokenize.generate_tokens(iter([f"{line}\n" for line in lines]).__next__):
            beside = token.type == tokenize.COMMENT and lines[token.start[0] - 1].lstrip()[0] != "#"
            if beside and not token.string.startswith("# noqa"):
                said[token.start[0]] = token.string.removeprefix("# ").replace("|", "\\|")
        for node in ast.parse(cleandoc("\n".join(lines))).body[0].body:  # type: ignore[attr-defined]
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                place = range(node.lineno, (node.end_lineno or node.lineno) + 1)
                found[node.target.id] = " ".join(said[n] for n in place if n in said)
    return found


def table(kind: type) -> str:
    """Fields and defaults of a configuration class, and what the source says of them."""
    rows = ["| field | default | |", "|---|---|---|"]
    beside = remarks(kind)
    for field in dataclasses.fields(kind):
        if not field.init or not field.metadata.get("as", field.name):
            continue
        given = field.default is not dataclasses.MISSING
        made = field.default_factory is not dataclasses.MISSING
        value = repr(field.default) if given else ("empty" if made else "required")
        value = value if len(value) <= 60 else value[:57] + "..."
        value = f"`{value}`" if given else field.metadata.get("else", value)
        name = field.metadata.get("as", field.name)
        rows.append(f"| `{name}` | {value} | {beside.get(field.name, '')} |")
    return "\n".join(rows) if len(rows) > 2 else "No fields."


def first_line(kind: type) -> str:
    """What a class is, by its docstring."""
    paragraphs = (kind.__doc__ or "").strip().split("\n\n")
    return paragraphs[0].strip().replace("\n    ", " ")


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
    parts += [MASKS, TEMPLATES, TURNS]
    parts.append("## Mixture\n")
    mixture = (("the mixture", MixSpec), ("a slice", SliceSpec), ("a stage", StageSpec))
    parts += [f"### {title}\n\n{cleandoc(k.__doc__ or '')}\n\n{table(k)}\n" for title, k in mixture]
    return "\n".join(parts)


if __name__ == "__main__":
    Path(__file__).with_name("recipes.md").write_text(page(), encoding="utf-8")
