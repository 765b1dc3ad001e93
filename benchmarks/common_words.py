"""Write the table of common words of the template stage: `common_words.py DATA [OUT]`.

DATA holds the sets named below, as JSONL of `text` (web pages also `lang`). OUT is by default the
file that ships, `filters/templates/common.npy`; all masks depend on it, so it is frozen. A word
counts once a document. Prints words and bits by set.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
from _texts import rows_of

from gristmill.filters.templates.words import FILE, bits_of

WORD = re.compile(r"[^\W_]+")
REFERENCE = ("c-encyclopedia-enwiki", "c-textbooks-openstax", "c-lecture-notes")  # English
WEB = "c-register-web"  # by language


def most_common(texts, most, least):
    """Words without digits, lower-cased, in most texts and in at least `least` of them."""
    number = Counter()
    for text in texts:
        words = set(WORD.findall(text.lower()))
        number.update(w for w in words if not any(c.isdigit() for c in w))
    order = sorted(number.items(), key=lambda item: (-item[1], item[0]))
    return [word for word, n in order[:most] if n >= least]


def documents(data, name):
    """Documents of all files of a set."""
    for path in sorted((data / name).glob("*.gz")):
        yield from rows_of(path)


def main(data, out=FILE):
    """Count, and write the positions of the bits."""
    found = set(
        most_common((r["text"] for name in REFERENCE for r in documents(data, name)), 8000, 8)
    )
    print(f"English reference texts: {len(found):,} words")
    pages = defaultdict(list)
    for row in documents(data, WEB):
        pages[row.get("lang", "?")].append(row["text"])
    for language, texts in sorted(pages.items()):
        words = most_common(texts, 3000, 3)
        print(f"web, {language}: {len(texts):,} pages, {len(words):,} words")
        found.update(words)
    table = bits_of(sorted(found))
    bits = np.flatnonzero(np.unpackbits(table, bitorder="little")).astype(np.uint32)
    with Path(out).open("wb") as file:
        np.save(file, bits)
    print(f"{len(found):,} words, {len(bits):,} bits set, {len(bits) / (1 << 20):.2%} of all")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
