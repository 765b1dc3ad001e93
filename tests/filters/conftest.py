"""Made-up hosts, and a source of chance that is the same every time."""

from __future__ import annotations

import random

import pytest


@pytest.fixture
def draw():
    return random.Random(7)


@pytest.fixture(scope="session")
def hosts(naive):
    """`tests/made_hosts.py`."""
    return naive("made_hosts")
