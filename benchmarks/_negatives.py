"""Pages that look alike and are no template pages: what must stay.

Each kind stands on one host of its own, under a header and over a footer of that host, which is the
hardest place for it. Dictionary entries come from WordNet's data files where $GRISTMILL_WORDNET
names their folder (Debian: package wordnet-base, /usr/share/wordnet); API pages are the docstrings
of NumPy, PyArrow and the standard library; the rest is cut from the real data sets.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
from pathlib import Path

import _templates as inject
from _texts import rows_of

MOST = 3000  # pages of a kind
MODULES = [
    "numpy",
    "numpy.linalg",
    "numpy.ma",
    "numpy.fft",
    "numpy.random",
    "pyarrow",
    "pyarrow.compute",
    "pyarrow.parquet",
    "os",
    "os.path",
    "io",
    "re",
    "json",
    "math",
    "random",
    "datetime",
    "collections",
    "itertools",
    "functools",
    "asyncio",
    "typing",
    "unittest.mock",
    "email.message",
    "http.client",
    "socket",
    "ssl",
    "subprocess",
    "threading",
    "pathlib",
    "shutil",
    "statistics",
    "string",
    "textwrap",
    "struct",
    "tarfile",
    "zipfile",
    "urllib.parse",
    "logging",
    "argparse",
    "csv",
    "sqlite3",
    "decimal",
    "fractions",
    "inspect",
    "ast",
    "dis",
    "tokenize",
    "contextlib",
    "dataclasses",
    "enum",
    "queue",
    "sched",
    "heapq",
]


def negatives(data):
    """Kind -> texts."""
    found = {
        "dictionary entries": list(dictionary()),
        "API pages": list(api_pages()),
        "species pages": list(species(data)),
        "statutes": list(statutes(data)),
        "Q&A and forum": list(forum(data)),
        "recipes and how-to": list(register(data, {"re", "HI"})),
        "verse and lyrics": list(register(data, {"LY"})),
        "textbook sections": list(textbooks(data)),
        "encyclopaedia": [t for t, _ in encyclopaedia(data)][:MOST],
    }
    return {kind: texts[:MOST] for kind, texts in found.items() if texts}


def pages_of(kind, texts):
    """The texts as pages of one host, with its header and footer."""
    host = f"{re.sub('[^a-z]+', '-', kind.lower())}.example"
    head = f"Home · Index · Search · About the {kind} project"
    foot = (
        "All rights reserved. Read our privacy policy and terms of use before you copy this page."
    )
    return [
        inject.Page(f"{head}\n{text}\n{foot}", f"https://{host}/{i}", host, kind=kind)
        for i, text in enumerate(texts)
    ]


def dictionary():
    """Entries of WordNet: word, class, definitions, examples, synonyms."""
    folder = Path(os.environ.get("GRISTMILL_WORDNET", "/usr/share/wordnet"))
    names = {"data.noun": "noun", "data.verb": "verb", "data.adj": "adjective"}
    entries = {}
    for name, kind in names.items():
        if not (folder / name).is_file():
            return
        for line in (folder / name).read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith(" "):
                continue
            left, _, gloss = line.partition(" | ")
            fields = left.split()
            words = [fields[4 + 2 * i].replace("_", " ") for i in range(int(fields[3], 16))]
            entries.setdefault((words[0], kind), []).append((gloss.strip(), words[1:]))
    keys = sorted(entries)
    for word, kind in keys[:: max(1, len(keys) // MOST)]:
        lines = [word, kind]
        for number, (gloss, synonyms) in enumerate(entries[word, kind], 1):
            definition, *examples = [g.strip().strip('"') for g in gloss.split("; ")]
            lines.append(f"{number}. {definition}")
            lines += [f"Example: {e}" for e in examples]
            if synonyms:
                lines.append(f"Synonyms: {', '.join(synonyms)}")
        yield "\n".join(lines)


def api_pages():
    """One page for each documented function, class and method.

    Not for modules: those that something else imported stand in their package, and moved what goes.
    """
    seen = set()
    modules = {name: importlib.import_module(name) for name in MODULES}
    for name, module in modules.items():
        for attribute, thing in sorted(vars(module).items(), key=lambda x: x[0]):
            members = [(attribute, thing)]
            if inspect.isclass(thing):
                members += [(f"{attribute}.{k}", v) for k, v in sorted(vars(thing).items())]
            for title, member in members:
                text = getattr(member, "__doc__", None)
                if title.startswith("_") or not isinstance(text, str) or len(text.split()) < 8:
                    continue
                if inspect.ismodule(member):
                    continue
                if text not in seen:
                    seen.add(text)
                    yield f"{name}.{title}\n{inspect.cleandoc(text)}"


def encyclopaedia(data):
    rows = rows_of(data / "c-encyclopedia-enwiki" / "develop.jsonl.gz")
    return [(r["text"], r["title"]) for r in rows]


def species(data):
    for text, title in encyclopaedia(data):
        if re.search(r" is an? (species|genus|subspecies) of", text[:300]):
            yield f"{title}\n{text}"


def statutes(data):
    for row in rows_of(data / "h-long-gesetze-de" / "laws.jsonl.gz"):
        for part in re.split(r"\n(?=#+ §)", row["text"])[1:]:
            yield part.strip()


def forum(data):
    for row in rows_of(data / "b-html-wcxb" / "dev.jsonl.gz"):
        if row["page_type"] == "forum":
            yield row["gold_text"]
    for row in rows_of(data / "e-issues-swebench-lite" / "problem_statements.jsonl.gz"):
        yield row["problem_statement"]
    yield from register(data, {"ID"})


def register(data, labels):
    for path in sorted((data / "c-register-web").glob("*.gz")):
        for row in rows_of(path):
            if labels & set(re.findall(r"\w+", str(row["labels"]))):
                yield row["text"].strip()


def textbooks(data):
    for path in sorted((data / "c-textbooks-openstax").glob("*.gz")):
        for row in rows_of(path):
            yield f"{row['title']}\n{row['text']}"
