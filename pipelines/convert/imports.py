"""Files of a repository so that what a file imports stands before it.

    Python        import a.b, from . import c: from the file's folder, the repository's root and the
                  parents of its packages
    JS, TS        import, export from, require, import(): relative ones
    Go            import "<module>/pkg", by the modules' go.mod: all files of the folder
    Rust          mod a; use crate::, self::, super::
    Java, Kotlin, Scala    import a.b.C, a.b.*: any root
    C, C++        #include "a.h" from the file's folder, then by the end of the path

Imports are found by patterns, not by a parser: code of any age and version is read the same way,
and what is no import leads to no file. What imports each other in a circle stands together, by
path; beyond that, of files that may come next the first by path does (DeepSeek-Coder, section 2.2,
orders by dependency too, and takes the file with the fewest open ones where there is a circle).
"""

from __future__ import annotations

import heapq
import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

_PYTHON = re.compile(
    r"^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n#;]*)"
    r"|import[ \t]+([\w., \t]+))",
    re.MULTILINE,
)
_SCRIPT = re.compile(
    r"""(?:\bfrom|\bimport|\brequire[ \t]*\(|\bimport[ \t]*\()[ \t\n]*"""
    r"""(['"])(\.{1,2}(?:/[^'"\n]*)?)\1"""
)
_GO = re.compile(r"^import[ \t]*(?:\(([^)]*)\)|[\w.]*[ \t]*(\"[^\"\n]*\"))", re.MULTILINE)
_GO_MODULE = re.compile(r"^module[ \t]+(\S+)", re.MULTILINE)
_RUST = re.compile(
    r"^[ \t]*(?:pub(?:\([^)]*\))?[ \t]+)?"
    r"(?:mod[ \t]+(\w+)[ \t]*;|use[ \t]+((?:crate|self|super)(?:::\w+)+))",
    re.MULTILINE,
)
_JAVA = re.compile(r"^[ \t]*import[ \t]+(?:static[ \t]+)?(\w+(?:\.\w+)*(?:\.\*)?)", re.MULTILINE)
_C = re.compile(r"^[ \t]*#[ \t]*(?:include|import)[ \t]*[\"<]([^\">\n]+)[\">]", re.MULTILINE)
_SCRIPTS = ("ts", "tsx", "d.ts", "js", "jsx", "mjs", "cjs", "mts", "cts", "vue", "svelte", "json")
_JVM = ("java", "kt", "scala", "groovy")
_HOSTS = ("github.com", "gitlab.com", "bitbucket.org")  # what a module without go.mod is called


class _Tree:
    """The paths of a repository: files, folders, and what ends like this."""

    def __init__(self, files: Sequence[tuple[str, str]], name: str) -> None:
        self.texts = files
        self.index: dict[str, int] = {}
        self.folders: dict[str, list[int]] = defaultdict(list)
        self.ends: dict[str, list[str]] = defaultdict(list)  # last name -> paths
        for i, (path, _) in enumerate(files):
            self.index.setdefault(path, i)
            self.folders[posixpath.dirname(path)].append(i)
            self.ends[posixpath.basename(path)].append(path)
        packages = {posixpath.dirname(p) for p in self.ends["__init__.py"]}
        self.roots = sorted({"", "src"} | {posixpath.dirname(p) for p in packages} - packages)
        self.modules: list[tuple[str, str]] = sorted(  # of Go: (path of import, folder)
            (match[1], posixpath.dirname(path))
            for path, text in files
            if posixpath.basename(path) == "go.mod" and (match := _GO_MODULE.search(text))
        ) or [(f"{host}/{name}", "") for host in _HOSTS]

    def first(self, *paths: str) -> int | None:
        """The first of the paths that is a file."""
        for path in paths:
            found = self.index.get(posixpath.normpath(path))
            if found is not None:
                return found
        return None

    def ending(self, end: str) -> int | None:
        """The shortest path that ends so, the first of equals."""
        found = [p for p in self.ends[posixpath.basename(end)] if p == end or p.endswith("/" + end)]
        return self.index[min(found, key=lambda p: (p.count("/"), p))] if found else None


