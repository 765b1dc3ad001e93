"""One small corpus a module, and the feed of its three stages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from gristmill.mixing import TokenFeed

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa


class World(NamedTuple):
    """A corpus of mixed documents with its token shards in `folder / "tokens"`."""

    tools: Any  # tests/naive_mixing.py
    catalog: pa.Table
    digests: dict[str, dict[str, str]]
    folder: Path


@pytest.fixture(scope="module", name="world")
def world_fixture(naive, tmp_path_factory):
    tools, folder = naive("naive_mixing"), tmp_path_factory.mktemp("mix")
    return World(tools, *tools.make_corpus(folder / "tokens", tools.mixed_documents()), folder)


@pytest.fixture(scope="module", name="plan_folder")
def plan_folder_fixture(world):
    return world.tools.compiled(world)


@pytest.fixture(scope="module", name="feed")
def feed_fixture(world, plan_folder):
    return TokenFeed(plan_folder, world.folder / "tokens")
