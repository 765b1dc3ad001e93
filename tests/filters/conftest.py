"""Made-up hosts and items, and a source of chance that is the same every time."""

from __future__ import annotations

import json
import random

import pytest


@pytest.fixture
def draw():
    return random.Random(7)


@pytest.fixture(scope="session")
def hosts(naive):
    """`tests/made_hosts.py`."""
    return naive("made_hosts")


@pytest.fixture(scope="session")
def sentence(naive):
    """`sentence(seed, words)` of made-up words."""
    return naive("made_items").sentence


@pytest.fixture(scope="session")
def found(naive):
    """`found(stage, text)`: what evidence says of the items found."""
    return naive("made_items").found


@pytest.fixture(scope="session")
def cut(naive):
    """`cut(stage, texts)`: what is left, in which nothing is found."""
    return naive("made_items").cut


@pytest.fixture
def write(tmp_path):
    """`write(items)`: a file of items, each a question or an object."""

    def write(items, name="items.jsonl"):
        path = tmp_path / name
        lines = [json.dumps(i if isinstance(i, dict) else {"question": i}) for i in items]
        path.write_text("\n".join(lines) + "\n")
        return path

    return write