def _python(tree: _Tree, path: str, text: str) -> Iterator[int | None]:
    here = posixpath.dirname(path)
    for match in _PYTHON.finditer(text):
        if match[3]:
            for name in match[3].split(","):
                yield _module(tree, [here, *tree.roots], name.split(" as ")[0].strip())
            continue
        dots = len(match[1]) - len(match[1].lstrip("."))
        base = match[1][dots:]
        roots = [here, *tree.roots]
        if dots:
            up = here.split("/") if here else []
            if dots - 1 > len(up):
                continue
            roots = ["/".join(up[: len(up) - dots + 1])]
        for name in match[2].strip("() \t").split(","):
            word = name.split(" as ")[0].split("#")[0].strip()
            inner = ".".join(filter(None, [base, word]))
            found = _module(tree, roots, inner) if re.fullmatch(r"\w+", word) else None
            yield found if found is not None else _module(tree, roots, base)


def _module(tree: _Tree, roots: Sequence[str], name: str) -> int | None:
    tail = name.replace(".", "/")
    for root in roots:
        at = posixpath.join(root, tail) if tail else root
        ends = [f"{at}.py", f"{at}.pyi"] if tail else []
        found = tree.first(*ends, posixpath.join(at, "__init__.py"))
        if found is not None:
            return found
    return None


def _script(tree: _Tree, path: str, text: str) -> Iterator[int | None]:
    for match in _SCRIPT.finditer(text):
        at = posixpath.join(posixpath.dirname(path), match[2])
        stem = re.sub(r"\.([mc]?)js(x?)$", r".\1ts\2", at)  # TypeScript imports what it will be
        ends = [f"{at}.{end}" for end in _SCRIPTS]
        inner = [posixpath.join(at, f"index.{end}") for end in _SCRIPTS]
        yield tree.first(at, stem, *ends, *inner)


def _go(tree: _Tree, path: str, text: str) -> Iterator[int | None]:
    del path
    for match in _GO.finditer(text):
        for name in re.findall(r"\"([^\"\n]+)\"", match[1] or match[2]):
            for module, folder in reversed(tree.modules):  # the longest of two that begin alike
                if name == module or name.startswith(f"{module}/"):
                    at = posixpath.normpath(posixpath.join(folder, name[len(module) + 1 :]))
                    inside = tree.folders["" if at == "." else at]
                    yield from (
                        i
                        for i in inside
                        if (p := tree.texts[i][0]).endswith(".go") and not p.endswith("_test.go")
                    )
                    break


def _rust(tree: _Tree, path: str, text: str) -> Iterator[int | None]:
    here, name = posixpath.split(path)
    own = here if name in ("lib.rs", "main.rs", "mod.rs") else path.removesuffix(".rs")
    crate = here
    while crate and not any(f"{crate}/{root}" in tree.index for root in ("lib.rs", "main.rs")):
        crate = posixpath.dirname(crate)
    for match in _RUST.finditer(text):
        if match[1]:
            at = posixpath.join(own, match[1])
            yield tree.first(f"{at}.rs", f"{at}/mod.rs")
            continue
        words = match[2].split("::")
        base = crate if words[0] == "crate" else own
        words = words[1:] if words[0] in ("crate", "self") else words
        while words and words[0] == "super":
            base, words = posixpath.dirname(base), words[1:]
        for end in range(len(words), 0, -1):  # the last names are of things in a module
            at = posixpath.join(base, *words[:end])
            found = tree.first(f"{at}.rs", f"{at}/mod.rs")
            if found is not None:
                yield found
                break


