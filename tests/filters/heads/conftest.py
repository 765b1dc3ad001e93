"""Made-up pages: lessons and shop talk in five grades, three pages a site."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import pytest

LESSON = ("because", "therefore", "energy", "cell", "theorem", "proof", "molecule", "explains")
SHOP = ("buy", "cart", "sale", "shipping", "discount", "deal", "now", "free", "order", "price")
GRADES = 4


def page(grade: int, draw: random.Random) -> str:
    words = [
        draw.choice(LESSON if draw.random() < 0.1 + 0.25 * grade else SHOP)
        for _ in range(draw.randint(30, 90))
    ]
    return f"{' '.join(words[:20])}\n{' '.join(words[20:])}, thing{draw.randint(0, 400)}."


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """A data folder with texts, labels and two recipes."""
    where = tmp_path_factory.mktemp("heads")
    draw = random.Random(7)
    with (
        (where / "pages.jsonl").open("w", encoding="utf-8") as texts,
        (where / "pages.csv").open("w", encoding="utf-8", newline="") as labels,
    ):
        table = csv.writer(labels)
        table.writerow(["id", "site", "page_type", "edu"])
        for n in range(180):
            grade = draw.randrange(GRADES)
            texts.write(json.dumps({"id": f"p{n:03}", "text": page(grade, draw)}) + "\n")
            table.writerow([f"p{n:03}", f"site{n // 3}", "lesson" if grade > 1 else "shop", grade])
    common = "texts: pages.jsonl\nlabels: pages.csv\nbucket: 65536\nfolds: 3\n"
    (where / "edu.yaml").write_text(common + "head: edu\nlabel: edu\npositive: 2\n")
    (where / "kind.yaml").write_text(common + "head: kind\nlabel: page_type\nkind: nominal\n")
    return where
