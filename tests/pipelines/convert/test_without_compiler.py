"""The kernels of extraction run as plain Python say the same: same text, same cuts."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys

SCRIPT = """
import json, random, sys
from gristmill.pipelines.convert.page import read_page

TAGS = ["p", "div", "ul", "li", "table", "tr", "td", "nav", "h2", "pre", "span", "a", "article",
        "section", "footer", "b", "dl", "dt", "dd", "code", "blockquote"]
WORDS = ["grain", "mill", "water", "\\u00e4pfel", "\\u5c71", "12", "and", "the", "  ", "\\n"]

def page(chance):
    parts, open_tags = ["<html><body>"], []
    for _ in range(chance.randrange(5, 60)):
        if open_tags and chance.random() < 0.35:
            parts.append(f"</{open_tags.pop()}>")
        elif chance.random() < 0.5:
            tag = chance.choice(TAGS)
            attribute = chance.choice(["", ' class="menu"', ' id="content"', ' class="share"'])
            parts.append(f"<{tag}{attribute}>")
            open_tags.append(tag)
        else:
            parts.append(" ".join(chance.choices(WORDS, k=chance.randrange(1, 25))) + ". ")
    return "".join(parts)

chance = random.Random(int(sys.argv[1]))
told = []
for _ in range(int(sys.argv[2])):
    found = read_page(page(chance))
    told.append([found.text, dict(found.cut)])
print(json.dumps(told, sort_keys=True))
"""


def pages(seed, number, **env):
    command = [sys.executable, "-c", SCRIPT, str(seed), str(number)]
    done = subprocess.run(
        command, env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_read_page_without_the_compiler_same_text_and_cuts():
    seed = random.Random(20261130).randrange(1 << 30)
    compiled = pages(seed, 40)
    assert sum(bool(text) for text, _ in compiled) > 20
    assert any(cut for _, cut in compiled)
    assert pages(seed, 40, NUMBA_DISABLE_JIT="1") == compiled