def _jvm(tree: _Tree, path: str, text: str) -> Iterator[int | None]:
    del path
    for match in _JAVA.finditer(text):
        words = match[1].split(".")
        if words[-1] in ("*", "_"):
            end = "/".join(words[:-1])
            for folder in [f for f in tree.folders if f == end or f.endswith(f"/{end}")]:
                yield from (
                    i for i in tree.folders[folder] if tree.texts[i][0].rpartition(".")[2] in _JVM
                )
            continue
        for size in (len(words), len(words) - 1):  # a static import names something in a class
            at = "/".join(words[:size])
            some = [tree.ending(f"{at}.{kind}") for kind in _JVM if at]
            found = next((f for f in some if f is not None), None)
            if found is not None:
                yield found
                break


def _c(tree: _Tree, path: str, text: str) -> Iterator[int | None]:
    for match in _C.finditer(text):
        near = tree.first(posixpath.join(posixpath.dirname(path), match[1]))
        yield near if near is not None else tree.ending(posixpath.normpath(match[1]).lstrip("./"))


_LANGUAGES: dict[str, Callable[[_Tree, str, str], Iterator[int | None]]] = {
    **dict.fromkeys(("py", "pyi"), _python),
    **dict.fromkeys(_SCRIPTS[:2] + _SCRIPTS[3:-1], _script),
    "go": _go,
    "rs": _rust,
    **dict.fromkeys(_JVM, _jvm),
    **dict.fromkeys(("c", "h", "cc", "cpp", "cxx", "hh", "hpp", "hxx", "m", "mm", "cu"), _c),
}


def imports_of(files: Sequence[tuple[str, str]], name: str = "") -> list[set[int]]:
    """Of each (path, text) of the repository `name` the files that it imports, itself left out.

    Paths are relative to the repository, whether they begin with `/` or not.
    """
    files = [(path.lstrip("/"), text) for path, text in files]
    tree = _Tree(files, name)
    found: list[set[int]] = []
    for i, (path, text) in enumerate(files):
        language = _LANGUAGES.get(path.rpartition(".")[2].lower())
        mine = {j for j in language(tree, path, text) if j is not None} if language else set()
        found.append(mine - {i})
    return found


def import_order(paths: Sequence[str], imports: Sequence[set[int]]) -> tuple[list[int], int]:
    """The files in order, each after what it imports; and how many stand in circles."""
    group = _circles(imports)
    members: dict[int, list[int]] = defaultdict(list)
    for i in sorted(range(len(paths)), key=lambda i: (paths[i], i)):
        members[group[i]].append(i)
    needs = {g: {group[j] for i in m for j in imports[i]} - {g} for g, m in members.items()}
    used: dict[int, list[int]] = defaultdict(list)
    for g, others in needs.items():
        for other in others:
            used[other].append(g)
    first = {g: (paths[m[0]], m[0]) for g, m in members.items()}
    ready = [(first[g], g) for g, others in needs.items() if not others]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        _, g = heapq.heappop(ready)
        order += members[g]
        for user in used[g]:
            needs[user].discard(g)
            if not needs[user]:
                heapq.heappush(ready, (first[user], user))
    return order, sum(len(m) for m in members.values() if len(m) > 1)


def _circles(edges: Sequence[set[int]]) -> list[int]:
    """The strongly connected component of each node (Tarjan 1972), without recursion."""
    number = [-1] * len(edges)
    low = [0] * len(edges)
    group = [-1] * len(edges)
    stack: list[int] = []
    count = groups = 0
    for start in range(len(edges)):
        if number[start] >= 0:
            continue
        walk = [(start, iter(sorted(edges[start])))]
        while walk:
            node, rest = walk[-1]
            if number[node] < 0:
                number[node] = low[node] = count
                count += 1
                stack.append(node)
            for other in rest:
                if number[other] < 0:
                    walk.append((other, iter(sorted(edges[other]))))
                    break
                if group[other] < 0:
                    low[node] = min(low[node], number[other])
            else:
                walk.pop()
                if walk:
                    low[walk[-1][0]] = min(low[walk[-1][0]], low[node])
                if low[node] == number[node]:
                    while group[node] < 0:
                        group[stack.pop()] = groups
                    groups += 1
    return group
