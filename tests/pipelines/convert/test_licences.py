"""Licences by the text of their files."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path

import pytest

from gristmill.pipelines.convert.licences import is_licence, licence_of, licence_of_files

MIT = """The MIT License (MIT)

Copyright (c) 2020 Somebody

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
associated documentation files (the "Software"), to deal in the Software without restriction.

The above copyright notice and this permission notice shall be included in all copies.
"""
ZLIB = """This software is provided 'as-is'. 1. The origin of this software must not be
misrepresented; you must not claim that you wrote it. 2. Altered source versions must be plainly
marked as such."""


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (MIT, "MIT"),
        (MIT.upper().replace(" ", "  \n * "), "MIT"),
        (MIT.split("The above", maxsplit=1)[0], "MIT-0"),
        (MIT + '"Commons Clause" License Condition v1.0', None),
        (MIT + "\n----\n" + ZLIB, "MIT AND Zlib"),
        (ZLIB, "Zlib"),
        ("All rights reserved.", None),
        ("", None),
        ("Licensed under the MIT license.", None),
    ],
)
def test_licence_by_phrases_that_one_has(text, name):
    assert licence_of(text) == name


def test_licence_of_this_project_is_the_one_that_it_states():
    assert licence_of((Path(__file__).parents[3] / "LICENSE").read_text()) == "Apache-2.0"


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ([("LICENSE", MIT)], "MIT"),
        ([("LICENSE-MIT", MIT), ("LICENSE-ZLIB", ZLIB)], "MIT OR Zlib"),
        ([("LICENSE", MIT), ("LICENSE.zlib", ZLIB)], "MIT AND Zlib"),
        ([("LICENSE", MIT), ("COPYING", "ask us")], None),
        ([], None),
    ],
)
def test_licence_of_several_files(files, name):
    assert licence_of_files(files) == name


@pytest.mark.parametrize(
    "path",
    ["LICENSE", "Licence.md", "COPYING.LESSER", "UNLICENSE", "LICENSES/MIT.txt", "MIT-LICENSE"],
)
def test_licence_file_by_its_name(path):
    assert is_licence(path)


@pytest.mark.parametrize(
    "path", ["license.py", "src/LICENSE", "docs/license.md", "README", "licenses.json"]
)
def test_licence_file_is_not_any_file_of_that_word(path):
    assert not is_licence(path)


def test_licence_of_real_repositories_is_what_their_hosts_state(real_data):
    found, stated = defaultdict(list), {}
    with gzip.open(real_data / "e-code-repos/develop.jsonl.gz") as lines:
        for row in map(json.loads, lines):
            stated[row["repo"]] = row["license"]
            if is_licence(row["path"]):
                found[row["repo"]].append((row["path"], row["text"]))
    got = {repo: licence_of_files(files) for repo, files in found.items()}
    assert len(got) == 12
    assert got == {repo: stated[repo] for repo in got}
