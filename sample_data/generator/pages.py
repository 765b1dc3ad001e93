"""Web pages: what a host puts around a document, and pages that are filled from a template."""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass, field
from typing import Any

from generator.grammar import HERE, Dice
from generator.prose import Block, Document, Writer

HOSTS: dict[str, dict[str, Any]] = json.loads((HERE / "hosts.json").read_text(encoding="utf-8"))
TEMPLATES: dict[str, dict[str, Any]] = json.loads(
    (HERE / "templates.json").read_text(encoding="utf-8")
)
STYLE = "body{margin:0 auto;max-width:44em}nav li{display:inline}.cookie-banner{position:fixed}"
SCRIPT = "window.page={loaded:Date.now()};document.documentElement.classList.add('js');"


@dataclass
class Page:
    """A page to be: `facts` gathers what was planted in it."""

    url: str
    document: Document
    slots: dict[str, str] = field(default_factory=dict)

    @property
    def host(self) -> str:
        """The host of the address."""
        return self.url.split("/")[2]


def slug(text: str) -> str:
    """A title as the last part of an address."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:48].strip("-")


def chrome(host: str) -> list[tuple[str, str]]:
    """The lines that stand on every page of a host, each with the place where it stands."""
    about = HOSTS[host]
    lines = [("cookie", about["cookie"]), ("header", about["site"])]
    lines += [("nav", line) for line in about["nav"]]
    lines += [("footer", line) for line in about["footer"]]
    lines.append(("article", about["inside"]))
    return [(place, line) for place, line in lines if line]


def render(page: Page, charset: str = "utf-8", *, declared: bool = True) -> str:
    """The page as HTML."""
    about = HOSTS[page.host]
    lang = page.document.language
    right = ' dir="rtl"' if lang == "ar" else ""
    links = "".join(
        f'<li><a href="/{number}">{html.escape(line)}</a></li>'
        for number, line in enumerate(about["nav"])
    )
    cookie = about["cookie"] and (
        f'<div class="cookie-banner" role="dialog"><p>{html.escape(about["cookie"])}</p>'
        "<button>OK</button></div>\n"
    )
    inside = about["inside"] and f'<p class="hint">{html.escape(about["inside"])}</p>\n'
    footer = "".join(f"<p>{html.escape(line)}</p>" for line in about["footer"])
    meta = f'<meta charset="{charset}">' if declared else ""
    return (
        f'<!DOCTYPE html>\n<html lang="{lang}"{right}>\n<head>{meta}'
        f"<title>{html.escape(page.document.title)} - {html.escape(about['site'])}</title>\n"
        f'<link rel="canonical" href="{html.escape(page.url)}">\n'
        f"<style>{STYLE}</style><script>{SCRIPT}</script></head>\n<body>\n{cookie}"
        f'<header id="header" class="site-header"><a href="/">{html.escape(about["site"])}</a>'
        f'</header>\n<nav class="menu"><ul>{links}</ul></nav>\n<main>\n<article>\n'
        f"<h1>{html.escape(page.document.title)}</h1>\n{_blocks(page.document.blocks)}{inside}"
        f'</article>\n</main>\n<footer class="site-footer">{footer}</footer>\n</body>\n</html>\n'
    )


def _blocks(blocks: tuple[Block, ...]) -> str:
    out, listing = [], False
    for tag, text in blocks:
        if (tag == "li") != listing:
            listing = tag == "li"
            out.append("<ul>\n" if listing else "</ul>\n")
        body = html.escape(text)
        out.append(
            f"<pre><code>{body}</code></pre>\n" if tag == "pre" else f"<{tag}>{body}</{tag}>\n"
        )
    return "".join(out) + ("</ul>\n" if listing else "")


def plain(page: Page) -> str:
    """The whole page as text, as a WET file has it: what stands around the document too."""
    lines = chrome(page.host)
    before = [line for place, line in lines if place in {"cookie", "header", "nav"}]
    inside = [line for place, line in lines if place == "article"]
    after = [line for place, line in lines if place == "footer"]
    body = [page.document.title, *(text for _, text in page.document.blocks)]
    return "\n".join([*before, *body, *inside, *after]) + "\n"


def templated(dice: Dice, host: str, number: int) -> Page:
    """A page of one of the three template-driven hosts; every tenth has a paragraph of its own."""
    topic = {"shop": "cooking", "weather": "geography", "register": "weaving"}[
        host.split(".", maxsplit=1)[0]
    ]
    writer = Writer(dice, topic)
    words = writer.words.lists
    slots = {
        "number": str(10_000 + 37 * number),
        "adjective": writer.one("a").capitalize(),
        "thing": writer.one("n").partition("/")[0],
        "maker": writer.people[0],
        "person": writer.people[1],
        "range": dice.pick(["Hearth", "Meadow", "Harbour", "Attic", "Orchard"]),
        "town": writer.town,
        "district": writer.place(),
        "firm": f"{writer.people[0].split()[1]} and {dice.pick(['Sons', 'Daughters', 'Partners'])}",
        "purpose": writer.say("{v.ing} {n.s} and {v.ing} {n.s} {p}").lower(),
        "street": writer.place() + " Road",
        "colour": dice.pick(["red", "grey", "green", "ochre", "blue", "white"]),
        "wind": dice.pick(["north", "south", "west", "east", "north-west"]),
        "day": f"{dice.between(1, 28)} {dice.pick(words['month'])} {dice.between(1950, 2020)}",
        "rise": f"0{dice.between(5, 8)}:{dice.between(10, 59)}",
        "set": f"{dice.between(16, 21)}:{dice.between(10, 59)}",
    }
    for name, low, high in (
        ("days", 2, 9), ("weight", 90, 4000), ("length", 8, 90), ("price", 3, 700),
        ("height", 2, 1900), ("people", 300, 90_000), ("high", 12, 31), ("low", -4, 11),
        ("speed", 3, 60), ("rain", 0, 100), ("hot", 30, 41), ("cold", 5, 32),
        ("capital", 5000, 900_000), ("house", 1, 140), ("staff", 1, 800),
        ("turnover", 10_000, 9_000_000),
    ):  # fmt: skip
        slots[name] = str(dice.between(low, high))
    slots["slug"] = slug(slots["town"]) + f"-{number}"
    template = TEMPLATES[host]
    used = {
        name: value
        for name, value in slots.items()
        if any("{" + name + "}" in line for line in [template["path"], *template["lines"]])
    }
    title, *lines = (line.format_map(used) for line in template["lines"])
    blocks = [("p", line) for line in lines]
    if number % 10 == 9:
        blocks.append(("p", writer.paragraph(dice.pick(["story", "history", "report"]), 6, 9)))
    url = f"https://{host}/{template['path'].format_map(used)}"
    return Page(url, Document(title, tuple(blocks), "en", "template"), used)
