"""Imports found by language, and the order that they ask for."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.pipelines.convert.imports import import_order, imports_of

PYTHON = {
    "app/__init__.py": "",
    "app/core.py": "from . import util\nfrom .deep.leaf import (\n    A,  # one\n    B,\n)\n",
    "app/deep/__init__.py": "",
    "app/deep/leaf.py": "from ..util import x as y\nfrom .. import missing\nimport json\n",
    "app/util.py": "import os, sys\n",
    "lib/other/__init__.py": "",
    "main.py": "import app.core as c, other\nif c:\n    from app import deep\n",
    "tools/json.py": "",
}
SCRIPT = {
    "a.ts": "import {x} from './lib'\nexport * from \"./b.js\"\nimport 'react'\n",
    "b.ts": "const c = require('./c')\n",
    "c/index.js": "",
    "lib.tsx": "const d = await import('../d')\n",
    "d.js": "",
}
GO = {
    "go.mod": "module example.org/me/app\n",
    "main.go": 'package main\n\nimport (\n\t"fmt"\n\tx "example.org/me/app/pkg"\n)\n',
    "pkg/one.go": 'package pkg\nimport "example.org/me/app/pkg/sub"\n',
    "pkg/one_test.go": "package pkg\n",
    "pkg/sub/s.go": "package sub\n",
}
RUST = {
    "src/lib.rs": "pub mod a;\nmod b;\n",
    "src/a.rs": "use crate::b::Thing;\nuse std::fmt;\n",
    "src/b/mod.rs": "mod c;\npub(crate) use self::c::Deep;\n",
    "src/b/c.rs": "use super::super::a::f;\n",
}
JAVA = {
    "src/main/java/org/x/A.java": "import org.x.b.B;\nimport static org.x.C.make;\n",
    "src/main/java/org/x/C.java": "import java.util.List;\n",
    "src/main/java/org/x/b/B.java": "import org.x.d.*;\n",
    "src/main/kotlin/org/x/d/D.kt": "",
}
C = {
    "include/net/net.h": "#include <stdio.h>\n",
    "src/main.c": '#include "local.h"\n#  include <net/net.h>\n',
    "src/local.h": "#include <net.h>\n",
}


@pytest.mark.parametrize("root", ["", "/"])
@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (
            PYTHON,
            {
                "app/core.py": {"app/util.py", "app/deep/leaf.py"},
                "app/deep/leaf.py": {"app/util.py", "app/__init__.py"},
                "main.py": {"app/core.py", "app/deep/__init__.py", "lib/other/__init__.py"},
            },
        ),
        (SCRIPT, {"a.ts": {"lib.tsx", "b.ts"}, "b.ts": {"c/index.js"}}),
        (GO, {"main.go": {"pkg/one.go"}, "pkg/one.go": {"pkg/sub/s.go"}}),
        (
            RUST,
            {
                "src/lib.rs": {"src/a.rs", "src/b/mod.rs"},
                "src/a.rs": {"src/b/mod.rs"},
                "src/b/mod.rs": {"src/b/c.rs"},
                "src/b/c.rs": {"src/a.rs"},
            },
        ),
        (
            JAVA,
            {
                "src/main/java/org/x/A.java": {
                    "src/main/java/org/x/b/B.java",
                    "src/main/java/org/x/C.java",
                },
                "src/main/java/org/x/b/B.java": {"src/main/kotlin/org/x/d/D.kt"},
            },
        ),
        (
            C,
            {
                "src/main.c": {"src/local.h", "include/net/net.h"},
                "src/local.h": {"include/net/net.h"},
            },
        ),
    ],
    ids=["python", "script", "go", "rust", "java", "c"],
)
def test_imports_lead_to_files_of_the_repository(tree, expected, root):
    paths = list(tree)
    found = imports_of([(root + path, text) for path, text in tree.items()])
    got = {paths[i]: {paths[j] for j in mine} for i, mine in enumerate(found) if mine}
    assert got == expected


def test_imports_of_a_go_module_without_go_mod_go_by_the_repositorys_name():
    files = [("m.go", 'import "github.com/me/app/pkg"\n'), ("pkg/p.go", "")]
    assert imports_of(files, "me/app") == [{1}, set()]
    assert imports_of(files, "me/other") == [set(), set()]


def test_imports_of_rust_without_a_root_of_the_crate_lead_nowhere():
    files = [("/src/a.rs", "use crate::b::c;\n"), ("/src/deep/b.rs", "")]
    assert imports_of(files) == [set(), set()]


def reaches(imports, start, goal):
    seen, left = set(), [start]
    while left:
        for other in imports[left.pop()]:
            if other == goal:
                return True
            if other not in seen:
                seen.add(other)
                left.append(other)
    return False


@st.composite
def graphs(draw):
    size = draw(st.integers(1, 9))
    edges = draw(st.lists(st.tuples(*[st.integers(0, size - 1)] * 2), max_size=20))
    imports = [{b for a, b in edges if a == i and b != i} for i in range(size)]
    return [f"{n:02}" for n in draw(st.permutations(range(size)))], imports


@given(graphs(), st.integers(0, 99))
def test_order_any_graph_puts_imports_first_and_circles_together(graph, seed):
    paths, imports = graph
    order, circular = import_order(paths, imports)
    assert sorted(order) == list(range(len(paths)))
    place = {i: k for k, i in enumerate(order)}
    same = [
        {
            j
            for j in range(len(paths))
            if j == i or (reaches(imports, i, j) and reaches(imports, j, i))
        }
        for i in range(len(paths))
    ]
    assert circular == sum(len(s) > 1 for s in same)
    for i, mine in enumerate(imports):
        assert all(place[j] < place[i] for j in mine - same[i])
        places = [place[j] for j in sorted(same[i], key=lambda j: paths[j])]
        assert places == list(range(places[0], places[0] + len(places)))
    # Whatever order the files were read in.
    other = list(range(len(paths)))
    random.Random(seed).shuffle(other)
    where = {i: k for k, i in enumerate(other)}
    moved, _ = import_order(
        [paths[i] for i in other], [{where[j] for j in imports[i]} for i in other]
    )
    assert [paths[other[i]] for i in moved] == [paths[i] for i in order]


def test_order_of_files_without_imports_is_that_of_their_paths():
    assert import_order(["c", "a", "b"], [set(), set(), set()]) == ([1, 2, 0], 0)


def test_order_of_a_chain_of_ten_thousand_needs_no_recursion():
    size = 10_000
    order, _ = import_order(
        [f"{n:05}" for n in range(size)], [{n + 1} if n + 1 < size else set() for n in range(size)]
    )
    assert order == list(range(size))[::-1]


def test_imports_real_repositories_put_nearly_all_imports_first(real_data):
    import gzip
    import json
    from collections import defaultdict

    found = defaultdict(list)
    with gzip.open(real_data / "e-code-repos/develop.jsonl.gz") as lines:
        for row in map(json.loads, lines):
            found[row["repo"]].append((row["path"], row["text"]))
    edges = after = by_path = 0
    for name, files in found.items():
        files.sort()
        imports = imports_of(files, name)
        order, _ = import_order([p for p, _ in files], imports)
        place = {i: k for k, i in enumerate(order)}
        edges += sum(map(len, imports))
        after += sum(place[j] > place[i] for i, mine in enumerate(imports) for j in mine)
        by_path += sum(j > i for i, mine in enumerate(imports) for j in mine)
    assert edges > 1500
    assert after * 50 < edges  # in circles
    assert by_path * 4 > edges
